//! Which processors this process may use, and to be bound to one of them.
//!
//! Workers that take turns share one processor, so that who runs where is no difference between arms. What they
//! prepare on their own (memory, files) may use the others meanwhile.
//! What it cannot see: threads and children that were made before; they keep what they had then (on Windows threads
//! follow their process). On Windows processors beyond the first 64.

use std::io;

/// Bound to one processor, until this is dropped.
#[derive(Debug)]
pub struct Binding {
    cpu: u32,
    before: Set,
}

impl Binding {
    /// Binds this process, and what it starts from now on, to a processor.
    ///
    /// # Errors
    /// The processor is not there, or not for this process.
    pub fn to(cpu: u32) -> io::Result<Self> {
        let before = Set::current()?;
        // The kernel would give one that nobody gave to this process.
        if !before.has(cpu) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Set::of(&[cpu as usize])?.apply()?;
        Ok(Self { cpu, before })
    }

    /// Binds it to the processor that it is on.
    ///
    /// # Errors
    /// The system does not say which one that is.
    pub fn here() -> io::Result<Self> {
        Self::to(current_cpu()?)
    }

    /// The processor.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Does something on any processor that was allowed before.
    ///
    /// # Errors
    /// The processor has gone meanwhile: what comes would run on another than the other arms' workers.
    pub fn loosened<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.before.apply()?;
        let done = work();
        Set::of(&[self.cpu as usize])?.apply()?;
        Ok(done)
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        // A failure leaves the worker bound, and it ends soon.
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

/// Restricts this process and its children to these processors.
pub(crate) fn restrict(cpus: &[usize]) -> io::Result<()> {
    Set::of(cpus)?.apply()
}

/// The processors that this process may use.
#[cfg(windows)]
pub(crate) fn allowed() -> io::Result<Vec<u32>> {
    let Set(set) = Set::current()?;
    Ok((0..usize::BITS).filter(|cpu| set >> cpu & 1 == 1).collect())
}

/// A set of processors.
#[cfg(target_os = "linux")]
struct Set(libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Set {
    fn none() -> Self {
        // SAFETY: `cpu_set_t` is plain data for which all zeroes, the empty set, is a valid value.
        Self(unsafe { std::mem::zeroed() })
    }

    fn of(cpus: &[usize]) -> io::Result<Self> {
        let mut set = Self::none();
        for cpu in cpus {
            if *cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            // SAFETY: the number was checked to lie within the set.
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
        // SAFETY: the number was checked to lie within the set.
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
        // SAFETY: every number of the range lies within the set.
        let set = all.filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &self.0) });
        out.debug_list().entries(set).finish()
    }
}

/// A set of processors, one bit each: those of this process's group, of which Windows makes one for every 64.
#[cfg(windows)]
#[derive(Debug)]
struct Set(usize);

#[cfg(windows)]
impl Set {
    fn of(cpus: &[usize]) -> io::Result<Self> {
        let bit = |cpu: &usize| 1usize.checked_shl(u32::try_from(*cpu).ok()?);
        cpus.iter()
            .try_fold(0, |set, cpu| Some(set | bit(cpu)?))
            .map(Self)
            .ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn current() -> io::Result<Self> {
        let (mut own, mut all) = (0, 0);
        // SAFETY: the pseudo handle of this process is always valid, and both places are live.
        let answer =
            unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut all) };
        crate::windows::done(answer).map(|()| Self(own))
    }

    fn has(&self, cpu: u32) -> bool {
        self.0.checked_shr(cpu).is_some_and(|set| set & 1 == 1)
    }

    fn apply(&self) -> io::Result<()> {
        // SAFETY: the pseudo handle of this process is always valid; a set that it may not have is refused.
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

/// Elsewhere no process is bound.
#[cfg(not(any(target_os = "linux", windows)))]
#[derive(Debug)]
struct Set;

#[cfg(not(any(target_os = "linux", windows)))]
impl Set {
    fn of(_cpus: &[usize]) -> io::Result<Self> {
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
    fn what_is_bound_to_one_processor_may_use_the_others_for_a_while_and_afterwards() {
        let now = || format!("{:?}", Set::current().unwrap());
        let before = now();
        let bound = Binding::here().unwrap();
        let one = format!("[{}]", bound.cpu());
        assert_eq!(now(), one);
        assert_eq!(bound.loosened(now).unwrap(), before);
        assert_eq!(now(), one);
        // Bound to one, it has no other to be bound to.
        let other = bound.cpu() ^ 1;
        assert!(Binding::to(other).is_err());
        drop(bound);
        assert_eq!(now(), before);
        assert!(Binding::to(1 << 20).is_err());
    }
}
