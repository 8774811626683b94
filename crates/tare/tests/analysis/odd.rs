//! Tests extreme runs: without a trial, with only failures, with thousands of cells. Every form reports them, nothing
//! crashes, and nothing is dropped silently.

use tare::analyze::{RunData, analyze, readings};
use tare::report::terminal::{Style, brief, draw, table};
use tare::report::{FORMATS, Material, html};
use tare_model::dossier::Dossier;
use tare_model::{Failure, Outcome};

use super::forms::assert_says;
use super::forms::{answer_of_why, assert_sound, huge, text_of};
use super::generator::find;
use super::snapshots::ordinary;

const STYLE: Style = Style {
    width: 100,
    colour: false,
};

fn empty() -> RunData {
    let mut run = ordinary().run();
    run.trials.clear();
    run
}

fn failed() -> RunData {
    let mut run = ordinary().run();
    for (number, data) in run.trials.iter_mut().enumerate() {
        data.outcome = Outcome::Failed(match number % 3 {
            0 => Failure::Killed { signal: 11 },
            1 => Failure::TimedOut { limit_ns: 1 },
            _ => Failure::Probe("<script>\u{202e}alert(1)\u{1b}[31m".to_owned()),
        });
    }
    run
}

/// Renders a dossier in every text form; returns each with its name.
fn forms(dossier: &Dossier, run: Option<&RunData>) -> Vec<(&'static str, String)> {
    let readings = run.map_or_else(Vec::new, |run| readings(run, &find));
    let made = |form: &&'static tare::report::Format| {
        let made = form.make(&Material {
            dossier,
            readings: &readings,
            fonts: &[],
            style: STYLE,
        });
        (form.name, text_of(made))
    };
    let is_text = |form: &&&'static tare::report::Format| !matches!(form.name, "png" | "parquet");
    FORMATS.iter().filter(is_text).map(made).collect()
}

#[test]
fn empty_and_all_failed_runs_render_in_every_form() {
    for run in [empty(), failed()] {
        let dossier = analyze(&run, &find);
        super::schema::assert_fits(&dossier);
        for (name, text) in forms(&dossier, Some(&run)) {
            // One line for each reading, and there are none.
            assert!(name == "jsonl" || text.len() > 20, "{name}: {text}");
            let is_steering = |it: char| it.is_control() && it != '\n' && it != '\t';
            assert!(!text.chars().any(is_steering), "{name}: {text:?}");
            let is_turning = |it: char| ('\u{202a}'..='\u{202e}').contains(&it);
            assert!(name == "json" || !text.chars().any(is_turning), "{name}");
            let is_markup = ["html", "markdown", "svg"].contains(&name);
            assert!(!is_markup || !text.contains("<script>\\u"), "{name}");
            // The page's own script contains the word `NaN`.
            let shown = text.split("<script>").next().unwrap();
            assert!(!shown.contains("NaN"), "{name}: {shown}");
        }
        let page = html::page(&dossier);
        assert_sound(&page);
        assert!(dossier.cells.iter().all(|cell| cell.ratio.is_none()));
    }
    // The failure is reported with its reason, and not only as a lack of blocks.
    let page = html::page(&analyze(&failed(), &find));
    assert_says(&page, "signal 11");
}

#[test]
fn foreign_trials_are_counted_and_break_no_form() {
    let mut run = ordinary().run();
    let n_workloads = u32::try_from(run.head.study.workloads.len()).unwrap();
    assert!(n_workloads > 1);
    for (number, data) in run.trials.iter_mut().enumerate() {
        let trial = &mut data.trial;
        match number % 6 {
            0 => trial.workload_index = (trial.workload_index + 1) % n_workloads,
            1 => trial.workload_index = u32::MAX,
            2 => trial.block = u32::MAX - trial.block,
            3 => trial.cell.instances = 0,
            4 => (trial.position, trial.launch) = (u32::MAX, u32::MAX),
            _ => {}
        }
    }
    let dossier = analyze(&run, &find);
    let shown = |reason: &str| -> usize {
        let all = dossier.failures.iter();
        let shown = all.filter(|it| it.reason.contains(reason));
        shown.map(|it| it.trials as usize).sum()
    };
    let of = |kinds: &[usize]| {
        (0..run.trials.len())
            .filter(|it| kinds.contains(&(it % 6)))
            .count()
    };
    assert_eq!(shown("no such workload in its place"), of(&[0, 1]));
    assert_eq!(shown("no plan has such a place"), of(&[2, 4]));
    for (name, text) in forms(&dossier, Some(&run)) {
        assert!(name == "jsonl" || text.len() > 20, "{name}: {text}");
    }
}

#[test]
fn five_thousand_cells_are_all_there_in_every_form() {
    let dossier = huge(5_000, 1);
    let last = "size=4999";
    for (name, text) in forms(&dossier, None) {
        match name {
            // These contain only readings, of which there are none here.
            "csv" | "jsonl" => {}
            // One screen, however much there is.
            "table" => assert!(text.lines().count() <= 24, "{text}"),
            "latex" => assert!(text.contains("4999"), "{name}"),
            "json" => assert!(text.contains("\"size\": 4999"), "{name}"),
            _ => assert!(text.contains(last), "{name}"),
        }
    }
    let page = html::page(&dossier);
    assert!(page.contains(last));
}

#[test]
fn twenty_columns_are_filled_and_never_overrun() {
    let dossiers = [
        analyze(&ordinary().run(), &find),
        analyze(&empty(), &find),
        analyze(&failed(), &find),
        answer_of_why(),
        super::publication::dossier(),
        super::concurrency::with_series(),
    ];
    let mut overrun = Vec::new();
    for (number, dossier) in dossiers.iter().enumerate() {
        for width in [20, 27, 33, 40] {
            let style = Style { width, ..STYLE };
            for (name, form) in [
                ("brief", brief as fn(&Dossier, Style) -> String),
                ("full", table),
            ] {
                let text = draw(dossier, style, form);
                assert!(!text.is_empty());
                for line in text.lines() {
                    if line.chars().count() > width {
                        overrun.push(format!("{number} {name} {width}: {line:?}"));
                    }
                }
            }
        }
    }
    assert!(
        overrun.is_empty(),
        "{}",
        overrun.join(
            "
"
        )
    );
}
