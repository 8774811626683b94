//! What was published about the question that a study repeats: its numbers, its claims, its mistakes, and the
//! shape of its tables and figures. Plain data that a study file carries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::params::{Params, Value};
use crate::words::words;

mod rule;
mod sweep;

pub use rule::{Available, Place, Rule, Several};
pub use sweep::unfolded;

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
    /// What was recorded elsewhere, on machines that are not reached from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Recorded>,
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
    /// A further number by which it is multiplied: the time of one call, by as many as the publication counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The parameters by which the publication's is larger or longer, as they are there.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub there: Params,
    /// The parameter among them in proportion to which the metric grows: the value here is multiplied to that of there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<String>,
    /// Whether the publication has `factor` divided by the metric: operations by the time that they take are a rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
    /// The unit of what comes of that, where it is not the metric's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Parameters with a list of values each: it stands for a quantity for each combination of them, and `{parameter}` in
    /// its name and label for the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<Value>>,
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

    /// In what a workload with these complete parameters differs from the publication's in scale; `None` where in nothing.
    pub fn scale(&self, params: &Params) -> Option<String> {
        let other = |(name, there): (&String, &Value)| {
            let here = params.value(name)?;
            (here != there).then(|| format!("{name} = {here} here, {there} there"))
        };
        let mut texts: Vec<String> = self.there.0.iter().filter_map(other).collect();
        if let Some(times) = self.linear_factor(params) {
            texts.push(format!("the value is multiplied by {times}"));
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The publication's amount over that of here, where the metric grows in proportion to a parameter and they differ.
    pub fn linear_factor(&self, params: &Params) -> Option<f64> {
        let of = |params: &Params| params.int(self.linear.as_deref()?);
        let (there, here) = of(&self.there).zip(of(params))?;
        (there != here).then(|| there as f64 / here as f64)
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
    /// Where the step of a trial's course ends that it is the value of: seconds, requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The ends of the interval that stands with it, or that was computed from its raw runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Why nothing here is set beside it, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<NoCounterpart>,
}

/// What a tool printed elsewhere. It stands in tables and figures, is paired with nothing and decides no claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The arm in whose column it stands.
    pub arm: String,
    /// That column's heading where the tables have none for the arm; its name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The workload whose tool it was.
    pub workload: String,
    /// The parameters with which it was called.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The path, where the workload is measured over several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What the tool printed, by a path from the study's file on; read when the study is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The values by their metric, in the metric's unit: of the file, or as they are given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Vec<f64>>,
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
        /// One step of the way of a trial from beginning to end.
        Step: "step",
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
            Self::Step => {
                "single steps of trials; where this run has trials' ways from beginning to end, they are drawn next to these"
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
        if let Some([low, high]) = self.interval {
            words.push(format!("({low} to {high})"));
        }
        if let (Some(arm), Some(over)) = (&self.arm, &self.over) {
            words.push(format!("{arm} over {over}"));
        }
        if let Some(correction) = &self.corrected {
            words.push(format!("[{} {}]", correction.value, correction.unit));
        }
        words.join(" ")
    }

    /// What `arm` costs over `other` by it, if it is a ratio of the two: printed ratios have the slower one above, or are
    /// of rates; one may be the other way round.
    pub fn cost_over(&self, arm: &str, other: &str) -> Option<f64> {
        let (value, unit) = self.meant();
        let cost = match unit {
            "ratio" => value,
            RATIO_OF_RATES => 1.0 / value,
            _ => return None,
        };
        let (above, below) = (self.arm.as_deref()?, self.over.as_deref()?);
        let cost = if (above, below) == (arm, other) {
            cost
        } else if (above, below) == (other, arm) {
            1.0 / cost
        } else {
            return None;
        };
        (cost.is_finite() && cost > 0.0).then_some(cost)
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
        let is_here = self.instances == number.instances && number.step.is_none();
        let (Some(arm), true) = (&number.arm, is_here) else {
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

/// The unit of a ratio in which the one above is the faster one.
const RATIO_OF_RATES: &str = "ratio of rates";

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
    /// What has to hold for the claim to mean anything: a cost that something takes away has to occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Rule>,
    /// The least parameters at which the first quantity is what the claim is about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<String, i64>,
}

impl Claim {
    /// The rule and its premise.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        std::iter::once(&self.rule).chain(&self.given)
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
