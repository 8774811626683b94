//! What was published about the question that a study repeats: its numbers, its claims, its mistakes, and the
//! shape of its tables and figures. Plain data that a study file carries.

use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::words::words;

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
    /// Parameters of the workload by which the metric is multiplied to be what the publication has: the time of a
    /// line, by lines and files, is that of all files. [`INSTANCES`] makes of what each instance takes that of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<String>,
    /// What stands in the publication's place of it, where the two are not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Stands among [`Quantity::times`] for the number of instances that ran at once.
pub const INSTANCES: &str = "instances";

impl Quantity {
    /// Whether it is what all instances at once take together.
    pub fn is_of_all(&self) -> bool {
        self.times.iter().any(|name| name == INSTANCES)
    }
}

/// A number as it was published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedNumber {
    /// Its characters in the publication, so that it can be found there.
    pub printed: String,
    /// Its value in `unit`, as it is printed.
    pub value: f64,
    /// Its unit, as it is printed there.
    pub unit: String,
    /// What it should have been, where it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Correction>,
    /// Where it stands: table, figure, section.
    pub at: String,
    /// What it is, for a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Which of several that stand in one place: an instance, a machine, a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The quantity that it corresponds to here, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The arm that it corresponds to here, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The other arm, where it is a ratio of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// How many instances ran at once.
    #[serde(default = "one")]
    pub instances: u32,
    /// Why nothing here is set beside it, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<NoCounterpart>,
}

/// What a number that is wrong in its publication should have been.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// Its value.
    pub value: f64,
    /// In this unit.
    pub unit: String,
    /// How that is known.
    pub because: String,
}

words! {
    /// Why nothing is set beside a published number.
    pub enum NoCounterpart {
        /// It says what was done, and not what came of it.
        Setting: "setting",
        /// A standard deviation, or an extreme of single runs.
        Spread: "spread",
        /// It was computed from numbers beside which values stand.
        Derived: "derived",
        /// It grows with the length of the run.
        Total: "total",
        /// It repeats a number of a log or table.
        Repeated: "repeated",
        /// The same with another size of file, block or record than this study's.
        OtherSize: "other-size",
        /// Something that this study does not measure.
        NotMeasured: "not-measured",
    }
}

impl NoCounterpart {
    /// The same in a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Setting => "what was set or used, not what came of it",
            Self::Spread => {
                "spreads and extremes of single runs; here every value has an interval over blocks"
            }
            Self::Derived => {
                "computed from numbers that stand in the tables; here it is computed from what was measured"
            }
            Self::Total => {
                "totals and times that grow with the length of a run; here what one operation takes is compared"
            }
            Self::Repeated => "numbers of its tables and logs, repeated in its text",
            Self::OtherSize => "measured here with another size of file, block or record",
            Self::NotMeasured => "not measured by this study",
        }
    }
}

impl PublishedNumber {
    /// The number with its unit: as printed, and behind it in brackets what it should have been.
    pub fn shown(&self) -> String {
        let part = self.part.as_ref();
        let mut words = vec![part.map_or_else(
            || self.printed.clone(),
            |part| format!("{part}: {}", self.printed),
        )];
        let names_unit = self.printed.ends_with(&self.unit)
            || (self.unit == "ratio" && self.printed.contains('%'));
        if !names_unit {
            // Words, powers of a thousand and signs of another language.
            let is_plain = !self.printed.chars().any(char::is_alphabetic);
            words.push(if is_plain {
                self.unit.clone()
            } else {
                format!("({} {})", self.value, self.unit)
            });
        }
        if let (Some(arm), Some(over)) = (&self.arm, &self.over) {
            words.push(format!("{arm} over {over}"));
        }
        if let Some(correction) = &self.corrected {
            words.push(format!("[{} {}]", correction.value, correction.unit));
        }
        words.join(" ")
    }

    /// Its value and unit as they should have been.
    pub fn meant(&self) -> (f64, &str) {
        match &self.corrected {
            Some(correction) => (correction.value, &correction.unit),
            None => (self.value, &self.unit),
        }
    }
}

impl Publication {
    /// Whether the number stands in a place of a table or figure, beside the value of this study.
    pub fn has_place_for(&self, number: &PublishedNumber) -> bool {
        let tables = self.tables.iter().map(|it| (&it.rows, &it.columns));
        let figures = self.figures.iter().map(|it| (&it.rows, &it.columns));
        number.quantity.as_ref().is_some_and(|quantity| {
            tables.chain(figures).any(|(rows, columns)| {
                rows.contains(quantity) && columns.iter().any(|column| column.holds(number))
            })
        })
    }
}

impl LayoutColumn {
    /// Whether the number belongs into this column, in the row of its quantity.
    pub fn holds(&self, number: &PublishedNumber) -> bool {
        let (Some(arm), true) = (&number.arm, self.instances == number.instances) else {
            return false;
        };
        match (&self.over, &number.over) {
            (None, None) => self.arm == *arm,
            // Printed ratios have the slower one above, whichever that is.
            (Some(own), Some(over)) => {
                (&self.arm, own) == (arm, over) || (&self.arm, own) == (over, arm)
            }
            _ => false,
        }
    }
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
    /// What an arm costs in one quantity over what it costs in another one.
    Costs {
        /// The one.
        quantity: String,
        /// The other one.
        to: String,
        /// The arm.
        arm: String,
        /// The arm that it is held against; the baseline where none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other: Option<String>,
        /// The ratio is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The ratio is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Of several instances at once, the one that fares worst against their mean.
    Even {
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
    /// More than half of several costs of an arm.
    Most(Several),
    /// Every one of several costs of an arm.
    All(Several),
    /// It cannot be decided by this study.
    NotTestable {
        /// Why.
        because: String,
    },
}

/// The costs of one arm that a rule counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Several {
    /// Of what.
    pub quantities: Vec<String>,
    /// The arm.
    pub arm: String,
    /// The arm that it is held against; the baseline where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// With so many instances at once.
    #[serde(default = "one")]
    pub instances: u32,
    /// The ratio is not below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The ratio is not above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// A quantity, an arm and a number of instances.
pub type Place<'a> = (&'a str, &'a str, u32);

impl Rule {
    /// What it counts; `None` for a rule about one ratio.
    pub fn several(&self) -> Option<&Several> {
        match self {
            Self::Most(several) | Self::All(several) => Some(several),
            _ => None,
        }
    }

    /// The two places whose ratio it is about; `None` where it is about something else.
    pub fn sides<'a>(&'a self, baseline: &'a str) -> Option<(Place<'a>, Place<'a>)> {
        match self {
            Self::Cost {
                quantity,
                arm,
                instances,
                ..
            } => Some((
                (quantity, arm, *instances),
                (quantity, baseline, *instances),
            )),
            Self::Between {
                quantity,
                arm,
                other,
                instances,
                ..
            } => Some(((quantity, arm, *instances), (quantity, other, *instances))),
            Self::Growth {
                quantity,
                arm,
                instances,
                ..
            } => Some(((quantity, arm, *instances), (quantity, arm, 1))),
            Self::Ratio {
                quantity,
                to,
                arm,
                instances,
                ..
            } => Some(((quantity, arm, *instances), (to, arm, *instances))),
            _ => None,
        }
    }

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
            | Self::Costs {
                at_least, at_most, ..
            }
            | Self::Even {
                at_least, at_most, ..
            }
            | Self::Most(Several {
                at_least, at_most, ..
            })
            | Self::All(Several {
                at_least, at_most, ..
            }) => Some((at_least.unwrap_or(0.0), at_most.unwrap_or(f64::INFINITY))),
            Self::NotTestable { .. } => None,
        }
    }

    /// The quantities that it names.
    pub fn quantities(&self) -> Vec<&str> {
        match self {
            Self::Cost { quantity, .. }
            | Self::Between { quantity, .. }
            | Self::Growth { quantity, .. }
            | Self::Even { quantity, .. } => vec![quantity],
            Self::Ratio { quantity, to, .. } | Self::Costs { quantity, to, .. } => {
                vec![quantity, to]
            }
            Self::Most(Several { quantities, .. }) | Self::All(Several { quantities, .. }) => {
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
            | Self::Even { arm, .. } => vec![arm],
            Self::Costs { arm, other, .. }
            | Self::Most(Several { arm, other, .. })
            | Self::All(Several { arm, other, .. }) => std::iter::once(arm.as_str())
                .chain(other.as_deref())
                .collect(),
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
    /// The arm below it, where the column holds ratios of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
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
    /// Whether whiskers hold the full range of the blocks instead of an interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_range: bool,
    /// Names of quantities.
    pub rows: Vec<String>,
    /// The series.
    pub columns: Vec<LayoutColumn>,
}
