//! DES, frozen: the block cipher of FIPS 46-3 over 64-bit words, most significant bit first.
//!
//! The substitution boxes and the permutation that follows them are merged into eight tables at compile time. The
//! initial and the final permutation exchange groups of bits, as every fast software implementation does. The tests
//! compare it with a literal, table-by-table implementation of the standard.
//! Not constant in time and not meant to be secure.

/// The permutation, in the standard's bit numbers: 1 is the most significant.
const PERMUTATION: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];

/// First permuted choice: 56 of the key's 64 bits.
const CHOICE_1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29,
    21, 13, 5, 28, 20, 12, 4,
];

/// Second permuted choice: 48 of 56 bits for a round.
const CHOICE_2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

/// Bits by which both halves of the key are rotated before each round.
const TURNS: [u8; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// The substitution boxes: four rows of sixteen each.
#[rustfmt::skip]
const BOXES: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7,
        0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
        4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0,
        15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10,
        3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
        0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15,
        13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8,
        13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
        13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7,
        1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15,
        13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
        10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4,
        3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9,
        14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
        4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14,
        11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11,
        10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
        9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6,
        4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1,
        13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
        1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2,
        6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7,
        1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
        7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8,
        2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];

/// For each box and each six-bit input: its contribution to the half block.
static SUBSTITUTED: [[u32; 64]; 8] = substituted();

const fn substituted() -> [[u32; 64]; 8] {
    let mut tables = [[0; 64]; 8];
    let mut place = 0;
    while place < 8 {
        let mut six = 0;
        while six < 64 {
            // The outer two bits choose the row, the inner four the column.
            let row = (six >> 4 & 2) | (six & 1);
            let column = six >> 1 & 15;
            let four = (BOXES[place][row * 16 + column] as u32) << (28 - 4 * place);
            let mut out = 0;
            let mut bit = 0;
            while bit < 32 {
                out |= (four >> (32 - PERMUTATION[bit] as u32) & 1) << (31 - bit);
                bit += 1;
            }
            tables[place][six] = out;
            six += 1;
        }
        place += 1;
    }
    tables
}

/// Returns the bits of `input` (of `width` bits) that `choice` numbers, in that order.
fn permuted(input: u64, width: u32, choice: &[u8]) -> u64 {
    choice.iter().fold(0, |out, bit| {
        out << 1 | input >> (width - u32::from(*bit)) & 1
    })
}

/// The sixteen round keys of one key.
///
/// A round key is two words. The first holds the six bits for boxes 1, 3, 5 and 7 from the bit positions 26, 18, 10
/// and 2 upward, the second those for boxes 2, 4, 6 and 8 likewise.
#[derive(Debug)]
pub(super) struct Schedule([[u32; 2]; 16]);

impl Schedule {
    /// Computes the schedule of `key`; the parity bits are ignored.
    pub(super) fn new(key: u64) -> Self {
        const HALF: u64 = (1 << 28) - 1;
        let chosen = permuted(key, 64, &CHOICE_1);
        let (mut left, mut right) = (chosen >> 28, chosen & HALF);
        let mut rounds = [[0; 2]; 16];
        for (round, turn) in rounds.iter_mut().zip(TURNS) {
            left = (left << turn | left >> (28 - turn)) & HALF;
            right = (right << turn | right >> (28 - turn)) & HALF;
            let bits = permuted(left << 28 | right, 56, &CHOICE_2);
            for place in 0..8 {
                let six = (bits >> (42 - 6 * place) & 63) as u32;
                round[place % 2] |= six << (26 - 8 * (place / 2));
            }
        }
        Self(rounds)
    }

    /// Encrypts one block.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a block")]
    pub(super) fn encrypt(&self, block: u64) -> u64 {
        let (mut left, mut right) = initial((block >> 32) as u32, block as u32);
        for pair in self.0.as_chunks::<2>().0 {
            left ^= mixed(right, pair[0]);
            right ^= mixed(left, pair[1]);
        }
        // The halves are not exchanged after the last round.
        let (left, right) = last(right, left);
        u64::from(left) << 32 | u64::from(right)
    }
}

/// The round function: expansion, round key, boxes and permutation.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "sixteen of them are one block; the kernel is frozen, not left to a heuristic"
)]
fn mixed(half: u32, key: [u32; 2]) -> u32 {
    // After a rotation by one, the six bits of box 1 are the topmost; after three more to the left, those of box 2.
    let odd = half.rotate_right(1) ^ key[0];
    let even = half.rotate_left(3) ^ key[1];
    let six = |word: u32, shift: u32| (word >> shift & 63) as usize;
    SUBSTITUTED[0][six(odd, 26)]
        ^ SUBSTITUTED[2][six(odd, 18)]
        ^ SUBSTITUTED[4][six(odd, 10)]
        ^ SUBSTITUTED[6][six(odd, 2)]
        ^ SUBSTITUTED[1][six(even, 26)]
        ^ SUBSTITUTED[3][six(even, 18)]
        ^ SUBSTITUTED[5][six(even, 10)]
        ^ SUBSTITUTED[7][six(even, 2)]
}

/// Exchanges the bits of `low` that `mask` selects with the bits of `high` that are `shift` places above them.
#[inline]
fn exchange(high: &mut u32, low: &mut u32, shift: u32, mask: u32) {
    let difference = (*high >> shift ^ *low) & mask;
    *low ^= difference;
    *high ^= difference << shift;
}

/// The initial permutation: a transposition of the 8 × 8 bits, done in five exchanges.
#[inline]
fn initial(mut left: u32, mut right: u32) -> (u32, u32) {
    exchange(&mut left, &mut right, 4, 0x0f0f_0f0f);
    exchange(&mut left, &mut right, 16, 0x0000_ffff);
    exchange(&mut right, &mut left, 2, 0x3333_3333);
    exchange(&mut right, &mut left, 8, 0x00ff_00ff);
    exchange(&mut left, &mut right, 1, 0x5555_5555);
    (left, right)
}

/// The final permutation: the same exchanges in reverse.
#[inline]
fn last(mut left: u32, mut right: u32) -> (u32, u32) {
    exchange(&mut left, &mut right, 1, 0x5555_5555);
    exchange(&mut right, &mut left, 8, 0x00ff_00ff);
    exchange(&mut right, &mut left, 2, 0x3333_3333);
    exchange(&mut left, &mut right, 16, 0x0000_ffff);
    exchange(&mut left, &mut right, 4, 0x0f0f_0f0f);
    (left, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cipher as the standard specifies it, bit by bit.
    mod plain {
        use super::super::{BOXES, PERMUTATION, permuted};
        use super::*;

        fn initial_choice() -> Vec<u8> {
            [58u8, 60, 62, 64, 57, 59, 61, 63]
                .iter()
                .flat_map(|first| (0..8).map(move |step| first - 8 * step))
                .collect()
        }

        pub(super) fn encrypt(key: u64, block: u64) -> u64 {
            let choice = initial_choice();
            let mixed = permuted(block, 64, &choice);
            let low = |word: u64| (word & 0xffff_ffff) as u32;
            let (mut left, mut right) = (low(mixed >> 32), low(mixed));
            let chosen = permuted(key, 64, &CHOICE_1);
            let mut turned = 0;
            for turn in TURNS {
                turned += turn;
                let turn_half =
                    |half: u64| (half << turned | half >> (28 - turned)) & ((1 << 28) - 1);
                let halves = turn_half(chosen >> 28) << 28 | turn_half(chosen & ((1 << 28) - 1));
                let key = permuted(halves, 56, &CHOICE_2);
                let expansion: Vec<u8> = (0..8)
                    .flat_map(|group| (0..6).map(move |bit| (group * 4 + bit + 31) % 32 + 1))
                    .collect();
                let bits = permuted(u64::from(right), 32, &expansion) ^ key;
                let mut out = 0u64;
                for (place, table) in BOXES.iter().enumerate() {
                    let six = (bits >> (42 - 6 * place) & 63) as usize;
                    let row = (six >> 5) * 2 + (six & 1);
                    out = out << 4 | u64::from(table[row * 16 + (six >> 1 & 15)]);
                }
                let next = left ^ low(permuted(out, 32, &PERMUTATION));
                left = right;
                right = next;
            }
            let joined = u64::from(right) << 32 | u64::from(left);
            // The final permutation is the inverse of the initial one.
            choice.iter().enumerate().fold(0, |out, (place, bit)| {
                out | (joined >> (63 - place) & 1) << (64 - bit)
            })
        }
    }

    fn check(vectors: &[(u64, u64, u64)]) {
        for (key, block, expected) in vectors {
            assert_eq!(
                Schedule::new(*key).encrypt(*block),
                *expected,
                "key {key:016x} block {block:016x}"
            );
            assert_eq!(plain::encrypt(*key, *block), *expected);
        }
    }

    #[test]
    fn known_answers_of_nbs_special_publication_500_20() {
        check(&[
            // Variable plaintext.
            (
                0x0101_0101_0101_0101,
                0x8000_0000_0000_0000,
                0x95f8_a5e5_dd31_d900,
            ),
            (
                0x0101_0101_0101_0101,
                0x4000_0000_0000_0000,
                0xdd7f_121c_a501_5619,
            ),
            (
                0x0101_0101_0101_0101,
                0x2000_0000_0000_0000,
                0x2e86_5310_4f38_34ea,
            ),
            // Variable key.
            (0x8001_0101_0101_0101, 0, 0x95a8_d728_13da_a94d),
            (0x4001_0101_0101_0101, 0, 0x0eec_1487_dd8c_26d5),
            (0x2001_0101_0101_0101, 0, 0x7ad1_6ffb_79c4_5926),
            // Substitution tables.
            (
                0x7ca1_1045_4a1a_6e57,
                0x01a1_d6d0_3977_6742,
                0x690f_5b0d_9a26_939b,
            ),
            (
                0x0131_d961_9dc1_376e,
                0x5cd5_4ca8_3def_57da,
                0x7a38_9d10_354b_d271,
            ),
        ]);
    }

    #[test]
    fn the_worked_example_of_fips_81() {
        // "Now is the time for all " under the key 0123456789abcdef.
        let text = b"Now is the time for all ";
        let schedule = Schedule::new(0x0123_4567_89ab_cdef);
        let cipher: Vec<u64> = text
            .as_chunks::<8>()
            .0
            .iter()
            .map(|block| schedule.encrypt(u64::from_be_bytes(*block)))
            .collect();
        assert_eq!(
            cipher,
            [
                0x3fa4_0e8a_984d_4815,
                0x6a27_1787_ab88_83f9,
                0x893d_51ec_4b56_3b53
            ]
        );
    }

    #[test]
    fn the_textbook_example() {
        check(&[(
            0x1334_5779_9bbc_dff1,
            0x0123_4567_89ab_cdef,
            0x85e8_1354_0f0a_b405,
        )]);
    }

    #[test]
    fn fast_des_matches_reference_implementation() {
        let mut state = 1;
        for _ in 0..500 {
            let key = crate::probe::integer::chain(state, 1);
            let block = crate::probe::integer::chain(key, 1);
            state = block;
            assert_eq!(
                Schedule::new(key).encrypt(block),
                plain::encrypt(key, block),
                "key {key:016x} block {block:016x}"
            );
        }
    }

    #[test]
    fn complementing_key_and_text_complements_the_cipher() {
        let (key, block) = (0x1334_5779_9bbc_dff1u64, 0x0123_4567_89ab_cdefu64);
        assert_eq!(
            Schedule::new(!key).encrypt(!block),
            !Schedule::new(key).encrypt(block)
        );
    }
}
