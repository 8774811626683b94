//! `disk-sequential`: large reads of a prepared file in order, bypassing the page cache.
//!
//! Inside the timed region, per block: one direct read into aligned memory, in order of offsets, wrapping around at
//! the end: through an io_uring with `depth` reads in flight for `.rate`, with `pread` for `-sync.rate`.
//! Outside: creating and opening the file, setting up the ring, the warm-up of each series, the check of contents.
//! Each series gets half of the trial's time.
//! Known bias: each series begins at the block after the other series' last one, so that on a fast device the second
//! half of a short file is read as often as the first; caches below the block device (a drive's, a hypervisor host's)
//! may serve a file of this size, and this kernel does no read-ahead, since reads are direct.
//! Source: the parameters are those of fio's `read`, `direct=1`, `bs=1m`.

#[cfg(not(target_os = "linux"))]
use crate::other_systems::run;
#[cfg(target_os = "linux")]
use linux::run;

super::probe! {
    "disk-sequential": "1 MiB direct reads in order: by io_uring with 4 in flight, and by pread";
    revision 1, cut DEVICE
}

/// The series with io_uring.
pub const QUEUED: &str = "disk.sequential-read.rate";
/// The series with `pread`.
pub const SYNC: &str = "disk.sequential-read-sync.rate";

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use tare_model::{Failure, Params, Unit, whole_size};

    use super::{QUEUED, SYNC};
    use crate::args;
    use crate::direct_file::{self, BLOCK_BYTES, Slots};
    use crate::meter::{Meter, ProbeError};
    use crate::ring::Ring;
    use crate::slices::{batch, rates, total};

    /// Offsets of a file's blocks in order, wrapping around at the end.
    struct InOrder {
        next: u64,
        block_bytes: u64,
        file_bytes: u64,
    }

    impl InOrder {
        fn next(&mut self) -> u64 {
            let offset = self.next;
            self.next += self.block_bytes;
            if self.next + self.block_bytes > self.file_bytes {
                self.next = 0;
            }
            offset
        }
    }

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let block_bytes = args::whole(params, "block_kib", 1024, 4..=16_384)? << 10;
        let file_bytes = args::whole(params, "file_mib", 64, 1..=1 << 20)? << 20;
        let depth = whole_size(args::whole(params, "depth", 4, 1..=64)?);
        if !block_bytes.is_multiple_of(BLOCK_BYTES as u64) || block_bytes > file_bytes {
            return Err(args::refused(format!(
                "blocks of {block_bytes} bytes are no multiple of 4096 or longer than the file"
            )));
        }
        let file = meter.prepare(|| direct_file::open(meter.workdir(), file_bytes))??;
        let mut offsets = InOrder {
            next: 0,
            block_bytes,
            file_bytes,
        };
        synchronous(meter, &file, &mut offsets)?;
        let file_system = direct_file::file_system(meter.workdir());
        meter.note(format!("file system {file_system}"));
        match queued(meter, &file, &mut offsets, depth) {
            Err(ProbeError::Unavailable(reason)) => {
                meter.unavailable(QUEUED, reason);
                Ok(())
            }
            other => other,
        }
    }

    fn synchronous(
        meter: &mut Meter,
        file: &File,
        offsets: &mut InOrder,
    ) -> Result<(), ProbeError> {
        let mut slots = Slots::new(1, whole_size(offsets.block_bytes))?;
        let buffer = slots.bytes_mut(0);
        let before = direct_file::device_read_bytes();
        let (mut n_all, mut offset) = (0, 0);
        let slices = meter.stream(0.5, |slices| {
            for n_done in 1.. {
                offset = offsets.next();
                file.read_exact_at(buffer, offset)
                    .map_err(|error| ProbeError::system("direct pread", &error))?;
                n_all += 1;
                if !slices.advance(n_done) {
                    break;
                }
            }
            Ok(())
        })?;
        let note = direct_file::device_note(before, n_all * offsets.block_bytes);
        check(buffer, offset)?;
        meter.record(
            SYNC,
            Unit::BytePerSecond,
            rates(&slices, offsets.block_bytes),
            batch(&slices),
        );
        for note in note.into_iter().chain([total(&slices)]) {
            meter.note(note);
        }
        Ok(())
    }

    fn queued(
        meter: &mut Meter,
        file: &File,
        offsets: &mut InOrder,
        depth: usize,
    ) -> Result<(), ProbeError> {
        let block_bytes = offsets.block_bytes;
        let mut ring = Ring::new(file, Slots::new(depth, whole_size(block_bytes))?)?;
        let offset = offsets.next();
        check(ring.read_one(offset)?, offset)?;
        let before = direct_file::device_read_bytes();
        let mut n_all = 0;
        let slices = meter.stream(0.5, |slices| {
            n_all += ring.stream(|| offsets.next(), |n_done| slices.advance(n_done))?;
            Ok(())
        })?;
        let device = direct_file::device_note(before, n_all * block_bytes);
        let submission = ring.submission(|| offsets.next())?;
        meter.record(
            QUEUED,
            Unit::BytePerSecond,
            rates(&slices, block_bytes),
            batch(&slices),
        );
        for note in ring
            .notes()
            .iter()
            .cloned()
            .chain(device)
            .chain([total(&slices)])
        {
            meter.note(note);
        }
        if depth > 1 {
            meter.note(submission.note(depth));
        }
        Ok(())
    }

    fn check(read: &[u8], offset: u64) -> Result<(), ProbeError> {
        if direct_file::is_content(read, offset) {
            Ok(())
        } else {
            Err(ProbeError::Failed(Failure::Void(format!(
                "the bytes read at {offset} are not what was written there"
            ))))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn offsets_begin_again_when_no_whole_block_is_left() {
            let mut offsets = InOrder {
                next: 0,
                block_bytes: 3,
                file_bytes: 8,
            };
            let first: Vec<u64> = (0..5).map(|_| offsets.next()).collect();
            assert_eq!(first, [0, 3, 0, 3, 0]);
        }
    }
}
