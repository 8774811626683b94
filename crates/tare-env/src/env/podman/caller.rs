//! Calling the `podman` command, as whoever it belongs to.
//!
//! The command rather than the API's socket: rootless podman has no daemon, and a socket would have to be
//! made first. Every call is bounded, answers are JSON, and a refusal is explained. What cannot be seen from
//! here is what podman does after a call has been given up; whoever made something removes it by its name.

use crate::env::prelude::*;

use serde_json::Value as Json;

use super::account::Account;
use super::errors::{self, INSTALL};

/// The commands that make or start containers, and the one that describes the runtime.
const STARTING: [&str; 5] = ["create", "info", "init", "run", "start"];

/// With this status podman says that there is none of what was named.
pub(super) const NONE: i32 = 1;
/// With this, that somebody uses it.
pub(super) const USED: i32 = 2;

/// What messages call a command of podman's: its words hold the variables of a user's container.
const CALLED: &str = "podman …";

/// How podman is called: by whom, and with which OCI runtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller {
    /// Another user than Tare's own.
    pub(super) account: Option<Account>,
    /// An OCI runtime other than podman's default.
    pub(super) runtime: Option<String>,
}

/// What a command that succeeded wrote.
pub(super) struct Answer {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Caller {
    /// Calls as Tare's own user, or as `account`.
    pub(super) fn new(account: Option<Account>) -> Self {
        Self {
            account,
            runtime: None,
        }
    }

    /// Whose podman it is, for people.
    pub(super) fn whose(&self) -> String {
        self.account
            .as_ref()
            .map_or(String::new(), |account| format!(" of `{}`", account.name))
    }

    /// Any program of whoever podman belongs to.
    pub(super) fn command(
        &self,
        program: &str,
        arguments: Vec<String>,
        variables: &[(&str, &str)],
    ) -> CommandLine {
        match &self.account {
            Some(account) => account.command(program, arguments, variables),
            None => variables.iter().fold(
                CommandLine::new(program, arguments).at_home(),
                |command, (name, value)| command.variable(name, *value),
            ),
        }
    }

    fn podman(&self, arguments: &[&str], variables: &[(&str, &str)]) -> CommandLine {
        // Whatever only lists and removes must work even where the runtime does not exist.
        let is_needed = arguments
            .first()
            .is_some_and(|verb| STARTING.contains(verb));
        let runtime = self.runtime.iter().filter(|_| is_needed);
        let runtime = runtime.map(|name| format!("--runtime={name}"));
        let mut variables: Vec<(&str, &str)> = variables.to_vec();
        let is_made = matches!(arguments.first(), Some(&("create" | "run")));
        let arguments = arguments.iter().map(|&argument| {
            match argument
                .strip_prefix("--env=")
                .and_then(|text| text.split_once('='))
            {
                Some((name, value)) if is_made && may_be_podmans(name) => {
                    variables.push((name, value));
                    format!("--env={name}")
                }
                _ => argument.to_owned(),
            }
        });
        let arguments = runtime.chain(arguments).collect();
        self.command("podman", arguments, &variables)
    }

    /// Calls podman and waits, at most `limit`; `what` is an infinitive for messages.
    pub(super) fn call(
        &self,
        cx: &Context<'_>,
        what: &str,
        arguments: &[&str],
        input: &[u8],
        limit: Duration,
    ) -> Result<Answer, EnvError> {
        match self.ended(cx, what, arguments, (input, limit))? {
            (Some(0), answer) => Ok(answer),
            (_, answer) => Err(errors::explain(what, &answer.stderr)),
        }
    }

    /// Calls podman, and says whether it ended with status 0; with one of `others`, which its manual says to mean that
    /// there was nothing to do, it did not.
    pub(super) fn has_done(
        &self,
        cx: &Context<'_>,
        what: &str,
        arguments: &[&str],
        others: &[i32],
    ) -> Result<bool, EnvError> {
        match self.ended(cx, what, arguments, (&[], CONTROL_LIMIT))? {
            (Some(0), _) => Ok(true),
            (Some(status), _) if others.contains(&status) => Ok(false),
            (_, answer) => Err(errors::explain(what, &answer.stderr)),
        }
    }

    /// Whether podman has a thing of this kind and name.
    pub(super) fn exists(
        &self,
        cx: &Context<'_>,
        kind: &str,
        name: &str,
    ) -> Result<bool, EnvError> {
        let what = format!("look for the {kind}");
        self.has_done(cx, &what, &[kind, "exists", "--", name], &[NONE])
    }

    /// How a call ended, and what it wrote.
    fn ended(
        &self,
        cx: &Context<'_>,
        what: &str,
        arguments: &[&str],
        (input, limit): (&[u8], Duration),
    ) -> Result<(Option<i32>, Answer), EnvError> {
        let command = self.podman(arguments, &[]);
        let finished = match cx.exec.run(&command, input, limit) {
            Ok(finished) => finished,
            Err(CommandError::Missing { program }) => return Err(missing(&program)),
            Err(CommandError::Timeout { limit, .. }) => {
                return Err(EnvError::Timeout {
                    phase: format!("podman, asked to {what},"),
                    limit,
                });
            }
            Err(error) => return Err(error.called(CALLED).into()),
        };
        let stdout = String::from_utf8_lossy(&finished.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        // `env` is between, and says so in this way.
        if finished.status == Some(127) && self.account.is_some() {
            return Err(missing("podman"));
        }
        Ok((finished.status, Answer { stdout, stderr }))
    }

    /// Calls podman for an answer in JSON.
    pub(super) fn ask(
        &self,
        cx: &Context<'_>,
        what: &str,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Json, EnvError> {
        let answer = self.call(cx, what, arguments, &[], limit)?;
        // An empty list is written as nothing by some versions.
        if answer.stdout.trim().is_empty() {
            return Ok(Json::Array(Vec::new()));
        }
        serde_json::from_str(&answer.stdout).map_err(|error| EnvError::Refused {
            what: format!("unreadable answer of podman when asked to {what}"),
            answer: printable(&format!("{error}: {}", answer.stdout)),
        })
    }

    /// What podman tells of one of its things: a container, an image.
    pub(super) fn inspect(
        &self,
        cx: &Context<'_>,
        kind: &str,
        name: &str,
        limit: Duration,
    ) -> Result<Json, EnvError> {
        let arguments = [kind, "inspect", "--format=json", "--", name];
        let answer = self.ask(cx, &format!("inspect the {kind}"), &arguments, limit)?;
        Ok(answer.get(0).cloned().unwrap_or(Json::Null))
    }

    /// Starts podman and leaves it running with its pipes; the process carries the run's label.
    pub(super) fn spawn(
        &self,
        cx: &Context<'_>,
        arguments: &[&str],
    ) -> Result<Box<dyn Running>, EnvError> {
        let command = self.podman(arguments, &[("TARE_RUN", cx.run.as_str())]);
        Ok(cx
            .exec
            .spawn(&command)
            .map_err(|error| error.called(CALLED))?)
    }
}

/// Whether a variable of a container's may be among podman's own, where podman finds its text: a line of arguments can be
/// read by everybody as long as it runs. Those that podman itself, or what it starts, goes by stay in the line.
fn may_be_podmans(name: &str) -> bool {
    const ITS_OWN: [&str; 20] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "LANG",
        "LC_",
        "LD_",
        "XDG_",
        "DBUS_",
        "CONTAINER",
        "PODMAN",
        "REGISTRY",
        "STORAGE_",
        "BUILDAH",
        "SSL_",
        "GO",
    ];
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.bytes().all(is_plain)
        && !ITS_OWN.iter().any(|own| name.starts_with(own))
        && !name.starts_with("TARE_")
        && !name.ends_with("_PROXY")
}

/// Refuses a folder that its user cannot come to, because one above it is closed.
pub(super) fn is_reachable(
    cx: &Context<'_>,
    caller: &Caller,
    account: &Account,
    folder: &Path,
) -> Result<(), EnvError> {
    let arguments = vec!["-w".to_owned(), folder.display().to_string()];
    let command = caller.command("test", arguments, &[]);
    let finished = cx.exec.run(&command, &[], CONTROL_LIMIT)?;
    if finished.status == Some(0) {
        return Ok(());
    }
    Err(EnvError::Denied {
        what: format!(
            "`{}` cannot come to `{}`, where the bound folder would lie",
            account.name,
            folder.display()
        ),
        fix: Some(
            "set TARE_HOME to a folder that this user may enter, or use `storage = \"volume\"`"
                .into(),
        ),
    })
}

fn missing(program: &str) -> EnvError {
    if program == "podman" {
        EnvError::Absent {
            why: "podman is not installed".into(),
            fix: Some(INSTALL.into()),
        }
    } else {
        EnvError::Absent {
            why: format!(
                "`{}`, which is needed to act as another user, is not installed",
                printable(program)
            ),
            fix: Some("`sudo apt-get install util-linux`, or run Tare as that user".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_stay_out_of_the_line() {
        let caller = Caller::default();
        let words = [
            "run",
            "--env=PASSWORD=hunter2=x",
            "--env=PATH=/x",
            "--env=EMPTY=",
            "--env=B",
        ];
        let command = caller.podman(&words, &[("TARE_RUN", "r")]);
        let line = [
            "run",
            "--env=PASSWORD",
            "--env=PATH=/x",
            "--env=EMPTY",
            "--env=B",
        ];
        assert_eq!(command.arguments, line);
        let value = |name: &str| command.variables.get(name).map(String::as_str);
        assert_eq!(value("PASSWORD"), Some("hunter2=x"));
        assert_eq!(value("EMPTY"), Some(""));
        assert_eq!(value("TARE_RUN"), Some("r"));
        assert_eq!(value("PATH"), None);
        // What only asks has no such flags, and says what it was told.
        let asked = caller.podman(&["inspect", "--env=PASSWORD=x"], &[]);
        assert_eq!(asked.arguments[1], "--env=PASSWORD=x");
    }
}
