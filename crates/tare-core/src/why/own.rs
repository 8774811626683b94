//! A container of the user's own in place of an environment of ours: what it is compared with, and which of its
//! differences carry the cost.
//!
//! It is compared with what is there ([`baseline`]): the host's own program where that is the same bytes, else the image's
//! files as a bare process, else the same image as a plain container, without any of the differences. Nothing of it is
//! written to: the first two are started over files of which an overlay of the arm's own takes what is written. Where
//! the host's program is another one, it stands below the baseline as a step of its own, the userland, so that no
//! mechanism is blamed for another build. Every difference is a switch, so the search ([`search`](super::search))
//! leaves them away part by part in studies whose arms stand in the blocks of both sides. What it finds is proved once
//! more in blocks of its own, because something is always found among many.
//! What it cannot see: in what the image's program differs from another build of it.

use std::collections::BTreeMap;

use tare_model::arm::{Rung, Suspect};
use tare_model::{ArmSpec, CommandCall, CommandChange, Params};

use super::ladder::Step;
use super::{Ask, Base};
use crate::driver::own::{self, Difference, Own};

pub mod applied;
pub mod baseline;
mod costs;
mod eliminated;
mod hunt;
mod members;
mod shares;
pub mod sides;
mod sifting;
mod trace;

pub(super) use eliminated::{FAILS, TriedWithout, noted, settle};
pub use hunt::{Hunt, Next, one_more_ns, search_ns, whole_ns};
pub(super) use shares::went;
pub use shares::{PLAIN_BLOCKS, plain_blocks};
pub(super) use sifting::sifted;

/// The baseline's name where that is the image in a plain container, which is a step elsewhere.
pub const PLAIN: &str = "plain";
pub use crate::driver::own::IMAGE;
/// The step from a bare process to a container without differences; the last step; and the one below the baseline.
const CONTAINER: &str = "what every container is: control groups, layers, the engine's runtime";
const OF_ITS_OWN: &str = "what the container has of its own";
const USERLAND: &str = "userland: the image's program, libraries and interpreter";
/// What the name of a suspect begins with that is several differences.
pub(super) const SEVERAL: &str = "own.several";
/// How the claim about a single difference ends, or about several that only go together.
pub(super) const CLAIM: &str = " makes the difference";
/// How one begins about a set that was not taken apart.
const ONE_OF: &str = "one or several of: ";
/// What the claim says about two that only act together.
const TOGETHER: &str = ", only together,";

/// A difference by what it is, from its claim.
pub(super) fn named(claim: &str) -> String {
    let what = claim.strip_suffix(CLAIM).unwrap_or(claim);
    let what = what.strip_prefix(ONE_OF).unwrap_or(what);
    match what.strip_suffix(TOGETHER) {
        Some(what) => format!("{what} (only together)"),
        None => what.to_owned(),
    }
}

/// What the arms are called that search, and those that prove what was found.
const TRY: &str = "try";
const PROOF: &str = "proof";
/// A copy of the running container that is asked about, beside it; and the cause that is what it has and a copy has
/// not.
const COPY: &str = "copy";
const RUNNING: &str = "own.running";

/// What a question about something of the user's has beside others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asks {
    /// In what it differs from the baseline.
    pub differences: Vec<Difference>,
    /// What an arm changes of the command that does without a difference which is a part of that, by its name.
    pub of_command: BTreeMap<String, CommandChange>,
    /// The baseline.
    pub base: Base,
    /// Where that is no container: the settings of a plain one without the differences, which is the next step.
    pub plain: Option<Params>,
    /// Where the baseline is the image's files: the host's program, which is another one and does the same.
    pub userland: Option<Base>,
    /// What the baseline is and why no barer one, as what follows "compared with: ".
    pub what: String,
    /// What protects the user and so stays on both sides, and the name by which each is loosened.
    pub kept: Vec<(String, String)>,
    /// Where the running container itself is asked about: the settings of a copy of it, which can do without
    /// differences.
    pub copy: Option<Params>,
    /// Why each run needs a new container, if it does.
    pub fresh: Option<String>,
    /// Where two sides of the user's are asked about: what the second one changes of the command, and how each
    /// difference is undone.
    pub head: CommandChange,
    /// See `head`.
    pub undo: BTreeMap<String, sides::Undo>,
}

impl Asks {
    /// What an arm notes that does without these differences, where its settings do not say so.
    fn noted(&self, without: &[String]) -> Vec<String> {
        if self.undo.is_empty() {
            Vec::new()
        } else {
            without.to_vec()
        }
    }
}

/// The command as it is run in both.
pub fn call(own: &Own, command: &[String]) -> CommandCall {
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

/// The steps from the baseline up: what the engine does to every container, and what this one has of its own.
pub(super) fn steps(ask: &Ask, asks: &Asks) -> Vec<Step> {
    let is_engines = |difference: &&Difference| difference.id.starts_with("engine.");
    let (engines, own): (Vec<&Difference>, Vec<&Difference>) =
        asks.differences.iter().partition(|it| is_engines(it));
    let step = |title: String, settings: Params| Step {
        title,
        driver: ask.driver.clone(),
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
        own::without(settings, &ids),
    );
    let steps = plain.into_iter().chain([engines, whole]);
    steps.chain(running).collect()
}

/// What stands beside the two sides in the first study: the steps that are between them in any case, and the host's
/// program below the baseline.
pub(super) fn below(ask: &Ask) -> Vec<ArmSpec> {
    let Some(asks) = &ask.own else {
        return Vec::new();
    };
    let plain = asks.plain.as_ref().map(|settings| {
        let mut arm = ArmSpec::new(super::arm_id(PLAIN), ask.driver.as_str(), settings.clone());
        arm.change = ask.change();
        arm.role.rung = Some(rung(1, CONTAINER));
        arm
    });
    let userland = asks.userland.as_ref().map(|base| {
        let (id, settings) = (super::arm_id(base.id), base.settings.clone());
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

/// Notes in the environment that it is the last step, where there are some in any case.
pub(super) fn note_last(ask: &Ask, env: &mut ArmSpec) {
    /// Behind all others.
    const LAST: i64 = 99;
    let asks = ask.own.as_ref();
    if asks.is_some_and(|asks| asks.plain.is_some()) {
        env.role.rung = Some(rung(LAST, OF_ITS_OWN));
    }
}

/// Notes in the baseline that it is a step itself, where the host's program stands below it.
pub(super) fn note_userland(ask: &Ask, base: &mut ArmSpec) {
    let asks = ask.own.as_ref();
    if let Some(userland) = asks.and_then(|asks| asks.userland.as_ref()) {
        base.role.rung = Some(rung(0, USERLAND));
        base.role.of = Some(userland.id.to_owned());
    }
}

/// The copy of a running container that is asked about, with the suspect that it takes away: what the container has
/// become since it was started.
pub(super) fn copy(ask: &Ask) -> Option<ArmSpec> {
    let settings = ask.own.as_ref()?.copy.as_ref()?;
    let mut arm = ArmSpec::new(super::arm_id(COPY), ask.driver.as_str(), settings.clone());
    arm.change = ask.change();
    let what = "what the running container has become since it was started (its own processes next to the command, its files, its memory)";
    arm.role.suspects.push(Suspect {
        cause: RUNNING.to_owned(),
        claim: format!("{what}{CLAIM}"),
        size: String::new(),
        evidence: Vec::new(),
        likelihood: 0.5,
        advice: "start it afresh and compare; if that helps, look at what runs in it (`docker top`), what it wrote (`docker diff`) and what it holds of its limits (`docker stats`)".to_owned(),
        price: "what it holds in memory is lost when it is started afresh".to_owned(),
        metric: ask.metric.clone(),
        tried: "a fresh container like it".to_owned(),
        is_outside: false,
    });
    Some(arm)
}

#[cfg(test)]
mod tests;
