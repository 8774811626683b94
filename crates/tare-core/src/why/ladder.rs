//! The ladder: the steps from the bare process to the whole environment, one mechanism each.
//!
//! The driver lists its mechanisms and how each is switched off. The first step has all of them off and includes
//! everything that cannot be switched off; each further step switches one on. The user's settings come last, one step
//! each. All steps are arms of the same randomised blocks, so a step's contribution is a paired difference, and the
//! contributions add up to the total apart from noise.
//! Limits: an overhead that appears only together with a later step is counted for the later one.

use tare_model::fact;
use tare_model::{Facts, Params, Value};

use crate::driver::mechanism::{Kind, is_confined};
use crate::driver::{self, Mechanism};

mod step_costs;

pub use step_costs::climbed;

/// A step of the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The mechanism or setting that it adds.
    pub title: String,
    /// The settings of the arm that has everything up to this step, without those of the command.
    pub settings: Params,
    /// Its importance: if there is no time for all steps, the one with the least weight is joined with the next.
    pub weight: u32,
    /// Whether the step is omitted if nothing is printed.
    pub needs_output: bool,
}

/// The weight of a step for the whole environment.
const WHOLE: u32 = 9;

/// Settings without a step: where files and programs come from.
const NO_STEP: [&str; 9] = tare_model::rows! {
    "binds", "image", "programs", "packages", "files", "lower_file", "context", "platform", "port",
};

/// A container's entry point, and how long it may take to obey the request to stop; the second has no meaning without
/// the first.
const ENTRY: &str = "entry";
const STOP_AFTER: &str = "stop_after";

/// The steps of an environment with these settings, from the bottom; the last is the environment itself. `facts` are
/// the environment's.
pub fn steps(driver: &str, settings: &Params, facts: &Facts) -> Vec<Step> {
    let mut steps = of_mechanisms(driver, settings, facts);
    // The user's settings, one after the other, except those that a step above already has.
    let mut so_far = steps
        .last()
        .map_or_else(Params::new, |step| step.settings.clone());
    let mut names: Vec<&String> = settings.0.keys().collect();
    names.sort_by_key(|name| late(name));
    for name in names {
        let Some(value) = settings.value(name) else {
            continue;
        };
        if so_far.value(name) == Some(value) {
            continue;
        }
        so_far = so_far.with(name, value.clone());
        // A program that does not end gets the user's stop timeout, not the engine's.
        if let (ENTRY, Some(patience)) = (name.as_str(), settings.value(STOP_AFTER)) {
            so_far = so_far.with(STOP_AFTER, patience.clone());
        }
        steps.push(Step {
            title: format!("{name} = {}", shortened(value)),
            settings: so_far.clone(),
            weight: 10,
            needs_output: false,
        });
    }
    // The last step has the environment's settings; at most, defaults that were spelt out differ.
    if let Some(last) = steps.last_mut() {
        last.settings = settings.clone();
    }
    steps
}

/// The order of settings: limits come last, because they affect everything below them.
fn late(name: &str) -> u32 {
    match name {
        "cpus" => 3,
        "cpuset" => 2,
        "memory" => 1,
        _ => 0,
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(24).collect();
    if short.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

/// The driver's mechanisms, switched on one after the other. A mechanism with a user's setting stays off until the
/// step of that setting.
fn of_mechanisms(driver: &str, settings: &Params, facts: &Facts) -> Vec<Step> {
    let mechanisms = driver::mechanisms(driver);
    let kept: Vec<&str> = NO_STEP.iter().chain(mechanisms.keeps).copied().collect();
    let mut so_far = settings.clone();
    so_far.0.retain(|name, _| kept.contains(&name.as_str()));
    let step = |title: String, settings: &Params, weight: u32, needs_output: bool| Step {
        title,
        settings: settings.clone(),
        weight,
        needs_output,
    };
    let base = (mechanisms.base)(settings);
    let own = mechanisms
        .whole_with
        .and_then(|name| Some((name, settings.value(name)?)));
    if let Some((name, value)) = own {
        return vec![step(base, &so_far.with(name, value.clone()), WHOLE, false)];
    }
    let here = |mechanism: &&Mechanism| (mechanism.is_here)(facts);
    let all: Vec<&Mechanism> = mechanisms.all.iter().filter(here).collect();
    for (name, set) in all.iter().flat_map(|mechanism| mechanism.off) {
        so_far = so_far.with(name, *set);
    }
    let mut steps = vec![step(base, &so_far, mechanisms.weight, false)];
    for mechanism in all {
        let mut names = mechanism.off.iter().map(|(name, _)| *name);
        if names.clone().any(|name| settings.value(name).is_some()) {
            continue;
        }
        names.by_ref().for_each(|name| {
            so_far.0.remove(name);
        });
        let needs_output = mechanism.kind == Kind::Output;
        let title = mechanism.title.to_owned();
        steps.push(step(title, &so_far, mechanism.weight, needs_output));
    }
    steps
}

/// Joins steps until at most `room` arms remain in addition to the environment's.
pub fn fitted(mut steps: Vec<Step>, room: usize) -> Vec<Step> {
    while steps.len() > room + 1 {
        // The last step is the environment and stays.
        let below = 0..steps.len() - 1;
        let Some(least) = below.min_by_key(|index| steps[*index].weight) else {
            break;
        };
        let dropped = steps.remove(least);
        let next = &mut steps[least];
        next.title = format!("{} + {}", dropped.title, next.title);
        next.weight = next.weight.max(dropped.weight);
    }
    steps
}

/// The parts of an environment that no step separates, with the reason.
fn together(driver: &str, facts: &Facts) -> Vec<String> {
    let mechanisms = driver::mechanisms(driver);
    let mut together: Vec<String> = mechanisms
        .together
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    // The kernel reports a process's label only if a module provides one.
    match facts.get(fact::LSM_LABEL) {
        Some(_) if is_confined(facts) && mechanisms.find(Kind::AccessControl).is_some() => {}
        Some(label) => together.push(format!(
            "AppArmor and SELinux: the label is `{}` in every step",
            label.trim().escape_debug()
        )),
        None => together.push(
            "AppArmor and SELinux: not available here, the kernel runs neither or does not tell"
                .to_owned(),
        ),
    }
    together
}

#[cfg(test)]
mod tests {
    use super::super::readings::{ByBlock, joint};
    use super::step_costs::{common_blocks, sum_interval, sum_of};
    use super::*;
    use crate::testing::in_one_launch;

    fn titles(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.title.as_str()).collect()
    }

    #[test]
    fn docker_steps_end_with_user_settings_and_quota_last() {
        let settings = Params::new()
            .with("cpus", 0.5)
            .with("memory", "64m")
            .with("binds", "/w:/w");
        let steps = steps("docker", &settings, &Facts::new());
        let last = &titles(&steps)[steps.len() - 2..];
        assert_eq!(last, ["memory = 64m", "cpus = 0.5"]);
        assert_eq!(steps.last().unwrap().settings, settings);
        assert!(
            steps
                .iter()
                .all(|step| step.settings.value("binds").is_some())
        );
        assert_eq!(steps[0].settings.text("network"), Some("host"));
        assert_eq!(steps[1].settings.value("seccomp"), None);
    }

    #[test]
    fn ladder_steps_set_entry_and_stop_after_together() {
        let settings = Params::new()
            .with("entry", "sleep infinity")
            .with("memory", "64m")
            .with("stop_after", 1_i64);
        let steps = steps("docker", &settings, &Facts::new());
        for step in &steps {
            let has = |name: &str| step.settings.value(name).is_some();
            assert_eq!(has("entry"), has("stop_after"), "{step:?}");
        }
        assert!(
            steps
                .iter()
                .any(|step| step.settings.value("entry").is_some())
        );
        assert_eq!(steps.last().unwrap().settings, settings);
    }

    #[test]
    fn container_steps_end_with_the_requested_settings() {
        let none = Params::new;
        for settings in [
            none().with("binds", "/w:/w"),
            none().with("seccomp", "off").with("cpus", 1i64),
            none().with("network", "host"),
            none().with("namespaces", "mount,pid"),
            none().with("rootfs", "host").with("network", "none"),
        ] {
            let steps = steps("container", &settings, &Facts::new());
            assert_eq!(steps.last().unwrap().settings, settings);
        }
    }

    #[test]
    fn oci_steps_keep_spec_and_end_with_request() {
        for settings in [
            Params::new(),
            Params::new().with("runtime", "crun").with("cpus", 0.5),
            Params::new().with("spec", "docker:box"),
            Params::new().with("seccomp", "off").with("network", "host"),
            Params::new().with("namespaces", "uts"),
        ] {
            let steps = steps("oci", &settings, &Facts::new());
            assert_eq!(steps.last().unwrap().settings, settings);
            let is_one = settings.value("namespaces").is_some();
            assert_eq!(steps.len() >= 4, !is_one, "{settings:?}: {steps:?}");
            for step in &steps {
                for name in ["runtime", "spec"] {
                    assert_eq!(step.settings.value(name), settings.value(name));
                }
            }
        }
    }

    #[test]
    fn ladder_of_common_blocks_sums_with_an_interval() {
        let values = |shift: f64| -> ByBlock {
            (0..12)
                .map(|block| {
                    let value = shift + f64::from(block * 7 % 5);
                    (in_one_launch(block), tare_stats::Differences::one(value))
                })
                .collect()
        };
        let (base, mut middle, whole) = (values(100.0), values(110.0), values(125.0));
        middle.remove(&in_one_launch(3));
        let common = common_blocks(&base, &whole, [middle.clone()].into_iter()).unwrap();
        assert!(common.len() == 11 && !common.contains(&in_one_launch(3)));
        let only = |mut values: ByBlock| {
            values.retain(|block, _| common.contains(block));
            values
        };
        let (base, middle, whole) = (only(base), only(middle), only(whole));
        let step =
            |below: &ByBlock, above: &ByBlock| joint(below, above, |below, above| above - below);
        let steps = [step(&base, &middle), step(&middle, &whole)];
        assert!((sum_of(&steps) - 25.0).abs() < 1e-9);
        let span = sum_interval(&steps, true).unwrap();
        assert!(span.low <= 25.0 && 25.0 <= span.high, "{span:?}");
        // A step with too few blocks does not remove the blocks of the others.
        let few = ByBlock::from([(in_one_launch(0), tare_stats::Differences::one(1.0))]);
        assert_eq!(
            common_blocks(&base, &whole, [few].into_iter())
                .unwrap()
                .len(),
            11
        );
        assert_eq!(sum_interval(&steps, false), None);
    }

    #[test]
    fn apparmor_is_a_step_if_enforced_or_reported_absent() {
        let label = |text: &str| Facts::from([("lsm.label".to_owned(), text.to_owned())]);
        let confined = label("docker-default (enforce)\n");
        let titles_of = |facts: &Facts| {
            let steps = steps("docker", &Params::new(), facts);
            steps.iter().any(|step| step.title.contains("AppArmor"))
        };
        assert!(titles_of(&confined) && !titles_of(&label("unconfined")));
        assert!(!titles_of(&Facts::new()));
        let shown = |facts: &Facts| together("docker", facts).join("\n");
        assert!(shown(&Facts::new()).contains("not available here"));
        assert!(!shown(&confined).contains("AppArmor and"));
    }

    #[test]
    fn ladder_over_budget_merges_all_but_heaviest_steps() {
        let all = steps("docker", &Params::new().with("cpus", 0.5), &Facts::new());
        let few = fitted(all.clone(), 1);
        assert_eq!(few.len(), 2);
        assert_eq!(few.last().unwrap().settings, all.last().unwrap().settings);
        assert!(few[1].title.ends_with("cpus = 0.5"), "{few:?}");
        assert!(few[1].title.contains("seccomp filter"), "{few:?}");
        assert_eq!(fitted(all.clone(), 50), all);
        let none = fitted(all, 0);
        assert_eq!(none.len(), 1);
    }
}
