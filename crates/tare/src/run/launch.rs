//! Starts, restarts and gives up arms during a session.
//!
//! Arms are restarted between launches so that the intervals include the variation between starts. An arm that is
//! lost within a launch is restarted once; if it is lost again, it is given up for the rest of the run. Each of these
//! events is stored; nothing is retried silently.

use std::thread::ScopedJoinHandle;

use tare_model::{Facts, Outcome, Trial};

use super::RunError;
use super::exchange::Measured;
use super::session::{Break, Session};
use super::testbed::{Arm, ArmFailure, NoStart, stop_all, tell_starting};
use crate::cx::Event;
use crate::env::EnvError;
use crate::store::{ArmRecord, LaunchRecord, PEER, StoreError};

/// How often an arm may be lost within one launch before it is given up.
const LOSSES_ALLOWED: u32 = 1;

impl Session<'_> {
    /// Fails if the baseline, or an arm requested by name, is unusable before anything was measured.
    pub(super) fn require_essential_arms(&mut self) -> Result<(), Break> {
        if self.cx.cancel.is_requested() {
            return Err(Break::Cancelled);
        }
        let essential = self.testbed.arms.iter().position(|arm| {
            !arm.is_usable() && (arm.spec.required || arm.spec.id == self.study().baseline)
        });
        match essential {
            Some(index) => self.out(Some(index), 0, true),
            None => Ok(()),
        }
    }

    /// (Re)starts every arm for a launch. An arm that does not start at the first launch is absent. Instances that
    /// may leave late stop while others start; all are gone before anything is timed.
    pub(super) fn launch(&mut self, launch: u32, block: u32) -> Result<(), Break> {
        let cx = self.cx;
        let begun_ns = cx.clock.now_ns();
        let (late, at_once): (Vec<_>, Vec<_>) = self
            .in_start_order(launch)
            .into_iter()
            .partition(|index| self.arm(*index).environment.may_leave_late());
        let leaving: Vec<_> = late
            .iter()
            .map(|index| (*index, self.arm(*index).leave()))
            .filter(|(_, instances)| !instances.is_empty())
            .collect();
        let mut stopping_ns = 0;
        let (restarted, left) = std::thread::scope(|scope| {
            let stop = |(index, instances)| {
                scope.spawn(move || {
                    let begun_ns = cx.clock.now_ns();
                    let stopped = stop_all(&cx, instances);
                    (index, stopped, cx.clock.now_ns().saturating_sub(begun_ns))
                })
            };
            let threads: Vec<_> = leaving.into_iter().map(stop).collect();
            let order = at_once.into_iter().chain(late);
            let restarted = self.restart(order, launch, block, &mut stopping_ns);
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            let left: Vec<_> = joined
                .map(|left| left.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            (restarted, left)
        });
        for (index, stopped, took_ns) in left {
            stopping_ns += took_ns;
            self.tell_stopped(index, stopped)?;
        }
        restarted?;
        let is_first = self.launched.is_none();
        self.launched = Some(launch);
        let all_ns = cx.clock.now_ns().saturating_sub(begun_ns);
        self.pace
            .restart(all_ns, (!is_first).then_some(stopping_ns));
        Ok(())
    }

    /// Stops each arm's instances and starts it again; adds the time of stopping to `stopping_ns`.
    fn restart(
        &mut self,
        order: impl Iterator<Item = Option<usize>>,
        launch: u32,
        block: u32,
        stopping_ns: &mut u64,
    ) -> Result<(), Break> {
        let cx = self.cx;
        let is_first = self.launched.is_none();
        for index in order {
            if cx.cancel.is_requested() {
                return Err(Break::Cancelled);
            }
            let stop_begun_ns = cx.clock.now_ns();
            let arm = self.arm(index);
            arm.losses = 0;
            let stopped = arm.stop(&cx);
            self.tell_stopped(index, stopped)?;
            *stopping_ns += cx.clock.now_ns().saturating_sub(stop_begun_ns);
            // In cold studies the first launch checks that the arm works and collects its facts; after that every
            // trial gets a new instance.
            if is_first || !self.dispatcher.is_cold {
                self.start(index, launch, block, is_first)?;
            }
            if self.dispatcher.is_cold && index.is_some() {
                let stopped = self.arm(index).stop(&cx);
                self.tell_stopped(index, stopped)?;
            }
        }
        Ok(())
    }

    /// Stores and prints a failure to stop.
    fn tell_stopped(
        &mut self,
        index: Option<usize>,
        stopped: Result<(), EnvError>,
    ) -> Result<(), StoreError> {
        match stopped {
            Ok(()) => Ok(()),
            Err(error) => {
                let text = format!("`{}`: stopping: {error}", self.arm(index).spec.id);
                self.say(text)
            }
        }
    }

    /// The peer as `None`, then every arm by its index. Instances started earlier may affect an arm, so the order
    /// differs between launches.
    fn in_start_order(&self, launch: u32) -> Vec<Option<usize>> {
        let peer = self.testbed.peer.iter().map(|_| None);
        let arms = self.plan.start_order(launch, self.testbed.arms.len());
        peer.chain(arms.into_iter().map(Some)).collect()
    }

    fn arm(&mut self, index: Option<usize>) -> &mut Arm {
        match index {
            Some(index) => &mut self.testbed.arms[index],
            None => self
                .testbed
                .peer
                .as_mut()
                .expect("asked for only if there is one"),
        }
    }

    /// Starts an arm, unless it is out, and stores its facts, or the reason why it is out.
    fn start(
        &mut self,
        index: Option<usize>,
        launch: u32,
        block: u32,
        is_first: bool,
    ) -> Result<(), Break> {
        let cx = self.cx;
        let pad_bytes = index.map_or(0, |index| self.plan.pad_bytes(launch, index));
        let arm = self.arm(index);
        arm.pad_bytes = pad_bytes;
        if arm.is_usable() {
            tell_starting(&cx, arm, "starting");
            match arm.start(&cx) {
                Ok(facts) => {
                    let record = LaunchRecord {
                        arm: index.map_or_else(|| PEER.to_owned(), |_| arm.spec.id.to_string()),
                        launch,
                        started_unix_ns: cx.clock.unix_ns(),
                        facts,
                    };
                    self.store.launch(&record)?;
                    if let Some(index) = index {
                        self.note_facts(index, block, is_first, record.facts)?;
                    }
                    if let (Some(index), true) = (index, is_first) {
                        self.record_arm(index, true)?;
                    }
                    return Ok(());
                }
                Err(NoStart::Cancelled) => return Err(Break::Cancelled),
                // A failure after Ctrl-C says nothing about the arm.
                Err(NoStart::ArmFailure(_)) if cx.cancel.is_requested() => {
                    return Err(Break::Cancelled);
                }
                Err(NoStart::ArmFailure(trouble)) => arm.out = Some(trouble),
            }
        } else if !is_first {
            // It was out before; that is stored already.
            return Ok(());
        }
        self.out(index, block, is_first)
    }

    /// Handles an arm that is out from now on.
    pub(super) fn out(
        &mut self,
        index: Option<usize>,
        block: u32,
        is_first: bool,
    ) -> Result<(), Break> {
        let arm = self.arm(index);
        let (id, is_required) = (arm.spec.id.clone(), arm.spec.required);
        let ArmFailure { why, fix } = arm.out.clone().expect("only an arm that is out comes here");
        self.cx.observer.event(&Event::Absent {
            arm: id.to_string(),
            reason: why.clone(),
            fix: fix.clone(),
        });
        let Some(index) = index else {
            self.say(format!(
                "no agent on the host for two-ended workloads: {why}"
            ))?;
            return Ok(());
        };
        self.record_arm(index, !is_first)?;
        let is_baseline = id == self.study().baseline;
        if is_first && (is_baseline || is_required) {
            return Err(Break::Failed(RunError::RequiredArm { arm: id, why, fix }));
        }
        if is_baseline {
            return Err(Break::Failed(RunError::BaselineLost {
                arm: id,
                block,
                why,
            }));
        }
        if !is_first {
            self.say(format!("`{id}` was given up in block {block}: {why}"))?;
        }
        Ok(())
    }

    fn record_arm(&mut self, index: usize, is_available: bool) -> Result<(), StoreError> {
        let arm = &self.testbed.arms[index];
        let trouble = arm.out.as_ref();
        self.store.arm(&ArmRecord {
            arm: arm.spec.id.clone(),
            driver: arm.spec.driver.clone(),
            available: is_available,
            reason: trouble.map(|trouble| trouble.why.clone()),
            fix: trouble.and_then(|trouble| trouble.fix.clone()),
            facts: if is_available {
                arm.environment.describe(&self.cx)
            } else {
                Facts::new()
            },
        })
    }

    /// Restarts what was lost in a trial, once per launch; after that it is given up.
    pub(super) fn after(
        &mut self,
        trial: &Trial,
        index: usize,
        measured: &Measured,
    ) -> Result<(), Break> {
        if let Some(aside) = &measured.aside {
            self.say(format!(
                "`{}` in block {}: {aside}",
                trial.cell.arm, trial.block
            ))?;
        }
        let lost = [
            measured.is_arm_lost.then_some(Some(index)),
            measured.is_peer_lost.then_some(None),
        ];
        for index in lost.into_iter().flatten() {
            let why = match &measured.outcome {
                Outcome::Failed(failure) => failure.to_string(),
                _ => "its agent does not answer".to_owned(),
            };
            let cx = self.cx;
            let arm = self.arm(index);
            arm.losses += 1;
            let id = arm.spec.id.clone();
            let is_over = arm.losses > LOSSES_ALLOWED;
            if is_over {
                arm.out = Some(ArmFailure {
                    why: format!("lost again after a restart in block {}: {why}", trial.block),
                    fix: None,
                });
            }
            let stopped = arm.stop(&cx);
            self.tell_stopped(index, stopped)?;
            if is_over {
                self.out(index, trial.block, false)?;
            } else {
                self.say(format!(
                    "`{id}` was lost in block {} and is started again: {why}",
                    trial.block
                ))?;
                if !self.dispatcher.is_cold || index.is_none() {
                    self.start(index, trial.launch, trial.block, false)?;
                }
            }
        }
        Ok(())
    }
}
