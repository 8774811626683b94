//! Tests how a publication's numbers are compared with each other and with a run's: by their parts, by instance, by
//! step of a trial, and in the publication's own quantities.

use tare::analyze::analyze;
use tare::config::{Adjustments, parse};
use tare::report::html;
use tare::report::terminal::table;
use tare_model::dossier::{Dossier, DossierLayoutValue, DossierOwnNumbers};
use tare_model::{Publication, Study};

use super::forms::assert_says;
use super::generator::{Plan, find, of_width};

/// A publication with these numbers, quantities, claims and tables.
fn publication(rest: &str) -> Publication {
    let text = format!("title = \"t\"\nwhere = \"w\"\nmachine = \"m\"\n{rest}");
    let publication: Publication = toml::from_str(&text).unwrap();
    publication.unfolded()
}

/// Returns the dossier of a run of the host and Docker.
fn compared_with(publication: Publication) -> Dossier {
    let mut run = Plan::default()
        .workloads(["integer"])
        .arms(["docker"])
        .seed(3)
        .run();
    run.head.study.publication = Some(publication);
    analyze(&run, &find)
}

/// A number of the quantity `compute`.
fn number(value: f64, arm: &str, rest: &str) -> String {
    format!(
        "[[number]]\nprinted = \"{value}\"\nvalue = {value:?}\nunit = \"s\"\nat = \"a\"\nquantity = \"compute\"\narm = \"{arm}\"\n{rest}\n"
    )
}

const COMPUTE: &str =
    "[[quantity]]\nname = \"compute\"\nlabel = \"Computing\"\nmetric = \"cpu.integer.time\"\n";

/// Returns the verdict of the authors' own numbers on a claim with this rule.
fn own(numbers: &[String], rule: &str) -> Option<DossierOwnNumbers> {
    let claim = format!(
        "[[claim]]\nid = \"c\"\npublished = \"p\"\nat = \"a\"\nrule = {{ {rule}, at_least = 1.1 }}\n"
    );
    let dossier = compared_with(publication(&format!(
        "{}{COMPUTE}{claim}",
        numbers.concat()
    )));
    dossier.claims[0].own.clone()
}

const COST: &str = "kind = \"cost\", quantity = \"compute\", arm = \"docker\"";

#[test]
fn numbers_of_one_part_are_compared_with_each_other() {
    let part = |part: &str| format!("part = \"{part}\"");
    let both = [
        number(1.0, "host", &part("I")),
        number(4.0, "host", &part("II")),
        number(2.0, "docker", &part("I")),
        number(3.0, "docker", &part("II")),
    ];
    // By their means it would be 5 to 5.
    let found = own(&both, COST).unwrap();
    assert_eq!((found.holds, found.partly), (false, true));
    assert!(
        found.because.contains("2.00 (I), 0.750 (II)"),
        "{}",
        found.because
    );
    // If only one side has parts, each is compared with the other side.
    let one = [both[0].clone(), both[1].clone(), number(2.0, "docker", "")];
    let found = own(&one, COST).unwrap();
    assert!(
        found.because.contains("2.00 (I), 0.500 (II)"),
        "{}",
        found.because
    );
    // One of the numbers has no part: means.
    let mixed = [
        number(3.0, "host", ""),
        both[0].clone(),
        number(3.0, "docker", ""),
    ];
    let found = own(&mixed, COST).unwrap();
    assert_eq!((found.holds, found.partly), (true, false));
    assert!(found.because.contains("× 1.50,"), "{}", found.because);
}

#[test]
fn instances_use_mean_and_printed_ratio_fills_gaps() {
    let of = |part: &str| format!("instances = 2\npart = \"{part}\"");
    let numbers = [
        number(1.0, "docker", ""),
        number(1.0, "docker", &of("I")),
        number(3.0, "docker", &of("II")),
    ];
    let growth = "kind = \"growth\", quantity = \"compute\", arm = \"docker\", instances = 2";
    let found = own(&numbers, growth).unwrap();
    assert!(found.because.contains("× 2.00,"), "{}", found.because);
    let alone =
        "kind = \"all\", quantities = [\"compute\"], arm = \"docker\", instances = 2, alone = true";
    let found = own(&numbers, alone).unwrap();
    assert!(found.because.contains("1 of 1"), "{}", found.because);
    // Twice as long with two on one side, equal on the other.
    let more = [
        number(1.0, "host", ""),
        number(1.0, "host", &of("I")),
        numbers[0].clone(),
        numbers[1].clone(),
        numbers[2].clone(),
    ];
    let costs = "kind = \"costs\", quantity = \"compute\", instances = 2, to = \"compute\", arm = \"docker\"";
    let found = own(&more, costs).unwrap();
    assert!(found.because.contains("× 2.00,"), "{}", found.because);
    let ratio = |unit: &str, over: &str, arm: &str| {
        let rest = format!("over = \"{over}\"");
        number(2.0, arm, &rest).replace("unit = \"s\"", &format!("unit = \"{unit}\""))
    };
    for (printed, told) in [
        (ratio("ratio", "host", "docker"), "× 2.00,"),
        (ratio("ratio", "docker", "host"), "× 0.500,"),
        (ratio("ratio of rates", "host", "docker"), "× 0.500,"),
    ] {
        let found = own(&[printed], COST).unwrap();
        assert!(found.because.contains(told), "{told}: {}", found.because);
    }
}

#[test]
fn almost_all_is_a_share_and_not_more_than_half() {
    let quantities: String = (0..4)
        .map(|n| COMPUTE.replace("\"compute\"", &format!("\"q{n}\"")))
        .collect();
    let numbers: String = (0..4)
        .map(|n| {
            let docker = if n == 0 { 1.0 } else { 2.0 };
            let both = number(1.0, "host", "") + &number(docker, "docker", "");
            both.replace("\"compute\"", &format!("\"q{n}\""))
        })
        .collect();
    let judged = |share: &str| {
        let claim = format!(
            "[[claim]]\nid = \"c\"\npublished = \"p\"\nat = \"a\"\nrule = {{ kind = \"most\", {share}quantities = [\"q0\", \"q1\", \"q2\", \"q3\"], arm = \"docker\", at_least = 1.5 }}\n"
        );
        let dossier = compared_with(publication(&format!("{numbers}{quantities}{claim}")));
        dossier.claims[0].own.clone().unwrap().holds
    };
    assert!(judged(""));
    assert!(judged("share = 0.7, "));
    assert!(!judged("share = 0.9, "));
}

/// Returns the only value of the only table of a publication of this quantity.
fn shown_value(quantity: &str) -> (DossierLayoutValue, String) {
    let number = "[[number]]\nprinted = \"0.5\"\nvalue = 0.5\nunit = \"GFLOPS\"\nat = \"a\"\nquantity = \"compute\"\narm = \"docker\"\n";
    let table = "[[table]]\ntitle = \"T\"\nrows = [\"compute\"]\ncolumns = [{ label = \"Docker\", arm = \"docker\" }, { label = \"over\", arm = \"docker\", over = \"host\" }]\n";
    let dossier = compared_with(publication(&format!("{number}{quantity}{table}")));
    let row = &dossier.publication.as_ref().unwrap().tables[0].rows[0];
    let ratio = row.values[1].here.unwrap().point;
    let cell = dossier.cells.iter().find(|cell| cell.arm == "docker");
    let cost = cell.unwrap().ratio.unwrap().point;
    // Whatever its unit, above 1 is an overhead.
    assert!((ratio / cost - 1.0).abs() < 0.05, "{ratio} {cost}");
    (row.values[0].clone(), row.unit.clone())
}

#[test]
fn values_convert_by_publication_factor_or_inverse() {
    let (plain, _) = shown_value(COMPUTE);
    let plain = plain.here.unwrap();
    let (many, unit) = shown_value(&format!("{COMPUTE}factor = 100000.0\n"));
    let many = many.here.unwrap();
    assert_eq!(unit, "ratio", "the last column's");
    assert!((many.point / plain.point / 1e5 - 1.0).abs() < 1e-9);
    let inverse = format!("{COMPUTE}factor = 1e18\ninverse = true\nunit = \"op/s\"\n");
    let (rate, _) = shown_value(&inverse);
    assert_eq!(rate.printed, [5e8]);
    let rate = rate.here.unwrap();
    assert!((rate.point * plain.point / 1e18 - 1.0).abs() < 1e-9);
    assert!(rate.low <= rate.point && rate.point <= rate.high);
    assert!((rate.low * plain.high / 1e18 - 1.0).abs() < 1e-9);
}

#[test]
fn instance_parts_keep_separate_published_values() {
    let of = |part: &str| number(1.0, "box", &format!("instances = 2\npart = \"{part}\""));
    let layout = "[[table]]\ntitle = \"T\"\nrows = [\"compute\"]\ncolumns = [{ label = \"one\", arm = \"box\" }, { label = \"two\", arm = \"box\", instances = 2 }]\n";
    let numbers = number(1.0, "box", "") + &of("I") + &of("II");
    let mut run = super::concurrency::run_with_series();
    run.head.study.publication = Some(publication(&format!("{numbers}{COMPUTE}{layout}")));
    let dossier = analyze(&run, &find);
    super::schema::assert_fits(&dossier);
    let values = &dossier.publication.as_ref().unwrap().tables[0].rows[0].values;
    assert!(values[0].each.is_empty(), "one alone is itself");
    let [first, second] = values[1].each.as_slice() else {
        panic!("{:?}", values[1]);
    };
    assert!(
        (second.point / first.point - 1.5).abs() < 0.05,
        "{first:?} {second:?}"
    );
    let mean = f64::midpoint(first.point, second.point);
    let here = values[1].here.unwrap().point;
    assert!((mean / here - 1.0).abs() < 0.01, "{mean} {here}");
    let drawn = table(&dossier, of_width(120));
    assert_says(&drawn, "\neach ");
    assert!(html::page(&dossier).contains(">each<"));
}

#[test]
fn published_trial_steps_are_listed_outside_tables() {
    let step = |at: f64| number(2.0, "docker", &format!("step = {at:?}\nwithout = \"step\""));
    let table = "[[table]]\ntitle = \"T\"\nrows = [\"compute\"]\ncolumns = [{ label = \"Docker\", arm = \"docker\" }]\n";
    let numbers = step(1.0) + &step(2.0);
    let dossier = compared_with(publication(&format!("{numbers}{COMPUTE}{table}")));
    let publication = dossier.publication.as_ref().unwrap();
    assert_eq!(publication.others.len(), 2);
    assert!(publication.tables[0].rows[0].values[0].published.is_empty());
    super::schema::assert_fits(&dossier);
}

/// An example study, as a user runs it.
fn example(name: &str) -> Study {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/studies");
    let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    parse(name, &text, &Adjustments::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_published_iozone_cell_has_place_in_example() {
    let publication = example("cluster-iozone.toml").publication.unwrap();
    let of_logs: Vec<_> = publication
        .numbers
        .iter()
        .filter(|number| number.unit == "kB/s" && number.quantity.is_some())
        .collect();
    // Three tables of ten rows and thirteen columns; in four rows only four columns have a value. One more is in the
    // text.
    assert_eq!(of_logs.len(), 3 * 10 * 13 - 4 * 9 + 1);
    let lost: Vec<_> = of_logs
        .iter()
        .filter(|number| !publication.has_place_for(number))
        .collect();
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn examples_show_numbers_of_their_publication() {
    for (name, least) in [
        ("cluster-machines.toml", 150),
        ("cluster-full.toml", 150),
        ("python-own.toml", 4),
        ("python-full.toml", 4),
        ("os-micro-own.toml", 90),
        ("os-micro-dotnet.toml", 90),
        ("ram-disk-full.toml", 80),
        ("storage-full.toml", 30),
    ] {
        let publication = example(name).publication.unwrap();
        let numbers = publication.numbers.iter();
        let shown = numbers.filter(|it| publication.has_place_for(it)).count();
        assert!(shown >= least, "{name}: {shown}");
        assert!(!publication.deviations.is_empty(), "{name}");
    }
}
