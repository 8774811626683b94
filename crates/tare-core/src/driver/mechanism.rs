//! What a driver does to a program, one mechanism after the other, and by which settings each is switched off.
//!
//! The ladder climbs them, counterfactuals switch one of them off, and `tare list environments` prints them; a driver
//! that lists its mechanisms gets all three. What it cannot see: whether an engine grants what is asked for.

use tare_model::fact;
use tare_model::{Facts, Params, Value};

/// What a mechanism is, whatever a driver calls its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The profile of a security module.
    AccessControl,
    /// Namespaces that can be left out.
    Namespaces,
    /// A root file system of its own.
    Root,
    /// Control groups.
    ControlGroups,
    /// Fewer capabilities, and what goes with them.
    Capabilities,
    /// Paths of /proc and /sys that are hidden.
    MaskedPaths,
    /// The filter on system calls.
    SystemCallFilter,
    /// A network of its own, instead of the host's.
    Network,
    /// What becomes of standard output.
    Output,
}

impl Kind {
    /// As the end of "has no setting for".
    pub fn what(self) -> &'static str {
        match self {
            Self::AccessControl => "the security module's profile",
            Self::Namespaces => "namespaces",
            Self::Root => "where files lie",
            Self::ControlGroups => "control groups",
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
    /// What it is.
    pub kind: Kind,
    /// What it adds, as a step.
    pub title: &'static str,
    /// The settings with which it is off. Without them it is on.
    pub off: &'static [(&'static str, Set)],
    /// What that gives up.
    pub price: &'static str,
    /// How much a reader would miss it as a step: those of the least weight are joined with the next.
    pub weight: u32,
    /// Whether it is there at all, by the facts of an environment.
    pub is_here: fn(&Facts) -> bool,
}

/// The filter on system calls, as engines switch it off.
pub const SYSTEM_CALL_FILTER: Mechanism = Mechanism {
    kind: Kind::SystemCallFilter,
    title: "system-call filter",
    off: &[("seccomp", Set::Text("unconfined"))],
    price: "the blocked system calls are open again",
    weight: 5,
    is_here: always,
};

/// A network of its own.
pub const NETWORK: Mechanism = Mechanism {
    kind: Kind::Network,
    title: "network of its own",
    off: &[("network", Set::Text("host"))],
    price: "the host's network and all of its ports are open inside",
    weight: 4,
    is_here: always,
};

/// The way of standard output through an engine.
pub const OUTPUT: Mechanism = Mechanism {
    kind: Kind::Output,
    title: "output through the engine's log",
    off: &[("log_driver", Set::Text("none"))],
    price: "nothing of what it prints is kept",
    weight: 3,
    is_here: always,
};

/// Everywhere.
pub fn always(_: &Facts) -> bool {
    true
}

/// Whether a profile of AppArmor holds the environment's processes.
pub fn is_confined(facts: &Facts) -> bool {
    facts
        .get(fact::LSM_LABEL)
        .is_some_and(|label| label.contains("(enforce)"))
}

/// What a driver's environments are made of.
#[derive(Debug, Clone, Copy)]
pub struct Mechanisms {
    /// What is left with all of them off.
    pub base: fn(&Params) -> String,
    /// Its weight as a step.
    pub weight: u32,
    /// Settings that belong to the base: which runtime, which root.
    pub keeps: &'static [&'static str],
    /// A setting with which they hang together, and are taken as one.
    pub whole_with: Option<&'static str>,
    /// Each, in the order in which they are switched on.
    pub all: &'static [Mechanism],
    /// What no setting takes apart, and why, a line each.
    pub together: &'static [&'static str],
    /// A setting with which the filter on system calls stays and leaves the processor's speculation as it is.
    pub sparing_filter: Option<(&'static str, Set)>,
}

/// Those of a driver that says nothing about them.
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
    /// The mechanism of this kind.
    pub fn of(&self, kind: Kind) -> Option<&'static Mechanism> {
        self.all.iter().find(|mechanism| mechanism.kind == kind)
    }
}
