//! `triad`: the STREAM triad, `a[j] = b[j] + s·c[j]` in double precision, on one thread.
//!
//! Inside the timed region: one pass over three arrays of `mib` MiB each; 24 bytes are counted per element, as in
//! STREAM. Outside: mapping and filling the arrays, one pass as warm-up. Arrays are in huge pages if the system
//! grants them on request.
//! Why streaming stores: an ordinary store reads the line before it writes it, a third more traffic that STREAM does
//! not count; with stores that bypass the cache (SSE2 or, if available, AVX) the counted traffic is the real one. On
//! other architectures than x86-64 ordinary stores are used.
//! Known bias: one thread does not saturate a server's memory; with `mib` below four times the last-level cache part
//! of the loads hit it.
//! Source: McCalpin, "Memory Bandwidth and Machine Balance" (1995), <https://www.cs.virginia.edu/stream/>.

use std::hint::black_box;

use tare_model::{Params, Unit};

use crate::meter::{Meter, ProbeError};
use crate::region::{Pages, Region};

super::probe! {
    "triad": "the STREAM triad over three arrays in memory, on one thread";
    revision 1, cut KERNEL
}

/// Elements per step of a kernel: a cache line.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the plain kernel takes arrays of any length")
)]
const STEP: usize = 8;

/// Computes `a = b + s·c`; the three have the same length, a multiple of [`STEP`], and are aligned to 32 bytes.
type Kernel = fn(&mut [f64], &[f64], &[f64], f64);

/// Returns the fastest kernel for this processor.
fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx") {
            return |a, b, c, scalar| {
                check(a, b, c);
                // SAFETY: the processor has AVX, and the arrays meet the kernel's requirements.
                unsafe { x86::avx(a, b, c, scalar) }
            };
        }
        |a, b, c, scalar| {
            check(a, b, c);
            // SAFETY: every x86-64 processor has SSE2, and the arrays meet the kernel's requirements.
            unsafe { x86::sse2(a, b, c, scalar) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    plain
}

/// Panics unless the arrays meet the kernels' requirements.
#[cfg(target_arch = "x86_64")]
fn check(a: &[f64], b: &[f64], c: &[f64]) {
    assert!(a.len().is_multiple_of(STEP) && a.len() == b.len() && a.len() == c.len());
    assert_eq!(a.as_ptr().align_offset(32), 0, "streaming stores need it");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_add_pd, _mm_loadu_pd, _mm_mul_pd, _mm_set1_pd, _mm_sfence, _mm_stream_pd,
        _mm256_add_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_set1_pd, _mm256_stream_pd,
    };

    use super::STEP;

    /// Needs AVX, `a` aligned to 32 bytes, equal lengths that are a multiple of [`STEP`].
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn avx(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
        let length = a.len();
        let (a, b, c) = (a.as_mut_ptr(), b.as_ptr(), c.as_ptr());
        let factor = _mm256_set1_pd(scalar);
        let mut place = 0;
        while place < length {
            for half in [place, place + 4] {
                // SAFETY: `place` is a multiple of `STEP` below the common length, so four elements from `half` are
                // in range; `a` is aligned to 32 bytes and `half` is a multiple of four.
                unsafe {
                    let product = _mm256_mul_pd(factor, _mm256_loadu_pd(c.add(half)));
                    let sum = _mm256_add_pd(_mm256_loadu_pd(b.add(half)), product);
                    _mm256_stream_pd(a.add(half), sum);
                }
            }
            place += STEP;
        }
        // Streaming stores are weakly ordered; wait until they are complete.
        _mm_sfence();
    }

    /// Needs `a` aligned to 16 bytes, equal lengths that are a multiple of [`STEP`].
    pub(super) unsafe fn sse2(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
        let length = a.len();
        let (a, b, c) = (a.as_mut_ptr(), b.as_ptr(), c.as_ptr());
        // SAFETY: as in `avx`, with two elements at a time.
        unsafe {
            let factor = _mm_set1_pd(scalar);
            let mut place = 0;
            while place < length {
                for pair in [place, place + 2, place + 4, place + 6] {
                    let product = _mm_mul_pd(factor, _mm_loadu_pd(c.add(pair)));
                    let sum = _mm_add_pd(_mm_loadu_pd(b.add(pair)), product);
                    _mm_stream_pd(a.add(pair), sum);
                }
                place += STEP;
            }
            _mm_sfence();
        }
    }
}

/// The loop as STREAM defines it.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + scalar * c;
    }
}

/// Fills with small whole numbers: every result is exact, so it has the same bits with and without fused operations.
fn fill(b: &mut [f64], c: &mut [f64]) {
    for (place, (b, c)) in b.iter_mut().zip(c).enumerate() {
        *b = (place & 1023) as f64;
        *c = (place & 511) as f64 + 1.0;
    }
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let mib = super::mebibytes(params, 32)?;
    let mut regions = [
        Region::new(mib << 20, Pages::Huge)?,
        Region::new(mib << 20, Pages::Huge)?,
        Region::new(mib << 20, Pages::Huge)?,
    ];
    meter.prepare(|| regions.iter_mut().for_each(Region::populate))?;
    let elements = (mib << 20) / size_of::<f64>();
    let [a, b, c] = regions
        .each_mut()
        .map(|region| &mut region.floats()[..elements]);
    let kernel = kernel();
    meter.prepare(|| {
        fill(b, c);
        kernel(a, b, c, black_box(3.0));
    })?;
    // An odd step, so that the sampled elements do not repeat.
    for value in a.iter().step_by(4_099) {
        meter.checksum(value.to_bits());
    }
    meter.rate(
        "mem.triad.rate",
        1.0,
        Unit::BytePerSecond,
        elements as u64 * 24,
        || {
            kernel(a, b, c, black_box(3.0));
            black_box(&mut *a);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays() -> [Region; 3] {
        [(); 3].map(|()| Region::new(1 << 20, Pages::Small).unwrap())
    }

    fn result_of(kernel: Kernel) -> Vec<f64> {
        let mut regions = arrays();
        let [a, b, c] = regions
            .each_mut()
            .map(|region| &mut region.floats()[..1024]);
        fill(b, c);
        kernel(a, b, c, 3.0);
        a.to_vec()
    }

    #[test]
    fn every_kernel_computes_the_triad() {
        let expected: Vec<f64> = (0..1024)
            .map(|place| f64::from(place) + 3.0 * (f64::from(place % 512) + 1.0))
            .collect();
        assert_eq!(result_of(plain), expected);
        assert_eq!(result_of(kernel()), expected);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            // SAFETY: the arrays are aligned to 4 KiB and have 1 024 elements each.
            result_of(|a, b, c, scalar| unsafe { x86::sse2(a, b, c, scalar) }),
            expected
        );
    }

    #[test]
    fn a_size_that_makes_no_sense_is_refused() {
        for mib in [0i64, -1, 1 << 40] {
            let mut meter = Meter::new(1, &std::env::temp_dir());
            let params = Params::new().with("mib", mib);
            assert!(run(&mut meter, &params).is_err(), "{mib}");
        }
    }
}
