//! Finds the CPU that this thread is on, and keeps it there for a while.
//!
//! A small request to another process on this machine is answered fastest on the same CPU: the answer then takes a
//! context switch, not the wake-up of an idle CPU, which takes a virtual machine a hundred microseconds.
//! Limits: without such CPU affinity, nothing is bound and no CPU is reported.

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The CPU that this thread is on now.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn current() -> Option<u32> {
    u32::try_from(sched_getcpu()).ok()
}

/// The CPU that this thread is on now.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn current() -> Option<u32> {
    None
}

/// A set of this CPU alone; `None` if the kernel's sets have no such CPU.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn only(cpu: u32) -> Option<CpuSet> {
    let cpu = usize::try_from(cpu).ok();
    let cpu = cpu.filter(|cpu| *cpu < CpuSet::MAX_CPU)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    Some(only)
}

/// Keeps only this thread on its current CPU until this is dropped. Threads and programs that it starts meanwhile
/// would stay there.
#[derive(Debug)]
pub struct Stay {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    before: CpuSet,
    /// Affinity belongs to a thread, so this must not move to another.
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Stay {
    /// Binds this thread to its current CPU, where threads can be bound.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn here() -> Option<Self> {
        Self::bind(current()?)
    }

    /// Moves this thread to a CPU and binds it there.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn bind(cpu: u32) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        sched_setaffinity(None, &only(cpu)?).ok()?;
        Some(Self {
            before,
            _of_this_thread: std::marker::PhantomData,
        })
    }

    /// Binds this thread to its current CPU, where threads can be bound.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn here() -> Option<Self> {
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Drop for Stay {
    fn drop(&mut self) {
        // It was allowed a moment ago; if a CPU has gone meanwhile, the kernel uses the remaining ones.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn thread_is_pinned_to_one_cpu_then_released() {
        let now = || sched_getaffinity(None).unwrap();
        let before = now();
        let stay = Stay::here().unwrap();
        assert_eq!(now().count(), 1);
        assert!(now().is_set(current().unwrap() as usize));
        drop(stay);
        assert_eq!(now(), before);
    }
}
