//! Runs one trial: from a recipe to an outcome.
//!
//! The recipe decides which of the arm's instances take part: one probe, a pair, a cluster, several at once, or an
//! instance made for this trial alone. `exchange` contains how the host waits for workers.

use tare_model::outcome::{Bytes, Exit};
use tare_model::{
    Failure, LIFECYCLE_FORMAT, LifecycleReport, Outcome, Path, RawOutput, Reason, Recipe, Spread,
    Trial,
};

use super::cluster::Calls;
use super::exchange::{Cancelled, Dispatcher, Measured};
use super::pair::Others;
use super::testbed::{Arm, ArmFailure, NoStart, greet, stop, stop_all};
use crate::env::{EnvError, Instance, StartMode};
use crate::service::user;

impl Dispatcher<'_> {
    /// Runs one trial.
    pub(super) fn measure(
        &self,
        trial: &Trial,
        recipe: &Recipe,
        arm: &mut Arm,
        peer: Option<&mut Arm>,
    ) -> Result<Measured, Cancelled> {
        if let Recipe::Lifecycle { held } = recipe {
            return self.lifecycle_while_held(arm, *held);
        }
        let recipe = &arm.spec.change.laid_into(recipe, trial.cell.path);
        if !self.is_cold {
            return match user::asked(recipe) {
                Some((call, client)) => {
                    self.served(u64::from(trial.sequence), (&call, &client), arm)
                }
                None => self.in_resident(trial, recipe, arm, peer),
            };
        }
        match arm.start_one(&self.cx) {
            Ok(instance) => arm.instance = Some(instance),
            Err(NoStart::Cancelled) => return Err(Cancelled),
            Err(NoStart::ArmFailure(trouble)) => {
                return Ok(self.nothing(Outcome::Failed(Failure::Lost(trouble.why)), true));
            }
        }
        let nodes = recipe.nodes(trial.cell.path);
        if nodes > 1 {
            arm.start_siblings(&self.cx, nodes)?;
        }
        if let (Recipe::Probe(_), Some(Spread::Environments)) = (recipe, self.spread_of(trial)) {
            arm.start_extra_up_to(&self.cx, trial.cell.instances.saturating_sub(1))?;
        }
        let mut measured = self.in_resident(trial, recipe, arm, peer)?;
        if let Err(error) = arm.stop(&self.cx) {
            measured.aside = Some(format!("stopping an instance: {error}"));
        }
        Ok(measured)
    }

    /// Where the instances of a trial's workload run, if there may be several.
    fn spread_of(&self, trial: &Trial) -> Option<Spread> {
        *self.spreads.get(trial.workload_index as usize)?
    }

    /// Runs one trial in the instances of an arm that are running.
    fn in_resident(
        &self,
        trial: &Trial,
        recipe: &Recipe,
        arm: &mut Arm,
        peer: Option<&mut Arm>,
    ) -> Result<Measured, Cancelled> {
        let (number, count) = (u64::from(trial.sequence), trial.cell.instances);
        let Some(instance) = arm.instance.as_mut() else {
            let outcome = Outcome::Failed(Failure::Lost("it is not running".into()));
            return Ok(self.nothing(outcome, true));
        };
        if let (Recipe::Probe(call), Some(spread)) = (recipe, self.spread_of(trial)) {
            return match arm.extra.ends(instance.as_mut(), spread, count) {
                Ok(ends) => self.together(number, spread, count, call, ends),
                Err(reason) => Ok(self.nothing(Outcome::Unavailable(reason), false)),
            };
        }
        let siblings = arm.siblings.as_mut().map_err(|reason| reason.clone());
        let others = Others {
            peer,
            siblings: siblings.map(Vec::as_mut_slice),
        };
        self.execute(trial, recipe, instance.as_mut(), others)
    }

    fn execute(
        &self,
        trial: &Trial,
        recipe: &Recipe,
        instance: &mut dyn Instance,
        others: Others<'_>,
    ) -> Result<Measured, Cancelled> {
        let number = u64::from(trial.sequence);
        match recipe {
            Recipe::Probe(call) => {
                let request = self.request(number, call, self.limit_ns, instance.workdir());
                let channel = instance.channel();
                let (ended, started_unix_ns, elapsed_ns) =
                    self.timed(|| self.round(channel, number, &request, &mut Vec::new()));
                let (outcome, is_arm_lost) = self.settle(ended)?;
                Ok(Measured {
                    started_unix_ns,
                    elapsed_ns,
                    ..self.nothing(outcome, is_arm_lost)
                })
            }
            Recipe::Pair { server, client } => {
                let path = trial.cell.path.unwrap_or(Path::Loopback);
                self.pair(number, path, (server, client), instance, others)
            }
            Recipe::Cluster {
                nodes,
                slots,
                service,
                client,
            } => {
                let calls = Calls {
                    nodes: *nodes,
                    slots: *slots,
                    service,
                    client,
                };
                self.cluster(number, &calls, instance, others.siblings)
            }
            Recipe::Lifecycle { .. } => {
                unreachable!("a lifecycle needs no instance and was dealt with")
            }
        }
    }

    /// The lifecycle of an environment while at least `held` additional instances of its arm are idle.
    fn lifecycle_while_held(&self, arm: &mut Arm, held: u32) -> Result<Measured, Cancelled> {
        let n_before = arm.extra.instances.len();
        let shortage = arm.extra.shortage.clone();
        if held as usize > n_before {
            arm.start_extra_up_to(&self.cx, 1)?;
            arm.extra.shortage = match arm.extra.shortage.take() {
                None => arm.extra.does_not_fit(held),
                some => some,
            };
            if arm.extra.shortage.is_none() {
                arm.start_extra_up_to(&self.cx, held)?;
            }
        }
        let short = std::mem::replace(&mut arm.extra.shortage, shortage);
        let mut measured = match short.filter(|_| arm.extra.instances.len() < held as usize) {
            Some(reason) => self.nothing(Outcome::Unavailable(reason), false),
            None => self.lifecycle(arm, held)?,
        };
        let added = arm.extra.instances.split_off(n_before);
        let stopped = stop_all(&self.cx, added);
        if let Err(error) = stopped {
            let aside = format!("stopping an instance: {error}");
            measured.aside.get_or_insert(aside);
        }
        Ok(measured)
    }

    /// Creates an environment, waits for its agent's first reply, and removes it; timed from outside.
    fn lifecycle(&self, arm: &mut Arm, held: u32) -> Result<Measured, Cancelled> {
        let cx = &self.cx;
        let started_unix_ns = cx.clock.unix_ns();
        let origin_ns = cx.clock.now_ns();
        let since = || cx.clock.now_ns().saturating_sub(origin_ns);
        let started = match arm.environment.start(cx, StartMode::Once) {
            Err(EnvError::Absent { why, .. }) => {
                let reason = Reason::NoEnvironment(why);
                return Ok(self.nothing(Outcome::Unavailable(reason), false));
            }
            other => other.map_err(ArmFailure::from),
        };
        let life = (|| {
            let instance = arm.passing.insert(started?);
            let started_ns = since();
            // No pad: it would start the worker twice.
            greet(cx, instance.channel(), 0)?;
            let ready_ns = since();
            let memory_bytes = instance.charged().memory_bytes();
            let idle = arm.extra.instances.iter().take(held as usize);
            let idle = idle.map(|instance| instance.charged().memory_bytes());
            let all_memory_bytes: Option<u64> = std::iter::once(memory_bytes).chain(idle).sum();
            let disk_bytes = instance.disk_bytes(cx);
            let looked_ns = since();
            stop(cx, &mut arm.passing)?;
            let stop_ns = since().saturating_sub(looked_ns);
            Ok(LifecycleReport {
                created_ns: 0,
                started_ns: Some(started_ns),
                ready_ns,
                removed_ns: ready_ns.saturating_add(stop_ns),
                stop_ns: Some(stop_ns),
                memory_bytes,
                all_memory_bytes: all_memory_bytes.filter(|_| held > 0),
                disk_bytes,
            })
        })();
        let elapsed_ns = since();
        let outcome = match life {
            Ok(report) => Outcome::Completed(RawOutput {
                format: LIFECYCLE_FORMAT.into(),
                stdout: Bytes(serde_json::to_vec(&report).expect("whole numbers are always JSON")),
                stderr: Bytes::default(),
                exit: Exit::Code(0),
            }),
            Err(NoStart::Cancelled) => return Err(Cancelled),
            Err(NoStart::ArmFailure(_)) if cx.cancel.is_requested() => return Err(Cancelled),
            Err(NoStart::ArmFailure(trouble)) => Outcome::Failed(Failure::Lost(trouble.why)),
        };
        let aside = stop(cx, &mut arm.passing)
            .err()
            .map(|error: EnvError| format!("stopping an instance: {error}"));
        Ok(Measured {
            started_unix_ns,
            elapsed_ns,
            aside,
            ..self.nothing(outcome, false)
        })
    }
}
