//! Owns the arms of a run: prepares, starts and stops them, and finally removes everything.
//!
//! The [`Testbed`] holds everything that was started and removes it when it is closed or dropped, so that success,
//! error, Ctrl-C and panic all end the same way. A failure to remove one thing, even a panic in its driver, does not
//! prevent removing the others; it is added to the report.
//! Limits: leftovers of `kill -9` are removed by the drivers' `sweep`.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tare_model::cluster::node_name;
use tare_model::fact;
use tare_model::tool::ToolQuestion;
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, ArmSpec, Facts, Params, Reason, whole_count};

use super::RunError;
use super::exchange::Cancelled;
use super::extra::Extra;
use super::resident::ResidentServer;
use crate::cx::{AgentBinary, CONTROL_LIMIT, Context, Event};
use crate::env::question::{self, NoAnswer};
use crate::env::{
    Availability, Channel, Charged, Driver, EnvError, Environment, FileRequest, Instance, StartMode,
};
use crate::store::PEER;

/// Additional time limit for each tool that an agent is asked about: the agent gives a tool five seconds to print its
/// version, and reads its file.
const TOOL_LIMIT: Duration = Duration::from_secs(8);

/// Why an arm is not measured, or no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArmFailure {
    pub(super) why: String,
    pub(super) fix: Option<String>,
}

impl From<EnvError> for ArmFailure {
    fn from(error: EnvError) -> Self {
        Self {
            fix: error.hint(),
            why: error.to_string(),
        }
    }
}

/// What the workloads of a study need in addition to the arms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// Whether an agent on the host is needed.
    pub(super) peer: bool,
    /// Instances of an arm that one workload needs at once, as its nodes.
    pub(super) nodes: u32,
    /// Additional instances of an arm, for workloads that run in several environments at once.
    pub(super) extra: u32,
    /// Whether every trial gets new instances.
    pub(super) is_cold: bool,
}

/// Why an arm did not start.
pub(super) enum NoStart {
    /// The user pressed Ctrl-C.
    Cancelled,
    /// Starting it failed.
    ArmFailure(ArmFailure),
}

impl<T: Into<ArmFailure>> From<T> for NoStart {
    fn from(trouble: T) -> Self {
        Self::ArmFailure(trouble.into())
    }
}

/// One arm, or the peer on the host.
pub(super) struct Arm {
    pub(super) spec: ArmSpec,
    driver: &'static dyn Driver,
    pub(super) environment: Box<dyn Environment>,
    /// The resident instance.
    pub(super) instance: Option<Box<dyn Instance>>,
    /// Additional instances as second node, third node, …, or why there are none.
    pub(super) siblings: Result<Vec<Box<dyn Instance>>, Reason>,
    /// Most nodes that a workload needs.
    nodes: u32,
    /// Tools that the agent is asked about at every start.
    tools: Vec<ToolQuestion>,
    /// Additional instances for workloads that run in several environments at once.
    pub(super) extra: Extra,
    /// The user's server in the resident instance, once it has started.
    pub(super) server: Option<ResidentServer>,
    /// The instance of a single trial.
    pub(super) passing: Option<Box<dyn Instance>>,
    /// Why the arm is out, if it is.
    pub(super) out: Option<ArmFailure>,
    /// Probes whose work its agent can slice.
    pub(super) cuts: BTreeSet<String>,
    /// How often the arm was lost in this launch.
    pub(super) losses: u32,
    /// Padding that shifts the memory of its workers in this launch, bytes.
    pub(super) pad_bytes: u32,
    /// Whether there may be something to remove.
    is_touched: bool,
}

impl Arm {
    pub(super) fn is_usable(&self) -> bool {
        self.out.is_none()
    }

    /// Where the host's kernel counts the resource use of the resident instance.
    pub(super) fn charged(&self) -> Charged {
        let instance = self.instance.as_ref();
        instance.map_or(Charged::Nowhere, |instance| instance.charged())
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
            self.out = Some(ArmFailure { why, fix });
        }
    }

    /// Starts the resident instance, verifies its agent and returns the facts.
    pub(super) fn start(&mut self, cx: &Context<'_>) -> Result<Facts, NoStart> {
        self.server = None;
        let started = self.environment.start(cx, StartMode::Resident)?;
        let instance = self.instance.insert(started);
        let facts = greet(cx, instance.channel(), self.pad_bytes).and_then(|(agent, cuts)| {
            self.cuts = cuts;
            let workdir = instance.workdir();
            let mut facts = ask_facts(cx, instance.channel(), workdir, &self.tools)?;
            facts.insert(fact::AGENT_BUILD.into(), agent.build.clone());
            facts.insert(fact::AGENT_SHA256.into(), agent.sha256.clone());
            facts.insert(fact::AGENT_PAD.into(), self.pad_bytes.to_string());
            Ok(facts)
        });
        if facts.is_err() {
            // The user needs this failure; one of stopping it would say the same, and `remove` handles the rest.
            let _ = stop(cx, &mut self.instance);
            return facts;
        }
        let mut facts = facts?;
        if self.nodes > 1 {
            self.start_siblings(cx, self.nodes)
                .map_err(|Cancelled| NoStart::Cancelled)?;
            self.tell_of_siblings(&mut facts);
        }
        self.start_extra(cx)
            .map_err(|Cancelled| NoStart::Cancelled)?;
        Ok(facts)
    }

    /// Adds facts about the nodes, their addresses and shared folder.
    fn tell_of_siblings(&self, facts: &mut Facts) {
        let mut tell =
            |name: String, value: String| facts.insert(fact::name_for(fact::CLUSTER, &name), value);
        let siblings = match &self.siblings {
            Ok(siblings) => siblings,
            Err(reason) => {
                tell("absent".into(), reason.to_string());
                return;
            }
        };
        let nodes = self.instance.iter().chain(siblings);
        for (number, node) in (1..).zip(nodes) {
            let address = node.address_from_arm();
            let address = address.map_or_else(|reason| reason.to_string(), |ip| ip.to_string());
            tell(node_name(number), address);
            if number == 1 {
                let shared = node.shared().unwrap_or_else(|reason| reason.to_string());
                tell("shared".into(), shared);
            }
        }
        tell("nodes".into(), (siblings.len() + 1).to_string());
    }

    /// Starts one more instance and greets its agent.
    pub(super) fn start_one(&mut self, cx: &Context<'_>) -> Result<Box<dyn Instance>, NoStart> {
        let mut instance = self.environment.start(cx, StartMode::Resident)?;
        if let Err(no_reply) = greet(cx, instance.channel(), self.pad_bytes) {
            // The user needs this failure, not one of stopping it.
            let _ = instance.stop(cx);
            return Err(no_reply);
        }
        Ok(instance)
    }

    /// Starts additional instances until there are `nodes` in all. If that fails, the arm is still usable; the reason
    /// is kept for the workloads that need them.
    pub(super) fn start_siblings(&mut self, cx: &Context<'_>, nodes: u32) -> Result<(), Cancelled> {
        let mut siblings: Vec<Box<dyn Instance>> = Vec::new();
        let mut lacking = None;
        while lacking.is_none() && whole_count(siblings.len() + 1) < nodes {
            match self.start_one(cx) {
                Ok(sibling) => siblings.push(sibling),
                Err(no_start) => lacking = Some(no_start),
            }
        }
        let Some(no_start) = lacking else {
            self.siblings = Ok(siblings);
            return Ok(());
        };
        let number = whole_count(siblings.len() + 2);
        for sibling in siblings {
            // Too few nodes are useless; `remove` handles those that cannot be stopped.
            let _ = sibling.stop(cx);
        }
        match no_start {
            NoStart::Cancelled => Err(Cancelled),
            NoStart::ArmFailure(trouble) => {
                self.siblings = Err(Reason::NoEnvironment(format!(
                    "{} next to the first instance: {}",
                    node_name(number),
                    trouble.why
                )));
                Ok(())
            }
        }
    }

    /// Takes out the additional nodes, to be stopped.
    fn take_siblings(&mut self) -> Vec<Box<dyn Instance>> {
        std::mem::replace(&mut self.siblings, Err(not_started())).unwrap_or_default()
    }

    /// Takes out all instances, to be stopped; the resident one is last.
    pub(super) fn leave(&mut self) -> Vec<Box<dyn Instance>> {
        let mut instances = std::mem::take(&mut self.extra.instances);
        instances.extend(self.take_siblings());
        instances.extend(self.instance.take());
        instances
    }

    /// Stops all resident instances.
    pub(super) fn stop(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        stop_all(cx, self.leave())
    }
}

/// Stops all of these instances; returns the first failure.
pub(super) fn stop_all(
    cx: &Context<'_>,
    instances: Vec<Box<dyn Instance>>,
) -> Result<(), EnvError> {
    let stop = |first: Result<(), EnvError>, instance: Box<dyn Instance>| {
        let stopped = instance.stop(cx);
        first.and(stopped)
    };
    instances.into_iter().fold(Ok(()), stop)
}

fn not_started() -> Reason {
    Reason::NoEnvironment("further instances have not been started".into())
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

/// Greets the agent; refuses one that this Tare does not bring. Returns it and its probes that can be sliced.
/// `pad_bytes` shifts the memory of its workers.
pub(super) fn greet<'a>(
    cx: &Context<'a>,
    channel: &mut dyn Channel,
    pad_bytes: u32,
) -> Result<(&'a AgentBinary, BTreeSet<String>), NoStart> {
    let hello = Request::Hello { protocol: PROTOCOL };
    match ask(cx, channel, &hello, CONTROL_LIMIT)? {
        Reply::Hello {
            protocol,
            build,
            slices,
            ..
        } => {
            let shown = cx.agents.greeted(protocol, &build);
            let agent = shown.map_err(|why| ArmFailure { why, fix: None })?;
            if pad_bytes > 0 {
                let sent = channel.send(&Request::Pad { bytes: pad_bytes });
                sent.map_err(EnvError::from)?;
            }
            Ok((agent, slices.into_keys().collect()))
        }
        _ => Err(out_of_turn("hello")),
    }
}

/// Most bytes of facts from an agent: a hundred times the longest known. They are stored for each launch.
const MOST_FACT_BYTES: usize = 1 << 20;

fn ask_facts(
    cx: &Context<'_>,
    channel: &mut dyn Channel,
    workdir: String,
    tools: &[ToolQuestion],
) -> Result<Facts, NoStart> {
    let request = Request::Facts {
        paths: vec![String::from("/"), workdir],
        tools: tools.to_vec(),
    };
    let limit = CONTROL_LIMIT + TOOL_LIMIT * u32::try_from(tools.len()).unwrap_or(u32::MAX);
    let Reply::Facts { facts } = ask(cx, channel, &request, limit)? else {
        return Err(out_of_turn("what it sees"));
    };
    let pairs = facts.iter();
    let bytes: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
    if bytes <= MOST_FACT_BYTES {
        return Ok(facts);
    }
    Err(NoStart::ArmFailure(ArmFailure {
        why: format!(
            "its agent says {bytes} bytes about its place, and at most {MOST_FACT_BYTES} are kept"
        ),
        fix: None,
    }))
}

fn out_of_turn(question: &str) -> NoStart {
    NoStart::ArmFailure(ArmFailure {
        why: format!("its agent did not answer {question} but something else"),
        fix: None,
    })
}

/// Returns the answer to a control request.
fn ask(
    cx: &Context<'_>,
    channel: &mut dyn Channel,
    request: &Request,
    limit: Duration,
) -> Result<Reply, NoStart> {
    question::ask(cx, channel, request, limit).map_err(|no_answer| match no_answer {
        NoAnswer::Cancelled => NoStart::Cancelled,
        NoAnswer::Channel(error) => EnvError::from(error).into(),
    })
}

/// All arms of a run, and the peer on the host.
pub(super) struct Testbed<'a> {
    cx: Context<'a>,
    pub(super) arms: Vec<Arm>,
    /// The agent on the host for workloads with two ends, if some need it.
    pub(super) peer: Option<Arm>,
}

impl<'a> Testbed<'a> {
    /// Configures every arm; has no effect outside this process.
    pub(super) fn new(
        cx: &Context<'a>,
        arms: &[ArmSpec],
        needs: Needs,
        driver: &dyn Fn(&str) -> Option<&'static dyn Driver>,
        wanted: &FileRequest,
        tools: &[ToolQuestion],
    ) -> Result<Self, RunError> {
        let configured = |spec: &ArmSpec| {
            let driver = driver(&spec.driver).ok_or_else(|| RunError::UnknownDriver {
                arm: spec.id.clone(),
                driver: spec.driver.escape_debug().to_string(),
            })?;
            let arm = spec.id.clone();
            let built = driver.configure(arm.clone(), &spec.settings);
            let mut environment = built.map_err(|source| RunError::Settings { arm, source })?;
            environment.provide(wanted);
            environment.provide(&FileRequest {
                programs: spec.change.program.iter().cloned().collect(),
                ..FileRequest::default()
            });
            let is_peer = spec.id.as_str() == PEER;
            let nodes = if is_peer { 1 } else { needs.nodes.max(1) };
            if nodes > 1 {
                environment.gather(nodes);
            }
            Ok::<Arm, RunError>(Arm {
                spec: spec.clone(),
                driver,
                environment,
                instance: None,
                siblings: Err(not_started()),
                nodes: if needs.is_cold { 1 } else { nodes },
                tools: tools.to_vec(),
                extra: Extra::new(needs.extra * u32::from(!is_peer && !needs.is_cold)),
                server: None,
                passing: None,
                out: None,
                cuts: BTreeSet::new(),
                losses: 0,
                pad_bytes: 0,
                is_touched: false,
            })
        };
        let arms = arms.iter().map(configured).collect::<Result<_, _>>()?;
        let peer = needs
            .peer
            .then(|| {
                let id = ArmId::new(PEER).expect("a plain word is a name");
                configured(&ArmSpec::new(id, "host", Params::new()))
            })
            .transpose()?;
        Ok(Self {
            cx: *cx,
            arms,
            peer,
        })
    }

    /// The usable arms.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(|arm| arm.is_usable())
    }

    /// Number of usable arms.
    pub(super) fn n_usable(&self) -> u64 {
        self.usable().count() as u64
    }

    /// Index of the arm with this name.
    pub(super) fn place_of(&self, id: &ArmId) -> Option<usize> {
        self.arms.iter().position(|arm| arm.spec.id == *id)
    }

    /// Detects which arms are usable here.
    pub(super) fn detect(&mut self) {
        let mut known = BTreeMap::new();
        for arm in self.arms.iter_mut().chain(self.peer.as_mut()) {
            arm.detect(&self.cx, &mut known);
        }
    }

    /// Prepares the usable arms; returns `false` after Ctrl-C.
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

    /// Stops every instance and removes every environment, in reverse order; returns the failures.
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
            attempt(&mut || stop_all(&cx, arm.take_siblings()));
            attempt(&mut || stop_all(&cx, std::mem::take(&mut arm.extra.instances)));
            attempt(&mut || stop(&cx, &mut arm.instance));
            attempt(&mut || arm.environment.remove(&cx));
        }
        trouble
    }
}

impl Drop for Testbed<'_> {
    fn drop(&mut self) {
        // Empty after `close`. Otherwise a panic is unwinding, and failures cannot be reported.
        let _ = self.close();
    }
}

pub(super) fn tell_starting(cx: &Context<'_>, arm: &Arm, what: &'static str) {
    cx.observer.event(&Event::Starting {
        arm: arm.spec.id.to_string(),
        what,
    });
}
