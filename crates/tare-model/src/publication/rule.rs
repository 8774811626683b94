//! Rules that decide a publication's claims. Plain data in a study file.

use serde::{Deserialize, Serialize};

use super::one;

/// How a claim is decided. Each rule compares a ratio's interval with bounds: inside them the claim holds, outside
/// them it fails, across one of them it is undecided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// Overhead of an arm over the baseline.
    Cost {
        /// The quantity.
        quantity: String,
        /// The arm.
        arm: String,
        /// Number of concurrent instances.
        #[serde(default = "one")]
        instances: u32,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Overhead of one arm over another that is not the baseline.
    Between {
        /// The quantity.
        quantity: String,
        /// The arm.
        arm: String,
        /// The other arm.
        other: String,
        /// Number of concurrent instances.
        #[serde(default = "one")]
        instances: u32,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Growth of an arm's time from one instance to several concurrent ones.
    Growth {
        /// The quantity.
        quantity: String,
        /// The arm.
        arm: String,
        /// Number of concurrent instances.
        instances: u32,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Ratio of two quantities of one arm: the cost of the first over that of the second.
    Ratio {
        /// The first quantity.
        quantity: String,
        /// The second quantity.
        to: String,
        /// The arm.
        arm: String,
        /// Number of concurrent instances.
        #[serde(default = "one")]
        instances: u32,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// An arm's overhead in one quantity, or with several concurrent instances, over its overhead in another, or with
    /// fewer.
    Costs {
        /// The first quantity.
        quantity: String,
        /// The second quantity.
        to: String,
        /// Number of concurrent instances of the first.
        #[serde(default = "one")]
        instances: u32,
        /// Number of concurrent instances of the second.
        #[serde(default = "one")]
        to_instances: u32,
        /// The arm.
        arm: String,
        /// The arm to compare with; the baseline if none is named.
        #[serde(skip_serializing_if = "Option::is_none")]
        other: Option<String>,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// The worst of several concurrent instances over their mean.
    Even {
        /// The quantity.
        quantity: String,
        /// The arm.
        arm: String,
        /// Number of concurrent instances.
        instances: u32,
        /// Lower bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// Amount used by all instances: by itself, or as a share of what the arm has.
    Amount {
        /// The quantity.
        quantity: String,
        /// The arm.
        arm: String,
        /// Number of concurrent instances.
        #[serde(default = "one")]
        instances: u32,
        /// The resource that it is a share of; without one, the quantity's unit applies.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<Available>,
        /// Lower bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// Upper bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// More than half, or more than a given share, of several overheads of an arm.
    Most(Several),
    /// Every one of several overheads of an arm.
    All(Several),
    /// This study cannot decide it.
    NotTestable {
        /// The reason.
        because: String,
    },
}

/// A resource of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Available {
    /// Processors that it may use.
    Processors,
    /// Memory, bytes.
    Memory,
}

/// The overheads of one arm that a rule counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Several {
    /// The quantities.
    pub quantities: Vec<String>,
    /// The arm.
    pub arm: String,
    /// The arm to compare with; the baseline if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// Number of concurrent instances.
    #[serde(default = "one")]
    pub instances: u32,
    /// The required share, if more than half is not enough: almost all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether to compare with a single instance of the same arm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Lower bound of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// A quantity, an arm and a number of instances.
pub type QuantityRef<'a> = (&'a str, &'a str, u32);

impl Rule {
    /// Returns the overheads that it counts; `None` for a rule about one ratio.
    pub fn several(&self) -> Option<&Several> {
        match self {
            Self::Most(several) | Self::All(several) => Some(several),
            _ => None,
        }
    }

    /// Returns the two places whose ratio it is about; `None` if it is about something else.
    pub fn sides<'a>(&'a self, baseline: &'a str) -> Option<(QuantityRef<'a>, QuantityRef<'a>)> {
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

    /// Returns the bounds of the ratio, above 1 if the first costs more; `None` for a claim that cannot be tested.
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
            | Self::Amount {
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

    /// Returns the quantities that it names.
    pub fn quantities(&self) -> Vec<&str> {
        match self {
            Self::Cost { quantity, .. }
            | Self::Between { quantity, .. }
            | Self::Growth { quantity, .. }
            | Self::Amount { quantity, .. }
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

    /// Returns the arms that it names.
    pub fn arms(&self) -> Vec<&str> {
        match self {
            Self::Cost { arm, .. }
            | Self::Growth { arm, .. }
            | Self::Ratio { arm, .. }
            | Self::Amount { arm, .. }
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
