//! Detects whether another Tare measures on this machine, by a name that the kernel frees however its holder ends.
//!
//! An abstract socket, so that there is no file to own or to leave behind. Two stores have two locks, yet their runs
//! disturb each other.
//! Limits: one network namespace, and Linux; elsewhere nothing is found.

/// The name while it is held.
#[derive(Debug)]
pub struct Measuring(
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "held for its name")]
    Option<std::os::unix::net::UnixListener>,
);

/// Claims the name; `None` if another process has it.
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
        // Without abstract sockets it is unknown.
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
