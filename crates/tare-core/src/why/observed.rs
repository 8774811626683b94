//! Observations of a command before anything is planned: in one place, on both sides, and how it ended.
//!
//! Plain data, passed from the code that observes to the code that plans.
//! Limits: a command that fails only occasionally may go unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use super::fresh::Fresh;
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
    /// How the first run on new files of the baseline differs from the next, if it does.
    pub base_differs: Option<Fresh>,
    /// How it is stopped and resumed, interleaved with its copies; otherwise why not, as a clause after "because it".
    pub in_slices: Result<InSlices, String>,
}

/// The command's first run inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// What was observed, up to its end; the wall time is a lower bound if it was ended early.
    pub look: Observed,
    /// Time to start and stop the environment, nanoseconds.
    pub life_ns: u64,
    /// The paths about which its facts are.
    pub paths: BTreeSet<String>,
}

impl Inside {
    /// Whether it was ended early.
    pub fn is_cut_off(&self) -> bool {
        self.look.report.is_ended_early
    }

    /// Its standard error.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.look.report.stderr.0).into_owned()
    }

    /// Whether it was ended early, and not after a time that makes the slowdown against `other_ns` obvious.
    pub fn is_open(&self, other_ns: u64) -> bool {
        self.is_cut_off() && self.look.wall_ns / PLAIN_TIMES <= other_ns
    }

    /// Whether another run would take long, or not end.
    pub fn is_long(&self, long_ns: u64) -> bool {
        self.is_cut_off() || self.look.wall_ns > long_ns
    }

    /// The observation as that of a run that ended; `other` is the other side's.
    pub fn as_whole(&self, other: &Observed) -> Observed {
        let mut look = self.look.clone();
        if !self.is_cut_off() {
            return look;
        }
        // All that is known is that it was still running, and what it had printed.
        look.report.exit = other.report.exit;
        look.report.usage.clear();
        let (printed, all) = (&mut look.report.stdout, &other.report.stdout);
        if all.0.starts_with(&printed.0) {
            printed.clone_from(all);
        }
        if look.report.stderr.0.is_empty() {
            look.report.stderr.clone_from(&other.report.stderr);
        }
        look
    }
}

/// Slices that suit both commands.
pub fn common(one: InSlices, other: InSlices) -> InSlices {
    InSlices {
        ns: one.ns.min(other.ns),
        one_processor: one.one_processor && other.one_processor,
    }
}
