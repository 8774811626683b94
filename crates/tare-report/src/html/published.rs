//! The page's section on the publication: its tables with this machine's numbers, its figures, notes, numbers without
//! a counterpart, claims checked against the authors' numbers, and errors.
//!
//! Printed numbers are kept exactly as printed.

use maud::{Markup, PreEscaped, html};
use tare_model::dossier::{
    Dossier, DossierClaim, DossierLayout, DossierLayoutValue, DossierPublication, Span,
};

use super::{prose, scroll};
use crate::number::{Digits, level_text, scale_for, value, with_unit};
use crate::{published, svg};
use tare_core::foreign::harmless;

/// Renders the section; empty if the study repeats no publication and claims nothing.
pub(super) fn section(dossier: &Dossier) -> Markup {
    html! {
        @if dossier.publication.is_some() || !dossier.claims.is_empty() {
            section {
                h2 id="published" { "Compared with the publication" }
                @if !dossier.claims.is_empty() { (claims(dossier)) }
                @if let Some(published) = &dossier.publication { (publication(published, dossier)) }
            }
        }
    }
}

/// Renders the publication's tables with this machine's numbers, its figures, claims and errors.
fn publication(publication: &DossierPublication, dossier: &Dossier) -> Markup {
    html! {
        p { @if let Some(authors) = &publication.authors { (harmless(authors)) ": " } cite { (harmless(&publication.title)) } ", " (harmless(&publication.place)) ". Measured there on: " (harmless(&publication.machine)) "." }
        @if !publication.deviations.is_empty() {
            p { "Here on purpose otherwise:" } ul { @for line in &publication.deviations { li { (prose(line)) } } }
        }
        @for table in &publication.tables { (layout(table)) }
        @for line in published::scale_lines(&publication.tables) { p.note { (harmless(&line)) } }
        (notes(publication))
        div.figures.publication { @for drawing in svg::figures(dossier) { figure { (PreEscaped(drawing.svg)) } } }
        (others(publication))
        @if !publication.mistakes.is_empty() {
            h3 { "What was wrong there, and what is done here instead" }
            ul { @for mistake in &publication.mistakes { li { (prose(&mistake.what)) " → " (prose(&mistake.here)) } } }
        }
    }
}

fn layout(table: &DossierLayout) -> Markup {
    let values = table.rows.iter().flat_map(|row| &row.values);
    let measured = values.filter_map(|value| value.here);
    html! {
        (scroll(&harmless(&table.title), &html! {
            table {
                caption { (harmless(&table.title)) ": measured here, in brackets the " (svg::interval_text(measured)) ", and as published" }
                thead { tr { th scope="col" { span.sr { "of what" } } @for column in &table.columns { th.num scope="col" { (harmless(column)) } } } }
                tbody { @for row in &table.rows {
                    tr { th scope="row" { (harmless(&row.label)) } @for place in &row.values { td.num { (here(place, &row.unit)) } } }
                    @if row.values.iter().any(|place| !place.each.is_empty()) {
                        tr { th scope="row" { span.note { "each" } } @for place in &row.values { td.num { (each(place, &row.unit)) } } }
                    }
                    @if row.values.iter().any(|place| !place.published.is_empty()) {
                        tr { th scope="row" { span.note { "published" } } @for place in &row.values { td.num { span.note { (harmless(&place.published.join(" / "))) } } } }
                    }
                } }
            }
        }))
    }
}

fn here(place: &DossierLayoutValue, unit: &str) -> Markup {
    match (&place.here, &place.reason) {
        (Some(span), _) => {
            let scale = scale_for(span.point, unit);
            let text = value(span, scale, Digits::Short);
            let ends = [span.low, span.high].map(|end| {
                let end = Span {
                    point: end,
                    ..*span
                };
                value(&end, scale, Digits::Short)
            });
            html! { (with_unit(&text, scale)) " [" (ends[0]) ", " (ends[1]) "]" (level_text(span)) }
        }
        (None, Some(reason)) => prose(reason),
        (None, None) => html! { "–" },
    }
}

/// Formats the value of each of several instances.
fn each(place: &DossierLayoutValue, unit: &str) -> String {
    let most = place.each.iter().map(|span| span.point).fold(0.0, f64::max);
    let scale = scale_for(most, unit);
    let texts = place
        .each
        .iter()
        .map(|span| value(span, scale, Digits::Short));
    match texts.collect::<Vec<String>>().join(" / ") {
        none if none.is_empty() => none,
        numbers => with_unit(&numbers, scale),
    }
}

/// Renders notes on the entries of tables and figures.
fn notes(publication: &DossierPublication) -> Markup {
    let notes = published::notes(publication);
    html! {
        @if !notes.is_empty() {
            details {
                summary { "To these numbers (" (notes.len()) ")" }
                ul { @for note in &notes { li { (harmless(&note.of.join(" · "))) ": " (prose(note.text)) } } }
            }
        }
    }
}

/// Renders the numbers without a counterpart, grouped by reason and sorted by place in the publication.
fn others(publication: &DossierPublication) -> Markup {
    let others = published::others(publication);
    html! {
        @if !others.is_empty() {
            h3 { "Published numbers without a counterpart here, and why" }
            @for of_reason in &others {
                details {
                    summary { (of_reason.why.sentence()) " (" (of_reason.count) ")" }
                    ul { @for (at, shown) in &of_reason.places { li { (harmless(at)) ": " (prose(&shown.join("; "))) } } }
                }
            }
        }
    }
}

/// Renders the published claims with their places, their verdicts here and those from the authors' numbers.
fn claims(dossier: &Dossier) -> Markup {
    html! {
        table {
            thead { tr { @for head in ["claim", "here", "because"] { th scope="col" { (head) } } } }
            tbody { @for claim in &dossier.claims { tr {
                th scope="row" { (harmless(&claim.published)) @if !claim.at.is_empty() { " " span.note { "(" (harmless(&claim.at)) ")" } } }
                td.verdict { (published::verdict(claim)) }
                td { (prose(&claim.because)) (own(claim)) }
            } } }
        }
    }
}

fn own(claim: &DossierClaim) -> Markup {
    html! {
        @if let (Some(own), Some((told, is_for_it))) = (&claim.own, published::own(claim)) {
            br;
            span.note { "Its own numbers " @if is_for_it { (told) } @else { strong.cost { (told) } } ": " (harmless(&own.because)) }
        }
    }
}
