//! Collects Windows's facts, including whether it is Windows at all.
//!
//! Sources: the Windows SDK. Versions are those of the kernel, which no manifest hides (`RtlGetVersion`).
//! Limits: misses the edition, and limits of a job that this process did not make.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::io;
use std::os::windows::ffi::OsStrExt;

use tare_model::fact;

use super::Collector;
use crate::binding;
use crate::windows::{done, length_of, room};

/// `OSVERSIONINFOW`.
#[repr(C)]
#[derive(Default)]
struct Version {
    size: u32,
    major: u32,
    minor: u32,
    build: u32,
    platform: u32,
    // 128 UTF-16 units; `Default` exists only for arrays of up to 32.
    service_pack: [[u16; 32]; 4],
}

/// `MEMORYSTATUSEX`.
#[repr(C)]
#[derive(Default)]
struct Memory {
    size: u32,
    load: u32,
    total: u64,
    available: u64,
    others: [u64; 5],
}

#[link(name = "ntdll")]
unsafe extern "system" {
    fn RtlGetVersion(version: *mut Version) -> i32;
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GlobalMemoryStatusEx(memory: *mut Memory) -> i32;
    safe fn GetActiveProcessorCount(group: u16) -> u32;
    fn GetModuleHandleW(name: *const u16) -> *mut c_void;
    fn GetProcAddress(module: *mut c_void, name: *const c_char) -> *const c_void;
    fn GetVolumePathNameW(path: *const u16, root: *mut u16, length: u32) -> i32;
    fn GetVolumeInformationW(
        root: *const u16,
        label: *mut u16,
        label_length: u32,
        serial: *mut u32,
        longest_name: *mut u32,
        flags: *mut u32,
        system: *mut u16,
        system_length: u32,
    ) -> i32;
    fn GetDiskFreeSpaceExW(root: *const u16, own: *mut u64, total: *mut u64, free: *mut u64)
    -> i32;
}

/// All CPUs of all processor groups.
const ALL_GROUPS: u16 = 0xffff;

/// Collects all Windows facts; `paths` are those whose volume is wanted.
pub(super) fn collect(facts: &mut Collector, paths: &[String]) {
    imitated(facts);
    version(facts);
    memory(facts);
    facts.set(
        fact::CPU_COUNT,
        GetActiveProcessorCount(ALL_GROUPS).to_string(),
    );
    let cpus = binding::allowed().map(|cpus| {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        cpus.join(",")
    });
    facts.try_set(fact::CPU_AFFINITY, cpus);
    facts.set(fact::PID, std::process::id().to_string());
    if let Ok(name) = std::env::var("COMPUTERNAME") {
        facts.set(fact::KERNEL_HOSTNAME, name);
    }
    for path in paths {
        if let Err(error) = volume(facts, path) {
            facts.unreadable(&fact::name_for(fact::MOUNT, path), &error);
        }
    }
}

/// Detects Wine by a function that only its ntdll has.
fn imitated(facts: &mut Collector) {
    let name = crate::windows::wide("ntdll.dll");
    // SAFETY: the name ends with a zero; the library is in every process, and the handle must not be freed.
    let found = unsafe {
        let library = GetModuleHandleW(name.as_ptr());
        GetProcAddress(library, c"wine_get_version".as_ptr())
    };
    if found.is_null() {
        return;
    }
    // SAFETY: a function of this name is Wine's, takes no arguments, and returns a static NUL-terminated string.
    let version = unsafe {
        let tell: extern "C" fn() -> *const c_char = std::mem::transmute(found);
        CStr::from_ptr(tell()).to_string_lossy()
    };
    facts.set(fact::WINE_EMULATED, "true");
    facts.set(
        fact::WINE_EMULATED_DETAIL,
        format!("Wine {version}: another system's imitation of Windows, not Windows' cost"),
    );
}

fn version(facts: &mut Collector) {
    let mut version = Version {
        size: length_of::<Version>(),
        ..Version::default()
    };
    // SAFETY: the structure has the documented layout, is live, and holds its size.
    if unsafe { RtlGetVersion(&raw mut version) } == 0 {
        let Version {
            major,
            minor,
            build,
            ..
        } = version;
        facts.set(fact::KERNEL_RELEASE, format!("{major}.{minor}.{build}"));
        facts.set(fact::OS_NAME, format!("Windows {major}.{minor}.{build}"));
    }
}

fn memory(facts: &mut Collector) {
    let mut memory = Memory {
        size: length_of::<Memory>(),
        ..Memory::default()
    };
    // SAFETY: `memory` is a live MEMORYSTATUSEX whose first field holds its size, as the call requires.
    if unsafe { GlobalMemoryStatusEx(&raw mut memory) } != 0 {
        facts.set(fact::MEMORY_TOTAL, memory.total.to_string());
        facts.set(fact::MEMORY_AVAILABLE, memory.available.to_string());
    } else {
        facts.unreadable(fact::MEMORY_TOTAL, &io::Error::last_os_error());
    }
}

/// Records the volume of a path: its mount point, file system and free space.
fn volume(facts: &mut Collector, path: &str) -> io::Result<()> {
    let wanted: Vec<u16> = OsStr::new(path).encode_wide().chain([0]).collect();
    let mut root = [0u16; 512];
    // SAFETY: the path ends with a zero, and the buffer has the length that is given.
    done(unsafe { GetVolumePathNameW(wanted.as_ptr(), root.as_mut_ptr(), room(&root)) })?;
    let mut system = [0u16; 64];
    // SAFETY: the root was just written with a zero at its end; null pointers skip an answer, and the last buffer has
    // the length that is given.
    done(unsafe {
        GetVolumeInformationW(
            root.as_ptr(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            system.as_mut_ptr(),
            room(&system),
        )
    })?;
    let text = |letters: &[u16]| {
        let end = letters.iter().position(|letter| *letter == 0);
        String::from_utf16_lossy(&letters[..end.unwrap_or(letters.len())])
    };
    facts.set(&fact::name_for(fact::MOUNT_POINT, path), text(&root));
    facts.set(&fact::name_for(fact::MOUNT_FSTYPE, path), text(&system));
    let mut free = 0;
    // SAFETY: the root ends with a zero; null pointers ask for nothing, and `free` lives.
    let answer = unsafe {
        GetDiskFreeSpaceExW(
            root.as_ptr(),
            &raw mut free,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if answer != 0 {
        facts.set(&fact::name_for(fact::MOUNT_FREE, path), free.to_string());
    }
    Ok(())
}
