//! Controls of the search for traces: one of each kind is planted, and must be found while it exists and not
//! afterwards.

use crate::prelude::*;

fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

/// A planted object; removed however the test ends.
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
        assert_eq!(self.found(), [""; 0]);
    }

    /// Plants with one script, removes with another.
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
fn trace_check_finds_a_process() {
    let case = Case::new("process");
    case.assert_nothing();
    let mut process = Command::new("sleep")
        .arg("600")
        .env("TARE_RUN", &case.run)
        .spawn()
        .unwrap();
    // `spawn` may return shortly before the kernel shows the new program's environment.
    wait_until("it is found", || !case.found().is_empty());
    case.assert_only("process");
    process.kill().unwrap();
    process.wait().unwrap();
    case.assert_nothing();
}

#[test]
fn trace_check_finds_socket_run_folder_and_file() {
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
    if !needs_root() {
        return;
    }
    let case = Case::new("kernel");
    let folder = case.product.folder().join("mounted");
    let folder = folder.display();
    case.control(
        "mount",
        &format!("mkdir '{folder}'; mount -t tmpfs none '{folder}'"),
        format!("umount '{folder}'"),
    );
    // With version 1 any hierarchy will do.
    let base = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
    let base = base.into_iter().find(|base| Path::new(base).is_dir());
    let group = format!("{}/tare-{}-arm", base.unwrap(), case.run);
    case.control(
        "cgroup",
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
fn trace_check_finds_engine_objects() {
    if !needs_docker() {
        return;
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
