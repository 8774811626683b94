//! `random-access`: a workload for memory latency.
//!
//! With small pages most loads miss the TLB too, and a guest then walks two page tables. With huge pages that part
//! vanishes, so the pair separates address translation from memory.
//! Limits: does not measure throughput.

use super::probe_output::probe;

probe! {
    "random-access": "dependent loads along a random cycle through memory";
    params {
        "mib" = Int(64), Between(1, 4096): "Extent of the memory in MiB, 1 to 4096; should exceed the last-level cache.";
        "pages" = Text("small"), OneOf(&["small", "huge"]): "`small` refuses huge pages, `huge` asks for them.";
    }
    "mem.random.time", Nanosecond, Lower, Compute: "One load from a random cache line whose address the load before has given.";
}
