//! Tests `tare gate`: exit statuses, revisions of a repository, and the scripts for CI runners.

use crate::compare::{assert_is_as_the_schema_says, row, work};
use crate::prelude::*;

const USUAL: [&str; 7] = [
    "gate", "--budget", "60s", "--margin", "40%", "--only", "wall",
];

fn gate(product: &Product, arguments: &[&str]) -> Ended {
    product.run(USUAL.iter().chain(arguments))
}

#[test]
fn gate_is_red_only_where_something_is_proven_slower() {
    let product = Product::new();
    let (short, long) = (work(1), work(8));
    let ended = gate(&product, &["--json", "-", &short, &long]).expect(1);
    let json = ended.json();
    let wall = row(&json, "wall");
    assert_eq!(wall["confirmed"], true, "{wall:#}");
    assert_is_as_the_schema_says(&json);
    // Against a stored run nothing is proven, however much slower it is.
    let run = json["runs"][0].as_str().unwrap();
    let json = gate(&product, &["--json", "-", "--against", run, &work(40)])
        .expect(0)
        .json();
    assert_eq!(json["paired"], false, "{json:#}");
    assert!(
        // On a busy machine surer than the wall time.
        row(&json, "cpu")["change"]["low"].as_f64().unwrap() > 1.0,
        "{json:#}"
    );
    gate(&product, &["--against", "20000101-000000-abcd", &short]).expect(2);
    assert!(json["runs"].as_array().unwrap().len() >= 2, "{json:#}");
    // Neither a speed-up nor a skipped metric is a reason to fail.
    gate(&product, &[&long, &short]).expect(0);
    let arguments = [
        "gate", "--budget", "6s", "--margin", "40%", "--skip", "*", &short, &long,
    ];
    product.run(arguments).expect(0);
    let arguments = arguments.iter().chain(&["--fail-on", "slower-or-open"]);
    product.run(arguments).expect(6);
    product.assert_nothing_left();
}

#[test]
fn base_against_itself_is_never_red() {
    let product = Product::new();
    let ended = product.tare("gate --aa --budget 10s --margin 40%", &[&work(1)]);
    ended.expect(0).shows("red for nothing");
}

#[test]
fn forms_are_written_and_agree_with_the_exit_status() {
    let product = Product::new();
    let (short, long) = (work(1), work(8));
    gate(
        &product,
        &[
            "--json",
            "a.json",
            "--junit",
            "a.xml",
            "--sarif",
            "a.sarif",
            "--summary",
            "a.md",
            "--annotations",
            "github",
            &short,
            &long,
        ],
    )
    .expect(1)
    .shows("::error title=tare gate::Slower");
    let read = |name: &str| contents(product.folder().join(name));
    assert!(read("a.xml").contains("failures=\"1\""));
    assert!(
        read("a.md").starts_with("### Slower: 1 of 1 rows"),
        "{}",
        read("a.md")
    );
    for name in ["a.json", "a.sarif"] {
        let _: Value = serde_json::from_str(&read(name)).unwrap();
    }
}

/// A repository with a program that takes one unit in the first commit and eight in the second.
struct Repository {
    product: Product,
}

impl Repository {
    fn new() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            skip("git", "there is no git");
            return None;
        }
        let repository = Self {
            product: Product::new(),
        };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.commit(1, "Begin");
        repository.commit(8, "Do <more> | `work`");
        // A repository's hook is untrusted code.
        let hook = repository.product.folder().join(".git/hooks/post-checkout");
        let shown = repository.product.folder().join("hooked");
        executable(&hook, format!("#!/bin/sh\ntouch {}\n", shown.display()));
        Some(repository)
    }

    fn commit(&self, units: u32, subject: &str) {
        let count = units * 8_000;
        let text = format!("#!/bin/sh\ni=0; while [ $i -lt {count} ]; do i=$((i+1)); done\n");
        self.product.file("source.sh", text);
        self.git(&["add", "source.sh"]);
        self.git(&["commit", "--quiet", "-m", subject]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(arguments)
            .current_dir(self.product.folder())
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        lossy(&output.stdout)
    }

    fn assert_clean(&self) {
        let trees = self.git(&["worktree", "list"]);
        assert_eq!(trees.lines().count(), 1, "{trees}");
        assert!(!self.product.folder().join("hooked").exists());
        self.product.assert_nothing_left();
    }
}

const BUILD: [&str; 2] = ["--build", "cp source.sh program && chmod +x program"];

#[test]
fn revisions_are_built_compared_and_removed() {
    let repository = needed!(Repository::new());
    let product = &repository.product;
    let arguments = ["--base", "HEAD~1", "--json", "-"];
    let arguments = [&arguments[..], &BUILD, &["--", "./program"]].concat();
    let ended = gate(product, &arguments).expect(1);
    let json = ended.json();
    assert_eq!(json["sides"][0]["arm"], "base");
    let label = json["sides"][1]["label"].as_str().unwrap();
    assert!(label.ends_with("\"Do <more> | `work`\""), "{label}");
    repository.assert_clean();
    // The branch that it will be merged into is the default base.
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    fs::remove_file(product.folder().join("hooked")).ok();
    let arguments = [&BUILD[..], &["--json", "-", "--", "./program"]].concat();
    let json = gate(product, &arguments).expect(0).json();
    assert!(
        json["notes"][0].as_str().unwrap().contains("same program"),
        "{json:#}"
    );
    repository.assert_clean();
}

#[test]
fn commit_that_does_not_build_is_skipped_by_bisect() {
    let repository = needed!(Repository::new());
    let ask = |arguments: &[&str]| {
        let arguments = [&["--base", "HEAD~1"], arguments].concat();
        gate(&repository.product, &arguments)
    };
    let broken = ["--build", "echo no such header; exit 7", "--", "./program"];
    ask(&broken).expect(5).complains("no such header");
    let bisecting = [&["--bisect"], &broken[..]].concat();
    ask(&bisecting).expect(125);
    // A missing program does not make a commit bad either.
    ask(&["--bisect", "--", "./no-such-program"]).expect(125);
    gate(
        &repository.product,
        &["--base", "no-such", "--", "./program"],
    )
    .expect(2)
    .complains("no revision `no-such`");
    repository.assert_clean();
}

#[test]
fn gate_reports_odd_revisions_or_skips_measuring() {
    let repository = needed!(Repository::new());
    let product = &repository.product;
    let ask =
        |arguments: &[&str]| gate(product, &[arguments, &BUILD, &["--", "./program"]].concat());
    product.file("source.sh", "changed, and in no commit\n");
    ask(&["--base", "HEAD"])
        .expect(0)
        .complains("not committed")
        .shows("one commit");
    ask(&["--base=--upload-pack=x"])
        .expect(2)
        .complains("no revision `--upload-pack=x`");
    repository.assert_clean();
    // A branch may have the name of an option, and its history may be missing.
    repository.git(&["update-ref", "refs/heads/-x", "HEAD~1"]);
    ask(&["--base=refs/heads/-x", "--head", "HEAD~1"]).expect(0);
    let shallow = Product::new();
    let origin = format!("file://{}", product.folder().display());
    let mut clone = Command::new("git");
    clone.args([
        "clone",
        "--quiet",
        "--depth",
        "1",
        "--no-single-branch",
        &origin,
        ".",
    ]);
    let cloned = clone.current_dir(shallow.folder()).output().unwrap();
    assert!(cloned.status.success(), "{cloned:?}");
    gate(&shallow, &["--base", "HEAD~1", "--", "./program"])
        .expect(2)
        .advises("shallow");
}

#[test]
fn bisect_finds_the_commit_that_is_slower() {
    let repository = needed!(Repository::new());
    let git = |arguments: &[&str]| repository.git(arguments).trim().to_owned();
    let mut commits = vec![git(&["rev-parse", "HEAD~1"])];
    git(&["checkout", "--quiet", "-b", "ten", &commits[0]]);
    for number in 1..10 {
        if number == 6 {
            repository.commit(8, "Slower");
        } else {
            repository.product.file("note", number.to_string());
            git(&["add", "note"]);
            git(&["commit", "--quiet", "-m", "Note"]);
        }
        commits.push(git(&["rev-parse", "HEAD"]));
    }
    git(&["bisect", "start", &commits[9], &commits[0]]);
    let own = ["--bisect", "--base", &commits[0]];
    let words = [&USUAL[..], &own, &BUILD, &["--", "./program"]].concat();
    let tare = repository.product.command(words);
    let command = repository.product.under("git", &["bisect", "run"], &tare);
    let ended = repository.product.finish(command);
    let found = format!("{} is the first bad commit", commits[6]);
    ended.shows(&found);
}

fn ci(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../ci")
        .join(name)
}

/// Runs a runner's script with that runner's variables, and a stub for the downloaded program.
fn on_runner(product: &Product, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
    let mut command = Command::new("sh");
    command.arg(ci("gate.sh")).args(arguments);
    product.set_variables(&mut command);
    for (name, value) in variables {
        command.env(name, value);
    }
    product.finish(command)
}

/// A stub that prints its arguments, writes the files that it is asked for, and exits with this status.
fn stand_in(product: &Product, status: i32) -> String {
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do echo \"<$word>\"; done >arguments\nwhile [ $# -gt 0 ]; do case $1 in --summary) echo '### Same' >\"$2\";; esac; shift; done\nexit {status}\n"
    );
    product.program("stand-in", script)
}

#[test]
fn github_script_passes_arguments_and_writes_summary() {
    let product = Product::new();
    let tare = stand_in(&product, 1);
    let step = product.file("step.md", "before\n");
    let hostile = "echo '$(touch hacked)'; touch hacked";
    let ended = on_runner(
        &product,
        &[
            ("TARE", &tare),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", &step),
            ("TARE_BUILD", hostile),
            ("TARE_OPTIONS", "--budget 60s"),
            ("TARE_COMMAND", "./program $(touch hacked) *"),
        ],
        &[],
    );
    ended.expect(1);
    let words = contents(product.folder().join("arguments"));
    for wanted in [
        "<gate>",
        "<github>",
        "<--budget>",
        "<60s>",
        &format!("<{hostile}>"),
        "<$(touch>",
        "<*>",
    ] {
        assert!(words.contains(wanted), "no {wanted} in {words}");
    }
    assert!(!product.folder().join("hacked").exists());
    let summary = contents(step);
    assert_eq!(summary, "before\n### Same\n");
}

#[test]
fn gitlab_script_writes_report_and_keeps_exit_status() {
    let product = Product::new();
    let tare = stand_in(&product, 0);
    let variables = [
        ("TARE", tare.as_str()),
        ("GITLAB_CI", "true"),
        ("GITHUB_ACTIONS", ""),
    ];
    on_runner(&product, &variables, &["--", "./program", "a b"]).expect(0);
    let words = contents(product.folder().join("arguments"));
    for wanted in ["<gitlab>", "<--junit>", "<a b>"] {
        assert!(words.contains(wanted), "no {wanted} in {words}");
    }
    let without = [
        ("GITHUB_ACTIONS", ""),
        ("TARE", ""),
        ("TARE_URL", ""),
        ("TARE_SHA256", ""),
    ];
    on_runner(&product, &without, &["--", "true"]).complains("TARE_URL");
}

#[test]
fn runner_files_need_no_permission_and_name_script() {
    let read = |name: &str| contents(ci(name));
    let action = read("github/action.yml");
    assert_says(&action, "gate.sh");
    // Text of a pull request is never part of a script.
    let scripts = action
        .lines()
        .filter(|line| line.trim_start().starts_with("run:"));
    assert!(scripts.clone().count() > 0);
    for line in scripts {
        assert_lacks(line, "${{");
    }
    let job = read("gitlab/gate.yml");
    assert_says(&job, "junit:");
    assert_says(&job, "gate.sh");
}
