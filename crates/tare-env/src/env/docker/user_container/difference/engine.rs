//! Parts that engines add to every container: seccomp, AppArmor, network, log, and the limits of their service.

use serde_json::json;

use super::{Pair, Part, Switch, entries};
use crate::env::user_container::limits;

/// The parts that engines add to every container, as far as they can be removed.
pub(super) fn parts(pair: Pair<'_>) -> Vec<Part> {
    let host = &pair.body["HostConfig"];
    let options = entries("SecurityOpt", host);
    let has_usual = |name: &str| host["Privileged"] != true && !options.contains_key(name);
    let mut parts = Vec::new();
    if has_usual("seccomp") {
        parts.push(Part::new(
            "engine.seccomp",
            "Docker's default seccomp profile",
            "a profile of your own that allows what the program does first; as a measurement: `--security-opt seccomp=unconfined`; for every container, in daemon.json: `\"seccomp-profile\": \"/path/of/it.json\"`",
            "without a filter every system call of the kernel can be attacked from inside",
            0.35,
            Switch::Add("SecurityOpt", json!("seccomp=unconfined")),
        ));
    }
    if has_usual("apparmor") {
        parts.push(Part::new(
            "engine.apparmor",
            "Docker's AppArmor profile",
            "a profile of your own; as a measurement: `--security-opt apparmor=unconfined`",
            "what the profile forbids is allowed again",
            0.05,
            Switch::Add("SecurityOpt", json!("apparmor=unconfined")),
        ));
    }
    let network = host["NetworkMode"].as_str().unwrap_or_default();
    if network != "host" && network != "none" && !network.starts_with("container:") {
        let part = Part::new(
            "engine.network",
            "Docker's bridge network",
            "`--network host`",
            "the program shares the machine's addresses and ports",
            0.3,
            Switch::HostNetwork,
        );
        parts.push(part.may_be_needed(true));
    }
    if host["LogConfig"]["Type"] != "none" {
        parts.push(Part::new(
            "engine.log",
            "Docker's log driver",
            "`--log-driver local`, or write less; as a measurement: `--log-driver none`; for every container, in daemon.json: `\"log-driver\": \"local\"`",
            "`docker logs` shows less, or nothing",
            0.2,
            Switch::NoLog,
        ));
    }
    parts.extend(limits(pair));
    parts.extend(terminal(pair));
    parts
}

/// The engine service's limits where the line sets none; the switch sets those of this machine's shell.
fn limits(pair: Pair<'_>) -> impl Iterator<Item = Part> {
    let given = entries("Ulimits", &pair.body["HostConfig"]);
    let left = pair.limits.iter();
    let left = left.filter(move |limit| !given.contains_key(&limit.name));
    left.map(|limit| {
        let text = limits::text(limit);
        Part::new(
            limits::id(&limit.name),
            format!(
                "the engine's limit of {} (`--ulimit {text}` is that of this shell)",
                limits::words(&limit.name)
            ),
            format!(
                "`--ulimit {text}`; for every container, in daemon.json: `\"default-ulimits\"`"
            ),
            "a program that needs more must be given more",
            0.3,
            Switch::Add(
                "Ulimits",
                json!({"Name": limit.name, "Soft": limit.soft, "Hard": limit.hard}),
            ),
        )
    })
}

/// A terminal as standard output: output passes its line discipline, and programs print line by line.
fn terminal(pair: Pair<'_>) -> Option<Part> {
    (pair.body["Tty"] == true && pair.plain["Tty"] != true).then(|| {
        Part::new(
            "tty",
            "`-t` (a terminal as standard output)",
            "remove `-t` from the `docker run` line (in a compose file: `tty:`)",
            "the program sees no terminal: no colours, and output in blocks",
            0.3,
            Switch::Top("Tty"),
        )
    })
}
