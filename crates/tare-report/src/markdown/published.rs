//! A publication in a Markdown summary: its tables with this run's values, and its claims. Notes and numbers without
//! a counterpart would fill it, so they are counted with a pointer to where they are.

use std::fmt::Write as _;

use tare_model::dossier::{Dossier, DossierLayout, DossierLayoutValue, DossierPublication};

use super::escaped;
use crate::number::typical;
use crate::published;
use tare_core::foreign::harmless;

/// Writes the publication and claims, collapsed; nothing if the study has neither.
pub(super) fn draw(out: &mut String, dossier: &Dossier) {
    if let Some(publication) = &dossier.publication {
        let authors = publication.authors.as_deref();
        let by = authors
            .map(|authors| format!("{authors}: "))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "<details><summary>Compared with {}{}</summary>\n",
            escaped(&by),
            escaped(&publication.title)
        );
        let machine = format!("measured there on: {}", publication.machine);
        let _ = writeln!(
            out,
            "{}; {}\n",
            escaped(&publication.place),
            escaped(&machine)
        );
        for deviation in &publication.deviations {
            let _ = writeln!(out, "- here on purpose otherwise: {}", escaped(deviation));
        }
        out.push('\n');
        for layout in &publication.tables {
            table(out, layout);
        }
        for line in published::scale_lines(&publication.tables) {
            let _ = writeln!(out, "{}\n", escaped(&line));
        }
        rest(out, publication, dossier);
        out.push_str("</details>\n\n");
    }
    claims(out, dossier);
}

fn table(out: &mut String, layout: &DossierLayout) {
    let _ = writeln!(out, "**{}**\n", escaped(&layout.title));
    let headings = layout.columns.iter().map(|column| escaped(column));
    let _ = writeln!(out, "| | {} |", headings.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(layout.columns.len()));
    for row in &layout.rows {
        let places = row.values.iter().map(|value| place(value, &row.unit));
        let _ = writeln!(
            out,
            "| {} | {} |",
            escaped(&row.label),
            places.collect::<Vec<_>>().join(" | ")
        );
    }
    out.push('\n');
}

/// Formats the measured value, with the published one below it.
fn place(value: &DossierLayoutValue, unit: &str) -> String {
    let mut shown = escaped(&typical(value.here.as_ref(), unit));
    if !value.each.is_empty() {
        let each = value.each.iter().map(|span| typical(Some(span), unit));
        let each = each.collect::<Vec<_>>().join(" / ");
        let _ = write!(shown, "<br>each {}", escaped(&each));
    }
    if !value.published.is_empty() {
        let printed = escaped(&value.published.join(" / "));
        let _ = write!(shown, "<br>publ. {printed}");
    }
    shown
}

/// Writes how much is reported elsewhere only.
fn rest(out: &mut String, publication: &DossierPublication, dossier: &Dossier) {
    let run = harmless(&dossier.run).replace('`', "'");
    let _ = writeln!(
        out,
        "{} published numbers have no counterpart here, and {} notes stand to the others: `tare show {run}`.\n",
        publication.others.len(),
        published::notes(publication).len()
    );
}

fn claims(out: &mut String, dossier: &Dossier) {
    if dossier.claims.is_empty() {
        return;
    }
    let n_claims = dossier.claims.len();
    let _ = writeln!(
        out,
        "<details><summary>Published claims ({n_claims})</summary>\n"
    );
    out.push_str("| claim | here | because |\n|---|---|---|\n");
    for claim in &dossier.claims {
        let mut because = escaped(&claim.because);
        if let (Some(own), Some((told, _))) = (&claim.own, published::own(claim)) {
            let _ = write!(
                because,
                "<br>Its own numbers {told}: {}",
                escaped(&own.because)
            );
        }
        let _ = writeln!(
            out,
            "| {}{} | {} | {because} |",
            escaped(&claim.published),
            escaped(&published::place(claim)),
            published::verdict(claim)
        );
    }
    out.push_str("\n</details>\n\n");
}
