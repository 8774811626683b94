//! Tests the checks of the arms before the first trial: their settings, and whether their tools are the same
//! programs.
//!
//! The tools are scripts that print their version; the agent finds, hashes and queries them in real arms: processes
//! with separate search paths, and a container with a separate image.

use crate::prelude::*;

use tare::analyze::{ArmData, RunData, RunHead, TrialData, analyze};
use tare::cx::{Event, Observer};
use tare::env;
use tare::run::{RunError, RunSummary};
use tare::store::StoredRun;
use tare::workload::{Tool, command_output, find};
use tare_model::dossier::Dossier;
use tare_model::study::A_PRIME;
use tare_model::{Absence, CheckResult, Value, metrics};

use crate::docker;

const TOOL: &str = "tare-test-tool";

struct RunsTool;

static DECLARED: Declared = Declared {
    id: "runs-tool",
    about: "Runs a tool once.",
    params: &[],
    metrics: metrics! {
        "test.tool.time", Nanosecond, Lower, Kernel: "From the request to start the tool to its end.";
    },
};

impl Workload for RunsTool {
    fn declared(&self) -> &Declared {
        &DECLARED
    }

    fn recipe(&self, params: &Params, _: Option<tare_model::Path>) -> Result<Recipe, ParamError> {
        let program = params.text("program").unwrap_or(TOOL);
        let call = CommandCall::new(program, ["--version"]);
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![Tool {
            program: params.text("program").unwrap_or(TOOL).to_owned(),
            version: vec!["--version".to_owned()],
            packages: Vec::new(),
            files_told_by: Vec::new(),
        }]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        Ok(vec![Sample {
            metric: tare_model::MetricId::new(DECLARED.metrics[0].id).unwrap(),
            observations: vec![report.wall_ns as f64],
        }])
    }
}

fn known(id: &str) -> Option<&'static dyn Workload> {
    static RUNS_TOOL: RunsTool = RunsTool;
    if id == RUNS_TOOL.id() {
        Some(&RUNS_TOOL)
    } else {
        find(id)
    }
}

/// Creates a folder with a tool of this version.
fn tool(parent: &Path, folder: &str, version: &str) -> PathBuf {
    program(parent, folder, TOOL, version)
}

fn program(parent: &Path, folder: &str, name: &str, version: &str) -> PathBuf {
    let folder = parent.join(folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    executable(&path, format!("#!/bin/sh\necho 'tool {version}'\n"));
    folder
}

fn arm(id: &str, driver: &str, settings: Params) -> ArmSpec {
    ArmSpec::new(arm_id(id), driver, settings)
}

/// A process whose search path begins with this folder.
fn on_path(id: &str, folder: &Path) -> ArmSpec {
    let path = format!("PATH={}:/usr/bin:/bin", folder.display());
    arm(
        id,
        "host",
        Params::new().with("env", Value::List(vec![path.into()])),
    )
}

fn study(baseline: &ArmSpec, arms: &[ArmSpec]) -> Study {
    let again = ArmSpec {
        id: arm_id(A_PRIME),
        ..baseline.clone()
    };
    let runs = |id: &str| WorkloadSpec::new(WorkloadId::new(id).unwrap(), Params::new());
    let mut all = vec![baseline.clone(), again];
    all.extend_from_slice(arms);
    let workloads = vec![runs("runs-tool"), runs("getppid")];
    Study {
        blocks_min: 2,
        blocks_max: 2,
        trial_ns: 5_000_000,
        ..Study::new("tools", baseline.id.clone(), all, workloads)
    }
}

/// Collects remarks.
#[derive(Default)]
struct Remarks(Mutex<Vec<String>>);

impl Observer for Remarks {
    fn event(&self, event: &Event) {
        if let Event::Remark(text) = event {
            self.0.lock().unwrap().push(text.clone());
        }
    }
}

struct Carried {
    result: Result<RunSummary, RunError>,
    stored: StoredRun,
    notes: Vec<String>,
}

fn carried_out(world: &World, study: &Study) -> Carried {
    let remarks = Remarks::default();
    let mut cx = world.cx();
    cx.observer = &remarks;
    let scratch = world.folder.path().join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    cx.scratch = &scratch;
    let (result, stored) = carry_out(&cx, study, &known);
    assert!(labelled(world.run.as_str()).is_empty());
    Carried {
        result,
        stored,
        notes: remarks.0.into_inner().unwrap(),
    }
}

/// Returns the dossier of a stored run, with the workload of these tests.
fn dossier(stored: &StoredRun) -> Dossier {
    let arms = stored.study.arms.iter().map(|spec| {
        let record = stored.arms.iter().find(|record| record.arm == spec.id);
        let launches = stored.launches.iter();
        let mut launches = launches.filter(|launch| launch.arm == spec.id.as_str());
        ArmData {
            spec: spec.clone(),
            available: record.is_some_and(|record| record.available),
            reason: record.and_then(|record| record.reason.clone()),
            fix: None,
            facts: launches
                .next_back()
                .map(|launch| launch.facts.clone())
                .unwrap_or_default(),
            agent_sha256: Some(stored.agent_sha256.clone()),
        }
    });
    let head = RunHead {
        run: stored.id.clone(),
        started_unix_ns: 0,
        plan_sha256: stored.plan_sha256.clone(),
        arms: arms.collect(),
        stopped_by: StoppedBy::Blocks,
        complete: true,
        wall_s: 1.0,
        whole_trials: Vec::new(),
        deviations: Vec::new(),
        study: stored.study.clone(),
    };
    let trials = stored.records.iter().map(|record| TrialData {
        trial: record.trial.clone(),
        outcome: record.outcome.clone(),
        host_elapsed_ns: record.host_elapsed_ns,
        charged: record.charged.clone(),
    });
    let trials = trials.collect();
    analyze(&RunData { head, trials }, &known)
}

/// Asserts a refusal before the first trial that names the difference; nothing is measured and nothing is left.
fn assert_refused(carried: &Carried, arm: &str, says: &[&str]) {
    let Err(error @ RunError::DifferentTools { .. }) = &carried.result else {
        panic!("not refused: {:?}", carried.result);
    };
    let text = error.with_hint();
    for part in says
        .iter()
        .copied()
        .chain([format!("`{TOOL}` in `{arm}` has").as_str(), "hint: "])
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(carried.stored.records, []);
    assert_eq!(carried.stored.stopped_by, Some(StoppedBy::Failed));
}

/// Asserts that cells of the tool are labelled, and those of the agent's own probes are not.
fn assert_labelled(carried: &Carried, arm: &str) {
    assert!(carried.result.is_ok(), "{:?}", carried.result);
    let dossier = dossier(&carried.stored);
    let cells = dossier.cells.iter().filter(|cell| cell.arm == arm);
    let flagged: Vec<(&str, bool)> = cells
        .map(|cell| {
            let mut flags = cell.flags.iter();
            let has = flags.any(|flag| flag.id == "different-tool");
            (cell.workload.as_str(), has)
        })
        .collect();
    assert_eq!(flagged, [("runs-tool", true), ("getppid", false)]);
    let style = tare::report::terminal::Style {
        width: 200,
        colour: false,
    };
    let text = tare::report::terminal::table(&dossier, style);
    let shown = text.matches("not attributable to the environment:").count();
    assert!(shown >= 1, "{text}");
    assert_says(&text, "DIFFERENT TOOL");
    let item = dossier
        .parity
        .iter()
        .find(|item| item.id == format!("{arm}.tool.{TOOL}"))
        .unwrap();
    assert_eq!(item.result, CheckResult::Fail);
}

#[test]
fn tool_version_mismatch_is_refused_or_labelled() {
    let world = World::new("tools");
    let parent = world.folder.path();
    let old = on_path("host", &tool(parent, "old", "1.0"));
    let new = on_path("other", &tool(parent, "new", "2.0"));
    let mut study = study(&old, &[new]);
    let refused = carried_out(&world, &study);
    assert_refused(
        &refused,
        "other",
        &[
            "version `tool 2.0`, not `tool 1.0`",
            "allow_different_tools = true",
            "--allow-different-tools",
        ],
    );
    study.allow_different_tools = true;
    let world = World::new("tools-allowed");
    assert_labelled(&carried_out(&world, &study), "other");
}

#[test]
fn the_same_version_from_other_bytes_is_another_tool() {
    let world = World::new("tools-bytes");
    let parent = world.folder.path();
    let one = tool(parent, "one", "1.0");
    let other = tool(parent, "other", "1.0");
    let path = other.join(TOOL);
    let text = contents(&path);
    fs::write(&path, format!("{text}# built again\n")).unwrap();
    let study = study(&on_path("host", &one), &[on_path("other", &other)]);
    let refused = carried_out(&world, &study);
    assert_refused(&refused, "other", &["SHA-256 `"]);
    assert!(
        !refused
            .result
            .unwrap_err()
            .to_string()
            .contains("version `tool")
    );
}

#[test]
fn equal_tools_get_no_remark() {
    let world = World::new("tools-equal");
    let parent = world.folder.path();
    let (one, two) = (tool(parent, "one", "1.0"), tool(parent, "two", "1.0"));
    let study = study(&on_path("host", &one), &[on_path("other", &two)]);
    let carried = carried_out(&world, &study);
    assert_eq!(carried.result.unwrap().n_without_value, 0);
    assert_eq!(carried.notes, [""; 0]);
    let parity = dossier(&carried.stored).parity;
    let of_tool = parity.iter().filter(|item| item.id.contains(".tool."));
    let of_tool: Vec<CheckResult> = of_tool.map(|item| item.result).collect();
    assert_eq!(of_tool, [CheckResult::Pass; 2]);
}

#[test]
fn missing_tool_drops_its_workload_in_that_arm_only() {
    let world = World::new("tools-missing");
    let parent = world.folder.path();
    let empty = parent.join("empty");
    fs::create_dir_all(&empty).unwrap();
    let host = on_path("host", &tool(parent, "one", "1.0"));
    let carried = carried_out(&world, &study(&host, &[on_path("bare", &empty)]));
    assert!(carried.result.is_ok(), "{:?}", carried.result);
    for record in &carried.stored.records {
        let cell = &record.trial.cell;
        let is_missing = cell.arm.as_str() == "bare" && cell.workload.as_str() == "runs-tool";
        let expected = Outcome::Unavailable(Reason::MissingTool(TOOL.into()));
        if is_missing {
            assert_eq!(record.outcome, expected);
        } else {
            assert!(
                matches!(record.outcome, Outcome::Completed(_)),
                "{record:?}"
            );
        }
    }
    let shown: Vec<&String> = carried
        .notes
        .iter()
        .filter(|line| line.contains(TOOL))
        .collect();
    assert_eq!(shown.len(), 1, "{:?}", carried.notes);
    assert!(
        shown[0].contains("`bare`: ") && shown[0].contains("`runs-tool` is not measured there")
    );
    assert!(shown[0].contains("hint: install"));
    let failures = dossier(&carried.stored).failures;
    let of_bare = failures
        .iter()
        .find(|failure| failure.arm == "bare")
        .unwrap();
    assert_eq!(of_bare.kind, Absence::Unavailable);
    assert!(of_bare.hint.as_deref().unwrap().contains("install"));
}

/// Writes a file after the first trial.
struct Exchange(PathBuf, String);

impl Observer for Exchange {
    fn event(&self, event: &Event) {
        if let Event::TrialDone { done: 1, .. } = event {
            fs::write(&self.0, &self.1).unwrap();
        }
    }
}

#[test]
fn tool_replaced_during_run_ends_its_arm() {
    let world = World::new("tools-exchanged");
    let parent = world.folder.path();
    let host = on_path("host", &tool(parent, "one", "1.0"));
    let folder = tool(parent, "two", "1.0");
    // It is replaced after the first trial: the next launch finds another program.
    let path = folder.join(TOOL);
    let own = contents(&path);
    let study = study(&host, &[on_path("other", &folder)]);
    let exchange = Exchange(path, own.replace("1.0", "3.0"));
    let mut cx = world.cx();
    cx.observer = &exchange;
    let (summary, stored) = carry_out(&cx, &study, &known);
    let summary = summary.unwrap();
    assert_eq!(summary.absent.len(), 1, "{summary:?}");
    assert!(
        summary.absent[0]
            .1
            .contains("a tool changed during the run")
    );
    let is_late = |record: &&tare::store::TrialRecord| {
        record.trial.cell.arm.as_str() == "other" && record.trial.block == 1
    };
    assert_eq!(stored.records.iter().filter(is_late).count(), 0);
}

/// Imports an image with another tool from an archive, without a registry.
fn image_with(program_name: &str, name: &str, version: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    program(root, "usr/bin", program_name, version);
    // What the script needs: a shell with its libraries.
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let copy = |from: &Path, to: &str| {
        let to = root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    copy(&shell, "/bin/sh");
    let listed = Command::new("ldd").arg(&shell).output().unwrap();
    for word in lossy(&listed.stdout).split_whitespace() {
        if word.starts_with('/') {
            copy(Path::new(word), word);
        }
    }
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(true);
    archive.append_dir_all("", root).unwrap();
    let bytes = archive.into_inner().unwrap();
    let file = folder.path().join("image.tar");
    fs::write(&file, bytes).unwrap();
    let made = Command::new("docker")
        .args(["import", file.to_str().unwrap(), name])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Removes an image on drop.
struct Removal(String);

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "-f", &self.0]).output();
    }
}

#[test]
fn image_tool_version_mismatch_is_refused_or_labelled() {
    let world = needed!(docker::world("tools-image"));
    let image = format!("tare-test-tools:{}", std::process::id());
    image_with(TOOL, &image, "9.0");
    let _removal = Removal(image.clone());
    let own = tool(world.folder.path(), "own", "1.0");
    let host = on_path("host", &own);
    let own_image = arm(
        "own-image",
        "docker",
        Params::new().with("image", image.as_str()),
    );
    let mut study = study(&host, &[own_image]);
    study.blocks_max = 1;
    let refused = carried_out(&world, &study);
    assert_refused(
        &refused,
        "own-image",
        &["version `tool 9.0`, not `tool 1.0`"],
    );
    assert_eq!(docker::leftovers(&world, &env::docker::DOCKER), [""; 0]);
    study.allow_different_tools = true;
    let world = docker::world("tools-image-allowed").unwrap();
    assert_labelled(&carried_out(&world, &study), "own-image");
}

/// Asserts that an arm whose files Tare chooses has the host's program, with its libraries: the same bytes and
/// version.
fn assert_packed(world: &World, driver: &str, settings: Params) {
    let host = arm("host", "host", Params::new());
    let mut study = study(&host, &[arm("packed", driver, settings)]);
    study.workloads[0].params = params("program = 'stress-ng'");
    study.blocks_max = 1;
    let carried = carried_out(world, &study);
    let summary = carried.result.as_ref().unwrap();
    assert_eq!(summary.n_without_value, 0, "{:#?}", carried.stored.records);
    let parity = dossier(&carried.stored).parity;
    let item = parity
        .iter()
        .find(|item| item.id == "packed.tool.stress-ng");
    let item = item.unwrap();
    assert_eq!(item.result, CheckResult::Pass, "{item:?}");
    assert_says(&item.detail, "stress-ng, version");
    assert!(carried.notes.iter().all(|line| !line.contains("stress-ng")));
}

/// Whether stress-ng is installed; reports a skip if not.
fn has_stress_ng() -> bool {
    let found = Command::new("stress-ng").arg("--version").output();
    if found.is_err() {
        skip("stress-ng", "stress-ng is not installed");
    }
    found.is_ok()
}

#[test]
fn stress_ng_of_host_is_packed_and_other_is_refused() {
    let world = needed!(docker::world("tools-stress"));
    if !has_stress_ng() {
        return;
    }
    assert_packed(&world, "docker", Params::new());
    let image = format!("tare-test-stress:{}", std::process::id());
    image_with("stress-ng", &image, "0.1");
    let _removal = Removal(image.clone());
    let world = docker::world("tools-stress-image").unwrap();
    let host = arm("host", "host", Params::new());
    let settings = Params::new().with("image", image.as_str());
    let mut study = study(&host, &[arm("own", "docker", settings)]);
    study.workloads[0].params = params("program = 'stress-ng'");
    let error = carried_out(&world, &study).result.unwrap_err().to_string();
    assert!(error.contains("`stress-ng` in `own` has version `tool 0.1`, not `stress-ng, version"));
}

#[test]
fn stress_ng_in_engineless_containers_is_the_hosts() {
    if !has_stress_ng() {
        return;
    }
    // Rootful podman needs these if this process may not raise limits.
    let limits = params("ulimits = 'nofile=1024, nproc=1024'");
    let plain = Params::new();
    for (driver, settings) in [("container", &plain), ("oci", &plain), ("podman", &limits)] {
        let world = World::new("tools-own");
        let found = env::find(driver).unwrap();
        let id = arm_id("packed");
        let configured = found.configure(id, settings).unwrap();
        let found = configured
            .detect(&world.cx())
            .unwrap_or_else(|| found.detect(&world.cx()));
        if let env::Availability::Absent { why, .. } = found {
            skip(driver, &format!("`{driver}` cannot be used here ({why})"));
            continue;
        }
        assert_packed(&world, driver, settings.clone());
    }
}

#[test]
fn a_tool_that_this_machine_lacks_takes_no_arm_away() {
    let world = needed!(docker::world("tools-nowhere"));
    let host = arm("host", "host", Params::new());
    let mut study = study(&host, &[arm("docker", "docker", Params::new())]);
    study.blocks_max = 1;
    let carried = carried_out(&world, &study);
    let summary = carried.result.unwrap();
    assert!(summary.absent.is_empty(), "{summary:?}");
    for record in &carried.stored.records {
        let is_tool = record.trial.cell.workload.as_str() == "runs-tool";
        assert_eq!(
            matches!(record.outcome, Outcome::Unavailable(Reason::MissingTool(_))),
            is_tool,
            "{record:?}"
        );
    }
}
