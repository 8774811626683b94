//! What may be set: the names and meanings of a `docker` arm's settings, and the kernel's own lists of names
//! that some of them hold.
//!
//! Plain tables, kept apart from the reading of them. What they cannot tell is whether an engine grants what
//! is asked for.

use super::super::SettingSpec;
use super::super::reader::{FILES, PACKAGES, PROGRAMS};

/// What `docker` arms take.
pub(super) static SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "like",
        doc: "a container, running or stopped, by name or id: arms are new ones with its image and whole configuration; what of the user's it can write to is shown read-only",
    },
    SettingSpec {
        name: "inside",
        doc: "a running container, by name or id: the arm is that container itself, in which the agent runs beside its own processes and from which it is removed again",
    },
    SettingSpec {
        name: "without",
        doc: "with `like`: differences to leave away, a list such as [\"cpu-shares\", \"env.LD_PRELOAD\", \"engine.seccomp\"]; a name that ends in `?` may be missing",
    },
    SettingSpec {
        name: "image",
        doc: "a local image to run in; never pulled. Default: one packed from the agent and what the next settings name",
    },
    PROGRAMS,
    PACKAGES,
    FILES,
    SettingSpec {
        name: "lower_file",
        doc: "size of a file for the workload `copy-up` to put into the image, for example `100m`; default: none",
    },
    SettingSpec {
        name: "network",
        doc: "`bridge` (default), `host`, `none`, `container:NAME` (another container's) or `published` (bridge with one published port)",
    },
    SettingSpec {
        name: "port",
        doc: "with `network = \"published\"`: the port on this machine; default: one of the engine's choice",
    },
    SettingSpec {
        name: "seccomp",
        doc: "`default` (the engine's own profile), `unconfined`, or the path of a profile as JSON",
    },
    SettingSpec {
        name: "apparmor",
        doc: "`default` (the engine's own profile), `unconfined`, or the name of a loaded profile",
    },
    SettingSpec {
        name: "cpus",
        doc: "CPU time per second of wall time, for example 1.5; default: no limit",
    },
    SettingSpec {
        name: "cpuset",
        doc: "the CPUs it may use, for example `0-1,3`; default: all",
    },
    SettingSpec {
        name: "memory",
        doc: "memory limit in bytes or as `256m`, `2g`; at least 6 MiB; default: none",
    },
    SettingSpec {
        name: "shm",
        doc: "size of /dev/shm in bytes or as `256m`; default: the engine's (64 MiB)",
    },
    SettingSpec {
        name: "ulimits",
        doc: "limits of a process, a list such as [\"nofile=1024:524288\"] (soft:hard, -1 for none); default: the engine's",
    },
    SettingSpec {
        name: "cap_add",
        doc: "capabilities to add, a list such as [\"SYS_NICE\"], or \"ALL\"",
    },
    SettingSpec {
        name: "cap_drop",
        doc: "capabilities to drop, a list such as [\"NET_RAW\"], or \"ALL\"",
    },
    SettingSpec {
        name: "privileged",
        doc: "`true`: every capability, no seccomp, all devices; default: false",
    },
    SettingSpec {
        name: "no_new_privileges",
        doc: "`true`: execve can give no privileges; default: false",
    },
    SettingSpec {
        name: "init",
        doc: "`true`: a small init is process 1; default: false",
    },
    SettingSpec {
        name: "entry",
        doc: "what runs as the container's own program, a list or a text that is split at spaces, for example `sleep infinity`; the agent then runs beside it, and the container is stopped as `docker stop` does. Default: the agent, which is told to end",
    },
    SettingSpec {
        name: "stop_after",
        doc: "with `entry`: how many seconds it may take to obey SIGTERM before it is killed; default: the engine's (10)",
    },
    SettingSpec {
        name: "tty",
        doc: "`true`: process 1 has a terminal (the agent keeps its pipes); default: false",
    },
    SettingSpec {
        name: "runtime",
        doc: "a runtime that the engine knows, for example `runc` or `runsc`; default: the engine's",
    },
    SettingSpec {
        name: "platform",
        doc: "the image's system and processor, for example `linux/arm64`; default: the engine's",
    },
    SettingSpec {
        name: "context",
        doc: "a context of the `docker` command: the engine it names; default: the one that `docker` would use",
    },
    SettingSpec {
        name: "storage",
        doc: "where the probes' files lie: `layer` (default: the writable layer), `volume`, `bind` (a folder of this machine), `served` (the same through `bindfs`, a file system in user space) or `tmpfs`",
    },
    SettingSpec {
        name: "bind_folder",
        doc: "with `storage = \"bind\"` or `served`: the folder of this machine, by absolute path, in which the bound one is made; default: the run's own",
    },
    SettingSpec {
        name: "binds",
        doc: "folders and files of the engine's machine to show inside, a list such as [\"/srv/data:/data:ro\"]",
    },
    SettingSpec {
        name: "tmpfs",
        doc: "folders inside that are in memory, a list such as [\"/scratch\"]",
    },
    SettingSpec {
        name: "log_driver",
        doc: "the engine's log driver, for example `json-file`, `local` or `none`; default: the engine's",
    },
    SettingSpec {
        name: "user",
        doc: "user of every process, `name` or `uid` or `uid:gid`; default: the image's",
    },
];
