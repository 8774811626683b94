//! Tests the `docker` driver against a fake engine for Windows containers. It answers as Docker's does, records the
//! requests in order, and fails on demand. There are no containers.

use crate::prelude::*;

use tare::env::docker::Docker;
use tare_model::wire::{read_frame, write_frame};

const BUILD: &str = "0.1.0-00-o2-x86_64-pc-windows-gnu";
const IMAGE: &str = "mcr.microsoft.com/windows/nanoserver:ltsc2022";

/// The requests: `METHOD path`, and the body.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

struct Engine {
    world: World,
    driver: Docker,
    asked: Requests,
}

impl Engine {
    /// Returns an engine for `system`. It answers a request that contains the first string of `fault` with status 500
    /// and the second.
    fn new(name: &str, system: &'static str, fault: Option<(&'static str, &'static str)>) -> Self {
        let mut world = World::new(name);
        let agent = world.folder.path().join("agent.exe");
        fs::write(&agent, format!("<tare-agent-build {BUILD}>")).unwrap();
        world.agents = Agents::only(&agent).unwrap();
        let path = world.folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let asked = Requests::default();
        let noted = asked.clone();
        // The thread ends with the test program; no client connects after a test.
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let noted = noted.clone();
                std::thread::spawn(move || serve(&connection, system, fault, &noted));
            }
        });
        let driver = Docker::with_host(format!("unix://{}", path.display()));
        Self {
            world,
            driver,
            asked,
        }
    }

    /// Returns why an arm with these settings does not start.
    fn refused(&self, settings: &Params) -> EnvError {
        let arm = ArmId::new("box").unwrap();
        let mut environment = self.driver.configure(arm, settings).unwrap();
        let cx = self.world.cx();
        let prepared = environment.prepare(&cx);
        let started = prepared.and_then(|()| environment.start(&cx, StartMode::Resident));
        started.err().expect("it starts")
    }

    /// Returns all requests that change something.
    fn changes(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let words = asked.iter().map(|(words, _)| words.clone());
        words.filter(|words| !words.starts_with("GET")).collect()
    }

    fn body(&self, of: &str) -> Vec<u8> {
        let asked = self.asked.lock().unwrap();
        let found = asked.iter().find(|(words, _)| words.contains(of));
        found
            .unwrap_or_else(|| panic!("no {of} in {asked:?}"))
            .1
            .clone()
    }
}

fn image() -> Params {
    Params::new().with("image", IMAGE)
}

/// Answers one connection, request by request.
fn serve(connection: &UnixStream, system: &str, fault: Option<(&str, &str)>, asked: &Requests) {
    let mut reader = BufReader::new(connection);
    let mut writer = connection;
    while let Some((words, body)) = request(&mut reader) {
        asked.lock().unwrap().push((words.clone(), body));
        if let Some((_, message)) = fault.filter(|(part, _)| words.contains(part)) {
            respond(&mut writer, 500, &json!({ "message": message }));
        } else if words.starts_with("POST /exec/") {
            let head = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
                 Content-Type: application/vnd.docker.raw-stream\r\n\r\n";
            writer.write_all(head.as_bytes()).unwrap();
            return be_the_agent(&mut reader, &mut writer);
        } else {
            let (status, answer) = answer(&words, system);
            respond(&mut writer, status, &answer);
        }
    }
}

/// Reads the next request: its words without the API version, and its body.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|count| *count > 0)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let path = match path.strip_prefix("/v") {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => {
            &rest[rest.find('/')?..]
        }
        _ => path,
    };
    let asked = format!("{method} {path}");
    let mut fields = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        fields.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if fields.contains_key("transfer-encoding") {
        loop {
            let mut length = String::new();
            reader.read_line(&mut length).ok()?;
            let length = usize::from_str_radix(length.trim(), 16).ok()?;
            let mut piece = vec![0; length + 2];
            reader.read_exact(&mut piece).ok()?;
            body.extend_from_slice(&piece[..length]);
            if length == 0 {
                break;
            }
        }
    } else if let Some(length) = fields.get("content-length") {
        body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
    }
    Some((asked, body))
}

fn respond(writer: &mut impl Write, status: u16, answer: &Value) {
    let text = if answer.is_null() {
        String::new()
    } else {
        answer.to_string()
    };
    // The client may be gone.
    let _ = write!(
        writer,
        "HTTP/1.1 {status} x\r\nApi-Version: 1.47\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
}

/// Returns Docker's answer, as far as the driver reads it.
fn answer(words: &str, system: &str) -> (u16, Value) {
    let path = words.split(['?', ' ']).nth(1).unwrap_or_default();
    let version = json!({ "Version": "27.3.1", "ApiVersion": "1.47", "MinAPIVersion": "1.24", "Os": system, "Arch": "amd64" });
    let info = json!({ "OSType": system, "Architecture": "x86_64", "NCPU": 2, "MemTotal": 4_294_967_296_u64,
        "OperatingSystem": "Microsoft Windows Server Version 21H2", "KernelVersion": "10.0 20348", "DefaultRuntime": "" });
    match path {
        "/version" => (200, version),
        "/info" => (200, info),
        "/_ping" => (200, Value::Null),
        "/containers/create" => (201, json!({ "Id": "c1", "Warnings": [] })),
        "/containers/json" | "/images/json" | "/networks" => (200, json!([])),
        "/volumes" => (200, json!({ "Volumes": [], "Warnings": [] })),
        _ if path.starts_with("/images/") => (
            200,
            json!({ "Id": "sha256:00", "Architecture": "amd64", "Os": system, "Size": 300_000_000 }),
        ),
        _ if path.ends_with("/exec") => (201, json!({ "Id": "e1" })),
        _ if path.ends_with("/archive") => (200, Value::Null),
        _ if path.ends_with("/start") || words.starts_with("DELETE") => (204, Value::Null),
        _ => (404, json!({ "message": format!("no such thing: {words}") })),
    }
}

/// Speaks frames over an engine's stream; each of its pieces begins with the stream's number and a length.
fn be_the_agent(reader: &mut impl Read, writer: &mut impl Write) {
    while let Ok(request) = read_frame::<Request>(reader) {
        let reply = match request {
            Request::Hello { .. } => Reply::Hello {
                protocol: PROTOCOL,
                build: BUILD.to_owned(),
                probes: Vec::new(),
                slices: BTreeMap::new(),
            },
            Request::Bye => Reply::Bye,
            other => panic!("{other:?}"),
        };
        let mut frame = Vec::new();
        write_frame(&mut frame, &reply).unwrap();
        let length = u32::try_from(frame.len()).unwrap().to_be_bytes();
        let head = [&[1, 0, 0, 0], &length[..]].concat();
        if writer.write_all(&[head, frame].concat()).is_err() {
            return;
        }
    }
}

#[test]
fn windows_agent_copied_before_start_then_executed() {
    let engine = Engine::new("win-order", "windows", None);
    let cx = engine.world.cx();
    let settings = image().with("isolation", "process");
    let arm = ArmId::new("box").unwrap();
    let mut environment = engine.driver.configure(arm, &settings).unwrap();
    environment.prepare(&cx).unwrap();
    let mut instance = environment.greeted(&cx, StartMode::Resident);
    assert_eq!(instance.workdir(), r"C:\tare-work");
    assert_eq!(instance.turn_page(), None);
    assert_eq!(ask(instance.as_mut(), &Request::Bye), Reply::Bye);
    environment.end(instance, &cx);
    let name = format!("tare-{}-box-1", engine.world.run);
    let steps: Vec<String> = engine
        .changes()
        .iter()
        .map(|words| words.split('&').next().unwrap_or_default().to_owned())
        .collect();
    let expected = [
        format!("POST /containers/create?name={name}"),
        format!("PUT /containers/{name}/archive?path=C%3A%5C"),
        format!("POST /containers/{name}/start"),
        format!("POST /containers/{name}/exec"),
        "POST /exec/e1/start".to_owned(),
        format!("DELETE /containers/{name}?v=true"),
    ];
    assert_eq!(steps, expected);
    let body: Value = serde_json::from_slice(&engine.body("/containers/create")).unwrap();
    assert_eq!(body["Image"], IMAGE);
    assert_eq!(body["Entrypoint"], json!([r"C:\tare-agent.exe"]));
    assert_eq!(body["Cmd"], json!(["hold"]));
    assert_eq!(body["User"], "ContainerAdministrator");
    assert_eq!(
        body["HostConfig"],
        json!({ "NetworkMode": "nat", "Isolation": "process" })
    );
    let exec: Value = serde_json::from_slice(&engine.body("/exec")).unwrap();
    assert_eq!(exec["Cmd"], json!([r"C:\tare-agent.exe", "serve"]));
    let archive = engine.body("/archive");
    let mut archive = tar::Archive::new(archive.as_slice());
    let paths: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert!(paths.contains(&"tare-agent.exe".to_owned()), "{paths:?}");
}

#[test]
fn windows_container_is_removed_after_failed_step() {
    let mismatch = "container c1 encountered an error during hcsshim::System::CreateComputeSystem: The container \
                    operating system does not match the host operating system. (0xc0370101)";
    for (part, message) in [
        (
            "/archive",
            "filesystem operations against a running Hyper-V container are not supported",
        ),
        ("/start", mismatch),
        ("/exec", "The system cannot find the file specified."),
    ] {
        let engine = Engine::new("win-fault", "windows", Some((part, message)));
        let error = engine.refused(&image().with("isolation", "hyperv"));
        assert!(
            error.to_string().contains(&message[..30]),
            "{part}: {error}"
        );
        let changes = engine.changes();
        assert!(
            changes.last().unwrap().starts_with("DELETE /containers/"),
            "{changes:?}"
        );
        assert_eq!(
            changes
                .iter()
                .filter(|words| words.contains("/create"))
                .count(),
            1
        );
    }
}

#[test]
fn settings_absent_on_windows_refused_before_setup() {
    let engine = Engine::new("win-settings", "windows", None);
    for (settings, words) in [
        (Params::new(), "image of Microsoft's"),
        (
            image().with("seccomp", "unconfined"),
            "`seccomp` is for Linux",
        ),
        (image().with("cpuset", "0"), "`cpuset` is for Linux"),
        (image().with("storage", "tmpfs"), "`volume`"),
        (
            image().with("platform", "linux/amd64"),
            "`linux/amd64` is none",
        ),
    ] {
        let error = engine.refused(&settings);
        assert!(error.to_string().contains(words), "{settings:?}: {error}");
        assert!(error.hint().is_some(), "{error}");
    }
    assert_eq!(engine.changes(), [""; 0]);
    let linux = Engine::new("linux-settings", "linux", None);
    for (name, value) in [("isolation", "process"), ("platform", "windows/amd64")] {
        let error = linux.refused(&Params::new().with(name, value));
        assert!(error.to_string().contains("runs Linux"), "{error}");
    }
}

#[test]
fn engine_needs_agent_for_its_system() {
    let engine = Engine::new("win-agent", "windows", None);
    let ready = engine.driver.detect(&engine.world.cx());
    assert!(matches!(ready, Availability::Ready(_)), "{ready:?}");
    // A Linux agent does not run there, and a Windows agent does not run here.
    let mut other = World::new("win-none");
    std::mem::swap(&mut other.folder, &mut { engine }.world.folder);
    let driver = Docker::with_host(format!(
        "unix://{}/engine.sock",
        other.folder.path().display()
    ));
    let Availability::Absent { why, fix } = driver.detect(&other.cx()) else {
        panic!("ready without an agent");
    };
    assert_says(&why, "no Windows agent");
    assert!(fix.unwrap().contains("--target x86_64-pc-windows-gnu"));
}
