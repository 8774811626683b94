//! Tests a kernel that refuses the launcher's syscalls, one after the other.

use crate::prelude::*;

use tare_model::launch::{LaunchReport, LaunchState, REFUSED_STATUS};

use super::{assert_nothing_stays, launcher, roots, shell};

/// The syscalls that create a container, and which of their occurrences are refused.
const CALLS: [&str; 7] = [
    "mount",
    "clone,clone3",
    "unshare,setns",
    "pivot_root",
    "capset",
    "prctl",
    "umount2",
];
const NTH: [u32; 3] = [1, 3, 9];

#[test]
fn refused_syscall_gives_reason_without_leftovers() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("strace", "strace is not installed");
    }
    let (_turn, world) = needed!(roots("refused"));
    let before = Snapshot::take(&world);
    let mut n_refused = 0;
    for (call, nth) in CALLS.iter().flat_map(|call| NTH.map(|nth| (call, nth))) {
        let spec = shell(&world, "exit 0");
        let inner = launcher(&world, &spec);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "--output=/dev/null"]);
        command.args([
            format!("--trace={call}"),
            format!("--inject={call}:error=EPERM:when={nth}"),
        ]);
        command
            .arg("--")
            .arg(inner.get_program())
            .args(inner.get_args());
        command.env("TARE_RUN", world.run.as_str());
        let output = command.output().unwrap();
        let words = lossy(&output.stderr);
        let message = format!("{call}, {nth}: {}: {words}", output.status);
        if words.contains("PTRACE") || words.contains("ptrace") {
            return skip("strace", &format!("nothing can be traced here: {message}"));
        }
        assert!(!words.contains("panicked"), "{message}");
        let report = fs::read(&spec.report).ok();
        let report: Option<LaunchReport> =
            report.and_then(|text| serde_json::from_slice(&text).ok());
        match output.status.code() {
            // That syscall was not needed, or not made that often.
            Some(0) => assert_eq!(report.unwrap().state, LaunchState::Ended, "{message}"),
            Some(REFUSED_STATUS) => {
                n_refused += 1;
                let error = report.and_then(|report| report.error);
                let why = error.map_or(words.clone(), |error| format!("{error:?}"));
                assert!(why.contains("not permitted"), "{message}: {why}");
            }
            _ => panic!("{message}"),
        }
        assert_nothing_stays(&world, &before, &message);
    }
    assert!(n_refused >= CALLS.len() / 2, "{n_refused}");
}
