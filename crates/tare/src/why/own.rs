//! A container of the user's own in place of an environment of ours: what it is compared with, and which of its
//! differences carry the cost.
//!
//! It is compared with the same image as a plain container, without any of the differences: what somebody wrote for
//! a container is not run on the host unasked, and the program often lives only in the image. Every difference is a
//! switch, so the search ([`search`](super::search)) leaves them away part by part in studies whose arms stand in
//! the blocks of both sides. What it finds is proved once more in blocks of its own, because something is always
//! found among many.
//! What it cannot see: in what the image's program differs from another build of it.

use tare_model::arm::Suspect;
use tare_model::{ArmSpec, CommandCall, Params};

use super::Ask;
use super::ladder::Step;
use crate::env::own::{self, Difference, Own};

pub mod applied;
mod costs;
mod hunt;
mod members;
mod sifting;
mod trace;

pub(super) use hunt::came_back;
pub use hunt::{Hunt, Next, one_more_ns};
pub(super) use sifting::sifted;

/// The baseline's name: the image without the differences.
pub const PLAIN: &str = "plain";
/// What the name of a suspect begins with that is several differences.
const SEVERAL: &str = "own.several";
/// How the claim about a single difference ends, or about several that only go together.
pub(super) const CLAIM: &str = " makes it slower";
/// How one begins about a set that was not taken apart.
const ONE_OF: &str = "one or several of: ";
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
    /// The baseline's settings.
    pub base: Params,
    /// Where the running container itself is asked about: the settings of a copy of it, which can do without
    /// differences.
    pub copy: Option<Params>,
}

/// What it may be compared with, the barest first: without every difference, and without those that the program
/// cannot need.
pub fn bases(own: &Own) -> Vec<Asks> {
    let asks = |differences: Vec<Difference>| {
        let ids: Vec<String> = differences.iter().map(|it| it.id.clone()).collect();
        Asks {
            base: own::without(&own.settings, &ids),
            differences,
            copy: own.inside.as_ref().map(|_| own.settings.clone()),
        }
    };
    let surely: Vec<Difference> = own
        .differences
        .iter()
        .filter(|difference| !difference.may_be_needed)
        .cloned()
        .collect();
    let mut bases = vec![asks(own.differences.clone())];
    if surely.len() < own.differences.len() {
        bases.push(asks(surely));
    }
    bases
}

/// What the baseline is, in a line.
pub fn told(asks: &Asks) -> String {
    let what: Vec<&str> = asks
        .differences
        .iter()
        .map(|difference| difference.what.as_str())
        .collect();
    format!(
        "compared with: the same image and command in a plain container, without {}",
        what.join(", ")
    )
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
    let settings = asks.copy.as_ref().unwrap_or(&ask.settings);
    let whole = step(
        "what the container has of its own".to_owned(),
        settings.clone(),
    );
    let running = asks.copy.as_ref().map(|_| {
        step(
            "what it has become since it was started".to_owned(),
            ask.settings.clone(),
        )
    });
    if engines.is_empty() || own.is_empty() {
        return std::iter::once(whole).chain(running).collect();
    }
    let ids: Vec<String> = own.iter().map(|it| it.id.clone()).collect();
    let engines = step(
        "what the engine does to every container: network, filter, log".to_owned(),
        own::without(settings, &ids),
    );
    [engines, whole].into_iter().chain(running).collect()
}

/// The copy of a running container that is asked about, with the suspect that it takes away: what the container has
/// become since it was started.
pub(super) fn copy(ask: &Ask) -> Option<ArmSpec> {
    let settings = ask.own.as_ref()?.copy.as_ref()?;
    let mut arm = ArmSpec::new(super::arm_id(COPY), ask.driver.as_str(), settings.clone());
    arm.change = ask.change();
    let what = "what the running container has become since it was started (its own processes beside the command, its files, its memory)";
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
