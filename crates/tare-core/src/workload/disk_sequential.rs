//! `disk-sequential`: large sequential direct reads, with a queue and one at a time.
//!
//! Both are measured, because an environment that blocks or serialises the queue only shows in the difference.
//! Limits: does not see caches below the block device of its kernel.

use super::probe_output::probe;

probe! {
    "disk-sequential": "large reads of a file in order, past the page cache";
    params {
        "block_kib" = Int(1024), Between(4, 16_384): "size of one read in KiB: a multiple of 4, 4 to 16384";
        "depth" = Int(4), Between(1, 64): "reads in flight at once for `disk.sequential-read.rate`, 1 to 64";
        "file_mib" = Int(64), Between(1, 65_536): "size of the file in MiB, 1 to 65536; larger than the caches below is better";
    }
    BytePerSecond, Higher, Disk {
        "disk.sequential-read.rate":
            "Bytes per second of direct reads in order, `depth` of `block_kib` KiB in flight by io_uring (4 of 1 MiB by default).";
        "disk.sequential-read-sync.rate":
            "Bytes per second of direct reads in order, one `pread` of `block_kib` KiB after the other (1 MiB by default).";
    }
}
