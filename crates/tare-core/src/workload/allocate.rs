//! `allocate`: a workload that allocates and frees memory.
//!
//! The counterpart of "Memory Allocation" of a published comparison of containers (2019), without a garbage
//! collector.
//! Limits: tests only the agent's allocator.

use super::probe_output::probe;

probe! {
    "allocate": "taking and giving back memory in small and in large blocks";
    "mem.allocate.time", Nanosecond, Lower, Compute: "Taking one block of 16 to 512 bytes, writing its first word and giving it back, 1 000 of them alive at once.";
    "mem.allocate-large.time", Nanosecond, Lower, Kernel: "Taking one block of 1 MiB, writing one byte of each of its pages, and giving it back.";
}
