//! Causes: what can make an environment cost more, one file each.
//!
//! A cause looks at a [`Case`] — two arms with their facts and counters, and the cells that compare them — and
//! either suspects itself or not. It is pure: it reads no file and runs nothing, so a case recorded on another
//! machine is judged like one measured here. A suspicion names the counterfactual that would prove it; running
//! that is the affair of those who can start arms. Adding one is a file here and a word in [`CAUSES`].
//! What it cannot see: costs that leave no trace in facts or counters; those stay unexplained, and are said to.

use std::collections::BTreeMap;

use tare_model::dossier::DossierCell;
use tare_model::{Facts, Params};

/// Every cause, in the order of the catalogue.
pub static CAUSES: &[&dyn Cause] = &[];

/// The cause of this name.
pub fn find(id: &str) -> Option<&'static dyn Cause> {
    CAUSES.iter().copied().find(|cause| cause.id() == id)
}

/// What is known about one arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArmEvidence {
    /// Its name.
    pub arm: String,
    /// Its driver.
    pub driver: String,
    /// Its settings as given.
    pub settings: Params,
    /// What the host side and the agent inside found out about it.
    pub facts: Facts,
    /// Counters per trial, the median over trials, by workload and name (`user_ns`, `run_delay_ns`,
    /// `throttled_ns`, `majflt`, …; `wall_ns` among them). A counter that could not be read is absent.
    pub counters: BTreeMap<String, BTreeMap<String, f64>>,
}

impl ArmEvidence {
    /// The fact of this name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// The counter `name` of a workload.
    pub fn counter(&self, workload: &str, name: &str) -> Option<f64> {
        self.counters.get(workload)?.get(name).copied()
    }
}

/// Two arms and what was measured between them.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The machine.
    pub host: &'a Facts,
    /// What the arm is compared with.
    pub baseline: &'a ArmEvidence,
    /// The arm that costs more, perhaps.
    pub arm: &'a ArmEvidence,
    /// The cells of this arm; indices into them are what a suspicion names.
    pub cells: &'a [DossierCell],
}

/// How a cause would be proved: by switching it off, or, where that is impossible, by switching it on elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Counterfactual {
    /// The same arm with these settings changed; a setting of the empty text is left out.
    Settings(Params),
    /// The same command with these environment variables, in the same arm.
    Variables(BTreeMap<String, String>),
    /// The same command behind this prefix of words, in the same arm.
    Prefix(Vec<String>),
    /// The baseline with these settings changed: switches the cause on outside.
    BaselineSettings(Params),
    /// The baseline behind this prefix of words: switches the cause on outside.
    BaselinePrefix(Vec<String>),
    /// Not possible here, and why.
    NotHere(String),
}

/// What a cause says about a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspicion {
    /// What it claims, one sentence with its numbers.
    pub claim: String,
    /// What speaks for it, a line each.
    pub evidence: Vec<String>,
    /// The cells that it explains, as indices into the case's.
    pub cells: Vec<usize>,
    /// How likely it is, 0 to 1: which suspect is tried first.
    pub likelihood: f64,
    /// How it would be proved.
    pub counterfactual: Counterfactual,
    /// What to do; the safest remedy first. Never a security downgrade that buys nothing.
    pub advice: String,
    /// What that costs in security or money.
    pub price: String,
}

/// A reason why an environment may cost more.
pub trait Cause: Sync {
    /// `domain.name`, the file being `domain_name.rs`.
    fn id(&self) -> &'static str;
    /// One line: what it is.
    fn title(&self) -> &'static str;
    /// Why it costs: the mechanism, two or three sentences.
    fn mechanism(&self) -> &'static str;
    /// Which facts and counters it reads.
    fn needs(&self) -> &'static [&'static str];
    /// How large it is usually, with the circumstances under which that was seen.
    fn size(&self) -> &'static str;
    /// Whether it is at work in this case.
    fn suspect(&self, case: &Case<'_>) -> Option<Suspicion>;
}
