//! Compares what the arms were given, before the first trial.
//!
//! An unintended difference is better reported before an hour of measuring than after it. Once every arm has started
//! and reported its facts, they are compared with the baseline's. Each difference, with its meaning for the
//! comparison, is one line that is printed and stored. Comparing two programs does not compare environments: if a
//! tool differs in some arm, the run ends here, unless the study allows it. A missing tool removes only its workload,
//! and only in that arm.
//!
//! The tools are checked again at every restart: an arm whose program was replaced during the run is given up.
//! Limits: only differences in facts are found.

use tare_model::fact;
use tare_model::{ArmId, ArmSpec, Facts, Reason};

use super::RunError;
use super::session::{Break, Session};
use super::testbed::ArmFailure;
use crate::parity::{self, Mismatch, Side};

impl Session<'_> {
    /// Compares every usable arm with the baseline.
    pub(super) fn compare_arms(&mut self) -> Result<(), Break> {
        let study = self.study();
        let baseline = study.baseline.clone();
        let programs = self.all_programs();
        let views: Vec<View> = self
            .testbed
            .usable()
            .filter_map(|arm| {
                let inside = self.inside.get(&arm.spec.id)?;
                // Facts from inside take precedence over those from outside, as in the dossier.
                let mut facts = arm.environment.describe(&self.cx);
                facts.extend(inside.clone());
                let spec = arm.spec.clone();
                Some(View { spec, facts })
            })
            .collect();
        let Some(base) = views.iter().find(|view| view.spec.id == baseline) else {
            return Ok(());
        };
        let (mut findings, mut different) = (Vec::new(), Vec::new());
        for arm in views.iter().filter(|view| view.spec.id != baseline) {
            findings.extend(parity::compared(base.side(), arm.side(), &programs));
            different.extend(parity::mismatches(base.side(), arm.side(), &programs));
        }
        for line in parity::lines(baseline.as_str(), &findings) {
            self.say(line)?;
        }
        let missing: Vec<String> = views
            .iter()
            .flat_map(|view| self.missing_in(view))
            .collect();
        for line in missing {
            self.say(line)?;
        }
        if !different.is_empty() && !study.allow_different_tools {
            return Err(Break::Failed(RunError::DifferentTools {
                differences: different.iter().map(Mismatch::to_string).collect(),
            }));
        }
        Ok(())
    }

    /// Returns the workloads that an arm cannot run, one line per missing tool.
    fn missing_in(&self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        for program in self.all_programs() {
            if let Some(reason) = parity::missing(&view.facts, &program) {
                let workloads = self.study().workloads.iter().zip(&self.programs);
                let mut names: Vec<String> = workloads
                    .filter(|(_, programs)| programs.contains(&program))
                    .map(|(spec, _)| format!("`{}`", spec.id))
                    .collect();
                names.dedup();
                lines.push(format!(
                    "`{}`: {reason}, so that {} is not measured there; hint: {}",
                    view.spec.id,
                    names.join(", "),
                    parity::fix(&program, &view.spec.driver, &view.spec.settings)
                ));
            }
        }
        lines
    }

    /// Why a workload cannot run in an arm, if one of its programs is missing.
    pub(super) fn missing_tool(&self, arm: &ArmId, workload: usize) -> Option<Reason> {
        let facts = self.inside.get(arm)?;
        let mut programs = self.programs.get(workload)?.iter();
        programs.find_map(|program| parity::missing(facts, program))
    }

    /// The programs of all workloads, each once.
    fn all_programs(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for program in self.programs.iter().flatten() {
            if !all.contains(program) {
                all.push(program.clone());
            }
        }
        all
    }

    /// Stores an arm's facts from its start. Gives the arm up if a tool has changed, because its trials would be of
    /// two programs.
    pub(super) fn note_facts(
        &mut self,
        index: usize,
        block: u32,
        is_first: bool,
        facts: Facts,
    ) -> Result<(), Break> {
        let spec = &self.testbed.arms[index].spec;
        let (id, settings) = (spec.id.clone(), spec.settings.clone());
        let Some(before) = self.inside.insert(id.clone(), facts) else {
            return Ok(());
        };
        let (programs, after) = (self.all_programs(), &self.inside[&id]);
        let side = |facts| Side {
            id: id.as_str(),
            settings: &settings,
            facts,
            agent_sha256: None,
        };
        let changed = parity::mismatches(side(&before), side(after), &programs);
        let mut names: Vec<&String> = changed.iter().map(|one| &one.program).collect();
        names.extend(programs.iter().filter(|program| {
            let is_missing = |facts| parity::missing(facts, program).is_some();
            is_missing(&before) != is_missing(after)
        }));
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        self.testbed.arms[index].out = Some(ArmFailure {
            why: format!(
                "a tool changed during the run ({}), and blocks before and after cannot be compared",
                names.join(", ")
            ),
            fix: Some("run again while nothing is being installed".into()),
        });
        self.out(Some(index), block, is_first)
    }
}

/// The view of an arm for the comparison.
struct View {
    spec: ArmSpec,
    facts: Facts,
}

impl View {
    fn side(&self) -> Side<'_> {
        Side {
            id: self.spec.id.as_str(),
            settings: &self.spec.settings,
            facts: &self.facts,
            agent_sha256: self.facts.get(fact::AGENT_SHA256).map(String::as_str),
        }
    }
}
