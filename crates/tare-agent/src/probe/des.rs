//! `des`: encrypts 80 000 characters with DES.
//!
//! Inside the timed region: 10 000 blocks in electronic codebook mode with a fixed key schedule, read from one buffer
//! and written to another; both fit in the L2 cache, the tables (2 KiB) in the L1 cache.
//! Outside: the key schedule, filling the text. No system call, no libc, no allocation.
//! Known bias: table look-ups and dependent shifts, scalar; says nothing about hardware cryptography.
//! Source: FIPS 46-3 (1999); the amount of text is that of Danilova and Sergeev (2024), who encrypt a string of 80
//! 000 characters. Not for protecting anything: DES is broken.

use std::hint::black_box;

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

mod cipher;

use cipher::Schedule;

super::probe! {
    "des": "DES encryption of 80 000 characters, 10 000 blocks in electronic codebook mode";
    revision 1, cut LOOP
}

/// Blocks of eight characters per text.
const BLOCKS: usize = 10_000;
/// The key of the worked example in many textbooks; any other would take the same time.
const KEY: u64 = 0x1334_5779_9bbc_dff1;

/// Encrypts every block of `text` into `cipher`.
#[inline(never)]
fn encrypt(schedule: &Schedule, text: &[u64], cipher: &mut [u64]) {
    for (block, out) in text.iter().zip(cipher) {
        *out = schedule.encrypt(*block);
    }
}

/// Returns printable characters, eight per block.
fn text() -> Vec<u64> {
    (0..BLOCKS)
        .map(|block| {
            #[allow(clippy::cast_possible_truncation, reason = "a number below 95")]
            let character = |place| b' ' + ((block * 8 + place) * 31 % 95) as u8;
            u64::from_be_bytes(std::array::from_fn(character))
        })
        .collect()
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let schedule = Schedule::new(black_box(KEY));
    let text = text();
    let mut cipher = vec![0; BLOCKS];
    encrypt(&schedule, &text, &mut cipher);
    for block in &cipher {
        meter.checksum(*block);
    }
    meter.loops("cpu.des.time", 1.0, |times| {
        for _ in 0..times {
            encrypt(&schedule, black_box(&text), &mut cipher);
            black_box(&mut cipher);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_80_000_printable_characters() {
        let characters: Vec<u8> = text().into_iter().flat_map(u64::to_be_bytes).collect();
        assert_eq!(characters.len(), 80_000);
        assert!(characters.iter().all(|byte| (b' '..=b'~').contains(byte)));
    }

    #[test]
    fn the_cipher_is_that_of_the_workload_in_python() {
        let text = text();
        let mut cipher = vec![0; BLOCKS];
        encrypt(&Schedule::new(KEY), &text, &mut cipher);
        let sum = cipher.into_iter().fold(0, u64::wrapping_add);
        // The output of `des.py 80000 1`.
        assert_eq!(sum, 0xa17d_d574_55e5_5ca8);
    }
}
