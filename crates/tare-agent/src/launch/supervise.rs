//! Supervises the running container: waits for its end or for that of the launcher's parent, and relays the streams.
//!
//! The launcher asks the kernel for SIGUSR1 when its parent dies. That signal also comes when only the parent's
//! thread that started it ends, so it counts only if the parent process has really changed. SIGTERM and SIGHUP always
//! end the container. Ctrl-C is left to the host process, which shares the terminal and shuts down in order.
//! The relay copies with blocking writes: a reader that stops reading stalls that direction and with it the other;
//! enough for alternating requests and replies.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::sys;

/// One direction of the relay.
#[derive(Debug)]
struct Lane {
    from: File,
    to: Option<File>,
}

/// Copies the standard streams to and from the container.
#[derive(Debug, Default)]
pub(super) struct Relay {
    lanes: Vec<Lane>,
}

fn standard(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: the descriptor is one of the standard streams, open since the start of this process; the clone
    // made here is owned, and the original is forgotten instead of being closed.
    let original = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    original.try_clone()
}

impl Relay {
    /// Makes the relay and the three ends that become the container's standard streams.
    pub(super) fn new() -> io::Result<(Self, [OwnedFd; 3])> {
        let (input_read, input_write) = sys::pipe()?;
        let (output_read, output_write) = sys::pipe()?;
        let (error_read, error_write) = sys::pipe()?;
        let lane = |from: File, to: File| Lane { from, to: Some(to) };
        let lanes = vec![
            lane(standard(0)?, File::from(input_write)),
            lane(File::from(output_read), standard(1)?),
            lane(File::from(error_read), standard(2)?),
        ];
        Ok((Self { lanes }, [input_read, output_write, error_write]))
    }

    /// Copies the available bytes of every ready lane; returns whether there were any.
    fn copy_ready(&mut self, ready: impl Fn(RawFd) -> bool) -> bool {
        let mut has_copied = false;
        // Half of a pipe's default capacity.
        let mut buffer = vec![0u8; 32 << 10];
        for lane in &mut self.lanes {
            if lane.to.is_none() || !ready(lane.from.as_raw_fd()) {
                continue;
            }
            let copied = match lane.from.read(&mut buffer) {
                Ok(0) => false,
                Ok(count) => lane
                    .to
                    .as_mut()
                    .is_some_and(|to| to.write_all(&buffer[..count]).is_ok()),
                Err(error) => error.kind() == io::ErrorKind::Interrupted,
            };
            if copied {
                has_copied = true;
            } else {
                // EOF or an error on one side is passed on by closing the other.
                lane.to = None;
            }
        }
        has_copied
    }

    fn descriptors(&self) -> Vec<libc::pollfd> {
        self.lanes
            .iter()
            .filter(|lane| lane.to.is_some())
            .map(|lane| watch(lane.from.as_raw_fd()))
            .collect()
    }
}

fn watch(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Waits for `process` to exit and returns its status; `parent` is the launcher's parent at its start.
pub(super) fn supervise(
    process: libc::pid_t,
    parent: libc::pid_t,
    signals: &OwnedFd,
    mut relay: Relay,
) -> io::Result<i32> {
    loop {
        if let Some(status) = sys::reap(process, false)? {
            // Its last output is still in the pipes.
            loop {
                let mut descriptors = relay.descriptors();
                descriptors.retain(|one| one.fd != 0);
                sys::poll(&mut descriptors, 0)?;
                let ready = |fd| {
                    descriptors
                        .iter()
                        .any(|one| one.fd == fd && one.revents != 0)
                };
                if !relay.copy_ready(ready) {
                    break;
                }
            }
            return Ok(status);
        }
        let mut descriptors = vec![watch(signals.as_raw_fd())];
        descriptors.extend(relay.descriptors());
        sys::poll(&mut descriptors, -1)?;
        while let Some(signal) = sys::next_signal(signals) {
            let is_orphaned = signal == libc::SIGUSR1 && sys::parent() != parent;
            if is_orphaned || signal == libc::SIGTERM || signal == libc::SIGHUP {
                // It may have exited a moment ago; then it is reaped next.
                let _ = sys::kill(process, libc::SIGKILL);
            }
        }
        let ready = |fd| {
            descriptors[1..]
                .iter()
                .any(|one| one.fd == fd && one.revents != 0)
        };
        relay.copy_ready(ready);
    }
}
