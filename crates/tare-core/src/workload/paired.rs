//! Shared code of the workloads with two ends: one probe that plays both ends over the loopback, and a pair of probes
//! over any other path, of which the client measures.
//!
//! The metric and its definition are the same on every path, but values of different paths are never compared: the
//! path belongs to the cell.
//! Limits: does not see which way packets take.
//! Not a workload itself.

use tare_model::{Params, Path, ProbeCall, RawOutput, Recipe, Sample};

use super::declared::Declared;
use super::probe_output::decode_of;
use super::{DecodeError, ParamError, Workload};

/// A workload between two ends.
#[derive(Debug)]
pub struct PairedWorkload {
    /// Its declaration; the name is that of the measuring probe.
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
