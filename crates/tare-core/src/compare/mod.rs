//! `compare`: decides which of two or more commands, versions or environments is faster, and whether that is proven.
//!
//! The arms are the sides: the first is the baseline, with an A/A control (the baseline again, from another copy of
//! its file); the others are compared with it. They run in the engine's blocks, like the arms of any other study.
//! [`study`] builds the study, [`row`] reads the rows from the dossiers of its rounds, and [`gate`] judges them
//! together. Code that touches the machine is in the crate `tare`, and the output formats are in `tare-report`.
//! Limits: variation from one build or boot to the next is in no interval.

pub mod gate;
pub mod history;
pub mod limits;
pub mod row;
pub mod study;

use serde::{Deserialize, Serialize};

pub use gate::Decision;
pub use row::{Effect, Row, Word};

/// The id of every study made here.
pub const STUDY: &str = "compare";
/// Version of the JSON form.
pub const VERSION: u32 = 1;

/// A description of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideNote {
    /// Its arm.
    pub arm: String,
    /// The command, revision or environment, as the user gave it.
    pub label: String,
}

/// A whole comparison: the JSON form, from which every other form is rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this form.
    pub comparison: u32,
    /// Version of Tare.
    pub tare: String,
    /// The stored runs, oldest first.
    pub runs: Vec<String>,
    /// Whether both sides ran in the same blocks.
    pub paired: bool,
    /// Whether a gate was requested, which proves and confirms.
    pub gate: bool,
    /// Seed of the order.
    pub seed: u64,
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// How the commands ran: interleaved in slices, or whole trials and why.
    pub how: String,
    /// The sides, the base first.
    pub sides: Vec<SideNote>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Notes for the reader, one line each.
    pub notes: Vec<String>,
    /// The decision.
    pub decision: Decision,
}

impl Comparison {
    /// Returns the label of an arm.
    pub fn label<'a>(&'a self, arm: &'a str) -> &'a str {
        let mut sides = self.sides.iter();
        let side = sides.find(|side| side.arm == arm);
        side.map_or(arm, |side| side.label.as_str())
    }

    /// Formats the number of blocks: `41 blocks`.
    pub fn blocks(&self) -> String {
        let most = self.rows.iter().map(|row| row.blocks).max().unwrap_or(0);
        format!("{most} block{}", if most == 1 { "" } else { "s" })
    }

    /// Whether there are more than two sides, so that rows name their arm.
    pub fn has_several(&self) -> bool {
        self.sides.len() > 2
    }
}
