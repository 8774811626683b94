//! Arms that change the command: a driver around a driver.
//!
//! A counterfactual is often not a setting of the environment but a variable or a prefix of the command, and all
//! arms of a block must run one and the same workload, or they could not be paired. So an arm may carry, beside
//! its driver's own settings, some that begin with `command.`; they are taken out before the driver sees them,
//! and put into effect where the request passes on its way to the agent. Settings that begin so and are not
//! known here are notes for those who read the stored study.
//! What it cannot see: requests of other probes; those pass unchanged.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tare_model::command::{COMMAND_PROBE, Stdout};
use tare_model::wire::{Reply, Request};
use tare_model::{ArmId, CommandCall, Facts, Params, Reason, Value};

use crate::cx::Context;
use crate::env::{
    self, Availability, Channel, ChannelError, Charged, Driver, EnvError, Environment, Instance,
    Published, PublishedAt, SettingSpec, SettingsError, StartMode, Wanted,
};

/// What every such setting begins with.
pub const COMMAND: &str = "command.";
/// Words before the command: a list.
pub const PREFIX: &str = "command.prefix";
/// Variables of the command: a list of `NAME=text`.
pub const VARIABLES: &str = "command.variables";
/// Where the command writes: `console` for the environment's own output.
pub const STDOUT: &str = "command.stdout";
/// Files that are dropped from the page cache before each run of the command: a list.
pub const COLD: &str = "command.cold";
/// A program that is to be packed where nothing can be shown.
pub const PROGRAM: &str = "command.program";
/// What must be shown inside so that the host's own program runs there, where an image brings another: a list.
pub const HOST_FILES: &str = "command.host_files";
/// The causes that are switched off, or on, in this arm: a list.
pub const CAUSES: &str = "command.causes";
/// The arm's place on the ladder, from 1.
pub const RUNG: &str = "command.rung";
/// What the rung adds.
pub const TITLE: &str = "command.title";
/// What was seen of the command here in the first look: JSON.
pub const SEEN: &str = "command.seen";
/// The run that gave rise to this one, by its name; noted in one of the arms.
pub const BEFORE: &str = "command.before";
/// The arm that this one is a changed copy of, or, where it is the baseline that is changed, stands for.
pub const OF: &str = "command.of";

/// The driver of this name, as `why` uses it. One of each is made once and kept.
pub fn find(id: &str) -> Option<&'static dyn Driver> {
    static KNOWN: std::sync::OnceLock<Vec<Around>> = std::sync::OnceLock::new();
    let known = KNOWN.get_or_init(|| env::DRIVERS.iter().map(|driver| Around(*driver)).collect());
    known
        .iter()
        .find(|around| around.0.id() == id)
        .map(|around| around as &dyn Driver)
}

/// The driver's own settings.
pub fn own(settings: &Params) -> Params {
    Params(
        settings
            .0
            .iter()
            .filter(|(name, _)| !name.starts_with(COMMAND))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// What an arm changes of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Change {
    prefix: Vec<String>,
    variables: BTreeMap<String, String>,
    stdout: Option<Stdout>,
    cold: Vec<String>,
}

/// The texts of a list.
pub fn texts(settings: &Params, name: &str) -> Vec<String> {
    match settings.value(name) {
        Some(Value::List(values)) => values.iter().map(Value::to_string).collect(),
        Some(value) => vec![value.to_string()],
        None => Vec::new(),
    }
}

/// Texts as a list.
pub fn list<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::List(
        texts
            .into_iter()
            .map(|text| Value::Text(text.into()))
            .collect(),
    )
}

impl Change {
    fn of(settings: &Params) -> Self {
        let variables = texts(settings, VARIABLES);
        Self {
            prefix: texts(settings, PREFIX),
            variables: variables
                .iter()
                .filter_map(|text| text.split_once('='))
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            stdout: (settings.text(STDOUT) == Some("console")).then_some(Stdout::Console),
            cold: texts(settings, COLD),
        }
    }

    fn apply(&self, call: &mut CommandCall) {
        call.argv.splice(0..0, self.prefix.iter().cloned());
        call.variables.extend(self.variables.clone());
        call.cold.extend(self.cold.iter().cloned());
        if let Some(stdout) = self.stdout.filter(|_| call.pick.is_none() && !call.observe) {
            call.stdout = stdout;
        }
    }

    /// The request as this arm gets it.
    fn changed(&self, request: &Request) -> Option<Request> {
        let Request::Run { call, .. } = request else {
            return None;
        };
        if *self == Self::default() || call.name != COMMAND_PROBE {
            return None;
        }
        let mut command = CommandCall::from_args(&call.args).ok()?;
        self.apply(&mut command);
        let mut request = request.clone();
        if let Request::Run { call, .. } = &mut request {
            call.args.0.extend(command.to_probe().args.0);
        }
        Some(request)
    }
}

struct Around(&'static dyn Driver);

impl Driver for Around {
    fn id(&self) -> &'static str {
        self.0.id()
    }

    fn about(&self) -> &'static str {
        self.0.about()
    }

    fn settings(&self) -> &'static [SettingSpec] {
        self.0.settings()
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        self.0.detect(cx)
    }

    fn configure(
        &self,
        arm: ArmId,
        settings: &Params,
    ) -> Result<Box<dyn Environment>, SettingsError> {
        let mut inner = self.0.configure(arm, &own(settings))?;
        let programs = texts(settings, PROGRAM);
        if !programs.is_empty() {
            inner.provide(&Wanted {
                programs,
                ..Wanted::default()
            });
        }
        Ok(Box::new(AroundEnvironment {
            inner,
            change: Change::of(settings),
        }))
    }

    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>, EnvError> {
        self.0.sweep(cx, run)
    }
}

struct AroundEnvironment {
    inner: Box<dyn Environment>,
    change: Change,
}

impl Environment for AroundEnvironment {
    fn arm(&self) -> &ArmId {
        self.inner.arm()
    }

    fn provide(&mut self, wanted: &Wanted) {
        self.inner.provide(wanted);
    }

    fn gather(&mut self, nodes: u32) {
        self.inner.gather(nodes);
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        self.inner.prepare(cx)
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        Ok(Box::new(AroundInstance {
            inner: self.inner.start(cx, mode)?,
            change: self.change.clone(),
        }))
    }

    fn detect(&self, cx: &Context<'_>) -> Option<Availability> {
        self.inner.detect(cx)
    }

    fn describe(&self, cx: &Context<'_>) -> Facts {
        self.inner.describe(cx)
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        self.inner.remove(cx)
    }
}

struct AroundInstance {
    inner: Box<dyn Instance>,
    change: Change,
}

impl Channel for AroundInstance {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        match self.change.changed(request) {
            Some(changed) => self.inner.channel().send(&changed),
            None => self.inner.channel().send(request),
        }
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        self.inner.channel().receive(limit)
    }
}

impl Instance for AroundInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        self
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.inner.address_from_host()
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.inner.host_address()
    }

    fn charged(&self) -> Charged {
        self.inner.charged()
    }

    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        self.inner.address_from_arm()
    }

    fn published(&self, at: PublishedAt) -> Result<Published, Reason> {
        self.inner.published(at)
    }

    fn shared(&self) -> Result<String, Reason> {
        self.inner.shared()
    }

    fn workdir(&self) -> String {
        self.inner.workdir()
    }

    fn stop(self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        self.inner.stop(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance that shares a folder, and whose other answers are not asked for.
    struct Sharing;

    impl Channel for Sharing {
        fn send(&mut self, _request: &Request) -> Result<(), ChannelError> {
            unreachable!("nothing is sent")
        }
        fn receive(&mut self, _limit: Duration) -> Result<Reply, ChannelError> {
            unreachable!("nothing is received")
        }
    }

    impl Instance for Sharing {
        fn channel(&mut self) -> &mut dyn Channel {
            self
        }
        fn address_from_host(&self) -> Result<IpAddr, Reason> {
            Err(Reason::NoPath("not asked for".into()))
        }
        fn host_address(&self) -> Result<IpAddr, Reason> {
            Err(Reason::NoPath("not asked for".into()))
        }
        fn shared(&self) -> Result<String, Reason> {
            Ok("/shared".into())
        }
        fn workdir(&self) -> String {
            "/work".into()
        }
        fn stop(self: Box<Self>, _cx: &Context<'_>) -> Result<(), EnvError> {
            Ok(())
        }
    }

    #[test]
    fn a_changed_arm_shares_the_folder_that_its_environment_shares() {
        let around = AroundInstance {
            inner: Box::new(Sharing),
            change: Change::of(&Params::new()),
        };
        assert_eq!(around.shared().unwrap(), "/shared");
    }

    #[test]
    fn an_arms_changes_reach_the_command_and_nothing_else() {
        let settings = Params::new()
            .with("cpus", 1i64)
            .with(PREFIX, list(["nice", "-n", "5"]))
            .with(VARIABLES, list(["A=1", "B=x=y"]))
            .with(COLD, list(["/data"]))
            .with(TITLE, "a note");
        assert_eq!(own(&settings), Params::new().with("cpus", 1i64));
        let change = Change::of(&settings);
        let run = |name: &str| {
            let mut call = CommandCall::new("sleep", ["1"]).to_probe();
            call.name = name.to_owned();
            Request::Run {
                hold: false,
                turns: None,
                cpu: None,
                trial: 1,
                call,
                target_ns: 0,
                limit_ns: 0,
                workdir: "/".into(),
            }
        };
        let Some(Request::Run { call, .. }) = change.changed(&run(COMMAND_PROBE)) else {
            panic!("unchanged");
        };
        let call = CommandCall::from_args(&call.args).unwrap();
        assert_eq!(call.argv, ["nice", "-n", "5", "sleep", "1"]);
        assert_eq!(call.variables["B"], "x=y");
        assert_eq!(call.cold, ["/data"]);
        assert_eq!(change.changed(&run("getppid")), None);
        assert_eq!(change.changed(&Request::Bye), None);
        assert_eq!(
            Change::of(&Params::new()).changed(&run(COMMAND_PROBE)),
            None
        );
    }

    #[test]
    fn every_driver_is_found_under_its_own_name() {
        for driver in env::DRIVERS {
            assert_eq!(find(driver.id()).unwrap().id(), driver.id());
        }
        assert!(find("no-such").is_none());
    }
}
