//! Tests the comparison of each two arms from the same blocks: as if one of them were the baseline, and in every form
//! of report.

use tare::analyze::{RunData, analyze};
use tare::report::terminal::{brief, table};
use tare_model::dossier::DossierCell;
use tare_model::study::A_PRIME;

use super::forms::assert_says;
use super::forms::{file_of, made_of, text_of};
use super::generator::{Effect, Plan, find, of_width};
use super::schema::assert_fits;

/// Four arms: `volume` is 20 % slower than `layer`, and `bind` equals `volume`.
fn plan() -> Plan {
    Plan::default()
        .workloads(["integer", "files", "stream"])
        .arms(["layer", "volume", "bind"])
        .trial_noise(0.004)
        .with("layer", "disk.fsync.time", Effect::Times(1.5))
        .with("volume", "disk.fsync.time", Effect::Times(1.8))
        .with("bind", "disk.fsync.time", Effect::Times(1.8))
}

fn with_pairs(plan: &Plan) -> RunData {
    let mut run = plan.run();
    run.head.study.pairs = true;
    run
}

/// Returns the run with another baseline and without A′, as if planned that way.
fn against(mut run: RunData, arm: &str) -> RunData {
    let study = &mut run.head.study;
    study.pairs = false;
    study.arms.retain(|spec| spec.id.as_str() != A_PRIME);
    let place = study.arms.iter().position(|spec| spec.id.as_str() == arm);
    let baseline = study.arms.remove(place.unwrap());
    study.baseline = baseline.id.clone();
    study.arms.insert(0, baseline);
    run.head.arms.retain(|arm| arm.spec.id.as_str() != A_PRIME);
    let is_copy = |arm: &str| arm == A_PRIME;
    run.trials
        .retain(|data| !is_copy(data.trial.cell.arm.as_str()));
    run
}

#[test]
fn pairs_compare_as_if_first_were_baseline() {
    let dossier = analyze(&with_pairs(&plan()), &find);
    let sides: Vec<(&str, &str)> = dossier
        .pairs
        .iter()
        .filter(|cell| cell.metric == "disk.fsync.time")
        .map(|cell| (cell.arm.as_str(), cell.baseline.as_str()))
        .collect();
    assert_eq!(
        sides,
        [("volume", "layer"), ("bind", "layer"), ("bind", "volume")]
    );
    for baseline in ["layer", "volume"] {
        let turned = analyze(&against(with_pairs(&plan()), baseline), &find);
        for cell in dossier.pairs.iter().filter(|it| it.baseline == baseline) {
            let is_same =
                |other: &&DossierCell| other.arm == cell.arm && other.metric == cell.metric;
            let mut same = turned.cells.iter().find(is_same).unwrap().clone();
            assert_eq!(same.blocks.len(), 20);
            same.blocks.clear();
            assert_eq!(*cell, same);
        }
    }
    let of = |arm: &str, first: &str| {
        let mut cells = dossier.pairs.iter();
        let is = |cell: &&DossierCell| {
            cell.arm == arm && cell.baseline == first && cell.metric == "disk.fsync.time"
        };
        cells.find(is).unwrap().clone()
    };
    let ratio = of("volume", "layer").ratio.unwrap();
    assert!(
        ratio.low < 1.2 && 1.2 < ratio.high && ratio.low > 1.15,
        "{ratio:?}"
    );
    assert!(of("volume", "layer").verdict.is_cost());
    assert!(!of("bind", "volume").verdict.is_difference());
    assert_fits(&dossier);
}

#[test]
fn pairs_shown_only_on_request_without_missing_arm() {
    let dossier = analyze(&plan().run(), &find);
    assert!(dossier.pairs.is_empty());
    assert!(!brief(&dossier, of_width(100)).contains("Each two"));
    let mut run = with_pairs(&plan());
    for arm in &mut run.head.arms {
        arm.available = arm.spec.id.as_str() != "layer";
    }
    let dossier = analyze(&run, &find);
    assert!(dossier.pairs.iter().all(|cell| cell.baseline == "volume"));
    assert!(!dossier.pairs.is_empty());
}

#[test]
fn reader_forms_show_each_pair_with_interval() {
    let dossier = analyze(&with_pairs(&plan()), &find);
    let fsync = |cell: &&DossierCell| cell.metric == "disk.fsync.time";
    let ratio = dossier.pairs.iter().find(fsync).unwrap();
    let ratio = ratio.ratio.unwrap().point;
    for width in [20, 40, 80, 140] {
        let style = of_width(width);
        for drawn in [brief(&dossier, style), table(&dossier, style)] {
            let shown = &drawn[drawn.find("Pairwise").unwrap()..];
            assert_says(shown, "fsync");
            let shown: String = shown.split_whitespace().collect();
            assert!(shown.contains(&format!("{ratio:.3}[")), "{width}: {shown}");
        }
        for line in brief(&dossier, style).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    for name in ["html", "markdown", "latex"] {
        let text = match name {
            "latex" => file_of(name, &dossier, "costs.tex"),
            _ => text_of(made_of(name, &dossier, &[])),
        };
        let shown = &text[text.find("Pairwise").unwrap()..];
        assert!(shown.contains("volume against layer"), "{name}");
        assert!(shown.contains("bind against volume"), "{name}");
    }
}
