//! What the standard library has not of Windows: jobs, and names as the system takes them.
//!
//! A few declarations after the Windows SDK in place of a crate of bindings, for every kilobyte of the agent is copied
//! into every arm. A call that only one file makes is declared there.
//! What it cannot see: processes that were started from outside of a job in its members' name (by a service, by a
//! schedule); they belong to whoever started them.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::time::Duration;

/// A time as the system counts it: units of 100 ns.
const UNIT_NS: f64 = 100.0;

/// A text as the system takes it: UTF-16 with a zero behind it.
pub(crate) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// The longest time to wait that has an end, ms; the next number is for ever.
const LONGEST_WAIT_MS: u32 = u32::MAX - 1;

/// The length of a structure that says its own, or that is handed over with it.
#[allow(
    clippy::cast_possible_truncation,
    reason = "structures are of a few KiB"
)]
pub(crate) const fn length_of<T>() -> u32 {
    size_of::<T>() as u32
}

/// How many letters a buffer has room for.
pub(crate) fn room(buffer: &[u16]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

/// What a call has said that answers 0 where it failed.
pub(crate) fn done(answer: i32) -> io::Result<()> {
    match answer {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Has no child inherit an open handle.
pub(crate) fn keep_from_children(handle: RawHandle) -> io::Result<()> {
    /// `HANDLE_FLAG_INHERIT`.
    const INHERIT: u32 = 1;
    // SAFETY: flags of a handle; one that is closed is refused.
    done(unsafe { SetHandleInformation(handle, INHERIT, 0) })
}

/// Whether this is a process of a console's own, which the system starts and ends as it likes.
fn is_console(process: &OwnedHandle) -> bool {
    let mut path = [0u16; 512];
    // SAFETY: the handle is open, and the buffer has the length that is given.
    let length = unsafe {
        K32GetProcessImageFileNameW(process.as_raw_handle(), path.as_mut_ptr(), room(&path))
    };
    let path = String::from_utf16_lossy(&path[..(length as usize).min(path.len())]);
    path.to_ascii_lowercase().ends_with("\\conhost.exe")
}

/// How long a process was on processors, outside of the kernel and inside, nanoseconds.
pub(crate) fn times_ns(process: RawHandle) -> io::Result<[f64; 2]> {
    let (mut began, mut ended, mut kernel, mut user) = (0, 0, 0, 0);
    // SAFETY: the handle is one of a process, and all four places are live.
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

/// `JOBOBJECT_BASIC_PROCESS_ID_LIST` with room for so many.
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
/// Rights to end a process, to wait for it, and to ask where it belongs.
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

/// Processes that belong together: a job object. What belongs to it passes that on to all that it starts.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    /// Makes one that ends with its maker: what is left of it then is ended by the system, however that came about. Its
    /// maker is no member, and holds the only handle that lasts.
    ///
    /// # Errors
    /// There is one of this name already.
    pub(crate) fn make(name: &str) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero, and a null pointer asks for a handle that nobody inherits.
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

    /// Makes a process a member that has not started anything yet.
    ///
    /// # Errors
    /// The system has no jobs in jobs (before Windows 8), or the process has ended.
    pub(crate) fn take_in(&self, process: &impl AsRawHandle) -> io::Result<()> {
        // SAFETY: both handles are open and of their kinds.
        done(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) })
    }

    /// Finds the one of this name, if this process belongs to it; `None` where there is none. Not to be kept: as long
    /// as somebody holds it, it does not end with its maker.
    pub(crate) fn of_this_process(name: &str) -> Option<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero; a job that is not there gives a null handle.
        let job = Self::owned(unsafe { OpenJobObjectW(QUERY, 0, name.as_ptr()) }).ok()?;
        job.has(GetCurrentProcess()).then_some(job)
    }

    fn owned(job: RawHandle) -> io::Result<Self> {
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made, and nobody else owns it.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(job) }))
    }

    /// Whether a process is a member.
    fn has(&self, process: RawHandle) -> bool {
        let mut is_member = 0;
        // SAFETY: both handles are of their kinds and open, and `is_member` lives.
        let asked = unsafe { IsProcessInJob(process, self.0.as_raw_handle(), &raw mut is_member) };
        asked != 0 && is_member != 0
    }

    /// Asks for what a class of questions has answers to, and says whether it was told.
    ///
    /// # Safety
    /// `found` is the structure of that class.
    unsafe fn ask<T>(&self, class: i32, found: &mut T) -> bool {
        // SAFETY: the handle is a job's, and `found` is live and has the length that is given; the caller vouches for
        // its class.
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

    /// How long all that belong or belonged to it were on processors, outside of the kernel and inside, nanoseconds.
    pub(crate) fn used_ns(&self) -> Option<[f64; 2]> {
        let mut found = Accounting::default();
        // SAFETY: the structure is that of the class.
        let is_told = unsafe { self.ask(ACCOUNTING_CLASS, &mut found) };
        is_told.then(|| [found.user, found.kernel].map(|units| units as f64 * UNIT_NS))
    }

    /// The numbers of the processes in it; of very many not all.
    fn members(&self) -> Vec<u32> {
        let mut found = Members {
            assigned: 0,
            listed: 0,
            ids: [0; 256],
        };
        // SAFETY: the structure is that of the class. Where there are more, the call fails with what fits in place.
        unsafe { self.ask(MEMBERS_CLASS, &mut found) };
        let ids = found.ids.iter().take(found.listed as usize);
        ids.filter_map(|id| u32::try_from(*id).ok()).collect()
    }

    /// Ends every process in it but this one, and waits for each, at most so long altogether; how many there were.
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

    /// Ends one process if it still belongs to the job; whether it did.
    fn end(&self, id: u32, limit: Duration) -> bool {
        // SAFETY: rights, a flag and a number; a process that is gone gives a null handle.
        let process = unsafe { OpenProcess(END_WAIT_AND_ASK, 0, id) };
        if process.is_null() {
            return false;
        }
        // SAFETY: the handle was just opened, and nobody else owns it.
        let process = unsafe { OwnedHandle::from_raw_handle(process) };
        if is_console(&process) {
            return false;
        }
        let handle = process.as_raw_handle();
        // The number may have passed to another process since it was listed.
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
    fn a_text_ends_with_a_zero_and_keeps_what_is_beyond_ascii() {
        assert_eq!(wide("aé"), [0x61, 0xe9, 0]);
        assert_eq!(wide(""), [0]);
    }
}
