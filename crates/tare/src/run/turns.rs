//! Decides which workloads of a session are interleaved, and stores their blocks.
//!
//! A workload is interleaved if the study asks for it, the probe can be sliced, each arm has one warm instance, and
//! no arm has a limit that slices would hide. A program can be sliced if an inspection shows so. Everything else is
//! measured in whole trials.
//! Limits: whether slices and trials agree is not checked here; see `METHODOLOGY.md`.

use std::collections::BTreeMap;

use tare_model::command::COMMAND_PROBE;
use tare_model::fact;
use tare_model::facts::{self, cpu_list};
use tare_model::{ArmId, CommandCall, Facts, Recipe, Trial};

use super::alternate::Part;
use super::charges;
use super::pair::is_service;
use super::served::is_in_turn;
use super::services;
use super::session::{Break, Session};
use super::suspended::Awake;
use super::testbed::Arm;
use super::turn_state::Cycle;
use crate::cx::turn_page;
use crate::env::Charged;
use crate::store::Remark;

/// Why nothing is interleaved if an arm reads from devices.
const COLD: &str = "drops the command's files from the page cache before each run";

impl Session<'_> {
    /// Creates the page over which workers pass the turn, before the arms that mount it start.
    pub(super) fn make_a_page(&mut self) -> Result<(), Break> {
        if !self.study().alternate || self.dispatcher.is_cold {
            return Ok(());
        }
        self.turns.are_taken = true;
        match turn_page::create(self.cx.scratch) {
            Ok(()) => Ok(()),
            Err(error) => Ok(self.say(format!(
                "workers get their turns over the channels, because there is no page for them: {error}"
            ))?),
        }
    }

    /// Turns interleaving off, with a remark, if an arm has a limit that slices would hide. The limits are those that
    /// the agent found, wherever they were set.
    pub(super) fn refuse_turns_under_limits(&mut self) -> Result<(), Break> {
        if !self.turns.are_taken {
            return Ok(());
        }
        let Some(baseline) = self.inside.get(&self.study().baseline) else {
            return Ok(());
        };
        let limited = self.testbed.usable().find_map(|arm| {
            let of_change = || (!arm.spec.change.cold.is_empty()).then(|| COLD.to_owned());
            let facts = self.inside.get(&arm.spec.id)?;
            let limited = limit(facts, baseline).map(|what| format!("has {what}"));
            Some((arm.spec.id.clone(), limited.or_else(of_change)?))
        });
        let Some((id, why)) = limited else {
            return Ok(());
        };
        self.turns.are_taken = false;
        let why = format!("`{id}` {why}");
        Ok(self.say(Remark::of_whole_trials(None, &why))?)
    }

    /// Whether this workload is interleaved.
    pub(super) fn takes_turns(&self, workload: usize) -> bool {
        let spec = &self.study().workloads[workload];
        let name = match &self.recipes[workload] {
            Recipe::Probe(call) => &call.name,
            Recipe::Pair { client, .. } => &client.name,
            _ => return false,
        };
        let usable = || self.testbed.usable();
        // An arm without the program needs a whole trial, in which it is refused.
        let is_there = |arm: &Arm| self.missing_tool(&arm.spec.id, workload).is_none();
        let recipe = &self.recipes[workload];
        if is_in_turn(recipe) {
            return !self.dispatcher.is_cold && spec.instances == 1 && usable().count() > 1;
        }
        // Only a single program can be stopped midway, not the server of a pair.
        if name == COMMAND_PROBE {
            let call = self.command(workload);
            if call.is_none_or(|call| call.in_slices.is_none()) || !usable().all(is_there) {
                return false;
            }
        }
        self.turns.are_taken
            && spec.instances == 1
            && spec.spread.is_none()
            && usable().count() > 1
            && if is_service(recipe) {
                services::is_interleaved(recipe) && usable().all(is_there)
            } else {
                usable().all(|arm| arm.cuts.contains(name))
            }
    }

    /// Runs one workload of a block interleaved in all arms, stores it, and handles arms that were lost in it.
    pub(super) fn turns(&mut self, trials: &[Trial], rest: &[Trial]) -> Result<(), Break> {
        if self.cx.cancel.is_requested() {
            return Err(Break::Cancelled);
        }
        let Some(first) = trials.first() else {
            return Ok(());
        };
        let workload = first.workload_index as usize;
        let begun_ns = self.cx.clock.now_ns();
        let indices = trials
            .iter()
            .filter_map(|trial| self.testbed.place_of(&trial.cell.arm));
        let indices: Vec<usize> = indices.collect();
        let baseline = self.study().baseline.clone();
        let Some(place) = trials.iter().position(|trial| trial.cell.arm == baseline) else {
            return Ok(());
        };
        let stages = self.stages(trials);
        let planned_ns = (self.study().trial_ns).saturating_mul(self.pace.length(workload));
        let mut cycle = Cycle {
            rows: self.plan.turn_rows(first.block, workload, trials.len()),
            key: u64::from(first.sequence) + 1,
            target_ns: of_a_stage(planned_ns, &stages),
            stages,
            cpu: self.cpu_of(first.block, trials),
            check: !std::mem::replace(&mut self.turns.checked[workload], true),
            baseline: place,
            has_page: self.turns.has_page,
        };
        let mut until_here = self.recipes[..=workload].iter().rev();
        let is_first = until_here.next().is_some_and(is_service) && !until_here.any(is_service);
        if cycle.check && is_first {
            let cost = services::own_cost(&self.cx);
            cost.map_or(Ok(()), |cost| self.say(cost))?;
        }
        let charged: Vec<Charged> = indices
            .iter()
            .map(|index| self.testbed.arms[*index].charged())
            .collect();
        let before: Vec<_> = charged.iter().map(charges::read).collect();
        let awake = Awake::now(self.cx.clock);
        let mut measured = Vec::new();
        // The second attempt happens only if the page failed: then over the channels.
        for _ in 0..2 {
            let mut arms: Vec<Option<&mut Arm>> = self.testbed.arms.iter_mut().map(Some).collect();
            let parts = trials
                .iter()
                .zip(&indices)
                .filter_map(|(trial, index)| {
                    Some(Part {
                        number: u64::from(trial.sequence),
                        arm: arms[*index].take()?,
                    })
                })
                .collect();
            let recipe = &self.recipes[workload];
            if is_in_turn(recipe) {
                measured = self.dispatcher.served_in_turn(recipe, parts, &cycle)?;
                break;
            }
            let (came, stranger) = self.dispatcher.alternate(
                recipe,
                first.cell.path,
                parts,
                self.testbed.peer.as_mut(),
                &cycle,
            )?;
            measured = came;
            let Some(place) = stranger else {
                break;
            };
            self.turns.has_page = false;
            cycle.has_page = false;
            self.say(format!(
                "a worker in `{}` cannot use the host's page for the turns, which go over the channels from now on",
                trials[place].cell.arm
            ))?;
        }
        let is_probe = matches!(self.recipes[workload], Recipe::Probe(_));
        let all = trials.iter().zip(indices).zip(measured);
        let done: Vec<_> = all
            .enumerate()
            .map(|(place, ((trial, index), measured))| {
                let charged = if is_probe {
                    charges::since(&before[place], &charges::read(&charged[place]))
                } else {
                    BTreeMap::new()
                };
                (trial, index, measured, charged)
            })
            .collect();
        self.keep(&done, awake, begun_ns, rest)
    }

    /// The stages of a block; see [`crate::plan::Plan::stages`]. A program runs once, and a server is asked in other ways.
    fn stages(&self, trials: &[Trial]) -> Vec<Option<u32>> {
        let Some(first) = trials.first() else {
            return Vec::new();
        };
        let workload = first.workload_index as usize;
        if is_service(&self.recipes[workload]) || self.command(workload).is_some() {
            return Vec::new();
        }
        let arms: Vec<&ArmId> = trials.iter().map(|trial| &trial.cell.arm).collect();
        self.plan.stages(first.block, &arms)
    }

    /// The command of a workload, if it runs one.
    fn command(&self, workload: usize) -> Option<CommandCall> {
        match &self.recipes[workload] {
            Recipe::Probe(call) if call.name == COMMAND_PROBE => {
                CommandCall::from_args(&call.args).ok()
            }
            _ => None,
        }
    }

    /// The CPU of all workers of this block: one that every arm may use, a different one in the next block.
    fn cpu_of(&self, block: u32, trials: &[Trial]) -> Option<u32> {
        let workload = trials.first()?.workload_index as usize;
        let slices = self.command(workload).and_then(|call| call.in_slices);
        if slices.is_some_and(|slices| !slices.one_processor) {
            return None;
        }
        let mut common: Option<Vec<usize>> = None;
        for trial in trials {
            let own = cpu_list(self.inside.get(&trial.cell.arm)?.get(fact::CPU_AFFINITY)?)?;
            common = Some(match common {
                None => own,
                Some(cpus) => cpus.into_iter().filter(|cpu| own.contains(cpu)).collect(),
            });
        }
        let cpus = common.filter(|cpus| !cpus.is_empty())?;
        u32::try_from(cpus[block as usize % cpus.len()]).ok()
    }
}

/// The time of an arm's slices in a stage: all stages together take as long as one with all arms.
fn of_a_stage(planned_ns: u64, stages: &[Option<u32>]) -> u64 {
    let n_stages = stages.iter().flatten().count();
    let n_slices = n_stages * (stages.len() - n_stages + 1);
    match n_slices {
        0 => planned_ns,
        n_slices => planned_ns.saturating_mul(stages.len() as u64) / n_slices as u64,
    }
}

/// A limit of an arm, but not of the baseline, that requires whole trials.
fn limit(arm: &Facts, baseline: &Facts) -> Option<&'static str> {
    if facts::cpu_quota(arm) != facts::cpu_quota(baseline) && facts::cpu_quota(arm).is_some() {
        return Some("a processor quota, which would hardly bite in slices");
    }
    if facts::memory_limit(arm).is_some() && facts::memory_limit(baseline).is_none() {
        return Some("a memory limit, which slices of several arms would share");
    }
    let io = facts::io_limit(arm).filter(|limit| facts::io_limit(baseline) != Some(*limit));
    io.map(|_| "a limit on what it reads or writes a second, which would hardly bite in slices")
}

#[cfg(test)]
mod tests {
    use super::{limit, of_a_stage};
    use tare_model::{Facts, fact};

    #[test]
    fn stages_take_as_long_as_one_with_all_arms() {
        assert_eq!(of_a_stage(60, &[]), 60);
        // Two stages of three arms each instead of one of four.
        assert_eq!(of_a_stage(60, &[None, Some(0), None, Some(1)]), 40);
        assert_eq!(of_a_stage(60, &[None, Some(1), Some(0)]), 45);
    }

    #[test]
    fn limits_of_the_arm_alone_keep_whole_trials() {
        let of = |name: &str, text: &str| Facts::from([(name.to_owned(), text.to_owned())]);
        for (name, text, kind) in [
            (fact::CGROUP_CPU_MAX, "20000 100000", "processor quota"),
            (fact::CGROUP_MEMORY_MAX, "1048576", "memory limit"),
            (fact::CGROUP_IO_MAX, "8:0 wbps=1000000", "reads or writes"),
            (fact::CGROUP_WRITE_BPS, "8:0 1000000", "reads or writes"),
        ] {
            let (limited, free) = (of(name, text), Facts::new());
            assert!(
                limit(&limited, &free).is_some_and(|told| told.contains(kind)),
                "{name}"
            );
            assert_eq!(limit(&limited, &limited), None, "{name}");
            assert_eq!(limit(&free, &limited), None, "{name}");
        }
    }
}
