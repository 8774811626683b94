//! Collects facts about tools: path, hash, version and interpreter of each program that the host lists.
//!
//! The file is looked up as the probe `command` does it. The version is the first line that the program prints when
//! asked, with empty stdin and in the C locale, so that no language setting makes equal programs look different. A
//! program that does not answer in time is killed with all its children (on Windows alone).
//! Limits: shared libraries are not hashed (the interpreter is), nor files that a program opens by name at run time.

use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::AsRawFd;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::fact;
use tare_model::tool::{NOT_INSTALLED, ToolQuestion};

use super::Collector;
use crate::program::{SEARCH_PATH, interpreter, look_up, sha256};

/// Time limit for printing a version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of the output that are read at most.
const ANSWER_LIMIT: usize = 64 << 10;
/// The longest line that is kept, characters.
const LINE_LIMIT: usize = 200;
/// A shell's exit statuses for "cannot be executed" and "not found", which say nothing about a version.
#[cfg(unix)]
const NOT_RUN: [i32; 2] = [126, 127];

/// Collects the facts of each tool.
pub(super) fn collect(facts: &mut Collector, tools: &[ToolQuestion]) {
    for tool in tools {
        one(facts, tool);
    }
}

fn one(facts: &mut Collector, tool: &ToolQuestion) {
    let of = |pattern: &str| fact::name_for(pattern, &tool.program);
    let absent = |why: String| (of(fact::UNREADABLE_TOOL), why);
    let Some(path) = look_up(&tool.program) else {
        let (name, why) = absent(if tool.program.contains(std::path::is_separator) {
            format!("{NOT_INSTALLED}: no such program")
        } else {
            let folders = std::env::var_os("PATH").unwrap_or_else(|| SEARCH_PATH.into());
            format!("{NOT_INSTALLED}: not in {}", folders.display())
        });
        return facts.set(&name, why);
    };
    let file = match std::fs::canonicalize(&path) {
        Ok(file) => file,
        Err(error) => {
            let (name, why) = absent(error.to_string());
            return facts.set(&name, why);
        }
    };
    facts.set(&of(fact::TOOL_PATH), file.to_string_lossy());
    facts.try_set(&of(fact::TOOL_SHA256), sha256(&file));
    match interpreter(&file) {
        Ok(Some(loader)) => {
            facts.set(&of(fact::TOOL_INTERPRETER), loader.to_string_lossy());
            facts.try_set(&of(fact::TOOL_INTERPRETER_SHA256), sha256(&loader));
        }
        Ok(None) => {}
        Err(error) => facts.unreadable(&of(fact::TOOL_INTERPRETER), &error),
    }
    if !tool.version.is_empty() {
        // By the path that was found: a program may behave differently under different names.
        facts.try_set(&of(fact::TOOL_VERSION), version(&path, &tool.version));
    }
}

/// Returns the first non-empty line that the program prints.
#[cfg(windows)]
fn version(program: &Path, arguments: &[String]) -> io::Result<String> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    // The command's copies of the write end would keep the pipe open.
    drop(command);
    let (sender, answers) = std::sync::mpsc::channel();
    // The thread ends with the pipe; the program's children end with the agent, whose job they are in.
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        let read = reader.take(ANSWER_LIMIT as u64).read_to_end(&mut answer);
        sender.send(read.map(|_| answer))
    });
    let answer = answers.recv_timeout(VERSION_LIMIT);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if answer.is_err() || begun.elapsed() > VERSION_LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(late());
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let answer = answer.map_err(|_| late())??;
    first_line(&answer).ok_or_else(|| io::Error::other(format!("it printed nothing ({status})")))
}

/// Returns the first non-empty line that the program prints.
#[cfg(unix)]
fn version(program: &Path, arguments: &[String]) -> io::Result<String> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .env("LC_ALL", "C")
        // A separate process group can be killed as a whole.
        .process_group(0);
    if std::env::var_os("PATH").is_none() {
        command.env("PATH", SEARCH_PATH);
    }
    let begun = Instant::now();
    let mut child = command.spawn()?;
    // The command's copies of the write end would keep the pipe open.
    drop(command);
    let answer = read_until(&mut reader, begun + VERSION_LIMIT);
    // It may have closed its streams and still run, or have left processes behind.
    let has_ended = answer.is_ok() && ends_by(&child, begun + VERSION_LIMIT);
    // SAFETY: `kill` takes plain numbers. The group's leader has not been reaped yet, so that its pid, and with it
    // the group's, cannot have been reused.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
    let status = child.wait()?;
    if !has_ended && answer.is_ok() {
        return Err(late());
    }
    let line = first_line(&answer?);
    match (status.code(), line) {
        (Some(code), _) if NOT_RUN.contains(&code) => {
            Err(io::Error::other(format!("it ended with status {code}")))
        }
        (None, _) => Err(io::Error::other(format!("it ended by a signal ({status})"))),
        (Some(_), Some(line)) => Ok(line),
        (Some(code), None) => Err(io::Error::other(format!(
            "it printed nothing (status {code})"
        ))),
    }
}

/// Reads until the stream ends, the size limit is reached or the deadline has passed.
#[cfg(unix)]
fn read_until(reader: &mut io::PipeReader, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    while answer.len() < ANSWER_LIMIT {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut waited = libc::pollfd {
            fd: reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let left = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one live `pollfd` is given, exclusively borrowed, with its count.
        match unsafe { libc::poll(&raw mut waited, 1, left) } {
            0 => return Err(late()),
            1 => match reader.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            },
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(answer)
}

/// Waits for a process to exit without reaping it; returns whether it did so in time.
#[cfg(unix)]
fn ends_by(child: &std::process::Child, deadline: Instant) -> bool {
    loop {
        // SAFETY: `siginfo_t` is plain data for which all zeroes is a valid value.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `found` is live and exclusively borrowed; the child is this process's and unreaped.
        let result = unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut found, options) };
        // SAFETY: `waitid` succeeded; it sets the field to the child's number, or leaves it 0.
        if result == 0 && unsafe { found.si_pid() } != 0 {
            return true;
        }
        if result != 0 || Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn late() -> io::Error {
    let text = format!("no answer within {} s", VERSION_LIMIT.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Returns the first non-empty line, without control characters.
fn first_line(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let mut lines = text.lines().map(|line| {
        let plain = line.chars().filter(|letter| !letter.is_control());
        plain.take(LINE_LIMIT).collect::<String>().trim().to_owned()
    });
    lines.find(|line| !line.is_empty())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn question(program: &str, version: &[&str]) -> ToolQuestion {
        ToolQuestion {
            program: program.to_owned(),
            version: version.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    fn asked(tool: ToolQuestion) -> tare_model::Facts {
        let mut facts = Collector::default();
        collect(&mut facts, &[tool]);
        facts.facts
    }

    #[test]
    fn tool_facts_hold_path_hash_version_interpreter() {
        let facts = asked(question("sh", &["-c", "echo; printf '\\033[1mshell 7\\n'"]));
        assert_eq!(facts["tool.sh.version"], "[1mshell 7");
        let path = std::fs::canonicalize(look_up("sh").unwrap()).unwrap();
        assert_eq!(facts["tool.sh.path"], path.to_str().unwrap());
        let reference = Command::new("sha256sum").arg(&path).output().unwrap();
        let digits = String::from_utf8(reference.stdout).unwrap();
        assert_eq!(
            Some(facts["tool.sh.sha256"].as_str()),
            digits.split(' ').next()
        );
    }

    #[test]
    fn missing_or_silent_tool_is_recorded_as_unreadable() {
        let facts = asked(question("no-such-tool", &["--version"]));
        assert!(facts["unreadable.tool.no-such-tool"].starts_with(NOT_INSTALLED));
        assert_eq!(facts.len(), 1);
        let why = |script: &str| {
            let facts = asked(question("sh", &["-c", script]));
            assert!(!facts.contains_key("tool.sh.version"));
            facts["unreadable.tool.sh.version"].clone()
        };
        assert!(why("true").contains("nothing"));
        assert!(why("echo x; exit 127").contains("127"));
        assert!(why("echo x; kill -9 $$").contains("signal"));
        // The version of a tool that prints it and fails is accepted.
        let facts = asked(question("sh", &["-c", "echo 1.2 >&2; exit 1"]));
        assert_eq!(facts["tool.sh.version"], "1.2");
    }

    #[test]
    fn hanging_tool_is_killed_with_its_children() {
        let mark = format!("77{}", std::process::id());
        let begun = Instant::now();
        let facts = asked(question(
            "sh",
            &["-c", &format!("sleep {mark} & sleep {mark}")],
        ));
        assert!(facts["unreadable.tool.sh.version"].contains("no answer within 5 s"));
        assert!(begun.elapsed() < Duration::from_secs(20));
        let is_there = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                std::fs::read(entry.path().join("cmdline"))
                    .is_ok_and(|line| line == format!("sleep\0{mark}\0").as_bytes())
            })
        };
        let begun = Instant::now();
        while is_there() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it is still there"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
