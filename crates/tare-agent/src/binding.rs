//! Lists the CPUs that this process may use and pins it to one of them.
//!
//! Interleaved workers share one CPU, so that placement is not a difference between arms. For their preparation
//! (memory, files) they may use the other CPUs.
//! Limits: threads and children that existed before pinning keep their CPU set (on Windows, threads follow their
//! process); on Windows only the first 64 CPUs are seen.

use std::io;

/// Keeps this process pinned to one CPU until it is dropped.
#[derive(Debug)]
pub struct Binding {
    cpu: u32,
    before: Set,
}

impl Binding {
    /// Pins this process, and what it starts from now on, to a CPU.
    ///
    /// # Errors
    /// The CPU does not exist or this process may not use it.
    pub fn bind(cpu: u32) -> io::Result<Self> {
        let before = Set::current()?;
        // The kernel would also accept a CPU outside the set that this process was given.
        if !before.has(cpu) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Set::new(&[cpu as usize])?.apply()?;
        Ok(Self { cpu, before })
    }

    /// Pins this process to the CPU that it runs on.
    ///
    /// # Errors
    /// The system does not say which CPU that is.
    pub fn here() -> io::Result<Self> {
        Self::bind(current_cpu()?)
    }

    /// Returns the CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Runs `work` on any CPU that was allowed before pinning, then pins again.
    ///
    /// # Errors
    /// The CPU has gone meanwhile: the rest would run on another CPU than the other arms' workers.
    pub fn loosened<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.before.apply()?;
        let done = work();
        Set::new(&[self.cpu as usize])?.apply()?;
        Ok(done)
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        // A failure leaves the worker pinned, and it ends soon.
        let _ = self.before.apply();
    }
}

#[cfg(target_os = "linux")]
fn current_cpu() -> io::Result<u32> {
    // SAFETY: sched_getcpu has no precondition.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| io::Error::last_os_error())
}

#[cfg(windows)]
fn current_cpu() -> io::Result<u32> {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcessorNumber() -> u32;
    }
    Ok(GetCurrentProcessorNumber())
}

#[cfg(not(any(target_os = "linux", windows)))]
fn current_cpu() -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Restricts this process and its children to these CPUs.
pub(crate) fn restrict(cpus: &[usize]) -> io::Result<()> {
    Set::new(cpus)?.apply()
}

/// Returns the CPUs that this process may use.
#[cfg(windows)]
pub(crate) fn allowed() -> io::Result<Vec<u32>> {
    let Set(set) = Set::current()?;
    Ok((0..usize::BITS).filter(|cpu| set >> cpu & 1 == 1).collect())
}

/// A set of CPUs.
#[cfg(target_os = "linux")]
struct Set(libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Set {
    fn none() -> Self {
        // SAFETY: `cpu_set_t` is plain data for which all zeroes, the empty set, is a valid value.
        Self(unsafe { std::mem::zeroed() })
    }

    fn new(cpus: &[usize]) -> io::Result<Self> {
        let mut set = Self::none();
        for cpu in cpus {
            if *cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            // SAFETY: the number was checked to be within the set.
            unsafe { libc::CPU_SET(*cpu, &mut set.0) };
        }
        Ok(set)
    }

    fn current() -> io::Result<Self> {
        let mut set = Self::none();
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: `set` is live, exclusively borrowed, and its size is given; 0 means this thread.
        match unsafe { libc::sched_getaffinity(0, size, &raw mut set.0) } {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn has(&self, cpu: u32) -> bool {
        // SAFETY: the number was checked to be within the set.
        cpu < libc::CPU_SETSIZE as u32 && unsafe { libc::CPU_ISSET(cpu as usize, &self.0) }
    }

    fn apply(&self) -> io::Result<()> {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the set is live and its size is given; 0 means this thread, the only one where this is called.
        match unsafe { libc::sched_setaffinity(0, size, &raw const self.0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(target_os = "linux")]
impl std::fmt::Debug for Set {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: every number of the range is within the set.
        let set = all.filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &self.0) });
        out.debug_list().entries(set).finish()
    }
}

/// A set of CPUs as a bit mask, within this process's processor group (Windows makes one for every 64 CPUs).
#[cfg(windows)]
#[derive(Debug)]
struct Set(usize);

#[cfg(windows)]
impl Set {
    fn new(cpus: &[usize]) -> io::Result<Self> {
        let bit = |cpu: &usize| 1usize.checked_shl(u32::try_from(*cpu).ok()?);
        cpus.iter()
            .try_fold(0, |set, cpu| Some(set | bit(cpu)?))
            .map(Self)
            .ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn current() -> io::Result<Self> {
        let (mut own, mut all) = (0, 0);
        // SAFETY: the pseudo handle of this process is always valid, and both out-parameters are live.
        let answer =
            unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut all) };
        crate::windows::done(answer).map(|()| Self(own))
    }

    fn has(&self, cpu: u32) -> bool {
        self.0.checked_shr(cpu).is_some_and(|set| set & 1 == 1)
    }

    fn apply(&self) -> io::Result<()> {
        // SAFETY: the pseudo handle of this process is always valid; Windows refuses a set that is not allowed.
        crate::windows::done(unsafe { SetProcessAffinityMask(GetCurrentProcess(), self.0) })
    }
}

#[cfg(windows)]
#[link(name = "kernel32")]
unsafe extern "system" {
    safe fn GetCurrentProcess() -> std::os::windows::io::RawHandle;
    fn GetProcessAffinityMask(
        process: std::os::windows::io::RawHandle,
        own: *mut usize,
        all: *mut usize,
    ) -> i32;
    fn SetProcessAffinityMask(process: std::os::windows::io::RawHandle, set: usize) -> i32;
}

/// Placeholder on other systems, where no process is pinned.
#[cfg(not(any(target_os = "linux", windows)))]
#[derive(Debug)]
struct Set;

#[cfg(not(any(target_os = "linux", windows)))]
impl Set {
    fn new(_cpus: &[usize]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn current() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[allow(clippy::unused_self, reason = "the same signature everywhere")]
    fn has(&self, _cpu: u32) -> bool {
        false
    }

    #[allow(clippy::unused_self, reason = "the same signature everywhere")]
    fn apply(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn cpu_binding_can_be_loosened_and_is_undone_on_drop() {
        let now = || format!("{:?}", Set::current().unwrap());
        let before = now();
        let bound = Binding::here().unwrap();
        let one = format!("[{}]", bound.cpu());
        assert_eq!(now(), one);
        assert_eq!(bound.loosened(now).unwrap(), before);
        assert_eq!(now(), one);
        // Once pinned to one CPU, a process may use no other.
        let other = bound.cpu() ^ 1;
        assert!(Binding::bind(other).is_err());
        drop(bound);
        assert_eq!(now(), before);
        assert!(Binding::bind(1 << 20).is_err());
    }
}
