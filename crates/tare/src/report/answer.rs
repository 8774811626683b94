//! The answer of an arm in a few lines, as a person would say it: what costs, what costs nothing, what is open.
//!
//! Named as a cost is only what the correction for the arm's metrics holds up; that nothing costs is only said where every
//! metric is decided. Above the table, for arms with more rows than one takes in at a glance, and what the baseline's second copy says of
//! all of it. Largest first; differences as the reader meets them, so that a rate is so much less and a time so much more.
//! What it cannot see: which of the metrics matters to the reader.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tare_model::Better;
use tare_model::dossier::{Dossier, DossierArm, DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_stats::Verdict;

use crate::analyze::FEWEST_BLOCKS;
use crate::analyze::checklist::{alarms_allowed, false_alarms};

use super::foreign::{NO_BREAK, harmless};
use super::groups::Group;
use super::number::{percent, scale_for, significant, with_unit};
use super::words::{self, Names, TooFew};

/// An arm with fewer rows needs no summary.
const FEW: usize = 5;
/// How many differences are named; the others are counted.
const NAMED: usize = 5;
/// What the metrics of starting and removing an environment begin with.
const STARTING: &str = "start-up.";
/// How many metrics without a difference are named.
const EXAMPLES: usize = 3;

/// The answer of an arm with these cells; `None` where the table says it as quickly.
pub(in crate::report) fn of_arm(
    arm: &str,
    cells: &[&DossierCell],
    names: &Names<'_>,
) -> Option<String> {
    is_told(cells).then(|| summary(arm, cells, names))
}

/// Whether an arm with these cells has an answer above its table.
pub(in crate::report) fn is_told(cells: &[&DossierCell]) -> bool {
    let decided = cells.iter().filter(|cell| cell.ratio.is_some()).count();
    // That nothing was decided is an answer too.
    decided >= FEW || decided == 0 && !cells.is_empty()
}

/// The answer of an arm, however few its cells are.
pub(in crate::report) fn summary(arm: &str, cells: &[&DossierCell], names: &Names<'_>) -> String {
    let decided: Vec<(&DossierCell, Span)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.ratio?)))
        .collect();
    if decided.is_empty() {
        return undecided(arm, cells);
    }
    let with = |wanted: Group| -> Vec<(&DossierCell, Span)> {
        let mut found: Vec<_> = decided.clone();
        found.retain(|(cell, _)| Group::of(cell) == wanted);
        let size = |span: &Span| span.point.ln().abs();
        found.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
        found
    };
    // A start is paid once, whatever is done inside: how many times a process's it takes says nothing to anybody.
    let (starts, costs): (Vec<_>, Vec<_>) = with(Group::More)
        .into_iter()
        .partition(|(cell, _)| cell.metric.starts_with(STARTING) && cell.unit == "ns");
    let start = starts
        .iter()
        .filter_map(|(cell, _)| Some((*cell, cell.difference?.point)));
    let start = start.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let [gains, within, alone, open] =
        [Group::Less, Group::Nothing, Group::ByItself, Group::Open].map(with);
    let arm = harmless(arm);
    // What is open is no absence of costs, and neither is what was not measured.
    let is_all_decided = open.is_empty() && alone.is_empty() && decided.len() == cells.len();
    let mut sentences = vec![if !costs.is_empty() {
        format!("{arm} costs: {}.", named(&costs, names))
    } else if is_all_decided && start.is_some() {
        format!("{arm} costs nothing beside its start that this run could see.")
    } else if is_all_decided {
        format!("{arm} costs nothing that this run could see.")
    } else {
        format!("{arm}: no cost is shown.")
    }];
    if let Some((cell, ns)) = start {
        let added = short_difference(ns);
        let added = added.trim_start_matches('+');
        sentences.push(format!("Each start adds {added} ({}).", names.phrase(cell)));
    }
    if !gains.is_empty() {
        sentences.push(format!("Cheaper: {}.", named(&gains, names)));
    }
    sentences.extend(without_difference(&decided, &within, names));
    sentences.extend(by_themselves(&decided, &alone, names));
    sentences.extend(left_open(&decided, &open, names));
    sentences.extend(without_ratio(cells, names));
    sentences.extend(TooFew::of(cells).map(|few| few.sentence()));
    let is_emulated = |cell: &&DossierCell| cell.flags.iter().any(|flag| flag.id == "emulated");
    if cells.iter().any(is_emulated) {
        sentences.push(
            "EMULATED: software imitates its processor or its system; this is not what the environment costs."
                .to_owned(),
        );
    }
    sentences.join(" ")
}

/// The largest of these differences with their sizes; the others are counted.
fn named(found: &[(&DossierCell, Span)], names: &Names<'_>) -> String {
    // To name the last one is as short as to count it.
    let n_named = if found.len() > NAMED + 1 {
        NAMED
    } else {
        found.len()
    };
    let mut told: Vec<String> = found
        .iter()
        .take(n_named)
        .map(|(cell, ratio)| by(&names.phrase_of_row(cell), cell, *ratio))
        .collect();
    if found.len() > n_named {
        told.push(format!("{} others", found.len() - n_named));
    }
    listed(&told)
}

/// Which metrics have no ratio: some for want of blocks, the others for the reasons that stand beside them.
fn without_ratio(cells: &[&DossierCell], names: &Names<'_>) -> Option<String> {
    let missing = cells.iter().copied().filter(|cell| cell.ratio.is_none());
    let is_short = |cell: &&DossierCell| words::short_verdict(cell) == words::TOO_FEW;
    let (short, other): (Vec<&DossierCell>, Vec<&DossierCell>) = missing.partition(is_short);
    let told = |found: &[&DossierCell], one: &str, several: &str| {
        let what = if found.len() == 1 { one } else { several };
        (!found.is_empty())
            .then(|| format!("{} more {what}{}.", found.len(), some_of(found, names)))
    };
    let sentences = [
        told(&other, "could not be compared", "could not be compared"),
        told(
            &short,
            "is open for want of blocks",
            "are open for want of blocks",
        ),
    ];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Which metrics differ only by themselves.
fn by_themselves(
    all: &[(&DossierCell, Span)],
    alone: &[(&DossierCell, Span)],
    names: &Names<'_>,
) -> Option<String> {
    let (differ, them) = match alone.len() {
        0 => return None,
        1 => ("differs", "itself"),
        _ => ("differ", "themselves"),
    };
    Some(format!(
        "{} of {} {differ} only by {them}, as chance lets some among so many{}.",
        alone.len(),
        all.len(),
        examples(all, alone, names)
    ))
}

/// The answer of an arm of which no metric has an interval.
fn undecided(arm: &str, cells: &[&DossierCell]) -> String {
    let arm = harmless(arm);
    match cells.iter().map(|cell| cell.n_blocks).max() {
        Some(n) if (1..FEWEST_BLOCKS).contains(&(n as usize)) => format!(
            "{arm}: nothing is decided yet, neither a cost nor its absence: {n} block{} too few for an interval, which takes {FEWEST_BLOCKS}.",
            if n == 1 { " is" } else { "s are" }
        ),
        _ => format!("{arm}: nothing could be compared; the reasons stand beside each metric."),
    }
}

/// Of how many metrics there is no difference that matters, and how much it could be at most.
fn without_difference(
    all: &[(&DossierCell, Span)],
    within: &[(&DossierCell, Span)],
    names: &Names<'_>,
) -> Option<String> {
    let most = within.iter().map(|(_, ratio)| ratio.high);
    let most = 100.0 * (most.fold(1.0, f64::max) - 1.0);
    let most = if most < 0.05 {
        format!("less than 0.1{NO_BREAK}%")
    } else {
        format!("at most {most:.1}{NO_BREAK}%")
    };
    (!within.is_empty()).then(|| {
        format!(
            "{} of {} metrics cost nothing that matters ({most}; {}){}.",
            within.len(),
            all.len(),
            margins(within),
            examples(all, within, names)
        )
    })
}

/// The margins of these metrics: `the margin is 2 or 5 %`.
fn margins(cells: &[(&DossierCell, Span)]) -> String {
    let mut margins: Vec<f64> = cells.iter().map(|(cell, _)| cell.margin).collect();
    margins.sort_by(f64::total_cmp);
    let mut told: Vec<String> = margins.into_iter().map(percent).collect();
    told.dedup();
    format!("the margin is {}", told.join(" or "))
}

/// Of how many metrics it is open, and between what the one lies that could be the most.
fn left_open(
    all: &[(&DossierCell, Span)],
    open: &[(&DossierCell, Span)],
    names: &Names<'_>,
) -> Option<String> {
    let width = |ratio: &Span| ratio.high.ln() - ratio.low.ln();
    let widest = open
        .iter()
        .max_by(|(_, one), (_, other)| width(one).total_cmp(&width(other)));
    let (cell, ratio) = widest?;
    let ends = [ratio.low, ratio.high].map(|cost| quotient(cell, cost));
    Some(format!(
        "{} of {} {} open, neither a cost nor its absence shown: {}{} (between {} and {}).",
        open.len(),
        all.len(),
        if open.len() == 1 { "is" } else { "are" },
        if open.len() == 1 { "" } else { "above all " },
        names.phrase(cell),
        more_or_less(ends[0].min(ends[1])),
        more_or_less(ends[0].max(ends[1]))
    ))
}

/// A few of these metrics, in the order in which all were measured.
fn examples(
    all: &[(&DossierCell, Span)],
    some: &[(&DossierCell, Span)],
    names: &Names<'_>,
) -> String {
    let is_one = |cell: &DossierCell| some.iter().any(|(other, _)| std::ptr::eq(*other, cell));
    let found = all.iter().map(|(cell, _)| *cell);
    let found: Vec<&DossierCell> = found.filter(|cell| is_one(cell)).collect();
    some_of(&found, names)
}

/// A few of these: the first of each area, and others where there are not as many areas.
fn some_of(found: &[&DossierCell], names: &Names<'_>) -> String {
    let mut areas = BTreeSet::new();
    let mut is_first =
        |cell: &DossierCell| areas.insert(cell.metric.split('.').next().map(str::to_owned));
    let (firsts, others): (Vec<_>, Vec<_>) =
        (found.iter().enumerate()).partition(|(_, cell)| is_first(cell));
    let mut chosen: Vec<_> = firsts.into_iter().chain(others).take(EXAMPLES).collect();
    chosen.sort_by_key(|(place, _)| *place);
    let told: Vec<String> = chosen.iter().map(|(_, cell)| names.phrase(cell)).collect();
    let before = if found.len() > told.len() {
        ", among them"
    } else {
        ":"
    };
    format!("{before} {}", listed(&told))
}

/// The A′ arm in words: how far the numbers can be trusted.
pub(in crate::report) fn trust(dossier: &Dossier) -> String {
    let baseline = dossier.arms.iter().find(|arm| arm.baseline);
    let baseline = harmless(baseline.map_or("the baseline", |arm| arm.id.as_str()));
    let compared: Vec<&DossierCell> = dossier
        .aa
        .iter()
        .filter(|cell| cell.ratio.is_some())
        .collect();
    let name = format!("A′ ({baseline} against itself)");
    let has_copy = |arm: &DossierArm| arm.id == A_PRIME;
    if !dossier.arms.iter().any(has_copy) {
        return format!(
            "{baseline} has no second copy here that would say how far these numbers can be trusted."
        );
    }
    if compared.is_empty() {
        return format!(
            "{name}: not measured often enough, so nothing here says how far these numbers can be trusted."
        );
    }
    let is = |word: Verdict| move |cell: &&&DossierCell| cell.verdict == word;
    let equal = compared.iter().filter(is(Verdict::Equivalent)).count();
    let open = compared.iter().filter(is(Verdict::Inconclusive)).count();
    let alarms = false_alarms(dossier);
    let n = compared.len();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = match alarms {
        0 => format!("{name}, where nothing differs: no false alarm"),
        _ => format!(
            "{name}, where nothing differs: {alarms} false alarm{}",
            plural(alarms)
        ),
    };
    let _ = write!(text, " in {n} metric{}", plural(n));
    let shown = match (equal, open) {
        (0, 1..) => format!(
            "none shown to be equal, {open} undecided: it takes more blocks, or a quieter machine"
        ),
        (_, 0) => format!("{equal} shown to be equal"),
        _ => format!("{equal} shown to be equal, {open} undecided"),
    };
    if alarms == 0 {
        return format!("{text}; {shown}.");
    }
    let _ = write!(text, ", {}", largest(&compared, &Names::of(dossier)));
    let allowed = alarms_allowed(&compared);
    if alarms > allowed {
        format!("{text}; {shown}. Chance alone gives at most {allowed}: DOUBT EVERY VERDICT BELOW.")
    } else {
        format!(
            "{text}; up to {allowed} would be chance, so the check is passed. Of the rest: {shown}."
        )
    }
}

/// How large the false alarms among these are, and of what the largest three.
fn largest(compared: &[&DossierCell], names: &Names<'_>) -> String {
    let alarms = compared.iter().filter(|cell| cell.verdict.is_difference());
    let mut alarms: Vec<(f64, &DossierCell)> = alarms
        .filter_map(|cell| Some((cell.ratio?.point.ln().abs(), *cell)))
        .collect();
    alarms.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let most = alarms.first().map_or(0.0, |(size, _)| size.exp_m1());
    let mut told: Vec<String> = alarms
        .iter()
        .take(3)
        .map(|(_, cell)| names.phrase(cell))
        .collect();
    if alarms.len() > told.len() {
        told.push("…".to_owned());
    }
    format!("of at most {} ({})", percent(most), told.join(", "))
}

/// `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A cost as the quotient of the values that a reader meets: of a rate, what is left of it.
fn quotient(cell: &DossierCell, cost: f64) -> f64 {
    match cell.better {
        Better::Lower => cost,
        Better::Higher => 1.0 / cost,
    }
}

/// `2.1 times as much`, `12 % more`, `3.4 % less`.
fn more_or_less(quotient: f64) -> String {
    let percent = 100.0 * (quotient - 1.0);
    let digits = |size: f64| usize::from(size < 10.0);
    if quotient >= 2.0 {
        format!("{quotient:.*} times as much", digits(quotient))
    } else if percent >= 0.0 {
        format!("{percent:.*}{NO_BREAK}% more", digits(percent))
    } else {
        // What is left of almost nothing is told apart from nothing.
        let digits = if percent < -99.0 { 2 } else { digits(-percent) };
        format!("{:.digits$}{NO_BREAK}% less", -percent)
    }
}

/// The difference as the reader meets it: so many times, so much more, so much less.
fn by(name: &str, cell: &DossierCell, ratio: Span) -> String {
    let of_what = match cell.unit.as_str() {
        "B/s" | "op/s" if !name.contains("throughput") => " throughput",
        _ => "",
    };
    let share = format!("{}{of_what}", more_or_less(quotient(cell, ratio.point)));
    // What an operation takes longer is the same in a program that does little else and in one that does much else.
    match &cell.difference {
        Some(span) if cell.unit == "ns" && !(span.low <= 0.0 && span.high >= 0.0) => {
            format!("{name} {share} ({})", short_difference(span.point))
        }
        // The table below has the cost, which of a rate is another number.
        _ if cell.better == Better::Higher => format!("{name} {share} (cost × {:.2})", ratio.point),
        _ => format!("{name} {share}"),
    }
}

/// A difference of times in two digits: `+47 ns`.
fn short_difference(ns: f64) -> String {
    let scale = scale_for(ns, "ns");
    let size = ns / scale.factor;
    with_unit(&format!("{size:+.*}", significant(size.abs(), 2)), scale)
}
