//! Tests several instances at once in real environments: the whole path from a study file to the dossier, a worker
//! that is killed among others, and a threaded library with fewer processors than threads.
//!
//! No time is checked here, because it depends on the machine. The tests check that the instances ran at the same
//! time, that their results are kept apart, and that nothing is left behind.

use crate::prelude::*;

use tare_model::{Spread, Together, WorkSpan, whole_size};

use crate::unread::{Unread, find, unread};

/// Runs this study with the product, checks that nothing is left behind, and returns the dossier.
fn dossier(study: &str, more: &[&str]) -> Value {
    let product = Product::new();
    let file = product.file("instances.toml", study);
    let mut arguments = vec!["run", &file, "--json", "-"];
    arguments.extend(more);
    let dossier = product.run(arguments).expect(0).json();
    assert_valid_dossier(&dossier);
    product.assert_nothing_left();
    dossier
}

/// Returns every point of every arm, with the arm's name and the series.
fn points(dossier: &Value) -> Vec<(&str, &Value, &Value)> {
    let mut all = Vec::new();
    for series in dossier["concurrency"].as_array().unwrap() {
        for arm in series["arms"].as_array().unwrap() {
            let name = arm["arm"].as_str().unwrap();
            for point in arm["points"].as_array().unwrap() {
                all.push((name, series, point));
            }
        }
    }
    all
}

fn assert_all_ran_together(dossier: &Value, numbers: &[u64], n_arms: usize, blocks: u64) {
    let points = points(dossier);
    let found: Vec<u64> = points
        .iter()
        .map(|(_, _, point)| point["instances"].as_u64().unwrap())
        .collect();
    assert_eq!(found, numbers.repeat(n_arms), "{dossier:#}");
    for (arm, _, point) in points {
        assert_eq!(point["n_blocks"], blocks, "{arm}: {dossier:#}");
        assert!(point["value"]["point"].as_f64().unwrap() > 0.0);
        let fairness = point["fairness"]["point"].as_f64().unwrap();
        assert!(
            fairness > 0.0 && fairness <= 1.0 + 1e-9,
            "{arm}: {fairness}"
        );
        // The trials are long compared with the time between two starts.
        assert!(
            point["overlap"]["point"].as_f64().unwrap() > 0.0,
            "{arm}: {point:#}"
        );
    }
    assert_eq!(dossier["failures"], Value::Array(Vec::new()), "{dossier:#}");
}

const STUDY: &str = r#"
id = "several"
[design]
trial = "150ms"
blocks_min = 2
blocks_max = 2
[[workload]]
id = "getppid"
instances = [1, 3]
spread = "SPREAD"
[[arm]]
id = "host"
"#;

/// Returns the study with a container, if one can be created, and its number of arms.
fn with_a_container(study: String) -> (String, usize) {
    if !has_container() {
        skip("root", "containers cannot be made here");
        return (study, 2);
    }
    (study + "[[arm]]\nid = \"container\"\nrequired = true\n", 3)
}

#[test]
fn processes_run_together_on_host_and_in_container() {
    let (study, n_arms) = with_a_container(STUDY.replace("SPREAD", "processes"));
    assert_all_ran_together(&dossier(&study, &[]), &[1, 3], n_arms, 2);
}

#[test]
fn environments_run_together_and_are_all_removed() {
    let (study, n_arms) = with_a_container(STUDY.replace("SPREAD", "environments"));
    let dossier = dossier(&study, &["--instances", "2"]);
    assert_all_ran_together(&dossier, &[2], n_arms, 2);
    for series in dossier["concurrency"].as_array().unwrap() {
        assert_eq!(series["spread"], "environments");
    }
}

#[test]
fn several_containers_of_an_engine_run_together() {
    if !needs_docker() {
        return;
    }
    let study = STUDY.replace("SPREAD", "environments");
    let study = format!("{study}[[arm]]\nid = \"docker\"\nrequired = true\n");
    assert_all_ran_together(&dossier(&study, &[]), &[1, 3], 3, 2);
}

#[test]
fn library_threads_of_instances_compared_with_cpus() {
    let has_library = Command::new("/usr/bin/python3")
        .args([
            "-I",
            "-c",
            "import numpy; numpy.linalg.inv(numpy.eye(64)); print(open('/proc/self/maps').read())",
        ])
        .output()
        .is_ok_and(|output| lossy(&output.stdout).contains("openblas"));
    if !has_library {
        skip("openblas", "NumPy with OpenBLAS is not installed");
        return;
    }
    let cpus = std::thread::available_parallelism().unwrap().get();
    let study = r#"
id = "blas"
[design]
blocks_min = 1
blocks_max = 1
limit = "60s"
[[arm]]
id = "host"
[[workload]]
id = "blas-inverse"
params = { size = 64, repeats = 20 }
instances = [1, 2]
[[workload]]
id = "blas-inverse"
params = { size = 64, repeats = 20, threads = 1 }
instances = [1, 2]
"#;
    let dossier = dossier(study, &[]);
    for (arm, series, point) in points(&dossier) {
        let instances = whole_size(point["instances"].as_u64().unwrap());
        let threads = series["params"]["threads"].as_u64();
        let threads = threads.map_or(cpus, whole_size);
        let wanted = format!("{instances} instances × {threads} threads on {cpus} CPUs");
        let flags = point["flags"].as_array().unwrap();
        let mut labels = flags
            .iter()
            .filter(|flag| flag["id"] == "more-threads-than-cpus")
            .map(|flag| flag["detail"].as_str().unwrap());
        let label = labels.next();
        if instances * threads > cpus && threads > 1 && instances > 1 {
            assert_eq!(label, Some(wanted.as_str()), "{arm}: {point:#}");
        } else if instances * threads <= cpus {
            assert_eq!(label, None, "{arm}: {point:#}");
        }
    }
    let text = dossier.to_string();
    assert!(text.contains("blas.inverse.time"));
}

/// A program that sleeps; the first instance kills the worker that started it.
static ONE_DIES: [Unread; 1] = unread(["one-dies"], |_, params| {
    let mark = params.text("mark").unwrap_or_default();
    let script =
        format!("if mkdir '{mark}' 2>/dev/null; then kill -9 $PPID; fi; sleep 0.2; echo well");
    Ok(Recipe::Probe(
        CommandCall::new("sh", ["-c", &script]).to_probe(),
    ))
});

fn span_of(outcome: &Outcome) -> Option<WorkSpan> {
    let Outcome::Completed(raw) = outcome else {
        return None;
    };
    serde_json::from_slice::<ProbeReport>(&raw.stdout.0)
        .unwrap()
        .span
}

#[test]
fn killed_worker_among_several_fails_only_its_trial() {
    for spread in Spread::ALL {
        let world = World::new("instances");
        let mark = tempfile::tempdir().unwrap().path().join("mark");
        fs::create_dir_all(mark.parent().unwrap()).unwrap();
        let host = arm_id("host");
        let arms = vec![ArmSpec::new(host.clone(), "host", Params::new()).required()];
        let params = Params::new().with("mark", mark.display().to_string());
        let workload = WorkloadSpec {
            instances: 3,
            spread: Some(spread),
            ..WorkloadSpec::new(WorkloadId::new("one-dies").unwrap(), params)
        };
        let study = Study {
            blocks_min: 2,
            blocks_max: 2,
            blocks_per_launch: 5,
            trial_ns: 1_000_000,
            ..Study::new("one-dies", host, arms, vec![workload])
        };
        let (summary, stored) = carry_out(&world.cx(), &study, &|id| find(&ONE_DIES, id));
        let summary = summary.unwrap();
        fs::remove_dir_all(mark.parent().unwrap()).unwrap();
        assert_eq!((summary.n_trials, summary.n_without_value), (2, 1));
        assert_eq!(summary.absent, []);
        let records = stored.records;
        let read = |index: usize| match &records[index].outcome {
            Outcome::Completed(raw) => serde_json::from_slice::<Together>(&raw.stdout.0).unwrap(),
            other => panic!("{other:?}"),
        };
        let first = read(0);
        let problem = first.problem().unwrap();
        assert_says(&problem, "of 3: the worker was killed by signal 9");
        let dead = Outcome::Failed(Failure::Killed { signal: 9 });
        let (fallen, others): (Vec<_>, Vec<_>) = first
            .instances
            .iter()
            .partition(|record| record.outcome == dead);
        assert_eq!((fallen.len(), others.len()), (1, 2));
        for record in others {
            assert!(span_of(&record.outcome).is_some(), "{record:?}");
        }
        let second = read(1);
        assert_eq!(second.problem(), None);
        let spans: Vec<WorkSpan> = second
            .instances
            .iter()
            .filter_map(|record| span_of(&record.outcome))
            .collect();
        assert_eq!(spans.len(), 3);
        for span in &spans {
            assert!(span.end_ns - span.start_ns >= 200_000_000);
            assert!(spans.iter().all(|other| other.start_ns < span.end_ns));
        }
        assert!(labelled(world.run.as_str()).is_empty());
    }
}

#[test]
fn start_up_with_idle_neighbours_counts_their_memory() {
    if !has_container() {
        return;
    }
    let study = r#"
id = "density"
[design]
blocks_min = 2
blocks_max = 2
[[arm]]
id = "host"
[[arm]]
id = "container"
required = true
[[workload]]
id = "start-up"
sweep = { held = [0, 2] }
"#;
    let dossier = dossier(study, &[]);
    let size = |metric: &str, held: i64| -> Option<f64> {
        let mut cells = dossier["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| cell["metric"] == metric && cell["params"]["held"] == held)?;
        cell["env"]["point"].as_f64()
    };
    assert_eq!(size("start-up.all-memory.size", 0), None);
    let [one, all] = ["start-up.memory.size", "start-up.all-memory.size"]
        .map(|metric| size(metric, 2).unwrap_or_else(|| panic!("no {metric}: {dossier:#}")));
    assert!(all > 2.0 * one, "{all} of three, {one} of the last one");
}
