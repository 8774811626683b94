//! `fsync`: the time until four kilobytes are on stable storage.
//!
//! Inside the timed region, per operation: `pwrite` of 4 096 bytes over the first block of a file whose blocks are
//! all allocated, and `fsync`. The size never changes, but the modification time does, so a journal commits the inode
//! along with the data; `fdatasync` could skip that.
//! Outside: creating the file, its first synchronisation, removing it.
//! Known bias: other writers on the same file system share its journal and its flushes. On a memory file system, or
//! where a flush is acknowledged without being done, the value is low and means nothing for durability; the notes
//! name the file system and say if it is too fast for a flush.
//! Source: fio's `fsync=1`, `rw=write`, `bs=4k`; the write of a small database transaction.

#[cfg(not(target_os = "linux"))]
use crate::other_systems::run;
#[cfg(target_os = "linux")]
use linux::run;

super::probe! {
    "fsync": "a write of 4 KiB over a file's first block, and fsync";
    revision 1, cut DEVICE
}

/// The metric: the time of a write with `fsync`.
pub const TIME: &str = "disk.fsync.time";

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::FileExt;

    use tare_model::Params;

    use super::TIME;
    use crate::direct_file::{self, BLOCK_BYTES, Removed};
    use crate::meter::{Meter, ProbeError};

    /// A device's flush takes longer than this, nanoseconds.
    const QUICKEST_FLUSH_NS: f64 = 30_000.0;
    /// Blocks of the file, so that it resembles a file in use.
    const BLOCKS: usize = 16;

    pub(super) fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
        let path = Removed(meter.workdir().join(direct_file::unique("tare-fsync")));
        let file = direct_file::create(&path.0)?;
        let mut block = [0x5au8; BLOCK_BYTES];
        for number in 0..BLOCKS {
            file.write_all_at(&block, (number * BLOCK_BYTES) as u64)
                .map_err(|error| ProbeError::system("write before fsync", &error))?;
        }
        file.sync_all()
            .map_err(|error| ProbeError::system("fsync", &error))?;
        let mut fastest_ns = f64::INFINITY;
        meter.each(TIME, 1.0, || {
            let begin = std::time::Instant::now();
            block[0] = block[0].wrapping_add(1);
            file.write_all_at(&block, 0)
                .map_err(|error| ProbeError::system("write before fsync", &error))?;
            file.sync_all()
                .map_err(|error| ProbeError::system("fsync", &error))?;
            fastest_ns = fastest_ns.min(begin.elapsed().as_nanos() as f64);
            Ok(())
        })?;
        meter.note(format!(
            "file system {}",
            direct_file::file_system(meter.workdir())
        ));
        if fastest_ns < QUICKEST_FLUSH_NS {
            meter.note(format!(
                "{fastest_ns:.0} ns is too quick for a flush: memory, or a flush that is not waited for"
            ));
        }
        Ok(())
    }
}
