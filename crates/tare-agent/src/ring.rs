//! A ring of reads: keeps a number of direct reads in flight by io_uring.
//!
//! Buffers and file are registered where the kernel allows it, so that neither is looked up for every
//! request; submissions go to the kernel in the same call that waits for a completion. Where the memory
//! lock limit forbids registered buffers the ring works without, and says so.
//! What it cannot see: whether the kernel handed a request to a thread of its own; [`Ring::submission`]
//! shows whether requests were carried out before the submitting call came back.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tare_model::{Failure, Reason, whole_ns, whole_size};

use crate::direct_file::Slots;
use crate::meter::ProbeError;

/// No ring is deeper.
pub const MAX_DEPTH: usize = 256;

/// The part of a full queue that is waited for at once. Whoever waits for each completion sleeps and is woken for each,
/// which costs more than a read where waking a processor is dear; a quarter leaves the queue three quarters full.
const BATCH_PART: usize = 4;

/// Reads in flight over one file.
pub struct Ring<'a> {
    queues: IoUring,
    slots: Slots,
    /// Keeps the descriptor open for as long as requests may name it.
    file: &'a File,
    in_flight: usize,
    has_fixed_buffers: bool,
    has_fixed_file: bool,
    notes: Vec<String>,
}

/// What submitting a full queue without waiting showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// How long the submitting call took, nanoseconds.
    pub lasted_ns: u64,
    /// How many of the requests were already carried out when it returned.
    pub n_complete: u64,
}

impl Submission {
    /// For the reader: whether the queue of `depth` was deep, or requests were carried out one after
    /// another by the call that submitted them (then submission takes the time, as on some shared folders).
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
    /// A ring as deep as `slots` has slots.
    ///
    /// # Errors
    /// `Unavailable` where the environment blocks the system call.
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
        // SAFETY: every vector names a whole slot of `self.slots`, which stays mapped until after the ring
        // is gone (see `drop`, and the order of the fields).
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

    /// How the ring was set up, for the reader.
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
        // SAFETY: the buffer that the entry names is slot `slot`, mapped until no request is in flight any
        // more; the descriptor is open as long as `self.file` is borrowed; the slot has no other request,
        // since a slot is pushed only at the start and after its completion.
        unsafe { self.queues.submission().push(&entry) }
            .expect("the queue has an entry for every slot, and each is pushed once");
        self.in_flight += 1;
    }

    /// Submits what was pushed and waits for `want` completions.
    fn enter(&self, want: usize) -> Result<(), ProbeError> {
        loop {
            match self.queues.submit_and_wait(want) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(blocked("io_uring_enter", &error)),
            }
        }
    }

    /// Takes what has completed; `None` when that is all for now.
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

    /// Keeps the slots busy with the offsets that `next` gives until `finished`, called with the number
    /// of completed reads whenever a batch of them has come, answers `false`; then waits for the
    /// rest. Answers how many reads were made.
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

    /// Submits a full queue without waiting and looks at what came of it; then waits for the rest.
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

    /// Reads one block into slot 0, to be looked at.
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
        // The kernel writes into the slots until every request has completed, whatever its result.
        while self.in_flight > 0 {
            if self.enter(1).is_err() {
                // Waiting is impossible: leave the memory to the kernel rather than to the next owner.
                self.slots.abandon();
                return;
            }
            while self.reap().is_some() {}
        }
    }
}

/// Builds the ring in the cheapest mode that this kernel has: completions handled only in our own calls
/// (Linux 6.1), else without interrupting us (5.19), else as in the beginning (5.1).
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

/// A refusal that is a rule of the environment, or an error like any other.
fn blocked(call: &str, error: &io::Error) -> ProbeError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            ProbeError::Unavailable(Reason::BlockedSyscall(call.to_owned()))
        }
        _ => ProbeError::system(call, error),
    }
}
