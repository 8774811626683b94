//! The disk probes on the real file system, and where it or a system call is denied.

use std::collections::BTreeMap;

use tare_agent::meter::ProbeError;
use tare_model::{Params, Reason, Series, Unit};

use super::{Answer, FEWEST, Folder, failure, has_values, run, temporary, unshared};
use tare_testkit::skip::skip;

const SMALL: i64 = 4;

/// Whether io_uring is to be had here, by asking for one.
fn has_ring() -> bool {
    match io_uring::IoUring::new(2) {
        Ok(_) => true,
        Err(error) => {
            skip("io_uring", &format!("there is no io_uring: {error}"));
            false
        }
    }
}

/// The series of this metric, which must have values.
#[track_caller]
fn has(series: &[Series], metric: &str, unit: Unit) -> Series {
    has_values(series, metric, unit, FEWEST)
}

/// A folder in memory; `None`, with a word, where none is to be had.
fn in_memory(name: &str) -> Option<Folder> {
    let shm = std::path::Path::new("/dev/shm");
    if tare_agent::direct_file::file_system(shm) != "tmpfs" {
        skip("tmpfs", "/dev/shm is no tmpfs");
        return None;
    }
    Some(Folder::new(shm, name))
}

/// What a probe reads of a small file in a folder of this name, with nothing unavailable; and the folder. `None` where
/// there is no io_uring.
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
fn random_reads_give_all_three_series_and_keep_only_the_prepared_file() {
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
fn a_synchronised_write_is_timed_and_its_file_is_gone_afterwards() {
    let folder = temporary("fsync");
    let (series, _) = run("fsync", &folder, 5_000_000, &Params::new()).unwrap();
    let series = has(&series, "disk.fsync.time", Unit::Nanosecond);
    assert!(series.notes[0].starts_with("file system "), "{series:?}");
    assert!(folder.files().is_empty());
}

#[test]
fn a_write_on_memory_is_remarked_upon_as_too_quick_for_a_flush() {
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
fn reads_that_memory_answers_are_remarked_upon_or_refused() {
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
fn arguments_out_of_range_are_refused_before_anything_is_made() {
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

/// Runs a probe in a work directory on a fresh file system of this type, in a mount namespace of its
/// own; it is gone with the thread.
fn run_mounted(name: &'static str, kind: &'static str, flags: libc::c_ulong) -> Option<Answer> {
    unshared(libc::CLONE_NEWNS, move || {
        let folder = temporary(&format!("mounted-{name}-{kind}-{flags}"));
        let target = std::ffi::CString::new(folder.0.to_str().unwrap()).unwrap();
        let mount = |kind: &std::ffi::CStr, target: &std::ffi::CStr, flags| {
            // SAFETY: three texts that end in zero and live until the call returns; no data.
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
        // Nothing of this reaches the namespace that we came from.
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE);
        let kind = std::ffi::CString::new(kind).unwrap();
        mount(&kind, &target, flags);
        let params = Params::new().with("file_mib", SMALL);
        let answer = run(name, &folder, 2_000_000, &params);
        // SAFETY: a text that ends in zero; only this namespace has the mount.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        answer
    })
}

#[test]
fn a_file_system_without_direct_reads_makes_the_disk_probes_unavailable() {
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
fn a_read_only_work_directory_makes_the_disk_probes_unavailable() {
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

/// Makes the calls `blocked` fail with `EPERM` for this thread, as an engine's seccomp profile would.
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
    // The number of the call is the first field of what a filter sees.
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
    // SAFETY: `program` points to `len` initialised instructions that live until the call returns;
    // without the flag TSYNC the filter is this thread's alone.
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
fn where_io_uring_is_blocked_the_synchronous_series_are_still_measured() {
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
fn where_buffers_may_not_be_registered_reads_go_on_without_and_say_so() {
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
