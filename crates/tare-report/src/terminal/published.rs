//! What a publication says beyond the places of its tables: notes on those places, the numbers that have none, and what
//! its own numbers say of its claims.
//!
//! Numbers are kept exactly as they were printed; what they should have been stands behind them in brackets.
//! What it cannot see: the publication; it draws what the dossier holds.

use tare_model::dossier::{DossierClaim, DossierPublication};

use super::super::published;
use super::text::{Paint, paragraph};
use super::{Style, tail};
use tare_core::foreign::harmless;

/// Notes on the places of tables and figures; those with one text together.
pub(super) fn notes(out: &mut String, publication: &DossierPublication, style: Style) {
    let notes = published::notes(publication);
    if notes.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(out, "  ", "To these numbers:", style.width);
    for note in notes {
        let text = format!("{}: {}", note.of.join(" · "), note.text);
        paragraph(out, "  – ", &harmless(&text), style.width);
    }
}

/// The numbers beside which nothing stands: by the reason, and there by their place in the publication.
pub(super) fn others(out: &mut String, publication: &DossierPublication, style: Style) {
    let others = published::others(publication);
    if others.is_empty() {
        return;
    }
    let title = "Published numbers without a counterpart here, and why";
    tail::heading(out, title, style);
    for of_reason in others {
        let reason = format!("{} ({}):", of_reason.why.sentence(), of_reason.count);
        paragraph(out, "  ", &reason, style.width);
        for (at, shown) in of_reason.places {
            let text = format!("{at}: {}", shown.join("; "));
            paragraph(out, "    ", &harmless(&text), style.width);
        }
    }
}

/// What the authors' own numbers say of a claim.
pub(super) fn own(out: &mut String, claim: &DossierClaim, style: Style) {
    let (Some(own), Some((told, is_for_it))) = (&claim.own, published::own(claim)) else {
        return;
    };
    let paint = if is_for_it { Paint::Dim } else { Paint::Red };
    let mut text = String::new();
    let because = format!("its own numbers {told}: {}", harmless(&own.because));
    paragraph(&mut text, "      ", &because, style.width);
    out.push_str(&text.replacen(told, &paint.on(told, style.colour), 1));
}
