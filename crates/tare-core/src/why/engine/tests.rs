//! Answers questions about simulated containers, whose times are known, from the first study to the last.

use std::collections::BTreeMap;

use tare_model::{
    ArmSpec, CellKey, CommandReport, Facts, Outcome, Params, ProbeReport, RawOutput, RunId, Status,
    StoppedBy, Trial, WhyOutcome, whole_count, whole_part,
};
use tare_stats::Stream;

use super::super::studies::tests::{SECOND, ask, first};
use super::super::user_container::baseline;
use super::*;
use crate::analyze::{ArmData, RunHead, TrialData};
use crate::driver::user_container::{Difference, UserContainer, WITHOUT};
use crate::testing;
use crate::why::{conclude, joined};

/// The time of the command in a plain container, nanoseconds.
const PLAIN_NS: f64 = 2e8;
/// The time to start an arm, nanoseconds.
const START_NS: u64 = SECOND / 2;
/// The differences of a container, the likeliest first.
const DIFFERENCES: [&str; 8] = [
    "cpus",
    "engine.seccomp",
    "env.A",
    "env.B",
    "ulimit.nofile",
    "sysctl.net.core.somaxconn",
    "user",
    "hostname",
];

/// A machine on which time is simulated.
struct World {
    /// The time of the command in a plain container, nanoseconds.
    plain_ns: f64,
    /// Whether each trial is in a new container.
    is_fresh: bool,
    budget_ns: u64,
    /// The differences that all have to be there for a cost, and its factor.
    costs: Vec<(&'static [&'static str], f64)>,
    /// The same, but one of them is enough.
    either: Vec<(&'static [&'static str], f64)>,
    /// Standard deviation of a trial, on the log scale.
    noise: f64,
    random: Stream,
    /// Time spent, nanoseconds.
    spent_ns: u64,
    runs: Vec<RunData>,
}

impl World {
    fn new(noise: f64, seed: u64) -> Self {
        Self {
            plain_ns: PLAIN_NS,
            is_fresh: false,
            budget_ns: 120 * SECOND,
            costs: Vec::new(),
            either: Vec::new(),
            noise,
            random: Stream::new(seed, 1, 0),
            spent_ns: 0,
            runs: Vec::new(),
        }
    }

    /// How much longer the command takes in a container that lacks these differences.
    fn factor(&self, without: &[String]) -> f64 {
        let is_there = |id: &&str| !without.iter().any(|gone| gone == id);
        let all = self
            .costs
            .iter()
            .filter(|(ids, _)| ids.iter().all(&is_there));
        let any = self
            .either
            .iter()
            .filter(|(ids, _)| ids.iter().any(&is_there));
        all.chain(any).map(|(_, factor)| factor).product()
    }

    /// Measures a study until its blocks or its budget end, and joins it with those before.
    fn measure(&mut self, study: &Study) -> RunData {
        let end_ns = self.spent_ns + study.budget_ns.unwrap();
        let mut trials = Vec::new();
        for block in 0..study.blocks_max {
            let launch = block / study.blocks_per_launch;
            if launch * study.blocks_per_launch == block && !self.is_fresh {
                self.spent_ns += START_NS * study.arms.len() as u64;
            }
            let weather = 0.05 * self.random.normal();
            for (position, arm) in (0..).zip(&study.arms) {
                let factor = self.factor(&arm.settings.words(WITHOUT));
                let level = weather + self.noise * self.random.normal();
                let wall_ns = whole_part(self.plain_ns * factor * level.exp());
                self.spent_ns += wall_ns + if self.is_fresh { START_NS } else { 0 };
                trials.push(TrialData {
                    trial: Trial {
                        sequence: whole_count(trials.len()),
                        block,
                        position,
                        launch,
                        workload_index: 0,
                        cell: CellKey {
                            arm: arm.id.clone(),
                            workload: study.workloads[0].id.clone(),
                            params: study.workloads[0].params.clone(),
                            instances: 1,
                            path: None,
                        },
                    },
                    outcome: Outcome::Completed(ran(wall_ns)),
                    host_elapsed_ns: wall_ns,
                    charged: BTreeMap::new(),
                });
            }
            if self.spent_ns > end_ns {
                break;
            }
        }
        let run = RunData {
            head: head(study, self.runs.len()),
            trials,
        };
        let data = joined(run.clone(), &self.runs);
        self.runs.push(run);
        data
    }

    /// The answer about a container with all differences, and the reasons of its studies.
    fn answered(&mut self, options: EngineOptions) -> (Dossier, Vec<Reason>) {
        let own = own();
        let asks = baseline::plain(&own, "docker").remove(0);
        let mut ask = ask("docker", own.settings.clone());
        ask.own = Some(asks);
        ask.budget_ns = self.budget_ns;
        let plain_ns = whole_part(self.plain_ns);
        let first = First {
            life_ns: START_NS,
            is_fresh: self.is_fresh,
            env: super::super::Observed {
                wall_ns: whole_part(self.plain_ns * self.factor(&[])),
                ..first(plain_ns).env
            },
            ..first(plain_ns)
        };
        let mut engine = Engine::new(&ask, &first, options);
        let mut data = self.measure(&engine.first(ask.budget_ns).unwrap());
        let mut reasons = Vec::new();
        loop {
            let dossier = conclude(&data);
            let so_far = SoFar {
                data: &data,
                dossier: &dossier,
                left_ns: ask.budget_ns.saturating_sub(self.spent_ns),
            };
            let Some(next) = engine.next(so_far) else {
                // A block that begins before the end of the budget may end after it.
                assert!(self.spent_ns < ask.budget_ns + 10 * SECOND);
                return (dossier, reasons);
            };
            reasons.push(next.reason);
            data = self.measure(&next.study);
        }
    }
}

fn own() -> UserContainer {
    let difference = |(place, id): (usize, &&str)| Difference {
        id: (*id).to_owned(),
        what: format!("`{id}`"),
        likelihood: 0.6 - 0.05 * place as f64,
        ..Difference::default()
    };
    UserContainer {
        settings: Params::new().with("like", "/run/own.json"),
        argv: vec!["work".into()],
        differences: DIFFERENCES.iter().enumerate().map(difference).collect(),
        ..UserContainer::default()
    }
}

/// The raw output of a run of the command that took so long.
fn ran(wall_ns: u64) -> RawOutput {
    let raw = testing::raw(0, b"out", b"");
    let mut report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
    let command = report.command.take().unwrap();
    report.command = Some(CommandReport { wall_ns, ..command });
    report.elapsed_ns = wall_ns;
    RawOutput::of_probe(serde_json::to_vec(&report).unwrap())
}

fn head(study: &Study, number: usize) -> RunHead {
    let arm = |spec: &ArmSpec| ArmData {
        spec: spec.clone(),
        available: true,
        reason: None,
        fix: None,
        facts: Facts::new(),
        agent_sha256: None,
    };
    RunHead {
        study: study.clone(),
        run: RunId::new(format!("r-{number}")).unwrap(),
        started_unix_ns: 1,
        plan_sha256: String::new(),
        arms: study.arms.iter().map(arm).collect(),
        stopped_by: StoppedBy::Blocks,
        complete: true,
        wall_s: 1.0,
        whole_trials: Vec::new(),
        deviations: Vec::new(),
    }
}

/// The confirmed causes of an answer.
fn confirmed(dossier: &Dossier) -> Vec<&str> {
    let mut causes: Vec<&str> = dossier
        .findings
        .iter()
        .filter(|finding| finding.status == Status::Confirmed)
        .map(|finding| finding.cause.as_str())
        .collect();
    causes.sort_unstable();
    causes
}

#[test]
fn planted_causes_are_found_within_the_budget() {
    type Planted = &'static [(&'static [&'static str], f64)];
    let cases: [(Planted, Planted, &[&str]); 7] = [
        (&[(&["cpus"], 3.0)], &[], &["own.cpus"]),
        (&[(&["hostname"], 1.5)], &[], &["own.hostname"]),
        (&[(&["env.B"], 1.15)], &[], &["own.env.B"]),
        // A gain.
        (&[(&["env.B"], 0.4)], &[], &["own.env.B"]),
        (
            &[(&["user"], 1.4), (&["env.A"], 1.5)],
            &[],
            &["own.env.A", "own.user"],
        ),
        (
            &[],
            &[(&["env.A", "hostname"], 2.0)],
            &["own.env.A+hostname"],
        ),
        (&[], &[], &[]),
    ];
    for (costs, either, expected) in cases {
        for seed in 0..2 {
            let mut world = World {
                costs: costs.to_vec(),
                either: either.to_vec(),
                ..World::new(0.02, seed)
            };
            let (dossier, _) = world.answered(EngineOptions::default());
            assert_eq!(confirmed(&dossier), expected, "seed {seed}");
            let is_gain = costs.iter().any(|(_, factor)| *factor < 1.0);
            let outcome = dossier.why.map(|why| why.outcome);
            assert_eq!(outcome == Some(WhyOutcome::Gain), is_gain, "{outcome:?}");
        }
    }
}

#[test]
fn equal_sides_are_not_searched() {
    for seed in 0..3 {
        let (dossier, reasons) = World::new(0.01, seed).answered(EngineOptions::default());
        assert!(
            reasons.iter().all(|it| *it == Reason::Closer),
            "{reasons:?}"
        );
        let why = dossier.why.unwrap();
        assert!(!matches!(
            why.outcome,
            WhyOutcome::Cost | WhyOutcome::StartUp
        ));
    }
}

/// Between six blocks, after which a part of the time is left, and a search, for which it is too short.
#[test]
fn undecided_question_leaves_no_third_of_its_time() {
    let budget_ns = 50 * SECOND;
    for (plain_ns, is_fresh) in [(1e9, true), (1.5e9, true), (2e9, false), (3e9, false)] {
        for seed in 0..3 {
            let mut world = World {
                plain_ns,
                is_fresh,
                budget_ns,
                ..World::new(0.4, seed)
            };
            let (dossier, _) = world.answered(EngineOptions::default());
            let why = dossier.why.unwrap();
            let left_ns = budget_ns.saturating_sub(world.spent_ns);
            assert!(
                why.outcome != WhyOutcome::Undecided || left_ns < budget_ns / 3,
                "{plain_ns} {is_fresh}: {} s are left",
                left_ns / SECOND
            );
        }
    }
}

#[test]
fn time_is_kept_to_apply_the_fix() {
    let mut world = World::new(0.3, 1);
    world.costs = vec![(&["hostname"], 1.5)];
    let options = EngineOptions {
        apply: true,
        ..EngineOptions::default()
    };
    let (_, reasons) = world.answered(options);
    assert!(!reasons.contains(&Reason::Undecided), "{reasons:?}");
}
