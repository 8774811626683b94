//! `sandbox [--parent PID] [--unprivileged] [--device FILE] [--read FILE]… [--write FILE]… [--listen SOCKET]…
//! [--connect SOCKET]… [--console FILE] [--tap RUN LABEL] [--sibling HUB NUMBER] -- PROGRAM ARGUMENTS…`: runs a
//! program that ends when the process that started it ends.
//!
//! For programs that would outlive their host, such as a machine emulator whose guest hangs. The sandbox stays next
//! to the program: the kernel kills the program when the sandbox dies for any reason, and the sandbox kills it when
//! its parent is gone. It has one thread, so that its death is that of its process; asking for the kernel's signal
//! directly would tie the program to one thread of the host.
//! The program has a separate session: Ctrl-C in the terminal is left to the host.
//! With `--tap` a TAP device is created first and inherited; `{tare.fd}`, `{tare.host}`, `{tare.arm}` and
//! `{tare.bits}` in the arguments become its descriptor and addresses. With `--sibling` another one is created in the
//! hub's namespace, and `{tare.sibling.fd}` becomes its descriptor.
//! With `--unprivileged` a sandbox of root runs the program as an unprivileged user: without root's rights, only with
//! those of the group that may use the device. If only root may use the device, the program stays root. Its files are
//! opened for it (`files`): `{tare.file.0}`, `{tare.file.1}` … and `{tare.console}` become descriptors, in order.
//! With `--listen` and `--connect` two programs in sandboxes are the two ends of a socket that no other user can
//! reach.

mod files;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use tare_model::RunId;
use tare_model::launch::OWN_USERS;

use self::files::{Console, OpenMode};
use crate::launch::sys;
use crate::tap::{self, Tap};

/// Exit status if the program or a resource is missing, as in a shell.
const NOT_STARTED: u8 = 127;

/// Runs `sandbox`; the exit status is the program's, or 128 plus the number of the signal that ended it.
#[allow(
    clippy::print_stderr,
    reason = "standard error is where the host reads the reason"
)]
pub fn main(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(status) => ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)),
        Err(problem) => {
            eprintln!("tare-agent: sandbox: {problem}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// The user and the group `nobody`, by convention and the kernel's default: used if the user namespace does not have
/// a number for a separate user.
const NOBODY: u32 = 65_534;

/// The user and the groups that a program runs as.
#[derive(Debug, Clone, Copy)]
struct Account {
    user: u32,
    group: u32,
    /// The group that may use the device, if needed.
    device: Option<u32>,
}

impl Account {
    /// Returns a user that no other process has, with access to this device if one is given: programs in two
    /// sandboxes cannot touch each other. `None` if the program keeps the current rights: an ordinary user's, or
    /// root's because only root may use the device.
    fn of_its_own(device: Option<&str>) -> io::Result<Option<Self>> {
        if sys::effective_user() != 0 {
            return Ok(None);
        }
        let own = OWN_USERS + std::process::id();
        let is_known = ["/proc/self/uid_map", "/proc/self/gid_map"]
            .iter()
            .all(|map| fs::read_to_string(map).is_ok_and(|map| holds(&map, own)));
        let own = if is_known { own } else { NOBODY };
        let mut account = Self {
            user: own,
            group: own,
            device: None,
        };
        if let Some(device) = device {
            let found = fs::metadata(device)?;
            let is_for_group = found.mode() & 0o060 == 0o060 && found.gid() != 0;
            if is_for_group {
                account.device = Some(found.gid());
            } else if found.mode() & 0o006 != 0o006 {
                return Ok(None);
            }
        }
        Ok(Some(account))
    }
}

/// Whether a user namespace maps this user: `uid_map` of user_namespaces(7).
fn holds(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(first)), _, Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        user.checked_sub(first).is_some_and(|place| place < count)
    })
}

/// The parsed arguments.
#[derive(Debug, Default)]
struct SandboxArgs<'a> {
    parent: Option<libc::pid_t>,
    is_unprivileged: bool,
    device: Option<&'a str>,
    /// Paths in order, each with its access mode.
    files: Vec<(&'a str, OpenMode)>,
    console: Option<&'a str>,
    tap: Option<(&'a str, &'a str)>,
    sibling: Option<(u32, u32)>,
    argv: &'a [String],
}

impl<'a> SandboxArgs<'a> {
    /// Parses the arguments; `None` if they are invalid.
    fn read(arguments: &'a [String]) -> Option<Self> {
        let mut wanted = Self::default();
        let mut words = arguments.iter();
        loop {
            let mut word = || words.next().map(String::as_str);
            match word()? {
                "--" => break,
                "--parent" => wanted.parent = Some(word()?.parse().ok()?),
                "--unprivileged" => wanted.is_unprivileged = true,
                "--device" => wanted.device = Some(word()?),
                "--read" => wanted.files.push((word()?, OpenMode::Read)),
                "--write" => wanted.files.push((word()?, OpenMode::Write)),
                "--listen" => wanted.files.push((word()?, OpenMode::Listen)),
                "--connect" => wanted.files.push((word()?, OpenMode::Connect)),
                "--console" => wanted.console = Some(word()?),
                "--tap" => wanted.tap = Some((word()?, word()?)),
                "--sibling" => {
                    wanted.sibling = Some((word()?.parse().ok()?, word()?.parse().ok()?));
                }
                _ => return None,
            }
        }
        wanted.argv = words.as_slice();
        (!wanted.argv.is_empty()).then_some(wanted)
    }
}

/// The resources for the program, held until it has started.
#[derive(Default)]
struct Resources {
    tap: Option<Tap>,
    sibling: Option<OwnedFd>,
    files: Vec<OwnedFd>,
    console: Option<OwnedFd>,
}

fn run(arguments: &[String]) -> Result<i32, String> {
    let wanted = SandboxArgs::read(arguments).ok_or(
        "sandbox [--parent PID] [--unprivileged] [--device FILE] [--read FILE] [--write FILE] [--listen SOCKET] \
         [--connect SOCKET] [--console FILE] [--tap RUN LABEL] [--sibling HUB NUMBER] -- PROGRAM ARGUMENTS is expected",
    )?;
    let first = &wanted.argv[0];
    let program = find(first).ok_or_else(|| format!("there is no program `{first}`"))?;
    let account = if wanted.is_unprivileged {
        Account::of_its_own(wanted.device).map_err(|error| {
            let device = wanted.device.unwrap_or_default();
            format!("cannot look at `{device}`: {error}")
        })?
    } else {
        None
    };
    let mut given = Resources::default();
    for (path, way) in &wanted.files {
        let opened = way.open(path, account.as_ref());
        given
            .files
            .push(opened.map_err(|error| format!("cannot open `{path}`: {error}"))?);
    }
    let mut console = None;
    if let Some(path) = wanted.console {
        let (kept, program) =
            Console::open(path).map_err(|error| format!("cannot open `{path}`: {error}"))?;
        (console, given.console) = (Some(kept), Some(program));
    }
    if let Some((run, label)) = wanted.tap {
        let run = RunId::new(run.to_owned()).map_err(|error| error.to_string())?;
        given.tap = Some(tap::make(&run, label)?);
    }
    if let Some((hub, number)) = wanted.sibling {
        given.sibling = Some(tap::make_sibling(hub, number)?);
    }
    let rest = wanted.argv[1..]
        .iter()
        .map(|argument| filled_in(argument, &given));
    let argv: Vec<String> = std::iter::once(program).chain(rest).collect();
    hold(&argv, account, given, console, wanted.parent).map_err(|error| error.to_string())
}

/// Finds a program on the search path, as a shell does.
fn find(name: &str) -> Option<String> {
    if name.contains('/') {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path: &std::path::PathBuf| Path::is_file(path))
        .map(|path| path.display().to_string())
}

fn filled_in(argument: &str, given: &Resources) -> String {
    let mut text = argument.to_owned();
    let mut fill = |blank: &str, value: &dyn std::fmt::Display| {
        if text.contains(blank) {
            text = text.replace(blank, &value.to_string());
        }
    };
    for (number, file) in given.files.iter().enumerate() {
        fill(&format!("{{tare.file.{number}}}"), &file.as_raw_fd());
    }
    if let Some(console) = &given.console {
        fill("{tare.console}", &console.as_raw_fd());
    }
    if let Some(sibling) = &given.sibling {
        fill("{tare.sibling.fd}", &sibling.as_raw_fd());
    }
    if let Some(tap) = &given.tap {
        fill("{tare.fd}", &tap.descriptor.as_raw_fd());
        fill("{tare.host}", &tap.addresses.host);
        fill("{tare.arm}", &tap.addresses.arm);
        fill("{tare.bits}", &tap.addresses.prefix_bits);
    }
    text
}

/// Starts the program and waits for it to end; kills it when our parent ends.
fn hold(
    argv: &[String],
    account: Option<Account>,
    given: Resources,
    mut console: Option<Console>,
    parent: Option<libc::pid_t>,
) -> io::Result<i32> {
    let own = std::process::id().cast_signed();
    let heeded = [
        libc::SIGCHLD,
        libc::SIGUSR1,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGINT,
    ];
    let signals = sys::signals_as_descriptor(&heeded)?;
    let parent = sys::end_with_parent(libc::SIGUSR1, parent)?;
    let program = sys::clone_process(0)?;
    if program == 0 {
        become_program(argv, account, own);
    }
    // From here on only the program holds the resources; they close when it ends.
    drop(given);
    loop {
        if let Some(status) = sys::reap(program, false)? {
            // Its last output is still in the pipe; no other process holds the write end.
            while console.as_mut().is_some_and(Console::pass_on) {}
            return Ok(status);
        }
        let mut entries = vec![watch(signals.as_raw_fd())];
        entries.extend(console.as_ref().map(|it| watch(it.descriptor())));
        sys::poll(&mut entries, -1)?;
        if entries.get(1).is_some_and(|entry| entry.revents != 0)
            && !console.as_mut().is_some_and(Console::pass_on)
        {
            console = None;
        }
        while let Some(signal) = sys::next_signal(&signals) {
            // The signal also arrives when only the thread that started us ends.
            let is_orphaned = signal == libc::SIGUSR1 && sys::parent() != parent;
            if is_orphaned || signal == libc::SIGTERM || signal == libc::SIGHUP {
                // It may have just ended; then it is reaped next.
                let _ = sys::kill(program, libc::SIGKILL);
            }
        }
    }
}

fn watch(fd: libc::c_int) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Runs in the child: drops the rights, ties the process to the sandbox, and executes the program.
fn become_program(argv: &[String], account: Option<Account>, sandbox: libc::pid_t) -> ! {
    // After the change of user, which would clear the parent-death signal.
    let ready = account
        .map_or(Ok(()), |it| {
            sys::become_user(it.user, it.group, it.device)?;
            sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map(drop)
        })
        // The sandbox may have died before the signal was set.
        .and_then(|()| sys::end_with_parent(libc::SIGKILL, Some(sandbox)))
        .and_then(|_| {
            sys::new_session()?;
            sys::reset_signals()
        });
    let error = match ready {
        Ok(()) => sys::execute(argv),
        Err(error) => error,
    };
    say(&format!(
        "cannot run `{}`: {error}",
        argv.first().map_or("", String::as_str)
    ));
    sys::leave(i32::from(NOT_STARTED))
}

#[allow(
    clippy::print_stderr,
    reason = "standard error is where the host reads the reason"
)]
fn say(text: &str) {
    eprintln!("tare-agent: sandbox: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        run(&words).unwrap_err()
    }

    #[test]
    fn user_of_its_own_needs_a_number_in_the_namespace() {
        for (map, is_known) in [
            ("         0          0 4294967295\n", true),
            ("0 100000 65536\n", false),
            ("0 100000 65536\n1895825408 1 9999999\n", true),
            ("", false),
            ("x y z\n", false),
        ] {
            assert_eq!(holds(map, OWN_USERS + 12), is_known, "{map:?}");
        }
    }

    #[test]
    fn sandbox_argument_errors_precede_any_setup() {
        assert!(problem("sleep 1").contains("expected"));
        assert!(problem("--").contains("expected"));
        assert!(problem("--tap run -- x").contains("expected"));
        assert!(problem("--read").contains("expected"));
        assert!(problem("--parent x -- true").contains("expected"));
        assert!(problem("--read /no/such/file -- true").contains("/no/such/file"));
        assert!(problem("--connect /no/such/socket -- true").contains("/no/such/socket"));
        assert!(problem("--sibling x 1 -- true").contains("expected"));
        assert!(problem("-- tare-no-such-program").contains("tare-no-such-program"));
        assert!(problem("--tap a/b arm -- true").contains("a/b"));
    }

    #[test]
    fn arguments_without_a_device_stay_as_they_are() {
        assert_eq!(filled_in("{tare.arm}", &Resources::default()), "{tare.arm}");
    }
}
