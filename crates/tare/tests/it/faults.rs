//! Tests exhausted machine resources, programs that reach their limits, and cleanup in the middle of that.

use crate::prelude::*;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::broken_disk::with_mounts;
use crate::product::agent;

/// A study with only the built-in container with these settings, in which a shell runs this script once.
fn in_a_container(settings: &str, script: &str) -> String {
    format!(
        "id = \"faults\"\n[design]\nblocks_min = 1\nblocks_max = 1\nlimit = \"100s\"\n\
         [[arm]]\nid = \"box\"\ndriver = \"container\"\n[arm.settings]\n{settings}\n\
         [[workload]]\nid = \"command\"\n[workload.params]\nargv = [\"/bin/sh\", \"-c\", '''{script}''']\n"
    )
}

#[test]
fn run_with_low_file_limit_explains_and_cleans_up() {
    let product = Product::new();
    for n_files in [10, 14, 18, 22, 28, 36, 48] {
        let inner = product.command(words("run --env host --workload getppid --blocks 1"));
        let limit = format!("--nofile={n_files}");
        let ended = product.finish(product.under("prlimit", &[&limit, "--"], &inner));
        assert!(!ended.stderr.contains("panicked"), "{n_files}: {ended}");
        let code = ended.code.unwrap_or(-1);
        // With this few files the program itself cannot be loaded, and the loader reports it.
        let is_told = code == 0 || code == 127 || ended.stderr.contains("error: ");
        assert!(is_told && (0..128).contains(&code), "{n_files}: {ended}");
        product.run(["clean"]).expect(0);
        product.assert_nothing_left();
    }
}

/// A user without any process.
const NOBODYS: &str = "54377";

#[test]
fn run_with_low_process_limit_explains_and_cleans_up() {
    if !needs_root() {
        return;
    }
    let product = Product::new();
    let open = fs::Permissions::from_mode(0o1777);
    for folder in [product.folder(), product.home().parent().unwrap()] {
        fs::set_permissions(folder, open.clone()).unwrap();
    }
    let at = |name: &str| product.folder().join(name);
    fs::copy(env!("CARGO_BIN_EXE_tare"), at("tare")).unwrap();
    fs::copy(agent(), at("agent")).unwrap();
    for n_processes in [1, 2, 3, 4, 5, 7, 10] {
        let mut command = Command::new("prlimit");
        command.args([format!("--nproc={n_processes}"), "--".to_owned()]);
        let user = [format!("--reuid={NOBODYS}"), format!("--regid={NOBODYS}")];
        command
            .arg("setpriv")
            .args(user)
            .args(["--clear-groups", "--"]);
        command.arg(at("tare")).arg("--agent").arg(at("agent"));
        command.args(words("run --env host --workload getppid --blocks 1"));
        product.set_variables(&mut command);
        let ended = product.finish(command);
        assert!(!ended.stderr.contains("panicked"), "{n_processes}: {ended}");
        let is_told = ended.code == Some(0) || ended.stderr.contains("error: ");
        assert!(is_told, "{n_processes}: {ended}");
        product.assert_nothing_left();
    }
}

/// Returns every set-uid file below a folder.
fn set_uid_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => found.extend(set_uid_below(&path)),
            Ok(kind) if kind.is_file() && kind.mode() & 0o4000 != 0 => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn setuid_program_inside_is_unreachable_on_host() {
    if !needs_root() || !needs_container() {
        return;
    }
    let product = Product::new();
    let script =
        "cp /bin/true /var/tmp/becomes-root; chmod 4755 /var/tmp/becomes-root; exec sleep 600";
    let study = product.file("study.toml", in_a_container("", script));
    let mut started = Product::start(product.command(["run", &study]));
    let mut found = Vec::new();
    wait_until("it has been made", || {
        assert!(started.is_running());
        found = set_uid_below(&product.home());
        !found.is_empty()
    });
    for path in &found {
        let reached = as_nobody("test").arg("-e").arg(path).status();
        assert_eq!(reached.unwrap().code(), Some(1), "{}", path.display());
    }
    started.signal("INT", false);
    started.wait().expect(4);
    product.assert_nothing_left();
}

/// Runs a script in a container of 64 processes, kills its launcher when the container is full, and checks that
/// nothing is left.
fn fill_and_kill(settings: &str, script: &str, is_full: fn(&BTreeMap<u32, String>) -> bool) {
    if !needs_root() || !needs_container() {
        return;
    }
    let product = Product::new();
    let settings = format!("pids = 64\n{settings}");
    let study = product.file("study.toml", in_a_container(&settings, script));
    let mut started = Product::start(product.command(["run", &study]));
    let mut filled = None;
    wait_until("the limit is reached", || {
        assert!(started.is_running());
        let runs = product.runs().into_iter();
        let mut all = runs.map(|run| (labelled(&run), run));
        filled = all.find(|(processes, _)| is_full(processes));
        filled.is_some()
    });
    let (processes, run) = filled.unwrap();
    let is_inside = |command: &&String| command.contains("sleep 600") || command.contains("fork");
    let n_inside = processes.values().filter(is_inside).count();
    assert!(n_inside <= 64, "{n_inside}");
    let is_launcher = |command: &str| command.contains(" launch");
    let launchers = processes.into_iter().filter(|(_, it)| is_launcher(it));
    let launchers: Vec<String> = launchers.map(|(pid, _)| pid.to_string()).collect();
    assert!(!launchers.is_empty(), "{:?}", labelled(&run));
    let killed = Command::new("kill").arg("-9").args(&launchers).status();
    assert!(killed.unwrap().success());
    started.signal("INT", false);
    started.wait();
    wait_until("nothing of it is there", || labelled(&run).is_empty());
    product.run(["clean"]).expect(0);
    product.assert_nothing_left();
}

#[test]
fn command_at_process_limit_ends_with_its_launcher() {
    // More than the limit, but bearable for the machine if the limit fails.
    let script =
        "(i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done) 2>/dev/null; exec sleep 601";
    fill_and_kill("", script, |processes| {
        let asleep = processes.values().filter(|it| it.contains("sleep 600"));
        asleep.count() >= 30 && processes.values().any(|it| it.contains("sleep 601"))
    });
}

#[test]
fn bomb_that_forks_again_ends_with_its_launcher() {
    // Each of them forks for ever and retries a refused fork.
    let script = "exec perl -e \"fork while 1\"";
    fill_and_kill("cpus = 0.5", script, |processes| {
        processes.values().filter(|it| it.contains("fork")).count() >= 30
    });
}

#[test]
fn tare_stopped_in_a_trial_voids_that_trial() {
    let product = Product::new();
    let go = product.folder().join("go");
    // After the stop it continues for a while, like real work.
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; sleep 1",
        go.display()
    );
    let study = in_a_container("", &script).replace("\"container\"", "\"host\"");
    let study = study.replace("[arm.settings]", "");
    // Otherwise a preliminary run checks whether it can be sliced.
    product.file(
        "study.toml",
        study.replace("[design]", "[design]\nalternate = false"),
    );
    let mut started = Product::start(product.command(line("run study.toml --json -", &[])));
    wait_until("a trial is on its way", || {
        assert!(started.is_running());
        let runs = product.runs().into_iter();
        let mut all = runs.flat_map(|run| labelled(&run).into_values());
        all.any(|command| command.contains("sleep 0.05"))
    });
    started.signal("STOP", false);
    let stat = format!("/proc/{}/stat", started.child.id());
    wait_until("it is stopped", || {
        let text = contents(&stat);
        text.rsplit_once(") ").unwrap().1.starts_with('T')
    });
    started.signal("CONT", false);
    fs::write(&go, "").unwrap();
    let dossier = started.wait().json();
    let kinds = product.stored("SELECT kind FROM trial ORDER BY sequence");
    assert_eq!(kinds, ["failed", "completed"]);
    let reason = dossier["failures"][0]["reason"].as_str().unwrap();
    assert_says(reason, "stopped and continued");
    product.assert_nothing_left();
}

#[test]
fn two_homes_on_one_engine_leave_each_other_alone() {
    if !needs_docker() {
        return;
    }
    let [one, other] = [Product::new(), Product::new()];
    let run = words("run --env docker --workload getppid --blocks 3");
    let mut started = Product::start(one.command(run));
    one.wait_for_trials(&mut started, 1);
    // A second store on the same machine gives a warning, but no refusal.
    let ended = other
        .tare("run --env docker --workload getppid --blocks 1", &[])
        .expect(0);
    if started.is_running() {
        ended.complains("another Tare measures");
    }
    other.run(["clean"]).expect(0);
    started.wait().expect(0);
    assert_eq!(one.stored("SELECT DISTINCT kind FROM trial"), ["completed"]);
    for product in [one, other] {
        product.assert_nothing_left();
    }
}

#[test]
fn clean_and_resume_exclude_each_other() {
    let product = crate::keeping::with_killed_run();
    let mut n_gone_on = 0;
    for _ in 0..8 {
        let begin = product.n_trials();
        let mut started = Product::start(product.command(["resume"]));
        // At the same time, and again while it is running.
        for _ in 0..3 {
            let mut clean = product.command(["clean"]);
            let clean = clean.stdout(Stdio::null()).stderr(Stdio::piped()).output();
            let clean = clean.unwrap();
            let stderr_text = lossy(&clean.stderr);
            assert!(clean.status.success(), "{stderr_text}");
        }
        let mut is_running = true;
        wait_until("it goes on, or is refused", || {
            is_running = started.is_running();
            !is_running || product.n_trials() >= begin + 2
        });
        if is_running {
            started.signal("KILL", false);
        }
        let ended = started.wait();
        // While it is being cleaned it cannot be resumed.
        let is_refused = ended.stderr.contains("belongs to another process");
        assert!(is_running || is_refused, "{ended}");
        n_gone_on += usize::from(is_running);
    }
    assert!(n_gone_on > 0, "it was never gone on with");
    let kinds = product.stored("SELECT DISTINCT kind FROM trial");
    assert_eq!(kinds, ["completed"], "a trial was disturbed by a clean-up");
    product.run(["clean"]).expect(0);
    product.assert_nothing_left();
}

#[test]
fn command_out_of_memory_fails_and_its_agent_goes_on() {
    if !needs_container() || !needs_root() {
        return;
    }
    let product = Product::new();
    // It buffers an endless line.
    let study = in_a_container("memory = \"64m\"", "tail /dev/zero");
    let two_blocks = study
        .replace("_min = 1", "_min = 2")
        .replace("_max = 1", "_max = 2");
    product.file("study.toml", two_blocks);
    let dossier = product.dossier(["run", "study.toml"]);
    let reason = dossier["failures"][0]["reason"].as_str().unwrap();
    assert_says(reason, "status 137");
    // Its agent answered each time: two blocks of the environment and of its copy.
    let kinds = product.stored("SELECT kind FROM trial");
    assert_eq!(kinds, ["completed"; 4]);
    product.assert_nothing_left();
}

#[test]
fn full_state_folder_ends_the_run_with_a_reason() {
    let product = Product::new();
    let home = product.home();
    fs::create_dir_all(&home).unwrap();
    // From hardly room for a record to hardly room for the agent; the store is on another disk.
    for kilobytes in ["8", "64", "1024", "2048", "2500"] {
        let script = format!(
            "mount -t tmpfs -o size={kilobytes}k,mode=700 tmpfs {} || exit 99\n\"$@\"",
            home.display()
        );
        let store = product.folder().join("store.sqlite");
        let inner = product.command(words(
            "run --env host --workload getppid --blocks 1 --store store.sqlite",
        ));
        let ended = needed!(with_mounts(&product, &script, &[], &inner));
        assert!(!ended.stderr.contains("panicked"), "{kilobytes}: {ended}");
        let is_told =
            ended.code == Some(0) || ended.stderr.to_lowercase().contains("no space left");
        assert!(is_told, "{kilobytes}: {ended}");
        let _ = fs::remove_file(store);
        product.assert_nothing_left();
    }
}

#[test]
fn full_environment_layer_is_a_command_failure() {
    if !needs_container() || !needs_root() {
        return;
    }
    let product = Product::new();
    let home = product.home();
    fs::create_dir_all(&home).unwrap();
    product.file(
        "study.toml",
        in_a_container("", "exec dd if=/dev/zero of=/fill bs=1M count=500"),
    );
    // Writes inside go to the layer in the state folder.
    let script = format!(
        "mount -t tmpfs -o size=24m,mode=700 tmpfs {} || exit 99\n\"$@\"",
        home.display()
    );
    let inner = product.command(words("run study.toml --store store.sqlite --json -"));
    let ended = needed!(with_mounts(&product, &script, &[], &inner));
    ended.does_not_complain("panicked");
    let kinds = crate::product::stored(
        &product.folder().join("store.sqlite"),
        "SELECT kind FROM trial",
    );
    assert_eq!(kinds, ["completed"; 2], "{ended}");
    let reason = ended.json()["failures"][0]["reason"].to_string();
    assert_says(&reason, "No space left");
    product.assert_nothing_left();
}
