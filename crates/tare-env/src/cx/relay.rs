//! A local socket that connects each client to the standard streams of a program.
//!
//! Some servers are reached only through a program, such as an engine behind ssh. A client library that speaks to
//! sockets reaches them through a relay: it starts the program for each connection and passes bytes both ways until
//! one side ends. Blocking threads move the bytes.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::exec::{CommandLine, Exec, Running, SystemExec};
use super::local_socket::LocalSocket;
use super::{aside, locked};

/// How long a program may take to end after its connection.
const END_LIMIT: Duration = Duration::from_secs(3);
/// How often, and at which interval, its last words are polled for after that.
const WORDS_LIMIT: u32 = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// An open relay. Dropping it ends the programs and removes the socket.
pub struct Relay {
    socket: LocalSocket,
    shared: Arc<Shared>,
}

/// A program, shared by the thread that waits for its end and the list that kills it.
type Program = Arc<Mutex<Box<dyn Running>>>;

#[derive(Default)]
struct Shared {
    programs: Mutex<Vec<Program>>,
    words: Mutex<Option<String>>,
}

impl Relay {
    /// Opens a relay to `command` with its socket in `folder`.
    ///
    /// # Errors
    /// The folder cannot be written to, or its path is too long for a socket.
    pub fn open(command: CommandLine, folder: &Path) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let socket = LocalSocket::open(folder, "relay", {
            let shared = Arc::clone(&shared);
            move |connection| shared.serve(&command, connection)
        })?;
        Ok(Self { socket, shared })
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        self.socket.path()
    }

    /// The standard error of the last program that failed, if any.
    pub fn failure(&self) -> Option<String> {
        locked(&self.shared.words).clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // From then on no program is started any more.
        self.socket.close();
        for program in locked(&self.shared.programs).drain(..) {
            locked(&program).kill();
        }
    }
}

impl Shared {
    /// Starts the program for one connection. If it cannot be started, the connection just ends.
    fn serve(self: &Arc<Self>, command: &CommandLine, connection: UnixStream) {
        let mut running = match SystemExec.spawn(command) {
            Ok(running) => running,
            Err(error) => {
                *locked(&self.words) = Some(error.to_string());
                return;
            }
        };
        let (Some(stdin), Some(stdout)) = (running.take_stdin(), running.take_stdout()) else {
            running.kill();
            return;
        };
        let Ok(from_client) = connection.try_clone() else {
            running.kill();
            return;
        };
        let program = Arc::new(Mutex::new(running));
        locked(&self.programs).push(Arc::clone(&program));
        // Without a thread the connection just ends.
        let _ = aside(move || {
            // Ends with the client's half, and then closes the program's input.
            let _ = copy(from_client, stdin);
        });
        let shared = Arc::clone(self);
        let _ = aside(move || {
            let _ = copy(stdout, &connection);
            shared.note_end(&program);
            let _ = connection.shutdown(Shutdown::Both);
        });
    }

    /// Records the failure of a program whose output has ended, and reaps it.
    fn note_end(&self, program: &Program) {
        let mut running = locked(program);
        let status = running.wait(END_LIMIT);
        for _ in 0..WORDS_LIMIT {
            if running.has_read_stderr() {
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let words = running.stderr_tail();
        if !matches!(status, Ok(Some(0))) && !words.trim().is_empty() {
            *locked(&self.words) = Some(words);
        }
        running.kill();
        drop(running);
        locked(&self.programs).retain(|other| !Arc::ptr_eq(other, program));
    }
}

/// Copies bytes as they arrive, without waiting for more.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&bytes[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_runs_a_program_without_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Relay::open(CommandLine::new("cat", [""; 0]), folder.path()).unwrap();
        let mut clients: Vec<UnixStream> = (0..3)
            .map(|_| UnixStream::connect(relay.path()).unwrap())
            .collect();
        for (number, client) in (0u8..).zip(&mut clients) {
            client.write_all(&[number; 5]).unwrap();
            let mut answer = [0; 5];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [number; 5]);
        }
        clients[0].shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        clients[0].read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
        assert_eq!(relay.failure(), None);
        drop(relay);
        assert_eq!(clients[1].read_to_end(&mut rest).unwrap(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn failed_relay_program_closes_and_keeps_stderr() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("sh", ["-c", "echo no such host >&2; exit 1"]);
        let relay = Relay::open(command, folder.path()).unwrap();
        let mut client = UnixStream::connect(relay.path()).unwrap();
        let mut answer = Vec::new();
        // The connection may be reset if the client has written.
        let _ = client.read_to_end(&mut answer);
        assert_eq!(answer, b"");
        assert_eq!(
            relay.failure().as_deref().map(str::trim),
            Some("no such host")
        );
    }

    #[test]
    fn folder_too_deep_for_socket_fails_early() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(120));
        let error = Relay::open(CommandLine::new("cat", [""; 0]), &deep)
            .err()
            .unwrap();
        assert!(error.to_string().contains("107 bytes"));
        assert!(!deep.exists());
    }
}
