//! Reads captures: `golden/tools/<workload>/<capture>/` with `stdout`, `stderr` if any, `files/<name>` for collected
//! files, and `provenance.toml`.
//!
//! The bytes are those of the tool. `provenance.toml` has the program and its version, its arguments, its exit
//! status, the machine; and, for what the tool cannot know, the wall time and the counters of its trial.
//! `expected.toml` has what must be read: `values` by metric and the kinds of `remarks`, or the kind and words with
//! which it is `refused`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tare_model::command::Pick;
use tare_model::outcome::{Bytes, Exit};
use tare_model::{CommandReport, ProbeReport, RawOutput};

/// Data about a capture in addition to its bytes.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Provenance {
    /// With its version.
    #[serde(default)]
    pub(crate) program: String,
    /// The arguments, the program's name first.
    #[serde(default)]
    argv: Vec<String>,
    /// The exit status.
    #[serde(default)]
    pub(crate) exit: i32,
    /// From start to end.
    #[serde(default)]
    wall_ns: Option<u64>,
    /// The trial's counters.
    #[serde(default)]
    counters: BTreeMap<String, f64>,
    /// The program's resource usage.
    #[serde(default)]
    usage: BTreeMap<String, f64>,
    /// Which number of the output to read.
    #[serde(default)]
    pick: Option<Pick>,
}

/// The expected result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// The mean of the observations, by metric.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, f64>,
    /// The kinds of remarks, each once, in alphabetical order.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
    /// A part of the refusal, which begins with its kind.
    #[serde(default)]
    pub(crate) refused: Option<String>,
}

impl Expected {
    /// Whether this result matches the expected one.
    pub(crate) fn fits(&self, expected: &Self) -> bool {
        let pairs = self.values.iter().zip(&expected.values);
        let is_near = |(a, b): ((&String, &f64), (&String, &f64))| {
            a.0 == b.0 && (a.1 / b.1 - 1.0).abs() <= 1e-9
        };
        let is_refused = match (&self.refused, &expected.refused) {
            (Some(read), Some(words)) => read.contains(words.as_str()),
            (read, expected) => read == expected,
        };
        self.values.len() == expected.values.len()
            && pairs.into_iter().all(is_near)
            && self.remarks == expected.remarks
            && is_refused
    }
}

/// One capture.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub(crate) workload: String,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) provenance: Box<Provenance>,
}

impl Capture {
    /// Reads the capture in this folder; `None` if there is none.
    pub(crate) fn read(workload: &str, folder: &Path) -> Option<Self> {
        let stdout = std::fs::read(folder.join("stdout")).ok()?;
        let text = std::fs::read_to_string(folder.join("provenance.toml"))
            .unwrap_or_else(|error| panic!("{}: provenance.toml: {error}", folder.display()));
        // Files that the program wrote are in `files` or next to its output.
        let files = [folder.join("files"), folder.to_owned()]
            .iter()
            .flat_map(std::fs::read_dir)
            .flatten()
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let is_ours = ["stdout", "stderr", "provenance.toml", "expected.toml"]
                    .contains(&name.as_str());
                (path.is_file() && !is_ours).then(|| (name, std::fs::read(&path).unwrap()))
            })
            .collect();
        Some(Self {
            workload: workload.to_owned(),
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            folder: folder.to_owned(),
            stdout,
            stderr: std::fs::read(folder.join("stderr")).unwrap_or_default(),
            files,
            provenance: toml::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display())),
        })
    }

    /// Returns the expected result.
    pub(crate) fn expected(&self) -> Expected {
        let text = std::fs::read_to_string(self.folder.join("expected.toml"));
        let text = text.unwrap_or_else(|error| panic!("{}: expected.toml: {error}", self.name));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the raw output that the trial would have.
    pub(crate) fn raw(&self) -> RawOutput {
        let provenance = &self.provenance;
        let argv = if provenance.argv.is_empty() {
            vec![self.workload.clone()]
        } else {
            provenance.argv.clone()
        };
        let bytes = |files: &BTreeMap<String, Vec<u8>>| {
            let bytes = |(name, text): (&String, &Vec<u8>)| (name.clone(), Bytes(text.clone()));
            files.iter().map(bytes).collect()
        };
        let report = ProbeReport {
            canary_ns: [5e6, 5e6],
            elapsed_ns: provenance.wall_ns.unwrap_or(1_000_000_000),
            counters: provenance.counters.clone(),
            command: Some(CommandReport {
                exit: Exit::Code(provenance.exit),
                stdout: Bytes(self.stdout.clone()),
                stderr: Bytes(self.stderr.clone()),
                files: bytes(&self.files),
                usage: provenance.usage.clone(),
                pick: provenance.pick.clone(),
                ..CommandReport::silent(argv, provenance.wall_ns.unwrap_or(1_000_000_000))
            }),
            ..ProbeReport::empty("command", 1)
        };
        RawOutput::of_probe(serde_json::to_vec(&report).unwrap())
    }
}

/// Returns every capture, by workload and name.
pub(crate) fn captures() -> Vec<Capture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tools");
    let mut found: Vec<Capture> = folders(&root)
        .into_iter()
        .flat_map(|workload| {
            let id = workload.file_name().unwrap().to_string_lossy().into_owned();
            folders(&workload)
                .into_iter()
                .filter_map(move |folder| Capture::read(&id, &folder))
        })
        .collect();
    found.sort_by(|a, b| (&a.workload, &a.name).cmp(&(&b.workload, &b.name)));
    assert!(!found.is_empty(), "there are no captures");
    found
}

/// Returns the capture of this name.
pub(crate) fn capture(workload: &str, name: &str) -> Capture {
    captures()
        .into_iter()
        .find(|capture| capture.workload == workload && capture.name == name)
        .unwrap_or_else(|| panic!("there is no capture {workload}/{name}"))
}

pub(crate) fn folders(of: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(of)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}
