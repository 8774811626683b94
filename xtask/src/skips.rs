//! Lists which tests were skipped, what was missing, and why.
//!
//! Libtest counts a test that returns early as passed, so each skipped test writes a line to a file; see
//! `crates/tare-testkit/src/skip.rs`.

use std::collections::{BTreeMap, BTreeSet};

/// The variable that names the file.
pub(crate) const VARIABLE: &str = "TARE_SKIPS";

/// What provisioning guarantees: tests fail rather than skip if it is missing.
pub(crate) const PROVISIONED: &[&str] = &tare_model::rows! {
    "block-device", "busybox", "chromium", "container", "cpio", "crun", "docker", "docker-socket", "docker-tls", "fio", "font",
    "git", "hpcc", "io_uring", "iperf3", "latex", "nc", "oci", "openblas", "packed", "perl", "ping", "podman", "probe", "proc",
    "python3", "root", "runc", "script", "ssh", "strace", "stress-ng", "tmpfs", "tools", "userns", "vm",
    "wine",
};

/// What provisioning may fail to install, each with the reason; a test that needs it is listed as skipped.
#[cfg(test)]
const OPTIONAL: &[(&str, &str)] = &tare_model::rows! {
    ("axe", "another's work that is not kept here, for a browser that may not be there"),
    ("bindfs", "an engine with mounts of its own does not see a folder that is served beside it"),
    ("cargo-deny", "a program of hundreds of crates; it is asked where it is installed"),
    ("cgroup1", "a machine has one version of cgroups or the other"),
    ("device-rules", "the machine's own rules for devices, or its rights, may let nobody set any"),
    ("dotnet", "Debian has no .NET, and its benchmarks are built from packages of another index"),
    ("iozone", "Debian has it among its programs that are not free"),
    ("group", "the machine may give no cgroup without controllers"),
    ("kernel", "the kernel is the machine's"),
    ("pandas", "the package index may not answer; it is taken where an interpreter has it"),
    ("polars", "the package index may not answer; it is taken where an interpreter has it"),
    ("pyperf", "the package index may not answer"),
    ("runsc", "no distribution packages it"),
    ("virtiofsd", "some distributions have it with the emulator, others in a package of its own"),
    ("windows", "what runs on Windows is built and run in a part of its own"),
    ("two-processors", "the machine, or what it gives these tests, may have one"),
    ("youki", "no distribution packages it"),
};

/// How many names of tests a line shows.
const SHOWN: usize = 3;

/// The skipped tests: by program and name, what was missing.
#[derive(Debug, Default)]
pub(crate) struct Skips(BTreeMap<(String, String), BTreeSet<(String, String)>>);

impl Skips {
    /// Adds the lines `PROGRAM<tab>TEST<tab>NEED<tab>REASON`.
    pub(crate) fn read(&mut self, lines: &str) {
        for line in lines.lines() {
            if let [program, test, need, reason] = line.split('\t').collect::<Vec<_>>()[..] {
                self.add(program, test, need, reason);
            }
        }
    }

    pub(crate) fn add(&mut self, program: &str, test: &str, need: &str, reason: &str) {
        self.0
            .entry((program.to_owned(), test.to_owned()))
            .or_default()
            .insert((need.to_owned(), reason.to_owned()));
    }

    /// Counts the tests that were skipped and did not fail.
    pub(crate) fn count(&self, failed: &BTreeSet<&str>) -> u32 {
        let counts = |test: &str| u32::from(!failed.contains(test));
        self.0.keys().map(|(_, test)| counts(test)).sum()
    }

    /// Returns a line for each reason.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut reasons: BTreeMap<&(String, String), Vec<&str>> = BTreeMap::new();
        for ((_, test), missing) in &self.0 {
            for reason in missing {
                reasons.entry(reason).or_default().push(test);
            }
        }
        let lines = reasons.iter().map(|((need, reason), tests)| {
            let shown = &tests[..tests.len().min(SHOWN)];
            let more = match tests.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("skipped: {need}: {reason}: {}{more}", shown.join(", "))
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_build::workspace::root;

    #[test]
    fn skipped_test_counts_once_and_not_if_it_failed() {
        let mut skips = Skips::default();
        skips.read(
            "it\tvm::a\tvm\tno emulator\nit\tvm::a\troot\tnot root\nit\tvm::a\tvm\tno emulator\n\
             it\tvm::b\tvm\tno emulator\nkernel\tvm::b\tproc\tno /proc\nbroken line\n",
        );
        assert_eq!(skips.count(&BTreeSet::new()), 3);
        assert_eq!(skips.count(&BTreeSet::from(["vm::a"])), 2);
        assert_eq!(
            skips.lines(),
            [
                "skipped: proc: no /proc: vm::b",
                "skipped: root: not root: vm::a",
                "skipped: vm: no emulator: vm::a, vm::b",
            ]
        );
    }

    #[test]
    fn skip_is_noted_in_file_or_fails_if_required() {
        let notes = crate::notes::Notes::new("skips-test").unwrap();
        let again = |required: &str| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "skips::tests::body_that_skips", "--ignored"])
                .env(VARIABLE, notes.path())
                .env("TARE_REQUIRE", required)
                .output()
                .unwrap()
                .status
                .success()
        };
        assert!(again("other"));
        assert!(!again("other,something"));
        let mut skips = Skips::default();
        skips.read(&notes.read().unwrap());
        assert_eq!(
            skips.lines(),
            ["skipped: something: there is none: skips::tests::body_that_skips"]
        );
    }

    #[test]
    #[ignore = "runs in a child process of another test"]
    fn body_that_skips() {
        crate::skip::skip("something", "there is\nnone");
    }

    /// Does not see needs that a test computes; those are names of tools, drivers and runtimes.
    #[test]
    fn every_need_is_provisioned_or_known_to_be_optional() {
        let known = |need: &str| {
            PROVISIONED.contains(&need) || OPTIONAL.iter().any(|(name, _)| *name == need)
        };
        let mut folders = vec![root().join("crates"), root().join("xtask")];
        let mut needs = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && !path.ends_with("xtask/src/skips.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(
                        !text.contains("ln!(\"skipped"),
                        "{}: nobody counts what is only printed, use `skip`",
                        path.display()
                    );
                    for call in text.split("skip(").skip(1) {
                        let quoted = call.trim_start().strip_prefix('"');
                        needs.extend(
                            quoted
                                .and_then(|rest| rest.split('"').next())
                                .map(str::to_owned),
                        );
                    }
                }
            }
        }
        assert!(needs.contains("docker"), "{needs:?}");
        needs.retain(|need| !known(need));
        assert!(
            needs.is_empty(),
            "neither provisioned nor optional: {needs:?}"
        );
    }
}
