//! What a publication says beyond the places of its tables, put together for every form alike: notes with one text
//! once, the numbers that have no place by their reason and place, and what its own numbers say of its claims.
//!
//! Texts are as the dossier has them; a form escapes them. What it cannot see: the publication.

use tare_model::dossier::{DossierClaim, DossierLayout, DossierPublication, DossierPublished};
use tare_model::{ClaimVerdict, NoCounterpart};

/// A note, and all that it is of.
pub(super) struct Note<'a> {
    pub(super) of: Vec<&'a str>,
    pub(super) text: &'a str,
}

/// The notes on places of tables and figures; those with one text together.
pub(super) fn notes(publication: &DossierPublication) -> Vec<Note<'_>> {
    let mut notes: Vec<Note<'_>> = Vec::new();
    for note in &publication.notes {
        match notes.iter_mut().find(|it| it.text == note.text) {
            Some(same) => same.of.push(&note.of),
            None => notes.push(Note {
                of: vec![&note.of],
                text: &note.text,
            }),
        }
    }
    notes
}

/// Rows that were measured at another scale than published: those with one difference together.
pub(super) fn scales<'a>(layouts: impl IntoIterator<Item = &'a DossierLayout>) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'a>> = Vec::new();
    for row in layouts.into_iter().flat_map(|layout| &layout.rows) {
        let Some(text) = row.scale.as_deref() else {
            continue;
        };
        let of = row.label.trim_end_matches([' ', '‡']);
        match notes.iter_mut().find(|it| it.text == text) {
            Some(same) if same.of.contains(&of) => {}
            Some(same) => same.of.push(of),
            None => notes.push(Note { of: vec![of], text }),
        }
    }
    notes
}

/// The same in sentences, behind the mark.
pub(super) fn scale_lines<'a>(
    layouts: impl IntoIterator<Item = &'a DossierLayout>,
) -> impl Iterator<Item = String> {
    let notes = scales(layouts).into_iter();
    notes.map(|note| format!("‡ {}: {}", note.of.join(" · "), note.text))
}

/// Numbers beside which nothing stands, for one reason.
pub(super) struct Others<'a> {
    pub(super) why: NoCounterpart,
    pub(super) count: usize,
    /// By their place in the publication, in its order.
    pub(super) places: Vec<(&'a str, Vec<String>)>,
}

/// The numbers beside which nothing stands, by the reason.
pub(super) fn others(publication: &DossierPublication) -> Vec<Others<'_>> {
    let of_reason = |why: NoCounterpart| {
        let mut places: Vec<(&str, Vec<String>)> = Vec::new();
        let numbers = publication.others.iter().filter(|number| number.why == why);
        for number in numbers {
            match places.iter_mut().find(|(at, _)| *at == number.at) {
                Some((_, shown)) => shown.push(describe(number)),
                None => places.push((&number.at, vec![describe(number)])),
            }
        }
        Others {
            why,
            count: places.iter().map(|(_, shown)| shown.len()).sum(),
            places,
        }
    };
    let reasons = NoCounterpart::ALL.into_iter().map(of_reason);
    reasons.filter(|others| others.count > 0).collect()
}

/// A number as printed, with what it is.
fn describe(number: &DossierPublished) -> String {
    match &number.what {
        Some(what) => format!("{} ({what})", number.printed),
        None => number.printed.clone(),
    }
}

/// What its authors' own numbers are to a claim, as the end of “its own numbers …”, and whether they are for it.
pub(super) fn own(claim: &DossierClaim) -> Option<(&'static str, bool)> {
    let own = claim.own.as_ref()?;
    Some(match (own.holds, own.partly) {
        (true, _) => ("are as claimed", true),
        (false, false) => ("are against it", false),
        (false, true) => ("are against it in part", false),
    })
}

/// A claim's verdict in words, behind its sign.
pub(super) fn verdict(claim: &DossierClaim) -> &'static str {
    match claim.verdict {
        ClaimVerdict::Holds => "✓ holds",
        ClaimVerdict::Fails => "✗ does not hold",
        ClaimVerdict::Undecided => "? undecided",
        ClaimVerdict::NotTestable => "– not testable",
    }
}
