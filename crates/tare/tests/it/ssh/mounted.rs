//! Tests that mounts in the folders on the other machine belong to others, and stay when the folders are removed.

use crate::prelude::*;

use super::killed::tare;
use super::server::{Plan, left};
use super::started;
use super::{environment, nothing_is_left};
use crate::talk::once;

#[test]
fn mount_in_ssh_folders_survives_their_removal() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-mounted");
    let precious = tempfile::tempdir().unwrap();
    let data = precious.path().join("data");
    fs::write(&data, "precious").unwrap();
    let mut environment = environment(&server.settings());
    let mut instance = environment.resident(&world);
    let place = format!("{}/here", instance.workdir());
    let source = precious.path().display();
    let script = format!("mkdir {place} && mount --bind {source} {place}");
    let call = CommandCall::new("/bin/sh", ["-c".to_owned(), script]);
    let reply = once(instance.as_mut(), 1, call.to_probe());
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    instance.stop(&world.cx()).unwrap();
    // By the guard there, and then through another connection.
    let error = environment.remove(&world.cx()).unwrap_err().to_string();
    assert_says(&error, "something is mounted at");
    assert_eq!(fs::read(&data).unwrap(), b"precious");
    server.run_there(&["umount", &place]);
    environment.remove(&world.cx()).unwrap();
    nothing_is_left(&world, &server);
    assert_eq!(fs::read(&data).unwrap(), b"precious");
}

#[test]
fn why_leftovers_over_ssh_stay_recorded_until_cleaned() {
    let server = needed!(started(&Plan::default()));
    let home = tempfile::tempdir().unwrap();
    let (work, precious) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = precious.path().join("data");
    fs::write(&data, "precious").unwrap();
    // Only on the server's side, which has a separate `/run`.
    let script = format!(
        "[ \"$(ls /run)\" = sshd ] || exit 0; for d in {}/tare-*; do mkdir -p $d/here; \
         mountpoint -q $d/here || mount --bind {} $d/here; done",
        server.remote().display(),
        precious.path().display()
    );
    let env = format!(
        "ssh:host=server,config={},folder={}",
        server.folder.path().join("config").display(),
        server.remote().display()
    );
    let output = tare(home.path())
        .args(["why", "--env", &env, "--budget", "20s", "--", "sh", "-c"])
        .arg(script)
        .current_dir(work.path())
        .output()
        .unwrap();
    let stderr_text = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr_text}");
    assert_says(&stderr_text, "something is mounted at");
    assert_eq!(fs::read(&data).unwrap(), b"precious");
    // The connection stays recorded as long as something is there.
    for (is_mounted, code) in [(true, 5), (false, 0)] {
        if !is_mounted {
            let places = fs::read_dir(server.remote()).unwrap();
            for place in places.map(|place| place.unwrap().path().join("here")) {
                server.run_there(&["umount", place.to_str().unwrap()]);
            }
        }
        let output = tare(home.path()).arg("clean").output().unwrap();
        let stderr_text = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr_text}");
        assert_eq!(fs::read(&data).unwrap(), b"precious");
    }
    assert_eq!(server.left(), [""; 0]);
    assert_eq!(left(&home.path().join("runs")), [".lock"]);
}
