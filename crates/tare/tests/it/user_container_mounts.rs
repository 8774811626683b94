//! Tests mounts of user containers: how their files appear without one of them, and what that confirms.

use crate::prelude::*;

use tare::env::user_container::without;

use crate::docker::world;
use crate::user_container::{Bench, arm_of, bench, docker, notes_of_copies, printed, taken, wish};
use crate::why::confirmed;

#[test]
fn removed_mount_leaves_same_files_in_the_layer() {
    let world = needed!(world("own-mounts"));
    let mut bench = Bench::new("mounts", "ENV OF_IMAGE=1");
    let volume = bench.name("volume", "mounts");
    let folder = world.folder.path().join("mine");
    fs::create_dir_all(folder.join("below")).unwrap();
    fs::write(folder.join("below/text"), "mine\n").unwrap();
    fs::write(folder.join("passwd"), "root:x:0:0:other:/root:/bin/sh\n").unwrap();
    printed("volume create", &[&volume]);
    let shown = folder.display().to_string();
    let data = format!("{shown}:/data/deep");
    let (one, other) = (
        format!("{shown}/passwd:/etc/passwd"),
        format!("{shown}/passwd:/etc/mine"),
    );
    let (kept, volume) = (format!("{shown}:/kept"), format!("{volume}:/empty"));
    let mounts = format!("-v {data} -v {one} -v {other} -v {kept} -v {volume} -v /proc:/host");
    let line = format!("docker run {mounts} {} sleep 9", bench.image);
    let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let before = bench.objects();
    let mut own = taken(&world, Source::Line(&line));
    assert_eq!(
        bench.objects(),
        before,
        "what files were copied from is left"
    );
    let ids: Vec<&str> = own.differences.iter().map(|it| it.id.as_str()).collect();
    let away = [
        "mounted./data/deep",
        "mounted./etc/passwd",
        "mounted./etc/mine",
        "mounted./empty",
    ];
    for id in away.iter().chain(&["mounted./kept"]) {
        assert!(ids.contains(id), "{id} is none of {ids:?}");
    }
    let reported = own.notes.join("\n");
    assert_says(&reported, "`/host` (these are no files)");
    own.settings = without(&own.settings, &away.map(str::to_owned));
    arm_of(&world, &own, |arm| {
        let binds = arm["HostConfig"]["Binds"].to_string();
        assert!(
            binds.contains(":/kept") && !binds.contains("/data") && !binds.contains("/empty"),
            "{binds}"
        );
        let id = arm["Id"].as_str().unwrap();
        let read = |path: &str| printed("exec", &[id, "cat", path]);
        assert_eq!(read("/data/deep/below/text"), "mine");
        // The image has its own file at one of the two paths.
        assert!(!read("/etc/passwd").contains("other"));
        assert!(read("/etc/mine").contains("other"));
        assert_eq!(read("/kept/below/text"), "mine");
        // Writes there stay in the container.
        printed(
            &format!("exec {id} touch /data/deep/theirs /empty/theirs"),
            &[],
        );
    });
    assert!(!folder.join("theirs").exists());
}

#[test]
fn each_arm_writes_to_a_private_copy() {
    let world = needed!(world("own-copies"));
    // The image has a volume where databases keep theirs.
    let mut bench = Bench::new("copies", "VOLUME /var/lib/data");
    let volume = bench.name("volume", "copies");
    let folder = world.folder.path().join("mine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("text"), "mine\n").unwrap();
    fs::write(folder.join("one"), "one\n").unwrap();
    printed("volume create", &[&volume]);
    let shown = folder.display().to_string();
    let (data, one) = (format!("{shown}:/data"), format!("{shown}/one:/etc/one"));
    let kept = format!("{volume}:/var/lib/data");
    let fixed = format!("{shown}:/fixed:ro");
    let image = bench.image.clone();
    let fill = "echo rows >/var/lib/data/rows";
    printed(&format!("run --rm -v {kept} {image} sh -c"), &[fill]);
    let mounts = format!("-v {data} -v {one} -v {kept} -v {fixed}");
    let line = format!("docker run {mounts} {image} sleep 9");
    let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let before = bench.objects();
    let own = taken(&world, Source::Line(&line));
    let wish = wish(&world, Source::Line(&line));
    let reported = notes_of_copies(&DOCKER, &world.cx(), wish, &own).unwrap();
    for place in ["/data", "/etc/one", "/var/lib/data"] {
        assert_says(&reported, &format!("`{place}` is a COPY of"));
    }
    assert_lacks(&reported, "/fixed");
    assert_eq!(
        bench.objects(),
        before,
        "what files were copied from is left"
    );
    arm_of(&world, &own, |arm| {
        let id = arm["Id"].as_str().unwrap();
        let read = |path: &str| printed("exec", &[id, "cat", path]);
        assert_eq!(read("/data/text"), "mine");
        assert_eq!(read("/etc/one"), "one");
        assert_eq!(read("/var/lib/data/rows"), "rows");
        let write = "echo x >/data/text; echo x >/etc/one; echo x >/var/lib/data/rows";
        printed("exec", &[id, "sh", "-c", write]);
        assert_eq!(read("/var/lib/data/rows"), "x");
        assert_eq!(read("/fixed/text"), "mine");
    });
    assert_eq!(contents(folder.join("text")), "mine\n");
    assert_eq!(contents(folder.join("one")), "one\n");
    let look = format!("run --rm -v {kept} {image} cat /var/lib/data/rows");
    assert_eq!(printed(&look, &[]), "rows");
    // A removable mount can also be removed if it is a copy.
    let mut less = own.clone();
    less.settings = without(&own.settings, &["mounted./data".to_owned()]);
    arm_of(&world, &less, |arm| {
        let id = arm["Id"].as_str().unwrap();
        let mounts = arm["Mounts"].to_string();
        assert_lacks(&mounts, "\"/data\"");
        assert_eq!(printed("exec", &[id, "cat", "/data/text"]), "mine");
    });
}

#[test]
fn uncopied_mount_is_read_only_with_hint_to_share() {
    let (mut bench, product) = needed!(bench("nested"));
    let (outer, inner) = (bench.name("volume", "outer"), bench.name("volume", "inner"));
    for volume in [&outer, &inner] {
        printed("volume create", &[volume]);
    }
    let fill = format!("{outer}:/a");
    let image = bench.image.clone();
    let below = format!("{inner}:/a/c");
    // The engine creates the folder for the inner one.
    printed(
        &format!("run --rm -v {fill} -v {below} {image} sh -c :"),
        &[],
    );
    product
        .tare(
            &format!("why --budget 12s -- docker run -v {fill} -v {below} {image} sh -c"),
            &["touch /a/theirs"],
        )
        .expect(5)
        .advises("--share-writable");
    product.assert_nothing_left();
}

/// A file system in which every name lookup passes many folders.
fn deep_volume(bench: &mut Bench, product: &Product) -> String {
    let folders: Vec<String> = (0..60)
        .map(|number| {
            let folder = product.folder().join(number.to_string());
            fs::create_dir_all(&folder).unwrap();
            folder.display().to_string()
        })
        .collect();
    fs::write(product.folder().join("0/mine"), "mine").unwrap();
    let layers = format!("o=lowerdir={}", folders.join(":"));
    let name = bench.name("volume", "deep");
    printed(
        "volume create --opt type=overlay --opt device=overlay --opt",
        &[&layers, &name],
    );
    name
}

#[test]
fn slow_file_system_below_mount_is_confirmed() {
    let (mut bench, product) = needed!(bench("deep"));
    let volume = deep_volume(&mut bench, &product);
    let mount = format!("{volume}:/data");
    let image = bench.image.clone();
    // Names that were never looked up before.
    let script = "read u </proc/sys/kernel/random/uuid; i=0; while [ $i -lt 1500 ]; do [ -e /data/$u$i ]; i=$((i+1)); done; cat /data/mine";
    let look = format!("run --rm -v {mount} {image} sh -c");
    assert_eq!(printed(&look, &[script]), "mine");
    let flags = ["-v", &mount, "-e", "MODE=1", "--shm-size", "32m"];
    let dossier = bench.cost(&product, &["--budget", "240s"], &flags, script);
    let findings = dossier["findings"].as_array().unwrap();
    let first = confirmed(&dossier, "own.mounted./data");
    let advice = first["advice"].as_str().unwrap();
    assert_says(advice, "COPY");
    assert_says(advice, &mount);
    let others = findings.iter().skip(1);
    let confirmed: Vec<_> = others
        .filter(|it| it["status"] == json!("confirmed"))
        .collect();
    assert!(confirmed.is_empty(), "{confirmed:#?}");
    product.assert_nothing_left();
}

/// An in-memory file system at a path, until it is dropped.
pub(crate) struct InMemory(PathBuf);

impl InMemory {
    /// `None`, with a reported skip, if mounting is not possible.
    pub(crate) fn mount(place: &Path) -> Option<Self> {
        fs::create_dir_all(place).unwrap();
        let mount = |arguments: &[&str]| Command::new("mount").args(arguments).arg(place).status();
        let is_mounted = is_root() && mount(&["-t", "tmpfs", "none"]).is_ok_and(|it| it.success());
        if !is_mounted {
            skip("root", "only root can mount");
        }
        is_mounted.then(|| Self(place.to_owned()))
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Returns a disk of this machine, if it has one.
fn disk() -> Option<String> {
    let disks = fs::read_dir("/sys/class/block").ok()?.flatten();
    let mut paths = disks.map(|it| format!("/dev/{}", it.file_name().display()));
    paths.find(|path| fs::metadata(path).is_ok())
}

#[test]
fn docker_leaves_mounts_in_user_folder_unchanged() {
    let world = needed!(world("own-below"));
    let bench = Bench::new("below", "ENV OF_IMAGE=1");
    let folder = world.folder.path().join("mine");
    let _mounted = needed!(InMemory::mount(&folder.join("below")));
    fs::create_dir(folder.join("engine")).unwrap();
    fs::write(folder.join("below/text"), "mine\n").unwrap();
    let socket = folder.join("engine/docker.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let data = format!("{}:/data", folder.display());
    let device = disk().map(|path| format!("--device={path}:/dev/disk"));
    let line = ["docker", "run", "-v", &data].into_iter();
    let line = line
        .chain(device.as_deref())
        .chain([bench.image.as_str(), "sleep", "9"]);
    let line: Vec<String> = line.map(str::to_owned).collect();
    let own = taken(&world, Source::Line(&line));
    let shown = own.notes.join("\n");
    assert_says(&shown, "covered (engine/docker.sock)");
    arm_of(&world, &own, |arm| {
        let id = arm["Id"].as_str().unwrap();
        let does = |script: &str| docker(&["exec", id, "sh", "-c", script]).status.success();
        assert!(!does("echo theirs >/data/theirs"));
        assert!(!does("echo theirs >/data/below/theirs"));
        assert!(!does("[ -S /data/engine/docker.sock ]"));
        for device in arm["HostConfig"]["Devices"]
            .as_array()
            .into_iter()
            .flatten()
        {
            assert_eq!(device["CgroupPermissions"], "r", "{device}");
        }
    });
    let names = fs::read_dir(folder.join("below")).unwrap().count();
    assert_eq!(names, 1, "something was written to the user's file system");
}
