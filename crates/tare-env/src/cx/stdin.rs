//! Reads standard input, if there is anything in it.
//!
//! A terminal and a device such as /dev/null hold nothing for a program that is run many times. A file is read whole.
//! A pipe may never be written to, as services and test programs inherit one, so reading stops if nothing arrives for
//! a while.
//! Limits: input that starts later than that is missed.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use super::aside;

/// How long to wait for a pipe's first byte.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum of bytes that are kept.
const LIMIT: u64 = 1 << 30;

/// The contents of standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing: a terminal, a device, or closed.
    None,
    /// A pipe without data.
    Silent,
    /// These bytes.
    Bytes(Vec<u8>),
    /// More than is kept.
    TooMuch,
}

/// Whether standard input cannot hold data: a terminal, a device, or closed.
pub fn is_empty() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        kind().is_none_or(|kind| kind.is_ok_and(|it| it.is_char_device()))
    }
    #[cfg(not(unix))]
    io::stdin().is_terminal()
}

/// What standard input is; `None` if it was closed before this program started.
#[cfg(unix)]
fn kind() -> Option<io::Result<std::fs::FileType>> {
    use std::os::fd::AsFd;
    let descriptor = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let found = std::fs::File::from(descriptor).metadata();
    Some(found.map(|it| it.file_type()))
}

/// Reads standard input to its end, if there is anything in it.
///
/// # Errors
/// It cannot be read.
pub fn read() -> io::Result<Input> {
    if io::stdin().is_terminal() {
        return Ok(Input::None);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let Some(kind) = kind().transpose()? else {
            return Ok(Input::None);
        };
        if kind.is_file() {
            return whole(io::stdin().lock());
        }
        if !(kind.is_fifo() || kind.is_socket()) {
            return Ok(Input::None);
        }
    }
    let (first, news) = mpsc::channel();
    let (done, all) = mpsc::channel();
    aside(move || {
        let mut byte = [0u8; 1];
        let begun = io::stdin().lock().read(&mut byte);
        let begun = begun.map(|count| byte[..count].to_vec());
        let head = begun.as_ref().ok().cloned().unwrap_or_default();
        // There may be no receiver any more.
        let _ = first.send(begun);
        if !head.is_empty() {
            let _ = done.send(whole(head.as_slice().chain(io::stdin().lock())));
        }
    })?;
    match news.recv_timeout(PATIENCE) {
        Err(_) => Ok(Input::Silent),
        Ok(Err(error)) => Err(error),
        Ok(Ok(head)) if head.is_empty() => Ok(Input::None),
        Ok(Ok(_)) => all.recv().unwrap_or(Ok(Input::None)),
    }
}

fn whole(reader: impl Read) -> io::Result<Input> {
    let mut bytes = Vec::new();
    reader.take(LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > LIMIT {
        Input::TooMuch
    } else if bytes.is_empty() {
        Input::None
    } else {
        Input::Bytes(bytes)
    })
}
