//! Tests that only its user can access Tare's data, that Tare removes only its own, and that reading changes nothing.

use crate::prelude::*;

use std::os::unix::fs::{MetadataExt, symlink};

use tare::cx::owner::Owner;
use tare_testkit::account::set_mode;

use crate::broken_disk::with_mounts;
use crate::traces::docker_objects;

/// `None` if the file does not exist any more.
fn existing<T>(result: std::io::Result<T>) -> Option<T> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        other => Some(other.unwrap()),
    }
}

/// Returns everything below a folder with its permissions and, for files, its content; without what a run removes
/// meanwhile.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let Some(metadata) = existing(fs::symlink_metadata(&path)) else {
            continue;
        };
        let bytes = if metadata.is_file() {
            existing(fs::read(&path))
        } else {
            Some(Vec::new())
        };
        let Some(bytes) = bytes else { continue };
        if metadata.is_dir() {
            found.extend(everything(&path));
        }
        found.insert(path, (metadata.mode(), bytes));
    }
    found
}

/// Creates a run without a living owner; returns its folder.
fn dead_run(product: &Product, name: &str) -> PathBuf {
    let owner = Owner::acquire(&product.home(), &RunId::new(name).unwrap()).unwrap();
    owner.folder().to_owned()
}

#[test]
fn clean_leaves_foreign_folder_untouched() {
    let product = Product::new();
    let runs = product.home().join("runs");
    for name in ["2024-01-01", "exp1/data", "empty"] {
        fs::create_dir_all(runs.join(name)).unwrap();
    }
    fs::write(runs.join("exp1/data/result.csv"), "precious").unwrap();
    fs::write(runs.join("exp1/owner.lock"), "").unwrap();
    symlink(runs.join("exp1"), runs.join("link")).unwrap();
    set_mode(&product.home(), 0o755);
    let before = everything(&product.home());
    for command in ["clean", "runs"] {
        product.run([command]).expect(0);
        assert_eq!(everything(&product.home()), before, "{command}");
    }
    // The same next to a run of Tare.
    dead_run(&product, "own");
    product.run(["clean"]).expect(0);
    let mut after = everything(&product.home());
    after.remove(&runs.join(".lock"));
    assert_eq!(after, before);
}

#[test]
fn who_looks_makes_no_state_folder() {
    let product = Product::new();
    for arguments in [&["runs"][..], &["clean"], &["show"]] {
        product.run(arguments);
        assert!(!product.home().exists(), "{arguments:?}");
    }
}

#[test]
fn mount_in_dead_runs_folder_survives_cleanup() {
    let product = Product::new();
    let folder = dead_run(&product, "mounted");
    let precious = product.folder().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "precious").unwrap();
    for place in ["bound", "memory"] {
        fs::create_dir_all(folder.join("files").join(place)).unwrap();
    }
    let script = "mount --bind \"$1\" \"$2/files/bound\" && mount -t tmpfs none \"$2/files/memory\" && \
                  touch \"$2/files/memory/kept\" || exit 99; kept=$2; shift 2; \"$@\"; code=$?; \
                  ls \"$kept/files/memory\"; exit $code";
    let inner = product.command(["clean"]);
    let ended = needed!(with_mounts(&product, script, &[&precious, &folder], &inner));
    ended.expect(5).complains("mounted").shows("kept");
    assert_eq!(fs::read(precious.join("data")).unwrap(), b"precious");
    // Once unmounted, it can be removed, because it is still marked.
    product.run(["clean"]).expect(0);
    assert!(!folder.exists());
}

#[test]
fn mount_by_measured_command_survives_folder_removal() {
    let product = Product::new();
    let precious = product.folder().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "precious").unwrap();
    let study = format!(
        "id = \"mounts\"\n[design]\nblocks_min = 1\nblocks_max = 1\n[[arm]]\nid = \"host\"\n\
         [[workload]]\nid = \"command\"\n[workload.params]\n\
         argv = [\"/bin/sh\", \"-c\", \"mkdir here && mount --bind {} here\"]\n",
        precious.display()
    );
    let study = product.file("mounts.toml", study);
    let inner = product.command(["run", &study]);
    let script = "mount --bind \"$1\" \"$1\" && umount \"$1\" || exit 99; shift; exec \"$@\"";
    let ended = needed!(with_mounts(&product, script, &[&precious], &inner));
    assert_eq!(
        fs::read(precious.join("data")).ok(),
        Some(b"precious".into()),
        "{ended}"
    );
    ended.complains("something is mounted there");
    // The mount has disappeared with its namespace.
    product.run(["clean"]).expect(0);
    product.assert_nothing_left();
}

#[test]
fn a_run_that_another_process_takes_up_is_not_swept() {
    let product = Product::new();
    let run = RunId::new("living").unwrap();
    let owner = Owner::acquire(&product.home(), &run).unwrap();
    product.run(["clean"]).expect(0);
    assert!(owner.folder().join("owner.lock").exists());
    drop(owner);
    product.run(["clean"]).expect(0);
    assert!(!product.home().join("runs/living").exists());
}

#[test]
fn leftovers_in_stopped_engine_stay_recorded() {
    if !needs_docker() {
        return;
    }
    let host =
        std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".into());
    let Some(socket) = host.strip_prefix("unix://") else {
        return skip("docker", "the engine has no socket here");
    };
    let product = Product::new();
    let door = product.folder().join("engine.sock");
    symlink(socket, &door).unwrap();
    let with_door = |arguments: &[&str]| {
        let mut command = product.command(arguments);
        command.env("DOCKER_HOST", format!("unix://{}", door.display()));
        command
    };
    let arguments = words("run --env docker --workload getppid --blocks 20000");
    let mut started = Product::start(with_door(arguments));
    product.wait_for_trials(&mut started, 2);
    let run = product.stored("SELECT id FROM run")[0].clone();
    started.signal("KILL", false);
    started.wait();
    assert!(!docker_objects(&run).is_empty());

    // Whichever engine is the default by then.
    let clean = || {
        let mut command = product.command(["clean"]);
        command.env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
        product.finish(command)
    };
    fs::remove_file(&door).unwrap();
    for _ in 0..2 {
        clean().expect(5).complains("engine.sock");
        assert!(product.home().join("runs").join(&run).exists());
    }
    symlink(socket, &door).unwrap();
    let ended = clean().expect(0);
    // A container may be between two blocks; the image stays as long as the arm.
    ended.shows("docker image");
    assert_eq!(docker_objects(&run), [""; 0]);
    product.assert_nothing_left();
}

#[test]
fn a_record_that_cannot_be_read_keeps_the_run() {
    let product = Product::new();
    let folder = dead_run(&product, "torn");
    let record = folder.join("docker+arm.places.json");
    fs::write(&record, "").unwrap();
    product
        .run(["clean"])
        .expect(5)
        .complains("docker+arm.places.json");
    fs::remove_file(&record).unwrap();
    product.run(["clean"]).expect(0);
    assert!(!folder.exists());
}

#[test]
fn next_measurement_removes_leftovers_of_killed_runs() {
    let product = Product::new();
    let gone = dead_run(&product, "gone");
    let torn = dead_run(&product, "torn");
    fs::write(torn.join("docker+arm.places.json"), "").unwrap();
    let arguments = words("run --env host --workload getppid --blocks 1");
    for n_tries in 0..2 {
        let ended = product.run(arguments.iter());
        assert!(!gone.exists(), "{ended}");
        // What cannot be removed is tried once, and then left to `tare clean`.
        ended.complains("`tare clean`");
        let is_tried = ended.stderr.contains("docker+arm.places.json");
        assert_eq!(is_tried, n_tries == 0, "{ended}");
    }
    fs::remove_file(torn.join("docker+arm.places.json")).unwrap();
    product.run(["clean"]).expect(0);
    product.assert_nothing_left();
}

#[test]
fn state_files_of_run_are_unreadable_for_other_users() {
    let product = Product::new();
    let environments = if has_container() {
        "host,container"
    } else {
        skip("container", "no container can be made here");
        "host"
    };
    let arguments = [
        words("run --workload getppid --blocks 20000 --env"),
        &[environments],
    ]
    .concat();
    let mut started = Product::start(product.command(arguments));
    product.wait_for_trials(&mut started, 2);
    let found = everything(&product.home());
    started.signal("INT", false);
    started.wait().expect(4);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&product.home()), 0o700);
    assert_eq!(mode(&product.store()), 0o600);
    // Deeper files are visible to arms, behind folders that other users cannot enter. The agent is executed in every
    // arm.
    let is_agent = |path: &Path| path.to_string_lossy().contains("/agent-");
    let is_near = |path: &Path| {
        path.strip_prefix(product.home())
            .unwrap()
            .components()
            .count()
            <= 3
    };
    for (path, (mode, _)) in found {
        if is_near(&path) && !is_agent(&path) {
            assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
        }
    }
}

#[test]
fn state_folder_writable_by_others_is_refused() {
    let product = Product::new();
    fs::create_dir(product.home()).unwrap();
    let refused = |what: &str| {
        let before = everything(product.folder());
        for arguments in [&["run", "--blocks", "1"][..], &["clean"], &["runs"]] {
            product
                .run(arguments)
                .expect(2)
                .complains(what)
                .advises("TARE_HOME");
        }
        assert_eq!(everything(product.folder()), before);
    };
    set_mode(&product.home(), 0o777);
    refused("other users may change");
    set_mode(&product.home(), 0o755);
    if !needs_root() {
        return;
    }
    std::os::unix::fs::chown(product.home(), Some(65534), Some(65534)).unwrap();
    refused("another user");
    // Root's folder inside another user's, who can replace it.
    std::os::unix::fs::chown(product.home(), Some(0), Some(0)).unwrap();
    let above = product.home().parent().unwrap().to_owned();
    std::os::unix::fs::chown(&above, Some(65534), Some(65534)).unwrap();
    refused("another user");
    std::os::unix::fs::chown(&above, Some(0), Some(0)).unwrap();
    // Another user's link to a folder of root's.
    let link = above.join("link");
    symlink(product.home(), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    for name in ["link", "link/"] {
        let mut command = product.command(line("run --blocks 1", &[]));
        command.env("TARE_HOME", above.join(name));
        product.finish(command).expect(2).complains("another user");
    }
}

#[test]
fn stored_run_is_readable_on_read_only_file_system() {
    let product = Product::new();
    product
        .tare("run --env host --workload getppid --blocks 2", &[])
        .expect(0);
    let shown = product.run(["show"]).expect(0).stdout;
    let before = everything(&product.home());
    for arguments in [&["show"][..], &["runs"], &["show", "--json"]] {
        product.run(arguments).expect(0);
        assert_eq!(everything(&product.home()), before, "{arguments:?}");
    }
    let script = "mount --bind \"$TARE_HOME\" \"$TARE_HOME\" && mount -o remount,bind,ro \"$TARE_HOME\" && \
                  ! touch \"$TARE_HOME/x\" 2>/dev/null || exit 99; exec \"$@\"";
    let inner = product.command(["show"]);
    let ended = needed!(with_mounts(&product, script, &[], &inner));
    assert_eq!(ended.expect(0).stdout, shown);
}

/// A product whose run was killed after a few trials.
pub(crate) fn with_killed_run() -> Product {
    let product = Product::new();
    let arguments = words("run --env host --workload getppid --blocks 20000");
    let mut started = Product::start(product.command(arguments));
    product.wait_for_trials(&mut started, 2);
    started.signal("KILL", false);
    started.wait();
    product
}

#[test]
fn foreign_store_is_resumed_only_with_trust() {
    let product = with_killed_run();
    product.run(["clean"]).expect(0);
    // A store from another user.
    let other = Product::new();
    let sent = other.folder().join("sent.sqlite");
    for suffix in ["", "-wal", "-shm"] {
        let from = format!("{}{suffix}", product.store().display());
        if Path::new(&from).exists() {
            fs::copy(from, format!("{}{suffix}", sent.display())).unwrap();
        }
    }
    let store = sent.display().to_string();
    let count = || crate::product::stored(&sent, "SELECT sequence FROM trial").len();
    let before = count();
    other
        .run(["resume", "--store", &store])
        .expect(2)
        .complains("was not begun here")
        .advises("--trust");
    assert_eq!(count(), before);
    for (place, more) in [(&other, &["--trust"][..]), (&product, &[])] {
        let mut words = vec!["resume", "--store", &store];
        words.extend(more);
        let mut started = Product::start(place.command(words));
        let begin = count();
        while count() < begin + 2 {
            assert!(started.is_running(), "it does not go on");
            std::thread::sleep(Duration::from_millis(10));
        }
        started.signal("INT", false);
        started.wait().expect(4);
    }
}

#[test]
fn clean_at_origin_spares_run_resumed_elsewhere() {
    let product = with_killed_run();
    let run = product.stored("SELECT id FROM run")[0].clone();
    assert!(product.home().join("runs").join(&run).exists());
    wait_until("its processes have ended", || labelled(&run).is_empty());
    let elsewhere = Product::new();
    let store = product.store().display().to_string();
    let arguments = ["resume", "--trust", "--store", &store];
    let mut started = Product::start(elsewhere.command(arguments));
    let begin = product.n_trials();
    product.wait_for_trials(&mut started, begin + 2);
    let cleaned = product.run(["clean"]).expect(0);
    assert!(!cleaned.stdout.contains("process"), "{cleaned}");
    assert!(!product.home().join("runs").join(&run).exists());
    let begin = product.n_trials();
    product.wait_for_trials(&mut started, begin + 20);
    started.signal("INT", false);
    started.wait().expect(4);
    assert_eq!(product.stored("SELECT id FROM run"), [run]);
    elsewhere.assert_nothing_left();
}

#[test]
fn docker_under_sudo_does_not_read_other_users_home() {
    if !needs_root() {
        return;
    }
    let product = Product::new();
    let (bin, home) = (product.folder().join("bin"), product.folder().join("home"));
    for folder in [&bin, &home] {
        fs::create_dir(folder).unwrap();
    }
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let shown = product.folder().join("told");
    let script = format!("#!/bin/sh\necho \"$HOME\" >>{}\nexit 1\n", shown.display());
    product.program("bin/docker", script);
    let line = ["why", "--", "docker", "run", "--rm", "x"];
    let compose = ["why", "--compose", "no-such-file", "web"];
    for arguments in [&line[..], &compose] {
        let mut command = product.command(arguments);
        command
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("HOME", &home)
            .env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
        product.finish(command);
    }
    let homes = contents(shown);
    let other = home.display().to_string();
    assert!(homes.lines().all(|home| home != other), "{homes}");
}
