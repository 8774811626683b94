//! Shapes that hold on every Linux machine, whatever its speed: judged by the intervals of a real run.
//!
//! Only what the mechanism dictates is claimed: a filter of system calls costs a system call something and
//! arithmetic nothing; a bridge costs a round trip something; an engine takes many times as long to start a
//! program as the kernel does. That something costs is claimed of the interval's lower end. That nothing
//! costs is refuted only by an interval beyond the margin whose p survives the correction for the number of
//! such claims: each alone would be wrong in one run of forty, and there are more than a dozen.

use serde_json::Value;

use crate::product::{Product, assert_valid_dossier, has_container, has_docker, is_root};
use crate::world::skip;

/// Of 14 blocks; on a busy machine the analysis sets trials aside in which the clocks disagree. With eleven the
/// smallest p of the signed-rank test is 2 / 2^11, which just passes the correction.
const FEWEST_BLOCKS: u64 = 11;
/// Chance that any of the claims of no cost is refuted where none costs.
const FALSE_ALARM: f64 = 0.02;
/// Claims of no cost.
const N_CLAIMS: f64 = 15.0;

const DESIGN: &str = r#"[design]
trial = "25ms"
blocks_min = 14
blocks_max = 14
blocks_per_launch = 7

[[arm]]
id = "host"
"#;

const WITH_FILTERS: &str = r#"
[[arm]]
id = "container"
[[arm]]
id = "docker"
[[workload]]
id = "integer"
[[workload]]
id = "float"
[[workload]]
id = "chase"
[[workload]]
id = "matrix"
params.size = "small"
[[workload]]
id = "getppid"
[[workload]]
id = "start-up"
"#;

/// A round trip wakes two processes, so other work disturbs it most: three times as many blocks.
const ROUND_TRIPS: &str = r#"
[[arm]]
id = "docker"
[[workload]]
id = "tcp-round-trip"
path = "host→arm"
"#;

const WITHOUT_FILTER: &str = r#"
[[arm]]
id = "unconfined"
driver = "docker"
settings.seccomp = "unconfined"
[[workload]]
id = "getppid"
"#;

/// The cells of a dossier, looked up by arm and metric.
struct Cells(Value);

impl Cells {
    #[track_caller]
    fn get(&self, arm: &str, metric: &str) -> &Value {
        let cells = self.0["cells"].as_array().unwrap();
        let is_it = |cell: &&Value| cell["arm"] == arm && cell["metric"] == metric;
        let mut found = cells.iter().filter(is_it);
        let cell = found
            .next()
            .unwrap_or_else(|| panic!("no cell {arm} {metric}: {:#}", self.0["failures"]));
        assert!(found.next().is_none(), "{arm} {metric} is there twice");
        let n_blocks = cell["n_blocks"].as_u64().unwrap();
        assert!(
            n_blocks >= FEWEST_BLOCKS,
            "{:#} {cell:#}",
            self.0["failures"]
        );
        cell
    }

    #[track_caller]
    fn assert_costs_more_than(&self, arm: &str, metric: &str, ratio: f64) {
        let cell = self.get(arm, metric);
        // Of the best moments, where there are some within a trial: other work on the machine lengthens the
        // ordinary ones of both arms, and of a round trip by thirty times.
        let span = if cell["floor"].is_null() {
            &cell["ratio"]
        } else {
            &cell["floor"]
        };
        let low = span["low"].as_f64().unwrap();
        assert!(low > ratio, "{arm} {metric}: {low} > {ratio}? {cell:#}");
    }

    #[track_caller]
    fn assert_no_material_cost(&self, arm: &str, metric: &str) {
        let cell = self.get(arm, metric);
        let is_significant = cell["p"].as_f64().unwrap() * N_CLAIMS < FALSE_ALARM;
        assert!(
            !(cell["verdict"] == "material-cost" && is_significant),
            "{arm} {metric}: {cell:#}"
        );
    }
}

fn measure(product: &Product, id: &str, study: &str) -> Cells {
    measure_blocks(product, id, study, "14")
}

fn measure_blocks(product: &Product, id: &str, study: &str, blocks: &str) -> Cells {
    let file = product.file("study.toml", format!("id = \"{id}\"\n{DESIGN}{study}"));
    let arguments = ["run", &file, "--blocks", blocks, "--json", "-"];
    let dossier = product.run(arguments).expect(0).json();
    println!("{}", product.run(["show"]).expect(0).stdout);
    assert_valid_dossier(&dossier);
    let arms = dossier["arms"].as_array().unwrap();
    assert!(arms.iter().all(|arm| arm["available"] == true), "{arms:#?}");
    Cells(dossier)
}

/// Whether this kernel ties the mitigation of speculative store bypass to system-call filters, which a chain
/// of loads behind stores feels: Linux did so up to 5.15.
fn filters_slow_loads_down() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(5), Some(16))
}

#[test]
fn arithmetic_is_free_system_calls_bridges_and_engines_are_not() {
    if !is_root() || !has_container() {
        return skip("root", "the built-in container cannot be made here");
    }
    if !has_docker() {
        return skip("docker", "no Docker engine answers");
    }
    let product = Product::alone();
    let cells = measure(&product, "filters", WITH_FILTERS);
    let mut compute = vec![
        "cpu.integer.time",
        "cpu.float.time",
        "cpu.matrix.transpose.time",
        "cpu.matrix.inverse.time",
        "cpu.matrix.add.time",
        "cpu.matrix.multiply.time",
    ];
    if !filters_slow_loads_down() {
        compute.push("cpu.chase.time");
    }
    for metric in compute {
        for arm in ["container", "docker"] {
            cells.assert_no_material_cost(arm, metric);
        }
    }
    cells.assert_costs_more_than("docker", "syscall.getppid.time", 1.0);
    cells.assert_costs_more_than("container", "syscall.getppid.time", 1.0);
    cells.assert_costs_more_than("docker", "start-up.total.time", 10.0);
    cells.assert_costs_more_than("container", "start-up.total.time", 1.0);
    let cells = measure_blocks(&product, "round-trips", ROUND_TRIPS, "42");
    cells.assert_costs_more_than("docker", "net.tcp.round-trip.time", 1.0);
    let cells = measure(&product, "no-filter", WITHOUT_FILTER);
    cells.assert_no_material_cost("unconfined", "syscall.getppid.time");
    product.assert_nothing_left();
}
