//! Tests a machine with a system on its disk.

use super::*;

/// Returns a folder with a system: busybox as its init, which mounts a file system on `/mnt`. `None` without busybox.
fn system() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let below = |path: &str| folder.path().join(path);
    for path in ["bin", "sbin", "etc", "mnt"] {
        fs::create_dir(below(path)).unwrap();
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    let busybox = busybox.into_iter().find(|path| Path::new(path).exists())?;
    fs::copy(busybox, below("bin/busybox")).unwrap();
    std::os::unix::fs::symlink("../bin/busybox", below("sbin/init")).unwrap();
    let line = "::sysinit:/bin/busybox mount -t tmpfs started /mnt\n";
    fs::write(below("etc/inittab"), line).unwrap();
    Some(folder)
}

#[test]
fn system_on_the_disk_runs_its_init_beside_the_agent() {
    let (_turn, world) = needed!(turn_where("system", is_available));
    let Some(folder) = system() else {
        return skip("busybox", "there is no program to be the init");
    };
    let before = Snapshot::take(&world);
    let settings = tcg()
        .with("disk", "virtio")
        .with("disk_size", "96m")
        .with("system", folder.path().to_str().unwrap());
    let mut environment = configure(&settings);
    for _ in 0..2 {
        // The second machine gets the disk of the first.
        let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
        let begin = Instant::now();
        let is_mounted = |facts: &Facts| {
            let mut facts = facts.iter();
            facts.any(|(name, value)| name.contains("/mnt") && value == "tmpfs")
        };
        while !is_mounted(&facts(instance.as_mut())) {
            assert!(begin.elapsed() < ANSWER_LIMIT, "init did not run");
        }
        is_run(instance.as_mut(), 1, "fsync");
        instance.stop(&world.cx()).unwrap();
        let described = environment.describe(&world.cx());
        assert_eq!(described["vm.system_state"], "busybox");
        assert_eq!(described["vm.workdir_filesystem"], "ext4");
    }
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(&world, "remove");
}
