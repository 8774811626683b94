//! What runs have on a machine at this moment, looked for without the program's own help: in `/proc`, in the
//! control groups, among links and by the `docker` command.
//!
//! Only what names the run or the test's folder counts, because other tests and other people use the machine
//! meanwhile. What it cannot see: what carries neither; processes of other users.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// What the alias of a network device begins with; the run follows.
const ALIAS: &str = "tare.run=";

/// Everything of these runs, and whatever lies below `folder`, but for its files: one line each.
pub(crate) fn traces(runs: &BTreeSet<String>, folder: &Path) -> BTreeSet<String> {
    let folder = folder.display().to_string();
    let is_ours = |text: &str| text.contains(&folder) || runs.iter().any(|run| text.contains(run));
    let mut found = BTreeSet::new();
    for run in runs {
        let processes = labelled(run).into_iter();
        found.extend(processes.map(|(pid, command)| format!("process {pid}: {command}")));
    }
    let mut lines = |kind: &str, file: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let ours = text.lines().filter(|line| is_ours(line));
        found.extend(ours.map(|line| format!("{kind} {line}")));
    };
    lines("mount", "/proc/self/mountinfo");
    lines("socket", "/proc/net/unix");
    groups(Path::new("/sys/fs/cgroup"), 6, &mut |path| {
        if is_ours(&path.display().to_string()) {
            found.insert(format!("control group {}", path.display()));
        }
    });
    for entry in entries(Path::new("/sys/class/net")) {
        let alias = fs::read_to_string(entry.path().join("ifalias")).unwrap_or_default();
        let run = alias.trim().strip_prefix(ALIAS);
        if run.is_some_and(|run| runs.contains(run)) {
            found.insert(format!("link {}", entry.path().display()));
        }
    }
    for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        for entry in entries(Path::new(place)) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if runs.iter().any(|run| name.contains(run)) {
                found.insert(format!("file {place}/{name}"));
            }
        }
    }
    found
}

/// Processes that carry the run's label, with their command lines.
pub(crate) fn labelled(run: &str) -> BTreeMap<u32, String> {
    let label = format!("TARE_RUN={run}");
    let mut found = BTreeMap::new();
    for entry in entries(Path::new("/proc")) {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == label.as_bytes())
        {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.insert(pid, command.trim().to_owned());
        }
    }
    found
}

/// Whether a worker of the run has been computing for a while: a trial is on its way. Those that wait for the next
/// one have only started.
pub(crate) fn is_computing(run: &str) -> bool {
    /// Of a hundredth of a second each, in user and in kernel mode.
    const TICKS: u64 = 5;
    labelled(run)
        .into_iter()
        .filter(|(_, command)| command.contains("worker"))
        .any(|(pid, _)| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name before the last bracket may hold spaces.
            let fields = stat.rsplit(')').next().unwrap_or_default();
            let fields = fields.split_whitespace().skip(11).take(2);
            fields
                .filter_map(|ticks| ticks.parse::<u64>().ok())
                .sum::<u64>()
                >= TICKS
        })
}

/// Containers, images, volumes and networks that carry the label of a run, by the `docker` command.
pub(crate) fn docker_objects(run: &str) -> Vec<String> {
    if !has_docker() {
        return Vec::new();
    }
    let label = format!("label=tare.run={run}");
    let questions: [(&str, &[&str]); 4] = [
        ("container", &["ps", "-aq"]),
        ("image", &["image", "ls", "-aq"]),
        ("volume", &["volume", "ls", "-q"]),
        ("network", &["network", "ls", "-q"]),
    ];
    let mut found = Vec::new();
    for (kind, arguments) in questions {
        let output = Command::new("docker")
            .args(arguments)
            .args(["--filter", &label])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        found.extend(text.lines().map(|line| format!("docker {kind} {line}")));
    }
    found
}

/// Whether an engine answers the `docker` command.
pub(crate) fn has_docker() -> bool {
    static ANSWERS: OnceLock<bool> = OnceLock::new();
    *ANSWERS.get_or_init(|| {
        let output = Command::new("docker").arg("version").output();
        output.is_ok_and(|output| output.status.success())
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn groups(folder: &Path, depth: u32, visit: &mut impl FnMut(&Path)) {
    for entry in entries(folder) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path());
            if depth > 0 {
                groups(&entry.path(), depth - 1, visit);
            }
        }
    }
}

/// Controls: one of each kind is planted, and must be found while it is there and not afterwards.
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::product::{Product, is_root};
    use crate::world::{skip, wait_until};

    fn shell(script: &str) {
        let output = Command::new("sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }

    /// What is removed however the test ends.
    struct Planted(String);

    impl Planted {
        fn plant(make: &str, remove: String) -> Self {
            let planted = Self(remove);
            shell(make);
            planted
        }
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            let _ = Command::new("sh").args(["-c", &self.0]).output();
        }
    }

    struct Case {
        product: Product,
        run: String,
    }

    impl Case {
        fn new(kind: &str) -> Self {
            let run = format!("it-planted-{kind}-{}", std::process::id());
            Self {
                product: Product::new(),
                run,
            }
        }

        fn found(&self) -> Vec<String> {
            self.product.look(&BTreeSet::from([self.run.clone()]))
        }

        #[track_caller]
        fn assert_only(&self, kind: &str) {
            let found = self.found();
            assert!(
                !found.is_empty() && found.iter().all(|line| line.starts_with(kind)),
                "{kind}: {found:?}"
            );
        }

        #[track_caller]
        fn assert_nothing(&self) {
            assert_eq!(self.found(), Vec::<String>::new());
        }

        /// Plants by one script, removes by another.
        #[track_caller]
        fn control(&self, kind: &str, make: &str, remove: String) {
            self.assert_nothing();
            let planted = Planted::plant(make, remove);
            self.assert_only(kind);
            drop(planted);
            self.assert_nothing();
        }
    }

    #[test]
    fn a_process_and_what_it_is_is_found() {
        let case = Case::new("process");
        case.assert_nothing();
        let mut process = Command::new("sleep")
            .arg("600")
            .env("TARE_RUN", &case.run)
            .spawn()
            .unwrap();
        // `spawn` may return a moment before the kernel shows the new program's environment.
        wait_until("it is found", || !case.found().is_empty());
        case.assert_only("process");
        process.kill().unwrap();
        process.wait().unwrap();
        case.assert_nothing();
    }

    #[test]
    fn a_socket_a_folder_of_the_run_and_a_file_elsewhere_are_found() {
        let case = Case::new("file");
        let socket = UnixListener::bind(case.product.folder().join("socket")).unwrap();
        case.assert_only("socket");
        drop(socket);
        let folder = case.product.home().join("runs").join(&case.run);
        let (shown, elsewhere) = (folder.display(), format!("/dev/shm/tare-{}", case.run));
        case.control(
            "folder",
            &format!("mkdir -p '{shown}'"),
            format!("rm -r '{shown}'"),
        );
        case.control(
            "file",
            &format!("mkdir '{elsewhere}'"),
            format!("rmdir '{elsewhere}'"),
        );
    }

    #[test]
    fn a_mount_a_control_group_and_a_link_are_found() {
        if !is_root() {
            return skip("root", "only root can mount and make links");
        }
        let case = Case::new("kernel");
        let folder = case.product.folder().join("mounted");
        let folder = folder.display();
        case.control(
            "mount",
            &format!("mkdir '{folder}'; mount -t tmpfs none '{folder}'"),
            format!("umount '{folder}'"),
        );
        // One hierarchy of version 1 is as good as all.
        let base = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        let base = base.into_iter().find(|base| Path::new(base).is_dir());
        let group = format!("{}/tare-{}-arm", base.unwrap(), case.run);
        case.control(
            "control group",
            &format!("mkdir '{group}'"),
            format!("rmdir '{group}'"),
        );
        let name = format!("tp{}", std::process::id());
        case.control(
            "link",
            &format!(
                "ip link add {name} type veth peer name {name}x; ip link set {name} alias tare.run={}",
                case.run
            ),
            format!("ip link delete {name}"),
        );
    }

    #[test]
    fn a_container_an_image_a_volume_and_a_network_of_an_engine_are_found() {
        if !has_docker() {
            return skip("docker", "no Docker engine answers");
        }
        let case = Case::new("engine");
        let (run, label) = (&case.run, format!("tare.run={}", case.run));
        case.control(
            "docker volume",
            &format!("docker volume create --label {label} {run}"),
            format!("docker volume rm {run}"),
        );
        case.control(
            "docker network",
            &format!("docker network create --internal --label {label} {run}"),
            format!("docker network rm {run}"),
        );
        let import = |change: &str| {
            format!("tar -c --files-from /dev/null | docker import {change} - {run}:latest")
        };
        let remove_image = format!("docker image rm {run}:latest");
        case.control(
            "docker image",
            &import(&format!("--change 'LABEL {label}'")),
            remove_image.clone(),
        );
        let _image = Planted::plant(&import(""), remove_image);
        case.control(
            "docker container",
            &format!("docker create --name {run} --label {label} {run}:latest nothing"),
            format!("docker rm {run}"),
        );
    }
}
