//! Runs that are ended before their end, where the command takes so long in the environment that its blocks do not
//! fit into the budget although the cost is plain to see.
//!
//! A run that is ended counts as one that took at least so long. Ranks do not mind: a difference that is surely above
//! zero stays above it, whatever the command would have taken further; what is said of its size is a lower bound, and
//! said as one. What makes the command end before that is found as ever. Two arms that are both ended say nothing of
//! each other, so nothing is refuted by them.
//! What it cannot see: how much slower than the end of a run anything is; the first look saw that once.

use tare_model::whole_part;

use super::observed::PLAIN_TIMES;
use super::pace::Pace;
use super::{Ask, First, own};
use crate::workload::user_command;

/// The part of the time that six whole blocks of the two sides may take before runs are ended, where what else is to be
/// tried is not known.
const WHOLE_SHARE: f64 = 0.4;
/// A run is ended after at least so many times as long as it takes on the other side, and after so much of the time.
const LEAST_TIMES: u64 = 3;
const LEAST_PART: u64 = 60;

/// After how long runs are ended, where that is what makes an answer possible within `left_ns`.
pub fn decided(ask: &Ask, first: &First, left_ns: u64) -> Option<u64> {
    let pace = Pace::of_one(first);
    let is_plain = first.env.wall_ns / PLAIN_TIMES > first.host.wall_ns;
    let whole_ns = match &ask.own {
        Some(asks) => own::whole_ns(asks, pace),
        None => whole_part(pace.least_ns() as f64 / WHOLE_SHARE),
    };
    if ask.metric != user_command::WALL
        || ask.call.client.is_some()
        || first.in_slices.is_ok()
        || !is_plain
        || whole_ns <= left_ns
    {
        return None;
    }
    let cut_ns = (LEAST_TIMES * pace.host_ns)
        .max(left_ns / LEAST_PART)
        .min(first.env.wall_ns);
    // As many blocks as fit say something, if not all.
    let block_ns = (pace.host_ns + cut_ns).saturating_add(pace.life_ns);
    (block_ns <= left_ns).then_some(cut_ns)
}

/// What is said of it, a line.
pub fn remark(ask: &Ask, first: &First, cut_ns: u64) -> String {
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    format!(
        "{} took {} there at the first look and {} in `{}`, so runs are ended after {} and count as at least so long",
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
    use super::super::observed::Inside;
    use super::super::studies::tests::{SECOND, ask, first};
    use super::*;
    use tare_model::Params;

    fn first_of(host_ns: u64, env_ns: u64) -> First {
        let mut first = first(host_ns);
        first.env.wall_ns = env_ns;
        first
    }

    #[test]
    fn runs_are_ended_only_where_the_cost_is_plain_and_whole_ones_do_not_fit() {
        let ask = ask("docker", Params::new());
        let of = |host_ns, env_ns| decided(&ask, &first_of(host_ns, env_ns), 100 * SECOND);
        // Three times the plain one, or a sixtieth of the time, whatever is more.
        assert_eq!(of(SECOND / 2, 70 * SECOND), Some(100 * SECOND / LEAST_PART));
        let cut_ns = of(2 * SECOND, 70 * SECOND).unwrap();
        assert!((6 * SECOND..7 * SECOND).contains(&cut_ns), "{cut_ns}");
        // Whole ones fit; it is no plain cost; nor would a single block with ended ones fit.
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
    fn runs_are_ended_where_the_search_through_whole_ones_does_not_fit() {
        let of = |n_differences: usize| {
            let mut ask = ask("docker", Params::new());
            ask.own = Some(own::Asks {
                differences: vec![crate::driver::own::Difference::default(); n_differences],
                ..own::Asks::default()
            });
            decided(&ask, &first_of(SECOND / 2, 7 * SECOND / 2), 85 * SECOND)
        };
        assert_eq!(of(7), Some(3 * SECOND / 2 + 3 * 25_000_000));
        assert_eq!(of(1), None, "six blocks, one part and its proof fit");
    }

    #[test]
    fn where_not_even_six_blocks_of_ended_runs_fit_there_are_as_many_as_do() {
        let ask = ask("docker", Params::new());
        let mut first = first_of(9 * SECOND, 70 * SECOND);
        first.cut_ns = decided(&ask, &first, 100 * SECOND);
        let study = super::super::studies::first_study(&ask, &first, 100 * SECOND).unwrap();
        assert_eq!((study.blocks_min, study.blocks_max), (2, 2));
    }

    #[test]
    fn a_study_with_ended_runs_says_so_to_whoever_reads_it() {
        let ask = ask("docker", Params::new());
        let mut first = first_of(SECOND / 2, 70 * SECOND);
        assert_eq!(
            super::super::studies::first_study(&ask, &first, 100 * SECOND),
            None
        );
        first.cut_ns = decided(&ask, &first, 100 * SECOND);
        let study = super::super::studies::first_study(&ask, &first, 100 * SECOND).unwrap();
        assert_eq!(Some(study.limit_ns), first.cut_ns);
        let call = study.workloads[0].params.text(user_command::CALL).unwrap();
        assert!(call.contains("\"cut_off\":true"), "{call}");
        assert!(remark(&ask, &first, study.limit_ns).contains("70.0 s in `docker`"));
    }

    #[test]
    fn one_that_did_not_end_inside_is_known_by_nothing_but_its_time() {
        let first = first_of(SECOND, 2 * SECOND);
        let cut = Inside::CutOff(30 * SECOND);
        let look = cut.for_good(&first.host, SECOND).unwrap();
        assert_eq!((look.wall_ns, look.report.seen), (30 * SECOND, None));
        assert!(!cut.is_over(&first) && cut.is_over(&first_of(20 * SECOND, 0)));
        let short = Inside::Ended(Box::new(first.env.clone()));
        assert_eq!(short.for_good(&first.host, 9 * SECOND), None);
        assert!(!short.is_over(&first_of(20 * SECOND, 0)));
        assert!(short.for_good(&first.host, SECOND).is_some());
    }
}
