//! A runtime program: its path and version, the commands that start a container, and the meaning of its error
//! messages.
//!
//! A runtime is never started directly, not even for its version, but always through the agent's `private-mounts`, in
//! mount and PID namespaces that end with it.
//! Limits: a configuration file that the runtime reads by itself is not seen.

use crate::env::prelude::*;

use tare_model::launch::RUN_VARIABLE;

use super::settings::{Rootfs, Settings};
use crate::env::charged;
use crate::env::refusals::KnownRefusal;

/// Time limit for a runtime to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// Folders that may be missing in an ordinary user's `PATH`.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The runtimes that `detect` looks for, each with how to install it.
pub(super) const KNOWN: [(&str, &str); 5] = [
    ("runc", "apt-get install runc"),
    ("crun", "apt-get install crun"),
    ("youki", "see https://youki-dev.github.io/youki"),
    ("runsc", "see https://gvisor.dev/docs/user_guide/install"),
    ("kata-runtime", "see https://katacontainers.io"),
];

/// An installed runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runtime {
    pub(super) path: PathBuf,
    /// First line of its version output.
    pub(super) version: String,
    /// Whether the version 2 tree of a hybrid cgroup layout must be hidden from it.
    pub(super) hides_unified: bool,
}

impl Runtime {
    /// Whether its containers are known to run on this machine's kernel: then memory can be shared with them, and a
    /// waiter on a word in it can be woken.
    pub(super) fn shares_the_kernel(&self) -> bool {
        let known = ["runc", "crun", "youki"];
        known.iter().any(|name| self.version.starts_with(name))
    }
}

/// Returns the runtime's path: a path as given, a name from `PATH`.
pub(super) fn locate(name: &str) -> Result<PathBuf> {
    let shown = name.escape_debug();
    if name.contains('/') {
        let path = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
        return if files::is_program(&path) {
            Ok(path)
        } else {
            Err(EnvError::absent(
                if path.exists() {
                    format!("the runtime `{shown}` is no program")
                } else {
                    format!("there is no runtime `{shown}`")
                },
                "give `runtime` the path of a program, or a name on PATH",
            ))
        };
    }
    files::on_search_path(name, &SYSTEM_FOLDERS).ok_or_else(|| EnvError::Absent {
        why: format!("the runtime `{shown}` is not installed or not on PATH"),
        fix: KNOWN
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, how)| (*how).to_owned()),
    })
}

/// Returns the agent's `private-mounts` command with these options, running `program`.
fn privately(
    cx: &Context<'_>,
    agent: &AgentBinary,
    options: &[&str],
    program: &[&str],
) -> CommandLine {
    let parent = std::process::id().to_string();
    let begin = ["private-mounts", "--parent", &parent];
    let words = [&begin, options, &["--"], program].concat();
    agent.command(words).variable(RUN_VARIABLE, cx.run.as_str())
}

/// Finds a runtime and queries its version.
pub(super) fn find(cx: &Context<'_>, agent: &AgentBinary, name: &str) -> Result<Runtime> {
    let path = locate(name)?;
    let program = path.display().to_string();
    let command = privately(cx, agent, &[], &[&program, "--version"]);
    let finished = cx.exec.run(&command, &[], VERSION_LIMIT)?;
    if !finished.succeeded() {
        let words = finished.stderr_text();
        return Err(refusal(name, finished.status, &words));
    }
    let words = finished.stdout_text();
    let version = words.lines().next().unwrap_or_default().trim();
    Ok(Runtime {
        path,
        version: version.escape_debug().to_string(),
        hides_unified: version.starts_with("crun") && charged::mounts().0 == "hybrid",
    })
}

/// A container's names and paths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Container {
    /// Name within the run.
    pub(super) name: String,
    /// Id for the runtime, and name of the cgroup.
    pub(super) id: String,
    /// The bundle and all other files of the container.
    pub(super) folder: PathBuf,
}

impl Container {
    /// Describes the container of this name in this run.
    pub(super) fn new(cx: &Context<'_>, name: String) -> Self {
        Self {
            id: format!("tare-{}-{name}", cx.run),
            folder: cx.scratch.join(&name),
            name,
        }
    }

    /// Returns the folder for the runtime's state.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Returns the file that appears when the container runs.
    pub(super) fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// Returns the container's existing cgroups.
    pub(super) fn cgroups(&self) -> Vec<PathBuf> {
        let (_, places) = charged::mounts();
        places
            .into_iter()
            .map(|place| place.join(&self.id))
            .filter(|path| path.exists())
            .collect()
    }

    /// Returns what is left of the container in the runtime's state.
    pub(super) fn left_state(&self) -> Vec<String> {
        let mut names = files::names(&self.state()).unwrap_or_default();
        names.retain(|name| name.contains(&self.id));
        names
    }
}

/// Returns the command that runs a container in the foreground and removes what a killed runtime left of it.
pub(super) fn run_command(
    cx: &Context<'_>,
    agent: &AgentBinary,
    runtime: &Runtime,
    settings: &Settings,
    container: &Container,
) -> CommandLine {
    let text = |path: &Path| path.display().to_string();
    let (path, folder) = (text(&runtime.path), text(&container.folder));
    let (state, pid_file) = (text(&container.state()), text(&container.pid_file()));
    let mut begin = vec![path.as_str()];
    begin.extend(settings.runtime_args.iter().map(String::as_str));
    begin.extend(["--root", &state]);
    let run = [
        "run",
        "--bundle",
        &folder,
        "--pid-file",
        &pid_file,
        &container.id,
    ];
    let delete = ["delete", "--force", &container.id];
    let mut options = vec![
        "--run",
        cx.run.as_str(),
        "--name",
        &container.name,
        "--state",
        &state,
    ];
    if runtime.hides_unified {
        options.push("--hide-unified");
    }
    if settings.rootfs == Rootfs::OverlayHost {
        options.extend(["--overlay", &folder]);
    }
    if settings.has_pair() {
        options.extend(["--veth", &folder]);
    }
    for word in begin.iter().chain(&delete) {
        options.extend(["--finally", word]);
    }
    privately(cx, agent, &options, &[&begin[..], &run].concat())
}

/// Known error messages of runtimes. RUNTIME is the runtime's name, ANSWER its message.
static REFUSALS: &[KnownRefusal] = &[
    KnownRefusal::denied(
        &["needs cap_sys_admin"],
        "`RUNTIME` needs namespaces that only root may make",
        "run as root",
    ),
    KnownRefusal::absent(
        &["cgroups in hybrid mode not supported"],
        "`RUNTIME` refuses this machine's mix of cgroup versions (hybrid), and it does not call itself crun, from which Tare would hide the second: ANSWER",
        "boot with systemd.unified_cgroup_hierarchy=1, or use runc",
    ),
    KnownRefusal::absent(
        &[
            "runsc: … cgroup",
            "runsc: … network",
            "runsc: … netns",
            "runsc: … nonroot",
        ],
        "`RUNTIME` cannot use something of this machine: ANSWER",
        "tell it to do without by `runtime_args`: --network=none, --ignore-cgroups, and --TESTONLY-unsafe-nonroot where it may not become another user",
    ),
    KnownRefusal::denied(
        &["unable to apply caps", "capset"],
        "`RUNTIME` may not give a capability of the specification: ANSWER",
        "caps = \"all\" gives those that Tare itself has",
    ),
    KnownRefusal::denied(
        &["rlimit … operation not permitted"],
        "`RUNTIME` may not raise a limit of the specification: ANSWER",
        "take `process.rlimits` out of it, or run with CAP_SYS_RESOURCE",
    ),
    KnownRefusal::denied(
        &["operation not permitted", "permission denied"],
        "`RUNTIME` was refused something by the kernel: ANSWER",
        "",
    ),
];

/// Converts a runtime's last message to an error, classified by what the user can do.
pub(super) fn refusal(name: &str, status: Option<i32>, words: &str) -> EnvError {
    let is_runsc = Path::new(name)
        .file_name()
        .is_some_and(|file| file.to_string_lossy().contains("runsc"));
    let name = name.escape_debug().to_string();
    let answer = escaped(words);
    // The prefix allows rows that apply to runsc only.
    let by = if is_runsc { "runsc:" } else { "" };
    if let Some(known) = KnownRefusal::find(REFUSALS, &format!("{by}{answer}")) {
        return known.error(&[("RUNTIME", &name), ("ANSWER", &answer)]);
    }
    let what = match status {
        Some(status) => {
            format!("`{name}` ended with status {status} before the container had started")
        }
        None => format!("`{name}` was killed before the container had started"),
    };
    EnvError::refused(
        what,
        if answer.is_empty() {
            "it said nothing".into()
        } else {
            answer
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_runtime_is_absent_with_a_hint() {
        for name in [
            "/no/such/runtime",
            "/etc",
            "/etc/passwd",
            "no-such-runtime",
            "./x\u{1b}'\"",
        ] {
            let EnvError::Absent { why, .. } = locate(name).unwrap_err() else {
                panic!("{name}");
            };
            assert!(!why.contains('\u{1b}'), "{why}");
        }
        let EnvError::Absent { fix, .. } = locate("/etc").unwrap_err() else {
            panic!("a folder was found to be something else");
        };
        assert!(fix.is_some());
    }

    #[test]
    fn runtime_errors_are_classified_by_remedy() {
        let of = |words: &str| refusal("x", Some(1), words);
        for words in [
            "tare-agent: make the namespaces: Operation not permitted\nhint: needs CAP_SYS_ADMIN: run as root",
            "unable to apply caps: operation not permitted",
            "setrlimit RLIMIT_NOFILE: operation not permitted",
            "mount: Permission denied",
        ] {
            assert!(matches!(of(words), EnvError::Denied { .. }), "{words}");
        }
        let gvisor = refusal("/opt/runsc", Some(128), "creating netns: no");
        assert!(
            matches!(&gvisor, EnvError::Absent { fix: Some(fix), .. } if fix.contains("--network=none")),
            "{gvisor:?}"
        );
        let hybrid = "cgroups in hybrid mode not supported, drop all controllers from cgroupv2";
        assert!(matches!(of(hybrid), EnvError::Absent { fix: Some(_), .. }));
        let EnvError::Refused { answer, .. } = of("\u{1b}[31mno\r") else {
            panic!("not refused");
        };
        assert_eq!(answer, "\\u{1b}[31mno");
        assert!(of("").to_string().contains("said nothing"));
    }
}
