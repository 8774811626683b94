//! `private-mounts [OPTION…] -- PROGRAM [ARG…]`: runs a program, usually an OCI runtime, so that its mounts do not
//! reach the host and its processes do not outlive it.
//!
//! A runtime bind-mounts its container's root onto itself; without a private mount namespace it does so in the
//! host's, where the mount stays. So the program always gets one. It also gets a PID namespace, whose first process
//! is a child of this one: runtimes leave processes behind when they are killed, and the kernel kills those with the
//! namespace's first process. That one dies with this process, and this process with its parent.
//! Options, in the order in which they take effect:
//! - `--hide-unified` unmounts the version 2 tree of a hybrid cgroup layout, which crun refuses.
//! - `--overlay FOLDER` mounts an overlay over the host's `/` on FOLDER/merged, with its layers next to it.
//! - `--veth FOLDER` makes a network namespace with a veth pair to the host, bound on FOLDER/netns, and writes its
//!   addresses to FOLDER/network.json.
//! - `--run` and `--name` say whose that is and whose cgroups are removed at the end.
//! - `--state FOLDER` and `--finally WORD`: if FOLDER still holds something of that name after the program has ended,
//!   the command made of the `--finally` words is run in the same namespaces, because the pids in a runtime's state
//!   are wrong elsewhere.
//!
//! Limits: needs root, and reports an error without it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tare_model::RunId;
use tare_model::launch::{LaunchError, REFUSED_STATUS};

use super::supervise::{Relay, supervise};
use super::{complain, control, mounts, network, refused, rootfs, spec, sys};
use crate::cgroup;

/// The parsed options.
#[derive(Debug, Default, PartialEq, Eq)]
struct LaunchOptions {
    run: Option<RunId>,
    name: Option<String>,
    hides_unified: bool,
    overlay: Option<PathBuf>,
    veth: Option<PathBuf>,
    state: Option<PathBuf>,
    finally: Vec<String>,
    program: Vec<String>,
    /// The pid of the parent, if given.
    parent: Option<libc::pid_t>,
}

impl LaunchOptions {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut wish = Self::default();
        let mut words = arguments.iter();
        while let Some(option) = words.next() {
            if option == "--" {
                wish.program = words.cloned().collect();
                break;
            }
            if option == "--hide-unified" {
                wish.hides_unified = true;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("`{}` needs a value", option.escape_debug()))?;
            match option.as_str() {
                "--run" => {
                    wish.run = Some(RunId::new(value.clone()).map_err(|error| error.to_string())?);
                }
                "--parent" => {
                    let parent = value.parse().map_err(|_| "`--parent` takes a process id")?;
                    wish.parent = Some(parent);
                }
                "--name" => wish.name = Some(value.clone()),
                "--overlay" => wish.overlay = Some(PathBuf::from(value)),
                "--veth" => wish.veth = Some(PathBuf::from(value)),
                "--state" => wish.state = Some(PathBuf::from(value)),
                "--finally" => wish.finally.push(value.clone()),
                other => return Err(format!("no option `{}`", other.escape_debug())),
            }
        }
        if wish.program.is_empty() {
            return Err("`-- PROGRAM` is missing".into());
        }
        if wish.name.as_ref().is_some_and(|name| !spec::is_name(name)) {
            return Err("`--name` takes letters, digits, `.`, `_` and `-`".into());
        }
        if wish.run.is_some() != wish.name.is_some() {
            return Err("`--run` and `--name` belong together".into());
        }
        if wish.veth.is_some() && wish.run.is_none() {
            return Err("`--veth` needs `--run` and `--name`".into());
        }
        Ok(wish)
    }

    /// Returns the label from which the veth pair's addresses and name are derived.
    fn label(&self) -> Option<String> {
        let (run, name) = (self.run.as_ref()?, self.name.as_ref()?);
        Some(spec::label(run.as_str(), name))
    }

    /// Returns the name of the program's cgroups.
    fn group(&self) -> Option<String> {
        let (run, name) = (self.run.as_ref()?, self.name.as_ref()?);
        Some(format!("tare-{run}-{name}"))
    }

    /// Returns whether the state folder still holds something of the container, which has its cgroup's name.
    fn has_state(&self) -> bool {
        let group = self.group().unwrap_or_default();
        let Some(Ok(mut entries)) = self.state.as_ref().map(fs::read_dir) else {
            return false;
        };
        entries.any(|entry| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains(&group))
        })
    }

    /// Removes what outlives the namespaces: the program's cgroups and the pair's outer end.
    fn clean(&self) -> Result<(), LaunchError> {
        let Some(group) = self.group() else {
            return Ok(());
        };
        let mut first = Ok(());
        for hierarchy in cgroup::mounted() {
            let folder = hierarchy.mount_point.join(&group);
            if folder.is_dir() {
                let removed = control::remove_folder(&folder, |_| true).map(drop);
                let step = format!("remove the cgroup `{}`", folder.display());
                first = first.and(removed.map_err(refused(&step)));
            }
        }
        if let Some(label) = self.label().filter(|_| self.veth.is_some()) {
            let removed = network::remove(&network::outer_name(&label)).map(drop);
            first = first.and(removed.map_err(refused("remove the veth pair")));
        }
        first
    }
}

/// Makes a network namespace with a veth pair, bound on a file in `folder` for a runtime to enter.
fn make_network(run: &RunId, label: &str, folder: &Path) -> Result<(), LaunchError> {
    let addresses = network::choose(label)?;
    let (go_read, go_write) = sys::pipe().map_err(refused("make a pipe"))?;
    let holder =
        sys::clone_process(libc::CLONE_NEWNET).map_err(refused("make the network namespace"))?;
    if holder == 0 {
        drop(go_write);
        let mut byte = [0u8; 1];
        if File::from(go_read).read_exact(&mut byte).is_err() {
            // The other side has failed and reports that itself.
            sys::leave(REFUSED_STATUS);
        }
        if let Err(error) = network::raise_inside(Some(&addresses)) {
            complain(&error);
            sys::leave(REFUSED_STATUS);
        }
        sys::leave(0);
    }
    drop(go_read);
    let outer = network::outer_name(label);
    let made = network::make_pair(&outer, run, holder, &addresses, None).and_then(|()| {
        let place = folder.join("netns");
        let step = format!("bind the network namespace on `{}`", place.display());
        File::create(&place)
            .and_then(|_| mounts::bind(OsStr::new(&format!("/proc/{holder}/ns/net")), &place))
            .map_err(refused(&step))
    });
    if made.is_ok() {
        File::from(go_write)
            .write_all(b"g")
            .map_err(refused("raise the veth pair"))?;
    } else {
        drop(go_write);
    }
    let status = sys::reap(holder, true).map_err(refused("wait for the network namespace"))?;
    made?;
    if status != Some(0) {
        return Err(refused("raise the veth pair inside")(io::Error::other(
            "see above",
        )));
    }
    let path = folder.join("network.json");
    serde_json::to_vec(&addresses)
        .map_err(io::Error::other)
        .and_then(|bytes| fs::write(&path, bytes))
        .map_err(refused(&format!("write `{}`", path.display())))
}

/// Sets up the mounts and the network. Called inside the new namespaces.
fn build(wish: &LaunchOptions) -> Result<(), LaunchError> {
    sys::reset_signals().map_err(refused("reset the signals"))?;
    // So that a terminal's Ctrl-C does not reach a runtime, which would pass it on to its container.
    sys::new_session().map_err(refused("start a session"))?;
    mounts::make_private()?;
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount(OsStr::new("proc"), Path::new("/proc"), "proc", quiet, "")
        .map_err(refused("mount a new /proc"))?;
    if wish.hides_unified {
        let hierarchies = cgroup::mounted();
        if hierarchies.iter().any(|one| !one.is_unified) {
            for unified in hierarchies.iter().filter(|one| one.is_unified) {
                let step = format!("hide `{}`", unified.mount_point.display());
                sys::unmount(&unified.mount_point).map_err(refused(&step))?;
            }
        }
    }
    if let Some(folder) = &wish.overlay {
        rootfs::mount_over_host(folder)?;
    }
    if let (Some(folder), Some(run), Some(label)) = (&wish.veth, &wish.run, wish.label()) {
        make_network(run, &label, folder)?;
    }
    Ok(())
}

/// Starts a program and reaps all processes until it has exited; returns its exit status, or 128 plus the signal's
/// number.
fn run(argv: &[String], is_quiet: bool) -> Result<i32, LaunchError> {
    let step = format!("execute `{}`", argv[0].escape_debug());
    let process = sys::clone_process(0).map_err(refused(&step))?;
    if process == 0 {
        let redirected = if is_quiet {
            // Its output would follow the last frame, where the reader expects no more.
            File::open("/dev/null")
                .and_then(|null| sys::duplicate_onto(&null, 0))
                .and_then(|()| sys::duplicate_onto(&io::stderr(), 1))
        } else {
            Ok(())
        };
        let error = redirected.map_or_else(|error| error, |()| sys::execute(argv));
        complain(&refused(&step)(error));
        sys::leave(REFUSED_STATUS);
    }
    loop {
        // The first process of a PID namespace inherits all orphans.
        let (ended, status) = sys::reap_any().map_err(refused("wait for the program"))?;
        if ended == process {
            return Ok(status);
        }
    }
}

/// Runs as the first process of the namespaces.
fn inside(wish: &LaunchOptions, go: OwnedFd) -> ! {
    let mut byte = [0u8; 1];
    let bound = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
    if File::from(go).read_exact(&mut byte).is_err() {
        sys::leave(REFUSED_STATUS);
    }
    let ended = bound
        .map(drop)
        .map_err(refused("bind this life to the parent's"))
        .and_then(|()| build(wish))
        .and_then(|()| run(&wish.program, false));
    let status = ended.unwrap_or_else(|error| {
        complain(&error);
        REFUSED_STATUS
    });
    if status > 128 {
        complain(&LaunchError {
            step: format!("run `{}`", wish.program[0].escape_debug()),
            problem: format!("it was ended by signal {}", status - 128),
            errno: None,
            hint: None,
        });
    }
    if wish.has_state()
        && !wish.finally.is_empty()
        && let Err(error) = run(&wish.finally, true)
    {
        complain(&error);
    }
    sys::leave(status)
}

fn supervised(wish: &LaunchOptions) -> Result<i32, LaunchError> {
    let signals = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGCHLD];
    let signals = sys::signals_as_descriptor(&signals).map_err(refused("block the signals"))?;
    sys::ignore_signal(libc::SIGINT);
    sys::ignore_signal(libc::SIGPIPE);
    let parent = sys::end_with_parent(libc::SIGUSR1, wish.parent)
        .map_err(refused("bind this life to the parent's"))?;
    let (go_read, go_write) = sys::pipe().map_err(refused("make a pipe"))?;
    let process = sys::clone_process(libc::CLONE_NEWNS | libc::CLONE_NEWPID).map_err(|error| {
        let mut refusal = refused("make the namespaces")(error);
        if refusal.errno == Some(libc::EPERM) {
            refusal.hint = Some("needs CAP_SYS_ADMIN: run as root".into());
        }
        refusal
    })?;
    if process == 0 {
        drop(go_write);
        inside(wish, go_read);
    }
    drop(go_read);
    let ended = File::from(go_write)
        .write_all(b"g")
        .and_then(|()| supervise(process, parent, &signals, Relay::default()))
        .map_err(refused("supervise the program"));
    if ended.is_err() {
        // It may have exited already; reaping reports that.
        let _ = sys::kill(process, libc::SIGKILL);
        let _ = sys::reap(process, true);
    }
    let cleaned = wish.clean();
    ended.and_then(|status| cleaned.map(|()| status))
}

/// Runs `private-mounts` with the arguments after it. Returns the program's exit status, 128 plus the number of the
/// signal that killed it, 125 if it was not started, 2 for wrong arguments.
pub fn main(arguments: &[String]) -> ExitCode {
    let status = match LaunchOptions::parse(arguments) {
        Ok(wish) => supervised(&wish).unwrap_or_else(|error| {
            complain(&error);
            REFUSED_STATUS
        }),
        Err(problem) => {
            complain(&LaunchError {
                step: "read the arguments".into(),
                problem,
                errno: None,
                hint: None,
            });
            2
        }
    };
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<LaunchOptions, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        LaunchOptions::parse(&words)
    }

    #[test]
    fn program_arguments_are_not_parsed_as_options() {
        let wish = parse(&[
            "--finally",
            "a",
            "--finally",
            "--force",
            "--",
            "x",
            "--",
            "--name",
        ]);
        let wish = wish.unwrap();
        assert_eq!(wish.finally, ["a", "--force"]);
        assert_eq!(wish.program, ["x", "--", "--name"]);
        assert!(!wish.hides_unified);
    }

    #[test]
    fn incomplete_private_mount_arguments_are_an_error() {
        let wrong: [&[&str]; 7] = [
            &[],
            &["--"],
            &["--overlay", "--"],
            &["--run", "r", "--", "x"],
            &["--name", "../x", "--run", "r", "--", "x"],
            &["--veth", "/tmp", "--", "x"],
            &["--nmae", "a", "--", "x"],
        ];
        for words in wrong {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
