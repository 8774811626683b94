//! What a publication says beyond the places of its tables: notes on those places, the numbers that have none, and what
//! its own numbers say of its claims.
//!
//! Numbers are kept exactly as they were printed; what they should have been stands behind them in brackets.
//! What it cannot see: the publication; it draws what the dossier holds.

use std::fmt::Write as _;

use tare_model::NoCounterpart;
use tare_model::dossier::{DossierClaim, DossierPublication, DossierPublished};

use super::text::{Paint, harmless, paragraph};
use super::{Style, tail};

/// Notes on the places of tables and figures; those with one text together.
pub(super) fn notes(out: &mut String, publication: &DossierPublication, style: Style) {
    if publication.notes.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(out, "  ", "To these numbers:", style.width);
    let mut drawn: Vec<&str> = Vec::new();
    for note in &publication.notes {
        if drawn.contains(&note.text.as_str()) {
            continue;
        }
        drawn.push(&note.text);
        let same = publication.notes.iter().filter(|it| it.text == note.text);
        let of: Vec<String> = same.map(|it| harmless(&it.of)).collect();
        let text = format!("{}: {}", of.join(" · "), harmless(&note.text));
        paragraph(out, "  – ", &text, style.width);
    }
}

/// The numbers beside which nothing stands: by the reason, and there by their place in the publication.
pub(super) fn others(out: &mut String, publication: &DossierPublication, style: Style) {
    if publication.others.is_empty() {
        return;
    }
    let title = "Published numbers without a counterpart here, and why";
    tail::heading(out, title, style);
    for why in NoCounterpart::ALL {
        let numbers: Vec<&DossierPublished> = publication
            .others
            .iter()
            .filter(|number| number.why == why)
            .collect();
        if numbers.is_empty() {
            continue;
        }
        let reason = format!("{} ({}):", why.sentence(), numbers.len());
        paragraph(out, "  ", &reason, style.width);
        let mut places: Vec<&str> = Vec::new();
        for number in &numbers {
            if !places.contains(&number.at.as_str()) {
                places.push(&number.at);
            }
        }
        for place in places {
            let of_place = numbers.iter().filter(|number| number.at == place);
            let shown: Vec<String> = of_place.map(|number| shown(number)).collect();
            let text = format!("{}: {}", harmless(place), shown.join("; "));
            paragraph(out, "    ", &text, style.width);
        }
    }
}

fn shown(number: &DossierPublished) -> String {
    let mut text = harmless(&number.printed);
    if let Some(what) = &number.what {
        let _ = write!(text, " ({})", harmless(what));
    }
    text
}

/// What the authors' own numbers say of a claim.
pub(super) fn own(out: &mut String, claim: &DossierClaim, style: Style) {
    let Some(own) = &claim.own else {
        return;
    };
    let (verdict, paint) = if own.holds {
        ("are as claimed", Paint::Dim)
    } else {
        ("are against it", Paint::Red)
    };
    let mut text = String::new();
    let because = format!("its own numbers {verdict}: {}", harmless(&own.because));
    paragraph(&mut text, "      ", &because, style.width);
    out.push_str(&text.replacen(verdict, &paint.on(verdict, style.colour), 1));
}
