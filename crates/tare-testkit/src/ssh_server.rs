//! A private ssh server on loopback, with its own keys, lists and client configuration.
//!
//! It runs in a private mount namespace, so that `/run/sshd` and file systems without space or without execution
//! exist only there and not on the machine. It is ended by its process id, with all its child processes; nothing in
//! the user's `~/.ssh` is read or written.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tare_model::Params;

const SSHD: &str = "/usr/sbin/sshd";

/// Prepares the server's mounts and then runs the server with `exec`. Arguments: configuration, mounts
/// (`folder=options`). Root's shell gets a start-up file of the server's: programs that the user's file starts may
/// wait, or leave a lock when killed.
const SCRIPT: &str = r#"
set -e
conf=$1; shift
if [ -e ~root/.bashrc ]; then mount -n --bind "${conf%/*}/bashrc" ~root/.bashrc; fi
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
for mount in "$@"; do mount -t tmpfs -o "${mount#*=}" tmpfs "${mount%%=*}"; done
exec /usr/sbin/sshd -D -e -f "$conf"
"#;

/// Differences of a server from an ordinary one.
#[derive(Default)]
pub struct Plan<'a> {
    /// Lines of its configuration, put before the others.
    pub lines: &'a [&'a str],
    /// The first commands of root's shell.
    pub startup: &'a str,
    /// Options of a file system to mount as its `remote` folder, if any.
    pub mount: Option<&'a str>,
}

/// A server that ends when the value is dropped.
pub struct Server {
    /// The folder with all its files.
    pub folder: tempfile::TempDir,
    /// The port that it listens on, on the loopback.
    pub port: u16,
    child: Option<Child>,
    mounts: Vec<String>,
}

impl Server {
    /// Starts a server; the error says why there can be none.
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

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the folder that acts as the remote one.
    pub fn remote(&self) -> PathBuf {
        self.path_of("remote")
    }

    /// Writes the list of known hosts: this server with the key of this name.
    pub fn know(&self, key: &str) {
        let public = std::fs::read_to_string(self.path_of(&format!("{key}.pub"))).unwrap();
        let line = format!("[127.0.0.1]:{} {public}", self.port);
        std::fs::write(self.path_of("known"), line).unwrap();
    }

    /// Writes the client's configuration, with additional lines before the others.
    pub fn configure(&self, more: &str) {
        let text = format!(
            "Host server\n  {more}\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  \
             IdentitiesOnly yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n  \
             StrictHostKeyChecking ask\n",
            self.port,
            self.path_of("client").display(),
            self.path_of("known").display()
        );
        std::fs::write(self.path_of("config"), text).unwrap();
    }

    /// Makes every session run this program instead of its command, from the server's next start on.
    pub fn force(&self, program: &Path) {
        let path = self.path_of("sshd.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        let line = format!("ForceCommand {}\n", program.display());
        std::fs::write(path, line + &text).unwrap();
    }

    /// Returns the settings of an arm on this server, in its folder.
    pub fn settings(&self) -> Params {
        let [config, folder] = self.places();
        Params::new()
            .with("host", "server")
            .with("config", config.to_str().unwrap())
            .with("folder", folder.to_str().unwrap())
    }

    /// Returns the client's configuration, and the folder that acts as the remote one.
    pub fn places(&self) -> [PathBuf; 2] {
        [self.path_of("config"), self.remote()]
    }

    /// Starts or restarts the server.
    pub fn up(&mut self) {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT]);
        command.arg("sshd").arg(self.path_of("sshd.conf"));
        command.args(&self.mounts);
        let log = std::fs::File::create(self.path_of("log")).unwrap();
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
        let log = std::fs::read_to_string(self.path_of("log")).unwrap_or_default();
        panic!("sshd does not listen: {log}");
    }

    /// Kills all its connections; it keeps listening.
    pub fn drop_connections(&self) {
        let Some(child) = &self.child else { return };
        for pid in children(child.id()) {
            kill(pid);
        }
    }

    /// Kills the server and all its connections.
    pub fn down(&mut self) {
        self.drop_connections();
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Runs a command in the server's mount namespace.
    pub fn run_there(&self, command: &[&str]) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let output = Command::new("nsenter")
            .args(["--mount", "--target", &pid])
            .args(command)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns the names in its folder, once it is empty or after five seconds.
    pub fn left(&self) -> Vec<String> {
        left(&self.remote())
    }
}

/// Returns the names in a folder, once it is empty or after five seconds.
pub fn left(folder: &Path) -> Vec<String> {
    for _ in 0..100 {
        if names(folder).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    names(folder)
}

/// Returns the current names in a folder.
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

/// Returns a free port.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Returns the child processes of a process.
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
    // It may have ended by itself.
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .output()
        .unwrap();
}
