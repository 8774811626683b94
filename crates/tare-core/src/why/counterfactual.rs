//! Suspects and their trials: which arm switches a suspect off, and what that proves.
//!
//! Each suspect becomes one more arm of the same randomised blocks, most likely first. Let C be the environment's
//! overhead over the host, and R the part that goes away when the suspect is switched off (or appears when it is
//! switched on outside). Both are paired by block, and R is taken as a share of C in the same blocks. Then
//! - *confirmed*: R is surely more than a quarter of C (one-sided at 5 %, by Holm over the suspects tried in this
//!   answer) and at least half of it by its estimate;
//! - *supported*: R and its share of C are above zero, but the share is not surely large enough for a cause;
//! - *refuted*: the 95 % interval of R's share of C is below one half, and R may be zero;
//! - *undecided*: R may be zero and may be half of C: the trial neither supports nor refutes;
//! - *untested*: nothing was tried, with the reason.
//!
//! Limits: if two causes slow the command only together, switching off either removes all of it; both are confirmed,
//! with shares that sum to more than one.

use tare_model::arm::Suspect;
use tare_model::dossier::DossierFinding;
use tare_model::fact;
use tare_model::{ArmId, ArmSpec, CommandChange, Params, Status, Value};
use tare_stats::{Interval, holm};

use super::readings::{Readings, span};
use super::total::{Removed, Total};
use crate::cause::switch::{is_over, target};
use crate::cause::{self, Case, Counterfactual, Suspicion};
use crate::driver::user_container;

/// The smallest share of the overhead that confirms a cause.
pub const MOST: f64 = 0.5;

/// How often an answer may confirm a suspect that causes a quarter of the overhead at most.
const FALSE_CONFIRMATIONS: f64 = 0.05;

/// Suspicions below this likelihood are dropped: they would take an arm from a better suspect.
const LEAST: f64 = 0.15;
/// A suspicion is dropped if suspicions this many times as likely explain all of its cells.
const OUTDONE: f64 = 5.0;

/// The baseline's driver.
const HOST: &str = "host";

/// A suspect with the arm that tries it; `None` if it cannot be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspectTrial {
    /// The suspect.
    pub suspect: Suspect,
    /// The arm.
    pub arm: Option<TriedArm>,
}

/// An arm that tries a suspect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriedArm {
    /// Its driver.
    pub driver: String,
    /// Its settings.
    pub settings: Params,
    /// Its changes to the command.
    pub change: CommandChange,
}

impl TriedArm {
    /// The arm under this name.
    pub(super) fn named(self, id: ArmId) -> ArmSpec {
        ArmSpec {
            change: self.change,
            ..ArmSpec::new(id, self.driver, self.settings)
        }
    }
}

/// All suspects, most likely first. `metric` is the one that was asked for; a suspicion about cells of another metric
/// is tried on that.
pub fn suspects(case: &Case<'_>, metric: &str, env: &ArmSpec) -> Vec<SuspectTrial> {
    cause::likely_suspicions(case, LEAST, OUTDONE)
        .into_iter()
        .map(|(cause, suspicion)| {
            let metrics: Vec<&str> = suspicion
                .cells
                .iter()
                .filter_map(|index| case.cells.get(*index))
                .map(|cell| cell.metric.as_str())
                .collect();
            // A suspicion can be about less than the command, such as start-up.
            let metric = if metrics.is_empty() || metrics.contains(&metric) {
                metric
            } else {
                metrics.last().copied().unwrap_or(metric)
            };
            SuspectTrial::new(cause.id, &suspicion, metric, env)
        })
        .collect()
}

impl SuspectTrial {
    /// A suspicion in `env` that is about `metric`.
    pub fn new(cause: &str, suspicion: &Suspicion, metric: &str, env: &ArmSpec) -> Self {
        let (tried, arm) = arm_of(&suspicion.counterfactual, env);
        Self {
            suspect: Suspect {
                cause: cause.to_owned(),
                claim: suspicion.claim.clone(),
                size: suspicion.size.clone(),
                evidence: suspicion.evidence.clone(),
                likelihood: suspicion.likelihood,
                advice: suspicion.advice.clone(),
                price: suspicion.price.clone(),
                metric: metric.to_owned(),
                tried,
                is_outside: arm.as_ref().is_some_and(|arm| arm.driver == HOST),
            },
            arm,
        }
    }
}

/// The arm in a user's container, whose differences are the switches; nothing is tried outside of it.
fn arm_of_own(
    counterfactual: &Counterfactual,
    env: &ArmSpec,
) -> Result<(String, TriedArm), String> {
    match counterfactual {
        Counterfactual::Settings(changes) => {
            let arm = TriedArm {
                driver: env.driver.clone(),
                settings: user_container::changed(&env.settings, changes)?,
                change: env.change.clone(),
            };
            Ok((format!("a container like it with {}", words(changes)), arm))
        }
        Counterfactual::Variables(_)
        | Counterfactual::Prefix(_)
        | Counterfactual::NotHere(_) => arm_inside(counterfactual, env),
        _ => Err(
            "it is tried outside of the container, and a command that was written for it is not run there unasked"
                .to_owned(),
        ),
    }
}

/// What is tried, in words, and its arm.
fn arm_of(counterfactual: &Counterfactual, env: &ArmSpec) -> (String, Option<TriedArm>) {
    let found = if user_container::is_own(&env.settings) {
        arm_of_own(counterfactual, env)
    } else {
        arm_inside(counterfactual, env)
    };
    match found {
        Ok((tried, arm)) => (tried, Some(arm)),
        Err(why) => (format!("not possible here: {why}"), None),
    }
}

fn arm_inside(
    counterfactual: &Counterfactual,
    env: &ArmSpec,
) -> Result<(String, TriedArm), String> {
    let inside = |settings: Params| TriedArm {
        driver: env.driver.clone(),
        settings,
        change: CommandChange {
            // The output's destination and the packed program belong to the changed arm, not to the change.
            stdout: env.change.stdout,
            program: env.change.program.clone(),
            ..CommandChange::default()
        },
    };
    let outside = || TriedArm {
        driver: HOST.to_owned(),
        ..TriedArm::default()
    };
    let behind = |mut arm: TriedArm, prefix: &[String]| {
        arm.change.prefix = prefix.to_vec();
        arm
    };
    let own = || inside(env.settings.clone());
    let (tried, arm) = match counterfactual {
        Counterfactual::Settings(changes) => (
            format!("the same environment with {}", words(changes)),
            inside(changed(&env.settings, changes)),
        ),
        Counterfactual::Variables(variables) => {
            let mut arm = own();
            arm.change.variables.clone_from(variables);
            let texts: Vec<String> = variables
                .iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect();
            (
                format!("the same environment with {}", texts.join(" ")),
                arm,
            )
        }
        Counterfactual::Prefix(prefix) => (
            format!(
                "the same environment with the command behind `{}`",
                prefix.join(" ")
            ),
            behind(own(), prefix),
        ),
        Counterfactual::HostProgram => (
            "the same environment with the host's own program and what it loads".to_owned(),
            inside(with_host_program(env)),
        ),
        Counterfactual::BaselineSettings(changes) => (
            format!("the host with {}", words(changes)),
            TriedArm {
                settings: changed(&Params::new(), changes),
                ..outside()
            },
        ),
        Counterfactual::BaselinePrefix(prefix) => (
            format!("the host with the command behind `{}`", prefix.join(" ")),
            behind(outside(), prefix),
        ),
        Counterfactual::BaselineCold(files) => {
            let mut arm = outside();
            arm.change.cold.clone_from(files);
            let what = match files.as_slice() {
                [file] => format!("`{}`", file.escape_debug()),
                _ => format!("the {} files that were read", files.len()),
            };
            (
                format!("the host with {what} dropped from the page cache before each run"),
                arm,
            )
        }
        Counterfactual::NotHere(why) => return Err(why.clone()),
    };
    Ok((tried, arm))
}

/// Removes the user's image and bind mounts that hide the program, and mounts what the host's program needs.
fn with_host_program(env: &ArmSpec) -> Params {
    let mut settings = env.settings.clone();
    let had_image = settings.0.remove("image").is_some();
    let program = env.role.seen.get(fact::COMMAND_PROGRAM);
    let program = program.map_or("", String::as_str);
    let mut binds: Vec<String> = settings
        .words("binds")
        .into_iter()
        .map(|bind| match target(&bind) {
            Some(at) if is_over(&bind, program) => format!("{at}:{at}:ro"),
            _ => bind,
        })
        .collect();
    if let Some(asked) = env.role.asked.as_ref().filter(|_| had_image) {
        let taken = |bind: &str| binds.iter().any(|own| target(own) == target(bind));
        let more = asked.host_files.iter().filter(|bind| !taken(bind));
        let more: Vec<String> = more.cloned().collect();
        binds.extend(more);
    }
    let binds = binds.into_iter().map(Value::Text).collect();
    settings.with("binds", Value::List(binds))
}

/// Settings with changes; an empty text removes a setting.
fn changed(settings: &Params, changes: &Params) -> Params {
    let mut settings = settings.clone();
    for (name, value) in &changes.0 {
        if *value == Value::Text(String::new()) {
            settings.0.remove(name);
        } else {
            settings.0.insert(name.clone(), value.clone());
        }
    }
    settings
}

fn words(changes: &Params) -> String {
    let words: Vec<String> = changes
        .0
        .iter()
        .map(|(name, value)| {
            if *value == Value::Text(String::new()) {
                format!("no `{name}`")
            } else if matches!(value, Value::List(_)) {
                // The list may hold every folder of the userland; the study stores them all.
                format!("other `{name}`")
            } else {
                format!("`{name} = {}`", value.to_string().escape_debug())
            }
        })
        .collect();
    words.join(" and ")
}

/// Applies the rule of the module documentation. `removed` is R, `share` its share of the overhead, and `p` the
/// p-value of the share being a quarter at most, corrected for the other suspects tried.
pub fn status(removed: Option<&Interval>, share: Option<&Interval>, p: Option<f64>) -> Status {
    let Some(removed) = removed else {
        return Status::Untested;
    };
    // In these blocks the overhead itself may be zero.
    let Some(share) = share else {
        return Status::Undecided;
    };
    let is_cause = p.is_some_and(|p| p <= FALSE_CONFIRMATIONS);
    if is_cause && removed.low > 0.0 && share.point >= MOST {
        Status::Confirmed
    } else if removed.low > 0.0 && share.low > 0.0 {
        Status::Supported
    } else if share.high < MOST {
        Status::Refuted
    } else {
        Status::Undecided
    }
}

/// The part of a total that went away with the suspect switched off, or appeared with it switched on outside.
fn removed(
    suspect: &Suspect,
    arm: &str,
    (baseline, env): (&str, &str),
    total: &Total,
    readings: &Readings,
) -> Option<Removed> {
    let (earlier, later) = if suspect.is_outside {
        (baseline, arm)
    } else {
        (arm, env)
    };
    total.without(&readings.differences(earlier, later, &suspect.metric))
}

/// Holm's p of the suspect in `arm`; all suspects tried in the same study are one family.
fn corrected(p: f64, arm: &str, (baseline, env): (&str, &str), readings: &Readings) -> f64 {
    let mut family = vec![p];
    let others = readings.tried().filter(|(spec, _)| {
        let id = spec.id.as_str();
        id != arm && id != env
    });
    for (spec, suspect) in others {
        let whole = spec.role.of.as_deref().unwrap_or(env);
        let total = Total::between(readings, baseline, whole, &suspect.metric);
        let sides = (baseline, whole);
        let other = removed(suspect, spec.id.as_str(), sides, &total, readings);
        family.extend(other.and_then(|other| other.p));
    }
    holm(&family).map_or(1.0, |corrected| corrected[0])
}

/// The result of trying a suspect in `arm`, as a share of `total`.
pub fn judged(
    suspect: &Suspect,
    arm: &str,
    baseline: &str,
    env: &str,
    total: &Total,
    readings: &Readings,
) -> DossierFinding {
    let removed = removed(suspect, arm, (baseline, env), total, readings);
    let effect = removed.map(|removed| removed.effect);
    let share = removed.and_then(|removed| removed.share);
    let p = removed.and_then(|removed| removed.p);
    let p = p.map(|p| corrected(p, arm, (baseline, env), readings));
    let mut status = status(effect.as_ref(), share.as_ref(), p);
    // Two runs that were both ended early cannot be compared.
    let is_cut_off = readings.is_cut_off(arm, &suspect.metric);
    if is_cut_off && status == Status::Refuted {
        status = Status::Undecided;
    }
    let mut finding = untested(suspect);
    finding.status = status;
    finding.effect = effect.map(span);
    finding.share = share.map(span);
    finding.arm = Some(arm.to_owned());
    finding.tried = Some(match status {
        Status::Untested => format!("{}: too few blocks have values", suspect.tried),
        Status::Undecided if share.is_none() && !is_cut_off => format!(
            "{}: in those blocks the interval of the cost itself holds 0",
            suspect.tried
        ),
        Status::Undecided if is_cut_off => format!(
            "{}: it was ended at its limit too, and how much faster it is was not seen",
            suspect.tried
        ),
        _ => suspect.tried.clone(),
    });
    finding
}

/// A finding for a suspect that was not tried.
pub fn untested(suspect: &Suspect) -> DossierFinding {
    DossierFinding {
        cause: suspect.cause.clone(),
        status: Status::Untested,
        cells: Vec::new(),
        claim: suspect.claim.clone(),
        evidence: suspect.evidence.clone(),
        effect: None,
        advice: suspect.advice.clone(),
        price: suspect.price.clone(),
        share: None,
        arm: None,
        tried: Some(suspect.tried.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tare_model::command::Stdout;

    fn interval_of(low: f64, point: f64, high: f64) -> Interval {
        Interval::new(low, point, high, 0.95)
    }

    #[test]
    fn the_status_follows_the_rule() {
        let positive = interval_of(1.0, 2.0, 3.0);
        let nothing = interval_of(-1.0, 0.1, 1.0);
        for (removed, share, p, expected) in [
            (
                positive,
                interval_of(0.6, 0.9, 1.1),
                0.01,
                Status::Confirmed,
            ),
            (
                positive,
                interval_of(0.4, 0.5, 0.6),
                0.05,
                Status::Confirmed,
            ),
            // Half of it by the estimate, but possibly only a fifth.
            (
                positive,
                interval_of(0.2, 0.6, 1.1),
                0.06,
                Status::Supported,
            ),
            (
                positive,
                interval_of(0.3, 0.4, 0.6),
                0.01,
                Status::Supported,
            ),
            // Any share of an overhead near zero may have gone, including none.
            (
                positive,
                interval_of(-1.0, 0.9, 1.5),
                0.06,
                Status::Undecided,
            ),
            (nothing, interval_of(-0.2, 0.0, 0.2), 0.9, Status::Refuted),
            (nothing, interval_of(-0.4, 0.2, 0.8), 0.5, Status::Undecided),
            (nothing, interval_of(-0.4, 0.7, 1.8), 0.2, Status::Undecided),
        ] {
            let found = status(Some(&removed), Some(&share), Some(p));
            assert_eq!(found, expected, "{share:?}");
        }
        assert_eq!(status(None, None, None), Status::Untested);
        assert_eq!(status(Some(&positive), None, None), Status::Undecided);
    }

    fn env() -> ArmSpec {
        let settings = Params::new().with("cpus", 0.5).with("memory", "64m");
        let mut env = ArmSpec::new(ArmId::new("docker").unwrap(), "docker", settings).required();
        env.change.stdout = Some(Stdout::Console);
        env.change.cold = vec!["/own".to_owned()];
        env
    }

    #[test]
    fn counterfactual_changes_only_named_settings() {
        let of = |counterfactual: Counterfactual| {
            let (words, arm) = arm_of(&counterfactual, &env());
            (words, arm.unwrap())
        };
        let console = CommandChange {
            stdout: Some(Stdout::Console),
            ..CommandChange::default()
        };
        let off = Params::new().with("cpus", "").with("shm", "1g");
        let (words, arm) = of(Counterfactual::Settings(off));
        assert_eq!(words, "the same environment with no `cpus` and `shm = 1g`");
        assert_eq!(arm.driver, "docker");
        let expected = Params::new().with("memory", "64m").with("shm", "1g");
        assert_eq!((arm.settings, arm.change), (expected, console));
        let variables = BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "1".to_owned())]);
        let (_, arm) = of(Counterfactual::Variables(variables.clone()));
        assert_eq!(arm.change.variables, variables);
        let (_, arm) = of(Counterfactual::BaselinePrefix(vec!["x".into()]));
        assert_eq!((arm.driver.as_str(), arm.change.stdout), ("host", None));
        let (words, arm) = of(Counterfactual::BaselineCold(vec!["/data".into()]));
        assert!(words.contains("`/data` dropped"), "{words}");
        assert_eq!(
            (arm.driver.as_str(), arm.change.cold),
            ("host", vec!["/data".to_owned()])
        );
        let (words, arm) = arm_of(&Counterfactual::NotHere("no AppArmor".into()), &env());
        assert_eq!(
            (words.as_str(), arm),
            ("not possible here: no AppArmor", None)
        );
    }
}
