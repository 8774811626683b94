//! Calls the `podman` command, as its owner.
//!
//! The command rather than the API socket: rootless podman has no daemon, and a socket would have to be created
//! first. Every call has a time limit, answers are JSON, and a refusal is explained.
//! Limits: podman may continue after a call has timed out; the creator of a resource removes it by name.

use crate::env::prelude::*;

use super::account::Account;
use super::errors::{self, INSTALL};

/// Subcommands that create or start containers, and the one that describes the runtime.
const STARTING: [&str; 5] = ["create", "info", "init", "run", "start"];

/// Podman's exit status if the named object does not exist.
pub(super) const NONE: i32 = 1;
/// Podman's exit status if the object is in use.
pub(super) const USED: i32 = 2;

/// Replaces the command line in messages, because its words hold the variables of a user's container.
const CALLED: &str = "podman …";

/// How to call podman: as which user, and with which OCI runtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    /// The user, if not Tare's.
    pub(super) account: Option<Account>,
    /// The OCI runtime, if not podman's default.
    pub(super) runtime: Option<String>,
}

/// Calls podman.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) access: &'a Access,
    /// The time limit of each call.
    limit: Duration,
}

/// The output of a successful command.
pub(super) struct Answer {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Access {
    /// Returns the caller of podman.
    pub(super) fn caller<'a>(&'a self, cx: &'a Context<'a>) -> Caller<'a> {
        Caller {
            cx,
            access: self,
            limit: CONTROL_LIMIT,
        }
    }

    /// Returns the name of the user, if not Tare's.
    pub(super) fn user(&self) -> Option<String> {
        self.account.as_ref().map(|account| account.name.clone())
    }

    /// Returns the owner of this podman, for messages.
    pub(super) fn owner(&self) -> String {
        self.user()
            .map_or_else(String::new, |name| format!(" of `{name}`"))
    }

    /// Returns a command that runs any program as the owner of this podman.
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
        // Listing and removing must work even if the runtime does not exist.
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
}

impl Caller<'_> {
    /// Sets the time limit of each call.
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Calls podman and waits; `what` is an infinitive for messages.
    pub(super) fn call(self, what: &str, arguments: &[&str]) -> Result<Answer> {
        self.call_with(what, arguments, &[])
    }

    /// The same with a standard input.
    pub(super) fn call_with(self, what: &str, arguments: &[&str], input: &[u8]) -> Result<Answer> {
        match self.ended(what, arguments, input)? {
            (Some(0), answer) => Ok(answer),
            (_, answer) => Err(errors::explain(what, &answer.stderr)),
        }
    }

    /// Calls podman and returns whether it ended with status 0. A status in `others`, which according to its manual
    /// means that there was nothing to do, gives false.
    pub(super) fn has_done(self, what: &str, arguments: &[&str], others: &[i32]) -> Result<bool> {
        match self.ended(what, arguments, &[])? {
            (Some(0), _) => Ok(true),
            (Some(status), _) if others.contains(&status) => Ok(false),
            (_, answer) => Err(errors::explain(what, &answer.stderr)),
        }
    }

    /// Whether podman has an object of this kind and name.
    pub(super) fn exists(self, kind: &str, name: &str) -> Result<bool> {
        let what = format!("look for the {kind}");
        self.has_done(&what, &[kind, "exists", "--", name], &[NONE])
    }

    /// Calls podman and returns its exit status and output.
    fn ended(self, what: &str, arguments: &[&str], input: &[u8]) -> Result<(Option<i32>, Answer)> {
        let command = self.access.podman(arguments, &[]);
        let finished = match self.cx.exec.run(&command, input, self.limit) {
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
        let stdout = finished.stdout_text().into_owned();
        let stderr = finished.stderr_text().into_owned();
        // The status of `env`, which runs podman for another user.
        if finished.status == Some(127) && self.access.account.is_some() {
            return Err(missing("podman"));
        }
        Ok((finished.status, Answer { stdout, stderr }))
    }

    /// Calls podman for an answer in JSON.
    pub(super) fn ask(self, what: &str, arguments: &[&str]) -> Result<Value> {
        let answer = self.call(what, arguments)?;
        // Some versions print nothing for an empty list.
        if answer.stdout.trim().is_empty() {
            return Ok(Value::Array(Vec::new()));
        }
        serde_json::from_str(&answer.stdout).map_err(|error| {
            EnvError::refused(
                format!("unreadable answer of podman when asked to {what}"),
                printable(&format!("{error}: {}", answer.stdout)),
            )
        })
    }

    /// Returns podman's description of an object: a container, an image.
    pub(super) fn inspect(self, kind: &str, name: &str) -> Result<Value> {
        let arguments = [kind, "inspect", "--format=json", "--", name];
        let mut answer = self.ask(&format!("inspect the {kind}"), &arguments)?;
        Ok(answer.get_mut(0).map(Value::take).unwrap_or_default())
    }

    /// Lists everything of a kind that carries the run's label; `kind` is the action in words, and the verb.
    pub(super) fn labelled(self, run: &str, (what, verb): (&str, [&str; 2])) -> Result<Vec<Value>> {
        let filter = format!("--filter=label=tare.run={run}");
        let answer = self.ask(what, &[verb, ["--format=json", &filter]].concat())?;
        Ok(answer.as_array().cloned().unwrap_or_default())
    }

    /// Removes a network.
    pub(super) fn remove_network(self, name: &str) -> Result<()> {
        let arguments = ["network", "rm", "--force", "--", name];
        self.call("remove a network", &arguments).map(drop)
    }

    /// Starts podman in the background, with its pipes; the process carries the run's label.
    pub(super) fn spawn(self, arguments: &[&str]) -> Result<Box<dyn Running>> {
        let Self { cx, access, .. } = self;
        let command = access.podman(arguments, &[("TARE_RUN", cx.run.as_str())]);
        let started = cx.exec.spawn(&command);
        Ok(started.map_err(|error| error.called(CALLED))?)
    }
}

/// Whether a container's variable may be passed through podman's environment: every user can read a command line
/// while it runs. Variables that affect podman or what it starts stay on the command line.
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

/// Returns an error if the user cannot reach a folder because a folder above it is closed.
pub(super) fn is_reachable(caller: Caller<'_>, account: &Account, folder: &Path) -> Result<()> {
    let arguments = vec!["-w".to_owned(), folder.display().to_string()];
    let command = caller.access.command("test", arguments, &[]);
    let finished = caller.cx.exec.run(&command, &[], CONTROL_LIMIT)?;
    if finished.succeeded() {
        return Ok(());
    }
    Err(EnvError::denied(
        format!(
            "`{}` cannot come to `{}`, where the bound folder would lie",
            account.name,
            folder.display()
        ),
        "set TARE_HOME to a folder that this user may enter, or use `storage = \"volume\"`",
    ))
}

fn missing(program: &str) -> EnvError {
    if program == "podman" {
        EnvError::absent("podman is not installed", INSTALL)
    } else {
        EnvError::absent(
            format!(
                "`{}`, which is needed to act as another user, is not installed",
                printable(program)
            ),
            "`sudo apt-get install util-linux`, or run Tare as that user",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_stay_out_of_the_line() {
        let access = Access::default();
        let words = [
            "run",
            "--env=PASSWORD=hunter2=x",
            "--env=PATH=/x",
            "--env=EMPTY=",
            "--env=B",
        ];
        let command = access.podman(&words, &[("TARE_RUN", "r")]);
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
        // Queries have no such flags and are passed unchanged.
        let asked = access.podman(&["inspect", "--env=PASSWORD=x"], &[]);
        assert_eq!(asked.arguments[1], "--env=PASSWORD=x");
    }
}
