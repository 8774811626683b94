//! Tests Ctrl-C and `kill -9` at any moment: finished trials are kept, nothing is left, and the run can be resumed.
//!
//! With every environment that is available here. Leftovers are searched for on the machine, not asked of the
//! program; namespaces are those of the run's own processes when they were killed.

use crate::prelude::*;

use crate::product::{Started, environments};

const N_BLOCKS: usize = 7;
const WORKLOADS: usize = 2;

/// Returns the command for a run in all environments here, and its number of arms.
fn everywhere() -> (Vec<String>, usize) {
    let environments = environments();
    let n_arms = environments.len() + 1;
    let blocks = N_BLOCKS.to_string();
    let names = environments.join(",");
    let arguments = [
        "run",
        "--env",
        &names,
        "--workload",
        "getppid,tcp-round-trip",
        "--blocks",
        &blocks,
    ];
    (arguments.map(str::to_owned).to_vec(), n_arms)
}

/// What must not change from one session to the next: the plan, and every stored trial.
#[derive(Debug, PartialEq)]
struct Stored {
    plan: Vec<String>,
    trials: Vec<String>,
}

fn stored(product: &Product) -> Stored {
    Stored {
        plan: product.stored("SELECT plan_sha256 || ' ' || id FROM run"),
        trials: product.stored(
            "SELECT sequence || ' ' || cell || ' ' || started_unix_ns || ' ' || hex(coalesce(stdout, '')) FROM trial ORDER BY sequence",
        ),
    }
}

/// Resumes the run and checks that it is the same one and complete.
fn resume_and_check(product: &Product, before: &Stored, n_arms: usize) -> Value {
    let dossier = product.dossier(["resume"]);
    crate::product::assert_valid_dossier(&dossier);
    assert_eq!(dossier["complete"], true);
    let after = stored(product);
    assert_eq!(after.plan, before.plan);
    assert_eq!(after.trials[..before.trials.len()], before.trials);
    // Every place of the plan once: the store refuses a place twice, and none is missing.
    assert_eq!(after.trials.len(), N_BLOCKS * WORKLOADS * n_arms);
    let plan = dossier["study"]["plan_sha256"].as_str().unwrap();
    assert!(after.plan[0].starts_with(plan), "{plan}");
    product.assert_nothing_left();
    product
        .run(["resume"])
        .expect(2)
        .complains("no interrupted run");
    dossier
}

/// Returns namespaces of the run's processes that are not this test's.
fn namespaces(run: &str) -> BTreeSet<String> {
    let own: BTreeSet<String> = links("self");
    labelled(run)
        .into_keys()
        .flat_map(|pid| links(&pid.to_string()))
        .filter(|link| !own.contains(link))
        .collect()
}

/// Returns the namespaces of a process, as the kernel names them.
fn links(process: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{process}/ns"));
    let paths = entries.into_iter().flatten().flatten();
    paths
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|link| link.display().to_string())
        .collect()
}

/// Returns which of these namespaces still exist: held by a mount, or by a process that already ran at `at`. The
/// kernel reuses the number of a namespace that is gone, so younger processes prove nothing.
fn still_there(wanted: &BTreeSet<String>, at: f64) -> Vec<String> {
    let mut seen: BTreeSet<String> = contents("/proc/self/mountinfo")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if let Some(name) = entry.file_name().to_str()
            && name.bytes().all(|byte| byte.is_ascii_digit())
            && started_s(name).is_some_and(|started| started <= at)
        {
            seen.extend(links(name));
        }
    }
    wanted.intersection(&seen).cloned().collect()
}

/// Returns the machine's uptime, seconds.
fn uptime_s() -> f64 {
    let text = contents("/proc/uptime");
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the uptime at a process's start, seconds, truncated to hundredths (proc_pid_stat(5)).
fn started_s(process: &str) -> Option<f64> {
    /// Fields between the name and the start time.
    const BEFORE: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: f64 = fields.split_whitespace().nth(BEFORE)?.parse().ok()?;
    Some(ticks / 100.0)
}

/// Waits for this many trials and then a moment, so that the signal arrives anywhere.
fn wait_until(product: &Product, started: &mut Started, n_trials: usize, then: Duration) {
    if n_trials > 0 {
        product.wait_for_trials(started, n_trials);
    }
    std::thread::sleep(then);
}

fn interrupt(n_trials: usize, to_group: bool) {
    let product = Product::new();
    let (arguments, n_arms) = everywhere();
    let mut started = Product::start(product.command(&arguments));
    product.wait_for_trials(&mut started, n_trials);
    started.signal("INT", to_group);
    let ended = started.wait().expect(4);
    product.assert_nothing_left();
    let before = stored(&product);
    assert!(before.trials.len() >= n_trials, "{ended}");
    assert!(
        before.trials.len() < N_BLOCKS * WORKLOADS * n_arms,
        "it was too late: {ended}"
    );
    ended.complains("interrupted");
    ended.complains("tare resume");
    ended.shows("INCOMPLETE");
    // The stop was orderly: no trial was lost to the signal.
    assert_eq!(
        product.stored("SELECT kind FROM trial WHERE kind <> 'completed'"),
        [""; 0]
    );
    let json = product.run(["show", "--json"]).expect(0).json();
    crate::product::assert_valid_dossier(&json);
    assert_eq!(json["stopped_by"], "interrupted");
    resume_and_check(&product, &before, n_arms);
}

#[test]
fn interrupted_run_cleans_up_and_can_be_completed() {
    interrupt(20, false);
}

#[test]
fn ctrl_c_to_whole_process_group_stops_orderly() {
    interrupt(7, true);
}

/// Whether this process, and so its children, ignores Ctrl-C.
fn is_interrupt_ignored() -> bool {
    let status = contents("/proc/self/status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap() & (1 << 1) != 0
}

#[test]
fn ctrl_c_during_environment_start_cleans_up() {
    let (arguments, _) = everywhere();
    for (after_ms, to_group) in [(60, true), (250, false), (700, true)] {
        let product = Product::new();
        let started = Product::start(product.command(&arguments));
        std::thread::sleep(Duration::from_millis(after_ms));
        started.signal("INT", to_group);
        let ended = started.wait();
        // Before the program has installed its handler, the signal kills it like any other program. It is ignored if
        // these tests were started that way, as a shell starts background jobs.
        let is_too_early = (ended.code.is_none() && ended.stderr.is_empty())
            || (ended.code == Some(0) && is_interrupt_ignored());
        assert!(
            ended.code == Some(4) || is_too_early,
            "after {after_ms} ms: {ended}"
        );
        if ended.code.is_none() {
            product.run(["clean"]).expect(0);
        }
        product.assert_nothing_left();
    }
}

#[test]
fn a_termination_signal_is_heard_as_ctrl_c_is() {
    let product = Product::new();
    let arguments = words("run --env host --workload integer --blocks 500");
    for signal in ["TERM", "HUP"] {
        let mut started = Product::start(product.command(arguments));
        let n_before = product.n_trials();
        product.wait_for_trials(&mut started, n_before + 2);
        started.signal(signal, false);
        started.wait().expect(4);
        product.assert_nothing_left();
    }
}

#[test]
fn ignored_hang_up_stays_ignored() {
    let product = Product::new();
    let inner = product.command(words("run --env host --workload integer --blocks 500"));
    // Like `nohup`.
    let ignoring = ["-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut started = Product::start(product.under("sh", &ignoring, &inner));
    product.wait_for_trials(&mut started, 1);
    started.signal("HUP", false);
    product.wait_for_trials(&mut started, product.n_trials() + 3);
    started.signal("TERM", false);
    started.wait().expect(4);
    product.assert_nothing_left();
}

/// Kills the program `then` after `n_trials` trials, cleans up and resumes; returns the number of trials found.
fn kill(n_trials: usize, then: Duration) -> usize {
    let product = Product::new();
    let (arguments, n_arms) = everywhere();
    let mut started = Product::start(product.command(&arguments));
    wait_until(&product, &mut started, n_trials, then);
    let runs = product.runs();
    let mut held = BTreeSet::new();
    for run in &runs {
        held.extend(namespaces(run));
    }
    started.signal("KILL", false);
    assert_eq!(started.wait().code, None);
    let killed_s = uptime_s();
    let before = stored(&product);
    assert!(before.trials.len() >= n_trials);

    // There is something to find: at least a folder, and an engine's objects.
    let left = product.look(&runs);
    assert!(
        left.iter().any(|line| line.starts_with("folder")) || runs.is_empty(),
        "{left:?}"
    );
    if n_trials > 0 && has_docker() {
        // Between two launches there is a moment without a container; the image is always there.
        let is_left = |kind: &str| left.iter().any(|line| line.starts_with(kind));
        assert!(is_left("docker image"), "{left:?}");
    }

    let cleaned = product.run(["clean"]).expect(0);
    product.assert_nothing_left();
    assert_eq!(still_there(&held, killed_s), [""; 0], "{cleaned}");
    assert_eq!(
        stored(&product),
        before,
        "cleaning does not touch the store"
    );
    let again = product.run(["clean"]).expect(0);
    assert_eq!(again.stdout, "", "the second time there is nothing");
    // Only the store, its log and its lock, the empty folder of runs, and which of them were begun here.
    let names: BTreeSet<String> = fs::read_dir(product.home())
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("store.sqlite") && name != "begun")
        .collect();
    // If killed before it created anything, it left not even a home.
    if !(names.is_empty() && runs.is_empty()) {
        assert_eq!(names, BTreeSet::from(["runs".to_owned()]));
    }

    if before.plan.is_empty() {
        // It was killed before it began: there is nothing to resume.
        product.run(["resume"]).expect(2);
    } else {
        let shown = product.run(["show", "--json"]).expect(0).json();
        crate::product::assert_valid_dossier(&shown);
        resume_and_check(&product, &before, n_arms);
    }
    before.trials.len()
}

/// Returns milliseconds that differ from one call of the tests to the next, and prints them.
fn moment(below_ms: u64) -> Duration {
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let moment = Duration::from_millis(u64::from(clock.subsec_micros()) % below_ms);
    println!("the signal comes {moment:?} later");
    moment
}

#[test]
fn a_run_that_is_killed_while_it_starts_is_cleaned_up() {
    kill(0, moment(1500));
}

#[test]
fn run_killed_in_measuring_keeps_trials_and_resumes() {
    let found = kill(1 + moment(60).as_millis() as usize % 30, moment(80));
    assert!(found > 0);
}

#[test]
fn run_killed_at_environment_restart_is_cleaned_up() {
    // A launch is a block: the restart comes right after it.
    let (_, n_arms) = everywhere();
    kill(5 * WORKLOADS * n_arms, moment(900));
}
