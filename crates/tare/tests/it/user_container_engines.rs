//! Tests user containers with unusual engines, images or processes: a remote or read-only engine, an image for
//! another processor, a first program that goes into the background, a swarm task.

use crate::prelude::*;

use std::net::Shutdown;

use crate::docker_contexts::socket;
use crate::user_container::{Bench, bench, inspected};
use crate::user_container_ways::{WORK, started};

/// One end of a connection.
trait End: Read + Write + Send + Sized + 'static {
    fn twin(&self) -> Self;
    fn close(&self);
}

impl End for TcpStream {
    fn twin(&self) -> Self {
        self.try_clone().unwrap()
    }
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl End for UnixStream {
    fn twin(&self) -> Self {
        self.try_clone().unwrap()
    }
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

fn copy(mut from: impl End, mut to: impl End) {
    let _ = std::io::copy(&mut from, &mut to);
    to.close();
}

/// Forwards a connection to the engine's socket; `refuses` sees the head of its request, and may answer instead.
fn pass(mut client: impl End, engine: &str, refuses: fn(&str) -> Option<&'static str>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    if let Some(answer) = refuses(&lossy(&head)) {
        let _ = client.write_all(answer.as_bytes());
        client.close();
        return;
    }
    let Ok(mut engine) = UnixStream::connect(engine) else {
        return;
    };
    if engine.write_all(&head).is_err() {
        return;
    }
    let (back, forth) = (engine.twin(), client.twin());
    std::thread::spawn(move || copy(forth, engine));
    copy(back, client);
}

/// Serves an engine over TCP on loopback; returns its address for `DOCKER_HOST`.
fn elsewhere(engine: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = engine.clone();
            std::thread::spawn(move || pass(client, &engine, |_| None));
        }
    });
    format!("tcp://{address}")
}

/// Returns the answer of a read-only proxy.
fn only_looks(head: &str) -> Option<&'static str> {
    let is_look = head.starts_with("GET ") || head.starts_with("HEAD ");
    (!is_look).then_some(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 34\r\nConnection: close\r\n\r\nRequest forbidden by the socket's.",
    )
}

fn read_only(engine: String, folder: &Path) -> String {
    let path = folder.join("read-only.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = engine.clone();
            std::thread::spawn(move || pass(client, &engine, only_looks));
        }
    });
    format!("unix://{}", path.display())
}

/// Runs `tare why` with another engine than the default.
fn ask_at(product: &Product, host: &str, arguments: &[&str]) -> Ended {
    let mut command = product.command([&["why", "--budget", "25s"], arguments].concat());
    command.env("DOCKER_HOST", host);
    for name in ["DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
        command.env_remove(name);
    }
    product.finish(command)
}

#[test]
fn engine_over_tcp_works_like_one_over_socket() {
    let engine = needed!(socket());
    let bench = Bench::new("far", "ENV OF_IMAGE=1");
    let product = Product::new();
    let before = bench.objects();
    let host = elsewhere(engine);
    let ask = line(
        "-- docker run -e MODE=1 -v /etc:/host:ro",
        &[&bench.image, "sh", "-c", WORK],
    );
    let ended = ask_at(&product, &host, &ask);
    ended.expect(0).complains("the variable `MODE`");
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn read_only_engine_is_reported_without_leftovers() {
    let engine = needed!(socket());
    let mut bench = Bench::new("readable", "ENV OF_IMAGE=1");
    let product = Product::new();
    let name = started(&mut bench, "readable", &[], &["sleep", "600"]);
    let before = (bench.objects(), inspected(&name));
    let folder = tempfile::tempdir().unwrap();
    let host = read_only(engine, folder.path());
    let image = bench.image.clone();
    let line = ["--", "docker", "run", &image, "sh", "-c", WORK];
    let like = ["--like", &name, "--", "sh", "-c", WORK];
    let inside = ["--inside", &name, "--", "sh", "-c", WORK];
    for arguments in [&line[..], &like, &inside] {
        let ended = ask_at(&product, &host, arguments).expect(3);
        ended.complains("forbidden");
        ended.advises("DOCKER_HOST");
        ended.does_not_complain("left behind");
    }
    assert_eq!((bench.objects(), inspected(&name)), before);
    product.assert_nothing_left();
}

#[test]
fn image_for_other_architecture_is_refused_early() {
    let (mut bench, product) = needed!(bench("foreign"));
    let foreign = format!("{}-foreign", bench.image);
    bench.keep("image", &foreign);
    // The same files, marked as for another processor.
    let script = r#"set -e
        folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
        docker save "$1" | tar -x
        config=$(sed 's/.*"Config":"\([^"]*\)".*/\1/' manifest.json)
        sed -i 's/"architecture":"[^"]*"/"architecture":"s390x"/' "$config"
        sed -i "s#$1:latest#$2:latest#" manifest.json
        rm -f repositories index.json oci-layout
        tar -c . | docker load"#;
    let made = Command::new("sh")
        .args(["-c", script, "sh", &bench.image, &foreign])
        .stdout(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let before = bench.objects();
    let ended = product.tare(
        &format!("why --budget 9s -- docker run {foreign} sh -c"),
        &[WORK],
    );
    ended.expect(3).complains("s390x").advises("processor");
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn background_entrypoint_is_reported_and_ended() {
    if !needs_docker() {
        return;
    }
    let entry = "ENTRYPOINT [\"sh\", \"-c\", \"sleep 60 & echo begun\"]";
    let bench = Bench::new("daemon", entry);
    let product = Product::new();
    let before = bench.objects();
    let ended = product.tare(
        "why --budget 25s -- docker run -d -e MODE=1",
        &[&bench.image],
    );
    ended.expect(0).complains("in the background");
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn swarm_task_is_refused_with_alternative() {
    let (mut bench, product) = needed!(bench("swarm"));
    // A swarm task is recognised by its label.
    let labels = "--label com.docker.swarm.task.id=x1 --label com.docker.swarm.service.name=web";
    let name = started(&mut bench, "task", words(labels), &["sleep", "600"]);
    let before = (bench.objects(), inspected(&name));
    let ended = product.tare(&format!("why --like {name} --budget 9s -- sh -c"), &[WORK]);
    ended
        .expect(3)
        .complains("swarm's service")
        .advises("docker run");
    assert_eq!((bench.objects(), inspected(&name)), before);
    product.assert_nothing_left();
}
