//! `leash [--tap RUN LABEL] [--sibling HUB NUMBER] -- PROGRAM ARGUMENTS…`: a program that ends when whoever asked for it ends.
//!
//! For programs that would go on without their host, such as a machine emulator whose guest hangs. The leash
//! stays beside the program: the kernel kills the program when the leash dies however that happens, and the
//! leash kills it when its own parent is gone. It has one thread, so that its death is that of its process;
//! asking for the kernel's signal directly would tie the program to one thread of the host.
//! The program has a session of its own: Ctrl-C in the terminal is for the host to understand.
//! With `--tap` a TAP device is made first and inherited; `{tare.fd}`, `{tare.host}`, `{tare.arm}` and
//! `{tare.bits}` in the arguments become its descriptor and addresses. With `--sibling` another one is made in
//! the hub's namespace, and `{tare.sibling.fd}` becomes its descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use tare_model::RunId;

use crate::launch::sys;
use crate::tap::{self, Tap};

/// The status where the program or what it needs is not there, as of a shell.
const NOT_STARTED: u8 = 127;

/// Runs `leash`; the status is the program's, or 128 and the number of the signal that ended it.
#[allow(
    clippy::print_stderr,
    reason = "standard error is where the host reads the reason"
)]
pub fn main(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(status) => ExitCode::from(status as u8),
        Err(problem) => {
            eprintln!("tare-agent: leash: {problem}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn run(arguments: &[String]) -> Result<i32, String> {
    let usage = || {
        "leash [--tap RUN LABEL] [--sibling HUB NUMBER] -- PROGRAM ARGUMENTS is expected".to_owned()
    };
    let (mut wanted, mut sibling, mut rest) = (None, None, arguments);
    let argv = loop {
        rest = match rest {
            [end, argv @ ..] if end == "--" => break argv,
            [option, run, label, rest @ ..] if option == "--tap" => {
                wanted = Some((run, label));
                rest
            }
            [option, hub, number, rest @ ..] if option == "--sibling" => {
                let numbers = hub.parse().ok().zip(number.parse().ok());
                sibling = Some(numbers.ok_or_else(usage)?);
                rest
            }
            _ => return Err(usage()),
        };
    };
    let program = argv.first().ok_or_else(usage)?;
    let program = find(program).ok_or_else(|| format!("there is no program `{program}`"))?;
    let tap = wanted
        .map(|(run, label)| {
            let run = RunId::new(run.clone()).map_err(|error| error.to_string())?;
            tap::make(&run, label)
        })
        .transpose()?;
    let sibling = sibling
        .map(|(hub, number)| tap::make_sibling(hub, number))
        .transpose()?;
    let rest = argv[1..]
        .iter()
        .map(|argument| filled_in(argument, tap.as_ref(), sibling.as_ref()));
    let argv: Vec<String> = std::iter::once(program).chain(rest).collect();
    hold(&argv, (tap, sibling)).map_err(|error| error.to_string())
}

/// The path of a program, as a shell finds it.
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

fn filled_in(argument: &str, tap: Option<&Tap>, sibling: Option<&OwnedFd>) -> String {
    let argument = match sibling {
        Some(sibling) => argument.replace("{tare.sibling.fd}", &sibling.as_raw_fd().to_string()),
        None => argument.to_owned(),
    };
    let Some(tap) = tap else {
        return argument;
    };
    argument
        .replace("{tare.fd}", &tap.descriptor.as_raw_fd().to_string())
        .replace("{tare.host}", &tap.addresses.host.to_string())
        .replace("{tare.arm}", &tap.addresses.arm.to_string())
        .replace("{tare.bits}", &tap.addresses.prefix_bits.to_string())
}

/// Starts the program and waits for its end, or ends it with our parent.
fn hold(argv: &[String], devices: (Option<Tap>, Option<OwnedFd>)) -> io::Result<i32> {
    let (own, parent) = (std::process::id() as libc::pid_t, sys::parent());
    let heeded = [
        libc::SIGCHLD,
        libc::SIGUSR1,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGINT,
    ];
    let signals = sys::signals_as_descriptor(&heeded)?;
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR1 as libc::c_ulong)?;
    let program = sys::clone_process(0)?;
    if program == 0 {
        become_program(argv, own);
    }
    // The devices are the program's alone from here, and go with it.
    drop(devices);
    loop {
        if let Some(status) = sys::reap(program, false)? {
            return Ok(status);
        }
        let mut entry = [libc::pollfd {
            fd: signals.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }];
        sys::poll(&mut entry, -1)?;
        while let Some(signal) = sys::next_signal(&signals) {
            // The signal also comes when only the thread that started us ends.
            let is_orphaned = signal == libc::SIGUSR1 && sys::parent() != parent;
            if is_orphaned || signal == libc::SIGTERM || signal == libc::SIGHUP {
                // It may have ended a moment ago; then it is reaped next.
                let _ = sys::kill(program, libc::SIGKILL);
            }
        }
    }
}

/// The child: tied to the leash, then the program.
fn become_program(argv: &[String], leash: libc::pid_t) -> ! {
    let tied = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong).and_then(|_| {
        // The leash may have died before the kernel knew that it matters.
        if sys::parent() == leash {
            sys::new_session()?;
            sys::reset_signals()
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    });
    let error = match tied {
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
    eprintln!("tare-agent: leash: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        run(&words).unwrap_err()
    }

    #[test]
    fn what_cannot_be_started_is_said_before_anything_is_made() {
        assert!(problem("sleep 1").contains("expected"));
        assert!(problem("--").contains("expected"));
        assert!(problem("--tap run -- x").contains("expected"));
        assert!(problem("--sibling x 1 -- true").contains("expected"));
        assert!(problem("-- tare-no-such-program").contains("tare-no-such-program"));
        assert!(problem("--tap a/b arm -- true").contains("a/b"));
    }

    #[test]
    fn arguments_without_a_device_stay_as_they_are() {
        assert_eq!(filled_in("{tare.arm}", None, None), "{tare.arm}");
    }
}
