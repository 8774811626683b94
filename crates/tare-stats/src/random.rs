//! Random numbers that stay the same across versions and machines.
//!
//! PCG XSL-RR 128/64 (`rand_pcg`) keyed by (seed, purpose, index) through SplitMix64, with bounded sampling and
//! shuffle implemented here.
//!
//! Later versions must reproduce a stored plan, and general-purpose crates may change how a range is drawn. Each
//! purpose and index has a separate stream, so block 17 can be planned without the 16 before it.
//!
//! Limits: not for secrets.

use rand_core::Rng;
use rand_pcg::Pcg64;
use std::f64::consts::TAU;

/// A stream of random numbers, the same for the same key on every machine.
#[derive(Debug, Clone)]
pub struct Stream {
    source: Pcg64,
}

impl Stream {
    /// Creates stream number `index` for one `purpose` under a `seed`.
    pub fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let mut mixer = seed;
        let mut key = split_mix(&mut mixer);
        for part in [purpose, index] {
            mixer = key ^ part;
            key = split_mix(&mut mixer);
        }
        mixer = key;
        let mut word = || u128::from(split_mix(&mut mixer));
        let state = word() << 64 | word();
        let increment = word() << 64 | word();
        Self {
            source: Pcg64::new(state, increment),
        }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.source.next_u64()
    }

    /// Returns a number below `bound`, each equally likely; 0 for a bound of 0 or 1.
    ///
    /// Multiply and shift with rejection (Lemire 2019): unbiased, and rarely more than one draw.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        if bound < 2 {
            return 0;
        }
        // 2^64 mod bound: the products whose low half is below it are over-represented.
        let uneven = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            #[allow(
                clippy::cast_possible_truncation,
                reason = "the halves of a product, of which the high one is below the bound"
            )]
            let (high, low) = ((product >> 64) as usize, product as u64);
            if low >= uneven {
                return high;
            }
        }
    }

    /// Returns a number uniform on [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number (Box & Muller 1958; the second of the pair is discarded, so that each call
    /// uses the same number of draws).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }

    /// Shuffles `items`, each order equally likely (Fisher–Yates from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// One step of SplitMix64 (Steele, Lea & Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
