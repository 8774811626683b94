//! Copies the agent to the other machine, and removes its folders from there.
//!
//! The same command writes the file with `cat` and sends it back with `cat`; the result is compared byte by byte. So
//! no hashing tool is needed there, and the file is the same as in every other arm. Then the agent runs once and
//! reports its build, which detects a `noexec` folder.
//! Limits: a change of the file after that check is not noticed.

use crate::env::prelude::*;

use super::super::image::packed;
use super::command::{Share, ssh};
use super::connection::{Connection, refused};
use super::errors::{too_slow, trouble, words};
use super::reader::{after_mark, shown};
use super::script::{COPY, SWEEP, remote, status};
use super::settings::Settings;
use crate::cx::Finished;

/// Time limit for sending the agent's two megabytes both ways: 256 kbit/s are enough.
const COPY_LIMIT: Duration = Duration::from_secs(180);

/// Returns the agent for the other machine.
pub(super) fn agent_for<'a>(
    cx: &Context<'a>,
    settings: &Settings,
    connection: &Connection,
) -> Result<&'a AgentBinary> {
    let report = &connection.report;
    let (system, machine) = (escaped(&report.system), escaped(&report.machine));
    if report.system != "Linux" {
        return Err(EnvError::unavailable(format!(
            "`{}` runs {system}, and the agent that can be sent is a Linux program",
            settings.host
        )));
    }
    let arch = packed::machine(&report.machine);
    cx.agents.linux(arch).ok_or_else(|| EnvError::absent(format!(
            "there is no static Linux agent for `{machine}`, which `{}` is",
            settings.host
        ), format!(
            "build one file with agents inside, `cargo xtask dist`, or name one for `{arch}-unknown-linux-musl` with `--agent`",
            arch = arch.escape_debug()
        )))
}

/// Copies the agent into the connection's folder and checks that it runs there; returns its path.
pub(super) fn install(
    cx: &Context<'_>,
    settings: &Settings,
    connection: &Connection,
    agent: &AgentBinary,
) -> Result<String> {
    let folder = &connection.report.folder;
    let path = format!("{folder}/agent-{}", &agent.sha256[..12]);
    let absent = |why: String, fix: &str| Err(EnvError::absent(why, fix));
    let Some(script) = remote(Some(cx.run), COPY, &[&path]) else {
        return absent(
            format!(
                "the folder `{}` on `{}` has characters that are not passed to a shell",
                folder.escape_debug(),
                settings.host
            ),
            "name one without them: `folder = \"/var/tmp\"`",
        );
    };
    let bytes = agent.bytes()?;
    let command = ssh(settings, connection.share(), None, cx.run, &script);
    let finished = finish(cx, settings, &command, &bytes, COPY_LIMIT)?;
    let stderr_text = words(&finished.stderr_text());
    match finished.status {
        Some(0) => {}
        Some(status::NOT_WRITTEN) => {
            return absent(
                format!(
                    "the agent ({} bytes) cannot be written to `{folder}` on `{}`: {stderr_text}",
                    bytes.len(),
                    settings.host
                ),
                "free space there, or name another `folder`",
            );
        }
        Some(status::NOT_RUN) => {
            return absent(
                format!(
                    "the agent cannot be run in `{folder}` on `{}`: {stderr_text}",
                    settings.host
                ),
                "the file system there may be mounted `noexec`: name another `folder`",
            );
        }
        _ => return Err(failed(settings, "copying the agent to", &finished)),
    }
    let back = after_mark(&finished.stdout).map_or(&[][..], |at| &finished.stdout[at..]);
    let version = back.strip_prefix(bytes.as_slice()).ok_or_else(|| {
        refused(
            settings,
            "copying the agent to",
            "what lies there is not what was sent",
        )
    })?;
    let version = String::from_utf8_lossy(version);
    if version.split_whitespace().last() != Some(agent.build.as_str()) {
        return Err(refused(
            settings,
            "copying the agent to",
            &format!(
                "it says that it is `{}` and should be `{}`",
                version.trim().escape_debug(),
                agent.build
            ),
        ));
    }
    Ok(path)
}

/// Removes the folders of these names, with a separate connection. If `run` is given, processes with its label are
/// ended first. Returns what was done, one line each.
pub(super) fn sweep(
    cx: &Context<'_>,
    settings: &Settings,
    run: Option<&str>,
    names: &[String],
) -> Result<Vec<String>> {
    let base = settings.folder.as_deref().unwrap_or("-");
    let mut arguments = vec![run.unwrap_or("-"), base];
    arguments.extend(names.iter().map(String::as_str));
    let script = remote(None, SWEEP, &arguments).ok_or_else(|| {
        refused(
            settings,
            "removing the folders on",
            "their names are none of Tare's",
        )
    })?;
    let mut command = ssh(settings, Share::Alone, None, cx.run, &script);
    if run == Some(cx.run.as_str()) {
        // If the host is this machine, it would end itself.
        command.variables.remove("TARE_RUN");
    }
    let finished = finish(cx, settings, &command, &[], CONTROL_LIMIT)?;
    if !finished.succeeded() {
        return Err(failed(settings, "removing the folders on", &finished));
    }
    let done = after_mark(&finished.stdout).map_or(&[][..], |at| &finished.stdout[at..]);
    Ok(String::from_utf8_lossy(done)
        .lines()
        .map(|line| format!("{}: {}", settings.host, line.escape_debug()))
        .collect())
}

fn finish(
    cx: &Context<'_>,
    settings: &Settings,
    command: &CommandLine,
    input: &[u8],
    limit: Duration,
) -> Result<Finished> {
    cx.exec
        .run(command, input, limit)
        .map_err(|error| match error {
            // The complete command line would hide the relevant part.
            CommandError::Timeout { limit, .. } => {
                too_slow("installing the agent on", settings, limit)
            }
            other => other.into(),
        })
}

/// Returns the error for a command that failed in `ssh` or on the other machine.
fn failed(settings: &Settings, what: &str, finished: &Finished) -> EnvError {
    let stderr = finished.stderr_text();
    let known = (finished.status == Some(255))
        .then(|| trouble(settings, &stderr))
        .flatten();
    known.unwrap_or_else(|| {
        let mut stderr_text = words(&stderr);
        if stderr_text.is_empty() {
            stderr_text = shown(&finished.stdout);
        }
        if stderr_text.is_empty() {
            stderr_text = match finished.status {
                Some(status) => format!("it ended with status {status}"),
                None => "it was killed".to_owned(),
            };
        }
        refused(settings, what, &stderr_text)
    })
}
