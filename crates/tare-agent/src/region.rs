//! A memory region for a probe's data, with a preferred page size.
//!
//! Memory probes must not depend on what an allocator happens to return, and whether a page has 4 KiB or 2 MiB
//! changes their result by tens of percent. So on Linux the region is mapped directly, aligned to 2 MiB, and the
//! preference is set with `madvise`. Elsewhere it is ordinary zeroed memory.
//! Limits: does not check whether the kernel granted huge pages; if it did not, that is a property of the
//! environment, and the counters `minflt` of the trial show it.

use crate::meter::ProbeError;

/// Size of a huge page on x86-64 and on AArch64 with 4 KiB pages.
const HUGE_BYTES: usize = 2 << 20;

/// The preferred page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Only the smallest pages.
    Small,
    /// Huge pages, if the system grants them.
    Huge,
}

/// Zeroed memory that is freed when dropped.
#[derive(Debug)]
pub struct Region {
    words: usize,
    start: *mut u64,
    #[cfg(target_os = "linux")]
    mapping: (*mut libc::c_void, usize),
}

impl Region {
    /// Maps `bytes` of zeroed memory, rounded up to whole huge pages; none of it is touched yet.
    #[cfg(target_os = "linux")]
    pub fn new(bytes: usize, pages: Pages) -> Result<Self, ProbeError> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_BYTES);
        let mapped = bytes + HUGE_BYTES;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(ProbeError::last("mmap"));
        }
        let start = mapping.cast::<u8>();
        let skipped = start.align_offset(HUGE_BYTES);
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: `skipped` is less than 2 MiB and the mapping is that much longer than `bytes`, so the range is
        // inside of it. The result is irrelevant: a kernel without huge pages refuses both pieces of advice, and then
        // all pages are small.
        let start = unsafe {
            let start = start.add(skipped);
            libc::madvise(start.cast(), bytes, advice);
            start
        };
        Ok(Self {
            words: bytes / 8,
            start: start.cast(),
            mapping: (mapping, mapped),
        })
    }

    /// Allocates `bytes` of zeroed memory, rounded up to whole huge pages; the preference has no effect on this
    /// system.
    #[cfg(not(target_os = "linux"))]
    pub fn new(bytes: usize, _pages: Pages) -> Result<Self, ProbeError> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_BYTES);
        let layout = Self::layout(bytes);
        // SAFETY: the layout's size is not zero: at least one huge page.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(ProbeError::system(
                "alloc",
                &std::io::ErrorKind::OutOfMemory.into(),
            ));
        }
        Ok(Self {
            words: bytes / 8,
            start: start.cast(),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, 4096)
            .expect("the size is a multiple of a power of two far below the largest")
    }

    /// Populates all pages with one call, which takes about half the time of touching each. Best effort: a kernel
    /// before Linux 5.14 refuses, and then every page comes with its first write.
    pub fn populate(&mut self) {
        #[cfg(target_os = "linux")]
        // SAFETY: exactly the region that `new` made, which is mapped readable and writable.
        unsafe {
            libc::madvise(self.start.cast(), self.words * 8, libc::MADV_POPULATE_WRITE);
        }
    }

    /// Returns the memory as whole numbers.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: `start` is aligned to 4 KiB at least, points to `words` zeroed (so initialised) numbers
        // that live as long as `self`, and the exclusive borrow of `self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }

    /// Returns the memory as floating-point numbers; zeroed memory reads as 0.0.
    pub fn floats(&mut self) -> &mut [f64] {
        // SAFETY: as in `words`; every pattern of 64 bits is a valid `f64`, of the same size and alignment.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.words) }
    }
}

impl Drop for Region {
    #[cfg(target_os = "linux")]
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no borrow of it outlives `self`.
        unsafe {
            libc::munmap(self.mapping.0, self.mapping.1);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout, and freed once.
        unsafe { std::alloc::dealloc(self.start.cast(), Self::layout(self.words * 8)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zeroed_aligned_and_writable_to_its_end() {
        for pages in [Pages::Small, Pages::Huge] {
            let mut region = Region::new(3 << 20, pages).unwrap();
            region.populate();
            let words = region.words();
            assert_eq!(words.len() * 8, 4 << 20);
            assert_eq!(words.as_ptr() as usize % 4096, 0);
            assert!(words.iter().all(|word| *word == 0));
            words.fill(u64::MAX);
            assert!(region.floats().iter().all(|float| float.is_nan()));
        }
    }
}
