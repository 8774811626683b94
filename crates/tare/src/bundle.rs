//! Bundles: a run in one archive with raw output, plan, dossier, report page, versions and checksums; and `tare
//! replay`, which derives every number of a bundle again and compares.
//!
//! A bundle is a plain tar file with the same bytes for the same run, so it can be published, compared and opened
//! without Tare. Limits: Tare cannot check that the raw output was measured as the bundle claims.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tare_model::dossier::{DOSSIER_VERSION, Dossier};
use tare_model::{Params, RunId, Study};

use crate::cx::{files, sha256, started_runs};
use crate::failed::Failed;
use crate::output;
use crate::plan::Plan;
use crate::recount::{self, lines::shortened};
use crate::report;
use crate::session::home::GivenPaths;
use crate::store::{Store, StoredRun};
use crate::{trusted, why, workload};

/// Names of the files in a bundle.
const STORE: &str = "store.db";
const DOSSIER: &str = "dossier.json";
const PAGE: &str = "report.html";
const STUDY: &str = "study.json";
const VERSIONS: &str = "versions.json";
const SUMS: &str = "SHA256SUMS";
const README: &str = "README.txt";
/// Fields with the Tare version and the hash of its sources that derived the files. Two builds of one version may
/// draw the page differently.
const DERIVED_BY: &str = "derived_by_tare";
const SOURCES: &str = "derived_by_sources";
/// A bundle has exactly these files, each once.
const NAMES: [&str; 7] = [README, DOSSIER, PAGE, STORE, STUDY, VERSIONS, SUMS];
/// Maximum size of an archive; it is read into memory.
const MOST_BYTES: u64 = 4 << 30;

const ABOUT: &str = "A run of Tare with everything that it rests on.

store.db       raw output of every trial (SQLite); what your command printed is in it where a number is read from it,
               where the trial failed, and where `--keep-output` asked for it
study.json     the study with its plan's seed
dossier.json   every number of the report, derived from store.db
report.html    the report, for a browser
versions.json  what measured and what derived
SHA256SUMS     `sha256sum -c SHA256SUMS` checks the rest

`tare replay FILE` derives the dossier from store.db again and compares it with dossier.json, number by number.
`tare repeat FILE` measures the same study on another machine and compares the ratios.
";

/// Returns the archive of a run, and the number of its trials with stored command output that no metric is read from;
/// if `is_redacted`, without that.
pub(crate) fn of_run(
    store: &Store,
    run: &RunId,
    is_redacted: bool,
) -> Result<(Vec<u8>, usize), Failed> {
    let stored = store.run_without_records(run)?;
    let runs = recount::belonging(store, run)?;
    let mut n_with_output = 0;
    let database = store.extract(&runs, |workload, raw| {
        // Without its call, which may request that everything is kept.
        let less = workload::find(workload)?.stored(&Params::new(), raw)?;
        if is_redacted {
            return Some(less);
        }
        n_with_output += 1;
        None
    })?;
    let mut entries = derived(&stored, &runs, &recount::dossier(store, run)?);
    entries.insert(3, (STORE, database));
    let lines = entries.iter();
    let lines: Vec<String> = lines
        .map(|(name, bytes)| format!("{}  {name}", sha256(bytes)))
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
    Ok((archive.into_inner()?, n_with_output))
}

/// All files of an archive that are derived from its raw output.
fn derived(stored: &StoredRun, runs: &[RunId], dossier: &Dossier) -> Vec<(&'static str, Vec<u8>)> {
    let versions = json!({
        "bundle": 1,
        "run": stored.id.as_str(),
        "runs": runs.iter().map(RunId::as_str).collect::<Vec<_>>(),
        "measured_with_agent": stored.agent_sha256,
        "plan_sha256": stored.plan_sha256,
        DERIVED_BY: env!("CARGO_PKG_VERSION"),
        SOURCES: env!("TARE_SOURCES"),
    });
    vec![
        (README, ABOUT.as_bytes().to_vec()),
        (DOSSIER, report::json::to_string(dossier).into_bytes()),
        (PAGE, report::html::page(dossier).into_bytes()),
        (STUDY, pretty(&of_study(&stored.study)).into_bytes()),
        (VERSIONS, pretty(&versions).into_bytes()),
    ]
}

fn of_study(study: &Study) -> Value {
    serde_json::to_value(study).unwrap_or(Value::Null)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// The files of an archive, by name.
pub(crate) struct Bundle {
    path: PathBuf,
    archive: Vec<u8>,
    /// Byte range of each file in the archive.
    entries: BTreeMap<&'static str, Range<usize>>,
}

impl Bundle {
    /// Reads an archive and verifies its checksums.
    pub(crate) fn read(path: &Path) -> Result<Self, Failed> {
        let bundle = Self::opened(path)?;
        let damaged = bundle.damaged();
        if damaged.is_empty() {
            return Ok(bundle);
        }
        Err(Failed::failure(format!(
            "`{}` is not as its checksums say: {}",
            path.display(),
            damaged.join(", ")
        ))
        .hint("fetch it again; a bundle that was changed proves nothing"))
    }

    /// The dossier as published.
    pub(crate) fn dossier(&self) -> Result<Dossier, Failed> {
        let kept = self.entry(DOSSIER);
        let versioned: Versioned =
            serde_json::from_slice(kept).map_err(|error| unreadable(&error))?;
        if versioned.dossier != DOSSIER_VERSION {
            return Err(Failed::usage(format!(
                    "`{DOSSIER}` in the bundle is of version {}, and this Tare knows version {DOSSIER_VERSION}",
                    versioned.dossier
                ),
            )
            .hint("a newer Tare reads it")
            .maybe(other_version(self)));
        }
        serde_json::from_slice(kept).map_err(|error| unreadable(&error))
    }

    /// The store with the raw output.
    pub(crate) fn store(&self) -> Result<Store, Failed> {
        Ok(Store::from_bytes(self.entry(STORE), &self.path)?)
    }

    /// Checks that `study.json` equals the stored study, which is the one that would be run.
    pub(crate) fn check_study(&self, stored: &Study) -> Result<(), Failed> {
        let (told, stored) = (self.entry(STUDY), of_study(stored));
        if told == pretty(&stored).as_bytes() {
            return Ok(());
        }
        let mut differences = Vec::new();
        if let Ok(told) = serde_json::from_slice(told) {
            compare(&told, &stored, "", &mut differences);
        }
        let how = differences.into_iter().next();
        let how = how.unwrap_or_else(|| "it is not written as Tare writes it".to_owned());
        Err(Failed::failure(format!(
            "`{STUDY}` in the bundle is not the study of its raw output: {how}"
        ))
        .hint("a bundle that was changed proves nothing, and is not run")
        .maybe(other_version(self)))
    }

    fn opened(path: &Path) -> Result<Self, Failed> {
        let archive = files::read_plain(path, MOST_BYTES).map_err(Failed::usage)?;
        let wrong = |problem: &dyn std::fmt::Display| {
            Failed::usage(format!(
                "`{}` is not a bundle of Tare: {problem}",
                path.display()
            ))
            .hint("`tare report RUN --bundle FILE` makes one")
        };
        let entries = places(&archive).map_err(|problem| wrong(&problem))?;
        for name in NAMES {
            if !entries.contains_key(name) {
                return Err(wrong(&format_args!("it has no `{name}`")));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            archive,
            entries,
        })
    }

    fn entry(&self, name: &str) -> &[u8] {
        let place = self.entries.get(name).cloned();
        place
            .and_then(|place| self.archive.get(place))
            .unwrap_or_default()
    }

    /// Files whose checksum is wrong or missing.
    fn damaged(&self) -> Vec<String> {
        let sums = String::from_utf8_lossy(self.entry(SUMS)).into_owned();
        let shown = |name: &str| {
            let mut lines = sums.lines().filter_map(|line| line.split_once("  "));
            lines.find_map(|(sum, own)| (own == name).then(|| sum.to_owned()))
        };
        let checked = NAMES.into_iter().filter(|name| *name != SUMS);
        checked
            .filter(|name| shown(name).as_deref() != Some(&sha256(self.entry(name))))
            .map(str::to_owned)
            .collect()
    }
}

/// Locates the files in the archive. Their bytes are slices of it, so no file can be longer than the archive; sparse
/// files, links and any other entry type are refused.
fn places(archive: &[u8]) -> Result<BTreeMap<&'static str, Range<usize>>, String> {
    let mut places = BTreeMap::new();
    let text = |error: std::io::Error| error.to_string();
    for entry in tar::Archive::new(archive).entries().map_err(text)? {
        let entry = entry.map_err(text)?;
        let path = entry.path().map_err(text)?.into_owned();
        let name = path.file_name().and_then(std::ffi::OsStr::to_str);
        let name = NAMES.into_iter().find(|known| Some(*known) == name);
        let place = usize::try_from(entry.raw_file_position()).ok();
        let place =
            place.and_then(|from| Some(from..from.checked_add(entry.size().try_into().ok()?)?));
        let is_plain = entry.header().entry_type() == tar::EntryType::Regular;
        let (Some(name), Some(place), true) = (name, place, is_plain) else {
            return Err(format!(
                "it holds `{}`, which no bundle does",
                path.display()
            ));
        };
        if place.end > archive.len() {
            return Err("it is cut short".to_owned());
        }
        if places.insert(name, place).is_some() {
            return Err(format!("it holds `{name}` twice"));
        }
    }
    Ok(places)
}

/// The field that dossiers of every version begin with.
#[derive(serde::Deserialize)]
struct Versioned {
    dossier: u32,
}

fn unreadable(error: &serde_json::Error) -> Failed {
    Failed::usage(format!("`{DOSSIER}` in the bundle: {error}"))
}

/// Derives every number of a bundle again from its raw output and compares. Returns the result, and the failure if
/// something differs.
pub(crate) fn replayed(path: &Path) -> Result<(String, Option<Failed>), Failed> {
    let bundle = Bundle::read(path)?;
    let kept = bundle.entry(DOSSIER);
    let dossier = bundle.dossier()?;
    let before: Value = serde_json::from_slice(kept).map_err(|error| unreadable(&error))?;
    let store = bundle.store()?;
    let run = recount::resolve(&store, &dossier.run)?;
    let stored = store.run_without_records(&run)?;
    bundle.check_study(&stored.study)?;
    let here = recount::dossier(&store, &run)?;
    let now = report::json::to_string(&here);
    let after: Value = serde_json::from_str(&now).map_err(|error| unreadable(&error))?;
    let mut differences = Vec::new();
    compare(&before, &after, "", &mut differences);
    let beside = derived(&stored, &recount::belonging(&store, &run)?, &here);
    let unchecked = bundle.compare_derived(&beside, &mut differences);
    let n = numbers(&after);
    if differences.is_empty() {
        let how = if now.as_bytes() == kept {
            "the dossier is the same, bit for bit"
        } else {
            "every number is the same"
        };
        let beside = match unchecked {
            None => format!(", and so are `{PAGE}`, `{STUDY}` and `{VERSIONS}`"),
            Some(why) => format!("; not checked: {why}"),
        };
        let text = format!(
            "run {}: {n} numbers derived again from {} of raw output; {how}{beside}\n",
            run,
            tare_model::unit::bytes(bundle.entry(STORE).len() as f64)
        );
        return Ok((text, None));
    }
    let shown: Vec<String> = differences.iter().take(10).cloned().collect();
    let failed = Failed::failure(format!(
        "{} of {n} numbers and texts are not what the bundle says",
        differences.len()
    ))
    .maybe(other_version(&bundle));
    Ok((shown.join("\n") + "\n", Some(failed)))
}

impl Bundle {
    /// Adds the differences of all files except the dossier. Returns the files that could not be compared because
    /// another build draws and words them differently.
    fn compare_derived(
        &self,
        derived: &[(&str, Vec<u8>)],
        differences: &mut Vec<String>,
    ) -> Option<String> {
        let value = |bytes: &[u8]| {
            let mut value: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
            if let Value::Object(fields) = &mut value {
                fields.remove(DERIVED_BY);
                fields.remove(SOURCES);
            }
            value
        };
        let versions: Value = serde_json::from_slice(self.entry(VERSIONS)).unwrap_or(Value::Null);
        let is_other = other_version(self).is_some() || versions[SOURCES] != env!("TARE_SOURCES");
        for (name, bytes) in derived.iter().filter(|(name, _)| *name != DOSSIER) {
            if *name == VERSIONS {
                compare(&value(self.entry(name)), &value(bytes), name, differences);
            } else if !is_other && self.entry(name) != bytes.as_slice() {
                differences.push(format!("{name}: not what follows from the raw output"));
            }
        }
        is_other.then(|| format!("`{PAGE}` and `{README}`, which another build of Tare made"))
    }
}

/// Returns a hint if another version made the bundle.
fn other_version(bundle: &Bundle) -> Option<String> {
    let versions: Value = serde_json::from_slice(bundle.entry(VERSIONS)).ok()?;
    let by = versions[DERIVED_BY].as_str()?;
    (by != env!("CARGO_PKG_VERSION")).then(|| {
        format!(
            "Tare {} derived it, and this is {}",
            by,
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

/// Collects every place where two documents differ.
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
            shortened(before.to_string(), 80),
            shortened(after.to_string(), 80)
        ))),
    }
}

/// Returns the study of a bundle as it was run there, with the same arms, workloads, order and margins, and what was
/// found there, if the study may be executed here.
pub(crate) fn to_repeat(path: &Path, is_trusted: bool) -> Result<(Study, Dossier), Failed> {
    let bundle = Bundle::read(path)?;
    let there = bundle.dossier()?;
    let store = bundle.store()?;
    let run = recount::resolve(&store, &there.run)?;
    let study = store.run_without_records(&run)?.study;
    bundle.check_study(&study)?;
    if why::is_own_study(&study) {
        return Err(Failed::usage(format!(
            "`{}` holds an answer of `tare why`, which depends on what it found on the way",
            path.display()
        ))
        .hint("ask `tare why` the same here; `tare replay` derives the bundle's numbers again"));
    }
    trusted::check_size(&study)?;
    // From the study that would run, not from the bundle's claim about it.
    let plan = Plan::new(&study);
    let state = GivenPaths::state_folder()?;
    if !is_trusted && !started_runs::is_noted(&state, &run, plan.sha256())? {
        let what = format!(
            "the run in `{}` was not begun here, and to repeat it",
            path.display()
        );
        return Err(trusted::refusal(&what, &study)
            .hint("`study.json` in the bundle is that study; `--trust` repeats it all the same"));
    }
    Ok((study, there))
}
