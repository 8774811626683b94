//! Errors that prevent an answer, grouped by what the user can do about them, with hints.
//!
//! A command that cannot be measured still gets an answer: on which side it fails, its output, and what that usually
//! means. The guesses are based on messages that programs and kernels usually print.
//! Limits: a program that fails without output gets only a general hint.

use std::path::Path;

use tare_model::CommandReport;
use tare_model::outcome::Exit;

use super::Ask;
use super::observed::{COMPLAINT, Observed};
use crate::env::EnvError;
use crate::output;
use crate::service::program;

/// Most bytes of a program's output that are repeated.
const SAID_LIMIT: usize = 600;
/// Most characters shown of a line of stderr.
const COMPLAINT_CHARS: usize = 120;
/// Messages of shells, interpreters and the C library about something missing.
const MISSING: [&str; 5] = [
    "not found",
    "No such file",
    "Can't locate",
    "cannot open",
    "Permission denied",
];

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// No command was given.
    #[error("there is no command")]
    Nothing,
    /// The working directory is gone.
    #[error("the working directory is gone or its name is not UTF-8")]
    NoDirectory,
    /// The program is not on the host.
    #[error(
        "`{program}` is not on this machine, and the host is what the environment is compared with"
    )]
    NotHere {
        /// The program as typed, escaped.
        program: String,
    },
    /// A variable to be passed is not set.
    #[error("the variable `{name}` is not set")]
    NoVariable {
        /// Its name, escaped.
        name: String,
    },
    /// A path cannot be used in a bind mount.
    #[error("`{path}` holds a colon, a comma or a control character and cannot be shown inside")]
    OddPath {
        /// The path, escaped.
        path: String,
    },
    /// A folder to be mounted is, or contains, something private.
    #[error(
        "`{path}` would be shown inside and written to there, and {}",
        holds(path, place)
    )]
    Private {
        /// The folder, escaped.
        path: String,
        /// The home, or the folder of Tare's files, escaped.
        place: String,
    },
    /// The command fails on the host.
    #[error("the command fails on the host already: it {how}{said}")]
    FailsOnHost {
        /// How it ended.
        how: String,
        /// The end of its output, escaped.
        said: String,
        /// What that usually means.
        hint: Option<String>,
    },
    /// One of the compared commands fails.
    #[error("`{command}` {how}{said}")]
    FailsAtSide {
        /// The command, escaped.
        command: String,
        /// How it ended.
        how: String,
        /// The end of its output, escaped.
        said: String,
    },
    /// The command works once and fails the second time.
    #[error("the command works once and fails when it is run again: it {how}{said}")]
    FailsAgain {
        /// How it ended.
        how: String,
        /// The end of its output, escaped.
        said: String,
    },
    /// The command works on the host and fails inside.
    #[error("the command works on the host and fails in `{env}`: it {how}{said}")]
    FailsInside {
        /// The environment.
        env: String,
        /// How it ended.
        how: String,
        /// The end of its output, escaped.
        said: String,
        /// What that usually means.
        hint: Option<String>,
    },
    /// The command cannot be started inside.
    #[error("the command cannot be started in `{env}`: {why}")]
    NotInside {
        /// The environment.
        env: String,
        /// The reason.
        why: String,
    },
    /// The command takes too long for the budget.
    #[error("the command {place} did not end within {limit_s} s, and the budget is {budget_s} s")]
    TooLong {
        /// Where.
        place: String,
        /// Its time limit, seconds.
        limit_s: u64,
        /// The budget, seconds.
        budget_s: u64,
    },
    /// The server did not become ready, or ended.
    #[error("the server in `{place}` {why}")]
    NoServer {
        /// Where.
        place: String,
        /// What it did.
        why: String,
        /// The port on which it should listen.
        port: u16,
    },
    /// The server's answers are not as expected.
    #[error("the server in `{place}` does not answer as it should: {}", why.split("; hint: ").next().unwrap_or_default())]
    WrongAnswer {
        /// Where.
        place: String,
        /// Its answer, and a hint after `; hint: `.
        why: String,
    },
    /// The client failed against a server that was ready.
    #[error("the client fails against the server in `{place}`: it {how}{said}")]
    ClientFails {
        /// Where.
        place: String,
        /// How it ended.
        how: String,
        /// The end of its output, escaped.
        said: String,
    },
    /// The client did not end in time.
    #[error("the client of the server in `{place}` did not end within {limit_s} s")]
    ClientTooLong {
        /// Where.
        place: String,
        /// Its time limit, seconds.
        limit_s: u64,
    },
    /// The number to pick is not in the output.
    #[error("`--metric {pattern}` finds no number in the output {place}, which {begins}")]
    NothingPicked {
        /// The pattern, escaped.
        pattern: String,
        /// Where.
        place: String,
        /// How the output begins, escaped.
        begins: String,
    },
    /// The environment failed.
    #[error("`{env}`: {source}")]
    Environment {
        /// The environment.
        env: String,
        /// The reason.
        source: EnvError,
    },
    /// Everything succeeded except removing the environment.
    #[error("`{env}` could not be removed: {source}")]
    NotRemoved {
        /// The environment.
        env: String,
        /// The reason.
        source: EnvError,
    },
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Cancelled,
    /// Something is left behind after another error.
    #[error("{first}; left behind: {left}")]
    Left {
        /// The first error.
        first: Box<WhyError>,
        /// What could not be removed, and why.
        left: EnvError,
    },
    /// The agent failed.
    #[error("{place}: {why}")]
    Agent {
        /// Where.
        place: String,
        /// The reason.
        why: String,
    },
}

fn holds(path: &str, place: &str) -> String {
    if path == place {
        "it is a home, or where Tare keeps its files".to_owned()
    } else if Path::new(path).starts_with(place) {
        format!("it lies in `{place}`, where Tare keeps its files")
    } else {
        format!("`{place}`, a home or where Tare keeps its files, lies in it")
    }
}

impl WhyError {
    /// The error that the command takes too long inside.
    pub fn too_long(ask: &Ask, inside: &Observed) -> Self {
        Self::TooLong {
            place: format!("in `{}`", ask.driver),
            limit_s: inside.wall_ns / 1_000_000_000,
            budget_s: ask.budget_ns / 1_000_000_000,
        }
    }

    /// Whether something that was started may still exist.
    pub fn may_have_left(&self) -> bool {
        let source = match self {
            Self::Left { .. } | Self::NotRemoved { .. } => return true,
            Self::Environment { source, .. } => source,
            _ => return false,
        };
        matches!(source, EnvError::AndCleanup { .. })
    }

    /// What the user can do, if known.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => "write the command behind `--`, for example `tare why -- python3 work.py`".to_owned(),
            Self::NoDirectory => "change into a folder that is there".to_owned(),
            Self::NotHere { .. } => {
                "install it here too, or name it by its path; a shell's alias or builtin needs `sh -c '…'`"
                    .to_owned()
            }
            Self::NoVariable { name } => format!("set it, or write `--variable {name}=TEXT`"),
            Self::OddPath { .. } => "start from, or name, a path without them".to_owned(),
            Self::Private { .. } => "start from a folder that holds the command's files alone, or show it nevertheless with `--show-private`".to_owned(),
            Self::FailsAgain { .. } => "it changes what it reads, or leaves something behind; put things back in the command itself, `sh -c 'rm -rf OUT; COMMAND'`, or with `--prepare` where there is that option".to_owned(),
            Self::NotInside { .. } => "with an image of your own the program must be in it; without one the host's own is used".to_owned(),
            Self::TooLong { budget_s, limit_s, .. } => {
                format!("give more time, for example `--budget {}m`, or the command less to do", (budget_s.max(limit_s) * 20).div_ceil(60))
            }
            Self::NothingPicked { .. } => "the first group `(…)` of the last match is the number; try it with `COMMAND | grep -E 'PATTERN'`".to_owned(),
            Self::NoServer { why, .. } if why.contains("speaks TLS") => "TLS is not spoken here; a client that does is asked with `--client 'CMD {host} {port}' --port N`".to_owned(),
            Self::NoServer { why, .. } if why.contains("answered with status") => "`--ready /PATH` names another page to wait for, `--expect STATUS` takes this answer for a good one".to_owned(),
            Self::WrongAnswer { why, .. } => why.split_once("; hint: ").map_or("`--url` names the page, `--expect STATUS` takes another answer for a good one; compare what `curl -i` shows", |(_, hint)| hint).to_owned(),
            Self::NoServer { port, .. } => format!("it must listen on port {port} on every address inside (0.0.0.0), not on 127.0.0.1 alone; `--ready-timeout 2m` waits longer, `--port` and `--ready` say what to wait for"),
            Self::ClientFails { .. } => "`{host}` and `{port}` stand for the server's address in the client's arguments".to_owned(),
            Self::ClientTooLong { .. } => "give it a number of requests or a time, such as `ab -n 1000` or `wrk -d 1s`; it runs once a trial".to_owned(),
            Self::FailsOnHost { hint, .. } | Self::FailsInside { hint, .. } => return hint.clone(),
            Self::FailsAtSide { .. } => "`--ignore-failure` measures it nevertheless; it reads an empty standard input unless `--input FILE` names one".to_owned(),
            Self::Left { first, left } => return left.hint().or_else(|| first.hint()),
            Self::NotRemoved { source, .. } => {
                return source.hint().or_else(|| Some("`tare clean` tries again".to_owned()));
            }
            Self::Environment { source, .. } if source.hint().is_some() => return source.hint(),
            Self::Environment { .. } | Self::Agent { .. } => "`tare doctor` says what is available here".to_owned(),
            Self::Cancelled => return None,
        })
    }
}

/// How a program ended, as the end of a sentence.
pub fn how(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(9) => "was ended by signal 9 (SIGKILL)".to_owned(),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// The end of a program's output, escaped, after a colon; says so if there was no output.
pub fn output_tail(report: &CommandReport) -> String {
    let text = program::tail(&report.stderr.0, &report.stdout.0, SAID_LIMIT);
    if text.is_empty() {
        " and says nothing".to_owned()
    } else {
        format!(
            ": {}",
            text.escape_debug()
                .to_string()
                .replace("\\n", "\n  ")
                .replace("\\'", "'")
                .replace("\\\"", "\"")
        )
    }
}

/// One line about stderr output of successful commands that may not have done their work: if only one side has such
/// output, or both name something missing. `places` names the sides, as in "by it".
pub fn complaint(places: [&str; 2], reports: [&CommandReport; 2]) -> Option<String> {
    let last = |report: &CommandReport| {
        let text = String::from_utf8_lossy(&report.stderr.0);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        let line: String = line.chars().take(COMPLAINT_CHARS).collect();
        Some(output::printable(&line))
    };
    let (place, line) = match (places, reports.map(last)) {
        ([_, place], [None, Some(line)]) | ([place, _], [Some(line), None]) => (place, line),
        (_, [Some(_), Some(line)]) if names_missing(&line) => {
            return Some(format!(
                "{COMPLAINT}on both sides, with exit status 0: `{line}`; look whether the work is done"
            ));
        }
        _ => return None,
    };
    Some(format!(
        "{COMPLAINT}{place} only: `{line}`; if the work is not done there, the two sides are not comparable"
    ))
}

/// A remark about the processes that a command leaves running, if there are any.
pub fn left_running(who: &str, report: &CommandReport) -> Option<String> {
    let count = report.left_running;
    (count > 0).then(|| {
        format!(
            "{who} leaves {count} process{} running in the background; what they do after it has ended is not counted, and they are ended after each run",
            if count == 1 { "" } else { "es" }
        )
    })
}

/// Whether a command names something missing on stderr.
pub fn is_something_missing(report: &CommandReport) -> bool {
    names_missing(&String::from_utf8_lossy(&report.stderr.0))
}

fn names_missing(text: &str) -> bool {
    MISSING.iter().any(|words| text.contains(words))
}

/// What a failure usually means; `inside` if the command works on the host.
pub fn meaning(report: &CommandReport, inside: bool) -> Option<String> {
    let text = String::from_utf8_lossy(&report.stderr.0).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_killed = matches!(report.exit, Exit::Signal(9) | Exit::Code(137));
    let is_not_found = matches!(report.exit, Exit::Code(126 | 127));
    let hint = if has(&[
        "not a tty",
        "not a terminal",
        "inappropriate ioctl",
        "no tty present",
        "must be run from a terminal",
    ]) {
        "it wants a terminal, and measured runs have none: give it its option for batch use, or let `script -qec 'COMMAND' /dev/null` make one"
    } else if is_killed && inside {
        "something killed it, most likely the memory limit: try `--set memory=` with a larger one, or without"
    } else if has(&[
        "could not resolve",
        "name or service not known",
        "temporary failure in name resolution",
        "network is unreachable",
        "connection refused",
    ]) {
        if inside {
            "the network inside is another one: a server on the host's loopback is not reached from it; try `--set network=host`"
        } else {
            "a server that it needs does not answer"
        }
    } else if has(&["read-only file system"]) {
        "it writes outside of its working directory, where the host's userland is shown read-only: let it write into the working directory or /tmp"
    } else if has(&["bus error", "no space left on device"])
        || matches!(report.exit, Exit::Signal(7))
    {
        "a file system inside is full, most likely /dev/shm with its 64 MB: try `--set shm=1g`"
    } else if has(&[
        "operation not permitted",
        "permission denied",
        "function not implemented",
    ]) && inside
    {
        "inside, the capability or system call that it needs is missing: see which with `--set seccomp=unconfined` and `--set cap_add=…`, and grant only that one"
    } else if inside
        && (is_not_found
            || has(&[
                "no such file",
                "not found",
                "cannot open shared object",
                "modulenotfounderror",
                "importerror",
            ]))
    {
        "a file is not there: what lies outside of the working directory, the userland and the files that the command names is not carried; show it with `--set binds=/path:/path`"
    } else if has(&["eof", "end of file", "stdin"]) {
        "it reads standard input, which is empty: pipe something into `tare why`, and every run gets it"
    } else if is_not_found {
        "a program that it starts is not there, or a variable such as PATH is not passed: `--variable NAME` passes one"
    } else if inside {
        "it sees another machine there: other names of host and user, other processes, another network, and only the folders that are shown; `--set network=host` and `--set binds=/path:/path` take two of these away"
    } else {
        "run it by hand until it exits with status 0; a status that is no failure can be hidden by `sh -c 'COMMAND || true'`"
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::outcome::Bytes;

    fn report(exit: Exit, stderr: &str) -> CommandReport {
        let raw = crate::testing::raw(0, b"", b"");
        let report = crate::workload::command_output::report(&raw).unwrap();
        CommandReport {
            exit,
            stderr: Bytes(stderr.as_bytes().to_vec()),
            ..report
        }
    }

    #[test]
    fn possible_pipe_failure_is_reported_with_side() {
        let complaint_of = |host: &str, env: &str| {
            let [host, env] = [host, env].map(|text| report(Exit::Code(0), text));
            complaint(["on the host", "inside"], [&host, &env])
        };
        let missing = "sh: 1: head: not found\n";
        for (host, env, place) in [
            ("", missing, "inside only"),
            (missing, "", "on the host only"),
            (missing, missing, "on both sides"),
        ] {
            let text = complaint_of(host, env).unwrap();
            assert!(
                text.contains(place) && text.contains("head: not found"),
                "{text}"
            );
        }
        assert_eq!(complaint_of("3 records\n", "4 records\n"), None);
        assert_eq!(complaint_of("", ""), None);
        let hostile = complaint_of("", "\u{1b}[2J").unwrap();
        assert!(!hostile.contains('\u{1b}'), "{hostile}");
    }

    #[test]
    fn program_output_leads_to_matching_advice() {
        let failed = [
            (
                "stty: 'standard input': Inappropriate ioctl for device",
                false,
                "terminal",
            ),
            ("curl: (7) Connection refused", true, "network=host"),
            (
                "OSError: [Errno 30] Read-only file system: '/usr/x'",
                true,
                "working directory",
            ),
            ("mbind: Operation not permitted", true, "seccomp"),
            ("EOFError: EOF when reading a line", false, "standard input"),
        ];
        let failed = failed.map(|(stderr, inside, word)| (Exit::Code(1), stderr, inside, word));
        let others = [
            (Exit::Signal(9), "", true, "memory"),
            (Exit::Signal(7), "", true, "shm"),
            (Exit::Code(127), "sh: 1: x: not found", true, "binds"),
            (Exit::Code(3), "", false, "status 0"),
            (Exit::Code(4), "no licence", true, "another machine"),
        ];
        for (exit, stderr, inside, word) in failed.into_iter().chain(others) {
            let report = report(exit, stderr);
            let hint = meaning(&report, inside).unwrap();
            assert!(hint.contains(word), "{stderr}: {hint}");
        }
    }

    #[test]
    fn quoted_program_output_is_terminal_safe() {
        let text = output_tail(&report(Exit::Code(1), "\u{1b}[31mred\nsecond\n"));
        assert!(
            !text.contains('\u{1b}') && text.contains("second"),
            "{text}"
        );
        assert_eq!(output_tail(&report(Exit::Code(1), "")), " and says nothing");
        assert_eq!(
            output_tail(&report(Exit::Code(1), "it's \"so\"")),
            ": it's \"so\""
        );
    }
}
