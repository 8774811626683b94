//! A publication on the question that a study repeats: its numbers, claims and mistakes, and the shape of its tables
//! and figures. Plain data in a study file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::params::{Params, Value};
use crate::recipe::Path;
use crate::whole::one;
use crate::words::words;

mod rule;
mod sweep;

pub use rule::{Available, QuantityRef, Rule, Several};
pub use sweep::unfolded;

/// A publication that a study repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// Its title.
    pub title: String,
    /// Its authors, if it names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authors: Option<String>,
    /// Where to find it.
    #[serde(rename = "where")]
    pub place: String,
    /// The machine it was measured on, in its own words or as little as it says.
    pub machine: String,
    /// Intended differences of this study, such as a smaller scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// The measured quantities, by the names that the rest refers to.
    #[serde(default, rename = "quantity", skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<Quantity>,
    /// Its numbers.
    #[serde(default, rename = "number", skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<PublishedNumber>,
    /// Values recorded elsewhere, on machines that cannot be reached from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Recorded>,
    /// Its claims.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Its mistakes.
    #[serde(default, rename = "mistake", skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
    /// Its tables.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Layout>,
    /// Its figures.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// A name for one metric of one workload of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// The name that tables, figures, numbers and claims refer to.
    pub name: String,
    /// Name of the publication's row.
    pub label: String,
    /// The metric.
    pub metric: String,
    /// Parameters that distinguish the workload from others of the study with the same metric.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The path, if the workload is measured over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Workload parameters to multiply the metric by to get the published quantity: the time of a line, times lines
    /// and files, is that of all files. [`INSTANCES`] turns the value of each instance into that of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<String>,
    /// A further factor: the time of one call, times the number that the publication counts as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Parameters by which the publication's measurement is larger or longer, with the publication's values.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub there: Params,
    /// The parameter among them that the metric is proportional to: the value here is scaled to the publication's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear: Option<String>,
    /// Whether the published value is `factor` divided by the metric: operations over the time that they take are a
    /// rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
    /// Unit of the result, if it is not the metric's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Parameters with a list of values each: the entry stands for one quantity per combination, and `{parameter}` in
    /// its name and label for the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<Value>>,
    /// What the publication has in its place, if the two are not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Name in [`Quantity::times`] of the number of concurrent instances.
pub const INSTANCES: &str = "instances";

impl Quantity {
    /// Whether it is the value of all concurrent instances together.
    pub fn is_of_all(&self) -> bool {
        self.times.iter().any(|name| name == INSTANCES)
    }

    /// Whether it means a workload with these parameters and this path.
    pub fn is_of(&self, params: &Params, path: Option<Path>) -> bool {
        let is_wanted = |name: &String| path.is_some_and(|path| path.name() == name);
        params.covers(&self.params) && self.path.as_ref().is_none_or(is_wanted)
    }

    /// Describes how a workload with these complete parameters differs in scale from the publication's; `None` if it
    /// does not.
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

    /// Returns the publication's amount over the amount here, if the metric is proportional to a parameter that
    /// differs.
    pub fn linear_factor(&self, params: &Params) -> Option<f64> {
        let of = |params: &Params| params.int(self.linear.as_deref()?);
        let (there, here) = of(&self.there).zip(of(params))?;
        (there != here).then(|| there as f64 / here as f64)
    }
}

/// A published number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedNumber {
    /// Its characters in the publication, so that it can be found there.
    pub printed: String,
    /// Its value in `unit`, as printed.
    pub value: f64,
    /// Its unit, as printed.
    pub unit: String,
    /// The correct value, if it is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Correction>,
    /// Where it appears: table, figure, section.
    pub at: String,
    /// Description for the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Which one it is, if several are in one place: an instance, a machine, a direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The corresponding quantity here, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The corresponding arm here, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The other arm, if it is a ratio of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Number of concurrent instances.
    #[serde(default = "one")]
    pub instances: u32,
    /// End of the step of a trial's course that it is the value of: seconds, requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Ends of the interval printed with it, or computed from its raw runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Why it has no counterpart here, if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<NoCounterpart>,
}

/// Output of a tool, recorded elsewhere. Tables and figures show it, but it is not paired and decides no claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The arm of its column.
    pub arm: String,
    /// Heading of that column if the tables have none for the arm; the arm's name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The workload of the tool.
    pub workload: String,
    /// The parameters of the call.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The path, if the workload is measured over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// File with the tool's output, relative to the study's file; read together with the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The values by metric, in the metric's unit: from the file, or as given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Vec<f64>>,
}

/// The correct value of a number that is wrong in its publication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// How it is known.
    pub because: String,
}

words! {
    /// Why a published number has no counterpart.
    pub enum NoCounterpart {
        /// It describes what was done, not a result.
        Setting: "setting",
        /// A standard deviation, or an extreme of single runs.
        Spread: "spread",
        /// It was computed from numbers that have counterparts.
        Derived: "derived",
        /// It grows with the length of the run.
        Total: "total",
        /// It repeats a number of a log or table.
        Repeated: "repeated",
        /// One step of a trial's course.
        Step: "step",
        /// The same with a different size of file, block or record.
        OtherSize: "other-size",
        /// This study does not measure it.
        NotMeasured: "not-measured",
    }
}

impl NoCounterpart {
    /// Returns the reason as a sentence.
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
    /// Returns the number with its unit as printed, followed by the correct value in brackets if it is wrong.
    pub fn shown(&self) -> String {
        let part = self.part.as_ref();
        let mut words = vec![part.map_or_else(
            || self.printed.clone(),
            |part| format!("{part}: {}", self.printed),
        )];
        let names_unit = self.printed.ends_with(&self.unit)
            || (self.unit == "ratio" && self.printed.contains('%'));
        if !names_unit {
            // Printed as words, with powers of a thousand, or in another language's notation.
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

    /// Returns the cost of `arm` over `other`, if the number is a ratio of the two. Printed ratios have the slower
    /// arm on top, or are ratios of rates; the two arms may be swapped.
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

    /// Returns its value and unit, corrected if wrong.
    pub fn meant(&self) -> (f64, &str) {
        match &self.corrected {
            Some(correction) => (correction.value, &correction.unit),
            None => (self.value, &self.unit),
        }
    }
}

impl Publication {
    /// Returns rows and columns of its tables and figures.
    pub fn layouts(&self) -> impl Iterator<Item = (&[String], &[LayoutColumn])> {
        let tables = self.tables.iter().map(|it| (&*it.rows, &*it.columns));
        let figures = self.figures.iter().map(|it| (&*it.rows, &*it.columns));
        tables.chain(figures)
    }

    /// Whether a table or figure has a place for the number, next to this study's value.
    pub fn has_place_for(&self, number: &PublishedNumber) -> bool {
        number.quantity.as_ref().is_some_and(|quantity| {
            self.layouts().any(|(rows, columns)| {
                rows.contains(quantity) && columns.iter().any(|column| column.holds(number))
            })
        })
    }
}

impl LayoutColumn {
    /// Whether the number belongs in this column, in the row of its quantity.
    pub fn holds(&self, number: &PublishedNumber) -> bool {
        let is_here = self.instances == number.instances && number.step.is_none();
        let (Some(arm), true) = (&number.arm, is_here) else {
            return false;
        };
        match (&self.over, &number.over) {
            (None, None) => self.arm == *arm,
            // Printed ratios have the slower arm on top, whichever it is.
            (Some(own), Some(over)) => {
                (&self.arm, own) == (arm, over) || (&self.arm, own) == (over, arm)
            }
            _ => false,
        }
    }
}

/// Unit of a ratio with the faster arm on top.
const RATIO_OF_RATES: &str = "ratio of rates";

/// A published statement, and the rule that decides whether it holds here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// What was claimed.
    pub published: String,
    /// Where it appears: conclusion, section.
    pub at: String,
    /// The deciding rule, fixed before the run.
    pub rule: Rule,
    /// Precondition for the claim to mean anything: an overhead that something removes has to occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Rule>,
    /// Minimum parameters at which the first quantity is what the claim is about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<String, i64>,
}

impl Claim {
    /// Returns the rule and its precondition.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        std::iter::once(&self.rule).chain(&self.given)
    }
}

/// A mistake, and how this study avoids it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// The mistake.
    pub what: String,
    /// What is done here instead.
    pub here: String,
}

/// A table in the publication's layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Its caption.
    pub title: String,
    /// Names of quantities, top to bottom.
    pub rows: Vec<String>,
    /// The columns, left to right.
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
    /// The arm in the denominator, if the column holds ratios of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Number of concurrent instances.
    #[serde(default = "one")]
    pub instances: u32,
}

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A group of bars per row, one bar per column.
    #[default]
    Bars,
    /// A line per row, over the columns.
    Lines,
}

/// A figure in the publication's layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its caption.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: FigureKind,
    /// Whether whiskers show the full range of the blocks instead of an interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_range: bool,
    /// Names of quantities.
    pub rows: Vec<String>,
    /// The series.
    pub columns: Vec<LayoutColumn>,
}
