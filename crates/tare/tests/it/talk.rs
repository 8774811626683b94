//! Helpers that talk to an agent inside, for the tests of every driver.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use tare::cx::Context;
use tare::env::{Channel, ChannelError, Environment, Instance, StartMode};
use tare_model::recipe::ProbeCall;
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{Facts, Params, ProbeReport, whole_ns};

use crate::world::{World, params};

/// Time limit of an answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn answer(channel: &mut dyn Channel, request: &Request) -> Reply {
    channel.send(request).unwrap();
    channel.receive(LIMIT).unwrap()
}

pub(crate) fn ask(instance: &mut dyn Instance, request: &Request) -> Reply {
    answer(instance.channel(), request)
}

/// What the tests of every driver do with an environment.
pub(crate) trait Tried {
    /// Starts an instance whose agent answers.
    fn greeted(&mut self, cx: &Context<'_>, mode: StartMode) -> Box<dyn Instance>;

    /// Starts a resident one.
    fn resident(&mut self, world: &World) -> Box<dyn Instance> {
        self.greeted(&world.cx(), StartMode::Resident)
    }

    /// Stops an instance and removes the environment.
    fn end(&mut self, instance: Box<dyn Instance>, cx: &Context<'_>);
}

impl<E: Environment + ?Sized> Tried for E {
    fn greeted(&mut self, cx: &Context<'_>, mode: StartMode) -> Box<dyn Instance> {
        let mut instance = self.start(cx, mode).unwrap();
        hello(instance.as_mut());
        instance
    }

    fn end(&mut self, instance: Box<dyn Instance>, cx: &Context<'_>) {
        instance.stop(cx).unwrap();
        self.remove(cx).unwrap();
    }
}

pub(crate) fn hello(instance: &mut dyn Instance) {
    let reply = ask(instance, &Request::Hello { protocol: PROTOCOL });
    assert!(
        matches!(reply, Reply::Hello { protocol, .. } if protocol == PROTOCOL),
        "{reply:?}"
    );
}

/// Asserts that the container's first process ends with its agent, and the channel reports its status.
pub(crate) fn assert_ends_with_its_agent(instance: &mut dyn Instance) {
    assert_eq!(ask(instance, &Request::Bye), Reply::Bye);
    let error = instance.channel().receive(LIMIT).unwrap_err();
    assert!(
        matches!(&error, ChannelError::Closed(why) if why.contains("status 0")),
        "{error}"
    );
    let again = instance.channel().send(&Request::Bye).unwrap_err();
    assert!(matches!(again, ChannelError::Closed(_)), "{again}");
}

/// Asserts that packets reach this address and come back: no process listens there, so the connection is refused.
#[track_caller]
pub(crate) fn assert_reached(address: IpAddr) {
    let attempt = TcpStream::connect_timeout(&(address, 9).into(), Duration::from_secs(5));
    let error = attempt.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}

/// Returns the agent's facts about its environment and these paths.
pub(crate) fn facts_of(channel: &mut dyn Channel, paths: Vec<String>) -> Facts {
    let tools = Vec::new();
    match answer(channel, &Request::Facts { paths, tools }) {
        Reply::Facts { facts } => facts,
        other => panic!("no facts but {other:?}"),
    }
}

pub(crate) fn inner_facts(instance: &mut dyn Instance) -> Facts {
    let paths = vec![instance.workdir()];
    facts_of(instance.channel(), paths)
}

/// Returns the call of a probe.
pub(crate) fn call(probe: &str, args: Params) -> ProbeCall {
    let name = probe.into();
    ProbeCall { name, args }
}

/// Returns the request for a trial that lasts about as long as `target`.
pub(crate) fn run(
    instance: &dyn Instance,
    trial: u64,
    call: ProbeCall,
    target: Duration,
    limit: Duration,
) -> Request {
    Request::Run {
        trial,
        call,
        target_ns: whole_ns(target),
        limit_ns: whole_ns(limit),
        workdir: instance.workdir(),
        hold: false,
        turns: None,
        cpu: None,
    }
}

/// Makes a call that is not repeated.
pub(crate) fn once(instance: &mut dyn Instance, trial: u64, call: ProbeCall) -> Reply {
    let request = run(instance, trial, call, Duration::ZERO, LIMIT);
    ask(instance, &request)
}

/// Returns the report of a trial, which must be done.
#[track_caller]
pub(crate) fn report(reply: Reply) -> ProbeReport {
    match reply {
        Reply::Done { raw, .. } => serde_json::from_slice(&raw.stdout.0).unwrap(),
        other => panic!("not done but {other:?}"),
    }
}

/// Runs a trial of this probe that lasts about a millisecond.
pub(crate) fn trial(instance: &mut dyn Instance, trial: u64, probe: &str, args: Params) -> Reply {
    let target = Duration::from_millis(1);
    let request = run(instance, trial, call(probe, args), target, LIMIT);
    ask(instance, &request)
}

pub(crate) fn null_trial(instance: &mut dyn Instance, number: u64) -> Reply {
    let args = params("canary = false");
    trial(instance, number, "null", args)
}
