//! Prints what follows the tables: missing measurements, unequal conditions, remarks, time used and scope.
//!
//! Each with its reason and, if there is one, the command that would help. Empty sections are omitted, except the
//! last two: a report always states time used and scope.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tare_model::dossier::{CheckItem, Dossier, DossierCell, DossierFinding};
use tare_model::fact;
use tare_model::{CheckResult, Status, StoppedBy};

use super::Style;
use super::remedy::remedy;
use super::text::{Paint, bold, painted, paragraph, width};
use super::why::share_text;
use crate::groups::Group;
use crate::method::not_as_planned;
use crate::{failures, words};
use tare_core::analyze::counted;
use tare_core::foreign::harmless;

/// Placeholder for the arm's name in texts that several arms share.
const ARMS: &str = "\u{0}";

/// Draws everything below the tables.
pub(super) fn draw(out: &mut String, dossier: &Dossier, style: Style) {
    missing(out, dossier, style);
    write_findings(out, &dossier.findings, dossier, style);
    unequal(out, dossier, style);
    remarks(out, dossier, style);
    scope(out, dossier, style);
}

/// Draws what a short table needs as well: deviations, missing measurements, causes, unequal resources, and where the
/// rest is.
pub(super) fn draw_brief(out: &mut String, dossier: &Dossier, style: Style) {
    deviations(out, dossier, style);
    if dossier.cells.is_empty() {
        missing(out, dossier, style);
    } else {
        missing_in_short(out, dossier, style);
    }
    let is_tried = |finding: &&DossierFinding| finding.tried.is_some();
    let (tried, suspected): (Vec<_>, Vec<_>) = dossier.findings.iter().partition(is_tried);
    write_findings(out, tried, dossier, style);
    let mut causes: Vec<String> = Vec::new();
    for finding in &suspected {
        let cause = harmless(&finding.cause);
        if !causes.contains(&cause) && finding.status != Status::Refuted {
            causes.push(cause);
        }
    }
    let prefix = "Suspected (`tare run --prove 60s` tests): ";
    one_line(out, prefix, &causes, style);
    not_equal(out, dossier, style);
    let is_narrow = |cell: &DossierCell| {
        Group::for_cell(cell) == Group::Open || cell.ratio.is_none() && cell.n_blocks > 0
    };
    let narrower = if dossier.cells.iter().any(is_narrow) {
        " · narrower: `tare resume RUN`"
    } else {
        ""
    };
    let text = format!("Details: `tare show {}`{narrower}", dossier.run);
    paragraph(out, "", &text, style);
}

/// Writes as many of these names as fit in a line, at least one, and counts the others.
fn one_line(out: &mut String, prefix: &str, names: &[String], style: Style) {
    let Some((first, others)) = names.split_first() else {
        return;
    };
    let mut text = format!("{prefix}{first}");
    for (place, name) in others.iter().enumerate() {
        let left = others.len() - place;
        let longer = format!("{text}, {name}");
        let room = if left > 1 {
            style.width.saturating_sub(", 99 more".len())
        } else {
            style.width
        };
        if width(&longer) > room {
            let _ = write!(text, ", {left} more");
            break;
        }
        text = longer;
    }
    paragraph(out, "", &text, style);
}

/// Writes what is missing in a line; `tare show` has the reasons.
fn missing_in_short(out: &mut String, dossier: &Dossier, style: Style) {
    let mut names: Vec<String> = Vec::new();
    for failure in &dossier.failures {
        let arm = words::called(&failure.arm);
        let name = harmless(&match &failure.workload {
            Some(workload) => format!("{workload} in {arm}"),
            None => arm.to_owned(),
        });
        if !names.contains(&name) {
            names.push(name);
        }
    }
    one_line(out, "Not measured: ", &names, style);
}

pub(super) fn heading(out: &mut String, text: &str, style: Style) {
    out.push('\n');
    bold(out, text, style);
}

fn missing(out: &mut String, dossier: &Dossier, style: Style) {
    if dossier.failures.is_empty() {
        return;
    }
    heading(out, "Not measured", style);
    for failure in failures::summarized(&dossier.failures) {
        paragraph(out, "  ", &failure.text, style);
        if let Some(hint) = failure.hint {
            paragraph(out, "    hint: ", hint, style);
        }
    }
}

/// The maximum number of causes shown; the dossier has all.
const MOST_FINDINGS: usize = 5;

/// Writes these findings with status, advice and price.
fn write_findings<'a>(
    out: &mut String,
    findings: impl IntoIterator<Item = &'a DossierFinding>,
    dossier: &Dossier,
    style: Style,
) {
    // A cause of several arms is printed once, with the numbers of the first.
    let mut shown: Vec<(&DossierFinding, Vec<String>)> = Vec::new();
    for finding in findings {
        let arm = arm_of(finding, dossier);
        match shown
            .iter_mut()
            .find(|(first, _)| first.cause == finding.cause)
        {
            Some((first, arms)) if first.status == finding.status => {
                arms.extend(arm.map(str::to_owned));
            }
            Some((_, arms)) => {
                arms.extend(arm.map(|arm| format!("{arm}, but {}", finding.status)));
            }
            None => shown.push((finding, arm.into_iter().map(str::to_owned).collect())),
        }
    }
    if !shown.is_empty() {
        heading(out, "Why", style);
    }
    let left_out = shown.len().saturating_sub(MOST_FINDINGS);
    for (finding, arms) in shown.iter().take(MOST_FINDINGS) {
        let place = match arms.as_slice() {
            [] => String::new(),
            [one] => format!("{one}: "),
            [one, others @ ..] => {
                format!("{one} (similarly {}): ", others.join(", "))
            }
        };
        let text = format!("{place}{}", finding.claim);
        paragraph(out, "  ", &text, style);
        let status = format!("{} · {}", finding.cause, standing(finding));
        paragraph(out, "    ", &status, style);
        if finding.status == Status::Refuted {
            // A refuted cause needs no advice.
            continue;
        }
        paragraph(out, "    advice: ", &finding.advice, style);
        paragraph(out, "    price: ", &finding.price, style);
    }
    if shown.iter().any(|(finding, _)| finding.tried.is_none()) {
        let text = "`tare run … --prove 60s` switches suspected causes off where it can, and reports how much of the overhead each one causes.";
        paragraph(out, "  ", text, style);
    }
    if left_out > 0 {
        let plural = if left_out == 1 {
            "cause is"
        } else {
            "causes are"
        };
        let text = format!("{left_out} less likely {plural} in the dossier (`--json`).");
        paragraph(out, "  ", &text, style);
    }
}

fn arm_of<'a>(finding: &DossierFinding, dossier: &'a Dossier) -> Option<&'a str> {
    let place = *finding.cells.first()?;
    Some(dossier.cells.get(place as usize)?.arm.as_str())
}

/// Describes the status of a finding, with the effect of switching its cause off.
pub(crate) fn standing(finding: &DossierFinding) -> String {
    let share = finding
        .share
        .map(|share| format!(", {}", share_text(&share, "the cost")))
        .unwrap_or_default();
    let tried = match &finding.tried {
        Some(tried) => format!("; tried: {tried}"),
        None => String::new(),
    };
    let word = match finding.status {
        Status::Supported if finding.share.is_none() => {
            "supported by the evidence, not confirmed".to_owned()
        }
        Status::Untested => "possible, not tested".to_owned(),
        other => other.to_string(),
    };
    format!("{word}{share}{tried}")
}

fn not_equal(out: &mut String, dossier: &Dossier, style: Style) {
    let title = "The arms did not get the same resources";
    checked(out, dossier, CheckResult::Fail, title, style);
}

/// Writes the parity checks with this result.
fn checked(out: &mut String, dossier: &Dossier, result: CheckResult, title: &str, style: Style) {
    let arms: Vec<&str> = dossier.arms.iter().map(|arm| arm.id.as_str()).collect();
    let lines = shared(&arms, &dossier.parity, result);
    if !lines.is_empty() {
        heading(out, title, style);
        for line in lines {
            paragraph(out, "  ", &line, style);
        }
    }
}

fn unequal(out: &mut String, dossier: &Dossier, style: Style) {
    not_equal(out, dossier, style);
    let title = "What differs between the arms";
    checked(out, dossier, CheckResult::Differs, title, style);
}

/// Returns the items with this result, one line each; items that several arms share are merged.
pub(crate) fn shared(arms: &[&str], parity: &[CheckItem], result: CheckResult) -> Vec<String> {
    // Each text without the arm's name, with its arms.
    let mut lines: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for item in parity.iter().filter(|item| item.result == result) {
        // The longest match, because one arm's name can be a prefix of another's.
        let arm = arms
            .iter()
            .copied()
            .filter(|arm| {
                let rest = item.id.strip_prefix(arm);
                rest.is_some_and(|rest| rest.starts_with('.'))
            })
            .max_by_key(|arm| arm.len())
            .unwrap_or_default();
        let what = item.id[arm.len()..].trim_start_matches('.');
        let detail = item.detail.replace(&format!("`{arm}`"), ARMS);
        let same = lines
            .iter_mut()
            .find(|(known, text, _)| *known == what && *text == detail);
        match same {
            Some((.., arms)) => arms.push(arm),
            None => lines.push((what, detail, vec![arm])),
        }
    }
    lines
        .into_iter()
        .map(|(what, detail, arms)| {
            let names: Vec<String> = arms.iter().map(|arm| format!("`{arm}`")).collect();
            let detail = if detail.contains(ARMS) || arms == [""] {
                detail.replace(ARMS, &names.join(", "))
            } else {
                format!("{}: {detail}", names.join(", "))
            };
            harmless(&format!("{what}: {detail}"))
        })
        .collect()
}

/// Writes the counts of harmless flags, and the failed checklist items.
fn remarks(out: &mut String, dossier: &Dossier, style: Style) {
    let mut quiet: BTreeMap<&str, usize> = BTreeMap::new();
    for flag in dossier.cells.iter().flat_map(|cell| &cell.flags) {
        let is_shown_elsewhere = words::meaning(&flag.id).is_some()
            || matches!(
                flag.id.as_str(),
                "too-few-blocks" | "not-measured" | "no-ratio"
            );
        if !is_shown_elsewhere {
            *quiet.entry(flag.id.as_str()).or_default() += 1;
        }
    }
    let failed: Vec<_> = dossier
        .checklist
        .iter()
        .filter(|item| item.result == CheckResult::Fail)
        .collect();
    let further = dossier
        .cells
        .iter()
        .filter_map(|cell| Some((cell.further_blocks?, cell)))
        .max_by_key(|(blocks, _)| *blocks);
    if quiet.is_empty() && failed.is_empty() && further.is_none() {
        return;
    }
    heading(out, "Remarks", style);
    if let Some((blocks, cell)) = further {
        let missed = dossier
            .cells
            .iter()
            .filter(|cell| cell.further_blocks.is_some());
        let text = format!(
            "{} of {} rows are less precise than requested; the widest, {} in {}, {}",
            missed.count(),
            dossier.cells.len(),
            words::name(cell, dossier),
            cell.arm,
            remedy(cell, blocks, dossier.cost.wall_s)
        );
        paragraph(out, "  ", &text, style);
    }
    if !quiet.is_empty() {
        let message: Vec<String> = quiet
            .iter()
            .map(|(id, cells)| format!("{} in {}", id.replace('-', " "), counted(*cells, "row")))
            .collect();
        let text = format!("noted, no effect on the result: {}", message.join(", "));
        paragraph(out, "  ", &text, style);
    }
    for item in failed {
        let text = format!("checklist, {}: {}", item.id, item.detail);
        paragraph(out, "  ", &text, style);
    }
}

/// Describes how the run ended, as a clause after the number of its trials.
pub(crate) fn how_it_ended(stopped_by: StoppedBy) -> &'static str {
    match stopped_by {
        StoppedBy::Precision => "; every ratio was as precise as requested",
        StoppedBy::Blocks => "; all blocks done",
        StoppedBy::Budget => "; the time budget was used up",
        StoppedBy::Interrupted => " and was interrupted",
        StoppedBy::Failed => " and ended by a failure",
        StoppedBy::Killed => "; it was killed, or is still running",
    }
}

/// Describes which rows were measured in whole trials if others were interleaved.
pub(crate) fn by_whole_trials(dossier: &Dossier) -> Option<String> {
    if !dossier.cells.iter().any(|cell| cell.in_turn) {
        return None;
    }
    let whole = dossier
        .cells
        .iter()
        .filter(|cell| !cell.in_turn && cell.n_blocks > 0);
    let exceptions = match workloads(whole) {
        none if none.is_empty() => none,
        some => format!("; whole trials for {some}"),
    };
    Some(format!(
        "Arms were interleaved in slices of milliseconds{exceptions}."
    ))
}

/// Lists the workloads of these cells.
fn workloads<'a>(cells: impl Iterator<Item = &'a DossierCell>) -> String {
    let names: BTreeSet<&str> = cells.map(|cell| cell.workload.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Describes the share of timed work in the run.
pub(crate) fn timed_share(dossier: &Dossier) -> String {
    match dossier.cost.timed_s {
        Some(timed_s) if dossier.cost.wall_s > 0.0 => {
            let share = 100.0 * timed_s / dossier.cost.wall_s;
            format!(", {share:.0} % of it timed work,")
        }
        _ => String::new(),
    }
}

/// Writes the deviations from the plan, in red.
fn deviations(out: &mut String, dossier: &Dossier, style: Style) {
    for text in not_as_planned(dossier) {
        painted(out, Paint::Red, &text, style);
    }
}

fn scope(out: &mut String, dossier: &Dossier, style: Style) {
    out.push('\n');
    let cost = format!(
        "The run took {:.0} s{} for {}{}; order by `--seed {}`.",
        dossier.cost.wall_s,
        timed_share(dossier),
        counted(dossier.cost.trials as usize, "trial"),
        how_it_ended(dossier.stopped_by),
        dossier.study.seed
    );
    paragraph(out, "", &cost, style);
    deviations(out, dossier, style);
    if let Some(text) = by_whole_trials(dossier) {
        paragraph(out, "", &text, style);
    }
    for line in &dossier.whole_trials {
        paragraph(out, "note: ", line, style);
    }
    let fact = |name: &str, otherwise: &'static str| {
        let value = words::baseline(dossier).and_then(|arm| arm.facts.get(name));
        value.map_or(otherwise, String::as_str)
    };
    let text = format!(
        "Valid for this machine ({}), this kernel ({}) and these workloads ({}) only.",
        fact(fact::CPU_MODEL, "processor not recorded"),
        fact(fact::KERNEL_RELEASE, "release not recorded"),
        match workloads(dossier.cells.iter()) {
            none if none.is_empty() => "none".to_owned(),
            some => some,
        }
    );
    paragraph(out, "", &text, style);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_difference_prints_once_naming_all_arms() {
        let item = |id: &str, detail: &str| CheckItem {
            id: id.into(),
            result: CheckResult::Differs,
            detail: detail.into(),
        };
        let parity = [
            item("box.seccomp", "`off` in `host`, `on` in `box`: a filter"),
            item("box.kernel", "`6` in `host`, `5` in `box`: another"),
            item(
                "box-2.seccomp",
                "`off` in `host`, `on` in `box-2`: a filter",
            ),
        ];
        assert_eq!(
            shared(&["host", "box", "box-2"], &parity, CheckResult::Differs),
            [
                "seccomp: `off` in `host`, `on` in `box`, `box-2`: a filter",
                "kernel: `6` in `host`, `5` in `box`: another"
            ]
        );
        assert!(shared(&["host", "box"], &parity, CheckResult::Fail).is_empty());
    }
}
