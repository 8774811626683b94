//! Tests a study with a publication: claims of known truth, tables with known places, figures.

use tare::analyze::{RunData, analyze};
use tare::report::svg;
use tare::report::terminal::brief;
use tare_model::dossier::{Dossier, DossierLayoutValue};
use tare_model::{ClaimVerdict, Publication};

use super::forms::{assert_lacks, assert_says};
use super::generator::{Effect, Plan, facts_of, find, of_width};

const PUBLICATION: &str = r#"
title = "A comparison of <boxes>"
authors = "N. N."
where = "Somewhere 1(2), 3"
machine = "a laptop"
deviations = ["smaller files"]

[[quantity]]
name = "compute"
label = "Computing"
metric = "cpu.integer.time"

[[quantity]]
name = "kernel"
label = "System calls"
metric = "syscall.getppid.time"

[[quantity]]
name = "stream"
label = "Streaming"
metric = "net.tcp.throughput"

[[number]]
printed = "1,234"
value = 1.234
unit = "s"
at = "Table 1"
quantity = "compute"
arm = "docker"

[[mistake]]
what = "Means were given without any spread."
here = "Every value has an interval."

[[table]]
title = "Table 1. Times"
rows = ["compute", "kernel"]
columns = [{ label = "host", arm = "host" }, { label = "Docker", arm = "docker" }, { label = "two in Docker", arm = "docker", instances = 2 }]

[[figure]]
title = "Figure 1. Times & <rates>"
rows = ["compute", "stream"]
columns = [{ label = "host", arm = "host" }, { label = "container", arm = "container" }, { label = "Docker", arm = "docker" }]
"#;

/// Claims: id, published statement, its place, and the rule that expresses it.
const CLAIMS: [[&str; 4]; 8] = [
    [
        "compute-is-free",
        "Computing costs nothing.",
        "conclusion 1",
        r#"{ kind = "cost", quantity = "compute", arm = "docker", at_least = 0.98, at_most = 1.02 }"#,
    ],
    [
        "calls-are-free",
        "System calls cost nothing.",
        "conclusion 1",
        r#"{ kind = "cost", quantity = "kernel", arm = "docker", at_most = 1.02 }"#,
    ],
    [
        "streams-halve",
        "The network is half as fast.",
        "conclusion 2",
        r#"{ kind = "cost", quantity = "stream", arm = "docker", at_least = 1.9, at_most = 2.2 }"#,
    ],
    [
        "most-is-free",
        "Most of it costs nothing.",
        "conclusion 3",
        r#"{ kind = "most", quantities = ["compute", "kernel", "stream"], arm = "docker", at_most = 1.02 }"#,
    ],
    [
        "all-is-dear",
        "All of it costs more.",
        "conclusion 3",
        r#"{ kind = "all", quantities = ["kernel", "stream"], arm = "docker", at_least = 1.05 }"#,
    ],
    [
        "container-is-dearer",
        "The container's system calls cost more than Docker's.",
        "conclusion 4",
        r#"{ kind = "between", quantity = "kernel", arm = "container", other = "docker", at_least = 1.0 }"#,
    ],
    [
        "several",
        "Two instances take twice as long.",
        "conclusion 4",
        r#"{ kind = "growth", quantity = "compute", arm = "docker", instances = 2, at_least = 2.0 }"#,
    ],
    [
        "another-system",
        "It is worse on another system.",
        "conclusion 5",
        r#"{ kind = "not-testable", because = "that system is not here" }"#,
    ],
];

/// Returns the publication with its claims.
fn publication() -> Publication {
    let claims = CLAIMS.map(|[id, published, at, rule]| {
        format!("[[claim]]\nid = {id:?}\npublished = {published:?}\nat = {at:?}\nrule = {rule}\n")
    });
    toml::from_str(&(PUBLICATION.to_owned() + &claims.concat())).unwrap()
}

pub(crate) fn dossier() -> Dossier {
    dossier_of(|_| {})
}

fn dossier_of(change: impl FnOnce(&mut RunData)) -> Dossier {
    let mut run = Plan::default()
        .workloads(["integer", "syscall", "stream"])
        .arms(["container", "docker"])
        .trial_noise(0.004)
        .seed(5)
        .with("container", "syscall.getppid.time", Effect::Times(1.02))
        .with("docker", "syscall.getppid.time", Effect::Times(1.5))
        .with("docker", "net.tcp.throughput", Effect::Times(2.05))
        .run();
    run.head.study.publication = Some(publication());
    change(&mut run);
    analyze(&run, &find)
}

#[test]
fn known_claims_get_correct_verdicts() {
    let dossier = dossier();
    let verdicts: Vec<(&str, ClaimVerdict)> = dossier
        .claims
        .iter()
        .map(|claim| (claim.id.as_str(), claim.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("compute-is-free", ClaimVerdict::Holds),
            ("calls-are-free", ClaimVerdict::Fails),
            ("streams-halve", ClaimVerdict::Holds),
            ("most-is-free", ClaimVerdict::Fails),
            ("all-is-dear", ClaimVerdict::Holds),
            ("container-is-dearer", ClaimVerdict::Fails),
            ("several", ClaimVerdict::NotTestable),
            ("another-system", ClaimVerdict::NotTestable),
        ],
        "{:?}",
        dossier.claims
    );
}

#[test]
fn emulated_arm_decides_no_claim() {
    let dossier = dossier_of(|run| {
        let facts = facts_of(run, "docker");
        facts.insert("vm.emulated".into(), "true".into());
        facts.insert("vm.emulated.detail".into(), "by software".into());
    });
    for claim in &dossier.claims {
        assert_eq!(claim.verdict, ClaimVerdict::NotTestable, "{claim:?}");
        // Once, however many quantities the claim is about.
        assert!(claim.because.matches("`docker` is emulated").count() <= 1);
    }
    let because = &dossier.claims[0].because;
    assert_says(because, "`docker` is emulated");
}

#[test]
fn few_blocks_decide_no_claim() {
    let dossier = dossier_of(|run| run.trials.retain(|trial| trial.trial.block < 2));
    for claim in &dossier.claims {
        assert_eq!(claim.verdict, ClaimVerdict::NotTestable, "{claim:?}");
    }
}

#[test]
fn publication_table_has_value_or_reason_and_printed() {
    let dossier = dossier();
    let publication = dossier.publication.unwrap();
    let row = &publication.tables[0].rows[0];
    assert_eq!((row.label.as_str(), row.unit.as_str()), ("Computing", "ns"));
    assert!(row.values[0].here.is_some() && row.values[1].here.is_some());
    assert_eq!(row.values[1].published, ["1,234 s"]);
    assert!(row.values[2].here.is_none());
    let reason = row.values[2].reason.as_deref().unwrap();
    assert_says(reason, "not measured");
}

#[test]
fn a_figure_is_a_file_that_any_reader_of_xml_takes() {
    let drawings = svg::figures(&dossier());
    assert_eq!(drawings.len(), 1);
    assert_eq!(drawings[0].name, "figure-1");
    let text = &drawings[0].svg;
    super::figures::keep("figure.svg", text);
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    assert_says(text, "Times &amp; &lt;rates&gt;");
    // A panel of three bars, and the white background; a panel of three points, because its axis is logarithmic, and
    // next to one of them the published value.
    assert_eq!(text.matches("<rect").count(), 4);
    assert_eq!(text.matches("<circle").count(), 4);
    assert_eq!(text.matches("stroke-dasharray").count(), 1);
}

#[test]
fn publication_report_matches_snapshot() {
    super::snapshots::of_dossier("publication", &dossier());
}

#[test]
fn brief_shows_measured_tables_and_counts_empty_ones() {
    let style = of_width(100);
    let mut dossier = dossier();
    let rows = |dossier: &mut Dossier, change: fn(&mut DossierLayoutValue)| {
        let tables = &mut dossier.publication.as_mut().unwrap().tables;
        let rows = tables.iter_mut().flat_map(|table| &mut table.rows);
        rows.flat_map(|row| &mut row.values).for_each(change);
    };
    rows(&mut dossier, |value| value.published.clear());
    let drawn = brief(&dossier, style);
    assert_says(&drawn, "Table 1. Times");
    rows(&mut dossier, |value| value.here = None);
    let drawn = brief(&dossier, style).replace('\n', " ");
    assert_lacks(&drawn, "Table 1. Times");
    assert_says(&drawn, "tables in which no number");
}

#[test]
fn the_dossier_fits_its_schema() {
    super::schema::assert_fits(&dossier());
}

#[test]
fn recorded_arm_has_column_but_decides_no_claim() {
    let dossier = dossier_of(|run| {
        let publication = run.head.study.publication.as_mut().unwrap();
        let parts: Publication = toml::from_str(
            r#"
title = "t"
where = "w"
machine = "m"
[[recorded]]
arm = "laptop"
label = "My laptop"
workload = "integer"
values = { "cpu.integer.time" = [1e6, 3e6, 2e6] }
[[claim]]
id = "laptop"
published = "The laptop is slower."
at = "a"
rule = { kind = "between", quantity = "compute", arm = "laptop", other = "docker", at_least = 1.0 }
"#,
        )
        .unwrap();
        publication.recorded = parts.recorded;
        publication.claims.extend(parts.claims);
    });
    super::schema::assert_fits(&dossier);
    let claim = dossier.claims.last().unwrap();
    assert_eq!(claim.verdict, ClaimVerdict::NotTestable);
    assert_says(&claim.because, "recorded elsewhere");
    let publication = dossier.publication.as_ref().unwrap();
    let table = &publication.tables[0];
    assert_eq!(table.columns.last().unwrap(), "My laptop (recorded)");
    let value = table.rows[0].values.last().unwrap();
    let span = value.here.unwrap();
    assert!(value.recorded && value.reason.is_none());
    let ends = format!("{} {} {}", span.low, span.point, span.high);
    assert_eq!(ends, "1000000 2000000 3000000");
    let other = table.rows[1].values.last().unwrap();
    assert!(other.here.is_none() && !other.recorded);
    let note = publication
        .notes
        .iter()
        .find(|note| note.of.starts_with("My laptop"));
    assert!(note.unwrap().text.contains("not paired"));
}
