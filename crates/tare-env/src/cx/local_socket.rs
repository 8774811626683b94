//! A local socket in the run's folder, with a thread that takes its connections.
//!
//! Only its owner may connect. Nothing wakes up between two connections.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The longest path of a socket, bytes (unix(7)), without the terminating zero.
const PATH_LIMIT: usize = 107;

/// An open socket. Dropping it closes it.
pub(super) struct LocalSocket {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl LocalSocket {
    /// Opens a socket in `folder` under a new name that begins with `kind`; `serve` gets each connection, on one
    /// thread.
    pub(super) fn open(
        folder: &Path,
        kind: &str,
        mut serve: impl FnMut(UnixStream) + Send + 'static,
    ) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{kind}-{}-{number}", std::process::id()));
        if path.as_os_str().len() > PATH_LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::InvalidFilename,
                format!("a socket's path has at most {PATH_LIMIT} bytes"),
            ));
        }
        std::fs::create_dir_all(folder)?;
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let accepting = std::thread::Builder::new().spawn(move || {
            for connection in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let _ = connection.map(&mut serve);
            }
        })?;
        Ok(Self {
            path,
            is_over,
            accepting: Some(accepting),
        })
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the socket and waits for the thread.
    pub(super) fn close(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let Some(thread) = self.accepting.take() else {
            return;
        };
        // The thread waits for a connection; this is the last one.
        let is_awake = UnixStream::connect(&self.path).is_ok();
        let _ = std::fs::remove_file(&self.path);
        if is_awake {
            let _ = thread.join();
        }
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        self.close();
    }
}
