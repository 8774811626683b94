//! The processor that this thread is on, and to stay there for a while.
//!
//! Whoever asks another process on this machine something small and waits for the answer does best on one processor
//! with it: the answer then costs a change of tasks, and not the wake-up of a processor that is idle, which takes a
//! virtual machine a hundred microseconds.
//! What it cannot do: anything where threads are not bound this way; there nothing stays and no processor is named.

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processor that this thread is on now.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn current() -> Option<u32> {
    u32::try_from(sched_getcpu()).ok()
}

/// The processor that this thread is on now.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn current() -> Option<u32> {
    None
}

/// Keeps this thread, and no other, on the processor that it is on, until this is dropped. Threads and programs that it
/// starts meanwhile would stay there.
#[derive(Debug)]
pub struct Stay {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    before: CpuSet,
    /// A thread's own affair.
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Stay {
    /// Stays, where threads can be told to.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn here() -> Option<Self> {
        Self::on(u32::try_from(sched_getcpu()).ok()?)
    }

    /// Goes to a processor and stays there.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn on(cpu: u32) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let cpu = usize::try_from(cpu)
            .ok()
            .filter(|cpu| *cpu < CpuSet::MAX_CPU)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only).ok()?;
        Some(Self {
            before,
            _of_this_thread: std::marker::PhantomData,
        })
    }

    /// Stays, where threads can be told to.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn here() -> Option<Self> {
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Drop for Stay {
    fn drop(&mut self) {
        // It was allowed a moment ago; where a processor has gone meanwhile, the kernel takes those that are left.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_one_processor_and_may_use_the_others_again() {
        let now = || sched_getaffinity(None).unwrap();
        let before = now();
        let stay = Stay::here().unwrap();
        assert_eq!(now().count(), 1);
        assert!(now().is_set(current().unwrap() as usize));
        drop(stay);
        assert_eq!(now(), before);
    }
}
