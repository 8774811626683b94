//! Parts that engines add to every container: seccomp, AppArmor, network, log, and the limits of their service.

use serde_json::Value;

use super::{Pair, Part, Switch, entries, host_config};
use crate::env::user_container::{Difference, limits};

/// The parts that engines add to every container, as far as they can be removed.
pub(super) fn parts(pair: Pair<'_>) -> Vec<Part> {
    let body = host_config(pair.body);
    let is_privileged = body.get("Privileged") == Some(&Value::Bool(true));
    let options = entries("SecurityOpt", body);
    let engines =
        |id: &str, what: &str, advice: &str, price: &str, likelihood, may_be_needed, switch| Part {
            difference: Difference {
                id: format!("engine.{id}"),
                what: what.to_owned(),
                advice: advice.to_owned(),
                price: price.to_owned(),
                likelihood,
                may_be_needed,
                every_ns: None,
            },
            switch,
        };
    let mut parts = Vec::new();
    if !is_privileged && !options.contains_key("seccomp") {
        parts.push(engines(
            "seccomp",
            "Docker's default seccomp profile",
            "a profile of your own that allows what the program does first; as a measurement: `--security-opt seccomp=unconfined`; for every container, in daemon.json: `\"seccomp-profile\": \"/path/of/it.json\"`",
            "without a filter every system call of the kernel can be attacked from inside",
            0.35,
            false,
            Switch::Option("seccomp=unconfined"),
        ));
    }
    if !is_privileged && !options.contains_key("apparmor") {
        parts.push(engines(
            "apparmor",
            "Docker's AppArmor profile",
            "a profile of your own; as a measurement: `--security-opt apparmor=unconfined`",
            "what the profile forbids is allowed again",
            0.05,
            false,
            Switch::Option("apparmor=unconfined"),
        ));
    }
    let network = body
        .get("NetworkMode")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if network != "host" && network != "none" && !network.starts_with("container:") {
        parts.push(engines(
            "network",
            "Docker's bridge network",
            "`--network host`",
            "the program shares the machine's addresses and ports",
            0.3,
            true,
            Switch::HostNetwork,
        ));
    }
    if body.get("LogConfig").and_then(|log| log["Type"].as_str()) != Some("none") {
        parts.push(engines(
            "log",
            "Docker's log driver",
            "`--log-driver local`, or write less; as a measurement: `--log-driver none`; for every container, in daemon.json: `\"log-driver\": \"local\"`",
            "`docker logs` shows less, or nothing",
            0.2,
            false,
            Switch::NoLog,
        ));
    }
    parts.extend(limits(pair));
    parts.extend(terminal(pair));
    parts
}

/// The engine service's limits where the line sets none; the switch sets those of this machine's shell.
fn limits(pair: Pair<'_>) -> impl Iterator<Item = Part> {
    let given = entries("Ulimits", host_config(pair.body));
    let left = pair.limits.iter();
    let left = left.filter(move |limit| !given.contains_key(&limit.name));
    left.map(|limit| {
        let text = limits::text(limit);
        Part {
            difference: Difference {
                id: limits::id(&limit.name),
                what: format!(
                    "the engine's limit of {} (`--ulimit {text}` is that of this shell)",
                    limits::words(&limit.name)
                ),
                advice: format!(
                    "`--ulimit {text}`; for every container, in daemon.json: `\"default-ulimits\"`"
                ),
                price: "a program that needs more must be given more".to_owned(),
                likelihood: 0.3,
                may_be_needed: false,
                every_ns: None,
            },
            switch: Switch::Limit(limit.clone()),
        }
    })
}

/// A terminal as standard output: output passes its line discipline, and programs print line by line.
fn terminal(pair: Pair<'_>) -> Option<Part> {
    (pair.body["Tty"] == true && pair.plain["Tty"] != true).then(|| Part {
        difference: Difference {
            id: "tty".to_owned(),
            what: "`-t` (a terminal as standard output)".to_owned(),
            advice: "remove `-t` from the `docker run` line (in a compose file: `tty:`)".to_owned(),
            price: "the program sees no terminal: no colours, and output in blocks".to_owned(),
            likelihood: 0.3,
            may_be_needed: false,
            every_ns: None,
        },
        switch: Switch::Top("Tty"),
    })
}
