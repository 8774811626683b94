//! A Docker engine for tests: an existing one, or a private one that leaves nothing behind.
//!
//! A private engine has all its state in one temporary folder and, if permitted, a private mount namespace, so that
//! its mounts end with it. It still shares the machine's network, because tests must reach containers over the
//! bridge; bridge, firewall rules and forwarding are restored afterwards. If something is attached to Docker's usual
//! bridge (another engine's containers, or leftovers of a killed one), it gets a separate bridge: two engines on one
//! bridge would give the same address to two containers.
//! Limits: does not notice firewall changes by others meanwhile; only rules that name Docker's chains and bridge are
//! removed.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::bridge::Before;

mod bridge;

/// Time limit for an engine's answer to its first request.
const START_LIMIT: Duration = Duration::from_secs(90);
/// Time limit for its end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Network of a private engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The default bridge with its firewall rules.
    Bridge,
    /// A separate network namespace, reachable only over the engine's socket: for an engine next to another one.
    Private,
}

/// A responding engine. Dropping it ends it, if it was started here.
#[derive(Debug)]
pub struct Engine {
    host: String,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    process: Child,
    folder: PathBuf,
    before: Before,
}

impl Engine {
    /// Returns the engine at `DOCKER_HOST` or the default place if one answers; otherwise a private one, for which
    /// `docker.io` is installed if `dockerd` is missing. The latter needs root.
    pub fn ensure() -> Result<Self> {
        let host = std::env::var("DOCKER_HOST")
            .ok()
            .filter(|host| !host.is_empty());
        if let Some(host) = host {
            ping(&host).with_context(|| format!("DOCKER_HOST names `{host}`"))?;
            return Ok(Self { host, own: None });
        }
        if let Some(engine) = Self::default_here() {
            return Ok(engine);
        }
        if !cfg!(target_os = "linux") {
            bail!(
                "no engine answers at {}; start Docker Desktop",
                default_host()
            );
        }
        if !is_root() {
            bail!(
                "no engine answers at {}, and starting one needs root",
                default_host()
            );
        }
        if run("dockerd", &["--version"]).is_err() {
            run(
                "apt-get",
                &["install", "-y", "--no-install-recommends", "docker.io"],
            )
            .context("dockerd is not installed and apt-get could not install it")?;
            // The package may have started one.
            if let Some(engine) = Self::default_here() {
                return Ok(engine);
            }
        }
        Self::start(Network::Bridge)
    }

    fn default_here() -> Option<Self> {
        let host = default_host().to_owned();
        ping(&host).ok().map(|()| Self { host, own: None })
    }

    /// Starts a private engine, even if there is another one.
    pub fn start(network: Network) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tare-engine-{}-{number}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut before = Before::look(network);
        let made = before.make_bridge(number);
        let process = match made.and_then(|()| launch(&folder, network, before.made.as_deref())) {
            Ok(process) => process,
            Err(error) => {
                before.restore();
                let _ = fs::remove_dir_all(&folder);
                return Err(error);
            }
        };
        let mut engine = Self {
            host: format!("unix://{}", folder.join("docker.sock").display()),
            own: Some(Own {
                process,
                folder,
                before,
            }),
        };
        engine.wait_until_it_answers()?;
        Ok(engine)
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let begin = Instant::now();
        while ping(&self.host).is_err() {
            let own = self.own.as_mut().expect("only called on an own engine");
            let ended = own.process.try_wait().context("cannot wait for dockerd")?;
            if ended.is_some() || begin.elapsed() > START_LIMIT {
                let log = fs::read_to_string(own.folder.join("log")).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(8)..].join("\n");
                let how = ended.map_or_else(
                    || format!("did not answer within {} s", START_LIMIT.as_secs()),
                    |status| format!("ended at once ({status})"),
                );
                bail!(
                    "dockerd {how}:\n{}",
                    tail.escape_debug().to_string().replace("\\n", "\n")
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Returns the value of `DOCKER_HOST` for programs that use this engine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the process id of a private engine.
    pub fn pid(&self) -> Option<u32> {
        self.own.as_ref().map(|own| own.process.id())
    }

    /// Stops a private engine cleanly and starts it again with the same state, as an upgrade does.
    pub fn restart(&mut self, network: Network) -> Result<()> {
        let Some(own) = &mut self.own else {
            bail!("this engine was not started here");
        };
        own.stop();
        own.process = launch(&own.folder, network, own.before.made.as_deref())?;
        self.wait_until_it_answers()
    }

    /// Kills a private engine abruptly, as a crash would. Its containers stay until the value is dropped.
    pub fn kill(&mut self) -> Result<()> {
        let Some(own) = &mut self.own else {
            bail!("this engine was not started here");
        };
        own.process.kill().context("cannot kill dockerd")?;
        own.process.wait().context("cannot wait for dockerd")?;
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            own.end();
        }
    }
}

impl Own {
    /// Stops the engine cleanly, or by force after a time limit.
    fn stop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = run("kill", &["-TERM", &self.process.id().to_string()]);
            let begin = Instant::now();
            while matches!(self.process.try_wait(), Ok(None)) && begin.elapsed() < STOP_LIMIT {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Ends the engine, its shims and containers, and removes its mounts, network and files. Continues after every
    /// failure, so that as much as possible is removed.
    fn end(mut self) {
        self.stop();
        end_stragglers(&self.folder);
        for point in mounts_below(&self.folder) {
            let _ = run("umount", &["-l", &point]);
        }
        self.before.restore();
        // The kernel may take a moment to release a mount namespace's last files.
        for _ in 0..20 {
            match fs::remove_dir_all(&self.folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => return,
            }
        }
    }
}

fn default_host() -> &'static str {
    if cfg!(windows) {
        "npipe:////./pipe/docker_engine"
    } else {
        "unix:///var/run/docker.sock"
    }
}

fn is_root() -> bool {
    run("id", &["-u"]).is_ok_and(|id| id.trim() == "0")
}

/// Pings the engine over plain HTTP.
fn ping(host: &str) -> Result<()> {
    const REQUEST: &[u8] = b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n";
    let limit = Some(Duration::from_secs(3));
    let (scheme, address) = host.split_once("://").context("it has no scheme")?;
    let answer = match scheme {
        #[cfg(unix)]
        "unix" => {
            let stream = std::os::unix::net::UnixStream::connect(address)?;
            stream.set_read_timeout(limit)?;
            exchange(stream, REQUEST)?
        }
        #[cfg(windows)]
        "npipe" => {
            let path = address.replace('/', "\\");
            exchange(
                fs::OpenOptions::new().read(true).write(true).open(path)?,
                REQUEST,
            )?
        }
        "tcp" | "http" => {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_read_timeout(limit)?;
            exchange(stream, REQUEST)?
        }
        other => bail!("the scheme `{}` cannot be tried here", other.escape_debug()),
    };
    if answer.contains(" 200 ") {
        Ok(())
    } else {
        bail!(
            "it answers, but not as an engine: {}",
            answer.escape_debug()
        )
    }
}

/// Writes a request and returns the first line of the answer.
fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Result<String> {
    stream.write_all(request)?;
    let mut answer = [0u8; 256];
    let count = stream.read(&mut answer)?;
    let text = String::from_utf8_lossy(&answer[..count]).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn launch(folder: &Path, network: Network, bridge: Option<&str>) -> Result<Child> {
    let place = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("daemon.json"), "{}")
        .context("cannot write the engine's configuration")?;
    let mut arguments = vec![
        "dockerd".to_owned(),
        format!("--config-file={}", place("daemon.json")),
        format!("--data-root={}", place("data")),
        format!("--exec-root={}", place("exec")),
        format!("--pidfile={}", place("dockerd.pid")),
        format!("--host=unix://{}", place("docker.sock")),
    ];
    arguments.extend(bridge.map(|name| format!("--bridge={name}")));
    // With the system's containerd, containers are created outside dockerd's namespaces.
    let has_containerd = Path::new("/run/containerd/containerd.sock").exists();
    let mut prefix = vec!["unshare".to_owned()];
    match network {
        Network::Private if has_containerd => {
            bail!(
                "a containerd of the system's runs, so an engine cannot have namespaces of its own"
            );
        }
        // Not `--bridge=none` in the machine's network: that deletes the bridge of the other engine.
        Network::Private => prefix.push("--net".into()),
        Network::Bridge => {}
    }
    if !has_containerd {
        prefix.extend(["--mount", "--propagation", "private", "--"].map(str::to_owned));
        arguments.splice(0..0, prefix);
    }
    let log = fs::File::create(folder.join("log")).context("cannot make the engine's log")?;
    Command::new(&arguments[0])
        .args(&arguments[1..])
        .env_remove("DOCKER_HOST")
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the log")?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start `{}`", arguments.join(" ")))
}

/// Kills leftovers of a crashed engine: its containerd and shims, identified by the folder in their command lines,
/// and the containers' processes below the shims.
fn end_stragglers(folder: &Path) {
    let folder = folder.display().to_string();
    let ours: Vec<u32> = processes()
        .into_iter()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&format!("{folder}/")))
        })
        .filter(|pid| *pid != std::process::id())
        .collect();
    let children: Vec<u32> = processes()
        .into_iter()
        .filter(|pid| parent(*pid).is_some_and(|parent| ours.contains(&parent)))
        .collect();
    for pid in children.into_iter().chain(ours) {
        let _ = run("kill", &["-KILL", &pid.to_string()]);
    }
    std::thread::sleep(Duration::from_millis(100));
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..]
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Returns the mount points below the folder, innermost first.
fn mounts_below(folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.display());
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mut points: Vec<String> = points
        .filter(|point| point.starts_with(&prefix))
        .map(str::to_owned)
        .collect();
    points.reverse();
    points
}

/// Runs a program to its end and returns its stdout.
fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{program}`"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&output.stderr)
            .escape_debug()
            .to_string();
        bail!("`{program} {}` failed: {words}", arguments.join(" "))
    }
}

/// Runs a program with this text as its stdin.
fn feed(program: &str, text: &str) -> Result<()> {
    let mut child = Command::new(program).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_without_engine_is_recognised() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = format!("tcp://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .write_all(b"HTTP/1.0 404 nothing here\r\n\r\n")
                .unwrap();
        });
        let error = ping(&host).unwrap_err().to_string();
        assert!(error.contains("not as an engine"), "{error}");
        server.join().unwrap();
        assert!(ping("ssh://x").is_err() && ping("x").is_err());
    }
}
