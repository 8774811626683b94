//! Wraps the launcher's syscalls in functions that return a `Result`.
//!
//! No library, because the launcher forks by hand and must know exactly which syscalls are made between `fork` and
//! `execve`, above all once the seccomp filter is loaded.
//! Everything here assumes a single-threaded caller.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Converts a text for the kernel; fails if it contains a NUL byte.
pub(crate) fn c_text(text: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(text.as_ref().as_bytes()).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a NUL byte at {}", error.nul_position()),
        )
    })
}

pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Forks with namespace flags; returns 0 in the child. The caller must have only one thread, because the child
/// continues with a copy of this thread alone.
pub(crate) fn clone_process(namespaces: libc::c_int) -> io::Result<libc::pid_t> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: a null stack makes clone behave as fork: the child runs on a copy of this stack. No CLONE_VM,
    // CLONE_SETTLS or *_TID flag is given, so the other four arguments are not read; zeros have the same
    // meaning in the argument orders of x86_64 and aarch64.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    #[allow(
        clippy::cast_possible_truncation,
        reason = "numbers of processes are of 32 bits"
    )]
    check_long(pid).map(|pid| pid as libc::pid_t)
}

/// Leaves the given namespaces for new ones.
pub(crate) fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: unshare takes flags only and touches none of this process's memory.
    check(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Moves this thread into a network namespace.
pub(crate) fn enter_network(namespace: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call changes only which network this thread uses.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Calls `prctl` with one number as argument.
pub(crate) fn prctl(option: libc::c_int, argument: libc::c_ulong) -> io::Result<libc::c_int> {
    // SAFETY: used only with options whose arguments are numbers; unused ones must be 0 and are.
    check(unsafe {
        libc::prctl(
            option,
            argument,
            0 as libc::c_ulong,
            0 as libc::c_ulong,
            0 as libc::c_ulong,
        )
    })
}

/// Forbids this thread and its future children speculative store bypass. The numbers are those of
/// include/uapi/linux/prctl.h, which not every C library's bindings have.
pub(crate) fn forbid_store_bypass() -> io::Result<()> {
    const PR_SET_SPECULATION_CTRL: libc::c_int = 53;
    const PR_SPEC_STORE_BYPASS: libc::c_ulong = 0;
    const PR_SPEC_DISABLE: libc::c_ulong = 1 << 2;
    // SAFETY: the option takes numbers only; the unused ones must be 0 and are.
    check(unsafe {
        libc::prctl(
            PR_SET_SPECULATION_CTRL,
            PR_SPEC_STORE_BYPASS,
            PR_SPEC_DISABLE,
            0 as libc::c_ulong,
            0 as libc::c_ulong,
        )
    })
    .map(drop)
}

/// Mounts; empty texts are passed as null.
pub(crate) fn mount(
    source: &OsStr,
    target: &Path,
    kind: &str,
    flags: libc::c_ulong,
    data: &str,
) -> io::Result<()> {
    let (source, target, kind, data) = (
        c_text(source)?,
        c_text(target)?,
        c_text(kind)?,
        c_text(data)?,
    );
    let or_null = |text: &CStr| {
        if text.is_empty() {
            std::ptr::null()
        } else {
            text.as_ptr()
        }
    };
    // SAFETY: every pointer is null or a NUL-terminated text that lives until the call returns; the kernel
    // copies up to one page from `data` and stops at its NUL for the file systems that are used here.
    check(unsafe {
        libc::mount(
            or_null(&source),
            target.as_ptr(),
            or_null(&kind),
            flags,
            or_null(&data).cast(),
        )
    })
    .map(drop)
}

/// Unmounts lazily.
pub(crate) fn unmount(target: &Path) -> io::Result<()> {
    let target = c_text(target)?;
    // SAFETY: a NUL-terminated path that outlives the call.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Makes the working directory the root and stacks the old root on it.
pub(crate) fn pivot_root_here() -> io::Result<()> {
    let here = c".";
    // SAFETY: two NUL-terminated paths with static lifetime.
    check_long(unsafe { libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()) })
        .map(drop)
}

/// Opens a file or folder as a location only (`O_PATH`): to bind-mount or stat it, not to read it.
pub(crate) fn open_path(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
}

/// Starts a new session keyring, so that the caller's is out of reach.
pub(crate) fn new_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    let nameless: *const libc::c_char = std::ptr::null();
    // SAFETY: the command takes a name, or null for a new keyring without one.
    check_long(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nameless) }).map(drop)
}

/// Adds attributes (`MOUNT_ATTR_…`) to a mount and all mounts below it; existing ones stay.
pub(crate) fn restrict_mounts(target: &Path, attributes: u64) -> io::Result<()> {
    // struct mount_attr of include/uapi/linux/mount.h: attr_set, attr_clr, propagation, userns_fd.
    let wanted: [u64; 4] = [attributes, 0, 0, 0];
    let target = c_text(target)?;
    // SAFETY: the path is NUL-terminated, the structure has the size that is given, and both outlive the call.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::AT_RECURSIVE,
            wanted.as_ptr(),
            size_of_val(&wanted),
        )
    })
    .map(drop)
}

/// Calls `bpf(2)` with the first bytes of its attributes; the kernel takes the rest as zeros.
pub(crate) fn bpf(command: libc::c_int, attributes: &[u64]) -> io::Result<libc::c_long> {
    // SAFETY: pointer and size describe `attributes`; callers keep the targets of addresses in them alive.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_ptr(),
            size_of_val(attributes),
        )
    })
}

/// Sets the host name of this UTS namespace.
pub(crate) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length describe the bytes of `name`.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Starts a new session: no terminal, and no signals from the terminal's group.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: setsid takes no arguments.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Replaces this program. Returns only on failure.
pub(crate) fn execute(argv: &[String]) -> io::Error {
    let texts: io::Result<Vec<CString>> = argv.iter().map(c_text).collect();
    let texts = match texts {
        Ok(texts) if !texts.is_empty() => texts,
        Ok(_) => return io::Error::from_raw_os_error(libc::EINVAL),
        Err(error) => return error,
    };
    let mut pointers: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: the path is NUL-terminated, `pointers` is a null-terminated array of NUL-terminated texts, and
    // both outlive the call.
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Exits this process at once, without running destructors.
pub(crate) fn leave(status: i32) -> ! {
    // SAFETY: _exit takes a number and does not return; nothing of this process is used afterwards.
    unsafe { libc::_exit(status) }
}

/// Makes a close-on-exec pipe: read end, write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that pipe2 writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: pipe2 succeeded, so both are open descriptors that nothing else owns.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Makes `to` a copy of `from` that stays open on `execve`.
pub(crate) fn duplicate_onto(from: &impl AsRawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: `from` is open during the call; `to` is one of the standard streams, which no owning type of this
    // program refers to.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Marks every descriptor above the standard streams close-on-exec.
pub(crate) fn close_others_on_execution() -> io::Result<()> {
    const CLOEXEC: libc::c_ulong = 4;
    // SAFETY: with the CLOEXEC flag nothing is closed, so no owned descriptor becomes invalid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_ulong,
            libc::c_ulong::from(u32::MAX),
            CLOEXEC,
        )
    };
    check_long(result).map(drop)
}

/// Returns the parent's pid.
pub(crate) fn parent() -> libc::pid_t {
    // SAFETY: getppid takes no arguments and cannot fail.
    unsafe { libc::getppid() }
}

/// Makes the kernel send this process a signal when its parent dies; returns the parent's pid. `expected` is the pid
/// that the parent has passed; if the current parent differs, the expected one has died already, which is an error.
pub(crate) fn end_with_parent(
    signal: libc::c_int,
    expected: Option<libc::pid_t>,
) -> io::Result<libc::pid_t> {
    prctl(libc::PR_SET_PDEATHSIG, signal.cast_unsigned().into())?;
    let found = parent();
    if expected.is_some_and(|expected| expected != found) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the process that started this has ended already",
        ));
    }
    Ok(found)
}

/// Permanently becomes another user, with this group and optionally one more, without root's capabilities.
pub(crate) fn become_user(
    user: libc::uid_t,
    group: libc::gid_t,
    more: Option<libc::gid_t>,
) -> io::Result<()> {
    let groups: Vec<libc::gid_t> = more.into_iter().collect();
    // SAFETY: the pointer and the count are those of a live vector.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
    // SAFETY: numbers only.
    check(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: numbers only.
    check(unsafe { libc::setresuid(user, user, user) }).map(drop)
}

/// Returns the effective user id.
pub(crate) fn effective_user() -> libc::uid_t {
    // SAFETY: geteuid takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Returns the effective group id.
pub(crate) fn effective_group() -> libc::gid_t {
    // SAFETY: getegid takes no arguments and cannot fail.
    unsafe { libc::getegid() }
}

/// Sends a signal.
pub(crate) fn kill(process: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    if process <= 1 {
        // 0, -1 and 1 would reach this process's group, all processes, or the machine's init.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: kill takes two numbers.
    check(unsafe { libc::kill(process, signal) }).map(drop)
}

/// Returns a child's exit status, or 128 plus the signal's number; `None` while it runs.
pub(crate) fn reap(process: libc::pid_t, is_blocking: bool) -> io::Result<Option<i32>> {
    let mut status = 0;
    let options = if is_blocking { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: `status` is live and exclusively borrowed.
        match check(unsafe { libc::waitpid(process, &raw mut status, options) }) {
            Ok(0) => return Ok(None),
            Ok(_) if libc::WIFSIGNALED(status) => return Ok(Some(128 + libc::WTERMSIG(status))),
            Ok(_) => return Ok(Some(libc::WEXITSTATUS(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until any child has exited; returns its pid and its status as [`reap`] does.
pub(super) fn reap_any() -> io::Result<(libc::pid_t, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is live and exclusively borrowed.
        match check(unsafe { libc::waitpid(-1, &raw mut status, 0) }) {
            Ok(process) if libc::WIFSIGNALED(status) => {
                return Ok((process, 128 + libc::WTERMSIG(status)));
            }
            Ok(process) => return Ok((process, libc::WEXITSTATUS(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data for which zero is a valid bit pattern; sigemptyset initialises it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is live and exclusively borrowed.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: `set` was initialised by sigemptyset.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Blocks signals and returns a descriptor that becomes readable when one is pending.
pub(crate) fn signals_as_descriptor(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    let set = set_of(signals);
    // SAFETY: `set` is initialised; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })?;
    // SAFETY: `set` is initialised; -1 asks for a new descriptor.
    let descriptor = check(unsafe {
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    })?;
    // SAFETY: signalfd succeeded, so this is an open descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Takes one pending signal from a descriptor of [`signals_as_descriptor`].
pub(crate) fn next_signal(descriptor: &OwnedFd) -> Option<libc::c_int> {
    // SAFETY: signalfd_siginfo is plain data for which zero is a valid bit pattern.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: `info` has `size` bytes of room.
    let got = unsafe { libc::read(descriptor.as_raw_fd(), (&raw mut info).cast(), size) };
    (got == size.cast_signed()).then_some(info.ssi_signo.cast_signed())
}

/// Unblocks every signal and restores its default action, as programs expect at their start.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: SIG_DFL is not a function of this program; the signals are valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let none = set_of(&[]);
    // SAFETY: `none` is initialised; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) })
        .map(drop)
}

pub(crate) fn ignore_signal(signal: libc::c_int) {
    // SAFETY: SIG_IGN is not a function of this program; callers pass valid signals.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Waits until a descriptor is ready, at most `limit_ms` milliseconds; negative waits forever.
pub(crate) fn poll(descriptors: &mut [libc::pollfd], limit_ms: i32) -> io::Result<()> {
    // SAFETY: pointer and length describe `descriptors`.
    let result = unsafe {
        libc::poll(
            descriptors.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            limit_ms,
        )
    };
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Sets this thread's capability sets, each as a mask by capability number.
pub(crate) fn set_capabilities(effective: u64, permitted: u64, inheritable: u64) -> io::Result<()> {
    // Version 3 of the interface: two 32-bit words for each set (include/uapi/linux/capability.h).
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let words = [
        [effective, permitted, inheritable].map(|set| (set & 0xffff_ffff) as u32),
        [
            (effective >> 32) as u32,
            (permitted >> 32) as u32,
            (inheritable >> 32) as u32,
        ],
    ];
    // SAFETY: `header` and `words` have the layout of __user_cap_header_struct and of two __user_cap_data_struct, as
    // version 3 requires; both outlive the call.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) })
        .map(drop)
}

/// Loads a seccomp filter for this thread and its future children.
pub(crate) fn load_filter(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<()> {
    const SET_MODE_FILTER: libc::c_ulong = 1;
    let length =
        u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points to `length` instructions that outlive the call; the kernel only reads them.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
    .map(drop)
}

/// Opens a netlink socket for routes and links of this network namespace.
pub(crate) fn route_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket takes numbers only.
    let socket = check(unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        )
    })?;
    // SAFETY: socket succeeded, so this is an open descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sends bytes on a socket that needs no address.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `bytes`.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    if sent == bytes.len().cast_signed() {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Receives one datagram into `buffer` and returns its length.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`.
    let got = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
        )
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Returns the kernel release, as `uname -r` prints it.
pub(crate) fn kernel_release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
