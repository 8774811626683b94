//! Plans the studies of one answer: the two sides alone, then with the suspects and the steps that fit.
//!
//! The comparison of the two sides is finished before any arm is added, because without its six blocks there is no
//! answer. Later studies contain both sides in their blocks, so that all of them give one estimate
//! ([`joined`](super::joined)). Durations come from the latest measurements ([`Pace`]), and the budget itself ends a
//! study: a plan with overestimated trials would leave time unused.
//! Limits: the speed of an arm that has not run yet is unknown; it is assumed to be as slow as the environment.

use tare_model::arm::{Role, Rung};
use tare_model::study::A_PRIME;
use tare_model::{ArmSpec, Params, Study, WorkloadSpec, whole_part, whole_size};

use super::counterfactual::{SuspectTrial, TriedArm};
use super::observed::PLAIN_TIMES;
use super::pace::{Before, Pace};
use super::{Ask, FEWEST, First, SUSPECTS_MOST, arm_id, id, ladder, seen_facts, user_container};
use crate::workload::{self, Workload};

/// The maximum number of blocks of the first comparison.
const FIRST_MOST: u32 = 12;
/// The maximum number of blocks of a study that is followed by another.
const ROUND_MOST: u32 = 12;
/// The maximum for the first comparison if the first look shows an obvious difference: enough to be sure of it.
const FIRST_PLAIN: u32 = 8;
/// The part of the budget that the first comparison may take.
const FIRST_SHARE: f64 = 0.2;
/// Its maximum time in nanoseconds, if six blocks fit: a first answer should come within ten seconds.
const FIRST_NS: u64 = 8_000_000_000;
/// The part of the time that is planned with: some trials take longer than earlier ones.
pub(super) const SAFE: f64 = 0.85;
/// From this many further arms on there is time for the A/A control.
const A_PRIME_ROOM: usize = 6;
/// For commands shorter than this, the environment's start-up is measured too.
const START_UP_BELOW_NS: u64 = 3_000_000_000;
/// The amount of output from which on a command is considered to print much.
pub const CHATTY_BYTES: usize = 64 << 10;

/// Host, A/A control and environment in a few blocks: whether there is a slowdown at all, and counters for the
/// causes. `None` if not even six blocks of the two sides fit.
pub(super) fn first_study(ask: &Ask, first: &First, left_ns: u64) -> Option<Study> {
    let pace = Pace::of_one(first);
    if pace.least_ns() > left_ns {
        return fewer(ask, first, pace, left_ns);
    }
    let six = u64::from(FEWEST);
    let fits_in = |part_ns: u64, block_ns: u64| {
        let needed_ns = six.saturating_mul(block_ns).saturating_add(pace.life_ns);
        needed_ns <= part_ns
    };
    let fits_in_half = |block_ns: u64| fits_in(left_ns / 2, block_ns);
    let both_ns = pace.host_ns + pace.env_ns;
    // The A/A control and the start-up are worth less than time for the suspects.
    let is_own = ask.own.is_some();
    let with_a_prime = !is_own && fits_in_half(both_ns + pace.host_ns);
    let command_ns = both_ns + if with_a_prime { pace.host_ns } else { 0 };
    // A question about an existing container is not about the time to create one.
    let has_start_up = !(is_own || ask.call.client.is_some())
        && first.host.wall_ns < START_UP_BELOW_NS
        && fits_in_half(command_ns + pace.life_ns);
    let share_ns = whole_part(ask.budget_ns as f64 * FIRST_SHARE).min(FIRST_NS);
    // The start-up may extend the first comparison beyond its share, but not reduce it below six blocks.
    let life_ns = if has_start_up { pace.life_ns } else { 0 };
    // A search through all differences needs the time and compares the two sides again in every round. A single look
    // says little about how long the command takes under other load.
    let most = if is_own {
        FEWEST
    } else if first.env.wall_ns / PLAIN_TIMES > first.host.wall_ns {
        FIRST_PLAIN
    } else {
        FIRST_MOST
    };
    let blocks = (share_ns / (command_ns + life_ns).max(1)).clamp(six, u64::from(most));
    let mut arms = base_arms(ask, first, with_a_prime);
    let steps = user_container::below(ask);
    let steps_ns = steps.len() as u64 * (pace.host_ns.max(pace.env_ns) + pace.life_ns / six);
    let is_whole = !steps.is_empty() && first.cut_ns.is_none();
    // The search needs most of the time.
    if is_whole && fits_in(left_ns / 4, both_ns + steps_ns) {
        if let Some(env) = arms.last_mut() {
            user_container::note_last(ask, env);
        }
        arms.splice(1..1, steps);
    }
    let arms = user_container::at_once(ask, first, pace, left_ns, arms);
    let mut study = ask.study("the command on the host and inside", arms, first);
    study.blocks_max = u32::try_from(blocks).unwrap_or(u32::MAX);
    study.blocks_min = study.blocks_max;
    pace.plan_launches(ask, &mut study, share_ns);
    if has_start_up {
        study.workloads.push(start_up());
    }
    study.budget_ns = Some(left_ns);
    Some(study)
}

/// As many blocks as fit, if the slowdown is obvious and six blocks of ended runs do not fit.
fn fewer(ask: &Ask, first: &First, pace: Pace, left_ns: u64) -> Option<Study> {
    first.cut_ns?;
    let block_ns = (pace.host_ns + pace.env_ns).max(1);
    let blocks = left_ns.saturating_sub(pace.life_ns) / block_ns;
    let arms = base_arms(ask, first, false);
    let mut study = ask.study("the command on the host and inside", arms, first);
    study.blocks_max = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0)?;
    study.blocks_min = study.blocks_max;
    study.budget_ns = Some(left_ns);
    Some(study)
}

pub(super) fn start_up() -> WorkloadSpec {
    WorkloadSpec::new(id(workload::start_up::StartUp.id()), Params::new())
}

/// The host or another baseline, the A/A control if wanted, and the environment.
pub(super) fn base_arms(ask: &Ask, first: &First, with_a_prime: bool) -> Vec<ArmSpec> {
    let base = ask.base();
    let host = |id: &str| {
        let mut arm = ArmSpec::new(arm_id(id), base.driver.as_str(), base.settings.clone());
        if base.driver != super::HOST {
            arm.change = ask.change_of(&base);
        }
        arm.role.seen = seen_facts(&first.host);
        arm
    };
    let mut arms = vec![host(base.id).required()];
    user_container::note_userland(ask, &mut arms[0]);
    if with_a_prime {
        arms.push(host(A_PRIME));
    }
    arms.extend(user_container::copy(ask));
    arms.push(ask.env_arm(first));
    arms
}

/// A study that tries suspects, and the suspects that had to wait.
#[derive(Debug)]
pub struct Round {
    /// The study.
    pub study: Study,
    /// Suspects for another round.
    pub waiting: Vec<SuspectTrial>,
}

impl Round {
    /// The number of arms that switch a suspect off.
    pub fn n_tried(&self) -> usize {
        let arms = self.study.arms.iter();
        arms.filter(|arm| !arm.role.suspects.is_empty() && !arm.required)
            .count()
    }

    /// Whether it has steps of the ladder.
    pub fn has_steps(&self) -> bool {
        let mut arms = self.study.arms.iter();
        arms.any(|arm| !arm.required && arm.role.rung.is_some())
    }

    /// Whether another round would have something to try.
    pub fn is_open(&self) -> bool {
        self.waiting.iter().any(|trial| trial.arm.is_some())
    }
}

/// Host and environment with suspects switched off and, once, every step between, as far as six blocks of them fit.
/// `None` if not even one more arm does.
pub(super) fn round(
    ask: &Ask,
    first: &First,
    before: Before,
    trials: &[SuspectTrial],
    left_ns: u64,
) -> Option<Round> {
    let pace = before.pace;
    let six = u64::from(FEWEST);
    let with_start_up = trials
        .iter()
        .take(SUSPECTS_MOST)
        .any(|trial| trial.suspect.is_of_start_up());
    let life_ns = if with_start_up { pace.life_ns } else { 0 };
    // Every other arm is assumed to be as slow as the environment.
    let arm_block_ns = pace.env_ns.max(pace.host_ns) + life_ns;
    let per_arm_ns = pace.life_ns + six * arm_block_ns;
    let base_block_ns = pace.host_ns + pace.env_ns + life_ns;
    let base_ns = pace.life_ns + six * base_block_ns;
    let safe_ns = whole_part(left_ns as f64 * SAFE);
    let mut room = whole_size(safe_ns.checked_sub(base_ns)? / per_arm_ns.max(1));
    let mut arms = Arms::new(base_arms(ask, first, room > A_PRIME_ROOM), before.n_arms);
    let env = arms.specs.len() - 1;
    // Steps that are all ended early cannot be distinguished.
    let mut steps = if before.has_ladder || first.cut_ns.is_some() {
        Vec::new()
    } else {
        ladder::steps(&ask.driver, &ask.settings, &first.env.facts)
    };
    if room == 0 || (steps.is_empty() && trials.iter().all(|trial| trial.arm.is_none())) {
        return None;
    }
    // A third of the arms is left for the ladder, which also shows causes without a rule.
    let for_suspects = if before.has_ladder {
        room
    } else {
        (room * 2).div_ceil(3)
    };
    let mut n_tried = 0;
    let (mut waiting, mut untried) = (Vec::new(), Vec::new());
    for trial in trials {
        let mut suspect = trial.suspect.clone();
        match &trial.arm {
            Some(tried) if n_tried < for_suspects.min(SUSPECTS_MOST) && room > 0 => {
                let (is_new, _) = arms.put("off", tried, |role| role.suspects.push(suspect));
                n_tried += 1;
                room -= usize::from(is_new);
                continue;
            }
            Some(_) => {
                suspect.tried = format!("{}: no time for it within the budget", suspect.tried);
            }
            None => {}
        }
        waiting.push(trial.clone());
        untried.push(suspect);
    }
    if first.host.report.stdout.0.len() <= CHATTY_BYTES {
        // Without output the log driver is not a step.
        for step in &mut steps {
            if step.needs_output {
                step.weight = 0;
            }
        }
    }
    for (place, step) in (1..).zip(ladder::fitted(steps, room)) {
        let rung = Rung {
            place,
            title: step.title,
        };
        if step.settings == ask.settings {
            arms.specs[env].role.rung = Some(rung);
            continue;
        }
        let tried = ask.tried(step.settings);
        arms.put("rung", &tried, |role| role.rung = Some(rung));
    }
    arms.specs[env].role.suspects = untried;
    let n_more = (arms.specs.len() - 2) as u64;
    let mut study = ask.study("the command with each mechanism in turn", arms.specs, first);
    if with_start_up {
        study.workloads.push(start_up());
    }
    let n_waiting = waiting.iter().filter(|trial| trial.arm.is_some()).count() as u64;
    let another_ns = base_ns + n_waiting * per_arm_ns;
    let starts_ns = (n_more + 1) * pace.life_ns;
    let block_ns = (base_block_ns + n_more * arm_block_ns).max(1);
    let spare = safe_ns.saturating_sub(another_ns + starts_ns) / block_ns;
    study.blocks_max = if n_waiting > 0 && spare >= six {
        // The rest of the time is for the suspects that wait.
        u32::try_from(spare).unwrap_or(u32::MAX).min(ROUND_MOST)
    } else {
        before.enough
    };
    pace.plan_launches(ask, &mut study, safe_ns);
    study.budget_ns = Some(left_ns);
    Some(Round { study, waiting })
}

/// Arms under construction; identical ones are merged.
pub(super) struct Arms {
    specs: Vec<ArmSpec>,
    /// Number of arms in earlier studies of the same answer.
    n_before: usize,
}

impl Arms {
    /// Starts with the two sides, the baseline first; `n_before` arms were in earlier studies.
    pub(super) fn new(specs: Vec<ArmSpec>, n_before: usize) -> Self {
        Self { specs, n_before }
    }

    /// All arms.
    pub(super) fn into_specs(self) -> Vec<ArmSpec> {
        self.specs
    }

    /// Adds an arm, if possible under the name of an earlier study, so that its blocks continue the same arm. Returns
    /// its name.
    pub(super) fn put_as(
        &mut self,
        known: Option<&String>,
        prefix: &str,
        tried: &TriedArm,
        note: impl FnOnce(&mut Role),
    ) -> String {
        let (is_new, name) = self.put(prefix, tried, note);
        let (true, Some(known)) = (is_new, known) else {
            return name;
        };
        if let Some(arm) = self.specs.last_mut() {
            arm.id = arm_id(known);
        }
        known.clone()
    }

    /// Adds an arm or finds an identical one, and lets `note` write its role. Returns whether it is new, and its
    /// name.
    pub(super) fn put(
        &mut self,
        prefix: &str,
        tried: &TriedArm,
        note: impl FnOnce(&mut Role),
    ) -> (bool, String) {
        // The baseline is never shared.
        let same = self.specs.iter_mut().skip(1).find(|arm| {
            (&arm.driver, &arm.settings) == (&tried.driver, &tried.settings)
                && arm.id.as_str() != A_PRIME
                && arm.change == tried.change
        });
        if let Some(arm) = same {
            note(&mut arm.role);
            return (false, arm.id.to_string());
        }
        let number = self.n_before + self.specs.len();
        let name = format!("{prefix}-{number}");
        let mut spec = tried.clone().named(arm_id(&name));
        note(&mut spec.role);
        self.specs.push(spec);
        (true, name)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use tare_model::arm::Suspect;
    use tare_model::{ArmId, CommandCall, CommandChange, command::Stdout};

    use super::super::more_blocks;
    use super::super::observed::Observed;
    use super::*;
    use crate::testing::raw;
    use crate::workload::{command_output::report, user_command};

    pub(crate) fn first(wall_ns: u64) -> First {
        let look = Observed {
            report: report(&raw(0, b"out", b"")).unwrap(),
            wall_ns,
            counters: BTreeMap::new(),
            facts: tare_model::Facts::new(),
        };
        First {
            host: look.clone(),
            env: look,
            life_ns: SECOND,
            cut_ns: None,
            is_fresh: false,
            base_differs: None,
            remarks: Vec::new(),
            in_slices: Err("sleeps".into()),
        }
    }

    pub(crate) fn ask(driver: &str, settings: Params) -> Ask {
        Ask {
            command: vec!["work".into()],
            driver: driver.into(),
            settings,
            program: None,
            metric: user_command::WALL.into(),
            budget_ns: 120_000_000_000,
            seed: 1,
            call: CommandCall::new("/bin/work", [""; 0]),
            carried: vec!["carried".into()],
            instead: Vec::new(),
            own: None,
        }
    }

    fn suspect(cause: &str, settings: Params) -> SuspectTrial {
        SuspectTrial {
            suspect: Suspect {
                cause: cause.into(),
                likelihood: 0.9,
                metric: user_command::WALL.into(),
                tried: "tried".into(),
                ..Suspect::default()
            },
            arm: Some(TriedArm {
                driver: "docker".into(),
                settings,
                change: CommandChange {
                    stdout: Some(Stdout::Console),
                    ..CommandChange::default()
                },
            }),
        }
    }

    pub(crate) const SECOND: u64 = 1_000_000_000;

    /// The state after a first comparison whose trials took `trial_ns` on either side.
    fn before(trial_ns: u64) -> Before {
        Before {
            pace: Pace::of_one(&first(trial_ns)),
            n_arms: 3,
            has_ladder: false,
            enough: 20,
        }
    }

    fn suspects(number: i64) -> Vec<SuspectTrial> {
        (0..number)
            .map(|number| suspect("a.cause", Params::new().with("shm", 4096 + number)))
            .collect()
    }

    fn count(study: &Study, prefix: &str) -> usize {
        let arms = study.arms.iter();
        arms.filter(|arm| arm.id.as_str().starts_with(prefix))
            .count()
    }

    #[test]
    fn first_study_of_one_second_command_fits_25_seconds() {
        let ask = ask("docker", Params::new());
        let study = first_study(&ask, &first(SECOND), 115 * SECOND).unwrap();
        assert!(study.blocks_max >= FEWEST);
        let trials = study.arms.len() as u64 * u64::from(study.blocks_max);
        assert!(trials * SECOND <= 25 * SECOND, "{trials} trials");
        assert_eq!(study.workloads.len(), 2, "with start-up");
    }

    #[test]
    fn six_blocks_of_both_sides_come_before_anything_else() {
        let mut ask = ask("docker", Params::new());
        ask.budget_ns = 30 * SECOND;
        // Six blocks take 13 of the 20 seconds: no A/A control, no start-up, and no further arm.
        let study = first_study(&ask, &first(SECOND), 20 * SECOND).unwrap();
        assert_eq!((study.arms.len(), study.workloads.len()), (2, 1));
        assert_eq!(study.blocks_max, FEWEST);
        // The whole time remains available, in case the machine is slower than at the first look.
        assert_eq!(study.budget_ns, Some(20 * SECOND));
        assert!(
            round(
                &ask,
                &first(SECOND),
                before(SECOND),
                &suspects(3),
                6 * SECOND
            )
            .is_none()
        );
    }

    #[test]
    fn five_minute_command_needs_time_for_six_blocks() {
        let mut ask = ask("docker", Params::new());
        let long = first(300 * SECOND);
        let pace = Pace::of_one(&long);
        assert_eq!(first_study(&ask, &long, 115 * SECOND), None);
        assert_eq!(
            more_blocks::closer(&ask, &long, pace, (60 * SECOND, 6), true),
            None
        );
        ask.budget_ns = 36_000 * SECOND;
        let study = first_study(&ask, &long, 35_000 * SECOND).unwrap();
        assert!(study.blocks_max >= FEWEST && study.arms.len() >= 2);
    }

    #[test]
    fn equal_suspects_and_steps_share_one_arm() {
        let settings = Params::new().with("cpus", 0.5);
        let ask = ask("docker", settings);
        let without = Params::new();
        let trials = [
            suspect("cpu.one", without.clone()),
            suspect("cpu.two", without),
        ];
        let found = round(&ask, &first(SECOND), before(SECOND), &trials, 90 * SECOND).unwrap();
        let off: Vec<&ArmSpec> = found
            .study
            .arms
            .iter()
            .filter(|arm| arm.id.as_str().starts_with("off"))
            .collect();
        assert_eq!((off.len(), found.n_tried()), (1, 1));
        assert_eq!(off[0].role.suspects.len(), 2);
        // The step below the quota is the same environment.
        assert!(off[0].role.rung.is_some(), "{:?}", off[0]);
    }

    #[test]
    fn short_round_prefers_suspects_over_ladder_steps() {
        let ask = ask("docker", Params::new().with("cpus", 0.5));
        let first = first(SECOND);
        let found = round(&ask, &first, before(SECOND), &suspects(4), 50 * SECOND).unwrap();
        assert!(count(&found.study, "off") >= 2, "{:?}", found.study.arms);
        assert!(
            count(&found.study, "rung") < count(&found.study, "off"),
            "{:?}",
            found.study.arms
        );
        let env = found
            .study
            .arms
            .iter()
            .find(|arm| arm.id.as_str() == "docker")
            .unwrap();
        let left = &env.role.suspects;
        assert_eq!(left.len() + count(&found.study, "off"), 4);
        assert!(left[0].tried.contains("no time"));
        assert_eq!(found.waiting.len(), left.len());
    }

    #[test]
    fn waiting_suspects_are_tested_in_the_next_round() {
        let ask = ask("docker", Params::new());
        let first = first(SECOND / 10);
        let now = before(SECOND / 10);
        let found = round(&ask, &first, now, &suspects(8), 60 * SECOND).unwrap();
        assert!(found.is_open());
        assert_eq!(count(&found.study, "off"), SUSPECTS_MOST);
        assert!(
            found.study.blocks_max <= ROUND_MOST,
            "time is left for them"
        );
        let later = Before {
            n_arms: now.n_arms + found.study.arms.len(),
            has_ladder: true,
            ..now
        };
        let another = round(&ask, &first, later, &found.waiting, 30 * SECOND).unwrap();
        assert_eq!(
            (count(&another.study, "off"), another.is_open()),
            (2, false)
        );
        assert_eq!(count(&another.study, "rung"), 0, "the ladder was climbed");
        // No suspect is waiting any more: as many blocks as the shares need.
        assert_eq!(another.study.blocks_max, later.enough);
        let known: Vec<&ArmId> = found.study.arms.iter().map(|arm| &arm.id).collect();
        let mut arms = another.study.arms.iter().filter(|arm| !arm.required);
        assert!(arms.all(|arm| arm.id.as_str() == A_PRIME || !known.contains(&&arm.id)));
    }
}
