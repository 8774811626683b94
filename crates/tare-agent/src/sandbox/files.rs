//! Opens the files of a sandboxed program that may not open them itself.
//!
//! A program that gives up root can no longer enter the folders of a run, which are closed to other users. So its
//! files are opened while root is available, and inherited. A file that it may change is given to its user; one that
//! it only reads and that is not world-readable is copied into memory, because no other file may change its owner.
//! Its console output passes through a pipe, and only the end is kept.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::Account;
use crate::launch::sys;

/// Maximum size of a console's file, and how much of the output's end is kept when it is exceeded, bytes.
const CONSOLE_LIMIT: u64 = 1 << 20;
const CONSOLE_KEPT: usize = 64 << 10;

/// How a file is opened for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// For reading.
    Read,
    /// For reading and writing.
    Write,
    /// As a new socket that listens.
    Listen,
    /// As a connection to a listening socket.
    Connect,
}

impl OpenMode {
    /// Opens the file at this path so that a program of this account can inherit and use it.
    pub(super) fn open(self, path: &str, account: Option<&Account>) -> io::Result<OwnedFd> {
        match self {
            Self::Read => to_read(path, account),
            Self::Write => to_write(path, account),
            Self::Listen => near(path, |path| inherited(listener(path)?)),
            Self::Connect => near(path, |path| inherited(UnixStream::connect(path)?)),
        }
    }
}

/// Listens at this path, which appears only once it accepts connections: a client that connects between `bind` and
/// `listen` would be refused.
fn listener(path: &str) -> io::Result<UnixListener> {
    let unfinished = format!("{path}.new");
    let listener = UnixListener::bind(&unfinished)?;
    std::fs::rename(&unfinished, path)?;
    Ok(listener)
}

/// Runs an action with a name for the socket that is short enough for a socket address, however long its path is.
fn near<T>(path: &str, action: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    let path = Path::new(path);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = File::open(folder)?;
    let name = name.to_string_lossy();
    action(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// Makes the descriptor survive `exec`.
fn inherited(file: impl Into<OwnedFd>) -> io::Result<OwnedFd> {
    let file = file.into();
    // SAFETY: the descriptor is open and ours, and the command takes a plain number.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Opens a file that the program reads. The program reopens it through the descriptor, so its rights have to allow
/// that.
fn to_read(path: &str, account: Option<&Account>) -> io::Result<OwnedFd> {
    let mut file = File::open(path)?;
    if account.is_none() || file.metadata()?.mode() & 0o004 != 0 {
        return inherited(file);
    }
    // SAFETY: the name ends with NUL; the call returns a new descriptor.
    let copy = unsafe { libc::memfd_create(c"tare-shown".as_ptr(), libc::MFD_CLOEXEC) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and it is owned nowhere else.
    let mut copy = unsafe { File::from_raw_fd(copy) };
    io::copy(&mut file, &mut copy)?;
    inherited(copy)
}

/// Opens a file of the run that the program reads and changes.
fn to_write(path: &str, account: Option<&Account>) -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).open(path)?;
    if let Some(account) = account {
        fchown(&file, Some(account.user), Some(account.group))?;
    }
    inherited(file)
}

/// A console: our end of the pipe, and the file that keeps the end of the program's output.
pub(super) struct Console {
    from: File,
    to: File,
    length: u64,
    end: Vec<u8>,
}

impl Console {
    pub(super) fn open(path: &str) -> io::Result<(Self, OwnedFd)> {
        let mut options = File::options();
        let to = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        let (from, program) = sys::pipe()?;
        let console = Self {
            from: File::from(from),
            to,
            length: 0,
            end: Vec::new(),
        };
        Ok((console, inherited(program)?))
    }

    pub(super) fn descriptor(&self) -> libc::c_int {
        self.from.as_raw_fd()
    }

    /// Copies available output to the file; returns `false` when no more will come. Call it only if there is
    /// something to read, or the program has ended.
    pub(super) fn pass_on(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        let count = match self.from.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => return error.kind() == io::ErrorKind::Interrupted,
        };
        let bytes = &bytes[..count];
        self.end.extend_from_slice(bytes);
        let surplus = self.end.len().saturating_sub(CONSOLE_KEPT);
        self.end.drain(..surplus);
        // A full disk must not stop a machine whose console may still be read.
        let _ = self.keep(bytes);
        true
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length + bytes.len() as u64 <= CONSOLE_LIMIT {
            self.length += bytes.len() as u64;
            return self.to.write_all(bytes);
        }
        self.to.set_len(0)?;
        self.to.seek(SeekFrom::Start(0))?;
        self.length = self.end.len() as u64;
        self.to.write_all(&self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_of_a_socket_meet_however_long_its_path_is() {
        let folder = std::env::temp_dir()
            .join(format!("tare-socket-{}", std::process::id()))
            .join("a folder ".repeat(20));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let path = path.to_str().unwrap();
        let alone = OpenMode::Connect.open(path, None).unwrap_err();
        let listener = UnixListener::from(OpenMode::Listen.open(path, None).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let mut one = UnixStream::from(OpenMode::Connect.open(path, None).unwrap());
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(b"word").unwrap();
        let mut heard = [0; 4];
        other.read_exact(&mut heard).unwrap();
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
        assert_eq!(alone.kind(), io::ErrorKind::NotFound);
        assert_eq!(&heard, b"word");
    }

    #[test]
    fn endless_console_output_keeps_only_its_tail() {
        let path = std::env::temp_dir().join(format!("tare-console-{}", std::process::id()));
        let (mut console, program) = Console::open(path.to_str().unwrap()).unwrap();
        let mut program = File::from(program);
        for line in 0..60_000 {
            writeln!(program, "a line of a guest that prints: {line:>7}").unwrap();
            assert!(console.pass_on());
            let length = std::fs::metadata(&path).unwrap().len();
            assert!(length <= CONSOLE_LIMIT, "{length}");
        }
        drop(program);
        assert!(!console.pass_on());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.ends_with("59999\n"));
        assert!(text.len() >= CONSOLE_KEPT, "{}", text.len());
    }
}
