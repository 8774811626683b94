//! Waits for a program's end and collects its resource usage, on Windows.
//!
//! CPU time is counted in clock ticks of some 16 ms: short programs often have none.
//! Limits: no page faults, context switches or block I/O, which the system does not count as Unix does.

use std::collections::BTreeMap;
use std::os::windows::io::{AsRawHandle, RawHandle};
use std::process::Child;
use std::time::Instant;

use tare_model::counter;
use tare_model::outcome::Exit;

use super::left;
use crate::meter::ProbeError;
use crate::windows::{done, length_of, times_ns};

/// No time limit (`INFINITE`).
const FOR_EVER: u32 = u32::MAX;

/// `PROCESS_MEMORY_COUNTERS`.
#[repr(C)]
#[derive(Default)]
struct Memory {
    size: u32,
    page_faults: u32,
    peak_working_set: usize,
    others: [usize; 7],
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn WaitForSingleObject(handle: RawHandle, limit_ms: u32) -> u32;
    fn GetExitCodeProcess(process: RawHandle, status: *mut u32) -> i32;
    fn K32GetProcessMemoryInfo(process: RawHandle, memory: *mut Memory, size: u32) -> i32;
}

/// When the program ended; Windows does not count how long its threads waited for a CPU.
pub(super) type Ending = Option<(Instant, Vec<(String, f64)>)>;

/// Waits until the program has exited.
pub(super) fn wait_for_end(child: &Child) -> Result<Ending, ProbeError> {
    // SAFETY: the handle of a child is open as long as the child is not dropped.
    match unsafe { WaitForSingleObject(child.as_raw_handle(), FOR_EVER) } {
        0 => Ok(Some((Instant::now(), Vec::new()))),
        _ => Err(ProbeError::last("WaitForSingleObject")),
    }
}

/// Returns the program's exit status and resource usage.
pub(super) fn wait(child: &Child) -> Result<(Exit, BTreeMap<String, f64>), ProbeError> {
    let process = child.as_raw_handle();
    let mut status = 0;
    // SAFETY: the handle of a child is open as long as the child is not dropped, and `status` lives.
    done(unsafe { GetExitCodeProcess(process, &raw mut status) })
        .map_err(|error| ProbeError::system("GetExitCodeProcess", &error))?;
    let mut usage = BTreeMap::new();
    let mut set = |name: &str, value: f64| usage.insert(name.to_owned(), value);
    if let Ok(own) = times_ns(process) {
        // Including its children, if the system counts those.
        let all = left::used_ns().unwrap_or_default();
        set(counter::USER, own[0].max(all[0]));
        set(counter::SYS, own[1].max(all[1]));
    }
    let mut memory = Memory {
        size: length_of::<Memory>(),
        ..Memory::default()
    };
    // SAFETY: the handle is open, and `memory` is live and holds its size.
    let answer = unsafe { K32GetProcessMemoryInfo(process, &raw mut memory, memory.size) };
    if answer != 0 && memory.peak_working_set > 0 {
        set(counter::MAX_RSS, memory.peak_working_set as f64);
    }
    if let Ok(count) = std::thread::available_parallelism() {
        set(counter::PERMITTED_CPUS, count.get() as f64);
    }
    Ok((Exit::Code(status.cast_signed()), usage))
}
