//! Creates the run's network for copies whose original is on the user's networks.
//!
//! It carries the run's label and is removed with the run, whose record names this podman.
//! Limits: the copies always have a `bridge` network, so the effect of another driver is not measured.

use crate::env::prelude::*;

use super::super::caller::Caller;
use super::words::Unit;
use crate::env::user_container::{described_network, network_of_copies};

/// Network modes that are not the user's networks, up to a colon.
const NOT_THE_USERS: [&str; 9] = tare_model::rows! {
    "", "bridge", "default", "host", "none", "ns", "pasta", "private", "slirp4netns",
};

/// Returns what the network flags of a line name.
fn joined(units: &[Unit]) -> impl Iterator<Item = &str> {
    let units = units.iter().filter(|unit| unit.flag == "network");
    units.flat_map(|unit| unit.text().split(','))
}

/// Returns the user's networks and containers that a line joins.
fn named(units: &[Unit]) -> Vec<String> {
    joined(units)
        .filter_map(|text| {
            let name = text.split(':').next()?;
            if name == "container" {
                return Some(described_network(text));
            }
            let is_users = !NOT_THE_USERS.contains(&name) && !name.contains('=');
            is_users.then(|| described_network(name))
        })
        .collect()
}

/// Whether all of these networks are internal.
fn is_internal(caller: Caller<'_>, units: &[Unit]) -> bool {
    let mut names = joined(units).filter_map(|text| text.split(':').next());
    names.all(|name| {
        let arguments = ["network", "inspect", "--format=json", "--", name];
        let found = caller.ask("inspect the network", &arguments);
        found.is_ok_and(|found| found[0]["internal"] == true)
    })
}

fn is_there(caller: Caller<'_>, name: &str) -> Result<bool> {
    let all = super::super::sweep::networks(caller, caller.cx.run.as_str())?;
    Ok(all.iter().any(|it| it == name))
}

/// Removes the network of an arm's copies, if it exists.
pub(crate) fn remove(caller: Caller<'_>, arm: &ArmId) -> Result<()> {
    let name = network_of_copies(caller.cx, Some(arm));
    if is_there(caller, &name)? {
        caller.remove_network(&name)?;
    }
    Ok(())
}

/// Moves a line that joins the user's networks to a network of the run; returns what it no longer joins.
pub(super) fn isolate(
    caller: Caller<'_>,
    units: &mut Vec<Unit>,
    arm: Option<&ArmId>,
) -> Result<Vec<String>> {
    let names = named(units);
    if names.is_empty() {
        return Ok(names);
    }
    let cx = caller.cx;
    let name = network_of_copies(cx, arm);
    let label = format!("--label=tare.run={}", cx.run);
    let mut arguments = vec!["network", "create", "--label=tare=1", &label];
    if is_internal(caller, units) {
        arguments.push("--internal");
    }
    arguments.push(&name);
    // An existing one was created by this run.
    if !is_there(caller, &name)? {
        let what = "create a network for the copies";
        caller.call(what, &arguments)?;
    }
    units.retain(|unit| !matches!(unit.flag.as_str(), "network" | "net"));
    units.push(Unit::new("network", name));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_networks_are_distinguished_from_podman_ones() {
        let of = |texts: &[&str]| {
            let units: Vec<Unit> = texts
                .iter()
                .map(|text| Unit::new("network", *text))
                .collect();
            named(&units).join(", ")
        };
        assert_eq!(of(&["none"]), "");
        assert_eq!(of(&["slirp4netns:allow_host_loopback=true"]), "");
        assert_eq!(of(&["mine:alias=db", "host"]), "the network `mine`");
        assert_eq!(of(&["one,two"]), "the network `one`, the network `two`");
        assert_eq!(of(&["container:db"]), "the network of the container `db`");
    }
}
