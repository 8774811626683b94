//! The headline of an arm: which metrics are slower, faster, within their margin, or inconclusive.
//!
//! Every format prints the same headline. A slowdown is named only if it survives the correction for the arm's
//! metrics; "no overhead" is claimed only if every metric is decided. Largest first, primary metrics only.

use tare_model::dossier::{Dossier, DossierArm, DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_stats::Verdict;

use tare_core::analyze::checklist::{alarms_allowed, false_alarms};
use tare_core::analyze::{FEWEST_BLOCKS, counted};

use super::groups::{Group, primary};
use super::number::{scale_for, significant, with_unit};
use super::words::{self, Names, TooFew};
use tare_core::foreign::{NO_BREAK, harmless};

/// The number of differences named; the rest are counted.
const NAMED: usize = 3;
/// Returns the headline of an arm: `docker: 2.6× slower at TCP throughput, 16 % at syscalls; 2 of 5 metrics within
/// their margin.`
pub(crate) fn summary(arm: &str, cells: &[&DossierCell], names: &Names<'_>) -> String {
    let decided: Vec<(&DossierCell, Span)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.ratio?)))
        .collect();
    if decided.is_empty() {
        return undecided(arm, cells);
    }
    let with = |wanted: Group| -> Vec<(&DossierCell, Span)> {
        let mut found: Vec<_> = decided.clone();
        found.retain(|(cell, _)| Group::for_cell(cell) == wanted);
        let size = |span: &Span| span.point.ln().abs();
        found.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
        found
    };
    // Start-up happens once: the time it adds is informative, its ratio to the start of a process is not.
    let (starts, slower): (Vec<_>, Vec<_>) = with(Group::More)
        .into_iter()
        .partition(|(cell, _)| words::is_start(cell));
    let start = starts
        .iter()
        .filter_map(|(cell, _)| Some(cell.difference?.point))
        .max_by(f64::total_cmp);
    let [faster, within, alone, open] =
        [Group::Less, Group::Nothing, Group::ByItself, Group::Open].map(with);
    // Neither an inconclusive metric nor an unmeasured one supports "no overhead".
    let is_all_decided = open.is_empty() && alone.is_empty() && decided.len() == cells.len();
    let mut clauses = vec![if !slower.is_empty() {
        named(&slower, cells, names)
    } else if is_all_decided && start.is_some() {
        "no overhead after start-up".to_owned()
    } else if is_all_decided {
        "no overhead".to_owned()
    } else {
        "no overhead shown".to_owned()
    }];
    if let Some(ns) = start {
        let added = short_difference(ns);
        clauses.push(format!("each start adds {}", added.trim_start_matches('+')));
    }
    if !faster.is_empty() {
        clauses.push(named(&faster, cells, names));
    }
    let is_nothing_shown = slower.is_empty() && faster.is_empty();
    clauses.extend(within_margin(&decided, &within, is_nothing_shown));
    if !alone.is_empty() {
        clauses.push(format!(
            "{} of {} not significant after correction",
            alone.len(),
            decided.len()
        ));
    }
    clauses.extend(inconclusive(&decided, &open, is_nothing_shown, names));
    clauses.extend(without_ratio(cells));
    clauses.extend(TooFew::check(cells).map(|few| few.clause()));
    let mut text = format!("{}: {}.", harmless(arm), clauses.join("; "));
    if cells.iter().any(|cell| words::is_flagged(cell, "emulated")) {
        text.push_str(
            " EMULATED: software imitates the processor or the system; this is not the environment's overhead.",
        );
    }
    text
}

/// Lists the largest of these differences; primary metrics first, the others are counted.
fn named(found: &[(&DossierCell, Span)], all: &[&DossierCell], names: &Names<'_>) -> String {
    let primary = primary(all);
    let is_primary = |cell: &DossierCell| primary.iter().any(|other| std::ptr::eq(*other, cell));
    let (mut chosen, others): (Vec<_>, Vec<_>) = found
        .iter()
        .copied()
        .partition(|(cell, _)| is_primary(cell));
    if chosen.is_empty() {
        chosen = others;
    }
    // Naming the last one is as short as counting it.
    if chosen.len() > NAMED + 1 {
        chosen.truncate(NAMED);
    }
    let mut verb = "";
    let mut shown: Vec<String> = Vec::new();
    for (cell, ratio) in &chosen {
        let (size, now) = changed(cell, ratio, |span| span.point);
        let phrase = names.phrase(cell);
        shown.push(if now == verb {
            format!("{size} at {phrase}")
        } else if words::is_amount(cell) {
            format!("{size} {now} {phrase}")
        } else {
            format!("{size} {now} at {phrase}")
        });
        if !words::is_amount(cell) {
            verb = now;
        }
    }
    let rest = found.len() - chosen.len();
    if rest > 0 {
        shown.push(format!("{rest} more"));
    }
    listed(&shown)
}

/// Counts the metrics without a ratio, with the reason.
fn without_ratio(cells: &[&DossierCell]) -> Option<String> {
    let missing = cells.iter().filter(|cell| cell.ratio.is_none());
    let is_short = |cell: &&DossierCell| words::short_verdict(cell) == words::TOO_FEW;
    let (short, other): (Vec<&DossierCell>, Vec<&DossierCell>) =
        missing.copied().partition(is_short);
    let shown = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
    let parts = [
        shown(other.len(), "not measured"),
        shown(short.len(), "with too few blocks"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The headline of an arm without any interval.
fn undecided(arm: &str, cells: &[&DossierCell]) -> String {
    let arm = harmless(arm);
    match cells.iter().map(|cell| cell.n_blocks).max() {
        Some(n) if (1..FEWEST_BLOCKS).contains(&(n as usize)) => format!(
            "{arm}: inconclusive: {}, and an interval needs {FEWEST_BLOCKS}.",
            counted(n as usize, "block")
        ),
        _ => format!("{arm}: nothing could be compared; each metric has its reason."),
    }
}

/// Counts the metrics within their margin, with the largest possible slowdown.
fn within_margin(
    all: &[(&DossierCell, Span)],
    within: &[(&DossierCell, Span)],
    is_nothing_shown: bool,
) -> Option<String> {
    let ratios = within.iter().filter(|(cell, _)| !words::is_start(cell));
    let most = ratios.map(|(_, ratio)| ratio.high);
    let most = 100.0 * (most.fold(1.0, f64::max) - 1.0);
    let most = match most {
        _ if !is_nothing_shown => String::new(),
        ..0.05 => format!(" (below 0.1{NO_BREAK}%)"),
        _ => format!(" (at most {most:.1}{NO_BREAK}%)"),
    };
    (!within.is_empty()).then(|| {
        format!(
            "{} of {} within the margin{most}",
            within.len(),
            counted(all.len(), "metric")
        )
    })
}

/// Counts the inconclusive metrics; with the ends of the widest interval if nothing else is known.
fn inconclusive(
    all: &[(&DossierCell, Span)],
    open: &[(&DossierCell, Span)],
    is_nothing_shown: bool,
    names: &Names<'_>,
) -> Option<String> {
    let width = |ratio: &Span| ratio.high.ln() - ratio.low.ln();
    let widest = open
        .iter()
        .max_by(|(_, one), (_, other)| width(one).total_cmp(&width(other)));
    let (cell, ratio) = widest?;
    if !is_nothing_shown {
        return Some(format!("{} inconclusive", open.len()));
    }
    let count = format!("{} of {} inconclusive", open.len(), all.len());
    let end = |of: fn(&Span) -> f64| {
        let (size, verb) = changed(cell, ratio, of);
        format!("{size} {verb}")
    };
    let (low, high) = (end(|span| span.low), end(|span| span.high));
    Some(format!(
        "{count} (widest: {}, between {low} and {high})",
        names.phrase(cell)
    ))
}

fn base_name(dossier: &Dossier) -> String {
    harmless(words::baseline(dossier).map_or("the baseline", |arm| arm.id.as_str()))
}

/// The A/A control in words: how often the baseline differed from itself.
pub(crate) fn trust(dossier: &Dossier) -> String {
    let baseline = base_name(dossier);
    let compared: Vec<&DossierCell> = dossier
        .aa
        .iter()
        .filter(|cell| cell.ratio.is_some())
        .collect();
    let name = format!("A/A control A′ ({baseline} against itself)");
    let is_control = |arm: &DossierArm| arm.id == A_PRIME;
    if !dossier.arms.iter().any(is_control) {
        return "No A/A control in this run: false positives were not counted.".to_owned();
    }
    if compared.is_empty() {
        return format!("{name}: too few blocks to count false positives.");
    }
    let is = |word: Verdict| move |cell: &&&DossierCell| cell.verdict == word;
    let equal = compared.iter().filter(is(Verdict::Equivalent)).count();
    let open = compared.iter().filter(is(Verdict::Inconclusive)).count();
    let alarms = false_alarms(dossier);
    let n = compared.len();
    let metrics = counted(n, "metric");
    let shown = match (equal, open) {
        (0, 1..) => {
            format!("none shown equal, {open} inconclusive: more blocks or a quieter machine help")
        }
        (_, 0) => format!("{equal} shown equal"),
        _ => format!("{equal} shown equal, {open} inconclusive"),
    };
    if alarms == 0 {
        return format!("{name}: no false positive in {metrics}; {shown}.");
    }
    let text = format!(
        "{name}: {} in {metrics}, {}",
        counted(alarms, "false positive"),
        largest(&compared, &Names::new(dossier))
    );
    let allowed = alarms_allowed(&compared);
    if alarms > allowed {
        format!(
            "{text}; {shown}. Chance alone gives at most {allowed}: DO NOT TRUST THE VERDICTS BELOW."
        )
    } else {
        format!("{text}; chance gives up to {allowed}, so the check passes. Others: {shown}.")
    }
}

/// The A/A control in a line, unless it says that the run cannot be trusted.
pub(crate) fn trust_in_short(dossier: &Dossier) -> String {
    let with_ratio = dossier.aa.iter().filter(|cell| cell.ratio.is_some());
    let compared: Vec<&DossierCell> = with_ratio.collect();
    let (alarms, allowed) = (false_alarms(dossier), alarms_allowed(&compared));
    let is_any_equal = compared.iter().any(|it| it.verdict == Verdict::Equivalent);
    if alarms > allowed || !is_any_equal {
        return trust(dossier);
    }
    format!(
        "A/A control ({}): {} in {}; chance gives up to {allowed}.",
        base_name(dossier),
        match alarms {
            0 => "no false positive".to_owned(),
            _ => counted(alarms, "false positive"),
        },
        counted(compared.len(), "metric"),
    )
}

/// The size of the false positives among these, and the metrics of the largest three.
fn largest(compared: &[&DossierCell], names: &Names<'_>) -> String {
    let alarms = compared.iter().filter(|cell| cell.verdict.is_difference());
    let mut alarms: Vec<(Span, &DossierCell)> = alarms
        .filter_map(|cell| Some((cell.ratio?, *cell)))
        .collect();
    // Start-up is last: its size is not a percentage.
    let order =
        |(ratio, cell): &(Span, &DossierCell)| (words::is_start(cell), -ratio.point.ln().abs());
    alarms.sort_by(|one, other| {
        let ((one, size), (other, of_other)) = (order(one), order(other));
        one.cmp(&other).then(size.total_cmp(&of_other))
    });
    let most = alarms
        .first()
        .map(|(ratio, cell)| changed(cell, ratio, |span| span.point).0)
        .unwrap_or_default();
    let mut shown: Vec<String> = alarms
        .iter()
        .take(3)
        .map(|(_, cell)| names.phrase(cell))
        .collect();
    if alarms.len() > shown.len() {
        shown.push("…".to_owned());
    }
    format!("at most {most} ({})", shown.join(", "))
}

/// Joins parts as `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the size and direction of a cell's change: `("16 %", "slower")`, `("2.6×", "slower")`, for a start `("14
/// ms", "faster")`.
fn changed(cell: &DossierCell, ratio: &Span, of: fn(&Span) -> f64) -> (String, &'static str) {
    if let (true, Some(difference)) = (words::is_start(cell), &cell.difference) {
        let ns = of(difference);
        let size = short_difference(ns.abs());
        let verb = words::direction(cell, ns > 0.0);
        return (size.trim_start_matches('+').to_owned(), verb);
    }
    let verb = words::direction(cell, of(ratio) > 1.0);
    (words::size(of(ratio)), verb)
}

/// Formats a time difference with two digits: `+47 ns`.
fn short_difference(ns: f64) -> String {
    let scale = scale_for(ns, "ns");
    let size = ns / scale.factor;
    with_unit(&format!("{size:+.*}", significant(size.abs(), 2)), scale)
}
