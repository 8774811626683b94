//! Measures a user's container instead of one of Tare's environments: chooses a baseline for it and finds which of
//! its differences cause the slowdown.
//!
//! The [`baseline`] is the host's program as a bare process if it is the same bytes, else the image's files as a bare
//! process, else the same image as a plain container without any of the differences. Nothing of it is written to: the
//! first two run on an overlay that takes the arm's writes. If the host's program differs, it is one more step below
//! the baseline, the userland, so that no mechanism is blamed for another build.
//! Each difference is a switch. The search ([`search`](super::search)) removes them by bisection in studies whose
//! blocks contain both sides. What it finds is proved again in separate blocks, because among many candidates
//! something is always found.
//! Limits: does not say how the image's program differs from another build of it.

use std::collections::BTreeMap;

use tare_model::arm::{Role, Rung, Suspect};
use tare_model::{ArmSpec, CommandCall, CommandChange, Params};

use super::counterfactual::TriedArm;
use super::fresh::Fresh;
use super::ladder::Step;
use super::{Ask, Base, arm_id};
use crate::driver::user_container::{self, Difference, UserContainer};

pub mod applied;
pub mod baseline;
mod costs;
mod eliminated;
mod evidence;
mod hunt;
mod kinds;
mod likeliest;
mod members;
mod shares;
pub mod sides;
mod sifting;
mod trace;

pub(super) use eliminated::{FAILS, TriedWithout, noted, settle};
pub use hunt::{Hunt, Next, one_more_ns, search_ns, whole_ns};
pub use likeliest::{at_once, likeliest_first};
pub(super) use shares::went;
pub use shares::{PLAIN_BLOCKS, plain_blocks};
pub(super) use sifting::sifted;

/// The name of the baseline if it is the image in a plain container, which otherwise is a step.
pub const PLAIN: &str = "plain";
pub use crate::driver::user_container::IMAGE;
/// The titles of three steps: from a bare process to a container without differences, the last one, and the one below
/// the baseline.
const CONTAINER: &str = "what every container is: cgroups, layers, the engine's runtime";
const OF_ITS_OWN: &str = "what the container has of its own";
const USERLAND: &str = "userland: the image's program, libraries and interpreter";
/// The prefix of a cause that is several differences.
pub(super) const SEVERAL: &str = "own.several";
/// The end of the claim about a single difference, or about several that act only together.
pub(super) const CLAIM: &str = " makes the difference";
/// The beginning of the claim about a set whose members are not separated.
const ONE_OF: &str = "one or several of: ";
/// The part of a claim for differences that act only together.
const TOGETHER: &str = ", only together,";

/// A difference by its description, taken from its claim.
pub(super) fn named(claim: &str) -> String {
    let what = claim.strip_suffix(CLAIM).unwrap_or(claim);
    let what = what.strip_prefix(ONE_OF).unwrap_or(what);
    match what.strip_suffix(TOGETHER) {
        Some(what) => format!("{what} (only together)"),
        None => what.to_owned(),
    }
}

/// The prefixes of arms that search, and of arms that prove what was found.
const TRY: &str = "try";
const PROOF: &str = "proof";
/// The arm with a copy of the running container in question, and the cause for what the container has but its copy
/// lacks.
const COPY: &str = "copy";
const RUNNING: &str = "own.running";

/// What a question about a user's container or sides needs in addition to other questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerQuestion {
    /// Its differences from the baseline.
    pub differences: Vec<Difference>,
    /// For each difference that is part of the command, by id: how an arm without it changes the command.
    pub of_command: BTreeMap<String, CommandChange>,
    /// The baseline.
    pub base: Base,
    /// If the baseline is not a container: the settings of a plain container without the differences, the next step.
    pub plain: Option<Params>,
    /// If the baseline is the image's files: the host's program, which differs but does the same.
    pub userland: Option<Base>,
    /// What the baseline is and why nothing closer to the host, as a clause after "compared with: ".
    pub what: String,
    /// Protections that stay on both sides, each with the name that loosens it.
    pub kept: Vec<(String, String)>,
    /// If the running container itself is measured: the settings of a copy of it, from which differences can be
    /// removed.
    pub copy: Option<Params>,
    /// Why each run needs a new container, if it does.
    pub fresh: Option<Fresh>,
    /// If two sides of the user are compared: how the second one changes the command.
    pub head: CommandChange,
    /// If two sides are compared: how each difference is undone.
    pub undo: BTreeMap<String, sides::Undo>,
}

impl ContainerQuestion {
    /// Notes in the role of an arm what it is suspected of; and the removed differences, if its settings do not
    /// contain them.
    fn note(&self, role: &mut Role, suspect: Suspect, without: &[String]) {
        role.suspects.push(suspect);
        role.of = self.copy.as_ref().map(|_| COPY.to_owned());
        if !self.undo.is_empty() {
            role.without = without.to_vec();
        }
    }
}

/// The command as it runs on both sides.
pub fn call(own: &UserContainer, command: &[String]) -> CommandCall {
    CommandCall {
        argv: if command.is_empty() {
            own.argv.clone()
        } else {
            command.to_vec()
        },
        directory: Some(own.directory.clone()),
        ..CommandCall::default()
    }
}

/// The steps from the baseline up: what the engine does to every container, then this container's differences.
pub(super) fn steps(ask: &Ask, asks: &ContainerQuestion) -> Vec<Step> {
    let is_engines = |difference: &&Difference| difference.id.starts_with("engine.");
    let (engines, own): (Vec<&Difference>, Vec<&Difference>) =
        asks.differences.iter().partition(|it| is_engines(it));
    let step = |title: String, settings: Params| Step {
        title,
        settings,
        weight: 5,
        needs_output: false,
    };
    let plain = asks.plain.as_ref();
    let plain = plain.map(|settings| step(CONTAINER.to_owned(), settings.clone()));
    let settings = asks.copy.as_ref().unwrap_or(&ask.settings);
    let whole = step(OF_ITS_OWN.to_owned(), settings.clone());
    let running = asks.copy.as_ref().map(|_| {
        step(
            "what it has become since it was started".to_owned(),
            ask.settings.clone(),
        )
    });
    if engines.is_empty() || own.is_empty() {
        return plain.into_iter().chain([whole]).chain(running).collect();
    }
    let ids: Vec<String> = own.iter().map(|it| it.id.clone()).collect();
    let engines = step(
        "what the engine does to every container: network, filter, log".to_owned(),
        user_container::without(settings, &ids),
    );
    let steps = plain.into_iter().chain([engines, whole]);
    steps.chain(running).collect()
}

/// The first study's arms in addition to the two sides: the steps between them, and the host's program below the
/// baseline.
pub(super) fn below(ask: &Ask) -> Vec<ArmSpec> {
    let Some(asks) = &ask.own else {
        return Vec::new();
    };
    let plain = asks.plain.as_ref().map(|settings| {
        let mut arm = ask.tried(settings.clone()).named(arm_id(PLAIN));
        arm.role.rung = Some(rung(1, CONTAINER));
        arm
    });
    let userland = asks.userland.as_ref().map(|base| {
        let (id, settings) = (arm_id(base.id), base.settings.clone());
        let mut arm = ArmSpec::new(id, base.driver.as_str(), settings);
        arm.change = ask.change_of(base);
        arm
    });
    userland.into_iter().chain(plain).collect()
}

fn rung(place: i64, title: &str) -> Rung {
    Rung {
        place,
        title: title.to_owned(),
    }
}

/// Notes in the environment that it is the last step, if the first study has steps.
pub(super) fn note_last(ask: &Ask, env: &mut ArmSpec) {
    /// After all other steps.
    const LAST: i64 = 99;
    let asks = ask.own.as_ref();
    if asks.is_some_and(|asks| asks.plain.is_some()) {
        env.role.rung = Some(rung(LAST, OF_ITS_OWN));
    }
}

/// Notes in the baseline that it is a step, if the host's program is below it.
pub(super) fn note_userland(ask: &Ask, base: &mut ArmSpec) {
    let asks = ask.own.as_ref();
    if let Some(userland) = asks.and_then(|asks| asks.userland.as_ref()) {
        base.role.rung = Some(rung(0, USERLAND));
        base.role.of = Some(userland.id.to_owned());
    }
}

/// The arm without these differences.
fn tried(ask: &Ask, asks: &ContainerQuestion, without: &[String]) -> TriedArm {
    if !asks.undo.is_empty() {
        return sides::tried(ask, &asks.head, &asks.undo, without);
    }
    let whole = asks.copy.as_ref().unwrap_or(&ask.settings);
    ask.tried(user_container::without(whole, without))
}

/// The copy of the running container, with the suspect that the copy removes: everything that changed in the
/// container since its start.
pub(super) fn copy(ask: &Ask) -> Option<ArmSpec> {
    let settings = ask.own.as_ref()?.copy.as_ref()?;
    let mut arm = ask.tried(settings.clone()).named(arm_id(COPY));
    let what = "what the running container has become since it was started (its own processes next to the command, its files, its memory)";
    arm.role.suspects.push(Suspect {
        cause: RUNNING.to_owned(),
        claim: format!("{what}{CLAIM}"),
        likelihood: 0.5,
        advice: "start it afresh and compare; if that helps, look at what runs in it (`docker top`), what it wrote (`docker diff`) and what it holds of its limits (`docker stats`)".to_owned(),
        price: "what it holds in memory is lost when it is started afresh".to_owned(),
        metric: ask.metric.clone(),
        tried: "a fresh container like it".to_owned(),
        ..Suspect::default()
    });
    Some(arm)
}

#[cfg(test)]
mod tests;
