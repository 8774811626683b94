//! Tests the publications that the built-in studies repeat: every printed number reaches the reader, and every claim
//! is checked against its authors' own numbers.

use std::collections::BTreeSet;

use tare::analyze::{ArmData, RunData, RunHead, analyze, other_scale};
use tare::config::builtin::STUDIES;
use tare::config::{Adjustments, built_in};
use tare::report::terminal::{brief, table};
use tare_model::dossier::Dossier;
use tare_model::publication::Publication;
use tare_model::{NoCounterpart, Params, RunId, Study};

use super::forms::assert_says;
use super::forms::{file_of, made_of, text_of, words};
use super::generator::{of_width, publication_of};

/// Returns the built-in studies with a publication.
fn studies() -> Vec<Study> {
    STUDIES
        .iter()
        .map(|study| {
            built_in(study.id, &Adjustments::default())
                .unwrap()
                .unwrap()
        })
        .filter(|study| study.publication.is_some())
        .collect()
}

/// Returns the dossier of a run without results.
fn nothing_measured(study: &Study) -> Dossier {
    let arms = study.arms.iter().map(|spec| ArmData {
        spec: spec.clone(),
        available: true,
        reason: None,
        fix: None,
        facts: super::generator::facts(),
        agent_sha256: None,
    });
    let head = RunHead {
        study: study.clone(),
        run: RunId::new("nothing").unwrap(),
        arms: arms.collect(),
        ..super::generator::Plan::default().run().head
    };
    let trials = Vec::new();
    analyze(&RunData { head, trials }, &tare::workload::find)
}

/// Returns the report with each run of white space as one space, so that wrapping does not matter.
fn drawn(dossier: &Dossier) -> String {
    words(&table(dossier, of_width(140)))
}

/// Returns the page's text without markup.
fn page(dossier: &Dossier) -> String {
    let markup = tare::report::html::page(dossier);
    let body = markup.split("<body>").nth(1).unwrap();
    let mut text = String::new();
    for part in body.split('<') {
        let (mark, said) = part.split_once('>').unwrap_or(("", part));
        // An inline element does not end the line.
        let is_inline = ["code", "/code", "span", "/span", "strong", "/strong"]
            .iter()
            .any(|name| mark.split([' ', '.']).next() == Some(name));
        if !is_inline {
            text.push(' ');
        }
        text.push_str(said);
    }
    for (entity, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, letter);
    }
    words(&text)
}

#[test]
fn report_has_every_published_number_and_note() {
    for study in studies() {
        let publication = study.publication.as_ref().unwrap();
        let dossier = nothing_measured(&study);
        // Backticks are characters on a terminal and markup on the page.
        let reports = [drawn(&dossier), page(&dossier)].map(|text| text.replace('`', ""));
        let mut lost = Vec::new();
        let mut look = |what: &str| {
            let what = words(what).replace('`', "");
            if !reports.iter().all(|report| report.contains(&what)) {
                lost.push(what);
            }
        };
        for number in &publication.numbers {
            look(&number.shown());
            number.what.iter().for_each(|what| look(what));
            if let Some(correction) = &number.corrected {
                look(&correction.because);
            }
            if !publication.has_place_for(number) {
                look(&number.at);
            }
        }
        for quantity in &publication.quantities {
            quantity.remark.iter().for_each(|remark| look(remark));
        }
        for claim in &publication.claims {
            look(&claim.published);
            look(&claim.at);
        }
        for claim in &dossier.claims {
            if let Some(own) = &claim.own {
                look(&own.because);
            }
        }
        for deviation in &publication.deviations {
            look(deviation);
        }
        assert!(lost.is_empty(), "{}: {lost:#?}", study.id);
        super::schema::assert_fits(&dossier);
        let own = dossier.publication.unwrap();
        let n_places: usize = publication
            .numbers
            .iter()
            .filter(|number| publication.has_place_for(number))
            .count();
        assert_eq!(
            n_places + own.others.len(),
            publication.numbers.len(),
            "{}",
            study.id
        );
    }
}

#[test]
fn number_has_place_or_reason_corrections_marked() {
    let mut seen = BTreeSet::new();
    for study in studies() {
        let publication = study.publication.unwrap();
        for number in &publication.numbers {
            let has_place = publication.has_place_for(number);
            assert_eq!(
                number.without.is_none(),
                has_place,
                "{}: {number:?}",
                study.id
            );
            seen.extend(number.without);
            if let Some(correction) = &number.corrected {
                let is_other = (number.value, number.unit.as_str())
                    != (correction.value, correction.unit.as_str());
                assert!(is_other, "{number:?}");
                assert!(number.shown().ends_with(']'), "{}", number.shown());
            }
        }
    }
    assert_eq!(seen, BTreeSet::from(NoCounterpart::ALL));
}

#[test]
fn brief_names_omitted_parts_summary_has_claims() {
    for study in studies() {
        let dossier = nothing_measured(&study);
        let publication = dossier.publication.as_ref().unwrap();
        let short = words(&brief(&dossier, of_width(100)));
        for left_out in [
            format!("{} published numbers", publication.others.len()),
            "notes on these numbers".to_owned(),
            "what the publication's own numbers say of its claims".to_owned(),
            "what was wrong there".to_owned(),
        ] {
            assert!(
                short.contains(&left_out),
                "{}: {left_out}: {short}",
                study.id
            );
        }
        let made = text_of(made_of("markdown", &dossier, &[]));
        for claim in &dossier.claims {
            let first = claim.published.split([',', '.', '(', '“']).next().unwrap();
            assert!(made.contains(first), "{}: {first}", study.id);
        }
        for table in &publication.tables {
            let begin = table.title.split([',', '(']).next().unwrap();
            assert!(made.contains(begin), "{}: {begin}", study.id);
        }
        let file = |name: &str| file_of("latex", &dossier, name);
        assert!(file("report.tex").contains("\\input{published}"));
        let of_paper = file("published.tex");
        for deviation in &publication.deviations {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " -".contains(letter);
            let begin = deviation.split(|letter| !is_plain(letter)).next().unwrap();
            for (form, text) in [("brief", &short), ("markdown", &made), ("latex", &of_paper)] {
                assert!(text.contains(begin), "{}, {form}: {begin}", study.id);
            }
        }
        let n_tables = of_paper.matches("\\begin{longtable}").count();
        assert_eq!(n_tables, publication.tables.len() + 1, "{}", study.id);
        // Hebrew, Chinese and Cyrillic letters are written by their numbers.
        let is_plain = |letter: char| letter.is_ascii() || ('À'..='ÿ').contains(&letter);
        assert!(of_paper.chars().all(is_plain), "{}", study.id);
    }
}

/// Claims on results or assumptions that the authors' own numbers contradict. Each was looked up in the publication.
const CONTRADICTED: &[(&str, &str)] = &[
    // Redis with 50 clients: 79 thousand a second in a container behind translated addresses, 93 thousand in a machine.
    ("classic", "containers-equal-or-exceed-machines"),
    // Writing 64 kB by 4 kB: 821 391 kB/s in a container, 866 463 on the Master; most other rows alike.
    ("cluster", "containers-write-faster"),
    // Reading the same: 2 561 267 and 7 293 312 kB/s.
    ("cluster", "containers-read-faster"),
    // 3089.76 events per second in a container, 3072.86 and 3132.30 in machines.
    ("cluster", "machines-cost-processor"),
    // On the Master 10 402 178 kB/s at random and 7 293 312 in order; on Node01 as claimed.
    ("cluster", "random-slower-than-sequential"),
    // On the Master 8 182 586 kB/s strided and 7 293 312 in order; on Node01 as claimed.
    ("cluster", "strided-reads-are-slower"),
    // 5 389 653 kB/s in records of 4 kB and 8 182 586 kB/s in records of 64 kB.
    ("cluster", "strided-reads-are-consistent-in-containers"),
    // 2 203 800 kB/s of writes and 7 940 539 kB/s of reads: 3.6 times is not slightly.
    (
        "cluster",
        "random-writes-slightly-slower-than-reads-in-containers",
    ),
    // 801 764 kB/s in records of 64 kB and 821 391 kB/s in records of 4 kB.
    ("cluster", "larger-records-are-faster-in-containers"),
    // 7 940 539 kB/s at random and 2 561 267 kB/s in order.
    ("cluster", "random-slower-than-sequential-in-containers"),
    // 2 203 800 kB/s at random places and 821 391 kB/s in order.
    ("cluster", "random-writes-slower-in-containers"),
    // The list of drives takes 126 times as long on Linux.
    ("os-micro", "linux-leads-in-mapping-creating-and-deleting"),
    // Random bytes: 9821 ns on Linux, 9733 ns on Windows.
    (
        "os-micro",
        "linux-leads-slightly-in-random-numbers-and-timers",
    ),
    // 229.71 against 210.71 ms with several threads.
    ("os-micro", "no-winner-in-regex"),
    // 4.3574 s in a container, 4.4469 s on the host.
    ("ram-disk", "a-mount-slows-the-large-file"),
    // 72.7 s with three containers, 19.3 s with one.
    ("ram-disk", "containers-do-not-compete"),
    // Writing small files: 3.23 s with three programs, 1.19 s with one.
    ("ram-disk", "disk-hardly-changes"),
    // 2.68 s with three containers, 1.31 s with one.
    ("ram-disk", "disk-hardly-changes-in-containers"),
    // The same small files.
    ("ram-disk", "writing-grows-gently"),
    // A large file is read 1.04 times as slowly with three containers, less than the 1.05 of this rule.
    ("ram-disk", "disk-slows-down-in-containers"),
    // Small files: 2.05 times with three containers, 2.71 times with three programs.
    ("ram-disk", "writing-small-behaves-alike"),
    // 7.34 s with three containers, 6.20 s with one.
    ("ram-disk", "encryption-does-not-compete"),
    // A page takes 15 times as long in a mounted folder, a random read 43 times.
    ("storage", "reading-files-is-what-counts"),
];

#[test]
fn every_rule_is_held_against_the_published_numbers() {
    let mut contradicted = BTreeSet::new();
    let mut n_decided = 0;
    for study in studies() {
        let dossier = nothing_measured(&study);
        for claim in &dossier.claims {
            n_decided += usize::from(claim.own.is_some());
            if claim.own.as_ref().is_some_and(|own| !own.holds) {
                contradicted.insert((study.id.clone(), claim.id.clone()));
            }
        }
        let report = drawn(&dossier);
        let n_against = report.matches("its own numbers are against it").count();
        let n_told = dossier
            .claims
            .iter()
            .filter(|claim| claim.own.as_ref().is_some_and(|own| !own.holds))
            .count();
        assert_eq!(n_against, n_told, "{}", study.id);
    }
    let expected: BTreeSet<(String, String)> = CONTRADICTED
        .iter()
        .map(|(study, claim)| ((*study).to_owned(), (*claim).to_owned()))
        .collect();
    assert_eq!(contradicted, expected);
    assert!(n_decided >= 60, "{n_decided}");
}

/// Compares a generated run of one workload in Docker, with these parameters, with a publication.
fn in_docker(publication: &Publication, called: impl Fn(Params) -> Params) -> Dossier {
    let mut run = super::generator::Plan::default()
        .workloads(["integer"])
        .arms(["docker"])
        .seed(5)
        .run();
    for trial in &mut run.trials {
        let params = std::mem::take(&mut trial.trial.cell.params);
        trial.trial.cell.params = called(params);
    }
    run.head.study.publication = Some(publication.clone());
    analyze(&run, &super::generator::find)
}

#[test]
fn file_value_is_line_times_lines_ratio_has_direction() {
    let publication = publication_of(
        r#"
quantity = [{ name = "file", label = "A file", metric = "cpu.integer.time", times = ["lines", "files"] }]
number = [
  { printed = "150%", value = 1.5, unit = "ratio", at = "table", quantity = "file", arm = "host", over = "docker" },
  { printed = "3", value = 3.0, unit = "ms", corrected = { value = 3.0, unit = "s", because = "the log says s" }, at = "table", quantity = "file", arm = "docker" },
]
[[table]]
title = "T"
rows = ["file"]
columns = [{ label = "Docker", arm = "docker" }]
[[table]]
title = "D"
rows = ["file"]
columns = [{ label = "Docker over host", arm = "docker", over = "host" }]
"#,
    );
    let dossier = |times: i64| {
        in_docker(&publication, |params| {
            params.with("lines", times).with("files", 2i64)
        })
    };
    let value = |dossier: &Dossier, table: usize| {
        let tables = &dossier.publication.as_ref().unwrap().tables;
        tables[table].rows[0].values[0].clone()
    };
    let (one, thousand) = (dossier(1), dossier(1000));
    let ratio = value(&thousand, 0).here.unwrap().point / value(&one, 0).here.unwrap().point;
    assert!((ratio - 1000.0).abs() < 1e-6, "{ratio}");
    assert_eq!(value(&one, 0).published, ["3 ms [3 s]"]);
    // The printed ratio is inverted, and says so; ours is the ratio of the two.
    let difference = value(&thousand, 1);
    assert_eq!(difference.published, ["150% host over docker"]);
    let ours = difference.here.unwrap();
    assert!((0.9..1.1).contains(&ours.point), "{ours:?}");
    assert_eq!(
        thousand.publication.as_ref().unwrap().tables[1].rows[0].unit,
        "ratio"
    );
}

#[test]
fn study_reports_scale_only_if_it_differs() {
    let scale = |text: &str, name: &str| {
        let study = tare::config::parse(name, text, &Adjustments::default()).unwrap();
        other_scale(&study).unwrap_or_default()
    };
    let builtin = |id: &str| {
        let study = STUDIES.iter().find(|study| study.id == id).unwrap();
        scale(study.text, id)
    };
    for (id, text) in [
        ("ram-disk", "size = 1000 here, 8000 there"),
        (
            "ram-disk",
            "lines = 200000 here, 8000000 there; the value is multiplied by 40",
        ),
        ("cluster", "duration = 1 here, 10 there"),
        ("storage", "runtime = 1s here, 5m there"),
    ] {
        let scale = builtin(id);
        assert!(scale.contains(text), "{id}: {scale}");
    }
    let full = [
        (
            "ram-disk-full",
            include_str!("../../../../examples/studies/ram-disk-full.toml"),
        ),
        (
            "storage-full",
            include_str!("../../../../examples/studies/storage-full.toml"),
        ),
    ];
    for (id, text) in full {
        assert_eq!(scale(text, id), "", "{id}");
    }
    // Its files have the largest size of the grid; the text's have 64 kB.
    let cluster = include_str!("../../../../examples/studies/cluster-full.toml");
    assert_eq!(scale(cluster, "cluster-full"), "size = 1g here, 64k there");
}

fn without_tags(svg: &str) -> String {
    let parts = svg.split('<').filter_map(|part| part.split_once('>'));
    words(&parts.map(|(_, text)| text).collect::<Vec<_>>().join(" "))
}

#[test]
fn differently_scaled_row_is_marked_in_every_form() {
    let publication = publication_of(
        r#"
quantity = [{ name = "file", label = "A file", metric = "cpu.integer.time", there = { lines = 1000 }, linear = "lines" }]
[[table]]
title = "T"
rows = ["file"]
columns = [{ label = "Docker", arm = "docker" }]
[[figure]]
title = "F"
rows = ["file"]
columns = [{ label = "Docker", arm = "docker" }]
"#,
    );
    let dossier = |lines: i64| in_docker(&publication, |params| params.with("lines", lines));
    let (here, there) = (dossier(100), dossier(1000));
    let row = |dossier: &Dossier| dossier.publication.as_ref().unwrap().tables[0].rows[0].clone();
    let [small, same] = [&here, &there].map(row);
    assert_eq!(
        (small.label.as_str(), same.label.as_str()),
        ("A file ‡", "A file")
    );
    assert_eq!(same.scale, None);
    let ratio = small.values[0].here.unwrap().point / same.values[0].here.unwrap().point;
    assert!((ratio - 10.0).abs() < 1e-6, "{ratio}");
    super::schema::assert_fits(&here);
    let markdown = text_of(made_of("markdown", &here, &[]));
    let latex = file_of("latex", &here, "published.tex");
    assert_says(&latex, "A file $\\ddagger$ & ");
    let figure = tare::report::svg::figures(&here).remove(0).svg;
    for form in [
        words(&brief(&here, of_width(100))),
        drawn(&here),
        page(&here),
        markdown,
        latex,
        without_tags(&figure),
    ] {
        assert_says(&form, "A file: lines = 100 here, 1000 there");
    }
}
