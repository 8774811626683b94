//! `hold`: the first process of a container, which keeps it running until a signal ends it.
//!
//! It waits for SIGTERM or SIGINT and reaps orphaned processes, as the first process of a PID namespace must. The
//! kernel delivers to it only signals that it asks for, so without this a container would end only by SIGKILL after
//! the engine's grace period.
//! Signals are blocked and taken by `sigwaitinfo`, so there is no handler and no race.

use std::io;

/// Waits until SIGTERM or SIGINT arrives.
pub fn hold() -> io::Result<()> {
    // SAFETY: `sigset_t` is plain data for which all zeroes is a valid value; `sigemptyset` sets it anyway.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `signals` is a live, exclusively borrowed set, and the numbers are valid signals.
    unsafe {
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGTERM);
        libc::sigaddset(&raw mut signals, libc::SIGINT);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
    }
    // SAFETY: both pointers are to live sets or null, as `sigprocmask` allows.
    if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) } != 0
    {
        return Err(io::Error::last_os_error());
    }
    loop {
        // A child may have ended before its signal was blocked, so reaping comes first.
        reap();
        // SAFETY: `signals` is a live set; a null information pointer is allowed.
        let signal = unsafe { libc::sigwaitinfo(&raw const signals, std::ptr::null_mut()) };
        match signal {
            libc::SIGTERM | libc::SIGINT => return Ok(()),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => {}
        }
    }
}

/// Reaps every child that has ended.
fn reap() {
    // SAFETY: a null status pointer is allowed; -1 means any child.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}
