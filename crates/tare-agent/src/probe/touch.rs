//! `touch`: first writes to fresh pages.
//!
//! Inside the timed region: one write to each of 512 fresh anonymous pages of 4 KiB, so one page fault each,
//! including the zeroing of the page. Outside: mapping and unmapping them. Huge pages are disabled with `madvise`, so
//! that this measures faults and not the huge page policy.
//! Known bias: the pages return to the kernel between batches and are likely to be warm in the caches and, in a
//! guest, already backed by its host; so this is the fault path and not the growth of a guest's memory.
//! Source: lmbench's `lat_pagefault`, for anonymous memory.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "touch": "the first write to each fresh anonymous page of 4 KiB";
    revision 1, cut KERNEL
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    linux::run(meter)
}

super::needs!(linux, "madvise");

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Instant;

    use tare_model::Unit;

    use crate::meter::{Meter, ProbeError};
    use crate::region::{Pages, Region};

    /// Pages per batch: 2 MiB, which one page of the page table maps.
    const PAGES: usize = 512;
    const PAGE_BYTES: usize = 4096;

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        // SAFETY: sysconf has no precondition.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        touch()?;
        let rounds = meter.self_timed(1.0, || Ok([touch()?]))?;
        let values = rounds.into_iter().flatten().collect();
        meter.record("mem.touch.time", Unit::Nanosecond, values, PAGES as u64);
        if usize::try_from(page_bytes) != Ok(PAGE_BYTES) {
            meter.note(format!(
                "the system's pages have {page_bytes} bytes: not every write is a first one"
            ));
        }
        Ok(())
    }

    /// Touches one fresh batch and returns the nanoseconds per page.
    fn touch() -> Result<f64, ProbeError> {
        let mut region = Region::new(PAGES * PAGE_BYTES, Pages::Small)?;
        let words = region.words().as_mut_ptr();
        let start = Instant::now();
        for page in 0..PAGES {
            // SAFETY: the region has `PAGES` pages of 512 words each. Volatile, so that no write is optimised away.
            unsafe { words.add(page * (PAGE_BYTES / 8)).write_volatile(1) };
        }
        Ok(start.elapsed().as_nanos() as f64 / PAGES as f64)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_page_of_a_batch_is_one_fault() {
            let faults = || {
                let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
                // SAFETY: `usage` has the size of the answer, and zeroes are a valid rusage.
                unsafe {
                    libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
                    usage.assume_init().ru_minflt
                }
            };
            touch().unwrap();
            let before = faults();
            touch().unwrap();
            let made = faults() - before;
            assert!((512..530).contains(&made), "{made} faults for 512 pages");
        }
    }
}
