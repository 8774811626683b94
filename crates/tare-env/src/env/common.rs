//! Settings that several drivers share, each with one name and one meaning.

use super::grammar::{
    CAPABILITIES, ULIMITS, is_bind, is_capability, is_cpu_range, is_package, is_program,
    is_safe_path, is_ulimit,
};
use super::setting::{Between, Form, settings};

/// The engines' smallest memory limit (moby `linuxMinMemory`), bytes; with less, no process starts on most machines.
const LEAST_MEMORY: u64 = 6 << 20;

/// The kernel's maximum number of processes.
const MOST_PROCESSES: u32 = 1 << 22;

/// Message and hint for `privileged` combined with capabilities.
pub(super) const NO_CAPABILITIES_BESIDE: (&str, &str) = (
    "`privileged` gives every capability; `cap_add` and `cap_drop` would have no effect",
    "use either `privileged` or `cap_add`/`cap_drop`",
);

/// Message and hint for files to pack combined with an image.
pub(super) const NOT_PACKED: (&str, &str) = (
    "`programs`, `packages`, `files` and `lower_file` are packed, and an `image` of your own is not",
    "remove `image`, or put the files into your image",
);

/// Message and hint for a list that mixes a group of capabilities or namespaces with names.
pub(super) const GROUP_AND_NAMES: (&str, &str) = (
    "`default`, `all` and `none` stand alone",
    "one of them, or a list of names",
);

/// Message and hint for a network that contradicts the namespaces.
pub(super) const NETWORK_AND_NAMESPACES: (&str, &str) = (
    "the network is the host's exactly if there is no `net` namespace",
    "change `network` or the list of `namespaces`",
);

/// Capability names.
const NAMES: Form = Form::new(
    "capability names such as [\"SYS_NICE\"], or \"ALL\"",
    |word| word == "ALL" || is_capability(word),
)
.near(&CAPABILITIES);

settings! {
    pub(super) rows;

    PROGRAMS("programs", List(Form::new("names or absolute paths", is_program), Between::Commas), "none",
        "programs of this machine to pack with their libraries, such as [\"python3\", \"/opt/x/bin/y\"]");
    PACKAGES("packages", List(Form::new("names of packages", is_package), Between::Commas), "none",
        "packages of this machine (dpkg or rpm) whose files to pack");
    FILES("files", List(Form::new("absolute paths", is_safe_path), Between::Commas), "none",
        "files and folders of this machine to pack");
    BINDS("binds",
        List(Form::new("binds such as [\"/srv/data:/data\"] or [\"/srv/data:/data:ro\"]", is_bind), Between::Commas),
        "none", "folders and files of this machine to show inside");
    CPUS("cpus", Number(0.01, 4096.0, "processors"), "no limit",
        "processor time per second of wall time; becomes a quota per 100 ms");
    CPUSET("cpuset", List(Form::new("a list such as `0-1,3`", is_cpu_range), Between::Commas), "all",
        "the processors that may be used");
    MEMORY("memory", Size(LEAST_MEMORY), "no limit", "memory limit");
    SHM("shm", Size(4096), "the engine's (64 MiB)", "size of /dev/shm");
    PIDS("pids", Whole(1, MOST_PROCESSES, "a number"), "no limit", "the most processes and threads");
    ULIMIT("ulimits",
        List(Form::new("limits such as [\"nofile=1024:524288\"], soft:hard, -1 for none", is_ulimit).near(&ULIMITS),
            Between::Commas),
        "the engine's", "limits of each process");
    CAP_ADD("cap_add", List(NAMES, Between::Commas), "none", "capabilities to add");
    CAP_DROP("cap_drop", List(NAMES, Between::Commas), "none", "capabilities to drop");
    CAPS("caps",
        List(Form::new("`default`, `all`, `none`, or a list such as [\"NET_RAW\", \"SYS_ADMIN\"]", |word| {
            matches!(word, "default" | "all" | "none") || is_capability(word)
        }).near(&CAPABILITIES), Between::Commas),
        "`default`", "the capabilities to have: Docker's 14, all that Tare itself has, none, or these");
    PRIVILEGED("privileged", Flag, "`false`",
        "every capability that can be given, no filter on system calls, all devices");
    NO_NEW_PRIVILEGES("no_new_privileges", Flag, "`false`", "execve can give no privileges", was "no_new_privs");
    INIT("init", Flag, "`false`", "a small init is process 1");
    MASKED_PATHS("masked_paths", Flag, "`true`",
        "hides and write-protects the paths of /proc and /sys that Docker does");
    PRIVATE_PATHS("private_paths", Flag, "`true`",
        "covers homes, keys, password files, engines' sockets and Tare's own files where the host's are inside; `binds` shows what is needed of them");
    SECCOMP("seccomp", Text(Form::words(&["default", "unconfined"])), "`default`",
        "the filter on system calls: Docker's list, or none", "off" is "unconfined");
}
