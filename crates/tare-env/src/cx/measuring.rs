//! Whether another Tare measures on this machine: a name that the kernel gives back however its holder ends.
//!
//! An abstract socket, so that there is no file to own or to leave. Two stores have two locks, and their runs are each
//! other's noise all the same.
//! Limits: one network namespace, and Linux; elsewhere nothing is found.

/// The name while it is held.
#[derive(Debug)]
pub struct Measuring(
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "held for its name")]
    Option<std::os::unix::net::UnixListener>,
);

/// Takes the name; `None` where another process has it.
pub fn claimed() -> Option<Measuring> {
    named(b"tare-measuring")
}

#[cfg(target_os = "linux")]
fn named(name: &[u8]) -> Option<Measuring> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let bound = SocketAddr::from_abstract_name(name).and_then(|at| UnixListener::bind_addr(&at));
    match bound {
        Ok(listener) => Some(Measuring(Some(listener))),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => None,
        // Where there are no such sockets it is not known.
        Err(_) => Some(Measuring(None)),
    }
}

#[cfg(not(target_os = "linux"))]
fn named(_name: &[u8]) -> Option<Measuring> {
    Some(Measuring())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn name_is_one_holders_and_free_afterwards() {
        let name = format!("tare-measuring-test-{}", std::process::id());
        let held = named(name.as_bytes()).unwrap();
        assert!(named(name.as_bytes()).is_none());
        drop(held);
        assert!(named(name.as_bytes()).is_some());
    }
}
