//! What a publication contains besides its table entries, prepared for all formats: notes merged by text, numbers
//! without an entry by reason and place, and claims checked against the publication's numbers.
//!
//! Texts are as in the dossier; each format escapes them.

use tare_model::dossier::{DossierClaim, DossierLayout, DossierPublication, DossierPublished};
use tare_model::{ClaimVerdict, NoCounterpart};

/// A note and the entries it applies to.
pub(super) struct Note<'a> {
    pub(super) of: Vec<&'a str>,
    pub(super) text: &'a str,
}

impl Note<'_> {
    /// Returns the note after the entries.
    pub(super) fn line(&self) -> String {
        format!("{}: {}", self.of.join(" · "), self.text)
    }
}

/// Returns the notes on entries of tables and figures; notes with the same text are merged.
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

/// Returns the rows that were measured at another scale than published, as sentences after the mark; rows with the
/// same difference are merged.
pub(super) fn scale_lines<'a>(
    layouts: impl IntoIterator<Item = &'a DossierLayout>,
) -> impl Iterator<Item = String> {
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
    notes.into_iter().map(|note| format!("‡ {}", note.line()))
}

/// Numbers without a counterpart, for one reason.
pub(super) struct Others<'a> {
    pub(super) why: NoCounterpart,
    pub(super) count: usize,
    /// Numbers by their place in the publication, in its order.
    pub(super) places: Vec<(&'a str, Vec<String>)>,
}

/// Returns the numbers without a counterpart, by reason.
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

/// Formats a number as printed, with its description.
fn describe(number: &DossierPublished) -> String {
    match &number.what {
        Some(what) => format!("{} ({what})", number.printed),
        None => number.printed.clone(),
    }
}

/// Returns how the authors' numbers relate to a claim, as the end of “its own numbers …”, and whether they support
/// it.
pub(super) fn own(claim: &DossierClaim) -> Option<(&'static str, bool)> {
    let own = claim.own.as_ref()?;
    Some(match (own.holds, own.partly) {
        (true, _) => ("are as claimed", true),
        (false, false) => ("are against it", false),
        (false, true) => ("are against it in part", false),
    })
}

/// Returns the place of a claim in the publication, to print after it.
pub(super) fn place(claim: &DossierClaim) -> String {
    match claim.at.as_str() {
        "" => String::new(),
        at => format!(" ({at})"),
    }
}

/// Returns a claim's verdict in words, after its sign.
pub(super) fn verdict(claim: &DossierClaim) -> &'static str {
    match claim.verdict {
        ClaimVerdict::Holds => "✓ holds",
        ClaimVerdict::Fails => "✗ does not hold",
        ClaimVerdict::Undecided => "? undecided",
        ClaimVerdict::NotTestable => "– not testable",
    }
}
