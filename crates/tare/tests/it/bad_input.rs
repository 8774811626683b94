//! Tests wrong commands, studies and files: the exit status, the place and the hint.

use crate::prelude::*;

const STUDY: &str = r#"id = "mine"

[design]
trial = "20ms"
blocks_min = 1
blocks_max = 2

[[arm]]
id = "host"

[[workload]]
id = "getppid"
"#;

#[test]
fn unknown_word_suggests_nearest() {
    let product = Product::new();
    for (arguments, wrong, right) in tare_model::rows! {
        (vec!["run", "qiuck"], "study `qiuck`", "`quick`"),
        (vec!["run", "--env", "dokcer"], "environment `dokcer`", "`docker`"),
        (vec!["run", "--workload", "getpid"], "workload `getpid`", "`getppid`"),
        (vec!["run", "zzz"], "study `zzz`", "quick"),
    } {
        let ended = product.run(arguments).expect(2);
        ended.complains(wrong);
        ended.advises(right);
        assert_eq!(ended.stdout, "");
    }
    assert!(
        !product.home().exists(),
        "nothing was measured, nothing is made"
    );
}

#[test]
fn study_error_shows_line_and_caret() {
    let product = Product::new();
    for (from, to, line, problem, hint) in tare_model::rows! {
        ("blocks_max", "blocks_mix", 6, "blocks_mix", "blocks_m"),
        ("trial = \"20ms\"", "trial = \"20\"", 4, "no unit", ""),
        ("id = \"host\"", "id = \"hots\"", 9, "environment `hots`", "`host`"),
        ("id = \"host\"", "id = \"host\"\nsettings.cpu = 0", 10, "no setting `cpu`", "`cpuset`"),
        ("blocks_min = 1", "blocks_min = \"1\"", 5, "string", ""),
    } {
        assert!(STUDY.contains(from));
        let file = product.file("study.toml", STUDY.replacen(from, to, 1));
        let ended = product.run(["run", &file]).expect(2);
        assert!(
            ended.stderr.contains(&format!("study.toml:{line}:")),
            "{to}: {ended}"
        );
        assert!(ended.stderr.contains('^'), "{to}: {ended}");
        assert!(ended.stderr.contains(problem), "{to}: {ended}");
        if !hint.is_empty() {
            assert!(ended.hint().contains(hint), "{to}: {ended}");
        }
        let errors = ended.stderr.matches("error:").count();
        assert_eq!(errors, 1, "{ended}");
    }
}

#[test]
fn invalid_study_file_is_refused_by_name() {
    let product = Product::new();
    fs::create_dir(product.folder().join("folder.toml")).unwrap();
    product.file("garbage.toml", b"\x7fELF\x02\x01\xff\xfe\x00\x00\x1b[31m");
    product.file("text.toml", "id \u{1b}[31m= \u{7}");
    product.file("empty.toml", "");
    product.file("huge.toml", "x = 1\n".repeat(200_000));
    for name in [
        "missing.toml",
        "folder.toml",
        "garbage.toml",
        "text.toml",
        "empty.toml",
        "huge.toml",
    ] {
        let ended = product.run(["run", name]).expect(2);
        ended.complains(name);
        assert!(!ended.stderr.contains('\u{1b}'), "{ended}");
        assert!(ended.stderr.len() < 2000, "{ended}");
    }
    assert!(!product.home().exists());
}

#[test]
fn meaningless_number_error_names_option() {
    let product = Product::new();
    for (option, value, problem) in [
        ("--blocks", "0", "1..=100000"),
        ("--blocks", "-1", "-1"),
        ("--budget", "5", "write `5s`"),
        ("--budget", "0s", "0s"),
        ("--budget", "soon", "soon"),
        ("--precision", "2", "2%"),
        ("--precision", "0%", "above 0%"),
        ("--seed", "x", "x"),
    ] {
        product
            .run(["run", &format!("{option}={value}")])
            .expect(2)
            .complains(option)
            .complains(problem);
    }
    // A resumed run already has its study.
    product
        .tare("resume --blocks 3", &[])
        .expect(2)
        .complains("unexpected argument '--blocks'");
    assert!(!product.home().exists());
}

#[test]
fn budget_below_one_block_still_gives_one_block() {
    let product = Product::new();
    let ended = product
        .tare(
            "run --env host --workload getppid,stat --budget 1ms --json -",
            &[],
        )
        .expect(0);
    // A sufficient budget is suggested before anything is measured.
    let expected = "warning: 1.00 ms hold about 0 of the ";
    ended.complains(expected);
    ended.complains("`--budget ");
    let dossier = ended.json();
    assert_eq!(dossier["stopped_by"], "budget");
    assert_eq!(dossier["cost"]["trials"], 4);
    let table = product.run(["show"]).expect(0).stdout;
    assert_says(&table, "budget");
    product.assert_nothing_left();
}

#[test]
fn invalid_agent_is_refused_before_setup() {
    let product = Product::new();
    let missing = PathBuf::from("missing-agent");
    for agent in [missing.as_path(), "/bin/ls".as_ref(), "/".as_ref()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        command.args(["run", "--blocks", "1", "--agent"]).arg(agent);
        product.set_variables(&mut command);
        product
            .finish(command)
            .expect(2)
            .complains(&agent.to_string_lossy())
            .advises("--agent");
        product.assert_nothing_left();
    }
}

/// Runs a command with a host variable that points to no Docker engine; it must end with this status.
pub(crate) fn without_docker(product: &Product, arguments: &[&str], status: i32) -> Ended {
    let mut command = product.command(arguments);
    let socket = format!("unix://{}/no.sock", product.folder().display());
    command.env("DOCKER_HOST", socket);
    product.finish(command).expect(status)
}

#[test]
fn missing_requested_engine_is_error_with_hint() {
    let product = Product::new();
    let arguments = words("run --env docker --workload getppid --blocks 1");
    let ended = without_docker(&product, arguments, 3);
    ended.complains("`docker` could not be started");
    assert!(!ended.hint().is_empty());
    assert_eq!(ended.stdout, "");
    product.assert_nothing_left();
}

#[test]
fn missing_optional_engine_is_reported_run_continues() {
    let product = Product::new();
    let arguments = words("run --workload getppid --blocks 1 --json -");
    let ended = without_docker(&product, arguments, 0);
    ended.complains("docker: not available here");
    let dossier = ended.json();
    crate::product::assert_valid_dossier(&dossier);
    let docker = &dossier["arms"].as_array().unwrap()[3];
    assert_eq!(
        (&docker["id"], &docker["available"]),
        (&"docker".into(), &false.into())
    );
    assert!(
        docker["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty())
    );
    let failure = &dossier["failures"][0];
    assert_eq!(failure["arm"], "docker");
    assert!(failure["hint"].is_string(), "{failure:#}");
    // The same in words.
    let table = product.run(["show"]).expect(0).stdout;
    assert_says(&table, "docker is not available");
    assert_says(&table, "hint:");
    product.assert_nothing_left();
}

#[test]
fn user_without_docker_gets_advice_and_other_arms() {
    if !needs_root() {
        return;
    }
    if !needs_docker() {
        return;
    }
    let product = Product::new();
    // The program and the agent are copied to where every user may execute them.
    for folder in [product.folder(), product.home().parent().unwrap()] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(folder, open).unwrap();
    }
    let (program, agent) = (
        product.folder().join("tare"),
        product.folder().join("agent"),
    );
    fs::copy(env!("CARGO_BIN_EXE_tare"), &program).unwrap();
    fs::copy(crate::product::agent(), &agent).unwrap();
    let as_nobody = |arguments: &[&str]| {
        let mut command = as_nobody(&program);
        command.args(arguments).arg("--agent").arg(&agent);
        product.set_variables(&mut command);
        product.finish(command)
    };
    let small = ["run", "--workload", "getppid", "--blocks", "1"];
    as_nobody(&[&small[..], &["--env", "docker"]].concat())
        .expect(3)
        .complains("permission denied")
        .advises("usermod -aG docker");
    let dossier = as_nobody(&[&small[..], &["--json", "-"]].concat())
        .expect(0)
        .json();
    let docker = &dossier["arms"][3];
    assert_eq!(docker["available"], false);
    let reason = docker["reason"].as_str().unwrap();
    assert_says(reason, "permission denied");
    assert_eq!(dossier["arms"][0]["available"], true);
    product.assert_nothing_left();
}

#[test]
fn unwritable_dossier_path_fails_before_measuring() {
    let product = Product::new();
    fs::create_dir(product.folder().join("folder")).unwrap();
    product.file("old.json", "precious");
    for place in ["/nowhere/at/all.json", "folder", "/proc/x.json"] {
        let ended = product.run(["run", "--json", place]).expect(2);
        ended.complains(place);
        assert!(!ended.hint().is_empty());
    }
    // An existing file is replaced by a whole dossier or not at all.
    product.tare("run nonsense --json old.json", &[]).expect(2);
    let old = fs::read_to_string(product.folder().join("old.json"));
    assert_eq!(old.unwrap(), "precious");
    assert!(!product.home().exists(), "nothing was measured");
}

#[test]
fn non_store_file_is_refused_unchanged() {
    let product = Product::new();
    fs::create_dir(product.folder().join("folder")).unwrap();
    product.file("letter", "dear reader, this is not a database at all");
    let other = product.folder().join("other.sqlite");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE mine (a INTEGER)")
        .unwrap();
    for name in ["folder", "letter", "other.sqlite", "letter/below"] {
        let before = fs::read(product.folder().join(name)).ok();
        for command in ["runs", "show", "run"] {
            product
                .run([command, "--store", name])
                .expect(5)
                .complains(name)
                .advises("--store");
        }
        let after = fs::read(product.folder().join(name)).ok();
        assert_eq!(before, after, "{name}");
    }
    product.assert_nothing_left();
}

#[test]
fn cli_refuses_newer_store_with_hint_unchanged() {
    let product = Product::new();
    drop(tare::store::Store::open(&product.store()).unwrap());
    let set = |version: u32| {
        rusqlite::Connection::open(product.store())
            .unwrap()
            .pragma_update(None, "user_version", version)
            .unwrap();
    };
    let own = product.stored("PRAGMA user_version")[0].parse().unwrap();
    set(999);
    for command in ["runs", "show", "run"] {
        product
            .run([command])
            .expect(5)
            .complains("format 999")
            .advises("newer Tare");
    }
    assert_eq!(product.stored("SELECT count(*) FROM run"), ["0"]);
    set(own);
    product.run(["runs"]).expect(0);
}

#[test]
fn second_run_on_store_is_refused_first_unharmed() {
    let product = Product::new();
    let arguments = words("run --env host --workload getppid --blocks 40");
    let mut first = Product::start(product.command(arguments));
    product.wait_for_trials(&mut first, 2);
    product
        .run(arguments)
        .expect(5)
        .complains("another run is using the store")
        .complains(&first.child.id().to_string())
        .advises("--store");
    // Meanwhile reading is allowed, and cleaning removes nothing of a live run.
    product.run(["runs"]).expect(0);
    product.run(["show"]).expect(0);
    let cleaned = product.run(["clean"]).expect(0);
    assert_eq!(cleaned.stdout, "");
    // Another store is not locked.
    let elsewhere = words("run --env host --workload getppid --blocks 1 --store b.sqlite");
    product.run(elsewhere).expect(0);
    first.wait().expect(0);
    assert_eq!(product.n_trials(), 80);
    assert_eq!(product.stored("SELECT count(*) FROM run"), ["1"]);
    product.assert_nothing_left();
}
