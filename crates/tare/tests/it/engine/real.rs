//! Tests the engine with the real agent as ordinary processes on this machine.

use tare::cx::Observer;
use tare_model::probe_report::PROBE_FORMAT;

use super::*;
use crate::traces::is_computing;
use crate::unread::{Unread, find, unread};

/// One of the agent's probes, or the lifecycle of an agent.
fn direct(id: &str) -> Option<&'static dyn Workload> {
    static KNOWN: [Unread; 3] = unread(["null", "integer", "life"], |id, params| {
        Ok(match id {
            "life" => Recipe::Lifecycle { held: 0 },
            name => Recipe::Probe(ProbeCall {
                name: name.into(),
                args: params.clone(),
            }),
        })
    });
    find(&KNOWN, id)
}

/// `host` and A′ as processes, `null` without its canary, 20 ms a trial.
fn study_of_processes() -> Study {
    let mut study = study();
    study.arms.truncate(2);
    for arm in &mut study.arms {
        arm.driver = "host".into();
    }
    study.workloads = vec![spec("null", None)];
    study.workloads[0].params = params("canary = false");
    study.trial_ns = 20_000_000;
    study.limit_ns = 10_000_000_000;
    study
}

fn carry_out(world: &World, observer: &dyn Observer, study: &Study) -> (RunSummary, StoredRun) {
    let mut cx = world.cx();
    cx.observer = observer;
    let (summary, stored) = crate::world::carry_out(&cx, study, &direct);
    (summary.unwrap(), stored)
}

fn assert_nothing_left(world: &World) {
    assert_eq!(labelled(world.run.as_str()), BTreeMap::new());
    let files: Vec<_> = fs::read_dir(world.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files, Vec::<PathBuf>::new());
}

#[test]
fn real_agents_run_every_trial_without_leftovers() {
    let world = World::new("engine");
    let mut study = study_of_processes();
    study.workloads.push(spec("life", None));
    let (summary, stored) = carry_out(&world, &world.observer, &study);
    assert_eq!(summary.stopped_by, StoppedBy::Blocks);
    assert_eq!(
        (summary.n_trials, summary.n_without_value),
        (12, 0),
        "{stored:#?}"
    );
    assert_eq!(summary.left_behind, [""; 0]);
    for record in &stored.records {
        let Outcome::Completed(raw) = &record.outcome else {
            panic!("{record:?}")
        };
        if record.trial.workload_index == 0 {
            assert_eq!(raw.format, PROBE_FORMAT);
            let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
            assert_eq!(report.probe, "null");
            assert!(report.elapsed_ns as f64 <= record.host_elapsed_ns as f64);
            #[cfg(target_os = "linux")]
            assert!(record.charged.contains_key("charged_cpu_ns"), "{record:?}");
        } else {
            let report: LifecycleReport = serde_json::from_slice(&raw.stdout.0).unwrap();
            assert!(0 < report.ready_ns && report.ready_ns < report.removed_ns);
            #[cfg(target_os = "linux")]
            assert!(
                report.memory_bytes.is_some_and(|bytes| bytes > 4096),
                "{report:?}"
            );
            assert!(
                report.disk_bytes.is_some_and(|bytes| bytes > 100_000),
                "{report:?}"
            );
        }
    }
    let agent = world.cx().agent.clone();
    assert_eq!(stored.launches.len(), 4);
    for launch in &stored.launches {
        assert_eq!(launch.facts["agent.sha256"], agent.sha256);
        assert!(launch.facts.len() > 5, "{:?}", launch.facts);
    }
    assert_nothing_left(&world);
}

/// Runs an action after this many trials.
struct Then<F>(u32, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Observer for Then<F> {
    fn event(&self, event: &Event) {
        if let Event::TrialDone { done, .. } = event
            && *done == self.0
            && let Some(action) = self.1.lock().unwrap().take()
        {
            action();
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn real_agent_killed_in_trial_is_restarted() {
    let world = World::new("engine-kill");
    let mut study = study_of_processes();
    study.workloads = vec![spec("integer", None)];
    study.trial_ns = 400_000_000;
    let run = world.run.to_string();
    // In the middle of the second trial. The agents are the processes that `serve`.
    let kill = Then(
        1,
        Mutex::new(Some(move || {
            std::thread::spawn(move || {
                wait_until("the second trial is on its way", || is_computing(&run));
                for (pid, command) in labelled(&run) {
                    if command.contains("serve") {
                        assert!(signal("KILL", pid));
                    }
                }
            });
        })),
    );
    let (summary, stored) = carry_out(&world, &kill, &study);
    assert_eq!(summary.stopped_by, StoppedBy::Blocks);
    assert_eq!(summary.n_trials, 6);
    // Both agents were killed, one in its trial and the other before its next, and both were restarted.
    let lost = |record: &&TrialRecord| matches!(record.outcome, Outcome::Failed(Failure::Lost(_)));
    let n_lost = stored.records.iter().filter(lost).count();
    assert!((1..=2).contains(&n_lost), "{:#?}", stored.records);
    assert!(is_completed(&stored.records[0]) && is_completed(stored.records.last().unwrap()));
    assert_eq!(stored.remarks.len(), n_lost, "{:?}", stored.remarks);
    assert_nothing_left(&world);
}

#[test]
fn ctrl_c_in_long_real_trial_stops_soon_and_cleans_up() {
    let world = World::new("engine-cancel");
    let mut study = study_of_processes();
    study.workloads = vec![spec("integer", None)];
    study.trial_ns = 60_000_000_000;
    study.limit_ns = 120_000_000_000;
    let (cancel, run) = (world.cancel.clone(), world.run.to_string());
    let pressed = std::thread::spawn(move || {
        wait_until("the first trial is on its way", || is_computing(&run));
        cancel.request();
    });
    let (summary, stored) = carry_out(&world, &world.observer, &study);
    pressed.join().unwrap();
    assert_eq!(summary.stopped_by, StoppedBy::Interrupted);
    // If the run had waited for the trial, it would be stored.
    assert_eq!(stored.records, []);
    assert_nothing_left(&world);
}
