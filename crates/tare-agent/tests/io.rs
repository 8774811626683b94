//! The disk and network probes, run for a few milliseconds on this machine.
//!
//! These are the real probes on the real file system and the real loopback; no test asserts a speed.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and says when it is skipped"
)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe;
use tare_model::{Failure, Params, Reason, Series, Unit};

/// A work directory that is removed with everything in it.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &std::path::Path, name: &str) -> Self {
        let folder = parent.join(format!("tare-io-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Fewest values of a series whose length the probe itself controls.
const FEWEST: usize = 5;

type Answer = Result<(Vec<Series>, BTreeMap<String, Reason>), ProbeError>;

fn run(name: &str, folder: &Folder, target_ns: u64, params: &Params) -> Answer {
    let mut meter = Meter::new(target_ns, &folder.0);
    (probe::find(name).unwrap().run)(&mut meter, params)?;
    let unavailable = meter.take_unavailable();
    Ok((meter.finish().0, unavailable))
}

fn temporary(name: &str) -> Folder {
    Folder::new(&std::env::temp_dir(), name)
}

#[track_caller]
fn has_values(series: &[Series], metric: &str, unit: Unit, fewest: usize) -> Series {
    let found = series
        .iter()
        .find(|series| series.metric == metric)
        .unwrap_or_else(|| panic!("no {metric}"));
    assert_eq!(found.unit, unit);
    assert!(found.values.len() >= fewest, "{found:?}");
    assert!(
        found.values.iter().all(|v| v.is_finite() && *v > 0.0),
        "{found:?}"
    );
    assert!(found.batch > 0, "{found:?}");
    found.clone()
}

#[track_caller]
fn failure(answer: Answer) -> String {
    match answer {
        Err(ProbeError::Failed(failure)) => failure.to_string(),
        other => panic!("not a failure: {other:?}"),
    }
}

/// Runs `work` on a thread with namespaces of its own; `None`, with a word, where that is not allowed.
#[cfg(target_os = "linux")]
fn unshared<T: Send + 'static>(
    flags: libc::c_int,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    std::thread::spawn(move || {
        // SAFETY: takes one number; neither flag used here needs a process of a single thread, and what it
        // unshares is this thread's alone.
        if unsafe { libc::unshare(flags) } == 0 {
            return Some(work());
        }
        let error = std::io::Error::last_os_error();
        assert!(
            !std::env::var("TARE_REQUIRE").is_ok_and(|names| names.contains("root")),
            "root is required: {error}"
        );
        println!("skipped: namespaces: {error}");
        None
    })
    .join()
    .unwrap()
}

#[cfg(target_os = "linux")]
mod disk {
    use super::*;

    const SMALL: i64 = 4;

    /// Whether io_uring is to be had here, by asking for one.
    fn has_ring() -> bool {
        match io_uring::IoUring::new(2) {
            Ok(_) => true,
            Err(error) => {
                assert!(
                    !std::env::var("TARE_REQUIRE").is_ok_and(|names| names.contains("io_uring")),
                    "io_uring is required: {error}"
                );
                println!("skipped: io_uring: {error}");
                false
            }
        }
    }

    #[test]
    fn random_reads_give_all_three_series_and_keep_only_the_prepared_file() {
        if !has_ring() {
            return;
        }
        let folder = temporary("random");
        let params = Params::new().with("file_mib", SMALL);
        let (series, unavailable) = run("disk-random", &folder, 15_000_000, &params).unwrap();
        assert_eq!(unavailable, BTreeMap::new());
        assert_eq!(series.len(), 3);
        let sync = has_values(
            &series,
            "disk.random-read-sync.time",
            Unit::Nanosecond,
            FEWEST,
        );
        has_values(
            &series,
            "disk.random-read-qd1.time",
            Unit::Nanosecond,
            FEWEST,
        );
        let deep = has_values(
            &series,
            "disk.random-read-qd32.rate",
            Unit::OperationPerSecond,
            FEWEST,
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
        if !has_ring() {
            return;
        }
        let folder = temporary("sequential");
        let params = Params::new().with("file_mib", SMALL);
        let (series, unavailable) = run("disk-sequential", &folder, 15_000_000, &params).unwrap();
        assert_eq!(unavailable, BTreeMap::new());
        assert_eq!(series.len(), 2);
        has_values(
            &series,
            "disk.sequential-read.rate",
            Unit::BytePerSecond,
            FEWEST,
        );
        has_values(
            &series,
            "disk.sequential-read-sync.rate",
            Unit::BytePerSecond,
            FEWEST,
        );
        assert_eq!(folder.files(), ["tare-read-4194304.dat"]);
    }

    #[test]
    fn a_synchronised_write_is_timed_and_its_file_is_gone_afterwards() {
        let folder = temporary("fsync");
        let (series, _) = run("fsync", &folder, 5_000_000, &Params::new()).unwrap();
        let series = has_values(&series, "disk.fsync.time", Unit::Nanosecond, FEWEST);
        assert!(series.notes[0].starts_with("file system "), "{series:?}");
        assert!(folder.files().is_empty());
    }

    #[test]
    fn a_write_on_memory_is_remarked_upon_as_too_quick_for_a_flush() {
        let shm = std::path::Path::new("/dev/shm");
        if tare_agent::direct_file::file_system(shm) != "tmpfs" {
            println!("skipped: /dev/shm is no tmpfs");
            return;
        }
        let folder = Folder::new(shm, "fsync");
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
        let shm = std::path::Path::new("/dev/shm");
        if tare_agent::direct_file::file_system(shm) != "tmpfs" {
            println!("skipped: /dev/shm is no tmpfs");
            return;
        }
        let folder = Folder::new(shm, "random");
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
            has_values(
                &series,
                "disk.random-read-sync.time",
                Unit::Nanosecond,
                FEWEST,
            );
            assert_eq!(
                unavailable,
                BTreeMap::from([
                    ("disk.random-read-qd1.time".to_owned(), blocked.clone()),
                    ("disk.random-read-qd32.rate".to_owned(), blocked.clone()),
                ])
            );
            let (series, unavailable) = run_blocked(number, "disk-sequential").unwrap();
            assert_eq!(series.len(), 1, "{series:?}");
            has_values(
                &series,
                "disk.sequential-read-sync.rate",
                Unit::BytePerSecond,
                FEWEST,
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
        let (series, unavailable) =
            run_blocked(libc::SYS_io_uring_register, "disk-random").unwrap();
        assert_eq!(unavailable, BTreeMap::new());
        let deep = has_values(
            &series,
            "disk.random-read-qd32.rate",
            Unit::OperationPerSecond,
            FEWEST,
        );
        assert!(
            deep.notes
                .iter()
                .any(|note| note.starts_with("buffers could not be registered")),
            "{deep:?}"
        );
    }
}

mod network {
    use super::*;

    #[test]
    fn a_round_trip_over_the_loopback_needs_no_peer() {
        let folder = temporary("round-trip");
        for bytes in [1i64, 64, 1024] {
            let params = Params::new().with("bytes", bytes);
            let (series, _) = run("tcp-round-trip", &folder, 5_000_000, &params).unwrap();
            has_values(&series, "net.tcp.round-trip.time", Unit::Nanosecond, FEWEST);
        }
    }

    #[test]
    fn a_stream_over_the_loopback_needs_no_peer() {
        let folder = temporary("stream");
        let (series, _) = run("tcp-stream", &folder, 20_000_000, &Params::new()).unwrap();
        has_values(&series, "net.tcp.throughput.rate", Unit::BytePerSecond, 1);
    }

    /// Runs `server` on a thread and `client` against the port that it announced.
    fn pair(server: &'static str, client: &str) -> (Answer, Answer) {
        let (announced, port) = mpsc::channel();
        let thread = std::thread::spawn(move || -> Answer {
            let folder = temporary(server);
            let mut meter = Meter::new(5_000_000, &folder.0);
            meter.set_announcer(Box::new(move |port| announced.send(port).unwrap()));
            (probe::find(server).unwrap().run)(&mut meter, &Params::new())?;
            let unavailable = meter.take_unavailable();
            Ok((meter.finish().0, unavailable))
        });
        let port = port.recv_timeout(Duration::from_secs(5)).unwrap();
        let folder = temporary(client);
        let params = Params::new()
            .with("address", "127.0.0.1")
            .with("port", i64::from(port));
        let answer = run(client, &folder, 10_000_000, &params);
        (thread.join().unwrap(), answer)
    }

    #[test]
    fn the_far_end_announces_its_port_serves_to_the_end_and_reports_nothing() {
        for (server, client, metric, unit, fewest) in [
            (
                "tcp-echo",
                "tcp-round-trip",
                "net.tcp.round-trip.time",
                Unit::Nanosecond,
                FEWEST,
            ),
            (
                "tcp-sink",
                "tcp-stream",
                "net.tcp.throughput.rate",
                Unit::BytePerSecond,
                // A busy machine may stop a stream of a few milliseconds for most of them.
                1,
            ),
        ] {
            let (served, measured) = pair(server, client);
            assert_eq!(served, Ok((Vec::new(), BTreeMap::new())));
            let (series, _) = measured.unwrap();
            assert_eq!(series.len(), 1);
            has_values(&series, metric, unit, fewest);
        }
    }

    #[test]
    fn a_peer_that_closes_at_once_is_a_failure_and_no_hang() {
        for client in ["tcp-round-trip", "tcp-stream"] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let thread = std::thread::spawn(move || drop(listener.accept().unwrap()));
            let folder = temporary(&format!("closing-{client}"));
            let params = Params::new()
                .with("address", "127.0.0.1")
                .with("port", i64::from(port));
            let begin = Instant::now();
            let text = failure(run(client, &folder, 50_000_000, &params));
            assert!(text.contains("connection"), "{text}");
            assert!(begin.elapsed() < Duration::from_secs(4));
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_port_that_nobody_listens_on_is_a_quick_failure() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        for client in ["tcp-round-trip", "tcp-stream"] {
            let folder = temporary(&format!("nobody-{client}"));
            let params = Params::new()
                .with("address", "127.0.0.1")
                .with("port", i64::from(port));
            let begin = Instant::now();
            let text = failure(run(client, &folder, 50_000_000, &params));
            assert!(
                text.contains(&format!("connect to 127.0.0.1:{port}")),
                "{text}"
            );
            assert!(begin.elapsed() < Duration::from_secs(2));
        }
    }

    #[test]
    fn a_port_that_swallows_everything_is_given_up_within_two_seconds() {
        // A full backlog answers no further connection, as a firewall that drops would.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        let is_full = (0..10_000).any(|_| {
            match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
                Ok(stream) => {
                    waiting.push(stream);
                    false
                }
                Err(_) => true,
            }
        });
        if !is_full {
            println!("skipped: the backlog did not fill");
            return;
        }
        let folder = temporary("swallowed");
        let params = Params::new()
            .with("address", "127.0.0.1")
            .with("port", i64::from(address.port()));
        let begin = Instant::now();
        let text = failure(run("tcp-round-trip", &folder, 5_000_000, &params));
        assert!(text.contains("no answer within 2 s"), "{text}");
        assert!(begin.elapsed() < Duration::from_secs(4));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_loopback_that_is_down_is_a_reason_and_no_failure() {
        for name in ["tcp-round-trip", "tcp-stream"] {
            let answer = unshared(libc::CLONE_NEWNET, move || {
                let folder = temporary(&format!("down-{name}"));
                run(name, &folder, 1_000_000, &Params::new())
            });
            match answer {
                None => return,
                Some(Err(ProbeError::Unavailable(Reason::NoPath(what)))) => {
                    assert!(what.starts_with("127.0.0.1"), "{what}");
                }
                Some(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_failure_is_no_reason_and_says_what_happened_in_one_line() {
        let folder = temporary("words");
        let params = Params::new()
            .with("address", "not\nan address")
            .with("port", 1i64);
        let text = failure(run("tcp-stream", &folder, 1_000_000, &params));
        assert!(!text.contains('\n'), "{text}");
        assert!(matches!(
            run(
                "tcp-round-trip",
                &folder,
                1,
                &Params::new().with("bytes", 2_000i64)
            ),
            Err(ProbeError::Failed(Failure::Probe(_)))
        ));
    }
}
