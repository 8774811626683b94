//! Checks and describes what a question about the user's container can reach: flags that extend it, other writers to
//! the same data, and the announcement before the first run.

use tare_model::Status;

use crate::cx::{Context, holders};
use crate::env;
use crate::env::user_container::{Difference, Source, UserContainer, protect};
use crate::failed::Failed;
use crate::output;
use crate::report::terminal::time;
use crate::session::dry_run;
use crate::why::Ask;
use crate::why::question::Subject;
use crate::why::rounds::Measured;

/// Other writers to the container's writable data: running containers of every engine, and processes.
fn writers(cx: &Context<'_>, own: &UserContainer) -> Vec<(String, Vec<String>)> {
    let of = |path: &std::path::PathBuf| {
        let mut names: Vec<String> = env::DRIVERS
            .iter()
            .flat_map(|driver| driver.writers(cx, path))
            .collect();
        if names.is_empty() && !own.is_elsewhere {
            names = holders::writers_below(path);
        }
        (path.display().to_string(), names)
    };
    let all = own.writable.iter().map(of);
    all.filter(|(_, names)| !names.is_empty()).collect()
}

/// Refuses to let copies write to data that another container or process writes to.
pub(super) fn alone(cx: &Context<'_>, own: &UserContainer) -> Result<(), Failed> {
    if !own.is_written {
        return Ok(());
    }
    let Some((path, names)) = writers(cx, own).into_iter().next() else {
        return Ok(());
    };
    let names = names.join(", ");
    Err(Failed::usage(format!(
        "`--share-writable` would be a second writer in `{path}`: {names} writes to it"
    ))
    .hint(format!(
        "stop {names} first; without `--share-writable` each arm has a copy"
    )))
}

/// Notes about copies made while another writer used the original.
pub(super) fn torn(cx: &Context<'_>, own: &UserContainer) -> Vec<String> {
    let line = |(path, names): (String, Vec<String>)| {
        format!(
            "`{path}` was copied while {} wrote to it: the copy may be torn, as after a power failure",
            names.join(", ")
        )
    };
    writers(cx, own).into_iter().map(line).collect()
}

/// Without a socket the network cannot slow the command down, so it is not tried.
pub(super) fn without_idle_network(own: &mut UserContainer, has_socket: bool) {
    let is_network = |it: &Difference| it.id == protect::ENGINES_NETWORK;
    if !has_socket && own.differences.iter().any(is_network) {
        own.differences.retain(|it| !is_network(it));
        own.notes.push(
            "not tried: the container's own network, because the command opened no socket"
                .to_owned(),
        );
    }
}

/// The hint for a command that fails in a copy without the user's networks.
pub(super) fn networks_hint(own: &UserContainer) -> Option<String> {
    let names = own.networks.join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "the copy is not on {names}: if the command needs that, `--join-networks` lets every run act on what is there"
        )
    })
}

/// Describes what the runs can reach.
fn reached(subject: &Subject<'_>, own: &UserContainer) -> Vec<String> {
    let mut all = Vec::new();
    if let Source::Inside(name) = subject.source {
        all.push(format!(
            "all that the live container `{}` reaches; what the command changes there stays",
            output::printable(name)
        ));
    }
    if subject.asked.join_networks {
        all.push("the networks, sockets and named pipes of your container".to_owned());
    }
    if own.bare.text("network") == Some("host") {
        all.push("this machine's own network and every service on it".to_owned());
    }
    if own.is_written {
        let paths: Vec<String> = own
            .writable
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        all.push(format!(
            "for writing: {}",
            output::printable(&paths.join(", "))
        ));
    }
    if all.is_empty() {
        all.push("nothing that `docker run` of the same image without your networks and volumes would not; your volumes read-only or as copies".to_owned());
    }
    all
}

/// One line that says what will run, how often at most, and what it can reach.
pub(super) fn announced(subject: &Subject<'_>, own: &UserContainer, command: &str) -> String {
    let budget_ns = subject.asked.budget_ns;
    let (command, time) = (output::printable(command), time(budget_ns as f64));
    let reached = reached(subject, own).join("; ");
    if subject.asked.client.is_some() {
        return format!(
            "starts `{command}` as a server in each arm and asks it for up to {time}; it reaches {reached}"
        );
    }
    format!(
        "runs `{command}` again and again for up to {time} ({} times if it takes 1 s); it reaches {reached}",
        dry_run::times(budget_ns)
    )
}

/// What would be done, one line each.
pub(super) fn plan(
    subject: &Subject<'_>,
    own: &UserContainer,
    command: &str,
    run: &str,
) -> Vec<String> {
    let list = |all: &[Difference]| -> String {
        let words: Vec<&str> = all.iter().map(|it| it.what.as_str()).collect();
        if words.is_empty() {
            "nothing".to_owned()
        } else {
            words.join(", ")
        }
    };
    let bare = match &own.not_bare {
        Some(why) => format!("no ({why})"),
        None if own.inside.is_some() => {
            "no (a running container has more than its image)".to_owned()
        }
        None => format!(
            "yes, with {}",
            match own.bare.text("network") {
                Some("host") => "this machine's own network",
                _ if own.kept.iter().any(|it| it.id == "network") => "a loopback device only",
                _ =>
                    "a loopback device only; with a bridge network of the run's own where the command opens a socket and the container reaches the outside",
            }
        ),
    };
    let mut lines = vec![
        format!("command: {}", output::printable(command)),
        format!("where: new containers like {}", own.name),
        format!("as a bare process too: {bare}"),
        dry_run::how_often(subject.asked.budget_ns),
        format!("removed to compare: {}", list(&own.differences)),
        format!("kept in every run: {}", list(&own.kept)),
        format!("reaches: {}", reached(subject, own).join("; ")),
    ];
    lines.extend(own.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!(
        "left if the power fails meanwhile: containers, volumes and a network whose names begin with `tare-{run}`, and the run's folder; `tare clean` removes them"
    ));
    lines
}

/// Prints how to measure the user's protections, if no difference that was removed is the cause.
pub(crate) fn hint_kept(ask: &Ask, measured: &Measured) {
    let mut findings = measured.dossier.findings.iter();
    let is_found = findings.any(|it| match it.status {
        Status::Confirmed => true,
        Status::Supported => it.share.is_some(),
        _ => false,
    });
    if !is_found && let Some(hint) = protect::suspected(&ask.carried) {
        output::tell(&hint);
    }
}
