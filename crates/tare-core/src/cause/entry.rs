//! Declares a cause: constant texts, and a function that examines a case.
//!
//! Advice and price are texts of the cause, so that they can be checked without a case; a case may replace the advice
//! if the safest fix depends on it.

use std::fmt::Display;

use super::triage::Family;
use super::{Case, Counterfactual, Suspicion};

/// A cause as its file declares it: a reason why an environment may be slower.
pub struct Entry {
    /// `domain.name`; the file is `domain_name.rs`.
    pub id: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The mechanism of the slowdown, two or three sentences.
    pub mechanism: &'static str,
    /// The facts and counters that it reads.
    pub needs: &'static [&'static str],
    /// Its usual size, with the circumstances in which that was observed.
    pub size: &'static str,
    /// What to do, the safest fix first, unless a case needs another.
    pub advice: &'static str,
    /// The price of the advice in security or money.
    pub price: &'static str,
    /// Examines a case and returns what it found, if it is suspected.
    pub suspect: fn(&Case<'_>) -> Option<CauseMatch>,
}

/// What a cause found in a case; the rest of a [`Suspicion`] are the cause's constant texts.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseMatch {
    cells: Vec<usize>,
    likelihood: f64,
    claim: String,
    evidence: Vec<String>,
    counterfactual: Counterfactual,
    advice: Option<String>,
    families: &'static [Family],
}

impl CauseMatch {
    /// Creates a finding in these cells, with this likelihood and claim.
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
            families: &[],
        }
    }

    /// Adds a line of evidence.
    #[must_use]
    pub fn seen(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Adds lines of evidence, if there are any.
    #[must_use]
    pub fn also_seen(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// Adds the baseline's and the arm's value of something, if they differ.
    #[must_use]
    pub fn seen_differing(self, what: &str, values: Option<(&str, &str)>) -> Self {
        self.also_seen(
            values.map(|(there, here)| format!("{what} `{here}`, in the baseline `{there}`")),
        )
    }

    /// Adds the evidence of its cells' counters for these families, after all other.
    #[must_use]
    pub fn because(mut self, families: &'static [Family]) -> Self {
        self.families = families;
        self
    }

    /// Sets the counterfactual that would prove it.
    #[must_use]
    pub fn with_counterfactual(mut self, counterfactual: Counterfactual) -> Self {
        self.counterfactual = counterfactual;
        self
    }

    /// Replaces the cause's advice.
    #[must_use]
    pub fn advising(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl Case<'_> {
    /// Creates a finding for these cells with this likelihood: `claim` is a clause, and the slowdown is appended to
    /// it.
    pub fn found(&self, cells: &[usize], likelihood: f64, claim: impl Display) -> CauseMatch {
        let claim = format!("{claim}, and {}.", self.cost_clause(cells));
        CauseMatch::new(cells.to_vec(), likelihood, claim)
    }

    /// The same with a likelihood and evidence that depend on how well the counters match these families.
    pub fn fitting(
        &self,
        families: &'static [Family],
        cells: &[usize],
        likelihood: f64,
        claim: impl Display,
    ) -> CauseMatch {
        let likelihood = likelihood * self.fit(cells, families);
        self.found(cells, likelihood, claim).because(families)
    }
}

impl Entry {
    /// Returns its suspicion in this case, if any.
    pub fn suspect(&self, case: &Case<'_>) -> Option<Suspicion> {
        let mut found = (self.suspect)(case)?;
        // Facts alone are not a slowdown: a cause that explains no cell is not suspected.
        if found.cells.is_empty() {
            return None;
        }
        let counters = case.because(&found.cells, found.families);
        found.evidence.extend(counters);
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
