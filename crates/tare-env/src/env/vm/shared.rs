//! A folder shared by all machines of an arm: by virtiofs, with a server on this machine for each guest, or by NFS,
//! with a server in the first guest's kernel.
//!
//! With virtiofs, the guest's kernel talks to `virtiofsd` over shared memory, so no network is in between, and a file
//! that one guest has closed is visible to the next guest that opens it. The server exposes one folder of the run and
//! nothing above it, and ends with its emulator, which is its only possible client.
//! Limits: a guest's kernel may cache what another guest has changed; close a file first.

use crate::env::prelude::*;

use tare_model::launch::RUN_VARIABLE;

use super::kernel::Kernel;
use super::settings::Shared;
use crate::env::channel::{LAST_WORDS_LIMIT, wait_for_last_words};

/// The program that serves the folder.
const PROGRAM: &str = "virtiofsd";

/// Where distributions put it, because it is not on the search path.
const FOLDERS: &[&str] = &[
    "/usr/libexec",
    "/usr/lib/qemu",
    "/usr/lib/virtiofsd",
    "/usr/lib",
];

/// Polling interval for the server's socket.
const STEP: Duration = Duration::from_millis(5);

/// How to share a folder here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sharing {
    /// This program serves it.
    Virtiofs(PathBuf),
    /// The first guest serves it.
    Nfs,
}

impl Shared {
    /// The modules that every guest needs for it.
    pub(super) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Virtiofs => &["virtiofs"],
            // The server, and the driver of a folder that another guest serves.
            Self::Nfs => &["nfsd", "nfsv4"],
        }
    }
}

impl Sharing {
    /// Looks for the requirements; the error is why a folder cannot be shared.
    pub(super) fn find(kernel: &Kernel, how: Shared) -> Result<Self, Reason> {
        kernel
            .modules(how.modules())
            .map_err(|error| Reason::Unsupported(format!("a folder between machines: {error}")))?;
        if how == Shared::Nfs {
            return Ok(Self::Nfs);
        }
        files::on_search_path(PROGRAM, FOLDERS)
            .map(Self::Virtiofs)
            .ok_or_else(|| Reason::MissingTool(PROGRAM.to_owned()))
    }

    /// Serves `folder` to one guest, unless another guest does; `own` is the instance's folder.
    pub(super) fn serve(
        &self,
        cx: &Context<'_>,
        folder: &Path,
        own: &Path,
    ) -> Result<Option<Server>> {
        let Self::Virtiofs(program) = self else {
            return Ok(None);
        };
        files::create_folder(folder)?;
        let socket = own.join("shared.sock");
        let listen = socket.display().to_string();
        let parent = std::process::id().to_string();
        // The folder is the server's root, so that no name leads out of it.
        let options = format!(
            "source={},cache=auto,sandbox=chroot",
            option_value(&folder.display().to_string())
        );
        let program = program.display().to_string();
        let arguments = [
            "sandbox",
            "--parent",
            &parent,
            "--listen",
            &listen,
            "--",
            &program,
            "--fd={tare.file.0}",
            "-o",
            &options,
        ];
        let command = cx
            .agent
            .command(arguments)
            .variable(RUN_VARIABLE, cx.run.as_str());
        let mut server = Server {
            running: cx.exec.spawn(&command)?,
            socket,
        };
        let begin_ns = cx.clock.now_ns();
        while !server.socket.exists() {
            let waited = Duration::from_nanos(cx.clock.now_ns().saturating_sub(begin_ns));
            if let Some(words) = server.last_words() {
                return Err(EnvError::refused(
                    format!("`{PROGRAM}` does not serve the folder that machines share"),
                    words,
                ));
            }
            if waited > CONTROL_LIMIT {
                return Err(EnvError::Timeout {
                    phase: "serving the folder that machines share".to_owned(),
                    limit: CONTROL_LIMIT,
                });
            }
            cx.clock.sleep(STEP);
        }
        Ok(Some(server))
    }
}

/// Escapes a value in a comma-separated list of options.
fn option_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace(',', "\\,")
}

/// A server of the folder for one guest; ended when dropped.
pub(super) struct Server {
    running: Box<dyn Running>,
    /// The socket for the emulator.
    pub(super) socket: PathBuf,
}

impl Server {
    /// Returns its last message, escaped, if it has ended.
    pub(super) fn last_words(&mut self) -> Option<String> {
        if matches!(self.running.wait(Duration::ZERO), Ok(None)) {
            return None;
        }
        wait_for_last_words(self.running.as_mut(), LAST_WORDS_LIMIT);
        let stderr = self.running.stderr_tail();
        let last = stderr.lines().rfind(|line| !line.trim().is_empty());
        Some(escaped(last.unwrap_or("it said nothing")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        super::boot::end(self.running.as_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_name_cannot_become_another_option() {
        assert_eq!(option_value("/a b"), "/a b");
        assert_eq!(option_value("/a,sandbox=none"), "/a\\,sandbox=none");
        assert_eq!(option_value("/a\\,b"), "/a\\\\\\,b");
    }

    #[test]
    fn a_kernel_without_the_driver_is_the_reason() {
        let kernel = Kernel {
            path: PathBuf::from("/boot/vmlinuz"),
            release: Some("..".to_owned()),
        };
        // That folder exists and holds no list of modules.
        for (how, module) in [(Shared::Virtiofs, "virtiofs"), (Shared::Nfs, "nfsd")] {
            let Err(Reason::Unsupported(why)) = Sharing::find(&kernel, how) else {
                panic!("found");
            };
            assert!(why.contains(module), "{why}");
        }
    }
}
