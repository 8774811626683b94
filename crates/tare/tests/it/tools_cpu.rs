//! Runs the tools for processors, memory and requests: on the host, in the built-in container, and in Docker if an
//! engine answers.
//!
//! Every tool goes through a study of two arms and one trial a block, like a user's. Checks that each arm has
//! readings of the metrics that the tool must report, not how large they are.

use crate::prelude::*;

use tare_model::Path;

use crate::product::environments;

/// The distribution's interpreter: another one that comes first on the path may be a script that finds its
/// interpreter elsewhere, which cannot be packed.
const PYTHON: &str = "/usr/bin/python3";

/// A tool's workload: the program that it needs, its lines in the study, and a metric that it must report.
struct Tool {
    program: &'static str,
    lines: &'static str,
    metrics: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "sysbench",
        lines: "id = \"sysbench-cpu\"\nparams = { max_prime = 1000 }",
        metrics: &["sysbench.cpu.rate", "sysbench.cpu-event.time"],
    },
    Tool {
        program: "sysbench",
        lines: "id = \"sysbench-memory\"\nparams = { total_mib = 64 }",
        metrics: &["sysbench.cached-block.throughput"],
    },
    Tool {
        program: "sysbench",
        lines: "id = \"sysbench-fileio\"\nparams = { total_mib = 4, mode = \"rndrw\" }",
        metrics: &[
            "sysbench.file-read.rate",
            "sysbench.file-write.rate",
            "sysbench.file-operation.time",
        ],
    },
    Tool {
        program: "stress-ng",
        lines: "id = \"stress-ng\"\nparams = { stressor = \"cpu\", method = \"matrixprod\" }",
        metrics: &["stress-ng.operation.rate"],
    },
    Tool {
        program: "redis-server",
        lines: "id = \"redis-benchmark\"\nparams = { requests = 500, clients = 5 }\npath = \"loopback\"",
        metrics: &["redis.request.rate", "redis.request.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"python-mix\"\nparams = { rounds = 1, python = \"/usr/bin/python3\" }",
        metrics: &["python.mix-round.time", "python.closure.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"pi-loop\"\nparams = { samples = 10000, repeats = 2, python = \"/usr/bin/python3\" }",
        metrics: &["python.pi-loop.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"python-des\"\nparams = { characters = 800, repeats = 2, python = \"/usr/bin/python3\" }",
        metrics: &["python.des.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"python-files\"\nparams = { lines = 1000, files = 3, python = \"/usr/bin/python3\" }",
        metrics: &["python.files-write.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"python-files\"\nparams = { what = \"read\", kib = 64, files = 2, how = \"lines\", python = \"/usr/bin/python3\" }",
        metrics: &["python.files-read.time"],
    },
    Tool {
        program: "php",
        lines: "id = \"php-pages\"\nparams = { files = 5, requests = 2 }",
        metrics: &["php.page.time"],
    },
    Tool {
        program: "php",
        lines: "id = \"php-pages\"\nparams = { files = 5, requests = 2, opcache = \"on\" }",
        metrics: &["php.page.time"],
    },
    Tool {
        program: "sh",
        lines: "id = \"command\"\nparams = { argv = [\"sh\", \"-c\", \"echo it took 1.5 s\"], pick = \"took ([0-9.]+) s\" }",
        metrics: &["command.run.wall", "command.run.picked"],
    },
];

/// Workloads that need NumPy, if the interpreter has it.
const NUMPY: &[Tool] = &[
    Tool {
        program: PYTHON,
        lines: "id = \"pi-numpy\"\nparams = { samples = 10000, repeats = 2, python = \"/usr/bin/python3\" }",
        metrics: &["python.pi-numpy.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"blas-matrices\"\nparams = { size = 64, pairs = 2, source = \"pictures\" }",
        metrics: &[
            "blas.matrices.time",
            "blas.matrices-inverse.time",
            "blas.matrices.processors",
            "blas.matrices.memory",
        ],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"blas-together\"\nparams = { size = 64, pairs = 2, processes = 1 }",
        metrics: &["blas.together.time"],
    },
    Tool {
        program: PYTHON,
        lines: "id = \"blas-together\"\nparams = { size = 64, pairs = 2, processes = 0 }",
        metrics: &["blas.together.time"],
    },
];

fn has(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| arguments.is_empty() || output.status.success())
}

/// Returns the available tools; reports a skip for the others.
fn present() -> Vec<&'static Tool> {
    let mut present = Vec::new();
    for tool in TOOLS {
        if tool.program == "sh" || has(tool.program, &["--version"]) {
            present.push(tool);
        } else {
            skip("tools", &format!("`{}` is not installed", tool.program));
        }
    }
    if has(PYTHON, &["-c", "import numpy"]) {
        present.extend(NUMPY);
    } else {
        skip("tools", "NumPy is not installed");
    }
    present
}

#[test]
fn cpu_tools_are_measured_wherever_they_run() {
    let tools = present();
    let lines: Vec<&str> = tools.iter().map(|tool| tool.lines).collect();
    let metrics: Vec<&str> = tools
        .iter()
        .flat_map(|tool| tool.metrics)
        .copied()
        .collect();
    assert_measured(&environments(), &lines, &metrics);
}

/// Runs a study of these environments, the host first, and checks for readings of every metric in all of them.
fn assert_measured(environments: &[&str], workloads: &[&str], metrics: &[&str]) {
    let product = Product::new();
    let design = "[design]\ntrial = \"20ms\"\nblocks_min = 1\nblocks_max = 1\n";
    let mut study = format!("id = \"tools\"\n{design}");
    for id in environments {
        study.extend(["[[arm]]\nid = \"", id, "\"\n"]);
    }
    for lines in workloads {
        study.extend(["[[workload]]\n", lines, "\n"]);
    }
    product.file("tools.toml", &study);
    let dossier = product.dossier(["run", "tools.toml"]);
    assert_eq!(dossier["failures"], Value::Array(Vec::new()));
    let cells = dossier["cells"].as_array().unwrap();
    let others = environments[1..].iter();
    for (metric, arm) in others.flat_map(|arm| metrics.iter().map(move |metric| (metric, arm))) {
        let is_it = |cell: &&Value| cell["metric"] == *metric && cell["arm"] == *arm;
        // Of a tool with several workloads the first.
        let cell = cells.iter().find(is_it);
        let cell = cell.unwrap_or_else(|| panic!("no cell of {metric} in {arm}"));
        assert_eq!(cell["n_blocks"], 1, "{cell}");
    }
    product.assert_nothing_left();
}

#[test]
fn des_in_python_matches_the_agents_des() {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tare-core/src/workload/python/des.py"
    );
    if !has(PYTHON, &["--version"]) {
        return skip("tools", &format!("`{PYTHON}` is not installed"));
    }
    let output = Command::new(PYTHON).args([script, "80000", "1"]).output();
    let printed: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    // The value of `the_cipher_is_that_of_the_workload_in_python` in the agent.
    assert_eq!(printed["sum"], "a17dd57455e55ca8");
}

/// Returns an interpreter that finds pyperf: what TARE_PYPERF names, such as one of a virtual environment (few
/// distributions package pyperf), else the distribution's.
fn python_with_pyperf() -> Option<String> {
    let named = std::env::var("TARE_PYPERF").ok();
    let python = named.clone().unwrap_or_else(|| PYTHON.to_owned());
    if has(&python, &["-c", "import pyperf"]) {
        return Some(python);
    }
    assert!(
        named.is_none(),
        "TARE_PYPERF names `{python}`, which finds no pyperf"
    );
    skip(
        "pyperf",
        "`/usr/bin/python3` finds no pyperf and TARE_PYPERF names no other",
    );
    None
}

#[test]
fn pyperf_is_measured_wherever_it_runs() {
    let python = needed!(python_with_pyperf());
    let lines = format!(
        "id = \"pyperf\"\nparams = {{ python = {python:?}, processes = 2, values = 2, warmups = 1, loops = 100, \
         statement = \"sorted(words)\", setup = \"words = 'one two three'.split()\" }}"
    );
    assert_measured(&environments(), &[&lines], &["pyperf.statement.time"]);
}

#[test]
fn dotnet_benchmark_is_measured_on_host_and_container() {
    if !has("dotnet", &["--list-runtimes"]) {
        return skip("dotnet", "there is no program `dotnet`");
    }
    let Ok(program) = std::env::var("TARE_BENCHMARKS") else {
        return skip(
            "dotnet",
            "TARE_BENCHMARKS names no assembly of BenchmarkDotNet's with the benchmark `Perf_Random.Next_int`",
        );
    };
    let lines = format!(
        "id = \"benchmark-dotnet\"\nparams = {{ program = {program:?}, iterations = 3, warmups = 1 }}"
    );
    let environments = ["host", "container"];
    assert_measured(&environments, &[&lines], &["dotnet.operation.time"]);
}

/// A `dotnet` of another version than the program was built for, with the answers of its host.
#[cfg(unix)]
#[test]
fn dotnet_mismatch_names_needed_and_present_versions() {
    let product = Product::new();
    let script = "#!/bin/sh\n\
        [ \"$1\" != --list-runtimes ] || { echo 'Microsoft.NETCore.App 8.0.15 [/opt]'; exit; }\n\
        echo \"Framework: 'Microsoft.NETCore.App', version '2.2.0' (x64)\" >&2\n\
        echo '  8.0.15 at [/opt/shared/Microsoft.NETCore.App]' >&2\nexit 150\n";
    let dotnet = product.program("dotnet", script);
    product.file(
        "other.toml",
        format!(
            "id = \"other\"\n[design]\ntrial = \"20ms\"\nblocks_min = 2\nblocks_max = 2\n\
             [[arm]]\nid = \"host\"\n[[arm]]\nid = \"again\"\ndriver = \"host\"\n\
             [[workload]]\nid = \"benchmark-dotnet\"\nparams = {{ dotnet = {dotnet:?} }}\n"
        ),
    );
    let ended = product.tare("run other.toml --json -", &[]);
    let failures = ended.json()["failures"].to_string();
    let expected =
        "found 8.0.15 where the benchmarks need Microsoft.NETCore.App 2.2.0; install the runtime";
    assert_says(&failures, expected);
}

#[test]
fn failing_command_is_a_failure_with_its_stderr() {
    let product = Product::new();
    product.file(
        "fails.toml",
        "id = \"fails\"\n[design]\ntrial = \"20ms\"\nblocks_min = 2\nblocks_max = 2\n\
         [[arm]]\nid = \"host\"\n[[arm]]\nid = \"again\"\ndriver = \"host\"\n\
         [[workload]]\nid = \"command\"\n\
         params = { argv = [\"sh\", \"-c\", \"echo it is broken >&2; exit 7\"] }\n",
    );
    let ended = product.tare("run fails.toml --json -", &[]);
    let failures = ended.json()["failures"].to_string();
    assert_says(&failures, "status 7");
    assert_says(&failures, "it is broken");
}

#[cfg(unix)]
#[test]
fn interpreter_behind_shim_is_resolved_and_measured() {
    if !std::path::Path::new(PYTHON).exists() {
        return skip("python3", "there is no /usr/bin/python3");
    }
    let product = Product::new();
    let study = product.file(
        "study.toml",
        "id = \"shim\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"pi-loop\"\n\
         params = { samples = 1000, repeats = 1 }\n",
    );
    let shims = product.folder().join("shims");
    fs::create_dir(&shims).unwrap();
    // Like pyenv's and asdf's shims: a script that chooses an interpreter by the current folder, and starts it.
    let choosing = format!("#!/bin/sh\n[ -e study.toml ] || exit 1\nexec {PYTHON} \"$@\"\n");
    // A shim that starts nothing is left alone; its trials report the failure.
    let broken = "#!/bin/sh\necho no version is set >&2\nexit 127\n".to_owned();
    for (script, named) in [(choosing, PYTHON), (broken, "python3")] {
        let shim = shims.join("python3");
        executable(&shim, script);
        let mut command = product.command(line(&format!("run {study} --blocks 1 --json -"), &[]));
        let others = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{others}", shims.display()));
        let ended = product.finish(command).expect(0);
        let dossier = ended.json();
        let facts = dossier["arms"][0]["facts"].as_object().unwrap();
        let is_asked_about = facts.contains_key(&format!("tool.{PYTHON}.path"));
        assert_eq!(is_asked_about, named == PYTHON, "{dossier}");
        let cells = dossier["aa"].as_array().unwrap();
        if named == PYTHON {
            assert_eq!(cells[0]["params"]["python"], PYTHON, "{dossier}");
            assert_eq!(cells[0]["n_blocks"], 1, "{dossier}");
            let message =
                format!("`python3` is a script that starts `{PYTHON}`, which is measured");
            ended.complains(&message);
        } else {
            ended.does_not_complain("is a script");
        }
    }
}

#[test]
fn redis_server_rejects_shutdown_and_code_from_others() {
    let workload = tare::workload::find("redis-benchmark").unwrap();
    let recipe = workload.recipe(&Params::new(), Some(Path::Loopback));
    let Recipe::Pair { server, .. } = recipe.unwrap() else {
        panic!("no pair");
    };
    let call = CommandCall::from_args(&server.args).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let port = crate::ssh::server::free_port().to_string();
    let filled = |text: &str| {
        text.replace("{folder}", folder.path().to_str().unwrap())
            .replace("{address}", "127.0.0.1")
            .replace("{port}", &port)
    };
    for (name, text) in &call.files {
        fs::write(folder.path().join(name), filled(text)).unwrap();
    }
    let arguments = call.argv[1..].iter().map(|argument| filled(argument));
    let started = Command::new(&call.argv[0])
        .args(arguments)
        .stdout(Stdio::null())
        .spawn();
    let _server = match started {
        Ok(server) => Ended(server),
        Err(error) => return skip("tools", &format!("redis-server: {error}")),
    };
    let say = |words: &str| {
        let output = Command::new("redis-cli")
            .args(["-p", &port])
            .args(words.split(' '))
            .stdin(Stdio::null())
            .output();
        lossy(&output.unwrap().stdout)
    };
    wait_until("it answers", || say("PING").contains("PONG"));
    assert!(say("SET key value").contains("OK"));
    for words in [
        "EVAL return(1) 0",
        "EVALSHA 0000000000000000000000000000000000000000 0",
        "SCRIPT LOAD return(1)",
        "FUNCTION LIST",
        "CONFIG SET dir /tmp",
        "SAVE",
        "REPLICAOF 127.0.0.1 1",
        "MODULE LIST",
        "KEYS *",
        "SHUTDOWN NOSAVE",
    ] {
        let shown = say(words);
        // Before Redis 7 there are no functions.
        let is_refused = shown.contains("NOPERM") || shown.contains("unknown command");
        assert!(is_refused, "{words}: {shown}");
    }
    assert!(say("GET key").contains("value"));
}

/// A process that is killed with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
