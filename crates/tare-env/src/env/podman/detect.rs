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
use super::caller::{Access, Caller};
use super::facts::{info, note_hybrid};
use super::instance::remove_containers;
use super::settings::{Network, Settings};
use super::{CreationRecord, Podman, errors, fixed_arm, image};

/// Time limit for everything except the cleanup; takes 2 s on a quiet machine.
const LIMIT: Duration = Duration::from_secs(10);

/// Tries these settings.
pub(super) fn detect(cx: &Context<'_>, driver: &Podman, settings: &Settings) -> Availability {
    match driver
        .access(cx, settings)
        .and_then(|access| attempt(access.caller(cx), settings))
    {
        Ok(facts) => Availability::Ready(facts),
        Err(error) => absent(error),
    }
}

fn attempt(caller: Caller<'_>, settings: &Settings) -> Result<Facts> {
    let cx = caller.cx;
    let until_ns = cx.clock.now_ns() + whole_ns(LIMIT);
    let left = || Duration::from_nanos(until_ns.saturating_sub(cx.clock.now_ns()));
    let in_time = || caller.within(left());
    let arm = fixed_arm("detect");
    let mut engine = info(in_time())?;
    let agent = agent_for(cx.agents, &engine.architecture)?;
    let place = CreationRecord::new(caller.access);
    record::add(cx, "podman", &arm, &place)?;
    let root = ImageTar::new().with_agent(&agent.bytes()?);
    let name = format!("tare-{}-{arm}", cx.run);
    let ran = image::import(in_time(), &arm, root).and_then(|()| {
        match run(in_time(), settings, &arm, &name) {
            Err(error) if errors::is_hybrid(&error) && caller.access.runtime.is_none() => {
                note_hybrid(caller);
                let chosen = errors::chosen();
                engine
                    .facts
                    .insert(fact::ENGINE_RUNTIME_CHOSEN.into(), chosen);
                let access = Access {
                    runtime: Some("runc".into()),
                    ..caller.access.clone()
                };
                run(access.caller(cx).within(left()), settings, &arm, &name)
            }
            other => other,
        }
    });
    let cleaned = remove_containers(caller, &[&name])
        .and_then(|()| image::remove(caller, &image::own_name(cx.run, &arm)))
        .and_then(|_| record::forget(cx, "podman", &arm, &place));
    // The refusal is what the reader needs; a failed cleanup would repeat it.
    ran?;
    cleaned?;
    Ok(engine.facts)
}

/// Runs the agent's `version` in a container of this name.
fn run(caller: Caller<'_>, settings: &Settings, arm: &ArmId, name: &str) -> Result<()> {
    let run = caller.cx.run;
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
        format!("--label=tare.run={run}"),
        format!("--entrypoint=[\"{AGENT_PATH}\"]"),
    ];
    arguments.extend(settings.options());
    arguments.extend([image::own_name(run, arm), "version".into()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Podman exits with the agent's status. The output may be lost, because podman can attach too late.
    let ran = caller.call("run the agent in a container", &arguments);
    ran.map(drop)
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
