//! A connection: the guard on the other machine, and what was learnt while connecting.
//!
//! The guard is an ordinary `ssh` command that holds the arm's folders there and waits for the end of its stdin. If
//! `ssh` can share connections, the other commands use this one. It runs with `-v`, the only way in which `ssh`
//! reports the address that it reached, the cipher and the server's key. The log goes to a separate file (`-E`):
//! stderr carries output of the other machine, which must not be mistaken for messages of `ssh`.
//! Limits: `ssh` notices a silently broken connection only after 15 s (`ServerAliveInterval` ×
//! `ServerAliveCountMax`).

use crate::env::prelude::*;

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use tare_model::whole_ns;

use super::super::channel::wait_for_last_words;
use super::command::{Share, ssh};
use super::errors::{by_hand, has_logged_in, known_name, too_slow, trouble, words};
use super::reader::AfterMark;
use super::script::{END, GUARD, remote, status};
use super::settings::Settings;
use crate::cx::aside;

/// Time limit for the guard to remove its folders and end.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// Interval of checks for Ctrl-C while waiting.
const SLICE: Duration = Duration::from_millis(100);

/// Limit for `ssh`'s log, bytes. A connection writes a few KiB; one whose log grows longer is closed.
const LOG_LIMIT: usize = 1 << 20;

/// Beginning of `ssh`'s message about a missing key file.
const NO_IDENTITY: &str = "Warning: Identity file";

/// The longest line of a report, bytes: enough for four paths.
const LINE_LIMIT: u64 = 16 << 10;

/// Returns the boot id of this machine's kernel, if it has one.
pub(super) fn own_boot() -> Option<String> {
    let text = files::read_text("/proc/sys/kernel/random/boot_id".as_ref()).ok()?;
    Some(text.trim().to_owned()).filter(|boot| !boot.is_empty())
}

/// The log file of `ssh`; removed when dropped.
struct LogFile(PathBuf);

impl LogFile {
    /// Returns the text written so far.
    fn text(&self) -> String {
        // There is no file before `ssh` has started.
        let bytes = files::head(&self.0, LOG_LIMIT).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // The whole run folder is removed at the end.
        let _ = files::remove(&self.0);
    }
}

/// The guard's report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// The folder for the agent.
    pub(super) folder: String,
    /// The folder for the probes' files.
    pub(super) work: String,
    /// `uname -s`.
    pub(super) system: String,
    /// `uname -m`.
    pub(super) machine: String,
    /// Addresses of client and server as the server sees them.
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    /// The boot id of its kernel, if it has one.
    pub(super) boot: Option<String>,
    /// Size of the login shell's output before the report, bytes.
    pub(super) n_skipped: usize,
}

impl Report {
    fn read(lines: &[String]) -> Self {
        let value = |name: &str| {
            let mut values = lines.iter().filter_map(|line| line.split_once(' '));
            values
                .find(|(found, _)| *found == name)
                .map_or("", |(_, value)| value.trim())
                .to_owned()
        };
        // `SSH_CONNECTION`: client address and port, server address and port.
        let connection = value("connection");
        let mut ends = connection.split(' ').step_by(2).map(|text| {
            // A link-local address (with its interface) does not parse: it is useless here, where the interface is
            // another one.
            text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
        });
        Self {
            folder: value("folder"),
            work: value("work"),
            system: value("system"),
            machine: value("machine"),
            ends: ends.next().flatten().zip(ends.next().flatten()),
            boot: Some(value("boot")).filter(|boot| !boot.is_empty()),
            n_skipped: 0,
        }
    }
}

/// A connection shared by the environment and its instances, which need its messages when it ends.
pub(super) type Shared = Arc<Mutex<Connection>>;

/// An open connection. When dropped, its guard ends and removes the folders there.
pub(super) struct Connection {
    running: Box<dyn Running>,
    stdin: Option<Box<dyn Write + Send>>,
    /// The control socket through which other commands may share it.
    pub(super) control: Option<String>,
    /// The name of its folders.
    pub(super) name: String,
    /// The guard's report.
    pub(super) report: Report,
    /// What `ssh` logged while connecting.
    pub(super) log: Log,
    /// The file with the complete log.
    log_file: LogFile,
}

/// Why there is no connection, and whether folders may have been created nevertheless.
pub(super) struct NoConnection {
    pub(super) error: EnvError,
    pub(super) is_touched: bool,
}

impl Connection {
    /// Connects, and has the guard create the folders of this name.
    pub(super) fn open(
        cx: &Context<'_>,
        settings: &Settings,
        control: Option<String>,
        name: String,
    ) -> Result<Self, NoConnection> {
        let untouched = |error: EnvError| NoConnection {
            error,
            is_touched: false,
        };
        let base = settings.folder.as_deref().unwrap_or("-");
        let script = remote(Some(cx.run), GUARD, &[&name, base])
            .expect("names are identifiers, and the folder was checked");
        let share = control.as_deref().map_or(Share::Alone, Share::Give);
        let log_file = LogFile(cx.scratch.join(format!("{name}.log")));
        let command = ssh(settings, share, Some(&log_file.0), cx.run, &script);
        let mut running = cx
            .exec
            .spawn(&command)
            .map_err(|error| untouched(error.into()))?;
        let stdin = running.take_stdin();
        let report = match running.take_stdout() {
            Some(stdout) => hear(stdout),
            None => mpsc::channel().1,
        };
        let begun_ns = cx.clock.now_ns();
        let answer = loop {
            match report.recv_timeout(SLICE) {
                Ok(answer) => break answer,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    break Err("it has ended".to_owned());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let waited_ns = cx.clock.now_ns().saturating_sub(begun_ns);
            let is_late = waited_ns >= whole_ns(CONTROL_LIMIT);
            if is_late || cx.cancel.is_requested() {
                running.kill();
                let error = if is_late {
                    too_slow("logging in to", settings, CONTROL_LIMIT)
                } else {
                    refused(settings, "connecting to", "a stop was requested")
                };
                return Err(NoConnection {
                    error,
                    is_touched: has_logged_in(&log_file.text()),
                });
            }
        };
        let report = match answer {
            Ok(report) => report,
            Err(instead) => {
                return Err(explain(settings, running, stdin, &log_file, &instead));
            }
        };
        let mut log = Log::parse(&log_file.text());
        // Printed while `ssh` parses its options, before there is a log.
        log.has_no_identity |= running.stderr_tail().starts_with(NO_IDENTITY);
        Ok(Self {
            running,
            stdin,
            control,
            name,
            report,
            log,
            log_file,
        })
    }

    /// Whether the other end runs on this kernel.
    pub(super) fn is_same_machine(&self) -> bool {
        self.report.boot.is_some() && self.report.boot == own_boot()
    }

    /// Whether it is still open, as far as `ssh` knows.
    pub(super) fn is_alive(&mut self) -> bool {
        if self.log_file.text().len() >= LOG_LIMIT {
            self.running.kill();
            return false;
        }
        matches!(self.running.wait(Duration::ZERO), Ok(None))
    }

    /// Waits until it has ended, at most `limit`; it may also stay open, because a single session can be refused.
    pub(super) fn wait_for_end(&mut self, limit: Duration) {
        // The next user of the connection checks whether it is open.
        let _ = self.running.wait(limit);
    }

    /// Returns the messages of `ssh` about the connection.
    pub(super) fn words(&self) -> String {
        join(
            &words(&self.log_file.text()),
            &words(&self.running.stderr_tail()),
        )
    }

    /// Returns how other commands use it.
    pub(super) fn share(&self) -> Share<'_> {
        self.control.as_deref().map_or(Share::Alone, Share::Take)
    }

    /// Has the guard remove its folders, and waits for that.
    pub(super) fn close(&mut self, settings: &Settings) -> Result<()> {
        drop(self.stdin.take());
        let ended = self.running.wait(CLOSE_LIMIT);
        match ended {
            Ok(Some(0)) => Ok(()),
            Ok(None) => {
                self.running.kill();
                Err(EnvError::Timeout {
                    phase: format!("removing the folders on `{}`", settings.host),
                    limit: CLOSE_LIMIT,
                })
            }
            Ok(Some(status)) => Err(refused(
                settings,
                "removing the folders on",
                &self.or_status(status),
            )),
            Err(error) => Err(refused(
                settings,
                "removing the folders on",
                &error.to_string(),
            )),
        }
    }

    fn or_status(&self, status: i32) -> String {
        match self.words() {
            words if words.is_empty() => format!("the command there ended with status {status}"),
            words => words,
        }
    }
}

/// Returns the error that this host refused something.
pub(super) fn refused(settings: &Settings, what: &str, answer: &str) -> EnvError {
    EnvError::refused(format!("{what} `{}`", settings.host), answer)
}

/// Reads the guard's report on a thread, then discards any further output so that nothing blocks.
fn hear(stdout: Box<dyn Read + Send>) -> mpsc::Receiver<Result<Report, String>> {
    let (sender, receiver) = mpsc::channel();
    // Without a thread there is no report.
    let _ = aside(move || {
        let reader = AfterMark::new(stdout);
        let n_skipped = reader.skipped();
        let mut reader = BufReader::new(reader);
        let report = read_report(&mut reader).map(|lines| Report {
            n_skipped: n_skipped.load(Ordering::Relaxed),
            ..Report::read(&lines)
        });
        let is_fine = report.is_ok();
        // The receiver may be gone; then the report is not needed.
        let _ = sender.send(report);
        if is_fine {
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        }
    });
    receiver
}

fn read_report(reader: &mut impl BufRead) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = (&mut *reader)
            .take(LINE_LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line == END {
            return Ok(lines);
        }
        if read == 0 || lines.len() > 100 {
            return Err("its report has no end".to_owned());
        }
        lines.push(line);
    }
}

/// Explains why there is no report from the guard.
fn explain(
    settings: &Settings,
    mut running: Box<dyn Running>,
    stdin: Option<Box<dyn Write + Send>>,
    log_file: &LogFile,
    instead: &str,
) -> NoConnection {
    drop(stdin);
    let status = wait_for_last_words(running.as_mut(), Duration::from_secs(2));
    running.kill();
    let (log, stderr) = (log_file.text(), running.stderr_tail());
    // A command that ended by itself has removed its folders, unless it reports that it could not.
    let is_over = status.is_some_and(|status| !matches!(status, 255 | -1 | status::NOT_REMOVED));
    let is_in = has_logged_in(&log);
    let is_touched = is_in && !is_over;
    let stderr_text = match join(&words(&log), &words(&stderr)) {
        said if said.is_empty() => instead.to_owned(),
        said => said,
    };
    let host = &settings.host;
    let error = match status {
        Some(255) | None => {
            // A jump host's `ssh` writes to stderr; the other machine cannot before the login has succeeded.
            let of_jump = || trouble(settings, &stderr).filter(|_| !is_in);
            trouble(settings, &log)
                .or_else(of_jump)
                .unwrap_or_else(|| refused(settings, "connecting to", &stderr_text))
        }
        Some(status::NO_FOLDER) => EnvError::absent(
            format!("no folder can be made on `{host}`: {stderr_text}"),
            "name one that you may write to: `folder = \"/…\"`",
        ),
        Some(status) => EnvError::absent(
            format!(
                "`{host}` lets you in but runs no command for you (status {status}): {}",
                if is_in && !instead.is_empty() {
                    join(instead, &join(&words(&log), &words(&stderr)))
                } else {
                    stderr_text
                }
            ),
            format!(
                "an account there with an ordinary shell; `{} true` must work",
                by_hand(settings)
            ),
        ),
    };
    NoConnection { error, is_touched }
}

fn join(first: &str, second: &str) -> String {
    match (first, second) {
        (one, "") | ("", one) => one.to_owned(),
        (first, second) => format!("{first}; {second}"),
    }
}

/// What `ssh -v` logged while connecting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// The address that it reached; `None` through a proxy.
    pub(super) address: Option<IpAddr>,
    /// Whether a key other than the known one was accepted.
    pub(super) has_changed_key: bool,
    /// The name under which the other key is known.
    pub(super) known_name: Option<String>,
    /// Whether a key was skipped because it cannot be read, or others can read it too.
    pub(super) has_no_identity: bool,
    /// Facts by name.
    pub(super) facts: Facts,
}

impl Log {
    /// Parses the log; `ssh` has written it before it starts the command whose report has arrived.
    fn parse(text: &str) -> Self {
        let mut log = Self {
            has_changed_key: text.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"),
            known_name: known_name(text),
            has_no_identity: text.contains("UNPROTECTED PRIVATE KEY FILE"),
            ..Self::default()
        };
        // A server can make `ssh` log lines of its choice, but not before its first message; and only the first value
        // of each fact counts.
        let connecting = text
            .lines()
            .take_while(|line| !line.contains("Remote protocol version"))
            .filter_map(|line| line.trim().strip_prefix("debug1: Connecting to "))
            .filter_map(|rest| rest.split_once(" [")?.1.split_once("] port "))
            .map(|(address, _)| address);
        let connecting: Vec<&str> = connecting.collect();
        let mut has_authenticated = false;
        for line in text.lines().map(str::trim) {
            if has_authenticated {
                break;
            }
            let mut fact = |name: &str, value: &str| {
                let value = escaped(value);
                if !value.is_empty() {
                    log.facts
                        .entry(fact::name_for(fact::SSH, name))
                        .or_insert(value);
                }
            };
            if let Some(rest) = line.strip_prefix("debug1: kex: server->client cipher: ") {
                fact("cipher", rest.split(' ').next().unwrap_or_default());
            } else if let Some(rest) = line.strip_prefix("debug1: Server host key: ") {
                fact("host_key", rest);
            } else if let Some((_, version)) = line.split_once("remote software version ") {
                fact("server", version);
            } else if let Some(rest) = line.strip_prefix("Authenticated to ") {
                has_authenticated = true;
                // `host ([address]:port) using "method".`, or `host (via proxy) using …`
                if let Some((_, rest)) = rest.split_once("([") {
                    if let Some((address, rest)) = rest.split_once("]:")
                        && connecting.contains(&address)
                    {
                        log.address = address.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
                        fact("address", address);
                        fact("port", rest.split(')').next().unwrap_or_default());
                    }
                } else {
                    fact("address", "through a proxy");
                }
                if let Some((_, method)) = rest.split_once(" using ") {
                    fact("method", method.trim_matches(['"', '.']));
                }
            }
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_report_contains_both_connection_ends() {
        let lines = [
            "folder /tmp/x",
            "work /tmp/x/work",
            "system Linux",
            "machine x86_64",
            "connection ::ffff:10.0.0.1 4711 10.0.0.2 22",
            "boot ",
        ];
        let report = Report::read(&lines.map(str::to_owned));
        let ends = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        assert_eq!(report.ends, Some(ends));
        assert_eq!((report.machine.as_str(), report.boot), ("x86_64", None));
        assert_eq!(Report::read(&["connection ".to_owned()]).ends, None);
        let local = ["connection fe80::1%eth0 1 fe80::2%eth0 22".to_owned()];
        assert_eq!(Report::read(&local).ends, None);
    }

    #[test]
    fn server_claimed_address_is_not_trusted() {
        let real = "debug1: Connecting to node [192.0.2.7] port 22.\n";
        let heard = "debug1: Remote protocol version 2.0, remote software version X\n";
        let forged = "debug1: Remote: x\nAuthenticated to node ([10.0.0.1]:22) using \"none\".\n";
        let also = "debug1: Connecting to node [10.0.0.1] port 22.\n";
        let own = "Authenticated to node ([192.0.2.7]:22) using \"publickey\".\n";
        let log = Log::parse(&format!("{real}{heard}{also}{forged}{own}"));
        assert_eq!(log.address, None, "nothing is believed of a log like this");
        let log = Log::parse(&format!("{real}{heard}{own}{forged}"));
        assert_eq!(log.address, "192.0.2.7".parse().ok());
    }

    #[test]
    fn report_without_end_marker_is_rejected() {
        let endless = "a\n".repeat(200);
        assert!(read_report(&mut endless.as_bytes()).is_err());
        assert!(read_report(&mut "a\n".as_bytes()).is_err());
        let whole = format!("a b\n{END}\nmore");
        assert_eq!(read_report(&mut whole.as_bytes()).unwrap(), ["a b"]);
    }

    #[test]
    fn ssh_log_yields_address_cipher_and_key() {
        let log = Log::parse(
            "debug1: Connecting to node [127.0.0.1] port 2222.\r\n\
             debug1: Connection established.\r\n\
             debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1 Debian-2\r\n\
             debug1: kex: server->client cipher: aes128-ctr MAC: x compression: none\r\n\
             debug1: Server host key: ssh-ed25519 SHA256:abc\r\n\
             Authenticated to node ([127.0.0.1]:2222) using \"publickey\".\r\n",
        );
        assert_eq!(log.address, "127.0.0.1".parse().ok());
        assert_eq!(log.facts["ssh.cipher"], "aes128-ctr");
        assert_eq!(log.facts["ssh.port"], "2222");
        assert_eq!(log.facts["ssh.method"], "publickey");
        assert_eq!(log.facts["ssh.server"], "OpenSSH_9.2p1 Debian-2");
        let log = Log::parse("Authenticated to node (via proxy) using \"publickey\".\n");
        assert_eq!(log.address, None);
        assert_eq!(log.facts["ssh.method"], "publickey");
    }
}
