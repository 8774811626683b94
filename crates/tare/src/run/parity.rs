//! What the arms were given, compared before the first trial.
//!
//! A difference that nobody asked for is better told before an hour of measuring than after it. So once every
//! arm has started and said what it sees, the facts are laid beside the baseline's: each difference is one line
//! with what it means for the comparison, told and stored. Two programs are no comparison of environments: a
//! tool that is another one in some arm ends the run here, unless the study allows it. A tool that is missing
//! takes only its workload away, only there.
//! At every further start the tools are asked about again: an arm whose program was exchanged during the run is
//! given up.
//! What it cannot see: what no fact tells.

use tare_model::fact;
use tare_model::{ArmId, Facts, Params, Reason};

use super::RunError;
use super::session::{Break, Session};
use super::testbed::Trouble;
use crate::parity::{self, Mismatch, Side};

impl Session<'_> {
    /// Compares every arm that can be used with the baseline.
    pub(super) fn compare_arms(&mut self) -> Result<(), Break> {
        let study = self.study();
        let baseline = study.baseline.clone();
        let programs = self.all_programs();
        let views: Vec<View> = self
            .testbed
            .arms
            .iter()
            .filter(|arm| arm.is_usable())
            .filter_map(|arm| {
                let inside = self.inside.get(&arm.spec.id)?;
                // From inside what is known there, from outside the rest; as the dossier has it.
                let mut facts = arm.environment.describe(&self.cx);
                facts.extend(inside.clone());
                Some(View {
                    id: arm.spec.id.clone(),
                    driver: arm.spec.driver.clone(),
                    settings: arm.spec.settings.clone(),
                    facts,
                })
            })
            .collect();
        let Some(base) = views.iter().find(|view| view.id == baseline) else {
            return Ok(());
        };
        let (mut findings, mut different) = (Vec::new(), Vec::new());
        for arm in views.iter().filter(|view| view.id != baseline) {
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

    /// Which workloads an arm cannot run, one line for each tool that it lacks.
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
                    view.id,
                    names.join(", "),
                    parity::fix(&program, &view.driver, &view.settings)
                ));
            }
        }
        lines
    }

    /// Why a workload cannot run in an arm: a program of its own that is not there.
    pub(super) fn missing_tool(&self, arm: &ArmId, workload: usize) -> Option<Reason> {
        let facts = self.inside.get(arm)?;
        let mut programs = self.programs.get(workload)?.iter();
        programs.find_map(|program| parity::missing(facts, program))
    }

    /// Every program of every workload, each once.
    fn all_programs(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for program in self.programs.iter().flatten() {
            if !all.contains(program) {
                all.push(program.clone());
            }
        }
        all
    }

    /// Keeps what an arm said when it was started, and gives the arm up if a tool is another one than before:
    /// its trials would be those of two programs.
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
        self.testbed.arms[index].out = Some(Trouble {
            why: format!(
                "a tool changed during the run ({}), and blocks before and after cannot be compared",
                names.join(", ")
            ),
            fix: Some("run again while nothing is being installed".into()),
        });
        self.out(Some(index), block, is_first)
    }
}

/// One arm as it is compared.
struct View {
    id: ArmId,
    driver: String,
    settings: Params,
    facts: Facts,
}

impl View {
    fn side(&self) -> Side<'_> {
        Side {
            id: self.id.as_str(),
            settings: &self.settings,
            facts: &self.facts,
            agent_sha256: self.facts.get(fact::AGENT_SHA256).map(String::as_str),
        }
    }
}
