//! Windows features that the standard library lacks: jobs, and UTF-16 names.
//!
//! A few declarations after the Windows SDK instead of a bindings crate, because every kilobyte of the agent is
//! copied into every arm. A call that only one file makes is declared there.
//! Limits: does not find processes that were started outside of a job on behalf of its members (by a service, by a
//! schedule); they belong to their starter.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::time::Duration;

/// Unit of the system's times: 100 ns.
const UNIT_NS: f64 = 100.0;

/// Encodes a text for the system: UTF-16 with a terminating zero.
pub(crate) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// The longest finite timeout, ms; the next number is infinite.
const LONGEST_WAIT_MS: u32 = u32::MAX - 1;

/// Returns the length of a structure that contains its length, or is passed with it.
#[allow(
    clippy::cast_possible_truncation,
    reason = "structures are of a few KiB"
)]
pub(crate) const fn length_of<T>() -> u32 {
    size_of::<T>() as u32
}

/// Returns the capacity of a buffer in UTF-16 units.
pub(crate) fn room(buffer: &[u16]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

/// Converts the result of a call that returns 0 if it failed.
pub(crate) fn done(answer: i32) -> io::Result<()> {
    match answer {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes an open handle non-inheritable.
pub(crate) fn keep_from_children(handle: RawHandle) -> io::Result<()> {
    /// `HANDLE_FLAG_INHERIT`.
    const INHERIT: u32 = 1;
    // SAFETY: takes flags of a handle; a closed one is refused.
    done(unsafe { SetHandleInformation(handle, INHERIT, 0) })
}

/// Whether this is a console host, which the system starts and ends by itself.
fn is_console(process: &OwnedHandle) -> bool {
    let mut path = [0u16; 512];
    // SAFETY: the handle is open, and the buffer has the given length.
    let length = unsafe {
        K32GetProcessImageFileNameW(process.as_raw_handle(), path.as_mut_ptr(), room(&path))
    };
    let path = String::from_utf16_lossy(&path[..(length as usize).min(path.len())]);
    path.to_ascii_lowercase().ends_with("\\conhost.exe")
}

/// Returns the CPU time of a process in user and in kernel mode, nanoseconds.
pub(crate) fn times_ns(process: RawHandle) -> io::Result<[f64; 2]> {
    let (mut began, mut ended, mut kernel, mut user) = (0, 0, 0, 0);
    // SAFETY: the handle is a process's, and all four pointers are live.
    done(unsafe {
        GetProcessTimes(
            process,
            &raw mut began,
            &raw mut ended,
            &raw mut kernel,
            &raw mut user,
        )
    })?;
    Ok([user, kernel].map(|units| units as f64 * UNIT_NS))
}

/// `JOBOBJECT_BASIC_LIMIT_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct BasicLimits {
    times: [i64; 2],
    flags: u32,
    working_set: [usize; 2],
    active_processes: u32,
    affinity: usize,
    classes: [u32; 2],
}

/// `JOBOBJECT_EXTENDED_LIMIT_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct Limits {
    basic: BasicLimits,
    io: [u64; 6],
    memory: [usize; 4],
}

/// `JOBOBJECT_BASIC_ACCOUNTING_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct Accounting {
    user: i64,
    kernel: i64,
    of_period: [i64; 2],
    page_faults: u32,
    processes: u32,
    active: u32,
    terminated: u32,
}

/// `JOBOBJECT_BASIC_PROCESS_ID_LIST` with a fixed capacity.
#[repr(C)]
struct Members {
    assigned: u32,
    listed: u32,
    ids: [usize; 256],
}

const ACCOUNTING_CLASS: i32 = 1;
const MEMBERS_CLASS: i32 = 3;
const LIMITS_CLASS: i32 = 9;
const KILL_ON_JOB_CLOSE: u32 = 0x2000;
/// `ERROR_ALREADY_EXISTS`.
const ALREADY_EXISTS: i32 = 183;
/// `JOB_OBJECT_QUERY`.
const QUERY: u32 = 4;
/// Rights to end a process, to wait for it, and to query its job.
const END_WAIT_AND_ASK: u32 = 0x0001 | 0x0010_0000 | 0x0400;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateJobObjectW(attributes: *const c_void, name: *const u16) -> RawHandle;
    fn OpenJobObjectW(rights: u32, inherits: i32, name: *const u16) -> RawHandle;
    fn SetInformationJobObject(job: RawHandle, class: i32, what: *const c_void, length: u32)
    -> i32;
    fn QueryInformationJobObject(
        job: RawHandle,
        class: i32,
        what: *mut c_void,
        length: u32,
        returned: *mut u32,
    ) -> i32;
    fn AssignProcessToJobObject(job: RawHandle, process: RawHandle) -> i32;
    fn IsProcessInJob(process: RawHandle, job: RawHandle, answer: *mut i32) -> i32;
    safe fn GetCurrentProcess() -> RawHandle;
    fn OpenProcess(rights: u32, inherits: i32, process: u32) -> RawHandle;
    fn TerminateProcess(process: RawHandle, status: u32) -> i32;
    fn WaitForSingleObject(handle: RawHandle, limit_ms: u32) -> u32;
    fn GetProcessTimes(
        process: RawHandle,
        began: *mut i64,
        ended: *mut i64,
        kernel: *mut i64,
        user: *mut i64,
    ) -> i32;
    fn SetHandleInformation(handle: RawHandle, which: u32, flags: u32) -> i32;
    fn K32GetProcessImageFileNameW(process: RawHandle, path: *mut u16, length: u32) -> u32;
}

/// A job object: a group of processes that also includes everything that they start.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    /// Creates a job that ends with its creator: the system then ends the remaining processes, for whatever reason
    /// the creator ended. The creator is not a member, and holds the only permanent handle.
    ///
    /// # Errors
    /// A job of this name exists already.
    pub(crate) fn make(name: &str) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero, and a null pointer requests a handle that is not inherited.
        let job = unsafe { CreateJobObjectW(std::ptr::null(), name.as_ptr()) };
        let is_old = io::Error::last_os_error().raw_os_error() == Some(ALREADY_EXISTS);
        let job = Self::owned(job)?;
        if is_old {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut limits = Limits::default();
        limits.basic.flags = KILL_ON_JOB_CLOSE;
        // SAFETY: the handle is a job's, and `limits` is the live structure of that class with its length.
        done(unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                LIMITS_CLASS,
                (&raw const limits).cast(),
                length_of::<Limits>(),
            )
        })?;
        Ok(job)
    }

    /// Adds a process that has not started anything yet.
    ///
    /// # Errors
    /// The system has no nested jobs (before Windows 8), or the process has ended.
    pub(crate) fn take_in(&self, process: &impl AsRawHandle) -> io::Result<()> {
        // SAFETY: both handles are open and of the right kind.
        done(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) })
    }

    /// Opens the job of this name, if this process belongs to it; `None` if there is none. Do not keep it: as long as
    /// a handle is open, the job does not end with its creator.
    pub(crate) fn of_this_process(name: &str) -> Option<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero; a missing job yields a null handle.
        let job = Self::owned(unsafe { OpenJobObjectW(QUERY, 0, name.as_ptr()) }).ok()?;
        job.has(GetCurrentProcess()).then_some(job)
    }

    fn owned(job: RawHandle) -> io::Result<Self> {
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just created, and is owned nowhere else.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(job) }))
    }

    /// Whether a process is a member.
    fn has(&self, process: RawHandle) -> bool {
        let mut is_member = 0;
        // SAFETY: both handles are open and of the right kind, and `is_member` is live.
        let asked = unsafe { IsProcessInJob(process, self.0.as_raw_handle(), &raw mut is_member) };
        asked != 0 && is_member != 0
    }

    /// Queries a class of information, and returns whether that succeeded.
    ///
    /// # Safety
    /// `found` is the structure of that class.
    unsafe fn ask<T>(&self, class: i32, found: &mut T) -> bool {
        // SAFETY: the handle is a job's, and `found` is live and has the given length; the caller guarantees its
        // class.
        let answer = unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                class,
                (&raw mut *found).cast(),
                length_of::<T>(),
                std::ptr::null_mut(),
            )
        };
        answer != 0
    }

    /// Returns the CPU time of all current and former members in user and in kernel mode, nanoseconds.
    pub(crate) fn used_ns(&self) -> Option<[f64; 2]> {
        let mut found = Accounting::default();
        // SAFETY: the structure is that of the class.
        let is_told = unsafe { self.ask(ACCOUNTING_CLASS, &mut found) };
        is_told.then(|| [found.user, found.kernel].map(|units| units as f64 * UNIT_NS))
    }

    /// Returns the pids of its members; incomplete if there are very many.
    fn members(&self) -> Vec<u32> {
        let mut found = Members {
            assigned: 0,
            listed: 0,
            ids: [0; 256],
        };
        // SAFETY: the structure is that of the class. If there are more, the call fails after filling it with those
        // that fit.
        unsafe { self.ask(MEMBERS_CLASS, &mut found) };
        let ids = found.ids.iter().take(found.listed as usize);
        ids.filter_map(|id| u32::try_from(*id).ok()).collect()
    }

    /// Ends every member except this process, and waits for each, for at most `limit` in total; returns their number.
    pub(crate) fn end_others(&self, limit: Duration) -> u32 {
        let begin = std::time::Instant::now();
        let mut n_ended = 0;
        loop {
            let others = self.members().into_iter();
            let n_before = n_ended;
            for id in others.filter(|id| *id != std::process::id()) {
                n_ended += u32::from(self.end(id, limit.saturating_sub(begin.elapsed())));
            }
            if n_ended == n_before || begin.elapsed() >= limit {
                return n_ended;
            }
        }
    }

    /// Ends one process if it still belongs to the job; returns whether it did.
    fn end(&self, id: u32, limit: Duration) -> bool {
        // SAFETY: takes rights, a flag and a pid; a process that is gone yields a null handle.
        let process = unsafe { OpenProcess(END_WAIT_AND_ASK, 0, id) };
        if process.is_null() {
            return false;
        }
        // SAFETY: the handle was just opened, and is owned nowhere else.
        let process = unsafe { OwnedHandle::from_raw_handle(process) };
        if is_console(&process) {
            return false;
        }
        let handle = process.as_raw_handle();
        // The pid may have been reused since it was listed.
        if !self.has(handle) {
            return false;
        }
        let limit_ms =
            u32::try_from(limit.as_millis()).map_or(LONGEST_WAIT_MS, |ms| ms.min(LONGEST_WAIT_MS));
        // SAFETY: the handle is open and has both rights.
        unsafe {
            if TerminateProcess(handle, 1) == 0 {
                return false;
            }
            WaitForSingleObject(handle, limit_ms);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_string_is_nul_terminated_utf16() {
        assert_eq!(wide("aé"), [0x61, 0xe9, 0]);
        assert_eq!(wide(""), [0]);
    }
}
