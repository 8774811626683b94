//! Checks whether podman can be used here by running a container quickly; leaves nothing behind.
//!
//! Podman's version would prove nothing: the start of a container fails, because of the kernel's cgroups, the user's
//! ids or Tare's capabilities. So the agent is packed and run once without a network, within one time limit.
//! Limits: an arm's network, storage and limits are only tested by its rehearsal.

use crate::env::prelude::*;

use tare_model::whole_ns;

use super::super::image::packed::agent_for;
use super::super::image::{AGENT_PATH, ImageTar};
use super::super::record;
use super::caller::Caller;
use super::facts::{info, note_hybrid};
use super::instance::remove_containers;
use super::settings::{Network, Settings};
use super::{CreationRecord, Podman, errors, image};

/// Time limit for everything except the cleanup; takes 2 s on a quiet machine.
const LIMIT: Duration = Duration::from_secs(10);

/// Tries these settings.
pub(super) fn detect(cx: &Context<'_>, driver: &Podman, settings: &Settings) -> Availability {
    match driver
        .caller(cx, settings)
        .and_then(|caller| attempt(cx, &caller, settings))
    {
        Ok(facts) => Availability::Ready(facts),
        Err(error) => absent(error),
    }
}

fn attempt(cx: &Context<'_>, caller: &Caller, settings: &Settings) -> Result<Facts, EnvError> {
    let until_ns = cx.clock.now_ns() + whole_ns(LIMIT);
    let left = || Duration::from_nanos(until_ns.saturating_sub(cx.clock.now_ns()));
    let arm = ArmId::new("detect").expect("the constant is a name");
    let mut engine = info(cx, caller, left())?;
    let agent = agent_for(cx.agents, &engine.architecture)?;
    let place = CreationRecord::new(caller);
    record::add(cx, "podman", &arm, &place)?;
    let root = ImageTar::new().with_agent(&agent.bytes()?);
    let name = format!("tare-{}-{arm}", cx.run);
    let ran = image::import(cx, caller, &arm, root, left()).and_then(|()| {
        let ran = run(cx, caller, settings, &arm, &name, left());
        match ran {
            Err(error) if errors::is_hybrid(&error) && caller.runtime.is_none() => {
                note_hybrid(cx, caller);
                let chosen = errors::chosen();
                engine
                    .facts
                    .insert(fact::ENGINE_RUNTIME_CHOSEN.into(), chosen);
                let caller = Caller {
                    runtime: Some("runc".into()),
                    ..caller.clone()
                };
                run(cx, &caller, settings, &arm, &name, left())
            }
            other => other,
        }
    });
    let cleaned = remove_containers(cx, caller, &[&name])
        .and_then(|()| image::remove(cx, caller, &image::own_name(cx.run, &arm)))
        .and_then(|_| record::forget(cx, "podman", &arm, &place));
    // The refusal is what the reader needs; a failed cleanup would repeat it.
    ran?;
    cleaned?;
    Ok(engine.facts)
}

/// Runs the agent's `version` in a container of this name.
fn run(
    cx: &Context<'_>,
    caller: &Caller,
    settings: &Settings,
    arm: &ArmId,
    name: &str,
    limit: Duration,
) -> Result<(), EnvError> {
    let settings = Settings {
        network: Network::None,
        ..settings.essentials()
    };
    let mut arguments = vec![
        "run".to_owned(),
        "--rm".into(),
        "--pull=never".into(),
        "--stop-timeout=1".into(),
        format!("--name={name}"),
        "--label=tare=1".into(),
        format!("--label=tare.run={}", cx.run),
        format!("--entrypoint=[\"{AGENT_PATH}\"]"),
    ];
    arguments.extend(settings.options());
    arguments.extend([image::own_name(cx.run, arm), "version".into()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Podman exits with the agent's status. The output may be lost, because podman can attach too late.
    caller
        .call(cx, "run the agent in a container", &arguments, &[], limit)
        .map(drop)
}

/// Converts an error to the reason why podman cannot be used.
fn absent(error: EnvError) -> Availability {
    match error {
        EnvError::Timeout { phase, .. } => Availability::Absent {
            why: format!(
                "{phase} was not done when the {} s for trying it were over",
                LIMIT.as_secs()
            ),
            fix: Some("try again when the machine has less to do".into()),
        },
        other => other.into(),
    }
}
