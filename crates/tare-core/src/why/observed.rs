//! What is seen of a command before anything is planned: how it was in one place, on both sides, and how it ended.
//!
//! Plain data between who looks and who plans.
//! What it cannot see: a command that fails now and then.

use std::collections::BTreeMap;

use tare_model::command::InSlices;
use tare_model::{CommandReport, Facts};

/// From so many times as much on a cost is plain to see.
pub const PLAIN_TIMES: u64 = 4;

/// How a line begins that says what a command that succeeds wrote to standard error, where work may not be done.
pub const COMPLAINT: &str = "written to standard error ";

/// What was seen of the command in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Its last run there.
    pub report: CommandReport,
    /// The shortest time that it took there, nanoseconds.
    pub wall_ns: u64,
    /// Counters of its last run there.
    pub counters: BTreeMap<String, f64>,
    /// What is known of the place.
    pub facts: Facts,
}

/// What was seen of one of several commands that are compared.
#[derive(Debug)]
pub struct SideLook {
    /// How it ran.
    pub observed: Observed,
    /// How it can be cut, or why it cannot.
    pub in_slices: Result<InSlices, String>,
    /// Whether a second run printed the same; `None` where there was none.
    pub prints_same: Option<bool>,
}

/// What was seen of it on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct First {
    /// On the host.
    pub host: Observed,
    /// In the environment.
    pub env: Observed,
    /// What starting and stopping the environment took, nanoseconds.
    pub life_ns: u64,
    /// What is worth telling, a line each.
    pub remarks: Vec<String>,
    /// After how long a run is ended, where it would take too long to wait for its end.
    pub cut_ns: Option<u64>,
    /// Whether each run is in a new environment, on both sides.
    pub is_fresh: bool,
    /// How it is stopped on its way, in turn with its copies; else why it is not, as what follows "because it".
    pub in_slices: Result<InSlices, String>,
}

/// How the command ended inside at the very first look.
#[derive(Debug, Clone, PartialEq)]
pub enum Inside {
    /// By itself.
    Ended(Box<Observed>),
    /// It was ended after so many nanoseconds.
    CutOff(u64),
}

impl Inside {
    /// What it took at least.
    pub fn wall_ns(&self) -> u64 {
        match self {
            Self::Ended(look) => look.wall_ns,
            Self::CutOff(limit_ns) => *limit_ns,
        }
    }

    /// What it said on standard error, where it ended.
    pub fn said(&self) -> String {
        match self {
            Self::Ended(look) => String::from_utf8_lossy(&look.report.stderr.0).into_owned(),
            Self::CutOff(_) => String::new(),
        }
    }

    /// Whether it did not end, and the other side is not so much faster that this tells a cost.
    pub fn is_over(&self, first: &First) -> bool {
        let Self::CutOff(limit_ns) = self else {
            return false;
        };
        limit_ns / PLAIN_TIMES <= first.host.wall_ns
    }

    /// The look, where another one would take long or not end; `other` is the one at the other side.
    pub fn for_good(&self, other: &Observed, long_ns: u64) -> Option<Observed> {
        match self {
            Self::Ended(look) if look.wall_ns > long_ns => Some((**look).clone()),
            Self::Ended(_) => None,
            Self::CutOff(limit_ns) => {
                // Nothing is known of it but that it was still at work.
                let mut look = other.clone();
                look.wall_ns = *limit_ns;
                look.report.wall_ns = *limit_ns;
                look.report.seen = None;
                look.report.usage.clear();
                look.counters.clear();
                Some(look)
            }
        }
    }
}

/// How both can be cut.
pub fn common(one: InSlices, other: InSlices) -> InSlices {
    InSlices {
        ns: one.ns.min(other.ns),
        one_processor: one.one_processor && other.one_processor,
    }
}
