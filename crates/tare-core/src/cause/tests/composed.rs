//! Builds cases for the tests of causes from a driver, facts, counters and cells.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tare_model::dossier::DossierCell;
use tare_model::{Facts, Value, Verdict};

use super::super::entry::Entry;
use super::super::{ArmEvidence, Case, Suspicion};
pub(crate) use crate::testing::cell;

/// A case under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Composed {
    pub(crate) baseline: ArmEvidence,
    pub(crate) arm: ArmEvidence,
    pub(crate) cells: Vec<DossierCell>,
}

impl Composed {
    pub(crate) fn new(driver: &str) -> Self {
        Self {
            baseline: ArmEvidence {
                arm: "host".into(),
                driver: "host".into(),
                ..ArmEvidence::default()
            },
            arm: ArmEvidence {
                arm: "arm".into(),
                driver: driver.into(),
                ..ArmEvidence::default()
            },
            cells: Vec::new(),
        }
    }

    /// Loads a file of `tests/golden/facts`: two sides, as far as the sources report them.
    pub(crate) fn golden(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../tare/tests/golden/facts")
            .join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let facts = |side: &str| -> Facts {
            serde_json::from_value(json[side].clone()).unwrap_or_default()
        };
        let mut composed = Self::new(json["driver"].as_str().unwrap());
        composed.baseline.facts = facts("baseline");
        composed.arm.facts = facts("arm");
        composed
    }

    pub(crate) fn fact(mut self, name: &str, value: &str) -> Self {
        self.arm.facts.insert(name.into(), value.into());
        self
    }

    pub(crate) fn base(mut self, name: &str, value: &str) -> Self {
        self.baseline.facts.insert(name.into(), value.into());
        self
    }

    /// A fact that is `there` in the baseline and `here` in the arm.
    pub(crate) fn differing(self, name: &str, there: &str, here: &str) -> Self {
        self.base(name, there).fact(name, here)
    }

    pub(crate) fn both(self, name: &str, value: &str) -> Self {
        self.differing(name, value, value)
    }

    pub(crate) fn setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.arm.settings = self.arm.settings.with(name, value);
        self
    }

    pub(crate) fn cost(mut self, metric: &str, ratio: f64) -> Self {
        self.cells.push(cell(metric, ratio));
        self
    }

    /// Adds a cell with values, several instances, a path.
    pub(crate) fn cell(mut self, cell: DossierCell) -> Self {
        self.cells.push(cell);
        self
    }

    /// Adds counters of a workload, each with the baseline's and the arm's value.
    pub(crate) fn counted(mut self, workload: &str, counters: &[(&str, f64, f64)]) -> Self {
        for (name, base, arm) in counters {
            let put = |side: &mut BTreeMap<String, BTreeMap<String, f64>>, value: f64| {
                let of_workload = side.entry(workload.into()).or_default();
                of_workload.insert((*name).into(), value);
            };
            put(&mut self.baseline.counters, *base);
            put(&mut self.arm.counters, *arm);
        }
        self
    }

    /// Sets a workload's wall time, user time and system time in nanoseconds, for the baseline and the arm.
    pub(crate) fn took(
        self,
        workload: &str,
        wall: (f64, f64),
        user: (f64, f64),
        sys: (f64, f64),
    ) -> Self {
        let counters = [("wall_ns", wall), ("user_ns", user), ("sys_ns", sys)];
        let counters = counters.map(|(name, (base, arm))| (name, base, arm));
        self.counted(workload, &counters)
    }

    pub(crate) fn case(&self) -> Case<'_> {
        Case {
            baseline: &self.baseline,
            arm: &self.arm,
            cells: &self.cells,
        }
    }

    pub(crate) fn suspects(&self, cause: &Entry) -> Option<Suspicion> {
        cause.suspect(&self.case())
    }

    /// Returns the counterfactual of the cause, which must be suspected.
    pub(crate) fn counterfactual(&self, cause: &Entry) -> String {
        let suspicion = self.suspects(cause);
        format!("{:?}", suspicion.expect(cause.id).counterfactual)
    }

    /// Returns every suspicion of the catalogue, the likeliest first.
    pub(crate) fn ranked(&self) -> Vec<(&'static str, Suspicion)> {
        super::super::suspicions(&self.case())
            .into_iter()
            .map(|(cause, suspicion)| (cause.id, suspicion))
            .collect()
    }
}

/// Checks a cause against cases in which it must and in which it must not be suspected. A case of the first kind must
/// also stop being suspected when nothing is slower.
pub(crate) fn check(cause: &Entry, suspected: &[Composed], innocent: &[Composed]) {
    assert!(
        !suspected.is_empty() && !innocent.is_empty(),
        "{}: both kinds are needed",
        cause.id
    );
    for (place, composed) in suspected.iter().enumerate() {
        let Some(suspicion) = composed.suspects(cause) else {
            panic!("{}: case {place} is not suspected", cause.id);
        };
        assert!(
            suspicion.claim.ends_with('.'),
            "{}: {}",
            cause.id,
            suspicion.claim
        );
        assert!(!suspicion.evidence.is_empty(), "{}: no evidence", cause.id);
        assert!(suspicion.likelihood > 0.0, "{}", cause.id);
        let mut equal = composed.clone();
        for cell in &mut equal.cells {
            cell.verdict = Verdict::Equivalent;
        }
        assert!(
            equal.suspects(cause).is_none(),
            "{}: facts alone made a suspicion of case {place}",
            cause.id
        );
    }
    for (place, composed) in innocent.iter().enumerate() {
        let suspicion = composed.suspects(cause);
        assert!(
            suspicion.is_none(),
            "{}: near case {place} is suspected: {suspicion:?}",
            cause.id
        );
    }
}
