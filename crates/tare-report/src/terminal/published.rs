//! Prints what a publication contains besides its table entries: notes on entries, numbers without an entry, and
//! claims checked against its own numbers.
//!
//! Numbers are kept exactly as printed; corrections follow in brackets.

use tare_model::dossier::{DossierClaim, DossierPublication};

use super::text::{Paint, paragraph};
use super::{Style, tail};
use crate::published;

/// Writes the notes on entries of tables and figures; notes with the same text are merged.
pub(super) fn notes(out: &mut String, publication: &DossierPublication, style: Style) {
    let notes = published::notes(publication);
    if notes.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(out, "  ", "To these numbers:", style);
    for note in notes {
        paragraph(out, "  – ", &note.line(), style);
    }
}

/// Writes the numbers without a counterpart, by reason and then by place in the publication.
pub(super) fn others(out: &mut String, publication: &DossierPublication, style: Style) {
    let others = published::others(publication);
    if others.is_empty() {
        return;
    }
    let title = "Published numbers without a counterpart here, and why";
    tail::heading(out, title, style);
    for of_reason in others {
        let reason = format!("{} ({}):", of_reason.why.sentence(), of_reason.count);
        paragraph(out, "  ", &reason, style);
        for (at, shown) in of_reason.places {
            let text = format!("{at}: {}", shown.join("; "));
            paragraph(out, "    ", &text, style);
        }
    }
}

/// Writes how the authors' numbers relate to a claim.
pub(super) fn own(out: &mut String, claim: &DossierClaim, style: Style) {
    let (Some(own), Some((told, is_for_it))) = (&claim.own, published::own(claim)) else {
        return;
    };
    let paint = if is_for_it { Paint::Dim } else { Paint::Red };
    let mut text = String::new();
    let because = format!("its own numbers {told}: {}", own.because);
    paragraph(&mut text, "      ", &because, style);
    out.push_str(&text.replacen(told, &paint.apply(told, style.colour), 1));
}
