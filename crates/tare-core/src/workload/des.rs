//! `des`: the encryption workload of Danilova and Sergeev (2024).
//!
//! Table look-ups and dependent shifts on one core, without memory traffic or syscalls.
//! Limits: does not use hardware cryptography, which a guest's CPU model may hide.

use super::probe_output::probe;

probe! {
    "des": "DES encryption of 80 000 characters";
    "cpu.des.time", Nanosecond, Lower, Compute, floor: "DES encryption of 80 000 characters, 10 000 blocks in electronic codebook mode, key schedule prepared.";
}
