//! How a claim of a publication is decided. Plain data that a study file carries.

use serde::{Deserialize, Serialize};

use super::one;

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
    /// What an arm costs in one quantity, or with several instances at once, over what it costs in another one, or with
    /// fewer.
    Costs {
        /// The one.
        quantity: String,
        /// The other one.
        to: String,
        /// With so many instances of the one at once.
        #[serde(default = "one")]
        instances: u32,
        /// With so many instances of the other one at once.
        #[serde(default = "one")]
        to_instances: u32,
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
    /// How much it is, with all instances: itself, or as a share of what the arm has of it.
    Amount {
        /// Of what.
        quantity: String,
        /// The arm.
        arm: String,
        /// With so many instances at once.
        #[serde(default = "one")]
        instances: u32,
        /// What it is a share of; the quantity's own unit counts where nothing is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Available>,
        /// It is not below this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// It is not above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
    },
    /// More than half, or than a given share, of several costs of an arm.
    Most(Several),
    /// Every one of several costs of an arm.
    All(Several),
    /// It cannot be decided by this study.
    NotTestable {
        /// Why.
        because: String,
    },
}

/// What an arm has of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Available {
    /// Processors that it may use.
    Processors,
    /// Memory, bytes.
    Memory,
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
    /// The share of them that has to be so, where more than half are not enough: almost all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether it is held against one instance alone of the same arm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
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

    /// The quantities that it names.
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

    /// The arms that it names.
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
