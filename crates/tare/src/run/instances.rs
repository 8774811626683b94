//! Runs a trial with several instances at once: all are prepared, then all are started together.
//!
//! Every worker is held after its preparation. When the last one is ready, all get the message to continue, one right
//! after the other. The workers record the remaining delay between the first and the last start, and it is reported.
//! The trial is one record with the raw output of every instance. If one instance fails, the trial fails, and the
//! output of the others is kept.
//!
//! Instances are spread as processes of one instance of the arm, or each in a separate instance. The latter start
//! with the arm and stay idle while other workloads are measured.
//! Limits: instances that finish early leave the others alone; the analysis computes the overlap from the workers'
//! reports.

use tare_model::outcome::{Bytes, Exit};
use tare_model::wire::Request;
use tare_model::{
    INSTANCES_FORMAT, InstanceRecord, Outcome, ProbeCall, RawOutput, Reason, Spread, Together,
};

use super::exchange::{Cancelled, Dispatcher, Measured};
use super::group::{Group, Member, State};
use super::testbed::{Arm, NoStart};
use crate::cx::Context;
use crate::env::Instance;

/// Position of the instance's number in the number of its worker: above the trial's number and the mark of a pair's
/// server.
const INSTANCE_SHIFT: u32 = 33;

impl Arm {
    /// Starts the additional instances. If there are too few, the arm is still usable; the reason is kept for the
    /// workloads that need them.
    pub(super) fn start_extra(&mut self, cx: &Context<'_>) -> Result<(), Cancelled> {
        self.start_extra_up_to(cx, self.extra.wanted)
    }

    /// The same with a given number, for a trial that has its own instances.
    pub(super) fn start_extra_up_to(
        &mut self,
        cx: &Context<'_>,
        count: u32,
    ) -> Result<(), Cancelled> {
        self.extra.shortage = None;
        while self.extra.instances.len() < count as usize {
            match self.start_one(cx) {
                Ok(instance) => self.extra.instances.push(instance),
                Err(NoStart::Cancelled) => return Err(Cancelled),
                Err(NoStart::ArmFailure(trouble)) => {
                    self.extra.shortage = Some(Reason::NoEnvironment(format!(
                        "instance {} of this environment: {}",
                        self.extra.instances.len() + 2,
                        trouble.why
                    )));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Dispatcher<'_> {
    /// Runs `count` workers of one call at once, spread evenly over `ends`.
    pub(super) fn together(
        &self,
        trial: u64,
        spread: Spread,
        count: u32,
        call: &ProbeCall,
        ends: Vec<&mut dyn Instance>,
    ) -> Result<Measured, Cancelled> {
        let members = (0..count)
            .map(|index| {
                let number = trial | (u64::from(index) + 1) << INSTANCE_SHIFT;
                Member::new(number, index as usize % ends.len())
            })
            .collect();
        let mut group = Group::new(self, self.limit_ns, ends, members);
        let (done, started_unix_ns, elapsed_ns) = self.timed(|| group.carry_out(call));
        done?;
        let is_failed = |member: &Member| {
            matches!(
                member.state,
                State::Ended {
                    outcome: Outcome::Failed(_),
                    ..
                }
            )
        };
        if group.members.iter().any(is_failed) && self.is_cancelled_after_all() {
            return Err(Cancelled);
        }
        let is_arm_lost = group.lost.contains(&true);
        let together = group.into_record(spread);
        Ok(Measured {
            started_unix_ns,
            elapsed_ns,
            aside: is_arm_lost.then(|| together.problem()).flatten(),
            ..self.nothing(outcome(&together), is_arm_lost)
        })
    }
}

/// The trial's outcome: the output of all instances; or the reason, if the call cannot run here and there is no
/// output.
fn outcome(together: &Together) -> Outcome {
    let outcomes = || together.instances.iter().map(|record| &record.outcome);
    let is_completed = |outcome: &Outcome| matches!(outcome, Outcome::Completed(_));
    if !outcomes().any(is_completed)
        && let Some(reason) = outcomes().find_map(|outcome| match outcome {
            Outcome::Unavailable(reason) => Some(reason.clone()),
            _ => None,
        })
    {
        return Outcome::Unavailable(reason);
    }
    Outcome::Completed(RawOutput {
        format: INSTANCES_FORMAT.into(),
        stdout: Bytes(
            serde_json::to_vec(together).expect("texts and whole numbers are always JSON"),
        ),
        stderr: Bytes::default(),
        exit: Exit::Code(i32::from(!outcomes().all(is_completed))),
    })
}

impl Group<'_, '_, '_> {
    fn carry_out(&mut self, call: &ProbeCall) -> Result<(), Cancelled> {
        for index in 0..self.members.len() {
            let Member { number, end, .. } = self.members[index];
            let workdir = self.ends[end].workdir();
            let limit_ns = self.dispatcher.limit_ns;
            let request = self.dispatcher.request(number, call, limit_ns, workdir);
            self.send(end, &held(request))?;
        }
        let is_prepared = |member: &Member| !matches!(member.state, State::Preparing);
        self.wait_until(is_prepared, true)?;
        if self.members.iter().any(Member::has_ended) {
            return self.end_the_others();
        }
        self.let_go()?;
        self.wait_until(Member::has_ended, false)
    }

    fn into_record(self, spread: Spread) -> Together {
        let now_ns = self.now_ns();
        let instances = self
            .members
            .into_iter()
            .map(|member| {
                let start_ns = member.went_on_ns;
                let (outcome, end_ns) = member.ended_or(now_ns);
                InstanceRecord {
                    outcome,
                    start_ns,
                    end_ns,
                }
            })
            .collect();
        Together { spread, instances }
    }
}

/// The request, with the worker held until all are ready.
fn held(mut request: Request) -> Request {
    if let Request::Run { hold, .. } = &mut request {
        *hold = true;
    }
    request
}
