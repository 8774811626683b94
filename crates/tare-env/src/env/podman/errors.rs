//! Converts podman's refusals to errors, classified by what the user can do.
//!
//! Podman passes on what the OCI runtime and the kernel said, after any number of log lines. Known causes are
//! recognised by fragments that have been stable across versions, and explained. Podman's message is always kept, as
//! printable text.
//! Limits: two causes may share a wording, so an explanation claims only what the words prove.

use super::super::EnvError;
use super::super::refusals::is_said;
use super::super::text::printable;

/// Installs rootless podman on Debian and derivatives.
pub(super) const INSTALL: &str = "`sudo apt-get install podman uidmap slirp4netns fuse-overlayfs`";

const SUBORDINATE: &str = "the user has no range of subordinate user or group ids, so inside there is no other user \
     than root";
const SUBORDINATE_FIX: &str = "`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, then \
     `podman system migrate` as that user";
const RLIMIT: &str = "podman raises the limits of a container's processes (open files, processes) above its own, and \
     the capability for that, CAP_SYS_RESOURCE, is missing here";
const RLIMIT_FIX: &str = "let an ordinary user run it, rootless: `--set podman.as=USER` (`as = \"USER\"` in a study file), with `runtime = \"runc\"` where control \
     groups are hybrid; or ask for lower limits: `ulimits = [\"nofile=1024\", \"nproc=1024\"]`";
const RUNTIME_FIX: &str =
    "install it, or name another one with `runtime`, by name or absolute path";

/// Wordings, each with its meaning and a hint.
static KNOWN: &[(&[&str], &str, &str)] = &[
    (&["rlimit … operation not permitted"], RLIMIT, RLIMIT_FIX),
    (
        &["cgroups in hybrid mode not supported"],
        HYBRID,
        "`runtime = \"runc\"` (`sudo apt-get install runc`)",
    ),
    (
        &[
            "newuidmap … executable file not found",
            "newgidmap … executable file not found",
        ],
        "the programs that map a user's subordinate ids are not installed",
        "`sudo apt-get install uidmap`",
    ),
    (
        &[
            "unable to setup user: invalid argument",
            "insufficient uids or gids",
        ],
        SUBORDINATE,
        SUBORDINATE_FIX,
    ),
    (
        &["container-init … not found"],
        "the small init that `init = true` asks for is not installed",
        "`sudo apt-get install catatonit`",
    ),
    (
        &["slirp4netns … not find", "slirp4netns … not found"],
        "the program for the network of a rootless container is not installed",
        "`sudo apt-get install slirp4netns`, or `network = \"host\"` or `\"none\"`",
    ),
    (
        &["pasta … not find"],
        "the program for the network of a rootless container is not installed",
        "`sudo apt-get install passt`, or `network = \"slirp4netns\"`",
    ),
    (
        &["pasta … not found"],
        "podman is older than its `pasta` network (4.4), or that program is not installed",
        "`sudo apt-get install passt`, or `network = \"slirp4netns\"`",
    ),
    (
        &["failed to find plugin"],
        "the programs that set up a bridge for containers are not installed",
        "`sudo apt-get install containernetworking-plugins`",
    ),
    (
        &["netavark … not find"],
        "the program that sets up a bridge for containers is not installed",
        "`sudo apt-get install netavark aardvark-dns`",
    ),
    (
        &[
            "default oci runtime … not found",
            "no valid executable found for oci runtime",
        ],
        "podman finds no OCI runtime of that name",
        RUNTIME_FIX,
    ),
    (
        &["opening seccomp profile failed"],
        "the file that `seccomp` names is not there, or podman's user may not read it",
        "put it where that user may read it",
    ),
    (
        &["seccomp profile … failed"],
        "the file that `seccomp` names is no seccomp profile",
        "see /usr/share/containers/seccomp.json for one that is",
    ),
    (
        &["cannot connect to podman"],
        "the machine that podman runs its containers in is not running",
        "`podman machine init`, then `podman machine start`",
    ),
    (
        &["unable to apply caps"],
        "podman does not hold every capability that it is to give away",
        "use `cap_add` with those that are needed, or `--set podman.as=USER`: a user namespace has them all",
    ),
    (
        &["no space left on device"],
        "the disk that holds podman's data is full",
        "see `podman system df`; `podman system prune` removes what is not used",
    ),
    (
        &["no matching entries in passwd file", "unable to find user"],
        "the image has no such `user`",
        "give `user` as a number",
    ),
    (
        &["exec format error"],
        "the agent is built for another processor than podman's machine has",
        "build the agent for that target",
    ),
    (
        &["database configuration mismatch"],
        "podman was used before with another folder or storage driver than its configuration names now",
        "undo the change in storage.conf or containers.conf; `podman system reset` removes everything",
    ),
    (
        &["cgroup"],
        "the cgroup of the container could not be set up",
        "see `podman info --format '{{.Host.CgroupsVersion}} {{.Host.CgroupManager}}'` and /proc/cgroups",
    ),
];

/// Why crun is not used on hybrid cgroups.
const HYBRID: &str =
    "crun refuses this machine's hybrid cgroups (version 1 together with controllers of version 2)";

/// Returns why another runtime than podman's default is used, as a fact.
pub(super) fn chosen() -> String {
    format!("runc instead of podman's default, because {HYBRID}")
}

/// Whether the error is crun's about hybrid cgroups.
pub(super) fn is_hybrid(error: &EnvError) -> bool {
    matches!(error, EnvError::Absent { why, .. } if why.contains(HYBRID))
}

/// Returns the relevant part of podman's stderr: from its first `Error:` line on, else everything except warnings.
pub(super) fn words(stderr: &str) -> String {
    let is_error = |line: &&str| line.trim_start().starts_with("Error:");
    let error: Vec<&str> = stderr.lines().skip_while(|line| !is_error(line)).collect();
    if !error.is_empty() {
        return printable(error.join(" ").trim_start_matches("Error: "));
    }
    let is_chatter = |line: &str| line.starts_with("time=") && line.contains("level=warning");
    let rest: Vec<&str> = stderr.lines().filter(|line| !is_chatter(line)).collect();
    printable(&rest.join(" "))
}

/// Returns the explanation of a known refusal and a hint.
pub(super) fn meaning(stderr: &str) -> Option<(&'static str, &'static str)> {
    let words = words(stderr);
    let known = KNOWN.iter().find(|(said, ..)| is_said(said, &words));
    known.map(|(_, why, fix)| (*why, *fix))
}

/// Converts podman's refusal to an error; `what` is an infinitive.
pub(super) fn explain(what: &str, stderr: &str) -> EnvError {
    let answer = words(stderr);
    if let Some((why, fix)) = meaning(stderr) {
        return EnvError::absent(format!("cannot {what}: {why} (podman says: {answer})"), fix);
    }
    let what = if answer.contains("already in use") {
        format!(
            "podman cannot {what}, something of that name is there already (`tare clean` removes what an earlier run left)"
        )
    } else {
        format!("podman could not {what}")
    };
    EnvError::refused(what, answer)
}

/// Returns podman's message about a limit that it accepted and then ignored, if any.
pub(super) fn ignored_limit(stderr: &str) -> Option<String> {
    let lower = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("not supported and ignored") || line.contains("limitation discarded")
    };
    stderr.lines().find(lower).map(printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rlimit_capability_of_podman_is_explained() {
        for words in [
            "Error: runc: runc create failed: unable to start container process: error during container init: \
             error setting rlimits for ready process: error setting rlimit type 6: operation not permitted: \
             OCI permission denied",
            "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
        ] {
            let EnvError::Absent { why, fix } = explain("start the container", words) else {
                panic!("not recognised: {words}");
            };
            assert!(
                why.contains("CAP_SYS_RESOURCE") && why.contains("limit"),
                "{why}"
            );
            let fix = fix.unwrap();
            assert!(fix.contains("as = ") && fix.contains("runc"), "{fix}");
        }
    }

    #[test]
    fn podmans_log_before_the_error_is_left_out() {
        let stderr = "time=\"2026-01-01T00:00:00Z\" level=warning msg=\"\\\"/\\\" is not a shared mount\"\n\
                      Error: frob: \u{1b}[2Jno such thing\nsecond line\n";
        assert_eq!(words(stderr), "frob: \\u{1b}[2Jno such thing second line");
        assert_eq!(words("time=\"x\" level=warning msg=\"y\"\n"), "");
        assert_eq!(words("plain\n"), "plain");
    }

    #[test]
    fn known_refusal_gets_advice_others_show_podman_text() {
        for words in [
            "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
            "Error: command required for rootless mode with multiple IDs: exec: \"newuidmap\": executable file not found in $PATH",
            "Error: OCI runtime error: runc: runc create failed: unable to start container process: unable to setup user: invalid argument",
            "Error: container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or directory",
            "Error: could not find slirp4netns, the network namespace can't be configured: exec: \"slirp4netns\": executable file not found in $PATH",
            "Error: default OCI runtime \"x\" not found: invalid argument",
            "Error: no valid executable found for OCI runtime /nonexistent/runc: invalid argument",
            "Error: opening seccomp profile failed: open /nonexistent: no such file or directory",
            "Error: Cannot connect to Podman. Please verify your connection to the Linux system",
            "Error: unable to find user nosuch: no matching entries in passwd file",
        ] {
            assert!(
                matches!(explain("x", words), EnvError::Absent { fix: Some(_), .. }),
                "{words}"
            );
        }
        let error = explain("frob it", "Error: the \u{7}moon is wrong");
        assert_eq!(
            error.to_string(),
            "podman could not frob it: the \\u{7}moon is wrong"
        );
        assert!(is_hybrid(&explain(
            "x",
            "Error: crun: cgroups in hybrid mode not supported"
        )));
        assert!(!is_hybrid(&error));
    }

    #[test]
    fn a_limit_that_podman_lets_fall_is_noticed() {
        let words =
            "Resource limits are not supported and ignored on cgroups V1 rootless systems\n";
        assert!(ignored_limit(words).is_some());
        assert_eq!(ignored_limit("Error: other"), None);
    }
}
