//! Tests studies that repeat publications, as their readers see them: the authors' own programs if available,
//! unavailable arms, and what of the publication is still reported. Speed is never checked.

use crate::bad_input::without_docker;
use crate::prelude::*;

/// The interpreter that the example names.
const PYTHON: &str = "/usr/bin/python3";

/// Prints the final columns of PyBench.
const PYBENCH: &str = r#"
import sys
assert sys.argv[1:] == ["-n", "3"], sys.argv
print("PYBENCH 2.1")
print("Running 3 round(s) of the suite at warp factor 10:\n")
for number in (1, 2, 3):
    print(f"* Round {number} done in 2.97 seconds.")
print("Test                             minimum  average  operation  overhead")
print("          BuiltinFunctionCalls:     27ms     28ms    0.05us    0.078ms")
print("Totals:                           2965ms   2973ms")
"#;

/// Prints the output of the estimates of pi.
const PI: &str = r#"
print("Estimating pi using random sampling, n=1000000")
for number in range(10):
    print("Estimate of pi: 3.141592")
print("10 repeats: 0.7120000001 secs = 0.0712 secs/run")
"#;

/// Returns the example with its programs in this folder instead.
fn with_programs_in(folder: &Path) -> String {
    let example = include_str!("../../../../examples/studies/python-own.toml");
    let there = |name: &str| folder.join(name).display().to_string();
    let moved = example
        .replace("/var/lib/phoronix-test-suite", &there("phoronix"))
        .replace("/opt/pi", &there("pi"));
    assert!(moved.matches(&there("")).count() >= 3, "{moved}");
    moved
}

#[test]
fn author_python_programs_run_from_install_location() {
    if !Path::new(PYTHON).exists() {
        return skip("tools", &format!("`{PYTHON}` is not installed"));
    }
    let product = Product::new();
    let study = product.file("own.toml", with_programs_in(product.folder()));
    let arguments = [
        "run", &study, "--env", "host", "--blocks", "1", "--json", "-",
    ];
    // Each missing program is reported with the path at which it was looked for.
    let dossier = product.run(arguments).expect(0).json();
    let failures = dossier["failures"].as_array().unwrap();
    let shown: Vec<&str> = failures
        .iter()
        .map(|failure| failure["reason"].as_str().unwrap())
        .collect();
    for name in ["pybench.py", "estimate_pi.py", "estimate_pi_for_loop.py"] {
        assert!(shown.iter().any(|why| why.contains(name)), "{shown:?}");
    }
    let suite = "phoronix/installed-tests/pts/pybench-1.1.3/pybench-2018-02-16";
    for folder in [suite, "pi"] {
        fs::create_dir_all(product.folder().join(folder)).unwrap();
    }
    product.file(&format!("{suite}/pybench.py"), PYBENCH);
    product.file("pi/estimate_pi.py", PI);
    product.file("pi/estimate_pi_for_loop.py", PI);
    let dossier = product.run(arguments).expect(0).json();
    assert_eq!(dossier["failures"], Value::Array(Vec::new()));
    let picked: Vec<f64> = dossier["aa"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|cell| cell["metric"] == "command.run.picked")
        .map(|cell| cell["base"]["point"].as_f64().unwrap())
        .collect();
    assert_eq!(picked, [2973.0, 0.0712, 0.0712]);
    product.assert_nothing_left();
}

/// Half of its arms are unavailable without an engine and such a kernel.
const HALF: &str = r#"
id = "half"
design = { trial = "10ms" }
arm = [
  { id = "host" },
  { id = "same", driver = "host" },
  { id = "engine", driver = "docker" },
  { id = "machine", driver = "vm", settings = { kernel = "/no/such/kernel" } },
]
workload = [{ id = "getppid" }]
[publication]
title = "t"
where = "w"
machine = "m"
number = [{ printed = "1 us", value = 1.0, unit = "us", at = "a", quantity = "call", arm = "engine" }]
quantity = [{ name = "call", label = "a system call", metric = "syscall.getppid.time" }]
claim = [
  { id = "here", published = "It takes no time at all to be the same.", at = "a", rule = { kind = "cost", quantity = "call", arm = "same", at_most = 1000.0 } },
  { id = "elsewhere", published = "It takes longer there.", at = "a", rule = { kind = "between", quantity = "call", arm = "engine", other = "machine", at_least = 1.0 } },
]
[[publication.table]]
title = "Calls"
rows = ["call"]
columns = [{ label = "host", arm = "host" }, { label = "engine", arm = "engine" }, { label = "machine", arm = "machine" }]
"#;

#[test]
fn study_with_half_its_arms_absent_answers_for_rest() {
    let product = Product::new();
    let file = product.file("half.toml", HALF);
    let arguments = ["run", file.as_str(), "--blocks", "6", "--json", "-"];
    let ended = without_docker(&product, &arguments, 0);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    let claims: Vec<(&str, &str)> = dossier["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| {
            let text = |name: &str| claim[name].as_str().unwrap();
            (text("verdict"), text("because"))
        })
        .collect();
    assert_eq!(claims[0].0, "holds", "{claims:?}");
    assert_eq!(claims[1].0, "not-testable", "{claims:?}");
    assert_says(claims[1].1, "`engine` is not available");
    let values = dossier["publication"]["tables"][0]["rows"][0]["values"]
        .as_array()
        .unwrap();
    assert!(values[0]["here"]["point"].is_f64(), "{values:#?}");
    for (value, arm) in values[1..].iter().zip(["engine", "machine"]) {
        assert!(value["here"].is_null());
        let reason = value["reason"].as_str().unwrap();
        assert_says(reason, &format!("`{arm}` is not available"));
    }
    // The published value is still shown.
    assert_eq!(values[1]["published"][0], "1 us");
    product.assert_nothing_left();
}
