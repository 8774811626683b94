//! Ends runs early if the command is so slow in the environment that its blocks do not fit into the budget, although
//! the slowdown is obvious.
//!
//! A run that is ended early counts as one that took at least that long. Rank statistics allow this: a difference
//! that is surely above zero stays so, however long the command would have run. Its size becomes a lower bound and is
//! reported as one. A change that makes the command finish in time is found as usual. Two arms that are both ended
//! early cannot be compared, so nothing is refuted by them.
//! Limits: cannot say how much longer a run would have taken; only the first look saw that, once.

use tare_model::whole_part;

use super::observed::PLAIN_TIMES;
use super::pace::Pace;
use super::{Ask, First, user_container};
use crate::workload::user_command;

/// The share of the time that six whole blocks of the two sides may take before runs are ended early, if it is not
/// known what else will be tried.
const WHOLE_SHARE: f64 = 0.4;
/// A run lasts at least this many times as long as on the other side, and this part of the total time.
const LEAST_TIMES: u64 = 3;
const LEAST_PART: u64 = 120;

/// The time limit after which runs are ended early, if that makes an answer possible within `left_ns`.
pub fn decided(ask: &Ask, first: &First, left_ns: u64) -> Option<u64> {
    let pace = Pace::of_one(first);
    let is_plain = first.env.wall_ns / PLAIN_TIMES > first.host.wall_ns;
    let whole_ns = match &ask.own {
        Some(asks) => user_container::whole_ns(asks, pace),
        None => whole_part(pace.least_ns() as f64 / WHOLE_SHARE),
    };
    if ask.metric != user_command::WALL
        || ask.call.client.is_some()
        || first.in_slices.is_ok()
        || !is_plain
        || (whole_ns <= left_ns && !first.env.report.is_ended_early)
    {
        return None;
    }
    let cut_ns = (LEAST_TIMES * pace.host_ns)
        .max(left_ns / LEAST_PART)
        .min(first.env.wall_ns);
    // Fewer blocks than planned still say something.
    let block_ns = (pace.host_ns + cut_ns).saturating_add(pace.life_ns);
    (block_ns <= left_ns).then_some(cut_ns)
}

/// The remark about it, one line.
pub fn remark(ask: &Ask, first: &First, cut_ns: u64) -> String {
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    let least = if first.env.report.is_ended_early {
        "more than "
    } else {
        ""
    };
    format!(
        "{} took {} there at the first look and {least}{} in `{}`, so runs are ended after {} and count as at least so long",
        if ask.own.is_some() {
            "what it is compared with"
        } else {
            "the host"
        },
        seconds(first.host.wall_ns),
        seconds(first.env.wall_ns),
        ask.driver,
        seconds(cut_ns)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::observed::Inside;
    use super::super::studies::first_study;
    use super::super::studies::tests::{SECOND, ask, first};
    use super::super::user_container::ContainerQuestion;
    use super::*;
    use tare_model::Params;

    fn first_of(host_ns: u64, env_ns: u64) -> First {
        let mut first = first(host_ns);
        first.env.wall_ns = env_ns;
        first
    }

    #[test]
    fn cut_off_requires_obvious_cost_and_no_time_for_runs() {
        let ask = ask("docker", Params::new());
        let of = |host_ns, env_ns| decided(&ask, &first_of(host_ns, env_ns), 100 * SECOND);
        // Three times the other side's time or a part of the budget, whichever is more.
        assert_eq!(
            of(SECOND / 10, 70 * SECOND),
            Some(100 * SECOND / LEAST_PART)
        );
        let cut_ns = of(2 * SECOND, 70 * SECOND).unwrap();
        assert!((6 * SECOND..7 * SECOND).contains(&cut_ns), "{cut_ns}");
        // Whole runs fit; the slowdown is not obvious; not even one block of ended runs fits.
        assert_eq!(of(SECOND / 2, 3 * SECOND), None);
        assert_eq!(of(20 * SECOND, 70 * SECOND), None);
        assert_eq!(of(40 * SECOND, 700 * SECOND), None);
        let mut other = ask.clone();
        user_command::CPU.clone_into(&mut other.metric);
        assert_eq!(
            decided(&other, &first_of(1, 70 * SECOND), 100 * SECOND),
            None
        );
    }

    #[test]
    fn cut_off_if_search_with_whole_runs_does_not_fit() {
        let of = |n_differences: usize| {
            let mut ask = ask("docker", Params::new());
            ask.own = Some(ContainerQuestion {
                differences: vec![
                    crate::driver::user_container::Difference::default();
                    n_differences
                ],
                ..ContainerQuestion::default()
            });
            decided(&ask, &first_of(SECOND / 2, 7 * SECOND / 2), 85 * SECOND)
        };
        assert_eq!(of(7), Some(3 * SECOND / 2 + 3 * 25_000_000));
        assert_eq!(of(1), None, "six blocks, one part and its proof fit");
    }

    #[test]
    fn cut_off_study_has_fewer_blocks_if_six_do_not_fit() {
        let ask = ask("docker", Params::new());
        let mut first = first_of(9 * SECOND, 70 * SECOND);
        first.cut_ns = decided(&ask, &first, 100 * SECOND);
        let study = first_study(&ask, &first, 100 * SECOND).unwrap();
        assert_eq!((study.blocks_min, study.blocks_max), (2, 2));
    }

    #[test]
    fn cut_off_study_records_limit_and_remark() {
        let ask = ask("docker", Params::new());
        let mut first = first_of(SECOND / 2, 70 * SECOND);
        assert_eq!(first_study(&ask, &first, 100 * SECOND), None);
        first.cut_ns = decided(&ask, &first, 100 * SECOND);
        let study = first_study(&ask, &first, 100 * SECOND).unwrap();
        assert_eq!(Some(study.limit_ns), first.cut_ns);
        let call = study.workloads[0].params.text(user_command::CALL).unwrap();
        assert!(call.contains("\"cut_off\":true"), "{call}");
        assert!(remark(&ask, &first, study.limit_ns).contains("70.0 s in `docker`"));
    }

    #[test]
    fn cut_off_run_is_known_until_its_end() {
        let first = first_of(SECOND, 2 * SECOND);
        let cut_after = |ns: u64, printed: &[u8]| {
            let mut look = first.env.clone();
            look.wall_ns = ns;
            look.report.stdout.0 = printed.to_vec();
            look.report.is_ended_early = true;
            Inside {
                look,
                life_ns: 0,
                paths: BTreeSet::new(),
            }
        };
        let mut host = first.host.clone();
        host.report.stdout.0 = b"1\n2\n".to_vec();
        let printed = |so_far: &[u8]| {
            let look = cut_after(30 * SECOND, so_far).as_whole(&host);
            look.report.stdout.0
        };
        // The rest may be the same; what was printed is not.
        assert_eq!(printed(b"1\n"), host.report.stdout.0);
        assert_eq!(printed(b"2\n"), b"2\n");
        let cut = cut_after(30 * SECOND, b"");
        assert_eq!(cut.as_whole(&host).wall_ns, 30 * SECOND);
        assert!(!cut.is_open(SECOND) && cut.is_open(20 * SECOND));
        let mut short = cut_after(2 * SECOND, b"");
        short.look.report.is_ended_early = false;
        assert!(!short.is_long(9 * SECOND));
        assert!(!short.is_open(20 * SECOND));
        assert!(short.is_long(SECOND) && cut.is_long(90 * SECOND));
    }
}
