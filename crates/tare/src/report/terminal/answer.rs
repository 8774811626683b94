//! The answer of an arm in a few lines, as a person would say it: what costs, what costs nothing, what is open.
//!
//! Above the table, for arms with more rows than one takes in at a glance. Largest first; differences as the reader
//! meets them, so that a rate is so much less and a time so much more.
//! What it cannot see: which of the metrics matters to the reader.

use tare_model::Better;
use tare_model::dossier::{Dossier, DossierCell, Span};
use tare_stats::Verdict;

use super::text::{NO_BREAK, harmless};
use super::words;

/// An arm with fewer rows needs no summary.
const FEW: usize = 5;
/// How many differences are named; the others are counted.
const NAMED: usize = 5;

/// The answer of an arm with these cells; `None` where the table says it as quickly.
pub(super) fn of_arm(arm: &str, cells: &[&DossierCell], dossier: &Dossier) -> Option<String> {
    let decided: Vec<(&DossierCell, Span)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.ratio?)))
        .collect();
    if decided.len() < FEW {
        return None;
    }
    let with = |wanted: fn(Verdict) -> bool| -> Vec<(&DossierCell, Span)> {
        let mut found: Vec<_> = decided.clone();
        found.retain(|(cell, _)| wanted(cell.verdict));
        let size = |span: &Span| span.point.ln().abs();
        found.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
        found
    };
    let named = |found: &[(&DossierCell, Span)]| {
        let mut told: Vec<String> = found
            .iter()
            .take(NAMED)
            .map(|(cell, ratio)| format!("{} {}", words::name(cell, dossier), by(cell, *ratio)))
            .collect();
        if found.len() > NAMED {
            told.push(format!("{} more", found.len() - NAMED));
        }
        listed(&told)
    };
    let costs = with(|verdict| matches!(verdict, Verdict::MaterialCost | Verdict::Cost));
    let gains = with(|verdict| matches!(verdict, Verdict::MaterialGain | Verdict::Gain));
    let within = with(|verdict| {
        matches!(
            verdict,
            Verdict::NegligibleCost | Verdict::Equivalent | Verdict::NegligibleGain
        )
    });
    let open = with(|verdict| verdict == Verdict::Inconclusive);
    let arm = harmless(arm);
    let mut sentences = vec![if costs.is_empty() {
        format!("{arm} costs nothing that this run could see.")
    } else {
        format!("{arm} costs: {}.", named(&costs))
    }];
    if !gains.is_empty() {
        sentences.push(format!("Cheaper: {}.", named(&gains)));
    }
    if !within.is_empty() {
        let most = within.iter().map(|(_, ratio)| ratio.high);
        let most = 100.0 * (most.fold(1.0, f64::max) - 1.0);
        sentences.push(format!(
            "{} of {} metrics cost nothing that matters (at most {most:.1}{NO_BREAK}%).",
            within.len(),
            decided.len()
        ));
    }
    if !open.is_empty() {
        let width = |ratio: &Span| ratio.high.ln() - ratio.low.ln();
        let widest = open
            .iter()
            .max_by(|(_, one), (_, other)| width(one).total_cmp(&width(other)));
        let widest = widest.map_or_else(String::new, |(cell, _)| words::name(cell, dossier));
        sentences.push(format!(
            "{} {} open, above all {widest}.",
            open.len(),
            if open.len() == 1 { "is" } else { "are" }
        ));
    }
    Some(sentences.join(" "))
}

/// `a, b and c`.
fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The difference as the reader meets it: so many times, so much more, so much less.
fn by(cell: &DossierCell, ratio: Span) -> String {
    let quotient = match cell.better {
        Better::Lower => ratio.point,
        Better::Higher => 1.0 / ratio.point,
    };
    let percent = 100.0 * (quotient - 1.0);
    let digits = |size: f64| usize::from(size < 10.0);
    if quotient >= 2.0 {
        format!("{quotient:.*} times as much", digits(quotient))
    } else if percent >= 0.0 {
        format!("{percent:.*}{NO_BREAK}% more", digits(percent))
    } else {
        format!("{:.*}{NO_BREAK}% less", digits(-percent), -percent)
    }
}
