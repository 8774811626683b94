//! `threads`: starts threads, hands control from one to another, and yields.
//!
//! Inside the timed regions: `thread.create.time`, starting a thread that returns immediately and waiting for it;
//! `thread.switch.time`, half of a round trip between two threads bound to one processor, each of which wakes the
//! other and sleeps, so a futex call and a context switch; `thread.yield.time`, `sched_yield` with no other thread
//! waiting. Outside: starting the partner, binding. On Windows the standard library's parking, which is
//! `WaitOnAddress` and its wake-up, and `SwitchToThread`.
//! Known bias: the C library maps and unmaps the stack of a thread each time; one processor means no wake-up across
//! cores. If binding is refused, the switch is measured unbound, and a note says so.
//! `sched_yield` yields only to threads that wait in the same cgroup: on a busy machine the host's arm has others
//! there, and an arm with a separate group has none and looks faster.
//! Correspondence: "Single Yield Method Invocation" of a published comparison of containers (2019) is a task that
//! yields to a pool; below a runtime that is yielding to the scheduler.
//! Source: lmbench's `lat_ctx`, with threads and futexes in place of processes and pipes.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "threads": "starting and ending a thread, switching between two on one processor, and giving way";
    revision 1, cut KERNEL
}

super::needs!(linux or windows, "futexes");

#[cfg(target_os = "linux")]
use linux::{Partner, give_way};
#[cfg(windows)]
use windows::{Partner, give_way};

/// States of `turn`: which thread runs, or that the partner must end.
#[cfg(any(target_os = "linux", windows))]
const OURS: u32 = 0;
#[cfg(any(target_os = "linux", windows))]
const THEIRS: u32 = 1;
#[cfg(any(target_os = "linux", windows))]
const OVER: u32 = 2;

#[cfg(any(target_os = "linux", windows))]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    create(meter)?;
    let partner = Partner::start()?;
    meter.loops("thread.switch.time", 0.4, |times| {
        // Two switches per round trip.
        for _ in 0..times.div_ceil(2) {
            partner.round_trip();
        }
        Ok(())
    })?;
    if !partner.is_bound() {
        meter.note("the threads could not be bound to one processor");
    }
    drop(partner);
    give_way(meter)
}

/// Measures starting threads that return immediately, one after the other.
#[cfg(any(target_os = "linux", windows))]
fn create(meter: &mut Meter) -> Result<(), ProbeError> {
    meter.loops("thread.create.time", 0.4, |times| {
        for _ in 0..times {
            let thread = std::thread::Builder::new()
                .spawn(|| {})
                .map_err(|error| ProbeError::system("start a thread", &error))?;
            // A thread that does nothing cannot panic.
            let _ = thread.join();
        }
        Ok(())
    })
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::RawHandle;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::{JoinHandle, Thread};

    use super::{OURS, OVER, THEIRS};
    use crate::meter::{Meter, ProbeError};

    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcessorNumber() -> u32;
        safe fn GetCurrentThread() -> RawHandle;
        safe fn SwitchToThread() -> i32;
        fn SetThreadAffinityMask(thread: RawHandle, set: usize) -> usize;
    }

    pub(super) fn give_way(meter: &mut Meter) -> Result<(), ProbeError> {
        meter.loops("thread.yield.time", 0.2, |times| {
            for _ in 0..times {
                // Returns whether another thread ran.
                std::hint::black_box(SwitchToThread());
            }
            Ok(())
        })
    }

    /// Another thread that hands control back as soon as it gets it.
    pub(super) struct Partner {
        turn: Arc<AtomicU32>,
        thread: Option<JoinHandle<()>>,
        /// The previous processors of the calling thread, if it was bound.
        before: Option<usize>,
    }

    /// Binds the calling thread to these processors; returns the previous ones if that was granted.
    fn bind(set: usize) -> Option<usize> {
        // SAFETY: the pseudo handle of the calling thread is always valid; a set that is not allowed is refused.
        let before = unsafe { SetThreadAffinityMask(GetCurrentThread(), set) };
        (before != 0).then_some(before)
    }

    impl Partner {
        pub(super) fn start() -> Result<Self, ProbeError> {
            let one = 1usize.checked_shl(GetCurrentProcessorNumber()).unwrap_or(0);
            let before = bind(one);
            let turn = Arc::new(AtomicU32::new(OURS));
            let (seen, owner) = (turn.clone(), std::thread::current());
            let is_bound = before.is_some();
            let thread = std::thread::Builder::new()
                .spawn(move || {
                    if is_bound {
                        bind(one);
                    }
                    while wait_while(&seen, OURS) != OVER {
                        pass(&seen, OURS, &owner);
                    }
                })
                .map_err(|error| ProbeError::system("start a thread", &error))?;
            Ok(Self {
                turn,
                thread: Some(thread),
                before,
            })
        }

        pub(super) fn is_bound(&self) -> bool {
            self.before.is_some()
        }

        fn pass(&self, to: u32) {
            if let Some(thread) = &self.thread {
                pass(&self.turn, to, thread.thread());
            }
        }

        pub(super) fn round_trip(&self) {
            self.pass(THEIRS);
            wait_while(&self.turn, THEIRS);
        }
    }

    impl Drop for Partner {
        fn drop(&mut self) {
            self.pass(OVER);
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
            // Failure would leave the worker bound, but it ends soon.
            self.before.map(bind);
        }
    }

    /// Passes the turn and wakes the thread that waits for it.
    fn pass(turn: &AtomicU32, to: u32, whom: &Thread) {
        turn.store(to, Ordering::SeqCst);
        whom.unpark();
    }

    /// Sleeps while the turn is `value` and returns its new value. An earlier wake-up is not lost.
    fn wait_while(turn: &AtomicU32, value: u32) -> u32 {
        loop {
            let now = turn.load(Ordering::SeqCst);
            if now != value {
                return now;
            }
            std::thread::park();
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::JoinHandle;

    use super::{OURS, OVER, THEIRS};
    use crate::meter::{Meter, ProbeError};

    pub(super) fn give_way(meter: &mut Meter) -> Result<(), ProbeError> {
        meter.loops("thread.yield.time", 0.2, |times| {
            for _ in 0..times {
                // SAFETY: sched_yield has no precondition.
                if unsafe { libc::sched_yield() } != 0 {
                    return Err(ProbeError::last("sched_yield"));
                }
            }
            Ok(())
        })
    }

    /// Another thread that hands control back as soon as it gets it.
    pub(super) struct Partner {
        turn: Arc<AtomicU32>,
        thread: Option<JoinHandle<()>>,
        before: libc::cpu_set_t,
        is_bound: bool,
    }

    impl Partner {
        pub(super) fn start() -> Result<Self, ProbeError> {
            // SAFETY: a set of processors is an array of bits, and all zeroes are the empty set.
            let mut before = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
            // SAFETY: thread 0 is the calling one, and `before` has the given size.
            let is_known = unsafe {
                libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut before)
            } == 0;
            let is_bound = is_known && bind_here();
            let turn = Arc::new(AtomicU32::new(OURS));
            let seen = turn.clone();
            // The thread inherits the binding.
            let thread = std::thread::Builder::new()
                .spawn(move || {
                    loop {
                        match wait_while(&seen, OURS) {
                            OVER => return,
                            _ => pass(&seen, OURS),
                        }
                    }
                })
                .map_err(|error| ProbeError::system("start a thread", &error))?;
            Ok(Self {
                turn,
                thread: Some(thread),
                before,
                is_bound,
            })
        }

        pub(super) fn is_bound(&self) -> bool {
            self.is_bound
        }

        pub(super) fn round_trip(&self) {
            pass(&self.turn, THEIRS);
            wait_while(&self.turn, THEIRS);
        }
    }

    impl Drop for Partner {
        fn drop(&mut self) {
            pass(&self.turn, OVER);
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
            if self.is_bound {
                // SAFETY: thread 0 is the calling one, and the set is its previous one. Failure would leave the
                // worker bound, but it ends soon.
                unsafe {
                    libc::sched_setaffinity(
                        0,
                        size_of::<libc::cpu_set_t>(),
                        &raw const self.before,
                    );
                }
            }
        }
    }

    /// Binds the calling thread to the processor on which it runs; returns whether that was granted.
    fn bind_here() -> bool {
        // SAFETY: sched_getcpu has no precondition.
        let processor = unsafe { libc::sched_getcpu() };
        if processor < 0 {
            return false;
        }
        // SAFETY: a set of processors is an array of bits, and all zeroes are the empty set.
        let mut one = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
        // SAFETY: the number comes from the kernel; CPU_SET checks it against the set's size.
        unsafe { libc::CPU_SET(processor.cast_unsigned() as usize, &mut one) };
        // SAFETY: thread 0 is the calling one, and `one` is a set of the given size.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one) == 0 }
    }

    /// Passes the turn and wakes the thread that waits for it.
    fn pass(turn: &AtomicU32, to: u32) {
        turn.store(to, Ordering::SeqCst);
        // SAFETY: the address is that of a live, aligned 32-bit word; the call wakes at most one waiter.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                turn.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    /// Sleeps while the turn is `value` and returns its new value.
    fn wait_while(turn: &AtomicU32, value: u32) -> u32 {
        loop {
            let now = turn.load(Ordering::SeqCst);
            if now != value {
                return now;
            }
            // SAFETY: the address is that of a live, aligned 32-bit word; a null pointer means no timeout. The call
            // returns immediately if the word has changed, so a wake-up cannot be missed.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    turn.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    value,
                    std::ptr::null::<libc::timespec>(),
                );
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn thread_round_trip_returns_turn_and_partner_exits() {
            let partner = Partner::start().unwrap();
            for _ in 0..100 {
                partner.round_trip();
                assert_eq!(partner.turn.load(Ordering::SeqCst), OURS);
            }
            drop(partner);
        }
    }
}
