//! `des`: the encryption of Danilova and Sergeev (2024), as a workload.
//!
//! Table look-ups and dependent shifts on one core; no memory traffic, no system call. What it cannot see:
//! hardware cryptography, which a guest's processor model may hide.

use super::probe_output::probe;

probe! {
    "des": "DES encryption of 80 000 characters";
    "cpu.des.time", Nanosecond, Lower, Compute, floor: "DES encryption of 80 000 characters, 10 000 blocks in electronic codebook mode, key schedule prepared.";
}
