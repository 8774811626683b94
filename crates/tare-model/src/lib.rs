//! Types shared by the parts of Tare, and the frames that host and agent exchange.
//!
//! Every type that two parts of Tare share is defined here once: identifiers, units, studies, trials, recipes, raw
//! output, samples, the wire frames and the dossier. All of it is plain data. Nothing here reads a clock, a file or
//! the environment; frames are read from and written to any `Read` and `Write` that the caller supplies.

pub mod arm;
pub mod call_list;
pub mod cluster;
pub mod command;
pub mod counter;
pub mod course;
pub mod distinguishing;
pub mod dossier;
pub mod fact;
pub mod facts;
pub mod frames;
pub mod guest;
pub mod id;
pub mod launch;
pub mod lifecycle_report;
pub mod lower_file;
pub mod mountinfo;
pub mod names;
pub mod netstat;
pub mod outcome;
pub mod params;
pub mod probe_report;
pub mod publication;
pub mod recipe;
mod rows;
pub mod study;
mod suspect;
pub mod together;
pub mod tool;
pub mod trial;
pub mod turns;
pub mod unit;
pub mod whole;
pub mod wire;
pub mod words;

pub use arm::{ArmSpec, CommandChange};
pub use cluster::ClusterView;
pub use command::{CommandCall, CommandReport};
pub use facts::Facts;
pub use id::{ArmId, IdError, MetricId, RunId, WorkloadId};
pub use lifecycle_report::{LIFECYCLE_FORMAT, LifecycleReport};
pub use outcome::{Failure, Outcome, RawOutput, Reason, Sample};
pub use params::{Params, Value};
pub use probe_report::{ProbeReport, Series, SpanClock, WorkSpan};
pub use publication::{NoCounterpart, Publication};
pub use recipe::{End, Path, ProbeCall, Recipe};
pub use study::{Lifecycle, Margins, Spread, Study, WorkloadSpec};
pub use together::{INSTANCES_FORMAT, InstanceRecord, Together};
pub use trial::{CellKey, Trial};
pub use turns::{Sliced, TurnPage, Turns};
pub use unit::{Better, MetricSpec, ResourceClass, Unit};
pub use whole::{whole_count, whole_ns, whole_part, whole_place, whole_size};
pub use words::{
    Absence, AnswerLabel, CheckResult, ClaimVerdict, Deviation, LayoutKind, ScalingLaw, Status,
    StoppedBy, Summary, Verdict, WhyOutcome, WhyReason,
};
