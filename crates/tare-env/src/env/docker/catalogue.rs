//! The settings of a `docker` arm.
//!
//! Limits: the table cannot say whether an engine grants what is requested.

use bollard::models::HostConfigIsolationEnum;

use super::super::common::{
    BINDS, CAP_ADD, CAP_DROP, CPUS, CPUSET, FILES, INIT, MEMORY, NO_NEW_PRIVILEGES, PACKAGES,
    PRIVILEGED, PROGRAMS, SHM, ULIMIT,
};
use super::super::grammar::{
    is_container_name, is_image_reference, is_plain_name, is_platform, is_profile, is_safe_path,
    is_user,
};
use super::super::setting::{Between, Form, meanings, settings, words};
use super::super::user_container::{self, like};

meanings! {
    /// The storage under the working directory.
    pub(super) enum Storage, STORAGES {
        Layer: "layer",
        Volume: "volume",
        Bind: "bind",
        /// A bind-mounted folder behind a file system in user space.
        Served: "served",
        Tmpfs: "tmpfs",
    }
}

pub(super) const ISOLATIONS: [(&str, HostConfigIsolationEnum); 2] = [
    ("process", HostConfigIsolationEnum::PROCESS),
    ("hyperv", HostConfigIsolationEnum::HYPERV),
];

settings! {
    pub(super) SETTINGS;

    LIKE(user_container::LIKE,
        Text(Form::new("a container's name or id", user_container::is_source)), "none",
        "a container, running or stopped: arms are new ones with its image and whole configuration; what of the user's it can write to is shown read-only");
    RUN(like::RUN, Text(Form::new("a `docker run` line", |text| like::is_line("docker", text))), "none",
        "a line that would make a container: arms are new ones of what the client makes of it, as with `like`; its own command is not run");
    COMPOSE(like::COMPOSE, Text(Form::new("a compose file and services, `FILE SERVICE …`", like::is_file_with_services)), "none",
        "a service of a compose file: arms are like its container; what it depends on is not started; of several services, each is a node, in this order, for workloads with `nodes`");
    INSIDE(user_container::INSIDE, Text(Form::new("a running container's name or id", is_container_name)), "none",
        "a running container: the arm is that container itself, in which the agent runs next to its processes and from which it is removed again");
    WITHOUT(user_container::WITHOUT, List(Form::new("names of differences", user_container::is_difference), Between::Commas), "none",
        "with `like`, `run` or `compose`: differences to remove, such as [\"cpu-shares\", \"env.LD_PRELOAD\", \"engine.seccomp\"]; a name that ends in `?` may be missing");
    JOIN_NETWORKS(like::JOIN, Flag, "`false`",
        "with `like`, `run` or `compose`: every arm joins that container's networks and shows the sockets and named pipes in its folders; without it arms are on a network of the run's own");
    IMAGE("image", Text(Form::new("`name:tag`, lower case", is_image_reference)),
        "one packed from the agent and what the next settings name", "a local image to run in; never pulled");
    PROGRAMS;
    PACKAGES;
    FILES;
    LOWER_FILE("lower_file", Size(1), "none", "size of a file for the workload `copy-up` to put into the image");
    NETWORK("network",
        Text(Form::new("`bridge`, `host`, `none`, `published` or `container:NAME`", is_others_network)
            .or(&["bridge", "host", "none", "published"])),
        "`bridge`", "the network: `published` is the bridge with one published port, `container:NAME` another container's");
    PORT("port", Whole(1, 65_535, "a port"), "one of the engine's choice",
        "with `network = \"published\"`: the port on this machine");
    SECCOMP("seccomp",
        Text(Form::new("`default`, `unconfined`, or the path of a profile as JSON", is_profile_path)
            .or(&["default", "unconfined"])),
        "`default`", "the filter on system calls: the engine's own profile, none, or a file's", "off" is "unconfined");
    APPARMOR("apparmor", Text(Form::new("`default`, `unconfined` or a loaded profile's name", is_profile)),
        "`default`", "the security module's profile; `default` is the engine's own");
    CPUS;
    CPUSET;
    MEMORY;
    SHM;
    ULIMIT;
    CAP_ADD;
    CAP_DROP;
    PRIVILEGED;
    NO_NEW_PRIVILEGES;
    INIT;
    ENTRY("entry",
        List(Form::new("a program and its arguments, for example `sleep infinity`", |text| !text.contains('\0')),
            Between::Spaces),
        "the agent, which is asked to end",
        "what runs as the container's own program; the agent then runs next to it, and the container is stopped as `docker stop` does");
    STOP_AFTER("stop_after", Whole(1, 600, "seconds"), "the engine's (10)",
        "with `entry`: how long it may take to obey SIGTERM before it is killed");
    TTY("tty", Flag, "`false`", "process 1 has a terminal; the agent keeps its pipes");
    RUNTIME("runtime", Text(Form::new("a name such as `runc`", is_plain_name)), "the engine's",
        "a runtime that the engine knows");
    PLATFORM("platform", Text(Form::new("a pair such as `linux/arm64`", is_platform)), "the engine's",
        "the image's system and processor");
    ISOLATION("isolation", Text(Form::words(&words(&ISOLATIONS))), "the engine's",
        "of a Windows container: the engine's own kernel, or a small machine around it");
    CONTEXT("context", Text(Form::new("a context's name", is_container_name)), "the one that `docker` would use",
        "a context of the `docker` command: the engine it names");
    STORAGE("storage", Text(Form::words(&words(&STORAGES))), "`layer`",
        "where the probes' files lie: the writable layer, a volume, a folder of this machine, the same through `bindfs` (a file system in user space), or memory");
    BIND_FOLDER("bind_folder", Text(Form::new("an absolute path", is_safe_path)), "the run's own",
        "with `storage = \"bind\"` or `served`: the folder of this machine in which the bound one is made");
    BINDS;
    TMPFS("tmpfs", List(Form::new("absolute paths", is_safe_path), Between::Commas), "none",
        "folders inside that are in memory, such as [\"/scratch\"]");
    LOG_DRIVER("log_driver", Text(Form::new("a name such as `json-file`, `local` or `none`", is_plain_name)),
        "the engine's", "the engine's log driver");
    USER("user", Text(Form::new("`name`, `uid` or `uid:gid`", is_user)), "the image's", "user of every process");
}

fn is_others_network(text: &str) -> bool {
    text.strip_prefix("container:")
        .is_some_and(is_container_name)
}

fn is_profile_path(text: &str) -> bool {
    let has_ending = std::path::Path::new(text)
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    (has_ending || text.contains('/')) && !text.chars().any(char::is_control)
}
