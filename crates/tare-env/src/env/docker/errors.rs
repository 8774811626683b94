//! Turns the engine's errors into errors classified by what the user can do about them.
//!
//! The engine passes on the messages of containerd, the runtime and the kernel, so one cause has many wordings; known
//! ones are recognised by a fragment that has been stable over versions, and explained. The engine's own words are
//! always kept. All of it is foreign text: terminal control characters are escaped.
//! Limits: the reason behind the state of the engine's machine is unknown; explanations say only what the words
//! prove.

use crate::env::prelude::*;

use bollard::errors::Error as ApiError;

use super::super::refusals::KnownRefusal;
pub(super) use super::super::text::{and_cleanup, not_removed};

/// The system error that caused an API error, if any.
pub(super) fn system_error(error: &ApiError) -> Option<std::io::ErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut found = None;
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            found = Some(io.kind());
        }
        cause = error.source();
    }
    found
}

/// An error with all its causes, as one printable line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    printable(&text)
}

/// Turns the API error of a request to the engine at `endpoint` into one for the user; `what` was asked for, as an
/// infinitive: `create the container`.
pub(super) fn explain(what: &str, endpoint: &str, limit: Duration, error: &ApiError) -> EnvError {
    match error {
        ApiError::DockerResponseServerError {
            status_code,
            message,
        } => explain_answer(what, *status_code, message),
        ApiError::DockerStreamError { error: message } => explain_answer(what, 500, message),
        ApiError::RequestTimeoutError => EnvError::Timeout {
            phase: format!("the Docker engine, asked to {what},"),
            limit,
        },
        ApiError::JsonDataError { .. } | ApiError::JsonSerdeError { .. } => EnvError::refused(
            format!("unreadable answer when asked to {what}"),
            chain(error),
        ),
        other => EnvError::absent(
            format!(
                "the Docker engine at `{endpoint}` went away when asked to {what} ({})",
                chain(other)
            ),
            "look at its log: `journalctl -u docker -e`",
        ),
    }
}

static KNOWN: &[KnownRefusal] = &[
    KnownRefusal::absent(
        &["unable to apply caps … operation not permitted"],
        "the engine does not hold every capability that it is to give away, so neither `privileged` \
              nor `cap_add = \"ALL\"` can work here",
        "remove `privileged`, or use `cap_add = \"ALL\"` with `cap_drop` naming what the engine lacks",
    ),
    KnownRefusal::absent(
        &["pivot … device or resource busy"],
        "a second mount is stacked on `/` of the engine's machine, and the engine cannot unpack images \
              over it (an OCI runtime that ran without a mount namespace leaves one behind)",
        "look for two lines with mount point `/` in /proc/self/mountinfo; restarting the machine removes it",
    ),
    KnownRefusal::absent(
        &["no space left on device"],
        "the disk that holds the engine's data is full",
        "see `docker system df`; `docker system prune` removes what is not used",
    ),
    KnownRefusal::absent(
        &[
            "unknown or invalid runtime name",
            "unknown runtime specified",
        ],
        "the engine knows no runtime of that name",
        "`docker info` lists its runtimes; others are added under `runtimes` in /etc/docker/daemon.json",
    ),
    KnownRefusal::absent(
        &["bind source path does not exist"],
        "the folder for `storage = \"bind\"` is on this machine, and the engine's machine is another one",
        "use `storage = \"volume\"`",
    ),
    KnownRefusal::absent(
        &["requested cpus are not available"],
        "`cpuset` names a CPU that the engine's machine does not have",
        "see `nproc` on the engine's machine",
    ),
    KnownRefusal::absent(
        &["range of cpus is from"],
        "`cpus` is more than the engine's machine has",
        "see `nproc` on the engine's machine",
    ),
    KnownRefusal::absent(
        &["port is already allocated", "bind: address already in use"],
        "the port that `port` names is taken on this machine",
        "remove `port`, and the engine chooses a free one; `ss -ltnp` says who has it",
    ),
    KnownRefusal::absent(
        &["cannot join network of a non running container"],
        "the container whose network was to be joined does not run",
        "start it first; `docker ps` lists the running ones",
    ),
    KnownRefusal::absent(
        &["setting rlimit … operation not permitted"],
        "`ulimits` asks for more than the engine itself may have",
        "ask for less, or raise the engine's own limits (`LimitNOFILE=` and the like of its service)",
    ),
    KnownRefusal::absent(
        &["failed to create shim … seccomp"],
        "the runtime cannot load the seccomp profile",
        "remove `seccomp` to see whether the container starts without it, then mend the profile",
    ),
    KnownRefusal::absent(
        &["decoding seccomp profile failed"],
        "the engine cannot read the seccomp profile",
        "see the format in Docker's documentation",
    ),
    KnownRefusal::absent(
        &["apparmor … could not be applied"],
        "the engine's machine has no AppArmor profile of that name loaded",
        "`sudo apparmor_parser -r FILE` loads one; `sudo aa-status` lists them",
    ),
    KnownRefusal::absent(
        &[
            "does not match the specified platform",
            "was found but does not match",
        ],
        "the image is for another platform than `platform` names",
        "`docker pull --platform …` fetches the other one; or remove `platform`",
    ),
    KnownRefusal::absent(
        &["logging plugin … not found", "no log driver named"],
        "the engine has no log driver of that name",
        "`docker info --format '{{.Plugins.Log}}'` lists them",
    ),
    KnownRefusal::absent(
        &["cgroup"],
        "the engine could not set up the container's cgroup",
        "see which controllers are there: `docker info --format '{{.CgroupVersion}} {{.CgroupDriver}}'`, \
              `cat /proc/cgroups`",
    ),
    KnownRefusal::absent(
        &["exec format error"],
        "the agent is built for another processor than the engine's machine has",
        "build the agent for that target",
    ),
    KnownRefusal::absent(
        &["unable to find user", "no matching entries in passwd file"],
        "the image has no such `user`",
        "give `user` as a number",
    ),
];

/// Turns the engine's answer to a request into an error for the user.
pub(super) fn explain_answer(what: &str, status: u16, message: &str) -> EnvError {
    let answer = printable(message);
    if let Some(known) = KnownRefusal::find(KNOWN, message) {
        return EnvError::absent(
            format!("cannot {what}: {} (the engine says: {answer})", known.why),
            known.fix,
        );
    }
    if status == 409 {
        return EnvError::refused(
            format!(
                "cannot {what}, something of that name is there already (`tare clean` removes what an earlier run left)"
            ),
            answer,
        );
    }
    if status == 403 {
        return EnvError::denied(
            format!("the engine may not {what}: {answer}"),
            "what stands before the engine's socket lets only some requests through; name the engine's own socket in DOCKER_HOST, as a user who may make containers",
        );
    }
    EnvError::refused(format!("the engine could not {what}"), answer)
}

/// Whether the object in question does not exist.
pub(super) fn is_missing(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}

/// Whether the engine, or a proxy in front of it, forbids this to the user.
pub(super) fn is_forbidden(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::DockerResponseServerError {
            status_code: 403,
            ..
        }
    )
}

/// Whether the engine is busy with the same request, or the object is still in use.
pub(super) fn is_conflict(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::DockerResponseServerError {
            status_code: 409,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_socket_error_has_a_hint() {
        // The answer of proxies that are used in front of an engine's socket.
        let error = explain_answer(
            "create a container",
            403,
            "Forbidden by administrative rules",
        );
        assert!(
            error.to_string().contains("administrative rules"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("DOCKER_HOST"), "{error}");
    }

    #[test]
    fn daemon_lacking_capabilities_is_recognized_by_text() {
        let words = "failed to create shim task: OCI runtime create failed: runc create failed: unable to \
                     start container process: unable to apply caps: operation not permitted: unknown";
        let EnvError::Absent { why, fix } = explain_answer("start the container", 400, words)
        else {
            panic!("not recognised");
        };
        assert!(
            why.contains("privileged") && why.contains("unable to apply caps"),
            "{why}"
        );
        assert!(fix.unwrap().contains("cap_drop"));
    }

    #[test]
    fn known_refusal_gets_advice_others_show_engine_text() {
        for words in [
            "Error cleaning up after pivot: remove /.pivot_root123: device or resource busy",
            "write /x: no space left on device",
            "Unknown runtime specified kata",
            "cgroups: cgroup mountpoint does not exist: unknown",
            "invalid mount config for type \"bind\": bind source path does not exist: /x",
            "driver failed programming external connectivity on endpoint x: Bind for 127.0.0.1:80 failed: port is already allocated",
            "Error starting userland proxy: listen tcp4 127.0.0.1:80: bind: address already in use",
            "runc create failed: error setting rlimit type 7: operation not permitted",
            "logger: no log driver named 'x' is registered",
            "error looking up logging plugin x: plugin \"x\" not found",
            "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available",
        ] {
            assert!(
                matches!(
                    explain_answer("x", 400, words),
                    EnvError::Absent { fix: Some(_), .. }
                ),
                "{words}"
            );
        }
        let error = explain_answer("frob it", 500, "the \u{7}moon is wrong");
        assert_eq!(
            error.to_string(),
            "the engine could not frob it: the \\u{7}moon is wrong"
        );
    }
}
