//! Dispatches the agent's subcommands.
//!
//! A table of words rather than an argument parser: only programs call the agent, and every kilobyte of it is copied
//! into every arm. `true` is handled first, because the fork-and-exec probes time its whole life.

use std::process::ExitCode;

use crate::build;
use crate::probe::Probe;
use crate::serve::{self, ServeOptions};
use crate::worker;

/// Runs the subcommand from the command line. `extra` probes are added to the registered ones and override those of
/// the same name.
pub fn entry(extra: &[&'static Probe]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    match command.as_deref() {
        Some("true") => ExitCode::SUCCESS,
        Some("worker") => worker::main(&rest, extra),
        None | Some("serve") => serve(&rest, extra),
        Some("hold") => hold(),
        #[cfg(target_os = "linux")]
        Some("leave") => leave(&rest),
        #[cfg(target_os = "linux")]
        Some("end-runs") => end_runs(&rest),
        #[cfg(target_os = "linux")]
        Some("end-group") => end_group(&rest),
        #[cfg(target_os = "linux")]
        Some("launch") => crate::launch::main(&rest),
        #[cfg(target_os = "linux")]
        Some("private-mounts") => crate::launch::private_mounts::main(&rest),
        #[cfg(target_os = "linux")]
        Some("sweep") => crate::launch::sweep::main(&rest),
        #[cfg(target_os = "linux")]
        Some("guest") => crate::guest::main(&rest),
        #[cfg(target_os = "linux")]
        Some("hub") => crate::hub::main(),
        #[cfg(target_os = "linux")]
        Some("sandbox") => crate::sandbox::main(&rest),
        #[cfg(target_os = "linux")]
        Some("allocate") => crate::allocate::main(&rest),
        Some("version") => version(),
        Some(other) => refuse(&format!("no subcommand `{}`", other.escape_debug())),
    }
}

/// Prints the problem to stderr and returns exit status 2, as for every usage error.
fn refuse(problem: &str) -> ExitCode {
    say(&format!("tare-agent: {problem}"));
    ExitCode::from(2)
}

#[allow(
    clippy::print_stderr,
    reason = "standard error is the only place for a message: standard output carries frames"
)]
fn say(text: &str) {
    eprintln!("{text}");
}

#[allow(
    clippy::print_stdout,
    reason = "the version is what this command was asked for"
)]
fn version() -> ExitCode {
    println!("tare-agent {} {}", env!("CARGO_PKG_VERSION"), build::id());
    ExitCode::SUCCESS
}

fn serve(arguments: &[String], extra: &[&'static Probe]) -> ExitCode {
    let options = match ServeOptions::parse(arguments) {
        Ok(options) => options,
        Err(problem) => return refuse(&problem),
    };
    match serve::standard(&options, extra) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&format!("tare-agent: {problem}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn hold() -> ExitCode {
    match crate::hold::hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("tare-agent: hold: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// `leave FOLDER`: removes the folder that Tare made in a user's container and that holds this program.
#[cfg(target_os = "linux")]
fn leave(arguments: &[String]) -> ExitCode {
    let [folder] = arguments else {
        return refuse("leave FOLDER is expected");
    };
    if !is_guest_folder(folder) {
        return refuse("leave removes nothing but a folder of an agent's own");
    }
    match crate::folder::remove(std::path::Path::new(folder)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            say(&format!("tare-agent: leave: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Returns whether a path is exactly such a folder, not one below, above or next to it.
#[cfg(target_os = "linux")]
fn is_guest_folder(path: &str) -> bool {
    let name = path.strip_prefix(tare_model::launch::GUEST_FOLDER);
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// Does nothing, as the first process of a Windows container, until the engine ends it.
#[cfg(windows)]
fn hold() -> ExitCode {
    loop {
        std::thread::park();
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
fn hold() -> ExitCode {
    refuse("`hold` is not available on this system: it is the first process of a container")
}

#[cfg(target_os = "linux")]
fn end_runs(runs: &[String]) -> ExitCode {
    // A cgroup lists all its processes; the others are found by their environment variable.
    let groups = crate::launch::own_group::end_groups(runs, None);
    let killed = crate::end_runs::end_runs(runs);
    answer(
        "end-runs",
        groups.and_then(|groups| Ok([groups, killed?].concat())),
    )
}

/// `end-group RUN PROCESS`: ends what a killed agent on the host left in its cgroup.
#[cfg(target_os = "linux")]
fn end_group(arguments: &[String]) -> ExitCode {
    let [run, agent] = arguments else {
        return refuse("end-group RUN PROCESS is expected");
    };
    let Ok(agent) = agent.parse() else {
        return refuse("the process of end-group is no number");
    };
    let runs = std::slice::from_ref(run);
    answer(
        "end-group",
        crate::launch::own_group::end_groups(runs, Some(agent)),
    )
}

/// Prints a line for each thing that was ended, or the error.
#[cfg(target_os = "linux")]
#[allow(
    clippy::print_stdout,
    reason = "what was ended is what these commands answer"
)]
fn answer(command: &str, ended: std::io::Result<Vec<String>>) -> ExitCode {
    match ended {
        Ok(killed) => {
            for line in killed {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("tare-agent: {command}: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::is_guest_folder;

    #[test]
    fn only_agent_folder_counts_as_guest_folder() {
        assert!(is_guest_folder("/tare-inside-r1-look"));
        for path in [
            "/",
            "/etc",
            "/tare-inside-",
            "/tare-inside-r1/../etc",
            "tare-inside-r1",
            "/srv/tare-inside-r1",
        ] {
            assert!(!is_guest_folder(path), "{path}");
        }
    }
}
