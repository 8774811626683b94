//! The arms of a run as they stand: prepared, started, lost, and in the end all removed.
//!
//! Whatever was started hangs on the [`Rig`], and the rig removes it when it is closed or dropped, so that
//! success, error, Ctrl-C and a panic all leave by the same door. A failure to remove one thing, even a
//! panic in its driver, does not keep the others from being removed; it is added to the trouble.
//! What it cannot see: what `kill -9` leaves behind. That is what the drivers' `sweep` is for.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, ArmSpec, Facts, Params, Reason};

use super::RunError;
use super::dispatch::Cancelled;
use super::instances::Extra;
use crate::cx::{AgentBinary, CONTROL_LIMIT, Context, Event};
use crate::env::{
    Availability, Channel, ChannelError, Driver, EnvError, Environment, Instance, StartMode, Wanted,
};
use crate::store::PEER;

/// The longest that the host waits for a reply without looking for Ctrl-C.
pub(super) const SLICE: Duration = Duration::from_millis(250);

/// Why an arm is not, or no longer, measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) why: String,
    pub(super) fix: Option<String>,
}

impl From<EnvError> for Trouble {
    fn from(error: EnvError) -> Self {
        let fix = match &error {
            EnvError::Absent { fix, .. } | EnvError::Denied { fix, .. } => fix.clone(),
            _ => None,
        };
        Self {
            why: error.to_string(),
            fix,
        }
    }
}

/// What the workloads of a study need besides the arms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// An agent on the host.
    pub(super) peer: bool,
    /// Two instances of an arm at once.
    pub(super) second: bool,
    /// So many instances of an arm beside the first, for workloads of which each has an environment of its own.
    pub(super) extra: u32,
    /// Every trial has instances of its own.
    pub(super) is_cold: bool,
}

/// Why an arm did not start.
pub(super) enum NoStart {
    /// Somebody pressed Ctrl-C.
    Cancelled,
    /// It failed.
    Trouble(Trouble),
}

impl<T: Into<Trouble>> From<T> for NoStart {
    fn from(trouble: T) -> Self {
        Self::Trouble(trouble.into())
    }
}

/// One arm, or the peer on the host.
pub(super) struct Arm {
    pub(super) spec: ArmSpec,
    driver: &'static dyn Driver,
    pub(super) environment: Box<dyn Environment>,
    /// The resident instance.
    pub(super) instance: Option<Box<dyn Instance>>,
    /// A second one beside it for the workloads between two, or why there is none.
    pub(super) second: Result<Box<dyn Instance>, Reason>,
    /// Whether some workload is between two instances.
    needs_second: bool,
    /// Those beside it for workloads of which each has an environment of its own.
    pub(super) extra: Extra,
    /// An instance for one trial only.
    pub(super) passing: Option<Box<dyn Instance>>,
    /// Why it is out, once it is.
    pub(super) out: Option<Trouble>,
    /// How many times it was lost in this launch.
    pub(super) losses: u32,
    /// Whether there may be something to remove.
    is_touched: bool,
}

impl Arm {
    pub(super) fn is_usable(&self) -> bool {
        self.out.is_none()
    }

    fn detect(&mut self, cx: &Context<'_>, known: &mut BTreeMap<&'static str, Availability>) {
        let found = match self.environment.detect(cx) {
            Some(found) => found,
            None => known
                .entry(self.driver.id())
                .or_insert_with(|| self.driver.detect(cx))
                .clone(),
        };
        if let Availability::Absent { why, fix } = found {
            self.out = Some(Trouble { why, fix });
        }
    }

    /// Starts the resident instance, makes sure that the right agent answers, and asks what it sees.
    pub(super) fn start(&mut self, cx: &Context<'_>) -> Result<Facts, NoStart> {
        let started = self.environment.start(cx, StartMode::Resident)?;
        let instance = self.instance.insert(started);
        let facts = greet(cx, instance.channel()).and_then(|agent| {
            let workdir = instance.workdir();
            let mut facts = ask_facts(cx, instance.channel(), workdir)?;
            facts.insert("agent.build".into(), agent.build.clone());
            facts.insert("agent.sha256".into(), agent.sha256.clone());
            Ok(facts)
        });
        if facts.is_err() {
            // Its own failure is what the reader needs; that of stopping it would say the same again, and
            // `remove` comes back to whatever is left.
            let _ = stop(cx, &mut self.instance);
            return facts;
        }
        if self.needs_second {
            self.start_second(cx)
                .map_err(|Cancelled| NoStart::Cancelled)?;
        }
        self.start_extra(cx)
            .map_err(|Cancelled| NoStart::Cancelled)?;
        facts
    }

    /// Starts a second instance. An arm that can have only one is an arm all the same: then the reason is
    /// kept for the workloads that need two.
    pub(super) fn start_second(&mut self, cx: &Context<'_>) -> Result<(), Cancelled> {
        let started = self
            .environment
            .start(cx, StartMode::Resident)
            .map_err(NoStart::from)
            .and_then(|mut second| match greet(cx, second.channel()) {
                Ok(_) => Ok(second),
                Err(silence) => {
                    // Why it does not answer is what the reader needs.
                    let _ = second.stop(cx);
                    Err(silence)
                }
            });
        self.second = match started {
            Ok(second) => Ok(second),
            Err(NoStart::Cancelled) => return Err(Cancelled),
            Err(NoStart::Trouble(trouble)) => Err(Reason::NoEnvironment(format!(
                "a second instance beside the first: {}",
                trouble.why
            ))),
        };
        Ok(())
    }

    /// Stops the second instance, if there is one.
    pub(super) fn stop_second(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        match std::mem::replace(&mut self.second, Err(not_started())) {
            Ok(second) => second.stop(cx),
            Err(_) => Ok(()),
        }
    }

    /// Stops the resident instance and those beside it.
    pub(super) fn stop(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let beside = self.stop_extra(cx).and(self.stop_second(cx));
        stop(cx, &mut self.instance).and(beside)
    }
}

fn not_started() -> Reason {
    Reason::NoEnvironment("a second instance has not been started".into())
}

/// Stops an instance, if there is one.
pub(super) fn stop(
    cx: &Context<'_>,
    instance: &mut Option<Box<dyn Instance>>,
) -> Result<(), EnvError> {
    match instance.take() {
        Some(instance) => instance.stop(cx),
        None => Ok(()),
    }
}

/// Says hello, and refuses an agent that is none of those that this Tare brought.
pub(super) fn greet<'a>(
    cx: &Context<'a>,
    channel: &mut dyn Channel,
) -> Result<&'a AgentBinary, NoStart> {
    channel
        .send(&Request::Hello { protocol: PROTOCOL })
        .map_err(EnvError::from)?;
    match answer(cx, channel)? {
        Reply::Hello { protocol, .. } if protocol != PROTOCOL => Err(Trouble {
            why: format!("its agent speaks protocol {protocol}, and this Tare speaks {PROTOCOL}"),
            fix: None,
        }
        .into()),
        Reply::Hello { build, .. } => cx.agents.of_build(&build).ok_or_else(|| {
            NoStart::Trouble(Trouble {
                why: format!(
                    "its agent is build `{}`, which is not what this Tare brought (`{}`)",
                    build.escape_debug(),
                    cx.agent.build
                ),
                fix: None,
            })
        }),
        _ => Err(out_of_turn("hello")),
    }
}

fn ask_facts(
    cx: &Context<'_>,
    channel: &mut dyn Channel,
    workdir: String,
) -> Result<Facts, NoStart> {
    let paths = vec![String::from("/"), workdir];
    channel
        .send(&Request::Facts { paths })
        .map_err(EnvError::from)?;
    match answer(cx, channel)? {
        Reply::Facts { facts } => Ok(facts),
        _ => Err(out_of_turn("what it sees")),
    }
}

fn out_of_turn(question: &str) -> NoStart {
    NoStart::Trouble(Trouble {
        why: format!("its agent did not answer {question} but something else"),
        fix: None,
    })
}

/// Waits for one reply to a control request.
fn answer(cx: &Context<'_>, channel: &mut dyn Channel) -> Result<Reply, NoStart> {
    let asked_ns = cx.clock.now_ns();
    loop {
        match channel.receive(SLICE) {
            Ok(reply) => return Ok(reply),
            Err(ChannelError::Timeout(_)) => {
                if cx.cancel.is_requested() {
                    return Err(NoStart::Cancelled);
                }
                let waited_ns = cx.clock.now_ns().saturating_sub(asked_ns);
                if waited_ns >= CONTROL_LIMIT.as_nanos() as u64 {
                    return Err(EnvError::from(ChannelError::Timeout(CONTROL_LIMIT)).into());
                }
            }
            Err(error) => return Err(EnvError::from(error).into()),
        }
    }
}

/// All arms of a run and the peer on the host.
pub(super) struct Rig<'a> {
    cx: Context<'a>,
    pub(super) arms: Vec<Arm>,
    /// The agent on the host that is the other end of two-ended workloads, if some need it.
    pub(super) peer: Option<Arm>,
}

impl<'a> Rig<'a> {
    /// Configures every arm; touches nothing outside.
    pub(super) fn new(
        cx: &Context<'a>,
        arms: &[ArmSpec],
        needs: Needs,
        driver: &dyn Fn(&str) -> Option<&'static dyn Driver>,
        wanted: &Wanted,
    ) -> Result<Self, RunError> {
        let configured = |spec: &ArmSpec| {
            let driver = driver(&spec.driver).ok_or_else(|| RunError::UnknownDriver {
                arm: spec.id.clone(),
                driver: spec.driver.escape_debug().to_string(),
            })?;
            let mut environment =
                driver
                    .configure(spec.id.clone(), &spec.settings)
                    .map_err(|source| RunError::Settings {
                        arm: spec.id.clone(),
                        source,
                    })?;
            environment.provide(wanted);
            Ok::<Arm, RunError>(Arm {
                spec: spec.clone(),
                driver,
                environment,
                instance: None,
                second: Err(not_started()),
                needs_second: needs.second && spec.id.as_str() != PEER && !needs.is_cold,
                extra: Extra::new(if spec.id.as_str() == PEER || needs.is_cold {
                    0
                } else {
                    needs.extra
                }),
                passing: None,
                out: None,
                losses: 0,
                is_touched: false,
            })
        };
        let arms = arms.iter().map(configured).collect::<Result<_, _>>()?;
        let peer = needs
            .peer
            .then(|| {
                configured(&ArmSpec {
                    id: ArmId::new(PEER).expect("a plain word is a name"),
                    driver: "host".into(),
                    settings: Params::new(),
                    required: false,
                })
            })
            .transpose()?;
        Ok(Self {
            cx: *cx,
            arms,
            peer,
        })
    }

    /// Finds out which arms can be used here.
    pub(super) fn detect(&mut self) {
        let mut known = BTreeMap::new();
        for arm in self.arms.iter_mut().chain(self.peer.as_mut()) {
            arm.detect(&self.cx, &mut known);
        }
    }

    /// Prepares those that can be used. `false` after Ctrl-C.
    pub(super) fn prepare(&mut self) -> bool {
        let cx = self.cx;
        for arm in self.arms.iter_mut().chain(self.peer.as_mut()) {
            if cx.cancel.is_requested() {
                return false;
            }
            if arm.is_usable() {
                tell_starting(&cx, arm, "preparing");
                arm.is_touched = true;
                if let Err(error) = arm.environment.prepare(&cx) {
                    arm.out = Some(error.into());
                }
            }
        }
        !cx.cancel.is_requested()
    }

    /// Stops every instance and removes every environment, the last first; says what could not be.
    pub(super) fn close(&mut self) -> Vec<String> {
        let cx = self.cx;
        let mut trouble = Vec::new();
        let mut arms: Vec<Arm> = self.arms.drain(..).chain(self.peer.take()).collect();
        for arm in arms.iter_mut().rev().filter(|arm| arm.is_touched) {
            let id = arm.spec.id.clone();
            let mut attempt = |action: &mut dyn FnMut() -> Result<(), EnvError>| {
                let problem = match catch_unwind(AssertUnwindSafe(action)) {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "its driver panicked".to_owned(),
                };
                trouble.push(format!("{id}: {problem}"));
            };
            attempt(&mut || stop(&cx, &mut arm.passing));
            attempt(&mut || arm.stop_second(&cx));
            attempt(&mut || arm.stop_extra(&cx));
            attempt(&mut || stop(&cx, &mut arm.instance));
            attempt(&mut || arm.environment.remove(&cx));
        }
        trouble
    }
}

impl Drop for Rig<'_> {
    fn drop(&mut self) {
        // Empty after `close`. Otherwise a panic is on its way, and there is nobody to tell.
        let _ = self.close();
    }
}

pub(super) fn tell_starting(cx: &Context<'_>, arm: &Arm, what: &'static str) {
    cx.observer.event(&Event::Starting {
        arm: arm.spec.id.to_string(),
        what,
    });
}
