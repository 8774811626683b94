//! What a dossier says of the publication that its study repeats: tables, notes, claims, mistakes.
//!
//! Plain data of the contract that the dossier is.

use serde::{Deserialize, Serialize};

use super::Span;
use crate::publication::NoCounterpart;
use crate::words::{ClaimVerdict, LayoutKind};

/// A published claim with its verdict here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierClaim {
    /// The claim's name.
    pub id: String,
    /// What was published.
    pub published: String,
    /// Where it stands in the publication.
    #[serde(default)]
    pub at: String,
    /// How it came out.
    pub verdict: ClaimVerdict,
    /// Why.
    pub because: String,
    /// What the same rule says of the published numbers themselves, where they are enough for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<DossierOwnNumbers>,
}

/// What a claim's rule says of its authors' own numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierOwnNumbers {
    /// Whether they are as claimed; they have no intervals, so they decide.
    pub holds: bool,
    /// Whether some of them are, where not all are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
    /// Which ratios they give.
    pub because: String,
}

/// A published number beside which no value of this run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierPublished {
    /// As printed, with its unit.
    pub printed: String,
    /// Where it stands in the publication.
    pub at: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Why nothing stands beside it.
    pub why: NoCounterpart,
}

/// A note on the places of a table or figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierNote {
    /// The row, or the published number.
    pub of: String,
    /// What is to be known about it.
    pub text: String,
}

/// A table or figure in a publication's own layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLayout {
    /// Its caption.
    pub title: String,
    /// How it is laid out.
    pub kind: LayoutKind,
    /// Whether its whiskers hold the full range of the blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_range: bool,
    /// Headings of the columns, or names of the series.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<DossierLayoutRow>,
}

/// A row of a table in a publication's own layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLayoutRow {
    /// Its heading.
    pub label: String,
    /// Unit of the values.
    pub unit: String,
    /// In what it was measured at another scale than published; its heading is marked then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// One for each column.
    pub values: Vec<DossierLayoutValue>,
}

/// A place of a table in a publication's own layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DossierLayoutValue {
    /// What was measured here; `null` with a `reason`.
    pub here: Option<Span>,
    /// Whether it was recorded elsewhere and not in this run: then the ends are the least and the greatest value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
    /// Why nothing was.
    #[serde(default)]
    pub reason: Option<String>,
    /// What was published for this place, each as printed with its unit.
    #[serde(default)]
    pub published: Vec<String>,
    /// The least and the greatest value of a block here, in the row's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Of several instances at once, what each of them took, where that is what was published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Span>,
    /// What was published, in the row's unit and as it should have been; without what has another kind of unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<f64>,
}

/// What was wrong in a publication, and how this run avoids it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierMistake {
    /// What.
    pub what: String,
    /// What was done here instead.
    pub here: String,
}

/// The publication that a study repeats, beside what was measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierPublication {
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub authors: Option<String>,
    /// Where it is to be found.
    #[serde(rename = "where")]
    pub place: String,
    /// What it was measured on.
    pub machine: String,
    /// In what this study differs from it by intention.
    pub deviations: Vec<String>,
    /// Its tables, filled in with what was measured here.
    pub tables: Vec<DossierLayout>,
    /// Its figures, likewise.
    pub figures: Vec<DossierLayout>,
    /// What is to be known about their places, such as where ours is not quite what was published.
    #[serde(default)]
    pub notes: Vec<DossierNote>,
    /// Its numbers beside which nothing stands, each with the reason.
    #[serde(default)]
    pub others: Vec<DossierPublished>,
    /// What was wrong in it.
    pub mistakes: Vec<DossierMistake>,
}
