//! The page's record: concurrent instances, unequal conditions, missing measurements, the arms with all facts, the
//! method and the checklist.

use std::collections::BTreeSet;

use maud::{Markup, html};
use tare_model::CheckResult;
use tare_model::dossier::{Concurrency, Dossier, Span};
use tare_model::study::A_PRIME;

use super::{costs, figures, prose, scroll};
use crate::number::{self, Digits, interval, level_text, or_dash};
use crate::terminal::{concurrency, tail};
use crate::words::called;
use crate::{failures, method};
use tare_core::foreign::harmless;

/// Renders concurrent instances: a figure and its numbers for each metric.
pub(super) fn concurrent(series: &Concurrency, dossier: &Dossier) -> Markup {
    let name = concurrency::title(series, dossier);
    let shown = |span: &Option<Span>| {
        or_dash(*span, |span| {
            interval(&span, Digits::Short) + &level_text(&span)
        })
    };
    let typical = |span: &Option<Span>| number::typical(span.as_ref(), &series.unit);
    html! {
        h3 { (name) " with several at once, as " (series.spread) }
        (figures::efficiency(series, &name))
        (scroll(&format!("{name} by the number of instances"), &html! {
            table {
                thead { tr { th scope="col" { "arm" } @for head in ["instances", "mean", "stretch", "fairness", "efficiency", "blocks"] { th.num scope="col" { (head) } } } }
                tbody { @for arm in series.arms.iter().filter(|arm| arm.arm != A_PRIME) { @for point in &arm.points { tr {
                    th scope="row" { (harmless(&arm.arm)) } td.num { (point.instances) } td.num { (typical(&point.value)) }
                    td.num { (shown(&point.stretch)) } td.num { (shown(&point.fairness)) } td.num { (shown(&point.efficiency)) } td.num { (point.n_blocks) }
                } } } }
            }
        }))
        ul { @for arm in &series.arms { @if let (Some(doubling), false) = (&arm.doubling, arm.arm == A_PRIME) {
            li { (harmless(&arm.arm)) ": " (concurrency::interaction(doubling).0) }
        } } }
    }
}

/// Renders missing measurements, with reasons.
pub(super) fn missing(dossier: &Dossier) -> Markup {
    let mut of_work = dossier.failures.clone();
    of_work.retain(|failure| failure.workload.is_some());
    html! {
        @if dossier.failures.is_empty() && dossier.arms.iter().all(|arm| arm.available) {
            p { "Everything that was planned could be measured; no trial failed." }
        } @else {
            ul {
                @for arm in dossier.arms.iter().filter(|arm| !arm.available) {
                    li { strong { (harmless(&arm.id)) } " is not available: " (harmless(arm.reason.as_deref().unwrap_or("no reason was recorded"))) @if let Some(fix) = &arm.fix { ". To mend it: " code { (harmless(fix)) } } }
                }
                @for failure in failures::summarized(&of_work) {
                    li { (prose(&failure.text)) @if let Some(hint) = failure.hint { ". Hint: " (prose(hint)) } }
                }
            }
        }
    }
}

/// Renders the resources of the arms and their differences.
pub(super) fn parity(dossier: &Dossier) -> Markup {
    let arms: Vec<&str> = dossier.arms.iter().map(|arm| arm.id.as_str()).collect();
    let unequal = tail::shared(&arms, &dossier.parity, CheckResult::Fail);
    let different = tail::shared(&arms, &dossier.parity, CheckResult::Differs);
    let equal = dossier
        .parity
        .iter()
        .filter(|item| item.result == CheckResult::Pass);
    html! {
        @if unequal.is_empty() { p { "The arms were given the same, as far as was looked at." } }
        @else { p.alarm { strong { "The arms were not given the same:" } } ul { @for line in unequal { li { (prose(&line)) } } } }
        @if !different.is_empty() { h3 { "What differs, and is part of what is compared" } ul { @for line in different { li { (prose(&line)) } } } }
        details {
            summary { "What was found equal (" (equal.clone().count()) ")" }
            ul { @for item in equal { li { (harmless(&item.id)) ": " (prose(&item.detail)) } } }
        }
    }
}

/// Renders the facts of every arm, those that differ first.
pub(super) fn arms(dossier: &Dossier) -> Markup {
    let arms: Vec<_> = dossier.arms.iter().filter(|arm| arm.available).collect();
    let names: BTreeSet<&str> = arms
        .iter()
        .flat_map(|arm| arm.facts.keys().map(String::as_str))
        .collect();
    let differs = |name: &&str| {
        let mut values = arms.iter().map(|arm| arm.facts.get(*name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let (different, same): (Vec<&str>, Vec<&str>) = names.into_iter().partition(differs);
    let shown = |value: Option<&String>| {
        let text = harmless(value.map_or("–", String::as_str));
        let n = text.chars().count();
        if n <= 200 {
            return text;
        }
        let head: String = text.chars().take(200).collect();
        format!("{head}… ({n} characters; the whole is in the dossier)")
    };
    html! {
        table {
            caption { "The arms" }
            thead { tr { @for head in ["arm", "driver", "settings"] { th scope="col" { (head) } } } }
            tbody { @for arm in &dossier.arms { tr {
                th scope="row" { (harmless(called(&arm.id))) @if arm.baseline { " (baseline)" } (costs::emulated(arm)) }
                td { (harmless(&arm.driver)) }
                td { @for (at, (name, value)) in arm.settings.0.iter().filter(|(name, _)| !name.starts_with("command.")).enumerate() { @if at > 0 { ", " } (harmless(&format!("{name} = {value}"))) } }
            } } }
        }
        @for (title, names) in [("Facts that differ between the arms", different), ("Facts that all arms share", same)] {
            @if names.is_empty() { p.note { (title) ": none." } } @else { details {
                summary { (title) " (" (names.len()) ")" }
                (scroll(title, &html! {
                    @if title.starts_with("Facts that all") {
                        table { thead { tr { th scope="col" { "fact" } th scope="col" { "value" } } }
                            tbody { @for name in &names { tr { th scope="row" { code { (harmless(name)) } } td { (shown(arms[0].facts.get(*name))) } } } } }
                    } @else {
                        table { thead { tr { th scope="col" { "fact" } @for arm in &arms { th scope="col" { (harmless(called(&arm.id))) } } } }
                            tbody { @for name in &names { tr { th scope="row" { code { (harmless(name)) } } @for arm in &arms { td { (shown(arm.facts.get(*name))) } } } } } }
                    }
                }))
            } }
        }
    }
}

/// Renders the method, its basis and the checklist.
pub(super) fn method(dossier: &Dossier) -> Markup {
    let sentences = method::sentences(dossier);
    html! {
        p { @for (text, keys) in &sentences {
            (text)
            @for key in *keys { @if let Some(at) = method::REFERENCES.iter().position(|it| it.key == *key) { " [" a href={ "#reference-" (at + 1) } { (at + 1) } "]" } }
            " "
        } }
        ol { @for (at, work) in method::REFERENCES.iter().enumerate() {
            li id={ "reference-" (at + 1) } { (work.plain_authors()) " (" (work.year) "). " (work.title) ". " cite { (work.venue) } "." }
        } }
        h3 { "Checklist" }
        table.stack role="table" {
            caption { "The reporting rules of Hoefler and Belli (HB), SIGPLAN and Papadopoulos and others (P), filled in from this run" }
            thead role="rowgroup" { tr role="row" { @for head in ["no.", "rule", "source", "result", "with what"] { th.num[head == "no."] scope="col" role="columnheader" { (head) } } } }
            tbody role="rowgroup" { @for rule in method::checklist(dossier) { tr role="row" {
                td.num role="cell" { (rule.number) } th scope="row" role="rowheader" { (rule.rule) } td role="cell" { (rule.source) }
                td.verdict role="cell" { (method::word(rule.result)) }
                td role="cell" { (prose(&rule.detail)) }
            } } }
        }
    }
}
