//! Tests the disk probes on the real file system, and with a file system or syscall denied.

use std::collections::BTreeMap;

use tare_agent::meter::ProbeError;
use tare_model::{Params, Reason, Series, Unit};

use super::{Answer, FEWEST, Folder, failure, has_values, run, temporary, unshared};
use tare_testkit::skip::skip;

const SMALL: i64 = 4;

/// Whether io_uring is available here, by creating a ring.
fn has_ring() -> bool {
    match io_uring::IoUring::new(2) {
        Ok(_) => true,
        Err(error) => {
            skip("io_uring", &format!("there is no io_uring: {error}"));
            false
        }
    }
}

/// Returns the series of this metric, which must have values.
#[track_caller]
fn has(series: &[Series], metric: &str, unit: Unit) -> Series {
    has_values(series, metric, unit, FEWEST)
}

/// Returns a folder in memory; `None`, with a message, if there is none.
fn in_memory(name: &str) -> Option<Folder> {
    let shm = std::path::Path::new("/dev/shm");
    if tare_agent::direct_file::file_system(shm) != "tmpfs" {
        skip("tmpfs", "/dev/shm is no tmpfs");
        return None;
    }
    Some(Folder::new(shm, name))
}

/// Returns a probe's readings of a small file in a folder of this name, and the folder; nothing may be unavailable.
/// `None` without io_uring.
fn read_by(probe: &str, name: &str) -> Option<(Vec<Series>, Folder)> {
    if !has_ring() {
        return None;
    }
    let folder = temporary(name);
    let params = Params::new().with("file_mib", SMALL);
    let (series, unavailable) = run(probe, &folder, 15_000_000, &params).unwrap();
    assert_eq!(unavailable, BTreeMap::new());
    Some((series, folder))
}

#[test]
fn disk_random_gives_three_series_and_keeps_one_file() {
    let Some((series, folder)) = read_by("disk-random", "random") else {
        return;
    };
    assert_eq!(series.len(), 3);
    let sync = has(&series, "disk.random-read-sync.time", Unit::Nanosecond);
    has(&series, "disk.random-read-qd1.time", Unit::Nanosecond);
    let deep = has(
        &series,
        "disk.random-read-qd32.rate",
        Unit::OperationPerSecond,
    );
    assert!(
        sync.notes
            .iter()
            .any(|note| note.starts_with("file system "))
    );
    assert!(
        deep.notes
            .iter()
            .any(|note| note.contains("submitting 32 reads"))
    );
    assert_eq!(folder.files(), ["tare-read-4194304.dat"]);
}

#[test]
fn sequential_reads_give_both_series() {
    let Some((series, folder)) = read_by("disk-sequential", "sequential") else {
        return;
    };
    assert_eq!(series.len(), 2);
    has(&series, "disk.sequential-read.rate", Unit::BytePerSecond);
    has(
        &series,
        "disk.sequential-read-sync.rate",
        Unit::BytePerSecond,
    );
    assert_eq!(folder.files(), ["tare-read-4194304.dat"]);
}

#[test]
fn fsync_is_timed_and_its_file_is_removed() {
    let folder = temporary("fsync");
    let (series, _) = run("fsync", &folder, 5_000_000, &Params::new()).unwrap();
    let series = has(&series, "disk.fsync.time", Unit::Nanosecond);
    assert!(series.notes[0].starts_with("file system "), "{series:?}");
    assert!(folder.files().is_empty());
}

#[test]
fn fsync_on_tmpfs_is_noted_as_too_quick() {
    let Some(folder) = in_memory("fsync") else {
        return;
    };
    let (series, _) = run("fsync", &folder, 5_000_000, &Params::new()).unwrap();
    let notes = &series[0].notes;
    assert_eq!(notes[0], "file system tmpfs");
    assert!(
        notes.iter().any(|note| note.contains("too quick")),
        "{notes:?}"
    );
}

#[test]
fn disk_reads_on_tmpfs_are_noted_or_unavailable() {
    let Some(folder) = in_memory("random") else {
        return;
    };
    let params = Params::new().with("file_mib", SMALL);
    match run("disk-random", &folder, 5_000_000, &params) {
        // Linux before 6.6 has no O_DIRECT on tmpfs.
        Err(ProbeError::Unavailable(Reason::Unsupported(what))) => {
            assert!(what.contains("tmpfs"), "{what}");
        }
        Ok((series, _)) => {
            let notes = &series[0].notes;
            let is_said = notes
                .iter()
                .any(|note| note.starts_with("the device was not what was measured"));
            let is_countable = tare_agent::direct_file::device_read_bytes().is_some();
            assert_eq!(is_said, is_countable, "{notes:?}");
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn disk_argument_out_of_range_fails_before_setup() {
    let folder = temporary("arguments");
    for (name, params) in [
        ("disk-random", Params::new().with("file_mib", 0i64)),
        ("disk-random", Params::new().with("file_mib", "64")),
        ("disk-sequential", Params::new().with("depth", 65i64)),
        ("disk-sequential", Params::new().with("block_kib", 5i64)),
        (
            "disk-sequential",
            Params::new()
                .with("block_kib", 2048i64)
                .with("file_mib", 1i64),
        ),
    ] {
        let text = failure(run(name, &folder, 1_000_000, &params));
        assert!(!text.is_empty());
        assert!(folder.files().is_empty(), "{params:?}");
    }
}

/// Runs a probe in a work directory on a fresh file system of this type, in a separate mount namespace that ends with
/// the thread.
fn run_mounted(name: &'static str, kind: &'static str, flags: libc::c_ulong) -> Option<Answer> {
    unshared(libc::CLONE_NEWNS, move || {
        let folder = temporary(&format!("mounted-{name}-{kind}-{flags}"));
        let target = std::ffi::CString::new(folder.0.to_str().unwrap()).unwrap();
        let mount = |kind: &std::ffi::CStr, target: &std::ffi::CStr, flags| {
            // SAFETY: three NUL-terminated strings that live until the call returns; no data.
            let status = unsafe {
                libc::mount(
                    kind.as_ptr(),
                    target.as_ptr(),
                    kind.as_ptr(),
                    flags,
                    std::ptr::null(),
                )
            };
            assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
        };
        // Mounts here do not propagate to the original namespace.
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE);
        let kind = std::ffi::CString::new(kind).unwrap();
        mount(&kind, &target, flags);
        let params = Params::new().with("file_mib", SMALL);
        let answer = run(name, &folder, 2_000_000, &params);
        // SAFETY: a NUL-terminated string; only this namespace has the mount.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        answer
    })
}

#[test]
fn disk_probes_without_o_direct_are_unavailable() {
    for name in ["disk-random", "disk-sequential"] {
        let Some(answer) = run_mounted(name, "ramfs", 0) else {
            return;
        };
        let Err(ProbeError::Unavailable(Reason::Unsupported(what))) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(what, "O_DIRECT on this file system (ramfs)");
    }
}

#[test]
fn disk_probes_in_read_only_folder_are_unavailable() {
    for name in ["disk-random", "disk-sequential", "fsync"] {
        let Some(answer) = run_mounted(name, "tmpfs", libc::MS_RDONLY) else {
            return;
        };
        let Err(ProbeError::Unavailable(Reason::Unsupported(what))) = answer else {
            panic!("{answer:?}")
        };
        assert!(what.contains("read-only"), "{what}");
    }
}

/// Makes the syscalls in `blocked` fail with `EPERM` for this thread, as an engine's seccomp profile would.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "codes, numbers of calls and lengths as the kernel has them"
)]
fn block(blocked: &[libc::c_long]) {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    // The syscall number is the first field of the filter's input.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in blocked {
        let mut jump = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32);
        jump.jf = 1;
        program.push(jump);
        program.push(statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ));
    }
    program.push(statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ALLOW,
    ));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: takes four plain numbers; affects this thread only.
    let status = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(status, 0);
    // SAFETY: `program` points to `len` initialised instructions that live until the call returns; without the flag
    // TSYNC the filter applies to this thread only.
    let status = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
            0,
            0,
        )
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

fn run_blocked(call: libc::c_long, name: &'static str) -> Answer {
    std::thread::spawn(move || {
        block(&[call]);
        let folder = temporary(&format!("blocked-{name}-{call}"));
        let params = Params::new().with("file_mib", SMALL);
        run(name, &folder, 6_000_000, &params)
    })
    .join()
    .unwrap()
}

#[test]
fn blocked_io_uring_still_measures_sync_series() {
    if !has_ring() {
        return;
    }
    for (number, call) in [
        (libc::SYS_io_uring_setup, "io_uring_setup"),
        (libc::SYS_io_uring_enter, "io_uring_enter"),
    ] {
        let blocked = Reason::BlockedSyscall(call.into());
        let (series, unavailable) = run_blocked(number, "disk-random").unwrap();
        assert_eq!(series.len(), 1, "{series:?}");
        has(&series, "disk.random-read-sync.time", Unit::Nanosecond);
        assert_eq!(
            unavailable,
            BTreeMap::from([
                ("disk.random-read-qd1.time".to_owned(), blocked.clone()),
                ("disk.random-read-qd32.rate".to_owned(), blocked.clone()),
            ])
        );
        let (series, unavailable) = run_blocked(number, "disk-sequential").unwrap();
        assert_eq!(series.len(), 1, "{series:?}");
        has(
            &series,
            "disk.sequential-read-sync.rate",
            Unit::BytePerSecond,
        );
        assert_eq!(
            unavailable,
            BTreeMap::from([("disk.sequential-read.rate".to_owned(), blocked)])
        );
    }
}

#[test]
fn blocked_buffer_registration_falls_back_with_note() {
    if !has_ring() {
        return;
    }
    let (series, unavailable) = run_blocked(libc::SYS_io_uring_register, "disk-random").unwrap();
    assert_eq!(unavailable, BTreeMap::new());
    let deep = has(
        &series,
        "disk.random-read-qd32.rate",
        Unit::OperationPerSecond,
    );
    assert!(
        deep.notes
            .iter()
            .any(|note| note.starts_with("buffers could not be registered")),
        "{deep:?}"
    );
}
