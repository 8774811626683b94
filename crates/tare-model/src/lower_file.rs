//! Name and content of the file in an image's lower layer for the workload `copy-up`.
//!
//! Image and probe share this definition, so that the file is the same whether it comes with the image or, without
//! layers, the probe creates it. It has no holes and no two equal blocks, so that no file system stores less than its
//! size. Its first byte shows whether it has been written to.

use crate::whole::whole_size;

/// Its name in the directory for the probes' files.
pub const LOWER_FILE: &str = "tare-lower";
/// First byte of a file that has not been written to.
pub const PRISTINE: u8 = b'P';
/// First byte after the probe's write.
pub const TOUCHED: u8 = b'T';
/// Length of one block, bytes.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Returns the block at `number`, from 0; the last block of a file is cut to length.
pub fn block(number: u64) -> Vec<u8> {
    // xorshift64* (Vigna 2016): cheap, without patterns that a compressing file system would find.
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

/// Returns all blocks of a file of `length` bytes, in order.
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
    fn blocks_fill_the_length_and_are_distinct() {
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
