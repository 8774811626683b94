//! Restricts the devices that the inside may use to those that engines allow.
//!
//! Under version 1 the `devices` controller has a list; under version 2 a BPF program on the cgroup decides. The
//! program is written here as instructions, because it is shorter than a compiler would be. As with engines, any node
//! may be made, but only the listed ones can be opened.
//! Limits: does not affect devices that were opened before the cgroup was joined.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use tare_model::launch::DeviceRules;

use super::control::{self, Group};
use super::sys;

/// Character devices by major and minor number; `None` means every minor (runc, `libcontainer/specconv`,
/// `AllowedDevices`: null, zero, full, random, urandom, tty, console, ptmx, pseudo-terminals).
const ALLOWED: [(u32, Option<u32>); 9] = [
    (1, Some(3)),
    (1, Some(5)),
    (1, Some(7)),
    (1, Some(8)),
    (1, Some(9)),
    (5, Some(0)),
    (5, Some(1)),
    (5, Some(2)),
    (136, None),
];

/// Sets the rules on the instance's cgroups; the error is a text that says why not.
pub(super) fn set(groups: &[Group]) -> Result<DeviceRules, String> {
    let list = groups
        .iter()
        .find(|group| !group.hierarchy.is_unified && group.hierarchy.has("devices"));
    if let Some(group) = list {
        return set_list(&group.folder)
            .map(|()| DeviceRules::List)
            .map_err(|error| format!("the list of `{}`: {error}", group.folder.display()));
    }
    let Some(group) = groups.iter().find(|group| group.hierarchy.is_unified) else {
        return Err("there is no cgroup of its own with device rules".into());
    };
    attach_program(&group.folder)
        .map(|()| DeviceRules::Program)
        .map_err(|error| format!("a program on `{}`: {error}", group.folder.display()))
}

fn set_list(folder: &Path) -> io::Result<()> {
    control::write(&folder.join("devices.deny"), "a")?;
    let allow = folder.join("devices.allow");
    for kind in ["c", "b"] {
        control::write(&allow, &format!("{kind} *:* m"))?;
    }
    for (major, minor) in ALLOWED {
        let minor = minor.map_or_else(|| "*".to_owned(), |minor| minor.to_string());
        control::write(&allow, &format!("c {major}:{minor} rwm"))?;
    }
    Ok(())
}

/// Encodes a BPF instruction (Documentation/bpf/standardization/instruction-set.rst): operation, destination and
/// source register, offset, number.
fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    let registers = u64::from(from << 4 | to) << 8;
    let offset = u64::from(offset.cast_unsigned()) << 16;
    u64::from(code) | registers | offset | u64::from(number.cast_unsigned()) << 32
}

/// Returns the BPF program, which returns 1 if the device may be used. Its argument is a `struct bpf_cgroup_dev_ctx`
/// of include/uapi/linux/bpf.h: access (high half) and type (low half), major, minor.
fn program() -> Vec<u64> {
    const CONTEXT: u8 = 1;
    const ACCESS: u8 = 2;
    const TYPE: u8 = 3;
    const MAJOR: u8 = 4;
    const MINOR: u8 = 5;
    /// `BPF_DEVCG_ACC_MKNOD` alone.
    const MAKING: i32 = 1;
    /// `BPF_DEVCG_DEV_CHAR`.
    const CHARACTER: i32 = 2;
    let load = |to, offset| instruction(0x61, to, CONTEXT, offset, 0);
    let skip_unless = |register, number: i32, count| instruction(0x55, register, 0, count, number);
    let answer = |number| {
        [
            instruction(0xb7, 0, 0, 0, number),
            instruction(0x95, 0, 0, 0, 0),
        ]
    };

    let mut program = vec![
        load(ACCESS, 0),
        load(MAJOR, 4),
        load(MINOR, 8),
        instruction(0xbf, TYPE, ACCESS, 0, 0),
        // The lower and the upper half.
        instruction(0x54, TYPE, 0, 0, 0xffff),
        instruction(0x74, ACCESS, 0, 0, 16),
        skip_unless(ACCESS, MAKING, 2),
    ];
    program.extend(answer(1));
    program.push(instruction(0x15, TYPE, 0, 2, CHARACTER));
    program.extend(answer(0));
    for (major, minor) in ALLOWED {
        program.push(skip_unless(
            MAJOR,
            major.cast_signed(),
            2 + i16::from(minor.is_some()),
        ));
        if let Some(minor) = minor {
            program.push(skip_unless(MINOR, minor.cast_signed(), 2));
        }
        program.extend(answer(1));
    }
    program.extend(answer(0));
    program
}

/// Loads the program and attaches it to a cgroup; programs on the cgroups above stay in effect.
fn attach_program(folder: &Path) -> io::Result<()> {
    // From include/uapi/linux/bpf.h.
    const PROG_LOAD: libc::c_int = 5;
    const PROG_ATTACH: libc::c_int = 8;
    const TYPE_CGROUP_DEVICE: u64 = 15;
    const ATTACH_CGROUP_DEVICE: u64 = 6;
    const ALLOW_MULTI: u64 = 2;
    let low_and_high = |low: u64, high: u64| low | high << 32;

    let program = program();
    // The first words of the load attributes: type and length, program, licence.
    let words = [
        low_and_high(TYPE_CGROUP_DEVICE, program.len() as u64),
        program.as_ptr().addr() as u64,
        c"Apache-2.0".as_ptr().addr() as u64,
    ];
    let loaded = sys::bpf(PROG_LOAD, &words)?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "descriptors are of 32 bits"
    )]
    let loaded = loaded as libc::c_int;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    let loaded = unsafe { OwnedFd::from_raw_fd(loaded) };
    let group = File::open(folder)?;
    let [group_fd, loaded_fd] =
        [group.as_raw_fd(), loaded.as_raw_fd()].map(|fd| u64::from(fd.cast_unsigned()));
    // Cgroup and program, attach type and flags.
    let words = [
        low_and_high(group_fd, loaded_fd),
        low_and_high(ATTACH_CGROUP_DEVICE, ALLOW_MULTI),
    ];
    sys::bpf(PROG_ATTACH, &words).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup;
    use crate::skip::skip;

    /// Interprets the program on a request, as the kernel would; supports only the instructions that it uses.
    fn decide(access: u32, kind: u32, major: u32, minor: u32) -> u64 {
        let context = [access << 16 | kind, major, minor];
        let program = program();
        let mut registers = [0u64; 6];
        let mut at = 0usize;
        loop {
            let word = program[at];
            let to = (word >> 8 & 15) as usize;
            let from = (word >> 12 & 15) as usize;
            let offset = usize::from((word >> 16 & 0xffff) as u16);
            let number = (word >> 32) as u32;
            at += 1;
            match word & 0xff {
                0x61 => registers[to] = u64::from(context[offset / 4]),
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = u64::from(number),
                0x54 => registers[to] &= u64::from(number),
                0x74 => registers[to] >>= number,
                0x15 if registers[to] == u64::from(number) => at += offset,
                0x55 if registers[to] != u64::from(number) => at += offset,
                0x15 | 0x55 => {}
                0x95 => return registers[0],
                other => panic!("unknown operation {other:#x}"),
            }
        }
    }

    #[test]
    fn device_program_allows_listed_devices_and_any_mknod() {
        let (making, reading, writing) = (1, 2, 4);
        let (block, character) = (1, 2);
        assert_eq!(decide(reading | writing, character, 1, 3), 1);
        assert_eq!(decide(reading, character, 136, 77), 1);
        assert_eq!(decide(making, block, 8, 0), 1);
        for (kind, major, minor) in [
            (block, 8, 0),
            (block, 1, 3),
            (character, 1, 1),
            (character, 10, 229),
        ] {
            assert_eq!(
                decide(reading, kind, major, minor),
                0,
                "{kind} {major}:{minor}"
            );
            assert_eq!(
                decide(making | writing, kind, major, minor),
                0,
                "{kind} {major}:{minor}"
            );
        }
    }

    /// Reports, from a child that has joined the cgroups, whether a listed device can be opened and /dev/kmsg is
    /// refused.
    fn outcome_inside(folder: &Path) -> i32 {
        let procs = std::ffi::CString::new(folder.join("cgroup.procs").to_str().unwrap()).unwrap();
        // SAFETY: the child calls only raw system calls and _exit, which is safe after a fork.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                let group = libc::open(procs.as_ptr(), libc::O_WRONLY);
                let has_joined = libc::write(group, c"0".as_ptr().cast(), 1) == 1;
                let may_null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) >= 0;
                let may_log = libc::open(c"/dev/kmsg".as_ptr(), libc::O_RDONLY) >= 0;
                libc::_exit(
                    i32::from(has_joined) + 2 * i32::from(may_null) + 4 * i32::from(may_log),
                );
            }
            sys::reap(child, true).unwrap().unwrap()
        }
    }

    #[test]
    fn the_kernel_keeps_to_the_list_and_to_the_program() {
        for hierarchy in cgroup::mounted() {
            if !hierarchy.is_unified && !hierarchy.has("devices") {
                continue;
            }
            let folder = hierarchy
                .own
                .join(format!("tare-devices-{}", std::process::id()));
            if let Err(error) = std::fs::create_dir(&folder) {
                skip("device-rules", &format!("{}: {error}", folder.display()));
                continue;
            }
            let before = outcome_inside(&folder);
            let is_unified = hierarchy.is_unified;
            let set = set(&[Group {
                folder: folder.clone(),
                hierarchy,
            }]);
            let after = outcome_inside(&folder);
            std::fs::remove_dir(&folder).unwrap();
            match set {
                Ok(rules) => {
                    assert_eq!(rules == DeviceRules::Program, is_unified);
                    assert_eq!((before, after), (7, 3), "{rules:?}");
                }
                // On a machine with other rules or without the privileges.
                Err(why) => skip("device-rules", &why),
            }
        }
    }
}
