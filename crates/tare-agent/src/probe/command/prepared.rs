//! Prepares a program for its start: folder and files, arguments with their placeholders filled in, streams.

use std::fs::File;
#[cfg(not(windows))]
use std::io;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tare_model::cluster::{ClusterView, HOSTFILE, HOSTFILE_NAME};
use tare_model::command::{ADDRESS, BIND, FOLDER, PORT, READY_MS, Stdout};
use tare_model::launch::RUN_VARIABLE;
use tare_model::{CommandCall, Params, Reason};

use crate::args::{self, refused};
use crate::folder::Folder;
use crate::meter::{Meter, ProbeError};
use crate::program::{self, SEARCH_PATH};

use super::port::{LISTEN_LIMIT, free_port};

/// A program that is about to be started.
pub(super) struct Prepared {
    pub(super) folder: Folder,
    pub(super) argv: Vec<String>,
    pub(super) program: PathBuf,
    pub(super) command: Command,
    pub(super) own: Option<IpAddr>,
    pub(super) port: Option<u16>,
    /// How long a server may take until it listens.
    pub(super) patience: Duration,
}

impl Prepared {
    pub(super) fn new(
        meter: &Meter,
        call: &CommandCall,
        params: &Params,
    ) -> Result<Self, ProbeError> {
        let view = ClusterView::from_args(params).map_err(refused)?;
        let folder = Folder::new(meter.workdir(), "tare-command")?;
        // The node's address in a cluster. The server of a pair need not listen on it alone: some listen on all.
        let own = view.as_ref().and_then(|_| params.text("bind"));
        let own: Option<IpAddr> = own.and_then(|text| text.parse().ok());
        let port = match call.listens {
            Some(transport) => Some(free_port(transport, own, params)?),
            None => match params.value("port") {
                Some(_) => Some(args::port(params, 1)?),
                None => None,
            },
        };
        let mut others = view.as_ref().map(ClusterView::blanks).unwrap_or_default();
        if let Some(view) = &view {
            let path = folder.path().join(HOSTFILE_NAME);
            std::fs::write(&path, view.hostfile())
                .map_err(|error| ProbeError::system("write the hostfile", &error))?;
            others.push((HOSTFILE, path.to_string_lossy().into_owned()));
        }
        let blanks = Blanks {
            others,
            address: ["address", "bind"]
                .iter()
                .find_map(|name| params.text(name))
                .unwrap_or("127.0.0.1")
                .to_owned(),
            bind: params.text("bind").unwrap_or("0.0.0.0").to_owned(),
            port: port.map(|port| port.to_string()),
            folder: folder.path().to_string_lossy().into_owned(),
        };
        let argv = call
            .argv
            .iter()
            .map(|argument| blanks.fill(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let program = look_up(&argv[0], call.variables.get("PATH").map(String::as_str))?;
        for (name, text) in &call.files {
            let path = inside(folder.path(), name)?;
            std::fs::write(&path, blanks.fill(text)?)
                .map_err(|error| ProbeError::system("write a file for the program", &error))?;
        }
        let command = command(call, &argv, (&program, folder.path()), &blanks)?;
        for path in &call.cold {
            make_cold(path)?;
        }
        Ok(Self {
            folder,
            argv,
            program,
            command,
            own,
            port,
            patience: params
                .int(READY_MS)
                .and_then(|ms| u64::try_from(ms).ok())
                .map_or(LISTEN_LIMIT, Duration::from_millis),
        })
    }
}

/// Builds the command with arguments, folder, streams and variables.
fn command(
    call: &CommandCall,
    argv: &[String],
    (program, folder): (&Path, &Path),
    blanks: &Blanks,
) -> Result<Command, ProbeError> {
    let folder = call.directory.as_deref().map_or(folder, Path::new);
    if !folder.is_dir() {
        // Else it looks as if the program, or its interpreter, were missing.
        let folder = folder.display().to_string();
        let missing = format!("the folder {}", folder.escape_default());
        return Err(ProbeError::Unavailable(Reason::MissingTool(missing)));
    }
    let mut command = Command::new(program);
    command
        .args(&argv[1..])
        .current_dir(folder)
        .stdin(input(call)?)
        .stdout(match call.stdout {
            Stdout::Kept => Stdio::piped(),
            _ if call.streams_output => Stdio::piped(),
            Stdout::Discarded => Stdio::null(),
            Stdout::Console => console()?.into(),
        })
        .stderr(Stdio::piped());
    if call.clean {
        command.env_clear();
        // The variable by which a run's processes are found.
        if let Some(run) = std::env::var_os(RUN_VARIABLE) {
            command.env(RUN_VARIABLE, run);
        }
    }
    for (name, value) in &call.variables {
        command.env(name, blanks.fill(value)?);
    }
    if std::env::var_os("PATH").is_none() && !call.variables.contains_key("PATH") {
        command.env("PATH", SEARCH_PATH);
    }
    if call.listens.is_some() {
        end_with_this_process(&mut command);
    }
    Ok(command)
}

/// Makes the kernel kill a server when its worker dies, even if the worker is killed. Not for a program that is
/// measured, because that would slow down its start; it is killed by its worker at the end (`left`).
fn end_with_this_process(command: &mut Command) {
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only one system call is made, which takes numbers and is safe there.
    unsafe {
        use std::os::unix::process::CommandExt;
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            }
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// The values of the placeholders.
struct Blanks {
    /// A cluster's values, by placeholder.
    others: Vec<(&'static str, String)>,
    address: String,
    bind: String,
    port: Option<String>,
    folder: String,
}

impl Blanks {
    fn fill(&self, text: &str) -> Result<String, ProbeError> {
        let mut text = text
            .replace(FOLDER, &self.folder)
            .replace(ADDRESS, &self.address)
            .replace(BIND, &self.bind);
        for (blank, value) in &self.others {
            text = text.replace(blank, value);
        }
        match &self.port {
            Some(port) => Ok(text.replace(PORT, port)),
            None if text.contains(PORT) => Err(refused(format!(
                "`{PORT}` stands for nothing: the program neither serves nor gets a port"
            ))),
            None => Ok(text),
        }
    }
}

/// Returns the path of the file `name` in the folder; a name that leads outside is refused.
pub(super) fn inside(folder: &Path, name: &str) -> Result<PathBuf, ProbeError> {
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

/// Returns the file that a shell would execute; `path` is the program's future `PATH`, if it is set.
fn look_up(name: &str, path: Option<&str>) -> Result<PathBuf, ProbeError> {
    let found = match path {
        Some(path) => program::look_up_in(name, path.as_ref()),
        None => program::look_up(name),
    };
    found.ok_or_else(|| {
        ProbeError::Unavailable(Reason::MissingTool(name.escape_default().to_string()))
    })
}

/// Returns the source of stdin.
fn input(call: &CommandCall) -> Result<Stdio, ProbeError> {
    match &call.stdin_file {
        Some(path) => std::fs::File::open(path).map(Stdio::from).map_err(|error| {
            ProbeError::system(
                &format!("open the standard input `{}`", path.escape_debug()),
                &error,
            )
        }),
        None if call.stdin.is_some() => Ok(Stdio::piped()),
        None => Ok(Stdio::null()),
    }
}

/// Drops a file's pages from the page cache, so that the program reads it from the device.
#[cfg(target_os = "linux")]
fn make_cold(path: &str) -> Result<(), ProbeError> {
    let failed = |error: io::Error| {
        ProbeError::system(
            &format!("drop `{}` from the cache", path.escape_debug()),
            &error,
        )
    };
    match std::fs::File::open(path) {
        Ok(file) => {
            // Dirty pages cannot be dropped.
            file.sync_data().map_err(failed)?;
            crate::direct_file::forget_pages(&file);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn make_cold(_path: &str) -> Result<(), ProbeError> {
    Err(ProbeError::Unavailable(Reason::Unsupported(
        "this system drops no single file from its cache".into(),
    )))
}

/// Opens the stdout of this environment's first process. Where all processes of the machine are visible, process 1 is
/// not this environment's, and its stdout is not touched.
#[cfg(target_os = "linux")]
pub(super) fn console() -> Result<File, ProbeError> {
    let Some(first) = crate::proc::first_of_this_place() else {
        return Err(ProbeError::Unavailable(Reason::NeedsPrivilege(
            "to see the first process of this place, whose standard output is written to".into(),
        )));
    };
    std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{first}/fd/1"))
        .map_err(|error| {
            ProbeError::system("open the standard output of the first process", &error)
        })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn console() -> Result<File, ProbeError> {
    Err(ProbeError::Unavailable(Reason::Unsupported(
        "this system does not show where its first process writes".into(),
    )))
}
