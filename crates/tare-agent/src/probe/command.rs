//! `command`: runs a program of the user's or of the field and keeps what it leaves.
//!
//! Inside the timed region: the request to start the program, everything that it and its children do, and
//! waiting for its end. Outside: writing its files into a fresh folder, looking it up on the search path,
//! reading back the files that were asked for. Nothing passes through a shell.
//! A program that serves is started on a port of the agent's choice, and has started when that port listens.
//! Known bias: standard output and standard error are read through pipes by two threads of the worker while
//! the program runs, which use a little of a processor when it prints much.
//! What it cannot see: whether the program did what it says. An exit status other than 0 is reported, not
//! judged; its workload judges, so that the output is stored whatever came of it.

use tare_model::Params;

use super::Probe;
use crate::meter::{Meter, ProbeError};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "command",
    revision: 1,
    about: "start of a program, all that it does, and waiting for its end",
    run,
};

#[cfg(not(unix))]
fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(super::linux_only("running a program"))
}

#[cfg(unix)]
fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    unix::run(meter, params)
}

#[cfg(unix)]
mod unix {
    use std::collections::BTreeMap;
    use std::io::{self, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Component, Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use tare_model::command::{ADDRESS, FOLDER, PORT, Stdout, Transport};
    use tare_model::outcome::{Bytes, Exit};
    use tare_model::{CommandCall, CommandReport, Failure, Params, Reason};

    use crate::args::{refused, whole};
    use crate::folder::Folder;
    use crate::meter::{Meter, ProbeError};

    /// How much of standard output is kept, bytes.
    const STDOUT_LIMIT: usize = 16 << 20;
    /// How much of standard error is kept, bytes.
    const STDERR_LIMIT: usize = 1 << 20;
    /// How much of one collected file is kept, bytes.
    const FILE_LIMIT: u64 = 16 << 20;
    /// How long a server may take until it listens.
    const LISTEN_LIMIT: Duration = Duration::from_secs(10);
    /// Pause between two looks whether it does.
    const LOOK_AGAIN: Duration = Duration::from_millis(1);
    /// Where programs are looked for in a place that has no search path.
    const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let call = CommandCall::from_args(params).map_err(refused)?;
        let folder = Folder::new(meter.workdir(), "tare-command")?;
        let port = match call.listens {
            Some(transport) => Some(free_port(transport, params)?),
            None => match params.value("port") {
                Some(_) => Some(whole(params, "port", 0, 1..=65_535)? as u16),
                None => None,
            },
        };
        let blanks = Blanks {
            address: ["address", "bind"]
                .iter()
                .find_map(|name| params.text(name))
                .unwrap_or("127.0.0.1")
                .to_owned(),
            port: port.map(|port| port.to_string()),
            folder: folder.path().to_string_lossy().into_owned(),
        };
        let argv = call
            .argv
            .iter()
            .map(|argument| blanks.fill(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let program = look_up(&argv[0])?;
        for (name, text) in &call.files {
            let path = inside(folder.path(), name)?;
            std::fs::write(&path, blanks.fill(text)?)
                .map_err(|error| ProbeError::system("write a file for the program", &error))?;
        }
        let mut command = Command::new(&program);
        command
            .args(&argv[1..])
            .current_dir(call.directory.as_deref().map_or(folder.path(), Path::new))
            .stdin(if call.stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(match call.stdout {
                Stdout::Kept => Stdio::piped(),
                Stdout::Discarded => Stdio::null(),
            })
            .stderr(Stdio::piped());
        for (name, value) in &call.variables {
            command.env(name, blanks.fill(value)?);
        }
        if std::env::var_os("PATH").is_none() && !call.variables.contains_key("PATH") {
            command.env("PATH", SEARCH_PATH);
        }
        meter.ready()?;
        let begin = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| not_started(&program, &error))?;
        let streams = Streams::of(&mut child, call.stdin.as_deref());
        if let (Some(transport), Some(port)) = (call.listens, port) {
            if let Err(why) = wait_until_it_listens(&mut child, transport, port, begin) {
                let (_, stderr) = streams.finish();
                let end = stderr.bytes.len().min(2_048);
                let text = String::from_utf8_lossy(&stderr.bytes[..end]);
                return Err(ProbeError::Failed(Failure::Probe(format!(
                    "{why}: {}",
                    text.trim().escape_debug()
                ))));
            }
            meter.announce(port);
        }
        let (exit, usage) = wait(&child)?;
        let wall_ns = begin.elapsed().as_nanos() as u64;
        let (stdout, stderr) = streams.finish();
        let mut files = BTreeMap::new();
        for name in &call.collect {
            if let Some(bytes) = read_file(&inside(folder.path(), name)?)? {
                files.insert(name.clone(), Bytes(bytes));
            }
        }
        meter.command(CommandReport {
            argv,
            program: program.to_string_lossy().into_owned(),
            exit,
            is_cut: stdout.is_cut || stderr.is_cut,
            stdout: Bytes(stdout.bytes),
            stderr: Bytes(stderr.bytes),
            files,
            wall_ns,
            usage,
        });
        Ok(())
    }

    /// What the placeholders stand for.
    struct Blanks {
        address: String,
        port: Option<String>,
        folder: String,
    }

    impl Blanks {
        fn fill(&self, text: &str) -> Result<String, ProbeError> {
            let text = text
                .replace(FOLDER, &self.folder)
                .replace(ADDRESS, &self.address);
            match &self.port {
                Some(port) => Ok(text.replace(PORT, port)),
                None if text.contains(PORT) => Err(refused(format!(
                    "`{PORT}` stands for nothing: the program neither serves nor is told a port"
                ))),
                None => Ok(text),
            }
        }
    }

    /// The file `name` of the folder; a name that leads out of it is refused.
    fn inside(folder: &Path, name: &str) -> Result<PathBuf, ProbeError> {
        let relative = Path::new(name);
        let is_plain = !name.is_empty()
            && relative
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
        if is_plain {
            return Ok(folder.join(relative));
        }
        Err(refused(format!(
            "`{}` is no name of a file in the program's folder",
            name.escape_default()
        )))
    }

    /// The file that a shell would execute.
    fn look_up(name: &str) -> Result<PathBuf, ProbeError> {
        let is_program = |path: &Path| {
            std::fs::metadata(path)
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        };
        let missing =
            || ProbeError::Unavailable(Reason::MissingTool(name.escape_default().to_string()));
        if name.contains('/') {
            let path = PathBuf::from(name);
            return if is_program(&path) {
                Ok(path)
            } else {
                Err(missing())
            };
        }
        let folders = std::env::var_os("PATH").unwrap_or_else(|| SEARCH_PATH.into());
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| is_program(path))
            .ok_or_else(missing)
    }

    fn not_started(program: &Path, error: &io::Error) -> ProbeError {
        let program = program.display().to_string();
        let program = program.escape_default();
        match error.kind() {
            // The file is there: its interpreter or dynamic linker is not.
            io::ErrorKind::NotFound => ProbeError::Unavailable(Reason::MissingTool(format!(
                "the interpreter or dynamic linker of {program}"
            ))),
            io::ErrorKind::PermissionDenied => ProbeError::Unavailable(Reason::NeedsPrivilege(
                format!("the permission to execute `{program}`"),
            )),
            _ => ProbeError::Failed(Failure::Probe(format!("execute `{program}`: {error}"))),
        }
    }

    /// A port that nobody listens on, or the one that the argument `port` names.
    fn free_port(transport: Transport, params: &Params) -> Result<u16, ProbeError> {
        let wanted = whole(params, "port", 0, 0..=65_535)? as u16;
        let address = (Ipv4Addr::UNSPECIFIED, wanted);
        let port = match transport {
            Transport::Tcp => TcpListener::bind(address).and_then(|socket| socket.local_addr()),
            Transport::Udp => UdpSocket::bind(address).and_then(|socket| socket.local_addr()),
        };
        port.map(|address| address.port()).map_err(|error| {
            ProbeError::system(&format!("find a port to listen on ({wanted})"), &error)
        })
    }

    /// Waits until the server listens; says why it never will. The server has ended then.
    fn wait_until_it_listens(
        child: &mut Child,
        transport: Transport,
        port: u16,
        begin: Instant,
    ) -> Result<(), String> {
        loop {
            if listens(transport, port) {
                return Ok(());
            }
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the server ended ({status}) before it listened"));
            }
            if begin.elapsed() > LISTEN_LIMIT {
                // Both fail only if it has just ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "the server did not listen on port {port} within {} s",
                    LISTEN_LIMIT.as_secs()
                ));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Whether somebody in this network namespace listens on the port, by the kernel's own table: connecting
    /// would use up the one connection that some servers take (proc_net_tcp(5); state 0A is LISTEN).
    fn listens(transport: Transport, port: u16) -> bool {
        let (tables, state) = match transport {
            Transport::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], Some("0A")),
            Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], None),
        };
        let wanted = format!("{port:04X}");
        tables
            .iter()
            .filter_map(|table| std::fs::read_to_string(table).ok())
            .any(|table| {
                table.lines().skip(1).any(|line| {
                    let mut fields = line.split_whitespace().skip(1);
                    let local = fields.next().and_then(|local| local.rsplit(':').next());
                    let found = fields.nth(1);
                    local == Some(wanted.as_str()) && (state.is_none() || found == state)
                })
            })
    }

    /// What was read from a stream.
    #[derive(Default)]
    struct Kept {
        bytes: Vec<u8>,
        is_cut: bool,
    }

    /// The threads at the other ends of a program's streams.
    struct Streams {
        stdout: Option<JoinHandle<Kept>>,
        stderr: Option<JoinHandle<Kept>>,
    }

    impl Streams {
        fn of(child: &mut Child, stdin: Option<&str>) -> Self {
            if let (Some(mut pipe), Some(text)) = (child.stdin.take(), stdin) {
                let text = text.to_owned();
                // A program that does not read to the end closes the pipe, and that is its affair.
                std::thread::spawn(move || pipe.write_all(text.as_bytes()));
            }
            Self {
                stdout: child.stdout.take().map(|pipe| keep(pipe, STDOUT_LIMIT)),
                stderr: child.stderr.take().map(|pipe| keep(pipe, STDERR_LIMIT)),
            }
        }

        fn finish(self) -> (Kept, Kept) {
            let join = |thread: Option<JoinHandle<Kept>>| {
                thread
                    .and_then(|thread| thread.join().ok())
                    .unwrap_or_default()
            };
            (join(self.stdout), join(self.stderr))
        }
    }

    /// Reads a stream to its end and keeps the beginning.
    fn keep(mut pipe: impl Read + Send + 'static, limit: usize) -> JoinHandle<Kept> {
        std::thread::spawn(move || {
            let mut kept = Kept::default();
            let mut buffer = vec![0u8; 64 << 10];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => return kept,
                    Ok(count) => {
                        let room = limit - kept.bytes.len();
                        kept.bytes.extend_from_slice(&buffer[..count.min(room)]);
                        kept.is_cut |= count > room;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => {
                        kept.is_cut = true;
                        return kept;
                    }
                }
            }
        })
    }

    /// The beginning of a collected file; `None` where there is none.
    fn read_file(path: &Path) -> Result<Option<Vec<u8>>, ProbeError> {
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ProbeError::system("open a collected file", &error)),
        };
        let mut bytes = Vec::new();
        file.take(FILE_LIMIT)
            .read_to_end(&mut bytes)
            .map_err(|error| ProbeError::system("read a collected file", &error))?;
        Ok(Some(bytes))
    }

    /// Waits for the program's end; what it used comes with its status.
    fn wait(child: &Child) -> Result<(Exit, BTreeMap<String, f64>), ProbeError> {
        let mut status = 0;
        // SAFETY: `rusage` is plain data for which all zeroes is a valid value.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: the process is our child and not yet reaped; both pointers are to live variables.
            let ended = unsafe {
                libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut used)
            };
            if ended >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(ProbeError::system("wait4", &error));
            }
        }
        let exit = if libc::WIFSIGNALED(status) {
            Exit::Signal(libc::WTERMSIG(status))
        } else {
            Exit::Code(libc::WEXITSTATUS(status))
        };
        let nanoseconds =
            |time: libc::timeval| time.tv_sec as f64 * 1e9 + f64::from(time.tv_usec as i32) * 1e3;
        let usage = [
            ("user_ns", nanoseconds(used.ru_utime)),
            ("sys_ns", nanoseconds(used.ru_stime)),
            // Linux counts in KiB.
            ("max_rss_bytes", used.ru_maxrss as f64 * 1_024.0),
            ("minflt", used.ru_minflt as f64),
            ("majflt", used.ru_majflt as f64),
            ("nvcsw", used.ru_nvcsw as f64),
            ("nivcsw", used.ru_nivcsw as f64),
        ];
        let usage = usage
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Ok((exit, usage.collect()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn reported(call: &CommandCall) -> Result<CommandReport, ProbeError> {
            let mut meter = Meter::new(1, &std::env::temp_dir());
            run(&mut meter, &call.to_probe().args)?;
            Ok(meter.take_command().unwrap())
        }

        fn shell(script: &str) -> CommandCall {
            CommandCall::new("sh", ["-c", script])
        }

        #[test]
        fn output_status_files_and_usage_come_back() {
            let call = CommandCall {
                collect: vec!["out.txt".into(), "absent".into()],
                stdin: Some("from stdin".into()),
                ..shell("cat; cat in.txt >&2; echo $WORD {folder} >out.txt; exit 3")
            }
            .with_file("in.txt", "a file")
            .with_variable("WORD", "value");
            let report = reported(&call).unwrap();
            assert_eq!(report.exit, Exit::Code(3));
            assert_eq!(report.stdout.0, b"from stdin");
            assert_eq!(report.stderr.0, b"a file");
            let text = String::from_utf8(report.files["out.txt"].0.clone()).unwrap();
            let folder = text.trim().strip_prefix("value ").unwrap();
            assert!(folder.contains("tare-command"), "{folder}");
            assert!(!Path::new(folder).exists(), "the folder is still there");
            assert!(!report.files.contains_key("absent"));
            assert!(report.program.ends_with("/sh"));
            assert!(report.wall_ns > 0 && report.usage["minflt"] > 0.0);
        }

        #[test]
        fn a_program_that_is_killed_is_reported_with_its_signal() {
            assert_eq!(
                reported(&shell("kill -9 $$")).unwrap().exit,
                Exit::Signal(9)
            );
        }

        #[test]
        fn more_output_than_is_kept_is_cut_and_said() {
            let report = reported(&shell("head -c 17000000 /dev/zero")).unwrap();
            assert_eq!(report.stdout.0.len(), STDOUT_LIMIT);
            assert!(report.is_cut);
        }

        #[test]
        fn a_program_that_is_not_there_is_unavailable() {
            for name in ["tare-no-such-program", "/nowhere/program"] {
                let error = reported(&CommandCall::new(name, [""; 0])).unwrap_err();
                assert_eq!(
                    error,
                    ProbeError::Unavailable(Reason::MissingTool(name.into()))
                );
            }
        }

        #[test]
        fn files_outside_of_the_folder_are_refused() {
            for name in ["../x", "/etc/x", "", "a/../../x"] {
                let call = CommandCall {
                    collect: vec![name.into()],
                    ..shell("true")
                };
                assert!(reported(&call).is_err(), "{name}");
            }
        }

        #[test]
        fn a_port_that_nobody_told_is_refused() {
            assert!(reported(&shell("echo {port}")).is_err());
        }

        #[test]
        fn only_a_port_that_somebody_listens_on_listens() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert!(listens(Transport::Tcp, port));
            drop(listener);
            assert!(!listens(Transport::Tcp, port));
        }

        #[test]
        fn a_server_that_ends_before_it_listens_says_why() {
            let call = CommandCall {
                listens: Some(Transport::Tcp),
                ..shell("echo no such option >&2; exit 1")
            };
            let ProbeError::Failed(Failure::Probe(text)) = reported(&call).unwrap_err() else {
                panic!("of another kind");
            };
            assert!(text.contains("no such option"), "{text}");
        }
    }
}
