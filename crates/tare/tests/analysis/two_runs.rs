//! Tests the comparison of two runs: what is the same, what differs, what only one of them has.

use tare::analyze::analyze;
use tare::analyze::run_comparison::{Row, beside};
use tare::report::html;
use tare::report::terminal::{Called, two_runs as drawn};
use tare_model::Verdict;
use tare_model::dossier::{Dossier, Flag};

use super::forms::assert_says;
use super::generator::{Effect, Plan, find, of_width};

fn plan(seed: u64) -> Plan {
    Plan::default()
        .seed(seed)
        .workloads(["integer", "syscall", "files", "stream"])
        .trial_noise(0.004)
        .with("box", "syscall.getppid.time", Effect::Times(1.5))
        .with("box", "net.tcp.throughput", Effect::Times(1.3))
}

fn row<'a>(rows: &'a [Row<'a>], metric: &str) -> &'a Row<'a> {
    let mut rows = rows.iter();
    rows.find(|row| row.second.metric == metric).unwrap()
}

#[test]
fn equal_costs_match_and_grown_cost_shows_factor() {
    let first = plan(1).dossier();
    let second = plan(2)
        .with("box", "syscall.getppid.time", Effect::Times(1.8))
        .with("box", "net.tcp.throughput", Effect::Times(1.1))
        .dossier();
    let set = beside(&first, &second);
    assert_eq!(set.rows.len(), second.cells.len());
    assert!(set.only_first.is_empty() && set.only_second.is_empty());
    let grown = row(&set.rows, "syscall.getppid.time");
    assert_eq!(grown.verdict, Verdict::MaterialCost);
    let quotient = grown.quotient.unwrap();
    assert!(quotient.low < 1.2 && 1.2 < quotient.high, "{quotient:?}");
    // A rate that drops less means a smaller overhead.
    let shrunk = row(&set.rows, "net.tcp.throughput");
    assert_eq!(shrunk.verdict, Verdict::MaterialGain);
    let same = row(&set.rows, "cpu.integer.time");
    assert!(!same.verdict.is_difference(), "{same:?}");
    // Wider than either alone: both are uncertain.
    let width = |span: tare_model::dossier::Span| (span.high / span.low).ln();
    let own = [same.first, same.second].map(|cell| width(cell.ratio.unwrap()));
    assert!(width(same.quotient.unwrap()) > own[0].max(own[1]));
}

#[test]
fn twice_as_fast_machine_finds_same_costs() {
    let first = plan(1).dossier();
    let mut faster = plan(2);
    for metric in [
        "cpu.integer.time",
        "syscall.getppid.time",
        "disk.fsync.time",
    ] {
        let own = faster.effects.get(&("box", metric)).copied();
        let own = match own {
            Some(Effect::Times(factor)) => factor,
            _ => 1.0,
        };
        for arm in ["host", "a-prime"] {
            faster = faster.with(arm, metric, Effect::Times(0.5));
        }
        faster = faster.with("box", metric, Effect::Times(0.5 * own));
    }
    let second = faster.dossier();
    let set = beside(&first, &second);
    for metric in ["cpu.integer.time", "syscall.getppid.time"] {
        let row = row(&set.rows, metric);
        assert!(!row.verdict.is_difference(), "{row:?}");
        let [slow, fast] = [row.first, row.second].map(|cell| cell.base.unwrap().point);
        assert!((slow / fast - 2.0).abs() < 0.1, "{slow} {fast}");
    }
}

/// Renders two runs in every form, none of which may fail or be too wide.
fn rendered(first: &Dossier, second: &Dossier) -> String {
    for width in [1, 20, 40, 80, 140] {
        for called in [Called::HERE, Called::A_AND_B] {
            let text = drawn(first, second, called, of_width(width));
            for line in text.lines() {
                assert!(line.chars().count() <= width.max(20), "{width}: {line:?}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
    html::compared(first, second)
}

#[test]
fn unmatched_cells_listed_and_no_ratio_no_quotient() {
    let first = plan(1).dossier();
    let mut second = plan(2)
        .workloads(["integer", "syscall"])
        .blocks(2)
        .dossier();
    second.cells[0].revision += 1;
    let set = beside(&first, &second);
    // Another revision of the timed work is another question.
    assert_eq!((set.rows.len(), set.only_second.len()), (1, 1));
    assert_eq!(set.only_first.len(), first.cells.len() - 1);
    assert_eq!(
        (set.rows[0].quotient, set.rows[0].verdict),
        (None, Verdict::Inconclusive)
    );
    let page = rendered(&first, &second);
    assert_says(&page, "no ratio");
    let mut odd = plan(3).dossier();
    for (cell, value) in odd
        .cells
        .iter_mut()
        .zip([0.0, -1.0, f64::INFINITY, f64::NAN, 1e300])
    {
        let span = cell.ratio.as_mut().unwrap();
        (span.low, span.point, span.high) = (value, value, value);
    }
    let set = beside(&first, &odd);
    assert!(set.rows[..4].iter().all(|row| row.quotient.is_none()));
    rendered(&first, &odd);
    rendered(&odd, &first);
    let hostile = analyze(&super::snapshots::hostile(), &find);
    rendered(&first, &hostile);
    rendered(&hostile, &hostile);
}

#[test]
fn cell_flags_qualify_row_and_drift_is_inconclusive() {
    let first = plan(1).dossier();
    let mut second = plan(2).dossier();
    let same = |second: &Dossier| {
        let set = beside(&first, second);
        row(&set.rows, "cpu.integer.time").verdict
    };
    assert_eq!(same(&second), Verdict::Equivalent);
    let integer = second.cells.iter_mut();
    let integer = integer.filter(|cell| cell.metric == "cpu.integer.time");
    for cell in integer {
        for id in [
            "drifting-effect",
            "one-launch",
            "different-tool",
            "emulated",
        ] {
            cell.flags.push(Flag {
                id: id.to_owned(),
                detail: String::new(),
            });
        }
    }
    assert_eq!(same(&second), Verdict::Inconclusive);
    let text = drawn(&first, &second, Called::HERE, of_width(200));
    let page = html::compared(&first, &second);
    for told in [text, page] {
        assert_says(
            &told,
            "inconclusive, emulated, different tool, drifting, one start",
        );
    }
    // Either of the two is enough.
    assert_eq!(
        beside(&second, &first)
            .rows
            .iter()
            .filter(|row| row.qualifications().count() > 0)
            .count(),
        1
    );
}
