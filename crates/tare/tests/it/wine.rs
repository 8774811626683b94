//! Tests the Windows program under Wine: that it works, and what its dossiers contain, but never its speed: it
//! measures Wine, and says so.
//!
//! `TARE_TEST_WINDOWS` names a `tare.exe` next to the `tare-agent.exe` of the same build; `cargo xtask test` builds
//! both. Wine's folder is a temporary one of links to its libraries, which takes no time to create; all Wine
//! processes in it are killed with it.

use crate::prelude::*;

use std::fs::File;
use std::os::unix::fs::symlink;

use tare_model::CommandReport;
use tare_model::outcome::Exit;
use tare_model::wire::{read_frame, write_frame};

use crate::skip::skip;

/// Far more than a call takes; exceeding it means a hang.
const LIMIT: Duration = Duration::from_secs(240);

/// Returns the first of these that exists.
fn first_of<const N: usize>(paths: [&str; N]) -> Option<PathBuf> {
    paths.into_iter().map(PathBuf::from).find(|it| it.exists())
}

/// Wine with a separate folder.
struct Wine {
    folder: tempfile::TempDir,
    loader: PathBuf,
    server: PathBuf,
    tare: PathBuf,
}

impl Wine {
    /// `None`, with a reported skip, if a requirement is missing.
    fn ready() -> Option<Self> {
        let Some(tare) = std::env::var_os("TARE_TEST_WINDOWS").map(PathBuf::from) else {
            skip("windows", "TARE_TEST_WINDOWS names no tare.exe");
            return None;
        };
        let loader = first_of(["/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine"]);
        let server = first_of(["/usr/lib/wine/wineserver64", "/usr/bin/wineserver"]);
        let libraries = first_of([
            "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows",
            "/usr/lib64/wine/x86_64-windows",
            "/usr/lib/wine/x86_64-windows",
        ]);
        let (Some(loader), Some(server), Some(libraries)) = (loader, server, libraries) else {
            skip("wine", "Wine for 64-bit programs is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("prefix");
        let system = prefix.join("drive_c/windows/system32");
        let drivers = system.join("drivers");
        for path in [&drivers, &prefix.join("dosdevices")] {
            fs::create_dir_all(path).unwrap();
        }
        symlink("../drive_c", prefix.join("dosdevices/c:")).unwrap();
        symlink("/", prefix.join("dosdevices/z:")).unwrap();
        // Wine would fill it with copies of 700 MB.
        fs::write(prefix.join(".update-timestamp"), "disable\n").unwrap();
        for library in fs::read_dir(libraries).unwrap() {
            let library = library.unwrap();
            let name = library.file_name();
            let is_driver = Path::new(&name).extension() == Some("sys".as_ref());
            let folder = if is_driver { &drivers } else { &system };
            symlink(library.path(), folder.join(name)).unwrap();
        }
        random_numbers(&system.join("bcryptprimitives.dll"));
        // A driver of Wine's reports the drives.
        let registry = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wine/system.reg");
        fs::copy(registry, prefix.join("system.reg")).unwrap();
        Some(Self {
            folder,
            loader,
            server,
            tare,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the Windows program with these arguments, in the folder. Its output goes to files: Wine's own processes
    /// outlive it, and would hold a pipe open.
    fn run(&self, arguments: &[&str]) -> Output {
        let streams = ["stdout", "stderr"].map(|name| self.path(name));
        let [stdout, stderr] = [0, 1].map(|which| File::create(&streams[which]).unwrap());
        let mut child = self
            .command(&self.loader)
            .arg(&self.tare)
            .args(arguments)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("still at work after {LIMIT:?}: {}", child.wait().unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let [stdout, stderr] = streams.map(|path| fs::read(path).unwrap());
        Output {
            status,
            stdout,
            stderr,
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", self.path("prefix"))
            .env("WINEDEBUG", "-all")
            .env("TARE_HOME", format!("Z:{}", self.path("home").display()))
            .env_remove("TARE_RUN")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // Only the Wine of this folder; if none of it runs any more, the error is ignored.
        for what in ["-k", "-w"] {
            let mut command = self.command(&self.server);
            let _ = command
                .arg(what)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Creates the library from which Rust's programs take random numbers, if this Wine has none.
fn random_numbers(library: &Path) {
    if library.exists() {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wine/random.c");
    let status = Command::new("x86_64-w64-mingw32-gcc")
        .args(["-shared", "-O1", "-o"])
        .arg(library)
        .args([source, "-ladvapi32"])
        .status();
    assert!(status.unwrap().success(), "{source} cannot be compiled");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn ended_well(output: &Output) -> String {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{stdout}\n--- stderr ---\n{stderr}"
    );
    stdout
}

/// Returns the unit of every metric with values in a dossier.
fn units(dossier: &Value) -> BTreeMap<String, String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cells = dossier["aa"].as_array().unwrap().iter();
    cells
        .map(|cell| (word(&cell["metric"]), word(&cell["unit"])))
        .collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn windows_os_micro_operations_match_those_of_linux() {
    let Some(wine) = Wine::ready() else { return };
    let study = ["run", "os-micro", "--env", "host", "--blocks", "1"];
    let output = wine.run(&[&study[..], &["--json", "windows.json"]].concat());
    let table = ended_well(&output);
    assert_says(&table, "EMULATED");
    assert_says(&table, "Get Current Directory");
    let dossier = read(&wine.path("windows.json"));
    assert_valid_dossier(&dossier);
    let facts = &dossier["arms"][0]["facts"];
    assert_eq!(facts["wine.emulated"], "true", "{facts:#}");
    for failure in dossier["failures"].as_array().unwrap() {
        let reason = failure["reason"].to_string();
        assert!(
            reason.contains("random bytes in the process"),
            "{failure:#}"
        );
    }
    let product = Product::new();
    let here = product.run(study.iter().chain(&["--json", "-"]));
    let mut expected = units(&here.expect(0).json());
    assert!(expected.remove("random.kernel.time").is_some());
    assert_eq!(units(&dossier), expected);
}

#[test]
fn windows_program_gives_output_status_no_leftovers() {
    let Some(wine) = Wine::ready() else { return };
    let mut agent = Agent::started(&wine);
    let report = agent.ran("echo out & echo err>&2 & exit 3");
    assert_eq!(report.exit, Exit::Code(3));
    assert_eq!(text(&report.stdout.0).trim(), "out");
    assert_eq!(text(&report.stderr.0).trim(), "err");
    assert_eq!(report.left_running, 0);
    let report = agent.ran("start /b ping -n 600 127.0.0.1 & echo begun");
    assert!(text(&report.stdout.0).contains("begun"), "{report:?}");
    assert!(report.left_running >= 1, "{report:?}");
    let late = agent.run("ping -n 600 127.0.0.1", 500_000_000);
    assert!(
        matches!(
            &late,
            Reply::Failed {
                failure: Failure::TimedOut { .. },
                ..
            }
        ),
        "{late:?}"
    );
    let call = CommandCall::new("no-program-has-this-name", [""; 0]).to_probe();
    let missing = agent.ask(call, 60_000_000_000);
    assert!(
        matches!(
            &missing,
            Reply::Unavailable {
                reason: Reason::MissingTool(_),
                ..
            }
        ),
        "{missing:?}"
    );
}

/// A Windows agent, connected by pipes.
struct Agent {
    child: Child,
    trials: u64,
}

impl Agent {
    fn started(wine: &Wine) -> Self {
        let child = wine
            .command(&wine.loader)
            .arg(wine.tare.with_file_name("tare-agent.exe"))
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self {
            child: child.unwrap(),
            trials: 0,
        }
    }

    /// Runs a line in the Windows shell and returns its report.
    #[track_caller]
    fn ran(&mut self, line: &str) -> CommandReport {
        match self.run(line, 60_000_000_000) {
            Reply::Done { raw, .. } => {
                let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
                report.command.unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self, line: &str, limit_ns: u64) -> Reply {
        self.ask(
            CommandCall::new("cmd.exe", ["/c", line]).to_probe(),
            limit_ns,
        )
    }

    fn ask(&mut self, call: ProbeCall, limit_ns: u64) -> Reply {
        self.trials += 1;
        let request = Request::Run {
            trial: self.trials,
            call,
            target_ns: 1_000_000,
            limit_ns,
            workdir: r"C:\".to_owned(),
            hold: false,
            turns: None,
            cpu: None,
        };
        write_frame(self.child.stdin.as_mut().unwrap(), &request).unwrap();
        read_frame(self.child.stdout.as_mut().unwrap()).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
