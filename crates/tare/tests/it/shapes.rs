//! Tests shapes that hold on every Linux machine, whatever its speed, by the intervals of a real run.
//!
//! Only what the mechanism dictates is claimed: a seccomp filter slows a syscall down but not arithmetic; a bridge
//! slows a round trip down; an engine takes many times as long to start a program as the kernel does. A claim of an
//! overhead refers to the interval's lower end. A claim of no overhead is refuted only by an interval beyond the
//! margin whose p survives the correction for the number of such claims: each alone would be wrong in one run of
//! forty, and there are more than a dozen.
//!
//! On a machine whose other work hides an effect, nothing can be said about it. So a claim that a measurement does
//! not confirm is measured again with twice as many blocks, and the output says so; a claim that several measurements
//! do not confirm is wrong.

use crate::prelude::*;

/// How often a claim is measured before it is given up.
const ATTEMPTS: u32 = 3;
/// The same for round trips: waking idle processors takes several times as long as the bridge does, and varies as
/// much.
const ATTEMPTS_AT_ROUND_TRIPS: u32 = 5;
/// Blocks of the first measurement; on a busy machine the analysis excludes trials in which the clocks disagree. With
/// eleven the smallest p of the signed-rank test is 2 / 2^11, which just passes the correction.
const BLOCKS: u64 = 14;
/// Fewest blocks that must be left.
const FEWEST_BLOCKS: u64 = 11;
/// Chance that any true claim of no overhead is refuted.
const FALSE_ALARM: f64 = 0.02;
const GETPPID: &str = "syscall.getppid.time";
/// Number of claims of no overhead.
const N_CLAIMS: f64 = 15.0;

const DESIGN: &str = r#"design = { trial = "25ms", blocks_per_launch = 7 }
"#;

const WITH_FILTERS: &str = r#"
arm = [{ id = "host" }, { id = "container" }, { id = "docker" }]
workload = [
  { id = "integer" },
  { id = "float" },
  { id = "chase" },
  { id = "matrix", params.size = "small" },
  { id = "getppid" },
  { id = "start-up" },
]
"#;

const ROUND_TRIPS: &str = r#"
arm = [{ id = "host" }, { id = "docker" }]
workload = [{ id = "tcp-round-trip", path = "host→arm" }]
"#;

const WITHOUT_FILTER: &str = r#"
arm = [{ id = "host" }, { id = "unconfined", driver = "docker", settings.seccomp = "unconfined" }]
workload = [{ id = "getppid" }]
"#;

/// A claim about a metric of an arm against the host.
#[derive(Debug, Clone, Copy)]
enum Claim {
    /// The ratio is above this.
    CostsMoreThan(f64),
    /// There is no relevant overhead.
    NoMaterialCost,
}

impl Claim {
    /// Whether a cell confirms it.
    fn is_borne_out(self, cell: &Value) -> bool {
        if cell["n_blocks"].as_u64().unwrap() < FEWEST_BLOCKS {
            return false;
        }
        match self {
            // Uses the best moments, if a trial has several values: other work on the machine lengthens the ordinary
            // ones of both arms, those of a round trip by thirty times.
            Self::CostsMoreThan(ratio) => {
                let is_floor = !cell["floor"].is_null();
                let span = &cell[if is_floor { "floor" } else { "ratio" }];
                span["low"].as_f64().unwrap() > ratio
            }
            Self::NoMaterialCost => {
                let is_significant = cell["p"].as_f64().unwrap() * N_CLAIMS < FALSE_ALARM;
                !(cell["verdict"] == "material-cost" && is_significant)
            }
        }
    }
}

/// Measures a study until every claim is confirmed, at most `attempts` times.
#[track_caller]
fn assert_claims(
    product: &Product,
    (id, study): (&str, &str),
    claims: &[(&str, &str, Claim)],
    attempts: u32,
) {
    let mut open = claims.to_vec();
    let mut blocks = BLOCKS;
    for attempt in 1..=attempts {
        let text = format!("id = \"{id}\"\n{DESIGN}{study}");
        let file = product.file("study.toml", text);
        let blocks_told = blocks.to_string();
        let arguments = ["run", &file, "--blocks", &blocks_told, "--json", "-"];
        let dossier = product.run(arguments).expect(0).json();
        println!("{}", product.run(["show"]).expect(0).stdout);
        assert_valid_dossier(&dossier);
        let arms = dossier["arms"].as_array().unwrap();
        assert!(arms.iter().all(|arm| arm["available"] == true), "{arms:#?}");
        open.retain(|(arm, metric, claim)| {
            let cell = cell(&dossier, arm, metric);
            let is_borne_out = claim.is_borne_out(cell);
            if !is_borne_out {
                println!(
                    "measurement {attempt} does not bear out {arm} {metric} {claim:?}: {cell:#}"
                );
            }
            !is_borne_out
        });
        if open.is_empty() {
            return;
        }
        blocks *= 2;
    }
    panic!("{attempts} measurements do not bear out {open:?}");
}

/// Whether this kernel ties the mitigation of speculative store bypass to seccomp filters, which slows down a chain of
/// loads behind stores: Linux did so up to 5.15.
fn filters_slow_loads_down() -> bool {
    let release = contents("/proc/sys/kernel/osrelease");
    let mut numbers = release
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(5), Some(16))
}

#[test]
fn arithmetic_is_free_syscalls_bridges_engines_cost() {
    if !needs_root() || !needs_container() {
        return;
    }
    if !needs_docker() {
        return;
    }
    let product = Product::alone();
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
    let mut claims = vec![
        ("docker", GETPPID, Claim::CostsMoreThan(1.0)),
        ("container", GETPPID, Claim::CostsMoreThan(1.0)),
        ("docker", "start-up.total.time", Claim::CostsMoreThan(10.0)),
        (
            "container",
            "start-up.total.time",
            Claim::CostsMoreThan(1.0),
        ),
    ];
    for metric in compute {
        claims.extend(["container", "docker"].map(|arm| (arm, metric, Claim::NoMaterialCost)));
    }
    assert_claims(&product, ("filters", WITH_FILTERS), &claims, ATTEMPTS);
    let round_trip = (
        "docker",
        "net.tcp.round-trip.time",
        Claim::CostsMoreThan(1.0),
    );
    assert_claims(
        &product,
        ("round-trips", ROUND_TRIPS),
        &[round_trip],
        ATTEMPTS_AT_ROUND_TRIPS,
    );
    let no_filter = ("unconfined", GETPPID, Claim::NoMaterialCost);
    assert_claims(
        &product,
        ("no-filter", WITHOUT_FILTER),
        &[no_filter],
        ATTEMPTS,
    );
    product.assert_nothing_left();
}
