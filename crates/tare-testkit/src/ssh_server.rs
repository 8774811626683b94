//! A private ssh server on loopback, with keys, lists and a client's configuration of its own.
//!
//! It runs in a mount namespace of its own, so that `/run/sshd` and file systems without space or without
//! execution can be there without the machine having them. It is ended by its number, with all that came
//! of it; nothing of the user's (`~/.ssh`) is read or written.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tare_model::Params;

const SSHD: &str = "/usr/sbin/sshd";

/// Makes what a server needs and leaves the rest to `exec`. Words: configuration, mounts (`folder=options`). The start-up
/// file of root's shell is one of the server's: what the user's starts may wait, or leave a lock when it is killed.
const SCRIPT: &str = r#"
set -e
conf=$1; shift
if [ -e ~root/.bashrc ]; then mount -n --bind "${conf%/*}/bashrc" ~root/.bashrc; fi
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
for mount in "$@"; do mount -t tmpfs -o "${mount#*=}" tmpfs "${mount%%=*}"; done
exec /usr/sbin/sshd -D -e -f "$conf"
"#;

/// How a server differs from an ordinary one.
#[derive(Default)]
pub struct Plan<'a> {
    /// Lines of its configuration, before the others.
    pub lines: &'a [&'a str],
    /// What root's shell does first.
    pub startup: &'a str,
    /// Options of a file system that it has as its `remote` folder.
    pub mount: Option<&'a str>,
}

/// A server that is ended with the value.
pub struct Server {
    /// Everything of it.
    pub folder: tempfile::TempDir,
    /// Where it listens on the loopback.
    pub port: u16,
    child: Option<Child>,
    mounts: Vec<String>,
}

impl Server {
    /// Starts one; an error is why there can be none.
    pub fn try_start(plan: &Plan<'_>) -> Result<Self, String> {
        is_possible()?;
        let folder = tempfile::Builder::new()
            .prefix("tare-sshd-")
            .tempdir()
            .unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["host", "client", "other"] {
            key(&at(name));
        }
        std::fs::create_dir(at("remote")).unwrap();
        std::fs::write(at("bashrc"), plan.startup).unwrap();
        std::fs::copy(at("client.pub"), at("authorized")).unwrap();
        let port = free_port();
        let mut lines: Vec<String> = plan.lines.iter().map(|line| (*line).to_owned()).collect();
        lines.extend([
            format!("Port {port}"),
            "ListenAddress 127.0.0.1".to_owned(),
            format!("HostKey {}", at("host").display()),
            "PidFile none".to_owned(),
            format!("AuthorizedKeysFile {}", at("authorized").display()),
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
            "PermitRootLogin yes".to_owned(),
            "PasswordAuthentication no".to_owned(),
            "KbdInteractiveAuthentication no".to_owned(),
            "Subsystem sftp internal-sftp".to_owned(),
            "LogLevel ERROR".to_owned(),
        ]);
        std::fs::write(at("sshd.conf"), lines.join("\n") + "\n").unwrap();
        let mounts = plan
            .mount
            .iter()
            .map(|options| format!("{}={options}", at("remote").display()))
            .collect();
        let mut server = Self {
            folder,
            port,
            child: None,
            mounts,
        };
        server.know("host");
        server.configure("");
        server.up();
        Ok(server)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that stands for the remote one.
    pub fn remote(&self) -> PathBuf {
        self.at("remote")
    }

    /// Writes the list of known hosts: this server with the key of this name.
    pub fn know(&self, key: &str) {
        let public = std::fs::read_to_string(self.at(&format!("{key}.pub"))).unwrap();
        let line = format!("[127.0.0.1]:{} {public}", self.port);
        std::fs::write(self.at("known"), line).unwrap();
    }

    /// Writes the client's configuration, with more lines before the others.
    pub fn configure(&self, more: &str) {
        let text = format!(
            "Host server\n  {more}\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  \
             IdentitiesOnly yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n  \
             StrictHostKeyChecking ask\n",
            self.port,
            self.at("client").display(),
            self.at("known").display()
        );
        std::fs::write(self.at("config"), text).unwrap();
    }

    /// Has every session run this program instead of its command, once it is up again.
    pub fn force(&self, program: &Path) {
        let path = self.at("sshd.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        let line = format!("ForceCommand {}\n", program.display());
        std::fs::write(path, line + &text).unwrap();
    }

    /// Settings of an arm on it, in its own folder.
    pub fn settings(&self) -> Params {
        let [config, folder] = self.places();
        Params::new()
            .with("host", "server")
            .with("config", config.to_str().unwrap())
            .with("folder", folder.to_str().unwrap())
    }

    /// The client's configuration, and the folder that stands for the remote one.
    pub fn places(&self) -> [PathBuf; 2] {
        [self.at("config"), self.remote()]
    }

    /// Starts the server, again if need be.
    pub fn up(&mut self) {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT]);
        command.arg("sshd").arg(self.at("sshd.conf"));
        command.args(&self.mounts);
        let log = std::fs::File::create(self.at("log")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
        for _ in 0..400 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        let log = std::fs::read_to_string(self.at("log")).unwrap_or_default();
        panic!("sshd does not listen: {log}");
    }

    /// Kills every connection that it has; it goes on listening.
    pub fn drop_connections(&self) {
        let Some(child) = &self.child else { return };
        for pid in children(child.id()) {
            kill(pid);
        }
    }

    /// Kills it with every connection.
    pub fn down(&mut self) {
        self.drop_connections();
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Runs a command among the mounts that the server has.
    pub fn run_there(&self, command: &[&str]) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let output = Command::new("nsenter")
            .args(["--mount", "--target", &pid])
            .args(command)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// What there is in its folder, once it is empty or five seconds have passed.
    pub fn left(&self) -> Vec<String> {
        left(&self.remote())
    }
}

/// The names in a folder, once there is none or five seconds have passed.
pub fn left(folder: &Path) -> Vec<String> {
    for _ in 0..100 {
        if names(folder).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    names(folder)
}

/// The names in a folder at this moment.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}

fn is_possible() -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("the server's namespace needs Linux".to_owned());
    }
    if !Path::new(SSHD).exists() {
        return Err(format!("there is no `{SSHD}`"));
    }
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "true"])
        .output();
    match status {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("a mount namespace needs root".to_owned()),
    }
}

fn key(path: &Path) {
    let output = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "tare", "-f"])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A port that is free.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// The processes whose parent this one is.
fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let found = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        found.is_some_and(|found| found.trim() == parent.to_string())
    })
    .collect()
}

/// Kills a process.
pub fn kill(pid: u32) {
    // It may have ended by itself meanwhile.
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .output()
        .unwrap();
}
