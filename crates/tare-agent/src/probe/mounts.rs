//! `mounts`: reads the list of mounts.
//!
//! Inside the timed region: opening `/proc/self/mountinfo`, reading it to its end and closing it; the kernel
//! generates the text each time. Outside: everything else. On Windows `GetLogicalDrives`: one word with a bit for
//! each drive letter.
//! Known bias: grows with the number of mounts, which the arm decides and which is part of the measurement; a note
//! gives the number of lines.
//! Correspondence: "Get Logical Drives" of a published comparison of containers (2019), where a runtime reads this
//! list on Linux and one word from the kernel on the other system; so its ratio says nothing about file systems.
//! Source: proc_pid_mountinfo(5).

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "mounts": "opening, reading and closing /proc/self/mountinfo";
    revision 1, cut KERNEL
}

super::needs!(linux or windows, "/proc/self/mountinfo");

#[cfg(windows)]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetLogicalDrives() -> u32;
    }

    let mut drives = 0;
    meter.loops("fs.mount-list.time", 1.0, |times| {
        for _ in 0..times {
            drives = std::hint::black_box(GetLogicalDrives());
            if drives == 0 {
                return Err(ProbeError::last("GetLogicalDrives"));
            }
        }
        Ok(())
    })?;
    meter.note(format!("{} drives", drives.count_ones()));
    Ok(())
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::io::Read;

    use tare_model::Reason;

    let place = "/proc/self/mountinfo";
    let mut text = Vec::with_capacity(64 << 10);
    if let Err(error) = std::fs::File::open(place) {
        return Err(ProbeError::Unavailable(Reason::Unsupported(format!(
            "{place}: {error}"
        ))));
    }
    meter.loops("fs.mount-list.time", 1.0, |times| {
        for _ in 0..times {
            text.clear();
            std::fs::File::open(place)
                .and_then(|mut file| file.read_to_end(&mut text))
                .map_err(|error| ProbeError::system("read the list of mounts", &error))?;
        }
        Ok(())
    })?;
    let n_lines = text.split(|byte| *byte == b'\n').count() - 1;
    meter.note(format!("{n_lines} mounts"));
    Ok(())
}
