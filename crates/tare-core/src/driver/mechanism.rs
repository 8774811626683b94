//! The mechanisms that a driver applies to a program, and the settings that switch each of them off.
//!
//! The ladder adds them step by step, counterfactuals switch one of them off, and `tare list environments` prints
//! them; a driver that lists its mechanisms gets all three. Limits: does not know whether an engine grants a setting.

use tare_model::fact;
use tare_model::{Facts, Params, Value};

/// The kind of a mechanism, independent of a driver's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The profile of a security module.
    AccessControl,
    /// Optional namespaces.
    Namespaces,
    /// A separate root file system.
    Root,
    /// Cgroups.
    ControlGroups,
    /// Fewer capabilities, with their side effects.
    Capabilities,
    /// Masked paths of /proc and /sys.
    MaskedPaths,
    /// The seccomp filter.
    SystemCallFilter,
    /// A separate network instead of the host's.
    Network,
    /// The handling of standard output.
    Output,
}

impl Kind {
    /// The kind as the end of "has no setting for".
    pub fn what(self) -> &'static str {
        match self {
            Self::AccessControl => "the security module's profile",
            Self::Namespaces => "namespaces",
            Self::Root => "where files lie",
            Self::ControlGroups => "cgroups",
            Self::Capabilities => "capabilities",
            Self::MaskedPaths => "masked paths",
            Self::SystemCallFilter => "the filter on system calls",
            Self::Network => "the network",
            Self::Output => "standard output",
        }
    }
}

/// A setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// A text.
    Text(&'static str),
    /// A switch.
    Flag(bool),
}

impl From<Set> for Value {
    fn from(set: Set) -> Self {
        match set {
            Set::Text(text) => text.into(),
            Set::Flag(flag) => flag.into(),
        }
    }
}

/// One mechanism.
#[derive(Debug, Clone, Copy)]
pub struct Mechanism {
    /// Its kind.
    pub kind: Kind,
    /// What it adds, as a step.
    pub title: &'static str,
    /// The settings that switch it off. Without them it is on.
    pub off: &'static [(&'static str, Set)],
    /// The price of switching it off.
    pub price: &'static str,
    /// Its importance as a separate step: steps of the least weight are merged with the next.
    pub weight: u32,
    /// Whether an environment has it at all, by its facts.
    pub is_here: fn(&Facts) -> bool,
}

/// The seccomp filter, as engines switch it off.
pub const SYSTEM_CALL_FILTER: Mechanism = Mechanism {
    kind: Kind::SystemCallFilter,
    title: "seccomp filter",
    off: &[("seccomp", Set::Text("unconfined"))],
    price: "the blocked system calls are open again",
    weight: 5,
    is_here: always,
};

/// A separate network.
pub const NETWORK: Mechanism = Mechanism {
    kind: Kind::Network,
    title: "network of its own",
    off: &[("network", Set::Text("host"))],
    price: "the host's network and all of its ports are open inside",
    weight: 4,
    is_here: always,
};

/// Standard output that passes through an engine.
pub const OUTPUT: Mechanism = Mechanism {
    kind: Kind::Output,
    title: "output through the log driver",
    off: &[("log_driver", Set::Text("none"))],
    price: "nothing of what it prints is kept",
    weight: 3,
    is_here: always,
};

/// True for all facts.
pub fn always(_: &Facts) -> bool {
    true
}

/// Whether an AppArmor profile confines the environment's processes.
pub fn is_confined(facts: &Facts) -> bool {
    facts
        .get(fact::LSM_LABEL)
        .is_some_and(|label| label.contains("(enforce)"))
}

/// The mechanisms of a driver's environments.
#[derive(Debug, Clone, Copy)]
pub struct Mechanisms {
    /// Describes what is left with all of them off.
    pub base: fn(&Params) -> String,
    /// Its weight as a step.
    pub weight: u32,
    /// Settings that belong to the base: runtime and root.
    pub keeps: &'static [&'static str],
    /// A setting with which they cannot be separated, and count as one.
    pub whole_with: Option<&'static str>,
    /// All mechanisms, in the order in which they are switched on.
    pub all: &'static [Mechanism],
    /// What no setting separates, and why, one line each.
    pub together: &'static [&'static str],
    /// A setting that keeps the seccomp filter but leaves CPU speculation unchanged, if any.
    pub sparing_filter: Option<(&'static str, Set)>,
}

/// The mechanisms of a driver that declares none.
pub const UNKNOWN: Mechanisms = Mechanisms {
    base: |_| "it with its defaults".to_owned(),
    weight: 9,
    keeps: &[],
    whole_with: None,
    all: &[],
    together: &["everything: this environment has no switches for its mechanisms"],
    sparing_filter: None,
};

impl Mechanisms {
    /// Returns the mechanism of this kind.
    pub fn find(&self, kind: Kind) -> Option<&'static Mechanism> {
        self.all.iter().find(|mechanism| mechanism.kind == kind)
    }
}
