//! A run in one archive: raw output, plan, dossier, page, versions and checksums; and `tare replay`, which derives every
//! number of such an archive again and compares.
//!
//! The archive is a plain tar file, the same bytes for the same run, so that it can be published, compared and opened
//! without Tare. What it cannot see: whether the raw output was measured as it says.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tare_model::RunId;
use tare_model::dossier::{DOSSIER_VERSION, Dossier};

use super::{Exit, Failed, output, recount};
use crate::cx::files;
use crate::report;
use crate::store::Store;

/// The names of what is in it.
const STORE: &str = "store.db";
const DOSSIER: &str = "dossier.json";
const PAGE: &str = "report.html";
const STUDY: &str = "study.json";
const VERSIONS: &str = "versions.json";
const SUMS: &str = "SHA256SUMS";
const README: &str = "README.txt";
/// What a file of an archive may be as large as: a bundle is read into memory.
const MOST_BYTES: u64 = 4 << 30;

const ABOUT: &str = "A run of Tare with everything that it rests on.

store.db       raw output of every trial, as it was printed (SQLite)
study.json     the study with its plan's seed
dossier.json   every number of the report, derived from store.db
report.html    the report, for a browser
versions.json  what measured and what derived
SHA256SUMS     `sha256sum -c SHA256SUMS` checks the rest

`tare replay FILE` derives the dossier from store.db again and compares it with dossier.json, number by number.
`tare run --again FILE` measures the same study on another machine and sets the costs beside these.
";

/// The archive of a run.
pub(super) fn of_run(store: &Store, run: &RunId) -> Result<Vec<u8>, Failed> {
    let dossier = recount::dossier(store, run)?;
    let runs = recount::belonging(store, run)?;
    let stored = store.run_without_records(run)?;
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    let study = serde_json::to_value(&stored.study).unwrap_or(Value::Null);
    let versions = json!({
        "bundle": 1,
        "run": run.as_str(),
        "runs": runs.iter().map(RunId::as_str).collect::<Vec<_>>(),
        "measured_with_agent": stored.agent_sha256,
        "plan_sha256": stored.plan_sha256,
        "derived_by_tare": env!("CARGO_PKG_VERSION"),
    });
    let mut entries: Vec<(&str, Vec<u8>)> = vec![
        (README, ABOUT.as_bytes().to_vec()),
        (DOSSIER, report::json::to_string(&dossier).into_bytes()),
        (PAGE, report::html::page(&dossier).into_bytes()),
        (STORE, store.extract(&runs)?),
        (STUDY, pretty(&study).into_bytes()),
        (VERSIONS, pretty(&versions).into_bytes()),
    ];
    let lines = entries.iter();
    let lines: Vec<String> = lines
        .map(|(name, bytes)| format!("{}  {name}", hexadecimal(bytes)))
        .collect();
    let sums = lines.join("\n") + "\n";
    entries.push((SUMS, sums.into_bytes()));
    let seconds = u64::try_from(stored.started_unix_ns).unwrap_or(0) / 1_000_000_000;
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in &entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(seconds);
        archive
            .append_data(&mut header, format!("tare-{run}/{name}"), bytes.as_slice())
            .map_err(Failed::from)?;
    }
    Ok(archive.into_inner()?)
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The files of an archive, by name.
pub(super) struct Bundle {
    path: PathBuf,
    entries: Vec<(String, Vec<u8>)>,
}

impl Bundle {
    /// Reads an archive whose files are as their checksums say.
    pub(super) fn read(path: &Path) -> Result<Self, Failed> {
        let bundle = Self::opened(path)?;
        let damaged = bundle.damaged();
        if damaged.is_empty() {
            return Ok(bundle);
        }
        Err(Failed::new(
            Exit::Finding,
            format!(
                "`{}` is not as its checksums say: {}",
                path.display(),
                damaged.join(", ")
            ),
        )
        .hint("fetch it again; a bundle that was changed proves nothing"))
    }

    /// The dossier as it was published.
    pub(super) fn dossier(&self) -> Result<Dossier, Failed> {
        let kept = self.entry(DOSSIER).unwrap_or_default();
        let versioned: Versioned =
            serde_json::from_slice(kept).map_err(|error| unreadable(&error))?;
        if versioned.dossier != DOSSIER_VERSION {
            return Err(Failed::new(
                Exit::Usage,
                format!(
                    "`{DOSSIER}` in the bundle is of version {}, and this Tare knows version {DOSSIER_VERSION}",
                    versioned.dossier
                ),
            )
            .hint("a newer Tare reads it")
            .maybe(other_version(self)));
        }
        serde_json::from_slice(kept).map_err(|error| unreadable(&error))
    }

    /// The raw output.
    pub(super) fn store(&self) -> Result<Store, Failed> {
        let bytes = self.entry(STORE).unwrap_or_default();
        Ok(Store::from_bytes(bytes, &self.path)?)
    }

    fn opened(path: &Path) -> Result<Self, Failed> {
        let bytes = files::read(path).map_err(|error| Failed::new(Exit::Usage, error))?;
        let wrong = |problem: &dyn std::fmt::Display| {
            Failed::new(
                Exit::Usage,
                format!("`{}` is not a bundle of Tare: {problem}", path.display()),
            )
            .hint("`tare report RUN --bundle FILE` makes one")
        };
        let mut entries = Vec::new();
        let mut archive = tar::Archive::new(bytes.as_slice());
        for entry in archive.entries().map_err(|error| wrong(&error))? {
            let mut entry = entry.map_err(|error| wrong(&error))?;
            let name = entry.path().map_err(|error| wrong(&error))?;
            let name = name
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let (Some(name), true) = (name, entry.size() < MOST_BYTES) else {
                return Err(wrong(
                    &"it holds a file without a name, or one that is too large",
                ));
            };
            let mut content = Vec::new();
            entry
                .read_to_end(&mut content)
                .map_err(|error| wrong(&error))?;
            entries.push((name, content));
        }
        let bundle = Self {
            path: path.to_owned(),
            entries,
        };
        for name in [STORE, DOSSIER, VERSIONS, SUMS] {
            if bundle.entry(name).is_none() {
                return Err(wrong(&format_args!("it has no `{name}`")));
            }
        }
        Ok(bundle)
    }

    fn entry(&self, name: &str) -> Option<&[u8]> {
        let mut entries = self.entries.iter();
        entries.find_map(|(own, bytes)| (own == name).then_some(bytes.as_slice()))
    }

    /// What is not as its checksum says, or has none.
    fn damaged(&self) -> Vec<String> {
        let sums = String::from_utf8_lossy(self.entry(SUMS).unwrap_or_default()).into_owned();
        let told = |name: &str| {
            let mut lines = sums.lines().filter_map(|line| line.split_once("  "));
            lines.find_map(|(sum, own)| (own == name).then(|| sum.to_owned()))
        };
        let checked = self.entries.iter().filter(|(name, _)| name != SUMS);
        checked
            .filter(|(name, bytes)| told(name).as_deref() != Some(&hexadecimal(bytes)))
            .map(|(name, _)| output::printable(name))
            .collect()
    }
}

/// What dossiers of every version begin with.
#[derive(serde::Deserialize)]
struct Versioned {
    dossier: u32,
}

fn unreadable(error: &serde_json::Error) -> Failed {
    Failed::new(Exit::Usage, format!("`{DOSSIER}` in the bundle: {error}"))
}

/// Derives every number of a bundle again from its raw output, and compares.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The archive that `tare report RUN --bundle FILE` made.
    bundle: PathBuf,
}

impl Replay {
    pub(crate) fn execute(&self) -> Result<Exit, Failed> {
        let bundle = Bundle::read(&self.bundle)?;
        let kept = bundle.entry(DOSSIER).unwrap_or_default();
        let dossier = bundle.dossier()?;
        let before: Value = serde_json::from_slice(kept).map_err(|error| unreadable(&error))?;
        let store = bundle.store()?;
        let run = recount::resolve(&store, &dossier.run)?;
        let now = report::json::to_string(&recount::dossier(&store, &run)?);
        let after: Value = serde_json::from_str(&now).map_err(|error| unreadable(&error))?;
        let mut differences = Vec::new();
        compare(&before, &after, "", &mut differences);
        let n = numbers(&after);
        if differences.is_empty() {
            let how = if now.as_bytes() == kept {
                "the dossier is the same, bit for bit"
            } else {
                "every number is the same"
            };
            output::text(&format!(
                "run {}: {n} numbers derived again from {} of raw output; {how}\n",
                dossier.run,
                tare_model::unit::bytes(bundle.entry(STORE).unwrap_or_default().len() as f64)
            ))?;
            return Ok(Exit::Done);
        }
        let shown: Vec<String> = differences.iter().take(10).cloned().collect();
        output::text(&format!("{}\n", shown.join("\n")))?;
        Err(Failed::new(
            Exit::Finding,
            format!(
                "{} of {n} numbers and texts are not what the bundle says",
                differences.len()
            ),
        )
        .maybe(other_version(&bundle)))
    }
}

/// A hint where another version made the bundle.
fn other_version(bundle: &Bundle) -> Option<String> {
    let versions: Value = serde_json::from_slice(bundle.entry(VERSIONS)?).ok()?;
    let by = versions["derived_by_tare"].as_str()?;
    (by != env!("CARGO_PKG_VERSION")).then(|| {
        format!(
            "Tare {} derived it, and this is {}",
            output::printable(by),
            env!("CARGO_PKG_VERSION")
        )
    })
}

fn numbers(value: &Value) -> usize {
    match value {
        Value::Number(_) => 1,
        Value::Array(values) => values.iter().map(numbers).sum(),
        Value::Object(fields) => fields.values().map(numbers).sum(),
        _ => 0,
    }
}

/// Names every place in which two documents differ.
fn compare(before: &Value, after: &Value, place: &str, out: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let absent = Value::Null;
                let (a, b) = (
                    a.get(name).unwrap_or(&absent),
                    b.get(name).unwrap_or(&absent),
                );
                compare(a, b, &format!("{place}/{name}"), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (number, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{place}/{number}"), out);
            }
        }
        _ if before == after => {}
        _ => out.push(output::printable(&format!(
            "{place}: {} in the bundle, {} derived again",
            short(before),
            short(after)
        ))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 {
        return text;
    }
    text.chars().take(79).chain(['…']).collect()
}
