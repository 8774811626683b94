//! Decides whether a program can be stopped and resumed, interleaved with its copies in other arms, or has to run
//! uninterrupted.
//!
//! A program that computes loses nothing when it is stopped. One that sleeps, waits for devices or other processes,
//! or follows a clock cannot be stopped, because all of that continues meanwhile. Sleeping and waiting are detected
//! by observing one run, a clock by stopping a run for two thirds of its time: it must have run as long as the whole
//! one.
//! Limits: a program that behaves differently in one run of many is not detected.
//! Not a workload itself.

use std::collections::BTreeMap;

use tare_model::command::{InSlices, Tie};
use tare_model::counter;
use tare_model::{CommandReport, ProbeReport, RawOutput};

/// The shortest slice, nanoseconds: a hundred times the duration of a stop and resume.
const SHORTEST_NS: u64 = 5_000_000;
/// The longest slice, nanoseconds: noise must be slower.
const LONGEST_NS: u64 = 20_000_000;
/// The longest run that is a turn of its own, nanoseconds: noise must be slower.
const LONGEST_RUN_NS: u64 = 100_000_000;
/// The slice of a program that is not to be stopped, nanoseconds: longer than any of its runs.
const UNSTOPPED_NS: u64 = 60_000_000_000;
/// The target number of slices of a program.
const SLICES: u64 = 40;
/// Programs with fewer slices than this gain nothing.
const FEWEST: u64 = 4;
/// Programs that take longer are not run a second time just to test whether they can be stopped.
const TRIED_NS: u64 = 5_000_000_000;
/// How long a computing program may be off the processor without having been kept from it: a share, and nanoseconds
/// for starting and reaping.
const OFF: (f64, f64) = (0.02, 5e6);
/// The share from which on a program surely waits, whatever the observations of it say.
const OFF_SURELY: f64 = 0.15;
/// The maximum number of bytes to and from devices.
const DEVICE_BYTES: f64 = (1 << 20) as f64;
/// Bytes of a block as getrusage(2) counts.
const BLOCK_BYTES: f64 = 512.0;
/// The smallest share of the whole run's work that a program must do when it is stopped for two thirds of the time;
/// one that follows a clock does a third.
const SAME: f64 = 0.6;

/// Whether the program was seen while it ran, and not only while its libraries were being loaded.
pub fn was_seen(report: &CommandReport) -> bool {
    let Some(seen) = report.seen.as_ref() else {
        return false;
    };
    // musl's loader is the C library itself.
    let is_loader = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file);
        name.starts_with("ld") && name.contains(".so") && !name.starts_with("ld-musl")
    };
    let is_program = |file: &str| seen.executed.as_deref() == Some(file);
    let has = |wanted: &dyn Fn(&str) -> bool| seen.mapped.iter().any(|file| wanted(file));
    let has_others = has(&|file| !is_loader(file) && !is_program(file));
    seen.watched_ns > 0 && has(&is_program) && (has_others || !has(&is_loader))
}

/// The slices for a program, from an observed run.
///
/// # Errors
/// The reason why it has to run uninterrupted, as a clause after "because it".
pub fn judged(raw: &RawOutput) -> Result<InSlices, String> {
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0)
        .map_err(|_| "left no report of how it ran".to_owned())?;
    let command = report.command.as_ref();
    let command = command.ok_or("left no report of how it ran")?;
    cut(command, &report.counters)
}

/// The same from the program's report and the counters around it.
///
/// # Errors
/// As for [`judged`].
pub fn cut(report: &CommandReport, counters: &BTreeMap<String, f64>) -> Result<InSlices, String> {
    if counters.get(counter::THROTTLED).is_some_and(|ns| *ns > 0.0) {
        return Err("was throttled by a processor quota".to_owned());
    }
    let seen = report.seen.as_ref().filter(|seen| seen.watched_ns > 0);
    let seen = seen.ok_or("could not be seen while it ran")?;
    if report.pick.is_some() {
        return Err("measures itself, by a clock that does not stop with it".to_owned());
    }
    if report.wall_ns < FEWEST * SHORTEST_NS {
        return Err("is over within a few slices".to_owned());
    }
    if report.wall_ns > TRIED_NS {
        return Err("takes too long to be tried both ways first".to_owned());
    }
    if report.left_running > 0 {
        return Err("leaves processes running".to_owned());
    }
    if let Some(tie) = seen.ties.first() {
        return Err(reason(*tie).to_owned());
    }
    let used = |name: &str| report.usage.get(name).copied().unwrap_or(0.0);
    let wall_ns = report.wall_ns as f64;
    let is_alone = seen.threads <= 1 && seen.processes <= 1;
    let idle_ns = wall_ns * seen.idle_ns as f64 / seen.watched_ns as f64;
    // With several threads or processes, their times do not say whether one of them was always working.
    let off_ns = if is_alone {
        let off_ns = wall_ns - used(counter::USER) - used(counter::SYS) - used(counter::RUN_DELAY);
        // On a busy machine the parent learns of its end late, although it was never seen waiting.
        if off_ns > OFF_SURELY * wall_ns {
            off_ns
        } else {
            off_ns.min(idle_ns)
        }
    } else {
        idle_ns
    };
    if off_ns > (OFF.0 * wall_ns).max(OFF.1) {
        let share = 100.0 * off_ns / wall_ns;
        return Err(format!("waits for {share:.0} % of its time"));
    }
    let device_bytes = (used(counter::INBLOCK) + used(counter::OUBLOCK)) * BLOCK_BYTES;
    if device_bytes > DEVICE_BYTES {
        let mib = device_bytes / DEVICE_BYTES;
        return Err(format!("reads or writes {mib:.0} MiB on devices"));
    }
    Ok(InSlices {
        ns: (report.wall_ns / SLICES).clamp(SHORTEST_NS, LONGEST_NS),
        one_processor: is_alone,
    })
}

/// The turns of a program that is too short for slices or cannot be stopped: each of its runs is one turn. `None` if it
/// takes too long for that, or if something of it goes on between its runs.
pub fn run_by_run(report: &CommandReport, counters: &BTreeMap<String, f64>) -> Option<InSlices> {
    let seen = report.seen.as_ref()?;
    let is_throttled = counters.get(counter::THROTTLED).is_some_and(|ns| *ns > 0.0);
    let goes_on = report.left_running > 0 || !seen.ties.is_empty();
    let fits = report.wall_ns <= LONGEST_RUN_NS && report.pick.is_none();
    (fits && !goes_on && !is_throttled).then_some(InSlices {
        ns: UNSTOPPED_NS,
        // A short run may be over before its threads are counted.
        one_processor: seen.threads == 1 && seen.processes == 1,
    })
}

/// Checks whether a program that was stopped for two thirds of the time did as much as one that was not: by wall
/// time, or by CPU time, which hardly depends on the load of the machine.
///
/// # Errors
/// The reason why it has to run uninterrupted, as a clause after "because it".
pub fn confirmed(paused: &CommandReport, whole: &CommandReport) -> Result<(), String> {
    if !paused.exit.is_success() && !is_tolerated(paused) {
        return Err("fails when it is stopped on its way".to_owned());
    }
    let share = paused.wall_ns as f64 / whole.wall_ns.max(1) as f64;
    let (now, before) = (worked_ns(paused), worked_ns(whole));
    let is_same = share >= SAME || (before > 0.0 && now / before >= SAME);
    if is_same || paused.stops == 0 {
        return Ok(());
    }
    let percent = 100.0 * share;
    Err(format!(
        "runs {percent:.0} % as long when it is stopped again and again: it goes by a clock"
    ))
}

/// Checks that a program has the same number of processors everywhere. Interleaved copies share one of the processors
/// that all of them have, so that a problem with it affects all copies.
///
/// # Errors
/// The reason why it cannot be sliced, as a clause after "because it".
pub fn on_as_many_processors<'a>(
    reports: impl IntoIterator<Item = &'a CommandReport>,
) -> Result<(), String> {
    let permitted = |report: &CommandReport| report.usage.get(counter::PERMITTED_CPUS).copied();
    let all: Vec<f64> = reports.into_iter().filter_map(permitted).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    if least >= most {
        return Ok(());
    }
    Err(format!(
        "has {most} processors on one side and {least} on the other, which turns on one processor would hide"
    ))
}

/// Its CPU time, nanoseconds; 0 if not counted.
fn worked_ns(report: &CommandReport) -> f64 {
    let used = [counter::USER, counter::SYS].iter();
    used.filter_map(|name| report.usage.get(*name)).sum()
}

/// Whether its exit status is one that its call tolerates.
pub fn is_tolerated(report: &CommandReport) -> bool {
    matches!(report.exit, tare_model::outcome::Exit::Code(code) if report.tolerated.contains(&code))
}

fn reason(tie: Tie) -> &'static str {
    match tie {
        Tie::Socket => "has a socket open",
        Tie::Timer => "has a timer set",
        Tie::Terminal => "has a terminal open",
        Tie::Session => "begins a session of its own",
        Tie::Continued => "handles SIGCONT",
        Tie::Stopped => "stops processes itself",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tare_model::command::{Pick, ProcessSamples};
    use tare_model::outcome::Exit;
    use tare_model::whole_part;

    use super::super::command_output;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A program that computed for a second on one processor.
    fn computing() -> CommandReport {
        let raw = command_output::tests::raw(0, b"", b"");
        let mut report = command_output::report(&raw).unwrap();
        report.wall_ns = SECOND;
        report.usage = [
            ("user_ns", 0.7e9),
            ("sys_ns", 0.1e9),
            ("run_delay_ns", 0.19e9),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        report.seen = Some(ProcessSamples {
            threads: 1,
            processes: 1,
            watched_ns: SECOND,
            ..ProcessSamples::default()
        });
        report
    }

    fn cut_alone(report: &CommandReport) -> Result<InSlices, String> {
        cut(report, &BTreeMap::new())
    }

    fn why(change: impl FnOnce(&mut CommandReport, &mut ProcessSamples)) -> String {
        let mut report = computing();
        let mut seen = report.seen.take().unwrap();
        change(&mut report, &mut seen);
        report.seen = Some(seen);
        cut_alone(&report).unwrap_err()
    }

    #[test]
    fn short_program_is_interleaved_run_by_run() {
        let short = |change: &dyn Fn(&mut CommandReport)| {
            let mut report = computing();
            report.wall_ns = 12_000_000;
            change(&mut report);
            run_by_run(&report, &BTreeMap::new())
        };
        let turns = short(&|_| ()).unwrap();
        assert!(turns.one_processor && turns.ns > SECOND);
        let seen = |threads| {
            let of =
                move |report: &mut CommandReport| report.seen.as_mut().unwrap().threads = threads;
            short(&of).unwrap().one_processor
        };
        // Not bound unless exactly one thread was counted.
        assert_eq!([0, 1, 2].map(seen), [false, true, false]);
        assert_eq!(short(&|report| report.wall_ns = SECOND), None);
        assert_eq!(short(&|report| report.left_running = 1), None);
        let socket = |report: &mut CommandReport| {
            report.seen.as_mut().unwrap().ties.insert(Tie::Socket);
        };
        assert_eq!(short(&socket), None);
    }

    #[test]
    fn cpu_bound_program_is_sliced_despite_late_end() {
        let slices = cut_alone(&computing()).unwrap();
        assert_eq!((slices.ns, slices.one_processor), (20_000_000, true));
        // Its end was noticed late, but it was not seen waiting.
        let mut late = computing();
        late.wall_ns += SECOND / 20;
        assert!(cut_alone(&late).is_ok());
        let short = CommandReport {
            wall_ns: SECOND / 5,
            ..computing()
        };
        assert_eq!(cut_alone(&short).unwrap().ns, 5_000_000);
    }

    #[test]
    fn several_processes_are_sliced_if_one_always_runs() {
        let mut report = computing();
        report.usage.clear();
        let seen = report.seen.as_mut().unwrap();
        (seen.processes, seen.threads) = (3, 3);
        assert!(!cut_alone(&report).unwrap().one_processor);
        assert!(
            why(|report, seen| {
                report.usage.clear();
                seen.threads = 3;
                seen.idle_ns = SECOND / 4;
            })
            .contains("25 %")
        );
    }

    #[test]
    fn reasons_against_slicing_are_reported() {
        assert!(why(|report, _| report.usage.clear()).contains("waits for 100 %"));
        let rests = |report: &mut CommandReport, seen: &mut ProcessSamples| {
            report.usage.insert("run_delay_ns".into(), 0.15e9);
            seen.idle_ns = SECOND / 20;
        };
        assert!(why(rests).contains("waits for 5 %"));
        assert!(why(|report, _| report.wall_ns = 10_000_000).contains("few slices"));
        assert!(why(|report, _| report.wall_ns = 60 * SECOND).contains("too long"));
        assert!(why(|report, _| report.left_running = 1).contains("leaves"));
        assert!(why(|_, seen| seen.ties = BTreeSet::from([Tie::Socket])).contains("socket"));
        assert!(why(|_, seen| seen.watched_ns = 0).contains("seen"));
        let reads = |report: &mut CommandReport, _: &mut ProcessSamples| {
            report.usage.insert("inblock".into(), 8_192.0);
        };
        assert!(why(reads).contains("4 MiB"));
        let picks = |report: &mut CommandReport, _: &mut ProcessSamples| {
            report.pick = Some(Pick {
                pattern: "(1)".into(),
                more_is_better: false,
                metric: None,
            });
        };
        assert!(why(picks).contains("measures itself"));
    }

    #[test]
    fn cpu_throttling_is_detected_from_counters() {
        let mut raw = command_output::tests::raw(0, b"", b"");
        let mut report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
        report.command = Some(computing());
        raw.stdout.0 = serde_json::to_vec(&report).unwrap();
        assert!(judged(&raw).is_ok());
        report.counters.insert("throttled_ns".into(), 5e6);
        raw.stdout.0 = serde_json::to_vec(&report).unwrap();
        assert!(judged(&raw).unwrap_err().contains("quota"));
    }

    #[test]
    fn program_seen_only_with_its_loader_was_not_seen() {
        let program = ["/app/work", "/lib64/ld-linux-x86-64.so.2"];
        let with = |more: &[&'static str]| [&program[..], more].concat();
        for (watched_ns, mapped, expected) in [
            (0, with(&["/lib/libc.so.6"]), false),
            (9, with(&[]), false),
            (9, with(&["/lib/libc.so.6"]), true),
            (9, vec!["/app/work", "/lib/ld-musl-x86_64.so.1"], true),
            (9, vec!["/app/work"], true),
            (9, vec![], false),
        ] {
            let mut report = computing();
            let seen = report.seen.as_mut().unwrap();
            seen.watched_ns = watched_ns;
            seen.executed = Some("/app/work".to_owned());
            seen.mapped = mapped.iter().map(|&file| file.to_owned()).collect();
            assert_eq!(was_seen(&report), expected, "{mapped:?}");
        }
    }

    #[test]
    fn clock_driven_program_is_detected_by_stopping_it() {
        let whole = computing();
        let paused = |wall: f64, worked: f64| {
            let mut report = computing();
            report.wall_ns = whole_part(wall * SECOND as f64);
            report.usage.values_mut().for_each(|value| *value *= worked);
            CommandReport {
                stops: 25,
                ..report
            }
        };
        for (wall, worked) in [(1.05, 1.0), (3.0, 1.2), (0.5, 1.0)] {
            assert_eq!(confirmed(&paused(wall, worked), &whole), Ok(()));
        }
        let found = confirmed(&paused(0.34, 0.4), &whole).unwrap_err();
        assert!(found.contains("34 %"), "{found}");
        let mut uncounted = paused(0.34, 1.0);
        uncounted.usage.clear();
        assert!(confirmed(&uncounted, &whole).is_err());
        let failed = CommandReport {
            exit: Exit::Code(1),
            ..paused(1.0, 1.0)
        };
        assert!(confirmed(&failed, &whole).is_err());
        let tolerated = CommandReport {
            tolerated: vec![1],
            ..failed
        };
        assert_eq!(confirmed(&tolerated, &whole), Ok(()));
    }

    #[test]
    fn program_with_unequal_cpus_per_side_is_not_sliced() {
        let on = |cpus: f64| {
            let mut report = computing();
            report.usage.insert("permitted_cpus".to_owned(), cpus);
            report
        };
        assert_eq!(on_as_many_processors(&[on(2.0), on(2.0)]), Ok(()));
        assert_eq!(on_as_many_processors(&[on(2.0), computing()]), Ok(()));
        let why = on_as_many_processors(&[on(2.0), on(1.0)]).unwrap_err();
        assert!(why.starts_with("has 2 processors on one side and 1 on the other"));
    }
}
