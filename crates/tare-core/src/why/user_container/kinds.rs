//! Which resources a difference of a user's container acts on, by the beginning of its name.

/// What a difference acts on, or needs to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// How much of the processors the command gets.
    Processor,
    /// A quota of processor time.
    Quota,
    /// A limit of memory.
    Memory,
    /// Files and the memory that caches them.
    Storage,
    /// The rate of block devices.
    Device,
    SharedMemory,
    /// What is printed.
    Output,
    /// Something outside that the command waits for.
    Peer,
    /// Sockets.
    Socket,
    /// The same work takes more processor time.
    Work,
    /// It can also make a command faster, which a limit cannot.
    Gain,
    /// The files below a path.
    Folder,
}

/// The beginnings of names; the longest that fits counts.
const KINDS: &[(&str, &[Kind])] = {
    use Kind::{
        Device, Folder, Gain, Memory, Output, Peer, Processor, Quota, SharedMemory, Socket,
        Storage, Work,
    };
    &tare_model::rows! {
        ("add-host", &[Peer, Socket]),
        ("blkio", &[Storage, Device]),
        ("cgroup-parent", &[Processor]),
        ("cpu-quota", &[Processor, Quota]),
        ("cpu-rt-runtime", &[Processor]),
        ("cpu-shares", &[Processor]),
        ("cpus", &[Processor, Quota]),
        ("cpuset-", &[Processor]),
        ("device-", &[Storage, Peer]),
        ("device-read-", &[Storage, Peer, Device]),
        ("device-write-", &[Storage, Peer, Device]),
        ("dns", &[Peer, Socket]),
        ("engine.log", &[Output]),
        ("engine.network", &[Peer, Socket]),
        ("engine.seccomp", &[Work]),
        (concat!("engine", ".ulimit"), &[Work]),
        ("entrypoint", &[Gain]),
        ("env.", &[Work, Gain]),
        ("kernel-memory", &[Memory]),
        ("link", &[Socket]),
        ("log", &[Peer, Output]),
        ("memory", &[Storage, Memory]),
        // Name lookups use processor time in the kernel.
        ("mounted./", &[Storage, Work, Gain, Folder]),
        ("network", &[Peer, Socket]),
        ("publish", &[Peer, Socket]),
        ("runtime", &[Work]),
        ("security-opt", &[Work]),
        ("settings./", &[Work, Gain]),
        ("shm-size", &[Storage, SharedMemory]),
        ("storage-opt", &[Storage]),
        ("sysctl.", &[Work, Gain]),
        ("sysctl.net.", &[Peer, Socket, Work, Gain]),
        ("tmpfs-mount./", &[Gain, Folder]),
        ("tmpfs./", &[Storage, Gain, Folder]),
        ("tty", &[Output]),
        ("ulimit", &[Work]),
        ("workdir", &[Gain]),
    }
};

/// The kinds of a difference; none if nothing is known about it.
pub(super) fn kinds(id: &str) -> &'static [Kind] {
    let fitting = KINDS.iter().filter(|(begin, _)| id.starts_with(begin));
    let longest = fitting.max_by_key(|(begin, _)| begin.len());
    longest.map_or(&[], |(_, kinds)| *kinds)
}
