//! Tests `kill -9` of a whole run with an arm over `ssh`: the other end cleans up by itself, and if it could not,
//! `tare clean` does.

use super::server::{Plan, Server, kill, left};
use super::started;
use crate::prelude::*;

use crate::world::agent;

/// Starts a long run in this home and waits until the agent's folder exists; returns its process and its name.
fn run(server: &Server, home: &Path) -> (Child, String) {
    let study = home.join("study.toml");
    let text = format!(
        "id = \"long\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"far\"\ndriver = \"ssh\"\nrequired = true\n\
         [arm.settings]\nhost = \"server\"\nconfig = \"{}\"\nfolder = \"{}\"\n[[workload]]\nid = \"integer\"\n",
        server.folder.path().join("config").display(),
        server.remote().display()
    );
    fs::write(&study, text).unwrap();
    let mut child = tare(home)
        .arg("run")
        .arg(&study)
        .args(["--blocks", "10000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        let mut names = fs::read_dir(server.remote()).unwrap().flatten();
        let name = names.find_map(|entry| entry.file_name().into_string().ok());
        if let Some(name) = name {
            let run = name.strip_prefix("tare-").unwrap();
            let run = run.split('+').next().unwrap().to_owned();
            let serves = |(_, command): &(u32, String)| {
                command.contains("/agent-") && !command.starts_with("ssh ")
            };
            if labelled(&run).into_iter().any(|found| serves(&found)) {
                return (child, run);
            }
        }
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            panic!("{status}: {}", lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    kill(child.id());
    panic!("no agent came to run on the other side");
}

pub(super) fn tare(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.env("TARE_HOME", home).arg("--agent").arg(agent());
    command
}

fn clean(home: &Path) -> Output {
    let output = tare(home).arg("clean").output().unwrap();
    println!("{}", lossy(&output.stdout));
    output
}

/// Waits until no process carries the run's label.
fn nothing_is_left(run: &str) {
    wait_until("nobody is left", || labelled(run).is_empty());
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ssh_remote_cleans_itself_after_tare_is_killed() {
    let server = needed!(started(&Plan::default()));
    let home = tempfile::tempdir().unwrap();
    let (child, run) = run(&server, home.path());
    end(child);
    assert_eq!(server.left(), [""; 0]);
    nothing_is_left(&run);
    let output = clean(home.path());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left(&home.path().join("runs")), [".lock"]);
}

#[test]
fn ssh_leftovers_are_swept_once_host_is_reachable() {
    let mut server = needed!(started(&Plan::default()));
    let home = tempfile::tempdir().unwrap();
    let (child, run) = run(&server, home.path());
    // The other machine loses its guard, as in a power cut, and then Tare and the server are stopped.
    // Kills the guard's shell before the `cat` that it waits for, whichever has the lower PID: a shell that sees its
    // `cat` end cleans up.
    for program in ["/bin/sh -c", "cat"] {
        for (pid, command) in labelled(&run) {
            if command.starts_with(program) {
                kill(pid);
            }
        }
    }
    end(child);
    server.down();
    nothing_is_left(&run);
    let names = || fs::read_dir(server.remote()).unwrap().count();
    assert_eq!(
        names(),
        1,
        "the guard was killed and cleaned up nevertheless"
    );

    let output = clean(home.path());
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let stderr_text = lossy(&output.stderr);
    assert_says(&stderr_text, "Connection refused");
    assert!(
        home.path().join("runs").join(&run).exists(),
        "the record is gone"
    );

    server.up();
    let output = clean(home.path());
    assert!(output.status.success(), "{output:?}");
    let stdout_text = lossy(&output.stdout);
    assert_says(&stdout_text, "removed the folder");
    assert_eq!(server.left(), [""; 0]);
    assert!(!home.path().join("runs").join(&run).exists());
}
