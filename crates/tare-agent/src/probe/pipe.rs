//! `pipe`: sends a byte to another process and back, over two pipes.
//!
//! Inside the timed region: `k` round trips; in each the worker writes one byte and sleeps until its echo arrives:
//! four system calls and two context switches between two processes. Both are bound to the processor on which the
//! worker happens to run: otherwise the value also includes where the scheduler wakes the partner, which changes from
//! trial to trial and does not come from the environment. With `placement = "free"` nothing is bound.
//! Outside: creating the pipes and the partner (a fork without exec), ending it.
//! Known bias: one processor means no wake-up across cores, the part that is slowest in a guest.
//! Source: lmbench's `lat_pipe`.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "pipe": "one byte to another process and back over two pipes, on one processor";
    revision 1, cut KERNEL
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    linux::run(meter, params)
}

super::needs!(linux, "binding two processes to one processor");

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    use tare_model::{Failure, Params};

    use crate::binding::Binding;
    use crate::meter::{Meter, ProbeError};

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let bound = match params.text("placement") {
            None | Some("one") => {
                let bound = Binding::here();
                Some(bound.map_err(|error| ProbeError::system("bind to one processor", &error))?)
            }
            Some("free") => None,
            Some(other) => {
                return Err(super::super::bad_argument("placement", other, "one, free"));
            }
        };
        let partner = Partner::start()?;
        let measured = meter.loops("ipc.pipe.round-trip.time", 1.0, |trips| {
            for _ in 0..trips {
                partner.round_trip()?;
            }
            Ok(())
        });
        drop(partner);
        drop(bound);
        measured
    }

    /// The process that echoes every byte.
    struct Partner {
        process: libc::pid_t,
        to: OwnedFd,
        from: OwnedFd,
    }

    impl Partner {
        fn start() -> Result<Self, ProbeError> {
            let (there_read, there_write) = pipe()?;
            let (back_read, back_write) = pipe()?;
            // SAFETY: the child calls only functions that are safe after a fork (prctl, close, read, write, _exit)
            // and allocates nothing, so locks held by other threads at the fork are harmless.
            let process = unsafe { libc::fork() };
            match process {
                -1 => Err(ProbeError::last("fork")),
                0 => echo(
                    there_read.as_raw_fd(),
                    back_write.as_raw_fd(),
                    [there_write.as_raw_fd(), back_read.as_raw_fd()],
                ),
                _ => Ok(Self {
                    process,
                    to: there_write,
                    from: back_read,
                }),
            }
        }

        fn round_trip(&self) -> Result<(), ProbeError> {
            let mut byte = 1u8;
            // SAFETY: both descriptors are open and the buffer is one byte long.
            unsafe {
                if libc::write(self.to.as_raw_fd(), (&raw const byte).cast(), 1) != 1 {
                    return Err(ProbeError::last("write"));
                }
                match libc::read(self.from.as_raw_fd(), (&raw mut byte).cast(), 1) {
                    1 => Ok(()),
                    0 => Err(ProbeError::Failed(Failure::Probe(
                        "read: the partner has gone".to_owned(),
                    ))),
                    _ => Err(ProbeError::last("read")),
                }
            }
        }
    }

    impl Drop for Partner {
        fn drop(&mut self) {
            // SAFETY: `process` is our child and not yet reaped, so the pid is still valid. It is killed instead of
            // waiting for it to see the end of the pipe, because another fork of this process may hold a copy of the
            // pipe.
            unsafe {
                libc::kill(self.process, libc::SIGKILL);
                while libc::waitpid(self.process, std::ptr::null_mut(), 0) == -1
                    && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
                {
                }
            }
        }
    }

    /// Echoes every byte until the pipe ends; runs in the partner.
    fn echo(from: RawFd, to: RawFd, foreign: [RawFd; 2]) -> ! {
        let mut byte = 0u8;
        // SAFETY: only calls that are safe after a fork, on descriptors that the fork has copied; the buffer is one
        // byte long. The signal at the parent's death is a fallback if the pipe does not end.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            for descriptor in foreign {
                libc::close(descriptor);
            }
            while libc::read(from, (&raw mut byte).cast(), 1) == 1
                && libc::write(to, (&raw const byte).cast(), 1) == 1
            {}
            libc::_exit(0)
        }
    }

    /// Creates a pipe and returns its read and its write end.
    fn pipe() -> Result<(OwnedFd, OwnedFd), ProbeError> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(ProbeError::last("pipe2"));
        }
        // SAFETY: both were just opened and are owned nowhere else.
        Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_partner_ends_with_its_owner() {
            let partner = Partner::start().unwrap();
            let process = partner.process;
            partner.round_trip().unwrap();
            drop(partner);
            // SAFETY: signal 0 only checks whether the process exists.
            let asked = unsafe { libc::kill(process, 0) };
            assert_eq!(asked, -1, "process {process} is still there");
        }

        #[test]
        fn a_partner_that_dies_is_reported() {
            let partner = Partner::start().unwrap();
            // SAFETY: the process is our child and not yet reaped.
            unsafe { libc::kill(partner.process, libc::SIGKILL) };
            // The signal may arrive after the first byte; eventually the partner is gone.
            let error = (0..1_000).find_map(|_| partner.round_trip().err());
            assert!(matches!(error, Some(ProbeError::Failed(_))), "{error:?}");
        }
    }
}
