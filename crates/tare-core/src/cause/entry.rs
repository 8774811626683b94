//! How a cause is written down: texts that never change, and a function that looks at a case.
//!
//! Advice and price are texts of the cause, so that they can be checked without a case; a case may replace
//! the advice where the safest remedy depends on it.

use std::fmt::Display;

use super::triage::Family;
use super::{Case, Counterfactual, Suspicion};

/// A cause as its file declares it: a reason why an environment may cost more.
pub struct Entry {
    /// `domain.name`, the file being `domain_name.rs`.
    pub id: &'static str,
    /// One line: what it is.
    pub title: &'static str,
    /// Why it costs: the mechanism, two or three sentences.
    pub mechanism: &'static str,
    /// Which facts and counters it reads.
    pub needs: &'static [&'static str],
    /// How large it is usually, with the circumstances under which that was seen.
    pub size: &'static str,
    /// What to do, the safest remedy first, where no case asks for another.
    pub advice: &'static str,
    /// What that costs in security or money.
    pub price: &'static str,
    /// Whether it is at work in a case.
    pub suspect: fn(&Case<'_>) -> Option<Found>,
}

/// What a cause found in a case; the rest of a [`Suspicion`] are the cause's own texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    cells: Vec<usize>,
    likelihood: f64,
    claim: String,
    evidence: Vec<String>,
    counterfactual: Counterfactual,
    advice: Option<String>,
}

impl Found {
    /// In these cells, this likely, with this claim.
    pub fn new(cells: Vec<usize>, likelihood: f64, claim: impl Into<String>) -> Self {
        Self {
            cells,
            likelihood: likelihood.clamp(0.0, 1.0),
            claim: claim.into(),
            evidence: Vec::new(),
            counterfactual: Counterfactual::NotHere(
                "nothing that could be switched off is known".to_owned(),
            ),
            advice: None,
        }
    }

    /// A line of evidence.
    #[must_use]
    pub fn seen(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Lines of evidence.
    #[must_use]
    pub fn seen_all(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// What the counters of its cells say for these families.
    #[must_use]
    pub fn because(mut self, case: &Case<'_>, families: &[Family]) -> Self {
        self.evidence.extend(case.because(&self.cells, families));
        self
    }

    /// A line of evidence, if there is one.
    #[must_use]
    pub fn seen_if(mut self, line: Option<String>) -> Self {
        self.evidence.extend(line);
        self
    }

    /// How it would be proved.
    #[must_use]
    pub fn by(mut self, counterfactual: Counterfactual) -> Self {
        self.counterfactual = counterfactual;
        self
    }

    /// Other advice than the cause's own.
    #[must_use]
    pub fn advising(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl Case<'_> {
    /// What makes these cells cost more, this likely: `claim` is a clause that is followed by what they cost.
    pub fn found(&self, cells: &[usize], likelihood: f64, claim: impl Display) -> Found {
        let claim = format!("{claim}, and {}.", self.cost_clause(cells));
        Found::new(cells.to_vec(), likelihood, claim)
    }
}

impl Entry {
    /// Whether it is at work in this case, and what it says then.
    pub fn suspect(&self, case: &Case<'_>) -> Option<Suspicion> {
        let found = (self.suspect)(case)?;
        // Facts alone are no cost: a cause that explains no cell is not at work.
        if found.cells.is_empty() {
            return None;
        }
        Some(Suspicion {
            claim: found.claim,
            size: case.cost_clause(&found.cells),
            evidence: found.evidence,
            cells: found.cells,
            likelihood: found.likelihood,
            counterfactual: found.counterfactual,
            advice: found.advice.unwrap_or_else(|| self.advice.to_owned()),
            price: self.price.to_owned(),
        })
    }
}
