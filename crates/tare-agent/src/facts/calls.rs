//! Records what a handful of syscalls return for arguments that cannot do anything.
//!
//! A seccomp filter that denies or hides a syscall silently makes programs take a slower path, so the results are
//! compared between arms: `EFAULT` or `EINVAL` means that the kernel checked the arguments, `EPERM` and `ENOSYS` that
//! the syscall is denied or hidden. They run in a child process, because a filter may also kill the caller.
//! Limits: misses rules about arguments that these calls do not use.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

use tare_model::fact;

use super::Collector;

/// Syscalls with arguments that are rejected before anything happens: null pointers, descriptor −1, no flags.
const CALLS: &[(&str, libc::c_long, [i64; 6])] = &[
    ("cachestat", CACHESTAT, [-1, 0, 0, 0, 0, 0]),
    ("clone3", libc::SYS_clone3, [0; 6]),
    (
        "get_mempolicy",
        libc::SYS_get_mempolicy,
        [0, 0, 0, 0, 1 << 40, 0],
    ),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0; 6]),
    ("mbind", libc::SYS_mbind, [1, 0, -1, 0, 0, 0]),
    ("move_pages", libc::SYS_move_pages, [0, 1, 0, 0, 0, 1 << 20]),
    ("perf_event_open", libc::SYS_perf_event_open, [0; 6]),
    (
        "userfaultfd",
        libc::SYS_userfaultfd,
        [1 << 30, 0, 0, 0, 0, 0],
    ),
];

/// The same number on every architecture, as for all syscalls since Linux 5.
const CACHESTAT: libc::c_long = 451;

/// Collects the results.
pub(super) fn collect(facts: &mut Collector) {
    match answers() {
        Ok(answers) => {
            for (position, (name, ..)) in CALLS.iter().enumerate() {
                let text = match answers.get(position) {
                    Some(0) => "0".to_owned(),
                    Some(errno) => errno_name(i32::from(*errno)),
                    None => "killed".to_owned(),
                };
                facts.set(&fact::name_for(fact::ERRNO, name), text);
                if answers.len() <= position {
                    break;
                }
            }
        }
        Err(error) => facts.unreadable("errno", &error),
    }
}

fn errno_name(errno: i32) -> String {
    match errno {
        libc::EPERM => "EPERM",
        libc::ENOSYS => "ENOSYS",
        libc::EFAULT => "EFAULT",
        libc::EINVAL => "EINVAL",
        libc::EBADF => "EBADF",
        libc::EACCES => "EACCES",
        other => return other.to_string(),
    }
    .to_owned()
}

/// Returns one byte per syscall, the error number or 0, up to the syscall that killed the child.
fn answers() -> io::Result<Vec<u8>> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is live and holds two descriptors, as the call wants.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above succeeded: both descriptors are open and nothing else owns them.
    let (reader, writer) =
        unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the child makes only system calls, takes no lock, allocates nothing, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    match child {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            for (_, number, [a, b, c, d, e, f]) in CALLS {
                // SAFETY: the arguments of the table hold no valid pointer and no open descriptor, so that
                // the kernel refuses each call without touching this process.
                let result = unsafe { libc::syscall(*number, *a, *b, *c, *d, *e, *f) };
                let errno = if result < 0 {
                    // SAFETY: the pointer to this thread's `errno` is always valid.
                    unsafe { *libc::__errno_location() }
                } else {
                    0
                };
                let byte = u8::try_from(errno).unwrap_or(u8::MAX);
                // SAFETY: the writing end is open, and `byte` is one live byte.
                unsafe { libc::write(ends[1], (&raw const byte).cast(), 1) };
            }
            // SAFETY: ends the child at once, without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        _ => {}
    }
    drop(writer);
    let mut answers = Vec::new();
    let read = File::from(reader).read_to_end(&mut answers);
    let mut status = 0;
    // SAFETY: `child` is our child, nothing else waits for it, and `status` is live.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    read.map(|_| answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probed_calls_all_return_an_errno() {
        let answers = answers().unwrap();
        assert_eq!(answers.len(), CALLS.len());
        for ((name, ..), errno) in CALLS.iter().zip(&answers) {
            assert_ne!(*errno, 0, "{name} did something");
        }
    }
}
