//! Tests engines without a socket on this machine: over ssh, and over TLS with certificates.
//!
//! The ssh server, the engine that requires certificates and the client that has them are real, on loopback. Tare
//! runs as for a user, because the search path and DOCKER_HOST are the user's.

use crate::docker;
use crate::prelude::*;

use crate::ssh::server::{Plan, Server};
use crate::ssh::started;

const STUDY: &str = r#"
id = "elsewhere"
arm = [{ id = "host" }, { id = "docker", required = true }]
workload = [{ id = "getppid" }]
"#;

/// Runs one block of the study, with an optional command in front of Tare.
fn run(product: &Product, before: &[&str], variables: &[(&str, &str)]) -> Ended {
    let study = product.home().join("study.toml");
    fs::create_dir_all(product.home()).unwrap();
    fs::write(&study, STUDY).unwrap();
    let tare = product.command([
        "run",
        study.to_str().unwrap(),
        "--blocks",
        "1",
        "--json",
        "-",
    ]);
    let mut command = match before {
        [] => tare,
        [program, arguments @ ..] => product.under(program, arguments, &tare),
    };
    for name in [
        "DOCKER_TLS_VERIFY",
        "DOCKER_CERT_PATH",
        "DOCKER_CONTEXT",
        "DOCKER_CONFIG",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    product.finish(command)
}

fn assert_measured(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let dossier: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        dossier["arms"][2]["available"], true,
        "{}",
        dossier["arms"][2]
    );
    assert_eq!(dossier["cost"]["trials"], 3);
}

/// Asserts that nothing of this test is still running, and that no socket is left.
fn assert_nothing_left(product: &Product) {
    let mut left = Vec::new();
    let mut folders = vec![product.home()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().starts_with("relay-") {
                left.push(entry.path());
            }
        }
    }
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the path of the engine's socket that the tests use.
pub(crate) fn socket() -> Option<String> {
    docker::world("contexts")?;
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    let path = match host.strip_prefix("unix://") {
        Some(path) => path.to_owned(),
        None if host.is_empty() => "/var/run/docker.sock".to_owned(),
        None => {
            skip(
                "docker-socket",
                "the engine is not behind a socket of this machine",
            );
            return None;
        }
    };
    Some(path)
}

/// Returns a search path whose `ssh` uses the configuration of the test's server.
fn search_path(server: &Server) -> String {
    let folder = server.folder.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let config = server.folder.path().join("config");
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n",
        config.display()
    );
    executable(&folder.join("ssh"), script);
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", folder.display())
}

#[test]
fn ssh_engine_is_measured_and_refusal_explained() {
    let socket = needed!(socket());
    let server = needed!(started(&Plan::default()));
    let product = Product::new();
    let path = search_path(&server);
    // The server has a separate /run; this process's root gives access to the machine's.
    let host = format!("ssh://server/proc/{}/root{socket}", std::process::id());
    let with = |host: &str| run(&product, &[], &[("PATH", &path), ("DOCKER_HOST", host)]);
    assert_measured(&with(&host));
    // A different host key: fails without a prompt.
    server.know("other");
    let refused = with(&host);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("Host key verification failed"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("connect once with `ssh`"),
        "{}",
        refused.stderr
    );
    let nowhere = with("ssh://server/no/such.sock");
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.stderr);
    assert_nothing_left(&product);
}

/// A separate engine in a separate network that requires a certificate.
struct Engine {
    process: Child,
    folder: tempfile::TempDir,
}

impl Engine {
    fn start() -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("tare-tls-")
            .tempdir()
            .unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        certificates(folder.path());
        fs::write(folder.path().join("daemon.json"), "{}").unwrap();
        let log = fs::File::create(at("log")).unwrap();
        let script = "ip link set lo up && exec dockerd \"$@\"";
        let process = Command::new("unshare")
            .args([
                "--net",
                "--mount",
                "--propagation",
                "private",
                "--",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .arg(format!("--config-file={}", at("daemon.json")))
            .arg(format!("--data-root={}", at("data")))
            .arg(format!("--exec-root={}", at("exec")))
            .arg(format!("--pidfile={}", at("pid")))
            .args(["--host=tcp://127.0.0.1:2376", "--tlsverify"])
            .arg(format!("--tlscacert={}", at("ca.pem")))
            .arg(format!("--tlscert={}", at("server.pem")))
            .arg(format!("--tlskey={}", at("server-key.pem")))
            .env_remove("DOCKER_HOST")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut engine = Self { process, folder };
        let begin = Instant::now();
        loop {
            let log = fs::read_to_string(engine.folder.path().join("log")).unwrap_or_default();
            if log.contains("API listen on 127.0.0.1:2376") {
                return Ok(engine);
            }
            let has_ended = engine.process.try_wait().unwrap().is_some();
            if has_ended || begin.elapsed() > Duration::from_secs(60) {
                return Err(log.lines().last().unwrap_or("it said nothing").to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begin = Instant::now();
        while matches!(self.process.try_wait(), Ok(None))
            && begin.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let made = command.output().unwrap();
    let stderr_text = lossy(&made.stderr);
    assert!(made.status.success(), "{stderr_text}");
}

/// Creates an authority, a certificate of the server and one of the client, below `client` under the client's names.
fn certificates(folder: &Path) {
    let openssl = |arguments: &[&str]| {
        succeeds(Command::new("openssl").args(arguments).current_dir(folder));
    };
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=tare-ca",
        "-keyout",
        "ca-key.pem",
        "-out",
        "ca.pem",
    ]);
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    for name in ["server", "client"] {
        let (key, request, certificate) = (
            format!("{name}-key.pem"),
            format!("{name}.csr"),
            format!("{name}.pem"),
        );
        openssl(&[
            "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tare", "-keyout", &key, "-out",
            &request,
        ]);
        openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca-key.pem",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            &certificate,
        ]);
    }
    for (set, certificate) in [("client-folder", "client"), ("stranger-folder", "")] {
        let set = folder.join(set);
        fs::create_dir_all(&set).unwrap();
        fs::copy(folder.join("ca.pem"), set.join("ca.pem")).unwrap();
        if !certificate.is_empty() {
            fs::copy(folder.join("client.pem"), set.join("cert.pem")).unwrap();
            fs::copy(folder.join("client-key.pem"), set.join("key.pem")).unwrap();
        }
    }
}

#[test]
fn tls_engine_measured_with_cert_explained_without() {
    if docker::world("contexts-tls").is_none() {
        return;
    }
    for (program, option) in [
        ("dockerd", "--version"),
        ("openssl", "version"),
        ("docker", "--version"),
    ] {
        if Command::new(program).arg(option).output().is_err() {
            return skip("docker-tls", &format!("`{program}` is not installed"));
        }
    }
    let engine = match Engine::start() {
        Ok(engine) => engine,
        Err(why) => {
            return skip(
                "docker-tls",
                &format!("no engine with TLS can be had: {why}"),
            );
        }
    };
    let product = Product::new();
    let pid = engine.process.id().to_string();
    // The engine has a separate loopback.
    let inside = ["nsenter", "--net", "--target", &pid];
    let at = |name: &str| engine.folder.path().join(name).display().to_string();
    let (client, stranger, config) = (at("client-folder"), at("stranger-folder"), at("config"));
    let host = ("DOCKER_HOST", "tcp://127.0.0.1:2376");
    let verify = ("DOCKER_TLS_VERIFY", "1");
    let known = run(
        &product,
        &inside,
        &[host, verify, ("DOCKER_CERT_PATH", &client)],
    );
    assert_measured(&known);
    let unknown = run(
        &product,
        &inside,
        &[host, verify, ("DOCKER_CERT_PATH", &stranger)],
    );
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("certificate"), "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("hint: check the certificates"),
        "{}",
        unknown.stderr
    );
    // The same through a context with the certificates.
    let address = format!(
        "host=tcp://127.0.0.1:2376,ca={client}/ca.pem,cert={client}/cert.pem,key={client}/key.pem"
    );
    succeeds(
        Command::new("docker")
            .args(["context", "create", "tare-tls", "--docker", &address])
            .env("DOCKER_CONFIG", &config)
            .env_remove("DOCKER_HOST"),
    );
    let context = [
        ("DOCKER_HOST", ""),
        ("DOCKER_CONFIG", config.as_str()),
        ("DOCKER_CONTEXT", "tare-tls"),
    ];
    assert_measured(&run(&product, &inside, &context));
    assert_nothing_left(&product);
}
