//! Observations of a command before anything is planned: in one place, on both sides, and how it ended.
//!
//! Plain data, passed from the code that observes to the code that plans.
//! Limits: a command that fails only occasionally may go unnoticed.

use std::collections::BTreeMap;

use tare_model::command::InSlices;
use tare_model::{CommandReport, Facts};

/// From this ratio on a slowdown is obvious.
pub const PLAIN_TIMES: u64 = 4;

/// The prefix of a remark that a successful command wrote to standard error, so that it may not have done its work.
pub const COMPLAINT: &str = "written to standard error ";

/// Observations of the command in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The report of its last run there.
    pub report: CommandReport,
    /// The shortest wall time there, nanoseconds.
    pub wall_ns: u64,
    /// Counters of its last run there.
    pub counters: BTreeMap<String, f64>,
    /// Facts about the place.
    pub facts: Facts,
}

/// Observations of one of several commands that are compared.
#[derive(Debug)]
pub struct SideLook {
    /// The observed runs.
    pub observed: Observed,
    /// How it can be stopped and resumed in slices, or why it cannot.
    pub in_slices: Result<InSlices, String>,
    /// Whether a second run printed the same, if there was one.
    pub prints_same: Option<bool>,
}

/// Observations of the command on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct First {
    /// On the host.
    pub host: Observed,
    /// In the environment.
    pub env: Observed,
    /// Time to start and stop the environment, nanoseconds.
    pub life_ns: u64,
    /// Remarks for the user, one line each.
    pub remarks: Vec<String>,
    /// The time after which a run is ended early, if waiting for its end would take too long, nanoseconds.
    pub cut_ns: Option<u64>,
    /// Whether each run gets a new environment, on both sides.
    pub is_fresh: bool,
    /// How it is stopped and resumed, interleaved with its copies; otherwise why not, as a clause after "because it".
    pub in_slices: Result<InSlices, String>,
}

/// How the command's first run inside ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Inside {
    /// By itself.
    Ended(Box<Observed>),
    /// It was ended early, after this many nanoseconds.
    CutOff(u64),
}

impl Inside {
    /// Its wall time, or a lower bound.
    pub fn wall_ns(&self) -> u64 {
        match self {
            Self::Ended(look) => look.wall_ns,
            Self::CutOff(limit_ns) => *limit_ns,
        }
    }

    /// Its standard error, if it ended.
    pub fn said(&self) -> String {
        match self {
            Self::Ended(look) => String::from_utf8_lossy(&look.report.stderr.0).into_owned(),
            Self::CutOff(_) => String::new(),
        }
    }

    /// Whether it did not end and the other side is not so much faster that the slowdown is obvious.
    pub fn is_over(&self, first: &First) -> bool {
        let Self::CutOff(limit_ns) = self else {
            return false;
        };
        limit_ns / PLAIN_TIMES <= first.host.wall_ns
    }

    /// An observation without another run, if that would take long or not end; `other` is the other side's.
    pub fn for_good(&self, other: &Observed, long_ns: u64) -> Option<Observed> {
        match self {
            Self::Ended(look) if look.wall_ns > long_ns => Some((**look).clone()),
            Self::Ended(_) => None,
            Self::CutOff(limit_ns) => {
                // All that is known is that it was still running.
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

/// Slices that suit both commands.
pub fn common(one: InSlices, other: InSlices) -> InSlices {
    InSlices {
        ns: one.ns.min(other.ns),
        one_processor: one.one_processor && other.one_processor,
    }
}
