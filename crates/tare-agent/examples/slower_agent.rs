//! An agent whose loop and system call do more than they say where a variable asks for it.
//!
//! For `cargo xtask slower`: `PLANTED_PER_MILLE=10` makes both one percent longer, exactly, under the names and
//! metrics of the real probes. The shipped agent has nothing of this.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::OnceLock;

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe::{Cut, Probe};
use tare_model::Params;

static INTEGER: Probe = Probe {
    name: "integer",
    revision: 1,
    about: "a chain of integer operations, and what is planted",
    cut: Cut::LOOP,
    run: integer,
};

static GETPPID: Probe = Probe {
    name: "getppid",
    revision: 1,
    about: "a system call, and what is planted",
    cut: Cut::LOOP,
    run: getppid,
};

/// So many operations and what is planted on them, rounded.
fn with_planted(operations: u64) -> u64 {
    // Read once: in every slice it would add another hundredth of a per cent.
    static PLANTED: OnceLock<u64> = OnceLock::new();
    let planted = *PLANTED.get_or_init(|| {
        let text = std::env::var("PLANTED_PER_MILLE").ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    operations + (operations * planted + 500) / 1_000
}

fn integer(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.loops("cpu.integer.time", 1.0, |steps| {
        let mut state = black_box(0x9e37_79b9_7f4a_7c15u64);
        for _ in 0..with_planted(steps) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        }
        black_box(state);
        Ok(())
    })
}

#[cfg(target_os = "linux")]
fn getppid(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.loops("syscall.getppid.time", 1.0, |calls| {
        for _ in 0..with_planted(calls) {
            // SAFETY: getppid takes no argument, touches no memory of ours and cannot fail.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
        Ok(())
    })
}

#[cfg(not(target_os = "linux"))]
fn getppid(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(ProbeError::Unavailable(tare_model::Reason::Unsupported(
        "direct system calls".to_owned(),
    )))
}

fn main() -> ExitCode {
    tare_agent::entry::entry(&[&INTEGER, &GETPPID])
}
