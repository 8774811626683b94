//! The dossier's record of the publication that its study repeats: tables, notes, claims, mistakes.
//!
//! Plain data; part of the contract that the dossier is.

use serde::{Deserialize, Serialize};

use super::Span;
use crate::publication::NoCounterpart;
use crate::words::{ClaimVerdict, LayoutKind};

/// A published claim with its verdict in this run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierClaim {
    /// The claim's name.
    pub id: String,
    /// The published statement.
    pub published: String,
    /// Where it appears in the publication.
    #[serde(default)]
    pub at: String,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The reason for the verdict.
    pub because: String,
    /// The same rule applied to the published numbers, if they suffice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<DossierOwnNumbers>,
}

/// A claim's rule applied to its authors' numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierOwnNumbers {
    /// Whether the numbers are as claimed; they have no intervals, so they decide by themselves.
    pub holds: bool,
    /// Whether only some of them are as claimed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
    /// The ratios that they give.
    pub because: String,
}

/// A published number without a counterpart in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierPublished {
    /// As printed, with its unit.
    pub printed: String,
    /// Where it appears in the publication.
    pub at: String,
    /// Description of the number, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Why it has no counterpart.
    pub why: NoCounterpart,
}

/// A note on entries of a table or figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierNote {
    /// The row, or the published number.
    pub of: String,
    /// The text.
    pub text: String,
}

/// A table or figure in the publication's layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLayout {
    /// Its caption.
    pub title: String,
    /// Kind of layout.
    pub kind: LayoutKind,
    /// Whether its whiskers show the full range of the blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_range: bool,
    /// Column headings, or names of the series.
    pub columns: Vec<String>,
    /// The rows, top to bottom.
    pub rows: Vec<DossierLayoutRow>,
}

/// A row of a table in the publication's layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLayoutRow {
    /// Its heading.
    pub label: String,
    /// Unit of the values.
    pub unit: String,
    /// How its scale differs from the published one, if it does; its heading is marked then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// One value per column.
    pub values: Vec<DossierLayoutValue>,
}

/// An entry of a table in the publication's layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DossierLayoutValue {
    /// The value measured here; `null` with a `reason`.
    pub here: Option<Span>,
    /// Whether it was recorded elsewhere and not in this run; the ends are then the minimum and the maximum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
    /// Why there is no value.
    pub reason: Option<String>,
    /// The published values for this entry, each as printed with its unit.
    #[serde(default)]
    pub published: Vec<String>,
    /// Minimum and maximum over the blocks here, in the row's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Value of each of several concurrent instances, if that was published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Span>,
    /// The published values in the row's unit, corrected where wrong; without those of another kind of unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<f64>,
}

/// A mistake in the publication, and how this run avoids it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierMistake {
    /// The mistake.
    pub what: String,
    /// What was done here instead.
    pub here: String,
}

/// The publication that a study repeats, with the values measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierPublication {
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: Option<String>,
    /// Where to find it.
    #[serde(rename = "where")]
    pub place: String,
    /// The machine it was measured on.
    pub machine: String,
    /// Intended differences of this study.
    pub deviations: Vec<String>,
    /// Its tables, filled with the values measured here.
    pub tables: Vec<DossierLayout>,
    /// Its figures, likewise.
    pub figures: Vec<DossierLayout>,
    /// Notes on their entries, such as where a value here is not quite what was published.
    #[serde(default)]
    pub notes: Vec<DossierNote>,
    /// Its numbers without a counterpart, each with the reason.
    #[serde(default)]
    pub others: Vec<DossierPublished>,
    /// Its mistakes.
    pub mistakes: Vec<DossierMistake>,
}
