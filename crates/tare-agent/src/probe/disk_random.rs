//! `disk-random`: 4 KiB reads at random offsets of a prepared file, bypassing the page cache.
//!
//! Inside the timed region, per operation: choosing the offset, and one direct read of 4 096 bytes into aligned
//! memory: `pread` for `-sync`; for `-qd1` and `-qd32` an io_uring with 1 and 32 reads in flight and registered
//! buffers and file. One system call submits all pending reads and waits until a quarter of the queue has completed,
//! so that between 24 and 32 reads are in flight.
//! Outside: creating and opening the file, setting up the ring, the warm-up of each series, the check of contents.
//! Each series gets a third of the trial's time.
//! Known bias: offsets are drawn anew in every trial, from a seed of clock and process id, since a device or a
//! hypervisor would remember those of the last trial; caches below the block device stay active, and a file of 64 MiB
//! fits into most of them. The notes say whether a device was read at all and whether the queue was really deep.
//! Source: the parameters are those of fio's `randread`, `direct=1`, `bs=4k`, `iodepth=32`.

#[cfg(not(target_os = "linux"))]
use crate::other_systems::run;
#[cfg(target_os = "linux")]
use linux::run;

super::probe! {
    "disk-random": "4 KiB direct reads at random places: by pread, and by io_uring at depths 1 and 32";
    revision 2, cut DEVICE
}

/// The series with `pread`.
pub const SYNC: &str = "disk.random-read-sync.time";
/// The series with io_uring, one read in flight.
pub const QD1: &str = "disk.random-read-qd1.time";
/// The series with io_uring, 32 reads in flight.
pub const QD32: &str = "disk.random-read-qd32.rate";

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::time::{SystemTime, UNIX_EPOCH};

    use tare_model::{Failure, Params, Unit, whole_ns};

    use super::{QD1, QD32, SYNC};
    use crate::args;
    use crate::direct_file::{self, BLOCK_BYTES, Slots};
    use crate::meter::{Meter, ProbeError};
    use crate::ring::Ring;
    use crate::slices::{batch, rates, times_ns, total};

    const DEPTH: usize = 32;
    /// Each metric's share of the trial's time.
    const SHARE: f64 = 1.0 / 3.0;

    /// Block offsets in a file, uniformly at random: xorshift64* as in the probe `integer`.
    struct Places {
        state: u64,
        n_blocks: u64,
    }

    impl Places {
        fn new(n_blocks: u64) -> Self {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, whole_ns);
            let seed = now ^ (u64::from(std::process::id()) << 32);
            Self {
                state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                n_blocks,
            }
        }

        /// Returns the next byte offset. The upper half of the product of two 64-bit numbers is less than the second.
        fn next(&mut self) -> u64 {
            self.state ^= self.state >> 12;
            self.state ^= self.state << 25;
            self.state ^= self.state >> 27;
            let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            let block = (u128::from(drawn) * u128::from(self.n_blocks)) >> 64;
            block as u64 * BLOCK_BYTES as u64
        }
    }

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let file_bytes = args::whole(params, "file_mib", 64, 1..=1 << 20)? << 20;
        let file = meter.prepare(|| direct_file::open(meter.workdir(), file_bytes))??;
        let file_system = direct_file::file_system(meter.workdir());
        let mut places = Places::new(file_bytes / BLOCK_BYTES as u64);
        synchronous(meter, &file, &mut places)?;
        meter.note(format!("file system {file_system}"));

        for (metric, depth) in [(QD1, 1), (QD32, DEPTH)] {
            match queued(meter, &file, &mut places, metric, depth) {
                Ok(()) => {}
                Err(ProbeError::Unavailable(reason)) => meter.unavailable(metric, reason),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn synchronous(meter: &mut Meter, file: &File, places: &mut Places) -> Result<(), ProbeError> {
        let mut slots = Slots::new(1, BLOCK_BYTES)?;
        let buffer = slots.bytes_mut(0);
        let before = direct_file::device_read_bytes();
        let (mut n_all, mut offset) = (0, 0);
        let slices = meter.stream(SHARE, |slices| {
            for n_done in 1.. {
                offset = places.next();
                file.read_exact_at(buffer, offset)
                    .map_err(|error| ProbeError::system("direct pread", &error))?;
                n_all += 1;
                if !slices.advance(n_done) {
                    break;
                }
            }
            Ok(())
        })?;
        let note = direct_file::device_note(before, n_all * BLOCK_BYTES as u64);
        check(buffer, offset)?;
        meter.record(SYNC, Unit::Nanosecond, times_ns(&slices), batch(&slices));
        for note in note.into_iter().chain([total(&slices)]) {
            meter.note(note);
        }
        Ok(())
    }

    fn queued(
        meter: &mut Meter,
        file: &File,
        places: &mut Places,
        metric: &str,
        depth: usize,
    ) -> Result<(), ProbeError> {
        let mut ring = Ring::new(file, Slots::new(depth, BLOCK_BYTES)?)?;
        let offset = places.next();
        check(ring.read_one(offset)?, offset)?;
        let before = direct_file::device_read_bytes();
        let mut n_all = 0;
        let slices = meter.stream(SHARE, |slices| {
            n_all += ring.stream(|| places.next(), |n_done| slices.advance(n_done))?;
            Ok(())
        })?;
        let device = direct_file::device_note(before, n_all * BLOCK_BYTES as u64);
        let submission = if depth > 1 {
            Some(ring.submission(|| places.next())?)
        } else {
            None
        };
        if depth > 1 {
            meter.record(
                metric,
                Unit::OperationPerSecond,
                rates(&slices, 1),
                batch(&slices),
            );
        } else {
            meter.record(metric, Unit::Nanosecond, times_ns(&slices), batch(&slices));
        }
        for note in ring
            .notes()
            .iter()
            .cloned()
            .chain(device)
            .chain([total(&slices)])
        {
            meter.note(note);
        }
        if let Some(submission) = submission {
            meter.note(submission.note(depth));
        }
        Ok(())
    }

    fn check(read: &[u8], offset: u64) -> Result<(), ProbeError> {
        if direct_file::is_content(read, offset) {
            Ok(())
        } else {
            Err(ProbeError::Failed(Failure::Void(format!(
                "the block at byte {offset} is not what was written there"
            ))))
        }
    }

    #[cfg(test)]
    mod tests {
        use tare_model::whole_size;

        use super::*;

        #[test]
        fn random_offsets_are_block_aligned_and_cover_file() {
            let mut places = Places::new(16);
            let mut seen = [false; 16];
            for _ in 0..2_000 {
                let offset = places.next();
                assert!(offset.is_multiple_of(BLOCK_BYTES as u64));
                seen[whole_size(offset / BLOCK_BYTES as u64)] = true;
            }
            assert!(seen.iter().all(|was_seen| *was_seen));
        }
    }
}
