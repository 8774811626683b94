//! Whether a program may be stopped on its way, in turn with its copies in other arms, or has to run in one go.
//!
//! What computes may: it loses nothing by being stopped. What sleeps, waits for devices or for others, or goes by a
//! clock may not, because all that goes on while it is stopped. One run that was looked at tells the first, and one
//! that was stopped for two thirds of its time the second: it must have run as long as the whole one.
//! What it cannot see: what a program does in one run of many.
//! This file is no workload.

use std::collections::BTreeMap;

use tare_model::command::{InSlices, Tie};
use tare_model::counter;
use tare_model::{CommandReport, ProbeReport, RawOutput};

/// The shortest slice, nanoseconds: a hundred times what stopping and going on take.
const SHORTEST_NS: u64 = 5_000_000;
/// The longest, nanoseconds: noise must be slower.
const LONGEST_NS: u64 = 20_000_000;
/// How many slices a program should have.
const SLICES: u64 = 40;
/// Programs with fewer slices than this gain nothing.
const FEWEST: u64 = 4;
/// Programs that take longer are not run a second time only to see whether they may be stopped.
const TRIED_NS: u64 = 5_000_000_000;
/// What a program that computes may be off the processor without being kept from it: a share, and nanoseconds that
/// starting and reaping take.
const OFF: (f64, f64) = (0.02, 5e6);
/// The share from which on it waits, whatever the looks at it say.
const OFF_SURELY: f64 = 0.15;
/// Bytes that may pass between it and devices.
const DEVICE_BYTES: f64 = (1 << 20) as f64;
/// Bytes of a block as getrusage(2) counts.
const BLOCK_BYTES: f64 = 512.0;
/// What it does at least of the whole run's work when it is stopped for two thirds of the time, as a share; one that
/// goes by a clock does a third.
const SAME: f64 = 0.6;

/// How a program can be cut, by a run that was looked at.
///
/// # Errors
/// Why it has to run in one go, as what follows "because it".
pub fn judged(raw: &RawOutput) -> Result<InSlices, String> {
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0)
        .map_err(|_| "left no report of how it ran".to_owned())?;
    let command = report.command.as_ref();
    let command = command.ok_or("left no report of how it ran")?;
    cut(command, &report.counters)
}

/// The same by the program's own report and the counters around it.
///
/// # Errors
/// As for [`judged`].
pub fn cut(report: &CommandReport, counters: &BTreeMap<String, f64>) -> Result<InSlices, String> {
    if counters.get(counter::THROTTLED).is_some_and(|ns| *ns > 0.0) {
        return Err("was throttled by a processor quota".to_owned());
    }
    let seen = report.seen.as_ref();
    let seen = seen.filter(|seen| seen.watched_ns > 0);
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
    // Of several, the times do not tell whether one of them was always at work.
    let off_ns = if is_alone {
        let off_ns = wall_ns - used(counter::USER) - used(counter::SYS) - used(counter::RUN_DELAY);
        // On a busy machine its parent is late to hear of its end, which nobody saw it wait for.
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

/// Whether a program that was stopped for two thirds of the time did as much as one that was not: by wall time, or by
/// processor time, which hardly depends on how busy the machine was meanwhile.
///
/// # Errors
/// Why it has to run in one go, as what follows "because it".
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

/// Whether a program has as many processors wherever it was seen: copies that take turns share one of those that all of
/// them have, and then what is wrong with it is wrong with all.
///
/// # Errors
/// Why it cannot be cut, as what follows "because it".
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

/// Its processor time, nanoseconds; 0 where nobody counted it.
fn worked_ns(report: &CommandReport) -> f64 {
    let used = [counter::USER, counter::SYS].iter();
    used.filter_map(|name| report.usage.get(*name)).sum()
}

/// Whether it ended in a way that its call tolerates.
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

    use tare_model::command::{Pick, Seen};
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
        report.seen = Some(Seen {
            threads: 1,
            processes: 1,
            watched_ns: SECOND,
            ..Seen::default()
        });
        report
    }

    fn cut_alone(report: &CommandReport) -> Result<InSlices, String> {
        cut(report, &BTreeMap::new())
    }

    fn why(change: impl FnOnce(&mut CommandReport, &mut Seen)) -> String {
        let mut report = computing();
        let mut seen = report.seen.take().unwrap();
        change(&mut report, &mut seen);
        report.seen = Some(seen);
        cut_alone(&report).unwrap_err()
    }

    #[test]
    fn what_computes_is_cut_also_where_it_was_kept_waiting_for_a_processor() {
        let slices = cut_alone(&computing()).unwrap();
        assert_eq!((slices.ns, slices.one_processor), (20_000_000, true));
        // Its end was heard of late, and nobody saw it wait.
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
    fn several_processes_are_cut_while_one_of_them_is_always_at_work() {
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
    fn whatever_goes_on_while_it_is_stopped_is_a_reason_against_it() {
        assert!(why(|report, _| report.usage.clear()).contains("waits for 100 %"));
        let rests = |report: &mut CommandReport, seen: &mut Seen| {
            report.usage.insert("run_delay_ns".into(), 0.15e9);
            seen.idle_ns = SECOND / 20;
        };
        assert!(why(rests).contains("waits for 5 %"));
        assert!(why(|report, _| report.wall_ns = 10_000_000).contains("few slices"));
        assert!(why(|report, _| report.wall_ns = 60 * SECOND).contains("too long"));
        assert!(why(|report, _| report.left_running = 1).contains("leaves"));
        assert!(why(|_, seen| seen.ties = BTreeSet::from([Tie::Socket])).contains("socket"));
        assert!(why(|_, seen| seen.watched_ns = 0).contains("seen"));
        let reads = |report: &mut CommandReport, _: &mut Seen| {
            report.usage.insert("inblock".into(), 8_192.0);
        };
        assert!(why(reads).contains("4 MiB"));
        let picks = |report: &mut CommandReport, _: &mut Seen| {
            report.pick = Some(Pick {
                pattern: "(1)".into(),
                more_is_better: false,
                metric: None,
            });
        };
        assert!(why(picks).contains("measures itself"));
    }

    #[test]
    fn a_quota_that_bit_is_seen_in_the_counters() {
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
    fn a_program_that_goes_by_a_clock_is_found_by_stopping_it() {
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
    fn program_with_fewer_processors_in_one_place_is_not_cut() {
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
