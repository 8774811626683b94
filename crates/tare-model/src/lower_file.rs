//! The file that lies in an image's lower layer for the workload `copy-up`: its name, and what is in it.
//!
//! Image and probe agree on it here, so that the file is the same whether it came with the image or, where
//! nothing is layered, was made by the probe. No hole is in it and no two of its blocks are alike, so that
//! no file system stores less than its size. Its first byte tells whether it has been written to.

use crate::whole::whole_size;

/// Its name in the directory for the probes' files.
pub const LOWER_FILE: &str = "tare-lower";
/// The first byte of a file that nobody has written to.
pub const PRISTINE: u8 = b'P';
/// The first byte after the probe's write.
pub const TOUCHED: u8 = b'T';
/// Length of one block, bytes.
pub const BLOCK_BYTES: usize = 64 << 10;

/// The block at `number`, from 0; the last block of a file is cut to length.
pub fn block(number: u64) -> Vec<u8> {
    // xorshift64* (Vigna 2016): cheap, and no pattern that a compressing file system would find.
    let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(BLOCK_BYTES);
    while bytes.len() < BLOCK_BYTES {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    if number == 0 {
        bytes[0] = PRISTINE;
    }
    bytes
}

/// All blocks of a file of `length` bytes, in order.
pub fn blocks(length: u64) -> impl Iterator<Item = Vec<u8>> + Send {
    let size = BLOCK_BYTES as u64;
    (0..length.div_ceil(size)).map(move |number| {
        let mut bytes = block(number);
        bytes.truncate(whole_size(length - number * size));
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_make_up_the_length_and_differ_from_each_other() {
        for length in [1, 65_535, 65_536, 65_537, 200_000] {
            let blocks: Vec<Vec<u8>> = blocks(length).collect();
            assert_eq!(blocks.iter().map(Vec::len).sum::<usize>() as u64, length);
            assert_eq!(blocks[0][0], PRISTINE);
        }
        assert_eq!(blocks(0).count(), 0);
        assert_ne!(block(1), block(2));
        assert_eq!(block(7), block(7));
    }
}
