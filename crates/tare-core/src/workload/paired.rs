//! What the workloads with two ends share: one probe that plays both ends over the loopback, and a pair of
//! probes, the client measuring, over any other path.
//!
//! The metric and its definition are the same on every path, but a value of one path is never compared with
//! a value of another: the path belongs to the cell. What it cannot see: which way packets really take.
//! This file is no workload.

use tare_model::{Params, Path, ProbeCall, RawOutput, Recipe, Sample};

use super::declared::Declared;
use super::probe_output::decode_of;
use super::{DecodeError, ParamError, Workload};

/// A workload between two ends.
#[derive(Debug)]
pub struct PairedWorkload {
    /// What it declares; its name is that of the probe that measures.
    pub declared: Declared,
    /// The probe at the far end.
    pub server: &'static str,
    /// The paths over which it can be run.
    pub paths: &'static [Path],
}

impl Workload for PairedWorkload {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn paths(&self) -> &'static [Path] {
        self.paths
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let client = ProbeCall {
            name: self.id().to_owned(),
            args: self.complete(params, path)?,
        };
        if path == Some(Path::Loopback) {
            return Ok(Recipe::Probe(client));
        }
        let server = ProbeCall {
            name: self.server.to_owned(),
            args: Params::new(),
        };
        Ok(Recipe::Pair { server, client })
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        decode_of(self.id(), raw, self.metrics())
    }
}
