//! Reads the trials of a run for `why`: one value per block and arm, and counters per run of the command.
//!
//! The analysis compares arms with the baseline; a counterfactual is compared with the environment, and a rung with
//! the rung below it. Which trials count, and how a block's difference is computed, is shared with the table. Values
//! are costs: rates are negated, so that more is always worse.
//! Limits: trials without a result are missing; their blocks are not paired.

use std::collections::BTreeMap;

use tare_model::arm::Suspect;
use tare_model::command::Stdout;
use tare_model::dossier::Span;
use tare_model::{ArmSpec, Better, CommandCall, Facts, Outcome, ProbeReport, Study};
use tare_model::{counter, fact};
use tare_stats::{Differences, Interval, median};

use crate::analyze::collect::Collector;
use crate::analyze::kept_trial::Group;
pub use crate::analyze::pairs::Block;
use crate::analyze::pairs::{self, Reference};
use crate::analyze::{RunData, TrialData, collected, effect};
use crate::cause::ArmEvidence;
use crate::workload::{self, user_command};

/// The worker's counters that do not describe the command it started.
const WORKERS_OWN: [&str; 3] = [counter::RUN_DELAY, counter::ON_CPU, counter::SLICES];

/// The prefix of facts that are variables of the agent's process.
const VARIABLE: &str = fact::beginning(fact::VARIABLE);

/// Values by block: one, or two if an arm is compared with both copies of the baseline.
pub type ByBlock = BTreeMap<Block, Differences>;

/// Values and counters from a run's trials.
pub struct Readings {
    study: Study,
    /// The values as the table reads them: without void trials.
    collected: Collector<'static>,
    /// By arm, workload and name: one value per trial.
    counters: BTreeMap<(String, String), BTreeMap<String, Vec<f64>>>,
    /// Number of valid trials of each arm that were ended at their time limit.
    cut_off: BTreeMap<String, usize>,
}

impl Readings {
    /// Reads the trials.
    pub fn read(run: &RunData) -> Self {
        let mut readings = Self {
            study: run.head.study.clone(),
            collected: collected(run, &workload::find),
            counters: BTreeMap::new(),
            cut_off: BTreeMap::new(),
        };
        for data in &run.trials {
            if !readings.collected.has(&data.trial) {
                continue;
            }
            let cell = &data.trial.cell;
            let key = (cell.arm.to_string(), cell.workload.to_string());
            let Outcome::Completed(raw) = &data.outcome else {
                // The trial was ended at its limit: only the counters from outside cover it.
                *readings.cut_off.entry(key.0.clone()).or_default() += 1;
                readings.count(key, BTreeMap::new(), &data.charged);
                continue;
            };
            if let Ok(report) = serde_json::from_slice::<ProbeReport>(&raw.stdout.0) {
                readings.count(key, counters_of(&report), &data.charged);
            }
        }
        readings
    }

    /// Adds the counters of one trial, from inside and from outside.
    fn count(
        &mut self,
        key: (String, String),
        inside: BTreeMap<String, f64>,
        charged: &BTreeMap<String, f64>,
    ) {
        let of_arm = self.counters.entry(key).or_default();
        let charged = charged.iter().map(|(name, value)| (name.clone(), *value));
        for (name, value) in inside.into_iter().chain(charged) {
            of_arm.entry(name).or_default().push(value);
        }
    }

    /// The location of a metric: the last workload that has it, as metrics are identified by name here.
    fn place(&self, metric: &str) -> Option<(&Group, usize, Better)> {
        let mut groups = self.collected.groups.values().rev();
        groups.find_map(|group| {
            let metrics = group.workload?.metrics();
            let place = metrics.iter().position(|it| it.id == metric)?;
            Some((group, place, metrics[place].better))
        })
    }

    /// What `arm` is compared with: the baseline with its A/A control, or another arm.
    fn against(&self, earlier: &str, arm: usize) -> Option<Reference> {
        if earlier == self.study.baseline.as_str() {
            Reference::baseline(&self.study, &self.collected, arm)
        } else {
            self.collected.arm_index(earlier).map(Reference::arm)
        }
    }

    /// The arms in which a suspect was tried, each with its suspect.
    pub fn tried(&self) -> impl Iterator<Item = (&ArmSpec, &Suspect)> {
        let arms = self.study.arms.iter();
        arms.flat_map(|arm| arm.role.suspects.iter().map(move |suspect| (arm, suspect)))
    }

    /// Whether most of an arm's trials were ended at their limit, so that their values are lower bounds.
    pub fn is_cut_off(&self, arm: &str, metric: &str) -> bool {
        let n_cut = self.cut_off.get(arm).copied().unwrap_or(0);
        2 * n_cut > self.values(arm, metric).len()
    }

    /// The values of an arm; empty if it has none.
    pub fn values(&self, arm: &str, metric: &str) -> ByBlock {
        let of_arm = || {
            let (group, place, better) = self.place(metric)?;
            let index = self.collected.arm_index(arm)?;
            let values = pairs::values(group, Reference::arm(index), place);
            Some(as_costs(values, better))
        };
        of_arm().unwrap_or_default()
    }

    /// `later − earlier` by block, for the blocks that both have.
    pub fn differences(&self, earlier: &str, later: &str, metric: &str) -> ByBlock {
        let of_arms = || {
            let (group, place, better) = self.place(metric)?;
            let index = self.collected.arm_index(later)?;
            let against = self.against(earlier, index)?;
            let differences = pairs::differences(group, against, index, place);
            Some(as_costs(differences, better))
        };
        of_arms().unwrap_or_default()
    }

    /// The median over trials of each counter of an arm, by workload.
    pub fn counters(&self, arm: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
        self.counters
            .iter()
            .filter(|((of, _), _)| of == arm)
            .map(|((_, workload), counters)| {
                let medians = counters
                    .iter()
                    .filter_map(|(name, values)| Some((name.clone(), median(values)?)));
                (workload.clone(), medians.collect())
            })
            .collect()
    }

    /// The same counters of the user's command.
    pub fn of_command(&self, arm: &str) -> BTreeMap<String, f64> {
        let mut all = self.counters(arm);
        all.remove(&user_command_id()).unwrap_or_default()
    }
}

/// The counters of one trial: the worker's, and the command's if there was one.
pub fn counters_of(report: &ProbeReport) -> BTreeMap<String, f64> {
    let mut counters = report.counters.clone();
    if let Some(command) = &report.command {
        for name in WORKERS_OWN {
            counters.remove(name);
        }
        let own = command.usage.iter().filter(|(name, _)| {
            // The children's times are already in `children_*`.
            !matches!(name.as_str(), counter::USER | counter::SYS)
        });
        counters.extend(own.map(|(name, value)| (name.clone(), *value)));
        counters.insert(counter::WALL.to_owned(), command.wall_ns as f64);
    }
    counters
}

/// Host time of one trial, nanoseconds. An interleaved trial lasts as long as all arms together; its part is the wall
/// time of its command.
pub fn own_ns(data: &TrialData) -> u64 {
    let Outcome::Completed(raw) = &data.outcome else {
        return data.host_elapsed_ns;
    };
    let report = serde_json::from_slice::<ProbeReport>(&raw.stdout.0).ok();
    let sliced = report.filter(|report| report.sliced.is_some());
    let command = sliced.and_then(|report| report.command);
    command.map_or(data.host_elapsed_ns, |command| command.wall_ns)
}

/// An arm's evidence for the causes: its facts, the observations of the command there, and counters.
pub fn evidence(run: &RunData, readings: &Readings, id: &str) -> ArmEvidence {
    let Some(data) = run.head.arms.iter().find(|arm| arm.spec.id.as_str() == id) else {
        return ArmEvidence::default();
    };
    let mut facts = data.facts.clone();
    facts.extend(data.spec.role.seen.clone());
    let call = run.head.study.workloads.first();
    let call = call.and_then(|workload| CommandCall::from_args(&workload.params).ok());
    put_together(
        &data.spec,
        facts,
        &call.unwrap_or_default(),
        readings.counters(id),
    )
}

/// The evidence of one arm. If the command gets the same variables everywhere, the agent's are irrelevant.
pub fn put_together(
    spec: &ArmSpec,
    mut facts: Facts,
    call: &CommandCall,
    mut counters: BTreeMap<String, BTreeMap<String, f64>>,
) -> ArmEvidence {
    if call.clean {
        facts.retain(|name, _| !name.starts_with(VARIABLE));
        let given = call.variables.iter();
        facts
            .extend(given.map(|(name, text)| (fact::name_for(fact::VARIABLE, name), text.clone())));
    }
    let threads = facts.get(fact::COMMAND_THREADS);
    if let Some(threads) = threads.and_then(|text| text.parse().ok()) {
        let of_command = counters.entry(user_command_id()).or_default();
        of_command.insert(counter::THREADS.to_owned(), threads);
    }
    if let Some(directory) = &call.directory {
        facts.insert(fact::COMMAND_DIRECTORY.to_owned(), directory.clone());
    }
    // The command's stdout, not the agent's.
    let stdout = match spec.change.stdout {
        Some(Stdout::Console) => "console",
        _ => "kept",
    };
    facts.insert(fact::COMMAND_STDOUT.to_owned(), stdout.to_owned());
    ArmEvidence {
        arm: spec.id.to_string(),
        driver: spec.driver.clone(),
        settings: spec.settings.clone(),
        facts,
        counters,
    }
}

/// The id of the workload that runs a user's command.
pub fn user_command_id() -> String {
    workload::Workload::id(&user_command::UserCommand).to_owned()
}

/// Negates rates, so that more is always worse.
fn as_costs(mut values: ByBlock, better: Better) -> ByBlock {
    if better == Better::Higher {
        for value in values.values_mut() {
            *value = value.map(|value| -value);
        }
    }
    values
}

/// Combines the values of two sets in the blocks that both have, separately for each copy of the baseline.
pub fn joint(a: &ByBlock, b: &ByBlock, of: impl Fn(f64, f64) -> f64) -> ByBlock {
    a.iter()
        .filter_map(|(block, value)| Some((*block, value.with(*b.get(block)?, &of))))
        .collect()
}

/// The values without their blocks; the mean where there are two.
pub fn plain(values: &ByBlock) -> Vec<f64> {
    values.values().map(|value| value.mean()).collect()
}

/// The typical value with its interval, which includes the variation between launches; `None` below six values.
pub fn interval(values: &ByBlock) -> Option<Interval> {
    let launches: Vec<u32> = values.keys().map(|block| block.launch).collect();
    let blocks: Vec<Differences> = values.values().copied().collect();
    effect::interval(&blocks, &launches).ok()
}

/// One-sided p of "the typical value is 0 at most"; `None` below six values.
pub fn p_greater(values: &ByBlock) -> Option<f64> {
    let launches: Vec<u32> = values.keys().map(|block| block.launch).collect();
    let blocks: Vec<Differences> = values.values().copied().collect();
    effect::p_greater(&blocks, &launches)
}

/// An interval in the dossier's form.
pub fn span(interval: Interval) -> Span {
    Span::new(interval.low, interval.point, interval.high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_one_launch;

    #[test]
    fn only_blocks_that_both_have_are_paired() {
        let of = |values: &[(u32, f64)]| -> ByBlock {
            let values = values.iter();
            values
                .map(|(number, value)| (in_one_launch(*number), Differences::one(*value)))
                .collect()
        };
        let one = of(&[(0, 1.0), (1, 2.0), (3, 4.0)]);
        let other = of(&[(1, 5.0), (2, 9.0), (3, 6.0)]);
        let both = joint(&one, &other, |one, other| other - one);
        assert_eq!(both, of(&[(1, 3.0), (3, 2.0)]));
    }

    #[test]
    fn interval_width_reflects_variation_between_launches() {
        // Each start has a different level: eighteen blocks, but six starts.
        let of = |launch: fn(u32) -> u32| -> ByBlock {
            (0..18)
                .map(|number| {
                    let block = Block {
                        number,
                        launch: launch(number),
                    };
                    let start = [3.0, -2.0, 1.0, -1.0, 2.0, -3.0][number as usize / 3];
                    let value = 100.0 + start + f64::from(number % 3) / 100.0;
                    (block, Differences::one(value))
                })
                .collect()
        };
        let width = |values: &ByBlock| {
            let found = interval(values).unwrap();
            found.high - found.low
        };
        assert!(width(&of(|number| number / 3)) > 1.5 * width(&of(|_| 0)));
    }
}
