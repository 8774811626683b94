//! Keeps a number of direct reads in flight with io_uring.
//!
//! Buffers and file are registered if the kernel allows it, so that neither is looked up per request; submissions go
//! to the kernel in the same call that waits for a completion. If the memory lock limit forbids registered buffers,
//! the ring works without them and adds a note.
//! Limits: does not see whether the kernel handed a request to a kernel thread; [`Ring::submission`] shows whether
//! requests were carried out before the submitting call returned.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tare_model::{Failure, Reason, whole_ns, whole_size};

use crate::direct_file::Slots;
use crate::meter::ProbeError;

/// The maximum depth of a ring.
pub const MAX_DEPTH: usize = 256;

/// One call waits for a full queue divided by this. Waiting for each completion would sleep and wake for each, which
/// is slower than a read where waking a processor is expensive; a quarter leaves the queue three quarters full.
const BATCH_PART: usize = 4;

/// Reads in flight over one file.
pub struct Ring<'a> {
    queues: IoUring,
    slots: Slots,
    /// Keeps the descriptor open as long as requests may refer to it.
    file: &'a File,
    in_flight: usize,
    has_fixed_buffers: bool,
    has_fixed_file: bool,
    notes: Vec<String>,
}

/// The result of submitting a full queue without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// Duration of the submitting call, nanoseconds.
    pub lasted_ns: u64,
    /// Number of requests that were already carried out when it returned.
    pub n_complete: u64,
}

impl Submission {
    /// Says for the reader whether the queue of `depth` was really deep, or the submitting call carried out the
    /// requests one after another (then submission takes the time, as on some shared folders).
    pub fn note(self, depth: usize) -> String {
        let lasted_us = self.lasted_ns as f64 / 1e3;
        let n_complete = self.n_complete;
        if n_complete == depth as u64 {
            format!(
                "effective queue depth 1: submitting {depth} reads took {lasted_us:.0} us and carried them out"
            )
        } else {
            format!(
                "submitting {depth} reads took {lasted_us:.0} us, {n_complete} were complete by then"
            )
        }
    }
}

impl<'a> Ring<'a> {
    /// Builds a ring as deep as the number of slots.
    ///
    /// # Errors
    /// `Unavailable` if the environment blocks the system call.
    pub fn new(file: &'a File, slots: Slots) -> Result<Self, ProbeError> {
        if slots.n_slots() > MAX_DEPTH {
            return Err(ProbeError::Failed(Failure::Probe(format!(
                "a queue of {} is deeper than {MAX_DEPTH}",
                slots.n_slots()
            ))));
        }
        let entries = u32::try_from(slots.n_slots().next_power_of_two()).unwrap_or(u32::MAX);
        let (queues, mode) = build(entries)?;
        let mut ring = Self {
            queues,
            slots,
            file,
            in_flight: 0,
            has_fixed_buffers: false,
            has_fixed_file: false,
            notes: vec![mode.to_owned()],
        };
        ring.register();
        Ok(ring)
    }

    fn register(&mut self) {
        let vectors: Vec<libc::iovec> = (0..self.slots.n_slots())
            .map(|slot| libc::iovec {
                iov_base: self.slots.pointer(slot).cast(),
                iov_len: self.slots.slot_bytes(),
            })
            .collect();
        // SAFETY: every vector names a whole slot of `self.slots`, which stays mapped until after the ring is dropped
        // (see `drop`, and the order of the fields).
        match unsafe { self.queues.submitter().register_buffers(&vectors) } {
            Ok(()) => self.has_fixed_buffers = true,
            Err(error) => self
                .notes
                .push(format!("buffers could not be registered: {error}")),
        }
        match self
            .queues
            .submitter()
            .register_files(&[self.file.as_raw_fd()])
        {
            Ok(()) => self.has_fixed_file = true,
            Err(error) => self
                .notes
                .push(format!("the file could not be registered: {error}")),
        }
    }

    /// Returns notes for the reader on how the ring was set up.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "a slot is one of few and of some MiB at most; once for each read that is timed"
    )]
    fn entry(&self, slot: usize, offset: u64) -> squeue::Entry {
        let pointer = self.slots.pointer(slot);
        let length = self.slots.slot_bytes() as u32;
        let fixed = types::Fixed(0);
        let plain = types::Fd(self.file.as_raw_fd());
        let entry = match (self.has_fixed_buffers, self.has_fixed_file) {
            (true, true) => opcode::ReadFixed::new(fixed, pointer, length, slot as u16)
                .offset(offset)
                .build(),
            (true, false) => opcode::ReadFixed::new(plain, pointer, length, slot as u16)
                .offset(offset)
                .build(),
            (false, true) => opcode::Read::new(fixed, pointer, length)
                .offset(offset)
                .build(),
            (false, false) => opcode::Read::new(plain, pointer, length)
                .offset(offset)
                .build(),
        };
        entry.user_data(slot as u64)
    }

    fn push(&mut self, slot: usize, offset: u64) {
        let entry = self.entry(slot, offset);
        // SAFETY: the buffer of the entry is slot `slot`, mapped until no request is in flight any more; the
        // descriptor is open as long as `self.file` is borrowed; the slot has no other request, since a slot is
        // pushed only at the start and after its completion.
        unsafe { self.queues.submission().push(&entry) }
            .expect("the queue has an entry for every slot, and each is pushed once");
        self.in_flight += 1;
    }

    /// Submits the pushed requests and waits for `want` completions.
    fn enter(&self, want: usize) -> Result<(), ProbeError> {
        loop {
            match self.queues.submit_and_wait(want) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(blocked("io_uring_enter", &error)),
            }
        }
    }

    /// Takes the next completion, if any.
    fn reap(&mut self) -> Option<cqueue::Entry> {
        let entry = self.queues.completion().next()?;
        self.in_flight -= 1;
        Some(entry)
    }

    fn check(&self, completion: &cqueue::Entry) -> Result<usize, ProbeError> {
        let result = completion.result();
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            return Err(ProbeError::system("read by io_uring", &error));
        }
        if result.cast_unsigned() as usize != self.slots.slot_bytes() {
            return Err(ProbeError::Failed(Failure::Probe(format!(
                "read by io_uring: {result} bytes instead of {}",
                self.slots.slot_bytes()
            ))));
        }
        Ok(whole_size(completion.user_data()))
    }

    /// Keeps the slots busy with the offsets from `next`, calls `finished` with the number of completed reads after
    /// each batch until it returns `false`, then waits for the rest. Returns the number of reads.
    pub fn stream(
        &mut self,
        mut next: impl FnMut() -> u64,
        mut finished: impl FnMut(u64) -> bool,
    ) -> Result<u64, ProbeError> {
        for slot in 0..self.slots.n_slots() {
            self.push(slot, next());
        }
        let mut free = vec![0usize; self.slots.n_slots()];
        let mut n_done = 0u64;
        let mut goes_on = true;
        let batch = (self.slots.n_slots() / BATCH_PART).max(1);
        while self.in_flight > 0 {
            self.enter(batch.min(self.in_flight))?;
            let mut n_free = 0;
            while let Some(completion) = self.reap() {
                free[n_free] = self.check(&completion)?;
                n_free += 1;
            }
            n_done += n_free as u64;
            if goes_on && n_free > 0 {
                goes_on = finished(n_done);
            }
            if goes_on {
                for slot in &free[..n_free] {
                    self.push(*slot, next());
                }
            }
        }
        Ok(n_done)
    }

    /// Submits a full queue without waiting and counts the completions; then waits for the rest.
    pub fn submission(&mut self, mut next: impl FnMut() -> u64) -> Result<Submission, ProbeError> {
        for slot in 0..self.slots.n_slots() {
            self.push(slot, next());
        }
        let begin = Instant::now();
        self.enter(0)?;
        let lasted_ns = whole_ns(begin.elapsed());
        let mut n_complete = 0;
        while let Some(completion) = self.reap() {
            self.check(&completion)?;
            n_complete += 1;
        }
        self.drain()?;
        Ok(Submission {
            lasted_ns,
            n_complete,
        })
    }

    /// Reads one block into slot 0 and returns it.
    pub fn read_one(&mut self, offset: u64) -> Result<&[u8], ProbeError> {
        self.push(0, offset);
        self.enter(1)?;
        while let Some(completion) = self.reap() {
            self.check(&completion)?;
        }
        self.drain()?;
        Ok(self.slots.bytes(0))
    }

    fn drain(&mut self) -> Result<(), ProbeError> {
        while self.in_flight > 0 {
            self.enter(1)?;
            while let Some(completion) = self.reap() {
                self.check(&completion)?;
            }
        }
        Ok(())
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        // The kernel writes to the slots until every request has completed, whatever its result.
        while self.in_flight > 0 {
            if self.enter(1).is_err() {
                // Waiting is impossible: leak the memory, because the kernel may still write to it.
                self.slots.abandon();
                return;
            }
            while self.reap().is_some() {}
        }
    }
}

/// Builds the ring in the cheapest mode of this kernel: completions handled only in our calls (Linux 6.1), else
/// without interrupting us (5.19), else the original mode (5.1).
fn build(entries: u32) -> Result<(IoUring, &'static str), ProbeError> {
    let mut deferred = IoUring::builder();
    deferred.setup_single_issuer().setup_defer_taskrun();
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun();
    for (builder, mode) in [
        (deferred, "io_uring with deferred completions"),
        (cooperative, "io_uring with cooperative completions"),
    ] {
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, mode)),
            // This kernel does not know the flag.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(blocked("io_uring_setup", &error)),
        }
    }
    match IoUring::new(entries) {
        Ok(ring) => Ok((ring, "io_uring")),
        Err(error) => Err(blocked("io_uring_setup", &error)),
    }
}

/// Returns `Unavailable` if the environment blocks the call, or an ordinary error.
fn blocked(call: &str, error: &io::Error) -> ProbeError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            ProbeError::Unavailable(Reason::BlockedSyscall(call.to_owned()))
        }
        _ => ProbeError::system(call, error),
    }
}
