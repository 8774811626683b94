//! A suspected cause, as its arm keeps it.

use serde::{Deserialize, Serialize};

/// A suspected cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// The cause.
    pub cause: String,
    /// The claim about it.
    pub claim: String,
    /// The part of claim and evidence that states the size of the overhead when it was suspected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub size: String,
    /// Evidence for it.
    pub evidence: Vec<String>,
    /// Estimated likelihood.
    pub likelihood: f64,
    /// Advice to the user.
    pub advice: String,
    /// What following the advice costs.
    pub price: String,
    /// The affected metric.
    pub metric: String,
    /// The test in words, or why there is none.
    pub tried: String,
    /// Whether the cause is switched on outside rather than off inside.
    pub is_outside: bool,
}

impl Suspect {
    /// Whether it is about creating and removing the environment rather than about the command.
    pub fn is_of_start_up(&self) -> bool {
        self.metric.starts_with("start-up.")
    }
}
