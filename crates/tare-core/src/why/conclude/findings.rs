//! Makes one finding per suspect: what trying it proved, and its share of the total.
//!
//! Limits: covers only suspects that a rule or the user's container named.

use std::collections::BTreeSet;

use tare_model::arm::Suspect;
use tare_model::dossier::{Dossier, DossierCell, DossierFinding};
use tare_model::{ArmSpec, Failure, Outcome, Status};

use super::super::counterfactual;
use super::super::readings::{Readings, span};
use super::super::total::{Removed, Total};
use super::super::user_container::{self as own_parts, FAILS, TriedWithout, applied};
use super::{START_UP, metric, suspects};
use crate::analyze::RunData;
use crate::cause::queries;
use crate::driver::user_container;
use crate::workload::user_command;

/// The suspects and their judgements. All shares are of one total, with or without the start-up; a suspect of
/// something outside that total has no share, or is dropped.
struct Judging<'a> {
    run: &'a RunData,
    readings: &'a Readings,
    dossier: &'a Dossier,
    env: &'a ArmSpec,
    has_start_up: bool,
    with_start_up: Total,
    /// Arms without some of the differences of the user's container.
    without: Vec<TriedWithout>,
    /// Each finding with its weight among those of its status.
    judged: Vec<(f64, DossierFinding)>,
}

impl Judging<'_> {
    fn baseline(&self) -> &str {
        self.run.head.study.baseline.as_str()
    }

    fn total(&self, metric: &str) -> Total {
        Total::between(self.readings, self.baseline(), self.env.id.as_str(), metric)
    }

    fn cells(&self, suspect: &Suspect) -> Vec<u32> {
        let is_its =
            |cell: &DossierCell| cell.arm == self.env.id.as_str() && cell.metric == suspect.metric;
        let cells = (0..).zip(&self.dossier.cells);
        cells
            .filter(|(_, cell)| is_its(cell))
            .map(|(index, _)| index)
            .collect()
    }

    fn add(&mut self, suspect: &Suspect, mut finding: DossierFinding) {
        if suspect.is_of_start_up() && !self.has_start_up {
            return;
        }
        if self.has_start_up && !suspect.is_of_start_up() {
            // It is about the command alone, the smaller part of this total.
            finding.share = None;
            finding.status = finding.status.max(Status::Supported);
        }
        let share = finding.share.as_ref();
        let mut weight = share.map_or(suspect.likelihood - 1.0, |share| share.point);
        if suspect.cause == KEPT
            && let Some(Removed { effect, share, p }) = self
                .with_start_up
                .without(self.total(START_UP).differences())
            && let Some(share) = share
        {
            finding.status = counterfactual::status(Some(&effect), Some(&share), p);
            // Ranks below a cause with a separate switch: keeping the environment removes all of the start-up.
            weight = share.point - 1.0;
            finding.effect = Some(span(effect));
            finding.share = Some(span(share));
            finding.arm = Some(self.env.id.to_string());
            finding.tried = Some(
                "the command in an environment that is kept, as in all trials here, instead of a new one each time"
                    .to_owned(),
            );
        }
        finding.cells = self.cells(suspect);
        let cell = finding.cells.first();
        if let Some(cell) = cell.and_then(|place| self.dossier.cells.get(*place as usize)) {
            resize(&mut finding, suspect, cell);
        }
        self.judged.push((weight, finding));
    }

    fn add_untested(&mut self, suspect: &Suspect) {
        self.add(suspect, counterfactual::untested(suspect));
    }

    /// Adds a suspect that has an arm.
    fn add_tried(&mut self, suspect: &Suspect, spec: &ArmSpec) {
        if spec.id == self.env.id {
            return self.add_untested(suspect);
        }
        let total = if suspect.is_of_start_up() {
            self.with_start_up.clone()
        } else {
            self.total(&suspect.metric)
        };
        // A changed copy of another arm is compared with that arm.
        let whole = spec.role.of.as_deref().unwrap_or(self.env.id.as_str());
        let mut finding = counterfactual::judged(
            suspect,
            spec.id.as_str(),
            self.baseline(),
            whole,
            &total,
            self.readings,
        );
        if finding.status == Status::Untested && self.carries_nothing(spec, whole, suspect, &total)
        {
            finding.status = Status::Refuted;
        }
        let mut arms = self.run.head.arms.iter();
        let missing = arms.find(|arm| arm.spec.id == spec.id && !arm.available);
        let reason = missing.and_then(|arm| arm.reason.as_ref());
        if let Some(reason) = reason {
            finding.tried = Some(format!("{}: not available here: {reason}", suspect.tried));
        }
        if let Some(without) = user_container::without_of(spec) {
            let failure = match reason {
                Some(reason) => Some(format!("it cannot be removed here: {reason}")),
                None => self.fails(spec, &suspect.metric).then(|| FAILS.to_owned()),
            };
            self.without.push(TriedWithout {
                arm: spec.id.to_string(),
                without,
                status: finding.status,
                share: finding.share,
                failure,
            });
        }
        self.add(suspect, finding);
    }

    /// Whether the few blocks of a search show that removing the arm's differences removes less than half of the
    /// total.
    fn carries_nothing(
        &self,
        spec: &ArmSpec,
        whole: &str,
        suspect: &Suspect,
        total: &Total,
    ) -> bool {
        let (arm, metric) = (spec.id.as_str(), suspect.metric.as_str());
        // How much longer a run would have taken that was ended early is unknown.
        if user_container::without_of(spec).is_none() || self.readings.is_cut_off(arm, metric) {
            return false;
        }
        let differences = self.readings.differences(arm, whole, metric);
        let went = own_parts::went(total, &differences);
        went.is_some_and(|it| !it.is_hot() && it.high < counterfactual::MOST)
    }

    /// Whether the command ran to an end in an arm but never gave a valid value.
    fn fails(&self, spec: &ArmSpec, metric: &str) -> bool {
        let ended = |outcome: &Outcome| match outcome {
            Outcome::Completed(_) => true,
            Outcome::Failed(failure) => matches!(
                failure,
                Failure::Exited { .. } | Failure::Killed { .. } | Failure::Probe(_)
            ),
            Outcome::Unavailable(_) => false,
        };
        let mut trials = self.run.trials.iter();
        let ran = trials.any(|data| data.trial.cell.arm == spec.id && ended(&data.outcome));
        ran && self.readings.values(spec.id.as_str(), metric).is_empty()
    }
}

/// Replaces the size of the slowdown at the first look by the measured one.
pub(super) fn resize(finding: &mut DossierFinding, suspect: &Suspect, cell: &DossierCell) {
    if suspect.size.is_empty() || cell.ratio.is_none() {
        return;
    }
    let now = queries::clause(cell);
    let texts = std::iter::once(&mut finding.claim).chain(&mut finding.evidence);
    for text in texts {
        *text = text.replace(&suspect.size, &now);
    }
}

/// One finding per suspect, confirmed ones first.
pub(super) fn findings(
    run: &RunData,
    readings: &Readings,
    dossier: &Dossier,
    env: &ArmSpec,
    has_start_up: bool,
) -> Vec<DossierFinding> {
    let mut judging = Judging {
        run,
        readings,
        dossier,
        env,
        has_start_up,
        with_start_up: Total::default(),
        without: Vec::new(),
        judged: Vec::new(),
    };
    judging.with_start_up = judging
        .total(START_UP)
        .with(&judging.total(user_command::WALL));
    let study = &run.head.study;
    let mut noted: Vec<&str> = Vec::new();
    let mut differences: BTreeSet<String> = BTreeSet::new();
    for spec in &study.arms {
        let suspects = spec.role.suspects.iter();
        for suspect in suspects.filter(|suspect| !applied::is_change(suspect)) {
            if spec.id == env.id && suspect.cause.starts_with(user_container::OWN) {
                differences.insert(suspect.cause.clone());
            } else {
                noted.push(&suspect.cause);
            }
            judging.add_tried(suspect, spec);
        }
    }
    // The saving of a kept environment is measured without a separate arm.
    let is_left = |cause: &str| noted.is_empty() || (cause == KEPT && !noted.contains(&cause));
    let left = suspects(run, dossier).into_iter();
    for trial in left.filter(|trial| is_left(&trial.suspect.cause)) {
        let mut suspect = trial.suspect;
        if trial.arm.is_some() {
            suspect.tried.push_str(": not tried yet");
        }
        judging.add_untested(&suspect);
    }
    let asked = metric(env);
    let total = judging.total(&asked);
    let without_parts = std::mem::take(&mut judging.without);
    let mut judged = judging.judged;
    judged.sort_by(|(a, one), (b, other)| one.status.cmp(&other.status).then(b.total_cmp(a)));
    let mut findings: Vec<DossierFinding> =
        judged.into_iter().map(|(_, finding)| finding).collect();
    // The environment's arm switches nothing off.
    let other = |arm: &str| {
        let mut specs = study.arms.iter();
        specs.find(|spec| spec.id.as_str() == arm && spec.id != env.id)
    };
    let without = |arm: &str| user_container::without_of(other(arm)?);
    own_parts::sifted(&mut findings, without, |set, rest| {
        total.came_back(&readings.differences(set, rest, &asked))
    });
    let of_plain = readings.differences(study.baseline.as_str(), own_parts::PLAIN, &asked);
    let of_container = total.came_back(&of_plain).map(|it| it.share);
    own_parts::settle(&mut findings, &differences, &without_parts, of_container);
    narrower_first(&mut findings, |arm| {
        other(arm).is_some_and(|spec| spec.driver == env.driver && spec.settings == env.settings)
    });
    findings
}

/// Among confirmed findings, moves one that changes only the command to the front, if the widest switch removes no
/// more beyond it than it surely removes itself. A switch of the environment may also remove the other mechanism:
/// dedicated processors instead of a quota also make the command's pools smaller. What smaller pools remove while the
/// quota stays is not due to the quota.
pub(super) fn narrower_first(
    findings: &mut [DossierFinding],
    keeps_environment: impl Fn(&str) -> bool,
) {
    let is_narrow =
        |finding: &DossierFinding| finding.arm.as_deref().is_some_and(&keeps_environment);
    let share = |finding: &DossierFinding| finding.share.map_or(0.0, |share| share.point);
    let n_confirmed = findings
        .iter()
        .take_while(|finding| finding.status == Status::Confirmed)
        .count();
    let confirmed = &mut findings[..n_confirmed];
    let Some(most) = confirmed.first().map(share) else {
        return;
    };
    let surely = |finding: &DossierFinding| finding.share.map_or(0.0, |share| share.low);
    let narrow = confirmed
        .iter()
        .position(|finding| is_narrow(finding) && surely(finding) >= most - surely(finding));
    if let Some(place) = narrow {
        confirmed[..=place].rotate_right(1);
    }
}

/// The cause that a kept environment switches off: every run tries it.
const KEPT: &str = "startup.docker-run-constant";
