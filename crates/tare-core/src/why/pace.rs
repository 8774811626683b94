//! Estimates how long trials on the two sides and a start of their arms take, and derives a study's launches from it.
//!
//! Limits: the speed of an arm that has not run yet is unknown; it is assumed to be as slow as the environment.

use std::num::NonZeroU32;

use tare_model::study::A_PRIME;
use tare_model::{ArmSpec, Study, facts, whole_count, whole_part};

use super::total::Total;
use super::{Ask, FEWEST, First};
use crate::analyze::RunData;
use crate::workload::command_output::cpu_ns;

/// Time of a trial in addition to the command: canary, counters, dispatch.
const AROUND_NS: u64 = 25_000_000;
/// The part of the time that restarting the arms may take.
const STARTS_SHARE: f64 = 0.2;
/// The fewest launches that show the variation between launches.
const LAUNCHES_LEAST: u64 = 4;
/// Launches beyond this show little more, if they take more than that part of the study itself.
const LAUNCHES_ENOUGH: u64 = 6;
/// A container with periodic activity lives for this many of its periods.
const PERIODS: u64 = 8;
/// How often the runs of a trial use up a CPU quota.
const USES_UP: f64 = 2.0;
/// If that would take longer, the command runs once, nanoseconds.
const RUNS_MOST_NS: f64 = 5e9;

/// The maximum number of blocks of a study.
pub(super) const PROOF_MOST: u32 = 60;
/// The wanted precision, above and below, of the share that goes away with a suspect.
const SHARE_HALF: f64 = 0.1;
/// Blocks of a study that tries suspects, if there is time.
const ENOUGH_LEAST: u32 = 12;

/// Durations on this machine, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// A trial on the host.
    pub host_ns: u64,
    /// A trial in the environment.
    pub env_ns: u64,
    /// Starting and removing an environment.
    pub life_ns: u64,
}

/// How many times the command runs in a trial. A single run that ends about where a quota is used up waits for a
/// whole period or not at all, depending on when the period began. Consecutive runs that use it up twice wait for
/// about as long in every trial.
pub fn runs(first: &First) -> NonZeroU32 {
    let is_one = first.in_slices.is_ok()
        || first.cut_ns.is_some()
        || first.is_fresh
        || first.host.report.pick.is_some();
    let used_ns = cpu_ns(&first.host.report);
    let quota = facts::quota_us(&first.env.facts);
    let (false, Some(used_ns), Some((quota_us, period_us))) = (is_one, used_ns, quota) else {
        return NonZeroU32::MIN;
    };
    let used_us = used_ns / 1e3;
    // A run that uses little of the quota does not wait when it runs alone.
    if used_us < quota_us / 2.0 {
        return NonZeroU32::MIN;
    }
    let runs = (USES_UP * quota_us / used_us).ceil().max(1.0);
    let inside_ns = 1e3 * runs * used_us * period_us / quota_us;
    let runs = u32::try_from(whole_part(runs)).ok();
    let runs = runs.filter(|_| inside_ns < RUNS_MOST_NS);
    runs.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// The remark for a command that runs several times in a trial.
pub fn repeated(first: &First) -> Option<String> {
    let runs = runs(first).get();
    (runs > 1).then(|| {
        format!("the command runs {runs} times in a trial, because a single run ends about where the processor quota is used up")
    })
}

impl Pace {
    /// An estimate from one run on each side.
    pub fn of_one(first: &First) -> Self {
        let env_ns = first.cut_ns.unwrap_or(u64::MAX).min(first.env.wall_ns);
        let start_ns = start_ns(first);
        let runs = u64::from(runs(first).get());
        Self {
            host_ns: runs * first.host.wall_ns + AROUND_NS + start_ns,
            env_ns: runs * env_ns + AROUND_NS + start_ns,
            life_ns: first.life_ns,
        }
    }

    /// An estimate from the trials of a run, in which `env` is the environment.
    pub fn from_run(run: &RunData, env: &str, first: &First) -> Self {
        let one = Self::of_one(first);
        let command = super::readings::user_command_id();
        let mean = |arm: &str| {
            let trials = run.trials.iter().filter(|data| {
                data.trial.cell.arm.as_str() == arm
                    && data.trial.cell.workload.as_str() == command
                    && data.host_elapsed_ns > 0
            });
            let (sum, count) = trials.fold((0u64, 0u64), |(sum, count), data| {
                (sum.saturating_add(super::readings::own_ns(data)), count + 1)
            });
            Some(sum.checked_div(count)? + start_ns(first))
        };
        Self {
            host_ns: mean(run.head.study.baseline.as_str()).unwrap_or(one.host_ns),
            env_ns: mean(env).unwrap_or(one.env_ns),
            ..one
        }
    }

    /// Sets how many blocks of a study of `time_ns` each start of its arms serves: one if the starts take at most
    /// their part of the time, all if there would be too few launches to show the variation between them. A study
    /// shorter than the time allows has enough launches, or its part.
    ///
    /// Periodic activity of a container is only seen if the container lives for several periods; activity that does
    /// not occur twice in the whole time is not waited for.
    pub fn plan_launches(&self, ask: &Ask, study: &mut Study, time_ns: u64) {
        if ask.is_fresh() {
            return;
        }
        let is_base = |arm: &&ArmSpec| arm.id == study.baseline || arm.id.as_str() == A_PRIME;
        let n_base = study.arms.iter().filter(is_base).count() as u64;
        let n_inside = study.arms.len() as u64 - n_base;
        let block_ns = n_base * self.host_ns + n_inside * self.env_ns;
        let blocks = (time_ns / block_ns.max(1)).clamp(1, u64::from(study.blocks_max.max(1)));
        let starts_ns = (n_inside * self.life_ns).max(1);
        let of = |time_ns: u64| whole_part(time_ns as f64 * STARTS_SHARE) / starts_ns;
        let launches = of(time_ns).min(of(blocks * block_ns).max(LAUNCHES_ENOUGH));
        let per_launch = if launches < LAUNCHES_LEAST.min(blocks) {
            u64::MAX
        } else {
            blocks.div_ceil(launches)
        };
        let differences = ask.own.iter().flat_map(|own| &own.differences);
        let periods = differences.filter_map(|it| it.every_ns);
        let longest_ns = periods.filter(|every_ns| *every_ns <= time_ns / 2).max();
        let life_ns = longest_ns.unwrap_or(0).saturating_mul(PERIODS);
        let lives = life_ns.div_ceil(block_ns.max(1));
        study.blocks_per_launch = u32::try_from(per_launch.max(lives)).unwrap_or(u32::MAX);
    }

    /// Time for six blocks of both sides and their starts.
    pub fn least_ns(&self) -> u64 {
        let both_ns = self.host_ns.saturating_add(self.env_ns);
        both_ns
            .saturating_mul(u64::from(FEWEST))
            .saturating_add(self.life_ns)
    }
}

/// What was measured before a study that tries suspects.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    /// The durations.
    pub pace: Pace,
    /// The number of arms so far; names of further ones are numbered above.
    pub n_arms: usize,
    /// Whether the steps between the two sides were among them.
    pub has_ladder: bool,
    /// The number of blocks that give a suspect's share precisely enough. Suspects that are still undecided then get
    /// more.
    pub enough: u32,
}

/// The number of blocks, at most `most`, that give a share of a total precisely enough.
pub(super) fn enough(total: &Total, most: u32) -> u32 {
    let blocks = total.blocks_for(SHARE_HALF).map(whole_count);
    blocks.map_or(most, |blocks| blocks.clamp(ENOUGH_LEAST, most))
}

/// The time that each trial needs to get a new container, if it does.
fn start_ns(first: &First) -> u64 {
    if first.is_fresh { first.life_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use tare_model::{Params, counter};

    use super::super::fresh::Fresh;
    use super::super::studies::first_study;
    use super::super::studies::tests::{SECOND, ask, first};
    use super::super::user_container::ContainerQuestion;
    use super::super::{Base, HOST};
    use super::*;
    use crate::driver::user_container::Difference;

    #[test]
    fn periodic_container_launch_spans_several_periods() {
        let plan = |every_ns| {
            let mut ask = ask("docker", Params::new());
            let mut study = first_study(&ask, &first(SECOND), 115 * SECOND).unwrap();
            let difference = Difference {
                every_ns,
                ..Default::default()
            };
            ask.own = Some(ContainerQuestion {
                differences: vec![difference],
                ..ContainerQuestion::default()
            });
            let mut pace = Pace::of_one(&first(SECOND));
            pace.life_ns = SECOND / 10;
            pace.plan_launches(&ask, &mut study, 100 * SECOND);
            study.blocks_per_launch
        };
        let usual = plan(None);
        assert_eq!(plan(Some(SECOND / 100)), usual, "a block is longer");
        let longer = plan(Some(2 * SECOND));
        assert!((usual + 1..=16).contains(&longer), "{longer} after {usual}");
        assert_eq!(plan(Some(60 * SECOND)), usual, "never met");
    }

    #[test]
    fn a_run_that_about_uses_up_a_quota_is_repeated() {
        let runs_with = |quota: &str, used_ms: f64, change: fn(&mut First)| {
            let mut first = first(SECOND);
            first.in_slices = Err("is in a container".into());
            let usage = &mut first.host.report.usage;
            usage.insert(counter::USER.to_owned(), used_ms * 1e6);
            usage.insert(counter::SYS.to_owned(), 0.0);
            let fact = tare_model::fact::CGROUP_CPU_MAX.to_owned();
            first.env.facts.insert(fact, quota.to_owned());
            change(&mut first);
            runs(&first).get()
        };
        let as_seen = |quota, used_ms| runs_with(quota, used_ms, |_| ());
        assert_eq!(as_seen("150000 1000000", 150.0), 2);
        assert_eq!(as_seen("150000 1000000", 100.0), 3);
        assert_eq!(as_seen("150000 1000000", 20.0), 1, "does not wait alone");
        assert_eq!(as_seen("150000 1000000", 900.0), 1, "waits in every trial");
        assert_eq!(as_seen("max 100000", 150.0), 1);
        let sliced = |first: &mut First| {
            first.in_slices = Ok(tare_model::command::InSlices {
                ns: 1,
                one_processor: true,
            });
        };
        assert_eq!(runs_with("150000 1000000", 150.0, sliced), 1);
    }

    #[test]
    fn each_run_in_a_new_container_takes_its_start_too() {
        let usual = first(SECOND);
        let fresh = First {
            is_fresh: true,
            ..usual.clone()
        };
        let more = Pace::of_one(&fresh).env_ns - Pace::of_one(&usual).env_ns;
        assert_eq!(more, usual.life_ns);
        let ask = ask("docker", Params::new());
        let launches = |first: &First| {
            let study = first_study(&ask, first, 115 * SECOND).unwrap();
            study.blocks_per_launch
        };
        assert!(launches(&usual) > 1);
        let asks = ContainerQuestion {
            fresh: Some(Fresh {
                why: "it fails".to_owned(),
                first_run: None,
            }),
            base: Base {
                id: HOST,
                driver: HOST.to_owned(),
                ..Base::default()
            },
            ..ContainerQuestion::default()
        };
        let ask = Ask {
            own: Some(asks),
            ..ask.clone()
        };
        let study = first_study(&ask, &fresh, 115 * SECOND).unwrap();
        assert_eq!(study.blocks_per_launch, 1);
    }
}
