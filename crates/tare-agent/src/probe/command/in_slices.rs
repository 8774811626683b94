//! Runs a program in slices: it runs for some milliseconds, is stopped with all its processes, and continues at its
//! next turn.
//!
//! The program leads a process group, which one signal stops (SIGSTOP can be neither caught nor ignored) and another
//! continues; processes that left the group are found among the worker's descendants and stopped one by one. The
//! counted time is from its start or continuation until its last thread is still, on the monotonic clock. A thread
//! that waits inside the kernel, such as a parent in vfork(2), is still: it stops before it computes again. The
//! cgroup freezer would do without signals, but may be available in some arms only, and then these would be stopped
//! differently from the rest.
//! When the worker dies, the kernel kills the program, and the agent all other leftovers, stopped or not.
//! Limits: some things continue while the program is stopped, such as a sleep or a device's response. The host
//! decides from a trace of the whole program whether it may be sliced.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::meter::{Meter, ProbeError};
use crate::proc;

use super::left;

/// How long a program that is not interleaved is stopped, in multiples of its last slice: one that paces itself by a
/// clock then runs for a third of its time.
const PAUSE: u32 = 2;
/// How long a program may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for the kernel's notification about the first process before checking its state.
const WORD_LIMIT: Duration = Duration::from_millis(1);
/// Polling interval for processes about which the kernel does not notify this one.
const LOOK_AGAIN: Duration = Duration::from_micros(50);
/// More processes than this are not followed.
const PROCESSES_LIMIT: usize = 4_096;

/// The result of a program that ran in slices.
pub(super) struct Ran {
    /// How long it ran.
    pub(super) wall: Duration,
    /// How often it was stopped.
    pub(super) stops: u64,
}

/// Prepares a command so that its program can be stopped: to be called before it is started, in the thread that waits
/// for it.
pub(super) fn prepare(command: &mut Command) -> Result<(), ProbeError> {
    let block = child_signal();
    // SAFETY: `block` is a live set; a null pointer for the old one is allowed.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const block, std::ptr::null_mut()) }
        != 0
    {
        return Err(ProbeError::system(
            "block SIGCHLD",
            &io::Error::last_os_error(),
        ));
    }
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe system calls are made; the set was made before.
    unsafe {
        command.pre_exec(move || {
            let opened =
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const block, std::ptr::null_mut());
            if opened == 0 && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            }
        });
    }
    Ok(())
}

/// Runs the program, which was started at `begin`, in slices until its first process has exited, without reaping
/// that.
pub(super) fn run(
    child: &Child,
    slice: Duration,
    begin: Instant,
    meter: &mut Meter,
) -> Result<Ran, ProbeError> {
    let mut program = Program {
        first: child.id().cast_signed(),
        strays: Vec::new(),
        outside: Vec::new(),
    };
    let mut ran = Ran {
        wall: Duration::ZERO,
        stops: 0,
    };
    let mut from = begin;
    loop {
        if program.ends_before(from + slice)? {
            ran.wall += from.elapsed();
            return Ok(ran);
        }
        let Some(still_at) = program.stop()? else {
            ran.wall += from.elapsed();
            return Ok(ran);
        };
        let length = still_at.duration_since(from);
        ran.wall += length;
        ran.stops += 1;
        if !meter.next_turn()? {
            std::thread::sleep(length * PAUSE);
        }
        from = Instant::now();
        program.go_on();
    }
}

/// State of the first process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
    Ended,
}

/// A program that was started and is not reaped yet, so that its pid and process group id cannot be reused.
struct Program {
    first: libc::pid_t,
    /// Processes outside the group that were stopped individually.
    strays: Vec<libc::pid_t>,
    /// Processes that were outside the group at the previous stop.
    outside: Vec<libc::pid_t>,
}

impl Program {
    fn state(&self) -> Result<State, ProbeError> {
        // SAFETY: `siginfo_t` is plain data for which all zeroes is a valid value.
        let mut shown: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `told` is live and exclusively borrowed, and the process is a child of this one.
        let waited = unsafe {
            libc::waitid(
                libc::P_PID,
                self.first.cast_unsigned(),
                &raw mut shown,
                options,
            )
        };
        if waited != 0 {
            return Err(ProbeError::system("waitid", &io::Error::last_os_error()));
        }
        // SAFETY: after a successful `waitid` the field is set, to 0 if there is no state change.
        Ok(match (unsafe { shown.si_pid() }, shown.si_code) {
            (0, _) => State::Running,
            (_, libc::CLD_STOPPED) => State::Stopped,
            _ => State::Ended,
        })
    }

    /// Waits until the first process has exited or `then` has come; returns whether it has exited.
    fn ends_before(&self, then: Instant) -> Result<bool, ProbeError> {
        loop {
            if self.state()? == State::Ended {
                return Ok(true);
            }
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            wait_for_news(left);
        }
    }

    /// Stops every process; returns when the last thread was still, or `None` if the first process has exited before
    /// that.
    fn stop(&mut self) -> Result<Option<Instant>, ProbeError> {
        let begin = Instant::now();
        let in_time = |what: &str| {
            if begin.elapsed() < STOP_LIMIT {
                return Ok(());
            }
            Err(ProbeError::Failed(tare_model::Failure::Probe(format!(
                "{what} did not stop within {} s",
                STOP_LIMIT.as_secs()
            ))))
        };
        signal(-self.first, libc::SIGSTOP);
        loop {
            match self.state()? {
                State::Ended => return Ok(None),
                State::Stopped => break,
                State::Running => wait_for_news(WORD_LIMIT),
            }
            if self.state()? == State::Running && is_still(self.first) {
                break;
            }
            in_time("the program")?;
        }
        let mut still_at = Instant::now();
        loop {
            let others = self.others();
            let (still, moving): (Vec<_>, Vec<_>) =
                others.into_iter().partition(|it| is_still(*it));
            if moving.is_empty() {
                self.note_outside(&still);
                return Ok(Some(still_at));
            }
            for process in moving {
                // One that was signalled before stops as soon as it leaves the kernel.
                if self.is_outside(process) && !self.strays.contains(&process) {
                    signal(process, libc::SIGSTOP);
                    self.strays.push(process);
                }
            }
            in_time("a process of the program")?;
            std::thread::sleep(LOOK_AGAIN);
            still_at = Instant::now();
        }
    }

    /// Signals the processes outside the group that are still without having been signalled. One that was inside at
    /// the previous stop may have left between the group's SIGSTOP and its effect: it is stopped, and the group's
    /// SIGCONT does not reach it. One that waits for a disk would run as soon as that responds. One that was outside
    /// before and is stopped was stopped by the program itself.
    fn note_outside(&mut self, still: &[libc::pid_t]) {
        let outside = still.iter().copied().filter(|it| self.is_outside(*it));
        let outside: Vec<libc::pid_t> = outside.collect();
        for process in &outside {
            let is_by_itself = self.outside.contains(process) && is_stopped(*process);
            if !(is_by_itself || self.strays.contains(process)) {
                signal(*process, libc::SIGSTOP);
                self.strays.push(*process);
            }
        }
        self.outside = outside;
    }

    fn is_outside(&self, process: libc::pid_t) -> bool {
        // SAFETY: numbers only.
        unsafe { libc::getpgid(process) != self.first }
    }

    /// Continues all processes.
    fn go_on(&mut self) {
        signal(-self.first, libc::SIGCONT);
        for process in self.strays.drain(..) {
            signal(process, libc::SIGCONT);
        }
    }

    /// Returns the program's processes except the first: all descendants of it, or of the worker that adopts orphans.
    fn others(&self) -> Vec<libc::pid_t> {
        let mut waiting = left::children();
        // If this process has other children too, only those below the program count.
        if !left::is_worker() {
            waiting = vec![self.first];
        }
        let mut found = Vec::new();
        while let Some(process) = waiting.pop() {
            if found.len() > PROCESSES_LIMIT {
                break;
            }
            found.push(process);
            waiting.extend(proc::children_of(&process.to_string()));
        }
        found.retain(|process| *process != self.first);
        found
    }
}

/// Returns whether all its threads are stopped, dead or in an uninterruptible wait; true for a process that is gone.
fn is_still(process: libc::pid_t) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten().all(|thread| {
        let state = proc::state_of(&thread.path());
        state.is_none_or(|(state, _)| matches!(state, 'T' | 't' | 'Z' | 'X' | 'D'))
    })
}

fn is_stopped(process: libc::pid_t) -> bool {
    let state = proc::state_of(Path::new(&format!("/proc/{process}")));
    state.is_some_and(|(state, _)| state == 'T')
}

/// Sends a signal to a process, or to a group by its negative id; errors, as for one that is gone, are ignored.
fn signal(process: libc::pid_t, signal: libc::c_int) {
    // SAFETY: numbers only.
    unsafe { libc::kill(process, signal) };
}

/// Returns the signal set that contains only SIGCHLD.
fn child_signal() -> libc::sigset_t {
    // SAFETY: `sigset_t` is plain data for which all zeroes is a valid value; `sigemptyset` sets it anyway.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is live and exclusively borrowed, and the number is a valid signal.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
    }
    set
}

/// Sleeps until the kernel reports a change of a child, at most for `limit`.
fn wait_for_news(limit: Duration) {
    let set = child_signal();
    let limit = libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().cast_signed().into(),
    };
    // SAFETY: both pointers are to live values, and a null information pointer is allowed.
    unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const limit) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interval between two readings of the processes' CPU time.
    const LOOK_AFTER: Duration = Duration::from_millis(3);

    /// A program that is killed at the end of the test, even if that fails.
    struct Started {
        child: Child,
        program: Program,
    }

    impl Started {
        fn new(child: Child) -> Self {
            let program = Program {
                first: child.id().cast_signed(),
                strays: Vec::new(),
                outside: Vec::new(),
            };
            Self { child, program }
        }
    }

    impl Drop for Started {
        fn drop(&mut self) {
            for process in self.program.others() {
                signal(process, libc::SIGKILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Returns the CPU time of each of these processes.
    fn on_processor(processes: &[libc::pid_t]) -> Vec<String> {
        let times = processes.iter().map(|process| {
            let first = proc::scheduled(&process.to_string()).next();
            first.map_or_else(String::new, |(_, ns)| ns.to_string())
        });
        times.collect()
    }

    /// Polls until the condition holds; panics if that takes longer than twice the time that a program may take to
    /// stop.
    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < 2 * STOP_LIMIT, "{what}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// A process that leaves the group while the signal is being delivered stops outside it.
    #[test]
    fn process_stopped_while_leaving_group_is_resumed() {
        let mut command = Command::new("sh");
        command.args(["-c", "setsid perl -e '1 while 1' & perl -e '1 while 1'"]);
        prepare(&mut command).unwrap();
        let child = command.spawn().unwrap();
        let mut started = Started::new(child);
        let program = &mut started.program;
        let has_left = |program: &Program| {
            let others = program.others();
            others.into_iter().find(|it| program.is_outside(*it))
        };
        until("one outside", || has_left(program).is_some());
        let left = has_left(program).unwrap();
        // As if the group's signal had reached it inside.
        signal(left, libc::SIGSTOP);
        until("it does not stop", || is_still(left));
        assert!(program.stop().unwrap().is_some());
        let before = on_processor(&[left]);
        program.go_on();
        until("it does not go on", || on_processor(&[left]) != before);
    }

    #[test]
    fn program_stops_and_resumes_with_all_children() {
        let script = "perl -e '1 while 1' & setsid perl -e '1 while 1' & perl -e '1 while 1'";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        prepare(&mut command).unwrap();
        let child = command.spawn().unwrap();
        let mut started = Started::new(child);
        let program = &mut started.program;
        until("three children", || program.others().len() >= 3);
        for _ in 0..20 {
            assert!(program.stop().unwrap().is_some());
            let others = program.others();
            // A process that waited inside the kernel stops when it leaves it.
            until("they do not come to rest", || {
                others.iter().all(|process| is_still(*process))
            });
            // A thread reports that it is stopped just before it leaves its CPU.
            let mut before = on_processor(&others);
            until("they go on although stopped", || {
                std::thread::sleep(LOOK_AFTER);
                let now = on_processor(&others);
                let was = std::mem::replace(&mut before, now);
                was == before
            });
            program.go_on();
            until("they do not go on", || {
                let now = on_processor(&others);
                now.iter().zip(&before).all(|(now, before)| now != before)
            });
        }
        // Including the one that left the group, which has to be stopped to be found.
        assert!(program.stop().unwrap().is_some());
        assert_eq!(program.strays.len(), 1);
    }
}
