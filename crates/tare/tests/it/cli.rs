//! Tests what scripts rely on: the documents on stdout, the listings, the help.

use crate::prelude::*;

use std::os::unix::fs::FileTypeExt;

use crate::product::environments;

const SMALL: [&str; 6] = ["--workload", "getppid,stat", "--blocks", "2", "--json", "-"];

fn arms(dossier: &Value) -> Vec<(&str, bool)> {
    let arms = dossier["arms"].as_array().unwrap();
    arms.iter()
        .map(|arm| (arm["id"].as_str().unwrap(), arm["available"] == true))
        .collect()
}

#[test]
fn run_json_prints_only_one_valid_dossier() {
    let product = Product::new();
    let ended = product
        .run(["run", "--env", "host"].into_iter().chain(SMALL))
        .expect(0);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    assert_eq!(arms(&dossier), [("host", true), ("a-prime", true)]);
    assert_eq!(dossier["stopped_by"], "blocks");
    assert_eq!(dossier["complete"], true);
    // Two arms, two workloads, two blocks.
    assert_eq!(dossier["cost"]["trials"], 8);
    // Other tests may measure at the same time.
    let mut lines = ended.stderr.lines();
    let shown = lines.find(|line| !line.contains("another Tare measures"));
    assert_eq!(shown, None, "a quiet machine has nothing to say");
    product.assert_nothing_left();
}

#[test]
fn run_in_all_environments_is_valid_and_cleaned_up() {
    let product = Product::new();
    let wanted = environments();
    let environments = wanted.join(",");
    let dossier = product
        .run(["run", "--env", &environments].into_iter().chain(SMALL))
        .expect(0)
        .json();
    assert_valid_dossier(&dossier);
    let mut expected = vec![("host", true), ("a-prime", true)];
    expected.extend(wanted[1..].iter().map(|id| (*id, true)));
    assert_eq!(arms(&dossier), expected);
    assert_eq!(dossier["failures"], Value::Array(vec![]));
    product.assert_nothing_left();
}

#[test]
fn dossier_goes_to_file_and_table_to_stdout() {
    let product = Product::new();
    let file = product.folder().join("dossier.json");
    let ended = product
        .tare(
            "run --env host --workload getppid --blocks 1 --json dossier.json",
            &[],
        )
        .expect(0);
    assert!(ended.stdout.starts_with("quick · "), "{ended}");
    ended.shows("A′ (host against itself)");
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_valid_dossier(&written);
    // The same run again, from the store.
    let shown = product.run(["show", "--json"]).expect(0).json();
    assert_eq!(shown, written);
    assert!(!product.folder().join("dossier.json.part").exists());
}

#[test]
fn a_stored_run_is_shown_against_another_of_its_arms() {
    let product = Product::new();
    let study = "id = \"pair\"\n[design]\nblocks_min = 7\nblocks_max = 7\n[[arm]]\nid = \"host\"\n[[arm]]\n\
                 id = \"again\"\ndriver = \"host\"\n[[workload]]\nid = \"getppid\"\n";
    let file = product.file("pair.toml", study);
    product.run(["run", &file]).expect(0);

    let against = |arm| product.run(["show", "--against", arm, "--json"]);
    let turned = against("again").expect(0).json();
    assert_valid_dossier(&turned);
    let ids = |list: &Value, name: &str| -> Vec<String> {
        let of = |entry: &Value| entry[name].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(ids(&turned["arms"], "id"), ["again", "host"]);
    assert_eq!(turned["arms"][0]["baseline"], true);
    assert_eq!(ids(&turned["cells"], "arm"), ["host"]);
    assert_eq!(turned["aa"], Value::Array(vec![]));
    // The same blocks and levels, inverted.
    let straight = product.run(["show", "--json"]).expect(0).json();
    let cell = |dossier: &Value| dossier["cells"][0].clone();
    assert_eq!(cell(&turned)["n_blocks"], 7);
    let host_alone = &cell(&turned)["env"]["point"];
    assert!(host_alone.is_f64() && cell(&straight)["base"]["point"].is_f64());
    let text = product.tare("show --against again", &[]).expect(0).stdout;
    assert!(text.starts_with("No A/A control in this run"), "{text}");

    for (arm, said) in [("nix", "`host`, `again`"), ("a-prime", "`host`, `again`")] {
        against(arm).expect(2).complains(said);
    }
}

#[test]
fn pairs_compared_if_study_or_reader_requests() {
    let product = Product::new();
    let study = "id = \"three\"\n[design]\ntrial = \"20ms\"\nblocks_min = 6\nblocks_max = 6\n[[arm]]\nid = \"host\"\n\
                 [[arm]]\nid = \"one\"\ndriver = \"host\"\n[[arm]]\nid = \"two\"\ndriver = \"host\"\n\
                 [[workload]]\nid = \"getppid\"\n";
    let file = product.file("three.toml", study);
    let refused = product
        .tare(&format!("run {file} --against nix"), &[])
        .expect(2);
    refused.complains("`host`, `one`, `two`");
    assert_eq!(product.run(["runs"]).expect(0).stdout, "", "refused first");

    product
        .tare(&format!("run {file} --against one"), &[])
        .expect(0)
        .shows("two against one");
    let plain = product.run(["show", "--json"]).expect(0).json();
    assert!(plain.get("pairs").is_none(), "{plain}");
    let asked = product.tare("show --pairs --json", &[]).expect(0).json();
    assert_valid_dossier(&asked);
    assert_eq!(asked["pairs"][0]["arm"], "two");
    assert_eq!(asked["pairs"][0]["baseline"], "one");
    assert_eq!(asked["cells"], plain["cells"]);

    let file = product.file(
        "asks.toml",
        study.replace("[design]", "[design]\npairs = true"),
    );
    product.run(["run", &file]).expect(0).shows("Pairwise");
    let both = product.tare("show --pairs --against one", &[]);
    both.expect(2);
}

#[test]
fn special_output_file_is_written_not_replaced() {
    let product = Product::new();
    std::os::unix::fs::symlink("/dev/null", product.folder().join("link")).unwrap();
    let arguments = words("run --env host --workload getppid --blocks 1 --json");
    product.run([arguments, &["link"]].concat()).expect(0);
    let target = fs::read_link(product.folder().join("link"));
    assert_eq!(target.unwrap(), Path::new("/dev/null"));
    let null = fs::metadata("/dev/null").unwrap();
    assert!(null.file_type().is_char_device());
}

#[test]
fn every_listing_works_as_text_and_json() {
    let product = Product::new();
    for (what, member) in [
        ("environments", "docker"),
        ("workloads", "getppid"),
        ("studies", "quick"),
        ("causes", "disk.shared-folder"),
    ] {
        let text = product.run(["list", what]).expect(0).stdout;
        assert_says(&text, member);
        let json = product.run(["list", what, "--json"]).expect(0).json();
        let rows = json[what].as_array().unwrap();
        assert!(rows.iter().any(|row| row["id"] == member), "{json:#}");
        let all = product.run(["list"]).expect(0).stdout;
        assert_says(&all, member);
    }
    let json = product.run(["list", "--json"]).expect(0).json();
    assert_eq!(json.as_object().unwrap().len(), 4);
    // Not a terminal: a hundred columns, no colours.
    let causes = product.run(["list", "causes"]).expect(0).stdout;
    assert!(causes.lines().all(|line| line.chars().count() <= 100));
    assert!(!causes.contains('\u{1b}'));
    // Listing creates nothing.
    assert!(!product.home().exists());
    product.run(["list", "wrokloads"]).expect(2);
}

#[test]
fn doctor_covers_every_environment_and_noise() {
    let product = Product::new();
    let json = product.run(["doctor", "--json"]).expect(0).json();
    let environments = json["environments"].as_array().unwrap();
    let mut ids: Vec<&str> = environments
        .iter()
        .map(|environment| environment["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut known: Vec<&str> = tare::env::DRIVERS
        .iter()
        .map(|driver| driver.id())
        .collect();
    known.sort_unstable();
    assert_eq!(ids, known);
    for environment in environments {
        // Ready with facts, or absent with a reason.
        let key = if environment["ready"] == true {
            "facts"
        } else {
            "why"
        };
        assert!(!environment[key].is_null(), "{environment:#}");
    }
    assert!(json["noise"]["spread"].as_f64().unwrap() >= 0.0);
    assert!(json["noise"]["best_ns"].as_f64().unwrap() > 0.0);
    let text = product.run(["doctor"]).expect(0).stdout;
    for id in ids {
        assert_says(&text, &format!("  {id}: "));
    }
    assert_says(&text, "noise:");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest.unwrap() < 500, "{text}");
    product.assert_nothing_left();
}

#[test]
fn runs_list_and_show_by_name_prefix_and_latest() {
    let product = Product::new();
    let none = product.run(["runs"]).expect(0);
    assert_eq!(none.stdout, "");
    none.complains("no run yet");
    assert_eq!(
        product.run(["runs", "--json"]).expect(0).json(),
        Value::Array(vec![])
    );
    product.run(["show"]).expect(2).complains("tare run");

    let arguments = words("run --env host --workload getppid --blocks 1");
    product.run(arguments).expect(0);
    product.run(arguments).expect(0);
    let json = product.run(["runs", "--json"]).expect(0).json();
    let rows = json.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row["trials"] == 2 && row["stopped_by"] == "blocks")
    );
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["run"].as_str().unwrap())
        .collect();
    let text = product.run(["runs"]).expect(0).stdout;
    assert!(names.iter().all(|name| text.contains(name)), "{text}");

    // The newest is listed first; names order runs only to the second.
    let (newest, oldest) = (names[0], names[1]);
    let starts = product.stored("SELECT id FROM run ORDER BY started_unix_ns DESC");
    assert_eq!(starts, names);
    for (asked, found) in [
        (oldest, oldest),
        ("latest", newest),
        (&newest[..newest.len() - 1], newest),
    ] {
        // A prefix may fit both if they were created in the same second.
        let n_fits = names.iter().filter(|name| name.starts_with(asked)).count();
        if asked != "latest" && n_fits > 1 {
            continue;
        }
        let shown = product.run(["show", asked, "--json"]).expect(0).json();
        assert_eq!(shown["run"], found, "{asked}");
        assert_valid_dossier(&shown);
    }
    product
        .run(["show", "2"])
        .expect(2)
        .complains("fits 2 runs");
}

#[test]
fn unknown_run_cannot_be_shown_or_resumed() {
    let product = Product::new();
    for arguments in [["show", "nonsense"], ["resume", "nonsense"]] {
        product
            .run(arguments)
            .expect(2)
            .complains("no run `nonsense`");
    }
    product
        .run(["resume"])
        .expect(2)
        .complains("no interrupted run")
        .advises("tare runs");
}

#[test]
fn completions_name_the_commands_for_every_shell() {
    let product = Product::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = product.run(["completions", shell]).expect(0).stdout;
        for command in ["run", "doctor", "clean"] {
            assert!(script.contains(command), "{shell}");
        }
    }
    product
        .run(["completions", "tcsh"])
        .expect(2)
        .complains("possible values");
    // The completions that bash would offer.
    let script = product.run(["completions", "bash"]).expect(0).stdout;
    let path = product.file("completions.bash", script);
    let checked = Command::new("bash").args(["-n", &path]).status();
    assert!(checked.unwrap().success());
}

#[test]
fn help_and_version_on_stdout_for_every_command() {
    let product = Product::new();
    let version = product.run(["--version"]).expect(0);
    assert_eq!(
        version.stdout.trim(),
        concat!("tare ", env!("CARGO_PKG_VERSION"))
    );
    let help = product.run(["--help"]).expect(0).stdout;
    assert_says(&help, "Usage: tare");
    let commands = [
        "run",
        "list",
        "doctor",
        "runs",
        "show",
        "clean",
        "completions",
    ];
    for command in commands {
        assert_says(&help, command);
        for option in ["--help", "-h"] {
            let help = product.run([command, option]).expect(0);
            help.shows(&format!("Usage: tare {command}"));
            let longest = help.stdout.lines().map(|line| line.chars().count()).max();
            assert!(longest.unwrap() <= 120, "{help}");
        }
    }
    let nothing = product.run([""; 0]).expect(2);
    nothing.complains("Usage: tare");
    assert_eq!(nothing.stdout, "");
    product.run(["rnu"]).expect(2).complains("run");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let product = Product::new();
    let shown = |arguments: &[&str]| {
        let mut command = product.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for arguments in ["list", "list --json", "completions bash"] {
        assert_eq!(shown(words(arguments)), "");
    }
    // The run itself is still measured and stored.
    shown(words("run --env host --workload getppid --blocks 1"));
    assert_eq!(product.n_trials(), 2);
    product.assert_nothing_left();
}

#[test]
fn output_fits_terminal_even_if_only_stderr_is_tty() {
    let product = Product::new();
    for (columns, redirected) in [("72", ""), ("90", ""), ("72", " > out")] {
        let file = product.file("out", "");
        let program = env!("CARGO_BIN_EXE_tare");
        let line = format!("stty cols {columns} rows 24; '{program}' list causes{redirected}");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        product.set_variables(&mut command);
        command.env_remove("COLUMNS");
        let Ok(output) = command.output() else {
            skip(
                "tools",
                "`script` is missing, which gives programs a terminal",
            );
            return;
        };
        let mut ended = lossy(&output.stdout);
        if !redirected.is_empty() {
            ended = contents(file);
        }
        let columns: usize = columns.parse().unwrap();
        // Bold face has no width.
        let plain = ended.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        let widths = plain.lines().map(|line| line.trim_end().chars().count());
        let longest = widths.max().unwrap_or(0);
        assert!(
            longest <= columns && longest > columns - 20,
            "{longest} of {columns}: {ended}"
        );
    }
}
