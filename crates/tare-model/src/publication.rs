//! What was published about the question that a study repeats: its numbers, its claims, its mistakes, and the
//! shape of its tables and figures. Plain data that a study file carries.

use serde::{Deserialize, Serialize};

use crate::params::Params;

/// A publication that a study repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// Its title.
    pub title: String,
    /// Who wrote it, as far as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authors: Option<String>,
    /// Where it is to be found.
    #[serde(rename = "where")]
    pub place: String,
    /// What it was measured on, in its own words or as little as it says.
    pub machine: String,
    /// In what this study differs from it by intention, such as a smaller scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// What is measured, by the names that the rest refers to.
    #[serde(default, rename = "quantity", skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<Quantity>,
    /// Its numbers.
    #[serde(default, rename = "number", skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<PublishedNumber>,
    /// Its claims.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// What was wrong in it.
    #[serde(default, rename = "mistake", skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
    /// Its tables.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Layout>,
    /// Its figures.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// A name for what one metric of one workload of the study says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// The name that tables, figures, numbers and claims refer to.
    pub name: String,
    /// What the publication's row is called.
    pub label: String,
    /// The metric.
    pub metric: String,
    /// The parameters that tell the workload from others of the study with the same metric.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The path, where the workload is measured over several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What stands in the publication's place of it, where the two are not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// A number as it was published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedNumber {
    /// Its characters in the publication, so that it can be found there.
    pub printed: String,
    /// Its value in `unit`.
    pub value: f64,
    /// Its unit, as the publication means it.
    pub unit: String,
    /// Where it stands: table, figure, section.
    pub at: String,
    /// What it is, for a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The quantity that it corresponds to here, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The arm that it corresponds to here, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// How many instances ran at once.
    #[serde(default = "one")]
    pub instances: u32,
}

fn one() -> u32 {
    1
}

/// A sentence that was published, and the rule that decides whether it holds here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// What was claimed.
    pub published: String,
    /// Where it stands: conclusion, section.
    pub at: String,
    /// How it is decided, fixed before the run.
    pub rule: Rule,
}

/// How a claim is decided. Each compares a ratio's interval with bounds: inside of them it holds, outside of
/// them it fails, across one of them it is undecided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// What an arm costs against the baseline.
    Cost {
        /// Of what.
        quantity: String,
        /// The arm.
        arm: String,
        /// With so many instances at once.
        #[serde(default = "one")]
        instances: u32,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// What one arm costs against another one that is not the baseline.
    Between {
        /// Of what.
        quantity: String,
        /// The arm.
        arm: String,
        /// The other one.
        other: String,
        /// With so many instances at once.
        #[serde(default = "one")]
        instances: u32,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// How much more an arm's time is with several instances at once than with one.
    Growth {
        /// Of what.
        quantity: String,
        /// The arm.
        arm: String,
        /// With so many instances at once.
        instances: u32,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// What two quantities of one arm are to each other: the cost of the first over that of the second.
    Ratio {
        /// The one.
        quantity: String,
        /// The other one.
        to: String,
        /// The arm.
        arm: String,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// More than half of several costs of an arm.
    Most {
        /// Of what.
        quantities: Vec<String>,
        /// The arm.
        arm: String,
        /// With so many instances at once.
        #[serde(default = "one")]
        instances: u32,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Every one of several costs of an arm.
    All {
        /// Of what.
        quantities: Vec<String>,
        /// The arm.
        arm: String,
        /// With so many instances at once.
        #[serde(default = "one")]
        instances: u32,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// It cannot be decided by this study.
    NotTestable {
        /// Why.
        because: String,
    },
}

impl Rule {
    /// The bounds of the ratio, above 1 where the first costs more; none for what cannot be tested.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match self {
            Self::Cost {
                at_least, at_most, ..
            }
            | Self::Between {
                at_least, at_most, ..
            }
            | Self::Growth {
                at_least, at_most, ..
            }
            | Self::Ratio {
                at_least, at_most, ..
            }
            | Self::Most {
                at_least, at_most, ..
            }
            | Self::All {
                at_least, at_most, ..
            } => Some((at_least.unwrap_or(0.0), at_most.unwrap_or(f64::INFINITY))),
            Self::NotTestable { .. } => None,
        }
    }

    /// The quantities that it names.
    pub fn quantities(&self) -> Vec<&str> {
        match self {
            Self::Cost { quantity, .. }
            | Self::Between { quantity, .. }
            | Self::Growth { quantity, .. } => vec![quantity],
            Self::Ratio { quantity, to, .. } => vec![quantity, to],
            Self::Most { quantities, .. } | Self::All { quantities, .. } => {
                quantities.iter().map(String::as_str).collect()
            }
            Self::NotTestable { .. } => Vec::new(),
        }
    }

    /// The arms that it names.
    pub fn arms(&self) -> Vec<&str> {
        match self {
            Self::Cost { arm, .. }
            | Self::Growth { arm, .. }
            | Self::Ratio { arm, .. }
            | Self::Most { arm, .. }
            | Self::All { arm, .. } => vec![arm],
            Self::Between { arm, other, .. } => vec![arm, other],
            Self::NotTestable { .. } => Vec::new(),
        }
    }
}

/// What was wrong, and how this study avoids it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// What.
    pub what: String,
    /// What is done here instead.
    pub here: String,
}

/// A table in the publication's own layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Its caption.
    pub title: String,
    /// Names of quantities, from top to bottom.
    pub rows: Vec<String>,
    /// From left to right.
    pub columns: Vec<LayoutColumn>,
}

/// A column of a table, or a series of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutColumn {
    /// Its heading.
    pub label: String,
    /// The arm.
    pub arm: String,
    /// With so many instances at once.
    #[serde(default = "one")]
    pub instances: u32,
}

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A group of bars for each row, one bar for each column.
    #[default]
    Bars,
    /// A line for each row over the columns.
    Lines,
}

/// A figure as the publication has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its caption.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: FigureKind,
    /// Names of quantities.
    pub rows: Vec<String>,
    /// The series.
    pub columns: Vec<LayoutColumn>,
}
