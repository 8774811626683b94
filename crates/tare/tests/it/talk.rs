//! Helpers that talk to an agent inside, for the tests of every driver.

use std::time::Duration;

use tare::env::{Channel, ChannelError, Instance};
use tare_model::recipe::ProbeCall;
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{Facts, Params};

/// Time limit of an answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn answer(channel: &mut dyn Channel, request: &Request) -> Reply {
    channel.send(request).unwrap();
    channel.receive(LIMIT).unwrap()
}

pub(crate) fn ask(instance: &mut dyn Instance, request: &Request) -> Reply {
    answer(instance.channel(), request)
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

/// Runs a trial of this probe that lasts about a millisecond.
pub(crate) fn trial(instance: &mut dyn Instance, trial: u64, probe: &str, args: Params) -> Reply {
    let request = Request::Run {
        trial,
        call: ProbeCall {
            name: probe.into(),
            args,
        },
        target_ns: 1_000_000,
        limit_ns: 20_000_000_000,
        workdir: instance.workdir(),
        hold: false,
        turns: None,
        cpu: None,
    };
    ask(instance, &request)
}

pub(crate) fn null_trial(instance: &mut dyn Instance, number: u64) -> Reply {
    let args = Params::new().with("canary", false);
    trial(instance, number, "null", args)
}
