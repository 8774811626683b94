//! Scripted environments for tests of the engine: a driver, its instances and their agents, a manual clock, and an
//! ordered log of everything that happens to them.
//!
//! They order events and inject faults that real environments show only by accident. The drivers' tests show that
//! real environments behave.

use crate::prelude::*;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tare::cx::{Cancel, Clock, CommandError, Event, Exec, Finished, Observer, Running};
use tare::env::{Channel, Configured, Declared, Published, PublishedAt, Setting, SettingsError};
use tare_model::outcome::{Bytes, Exit};
use tare_model::{Unit, whole_ns};

use crate::unread::{Unread, find, unread};

pub(super) const BUILD: &str = "build-1";

/// How long to wait for another thread before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent's reaction to a run request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// The worker succeeds after this many nanoseconds.
    Done(u64),
    /// The worker succeeds after `ns`, with the report of a probe that took `elapsed_ns` by its own clock.
    Report { ns: u64, elapsed_ns: u64 },
    /// The worker cannot run there.
    Unavailable,
    /// The worker fails.
    Failed,
    /// The worker hangs; the agent kills it when asked to.
    Hang,
    /// Worker and agent hang.
    Deaf,
    /// The agent dies.
    Die,
    /// A held worker reports that it is ready, and the agent dies when the worker continues.
    DieAtWork,
    /// The worker listens, and ends when asked to.
    Listen(u16),
    /// The worker listens, and ends by itself before its client does.
    ListenOnce(u16),
    /// The driver itself panics.
    Panic,
    /// A held worker reports that it is ready, and fails after it continues.
    FailAtWork,
    /// A held worker is never ready; the agent kills it when asked to.
    NeverReady,
    /// A held worker completes without having waited.
    Jump,
    /// The machine is suspended for this many nanoseconds while the worker runs; the worker succeeds.
    Suspend(u64),
    /// Ctrl-C is pressed while the worker runs.
    CtrlC,
    /// Ctrl-C kills the agent too, and the host notices the agent's end first.
    DieOfCtrlC,
}

/// The scripted behaviour, by arm.
#[derive(Default)]
pub(super) struct Script {
    /// Arms whose driver is absent.
    pub(super) absent: Vec<&'static str>,
    /// The number of each start of an arm that fails, from 0.
    pub(super) no_start: BTreeMap<&'static str, Vec<u32>>,
    /// The same for starts that show no sign of life until their limit is over.
    pub(super) never_up: BTreeMap<&'static str, Vec<u32>>,
    /// Arms with an agent of another build.
    pub(super) other_build: Vec<&'static str>,
    /// Arms that cannot be removed.
    pub(super) stuck: Vec<&'static str>,
    /// Arms whose driver panics on removal.
    pub(super) panics_at_removal: Vec<&'static str>,
    /// Arms whose instances may stop late: the first one stops only after the second was started.
    pub(super) late: Vec<&'static str>,
    /// Arms that the host cannot reach.
    pub(super) unreachable: Vec<&'static str>,
    /// The reaction to the nth run request of an arm; `Done(1_000_000)` by default.
    pub(super) acts: BTreeMap<(&'static str, u32), Act>,
    /// The same for every request of an arm.
    pub(super) always: BTreeMap<&'static str, Act>,
    /// After this many trials the wall clock is set forward or back by this many nanoseconds.
    pub(super) wall_set: BTreeMap<u32, i64>,
}

/// A scripted machine.
pub(super) struct Stage {
    pub(super) script: Mutex<Script>,
    pub(super) log: Mutex<Vec<String>>,
    pub(super) now_ns: AtomicU64,
    slept_ns: AtomicU64,
    wall_offset_ns: AtomicI64,
    pub(super) cancel: Cancel,
    cancel_after_trials: Mutex<Option<u32>>,
    is_cancel_on_its_way: AtomicBool,
    counts: Mutex<BTreeMap<String, u32>>,
    pub(super) run: RunId,
    agents: Agents,
    scratch: PathBuf,
    pub(super) events: Mutex<Vec<Event>>,
    /// The run requests, in their order.
    pub(super) calls: Mutex<Vec<(String, ProbeCall)>>,
    /// Which of its arm's instances, from 0, each request went to.
    pub(super) called: Mutex<Vec<u32>>,
}

impl Stage {
    /// Never freed, like drivers.
    pub(super) fn new(script: Script) -> &'static Self {
        Box::leak(Box::new(Self {
            script: Mutex::new(script),
            log: Mutex::default(),
            now_ns: AtomicU64::new(0),
            slept_ns: AtomicU64::new(0),
            wall_offset_ns: AtomicI64::new(0),
            cancel: Cancel::new(),
            cancel_after_trials: Mutex::default(),
            is_cancel_on_its_way: AtomicBool::default(),
            counts: Mutex::default(),
            run: RunId::new("run-1").unwrap(),
            agents: agents(),
            scratch: "/scratch".into(),
            events: Mutex::default(),
            calls: Mutex::default(),
            called: Mutex::default(),
        }))
    }

    pub(super) fn plain() -> &'static Self {
        Self::new(Script::default())
    }

    /// Presses Ctrl-C after this many trials.
    pub(super) fn cancel_after(&self, n_trials: u32) {
        *self.cancel_after_trials.lock().unwrap() = Some(n_trials);
    }

    pub(super) fn cx(&'static self) -> Context<'static> {
        Context {
            exec: &NoPrograms,
            clock: self,
            observer: self,
            cancel: &self.cancel,
            agent: self.agents.host(),
            agents: &self.agents,
            scratch: &self.scratch,
            run: &self.run,
            store: None,
        }
    }

    pub(super) fn driver(&'static self, id: &str) -> Option<&'static dyn Driver> {
        let id = ["fake", "other", "host"]
            .into_iter()
            .find(|known| *known == id)?;
        Some(Box::leak(Box::new(FakeDriver {
            stage: self,
            declared: Declared::new(id, "Does as its script says."),
        })))
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn say(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    /// Waits until this line was logged `times` times.
    fn wait_for(&self, line: &str, times: usize) {
        let begun = Instant::now();
        while self.log().iter().filter(|said| *said == line).count() < times {
            assert!(begun.elapsed() < PATIENCE, "`{line}` never came");
            std::thread::yield_now();
        }
    }

    /// Returns how many of this kind came before this one.
    fn count(&self, what: String) -> u32 {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(what).or_default();
        *count += 1;
        *count - 1
    }

    fn pass(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::SeqCst);
    }
}

/// An agent that consists only of its build id.
fn agents() -> Agents {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("<tare-agent-build {BUILD}>")).unwrap();
    Agents::only(file.path()).unwrap()
}

impl Clock for Stage {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn unix_ns(&self) -> i64 {
        let offset_ns = self.wall_offset_ns.load(Ordering::SeqCst);
        1_700_000_000_000_000_000 + self.now_ns().cast_signed() + offset_ns
    }

    fn sleep(&self, duration: Duration) {
        if self.is_cancel_on_its_way.load(Ordering::SeqCst) {
            self.cancel.request();
        }
        self.pass(whole_ns(duration));
    }

    fn slept_ns(&self) -> u64 {
        self.slept_ns.load(Ordering::SeqCst)
    }
}

impl Observer for Stage {
    fn event(&self, event: &Event) {
        self.events.lock().unwrap().push(event.clone());
        if let Event::TrialDone { done, .. } = event {
            self.say("told".into());
            if let Some(by_ns) = self.script.lock().unwrap().wall_set.get(done) {
                self.wall_offset_ns.fetch_add(*by_ns, Ordering::SeqCst);
            }
            if *self.cancel_after_trials.lock().unwrap() == Some(*done) {
                self.cancel.request();
            }
        }
    }
}

struct NoPrograms;

impl Exec for NoPrograms {
    fn run(&self, command: &CommandLine, _: &[u8], _: Duration) -> Result<Finished, CommandError> {
        panic!("the engine started `{command}`");
    }

    fn spawn(&self, command: &CommandLine) -> Result<Box<dyn Running>, CommandError> {
        panic!("the engine started `{command}`");
    }
}

struct FakeDriver {
    stage: &'static Stage,
    declared: Declared,
}

impl Driver for FakeDriver {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    fn detect(&self, _: &Context<'_>) -> Availability {
        let id = self.id();
        self.stage.say(format!("detect {id}"));
        if self.stage.script.lock().unwrap().absent.contains(&id) {
            return Availability::Absent {
                why: format!("{id} is not here"),
                fix: Some("fetch it".into()),
            };
        }
        Availability::Ready(Facts::new())
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        if settings.value("wrong").is_some() {
            return Err(SettingsError {
                setting: "wrong".into(),
                problem: "there is no setting `wrong`".into(),
                hint: None,
            });
        }
        Ok(Box::new(FakeEnvironment {
            stage: self.stage,
            arm,
        }))
    }

    fn sweep(&self, _: &Context<'_>, _: &str) -> Result<Vec<String>, EnvError> {
        Ok(Vec::new())
    }
}

struct FakeEnvironment {
    stage: &'static Stage,
    arm: ArmId,
}

impl Environment for FakeEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, _: &Context<'_>) -> Result<(), EnvError> {
        self.stage.say(format!("prepare {}", self.arm));
        self.stage.pass(5_000_000);
        Ok(())
    }

    fn start(&mut self, _: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        let once = if mode == StartMode::Once { " once" } else { "" };
        self.stage.say(format!("start {}{once}", self.arm));
        self.stage.pass(10_000_000);
        let nth = self.stage.count(format!("start {}", self.arm));
        let script = self.stage.script.lock().unwrap();
        let faults = script.no_start.get(self.arm.as_str());
        if faults.is_some_and(|faults| faults.contains(&nth)) {
            return Err(EnvError::Denied {
                what: "starting".into(),
                fix: Some("ask for it".into()),
            });
        }
        let silent = script.never_up.get(self.arm.as_str());
        if silent.is_some_and(|silent| silent.contains(&nth)) {
            drop(script);
            let limit = Duration::from_secs(60);
            self.stage.pass(whole_ns(limit));
            return Err(EnvError::Timeout {
                phase: "booting; the console said last: random: crng init done".into(),
                limit,
            });
        }
        Ok(Box::new(FakeInstance {
            channel: FakeChannel {
                stage: self.stage,
                arm: self.arm.to_string(),
                nth,
                replies: VecDeque::new(),
                listening: None,
                running: Vec::new(),
                held: BTreeMap::new(),
                is_dead: false,
                is_deaf: false,
            },
        }))
    }

    fn may_leave_late(&self) -> bool {
        let script = self.stage.script.lock().unwrap();
        script.late.contains(&self.arm.as_str())
    }

    fn describe(&self, _: &Context<'_>) -> Facts {
        Facts::from([("engine".into(), "script".into())])
    }

    fn remove(&mut self, _: &Context<'_>) -> Result<(), EnvError> {
        self.stage.say(format!("remove {}", self.arm));
        let script = self.stage.script.lock().unwrap();
        let panics = script.panics_at_removal.contains(&self.arm.as_str());
        let is_stuck = script.stuck.contains(&self.arm.as_str());
        drop(script);
        assert!(!panics, "a driver's own fault");
        if is_stuck {
            return Err(EnvError::Refused {
                what: "removing".into(),
                answer: "device busy".into(),
            });
        }
        Ok(())
    }
}

struct FakeInstance {
    channel: FakeChannel,
}

impl FakeInstance {
    fn reach(&self, address: [u8; 4]) -> Result<IpAddr, Reason> {
        let script = self.channel.stage.script.lock().unwrap();
        if script.unreachable.contains(&self.channel.arm.as_str()) {
            return Err(Reason::NoPath("no network".into()));
        }
        Ok(IpAddr::from(address))
    }
}

impl Instance for FakeInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.reach([10, 0, 0, 2])
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.reach([10, 0, 0, 1])
    }

    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        self.reach([10, 0, 0, 3])
    }

    fn published(&self, at: PublishedAt) -> Result<Published, Reason> {
        let mapped = |address| Published::Mapped {
            address,
            port: 8080,
            inside: 80,
        };
        match at {
            PublishedAt::Loopback => self.reach([127, 0, 0, 1]).map(mapped),
            PublishedAt::Bridge => self.reach([10, 0, 0, 4]).map(Published::Direct),
        }
    }

    fn workdir(&self) -> String {
        format!("/work/{}", self.channel.arm)
    }

    fn stop(self: Box<Self>, _: &Context<'_>) -> Result<(), EnvError> {
        let FakeChannel {
            stage, arm, nth, ..
        } = &self.channel;
        let is_late = stage.script.lock().unwrap().late.contains(&arm.as_str());
        if is_late && *nth == 0 {
            stage.wait_for(&format!("start {arm}"), 2);
        }
        stage.say(format!("stop {arm}"));
        stage.pass(4_000_000);
        Ok(())
    }
}

struct FakeChannel {
    stage: &'static Stage,
    arm: String,
    /// Number of the start of its arm that created it.
    nth: u32,
    /// Pending replies, each with the time that passes before it.
    replies: VecDeque<(u64, Reply)>,
    /// The trial of the listening server, if any, and whether it ends by itself.
    listening: Option<(u64, bool)>,
    /// The trials that hang.
    running: Vec<u64>,
    /// The trials that wait to continue, and their reaction then.
    held: BTreeMap<u64, Act>,
    is_dead: bool,
    is_deaf: bool,
}

impl FakeChannel {
    fn act(&self, nth: u32) -> Act {
        let script = self.stage.script.lock().unwrap();
        let scripted = script
            .acts
            .iter()
            .find(|((arm, number), _)| *arm == self.arm && *number == nth)
            .map(|(_, act)| act)
            .or_else(|| script.always.get(self.arm.as_str()));
        scripted.cloned().unwrap_or(Act::Done(1_000_000))
    }

    fn run(&mut self, trial: u64, call: ProbeCall, hold: bool) {
        self.stage.say(format!("run {} {}", self.arm, call.name));
        let nth = self.stage.count(format!("run {}", self.arm));
        self.stage
            .calls
            .lock()
            .unwrap()
            .push((self.arm.clone(), call));
        self.stage.called.lock().unwrap().push(self.nth);
        let act = self.act(nth);
        let waits = matches!(
            act,
            Act::Done(_) | Act::FailAtWork | Act::Hang | Act::CtrlC | Act::DieAtWork
        );
        if hold && waits {
            self.held.insert(trial, act);
            self.replies.push_back((1_000, Reply::Ready { trial }));
        } else {
            self.work(trial, &act);
        }
    }

    fn work(&mut self, trial: u64, act: &Act) {
        let raw = |text: &str| RawOutput {
            format: "probe/1".into(),
            stdout: Bytes(text.as_bytes().to_vec()),
            stderr: Bytes::default(),
            exit: Exit::Code(0),
        };
        match *act {
            Act::Done(ns) => {
                // A server that ends by itself does so before its client.
                if let Some((server, true)) = self.listening.take_if(|(_, is_once)| *is_once) {
                    let raw = raw("served");
                    self.replies
                        .push_back((0, Reply::Done { trial: server, raw }));
                }
                let raw = raw(&format!("{} {trial}", self.arm));
                self.replies.push_back((ns, Reply::Done { trial, raw }));
            }
            Act::Report { ns, elapsed_ns } => {
                let raw = raw(&report(elapsed_ns));
                self.replies.push_back((ns, Reply::Done { trial, raw }));
            }
            Act::Suspend(ns) => {
                self.stage.slept_ns.fetch_add(ns, Ordering::SeqCst);
                let raw = raw("it slept");
                self.replies.push_back((1_000, Reply::Done { trial, raw }));
            }
            Act::Jump => {
                let raw = raw("early");
                self.replies.push_back((1_000, Reply::Done { trial, raw }));
            }
            Act::Unavailable => {
                let reason = Reason::MissingTool("hammer".into());
                self.replies
                    .push_back((1_000, Reply::Unavailable { trial, reason }));
            }
            Act::Failed | Act::FailAtWork => {
                let failure = Failure::Killed { signal: 11 };
                self.replies
                    .push_back((1_000, Reply::Failed { trial, failure }));
            }
            Act::Hang | Act::NeverReady => self.running.push(trial),
            Act::Deaf => self.is_deaf = true,
            Act::Die | Act::DieAtWork => self.is_dead = true,
            Act::Listen(port) | Act::ListenOnce(port) => {
                let is_once = matches!(act, Act::ListenOnce(_));
                self.listening = Some((trial, is_once));
                self.replies
                    .push_back((1_000, Reply::Listening { trial, port }));
            }
            Act::Panic => panic!("a driver's own fault"),
            Act::DieOfCtrlC => {
                let on_its_way = &self.stage.is_cancel_on_its_way;
                on_its_way.store(true, Ordering::SeqCst);
                self.is_dead = true;
            }
            Act::CtrlC => {
                self.stage.cancel.request();
                self.running.push(trial);
            }
        }
    }
}

impl Channel for FakeChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        if self.is_dead {
            return Err(ChannelError::Closed("broken pipe".into()));
        }
        match request.clone() {
            Request::Hello { .. } => {
                self.stage.say(format!("hello {}", self.arm));
                let script = self.stage.script.lock().unwrap();
                let is_other = script.other_build.contains(&self.arm.as_str());
                let build = if is_other { "build-0" } else { BUILD };
                self.replies.push_back((
                    2_000_000,
                    Reply::Hello {
                        protocol: PROTOCOL,
                        build: build.into(),
                        probes: Vec::new(),
                        slices: BTreeMap::new(),
                    },
                ));
            }
            Request::Facts { paths, .. } => {
                self.stage.say(format!("facts {}", self.arm));
                let facts = Facts::from([("paths".into(), paths.join(","))]);
                self.replies.push_back((1_000, Reply::Facts { facts }));
            }
            Request::Run {
                trial, call, hold, ..
            } => self.run(trial, call, hold),
            Request::Go { trial } => {
                self.stage.say(format!("go {}", self.arm));
                if let Some(act) = self.held.remove(&trial) {
                    self.work(trial, &act);
                }
            }
            Request::Cancel { trial } => {
                self.stage.say(format!("cancel {}", self.arm));
                let is_running = self.running.contains(&trial)
                    || self.held.contains_key(&trial)
                    || self.listening.is_some_and(|(server, _)| server == trial);
                if is_running {
                    self.running.retain(|other| *other != trial);
                    self.held.remove(&trial);
                    self.listening = None;
                    let failure = Failure::Killed { signal: 9 };
                    self.replies
                        .push_back((1_000, Reply::Failed { trial, failure }));
                }
            }
            // Its probes cannot be sliced, so nothing is interleaved; and it has no processor to go to.
            Request::Pad { .. } | Request::Turn { .. } | Request::Meet { .. } | Request::Bye => {}
        }
        Ok(())
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        if self.is_dead {
            return Err(ChannelError::Closed("its stream ended".into()));
        }
        match self.replies.pop_front() {
            Some((ns, reply)) if !self.is_deaf => {
                self.stage.pass(ns);
                if matches!(reply, Reply::Ready { .. }) {
                    self.stage.say(format!("ready {}", self.arm));
                }
                Ok(reply)
            }
            _ => {
                self.stage.pass(whole_ns(limit));
                Err(ChannelError::Timeout(limit))
            }
        }
    }
}

/// Returns the report of the probe `getppid`: constant except for the time that it took by its own clock.
fn report(elapsed_ns: u64) -> String {
    let series = serde_json::json!({
        "metric": "syscall.getppid.time", "unit": Unit::Nanosecond, "values": vec![90.0; 5], "batch": 1_000,
    });
    let report = serde_json::json!({
        "probe": "getppid", "revision": 1, "series": [series], "canary_ns": [1e6, 1e6],
        "elapsed_ns": elapsed_ns, "counters": {}, "timer": {},
    });
    report.to_string()
}

/// A workload whose recipe follows from its name.
pub(super) fn workload(id: &str) -> Option<&'static dyn Workload> {
    fn recipe(id: &str, params: &Params) -> Result<Recipe, ParamError> {
        let call = |name: &str| ProbeCall {
            name: name.into(),
            args: params.clone(),
        };
        if params.value("wrong").is_some() {
            return Err(ParamError {
                param: "wrong".into(),
                problem: "there is no parameter `wrong`".into(),
                hint: None,
            });
        }
        Ok(match id {
            "pair" => Recipe::Pair {
                server: call("serve"),
                client: call("ask"),
            },
            "cluster" => Recipe::Cluster {
                nodes: 3,
                slots: 2,
                service: call("serve"),
                client: call("ask"),
            },
            "life" => Recipe::Lifecycle { held: 0 },
            "held-life" => Recipe::Lifecycle { held: 2 },
            name => Recipe::Probe(call(name)),
        })
    }
    static KNOWN: [Unread; 7] = unread(
        ["w0", "w1", "w2", "pair", "cluster", "life", "held-life"],
        recipe,
    );
    find(&KNOWN, id)
}
