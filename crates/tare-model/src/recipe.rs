//! What is to be executed in one trial: plain data that can be stored, printed and replayed.

use serde::{Deserialize, Serialize};

use crate::params::Params;

/// A call of one of the agent's probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeCall {
    /// The probe's name in the agent's registry.
    pub name: String,
    /// Its arguments.
    pub args: Params,
}

/// Where one end of a two-ended workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// On the host, outside of every arm.
    Host,
    /// Inside the arm.
    Arm,
}

/// The way between the two ends of a workload; part of the cell's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Path {
    /// Both ends inside the arm, over its own loopback.
    #[serde(rename = "loopback")]
    Loopback,
    /// The client on the host, the server inside the arm.
    #[serde(rename = "host→arm")]
    HostToArm,
    /// The client inside the arm, the server on the host.
    #[serde(rename = "arm→host")]
    ArmToHost,
}

impl Path {
    /// The text that reports print.
    pub fn label(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::HostToArm => "host→arm",
            Self::ArmToHost => "arm→host",
        }
    }

    /// Where the server runs.
    pub fn server(self) -> End {
        match self {
            Self::Loopback | Self::HostToArm => End::Arm,
            Self::ArmToHost => End::Host,
        }
    }

    /// Where the client runs.
    pub fn client(self) -> End {
        match self {
            Self::Loopback | Self::ArmToHost => End::Arm,
            Self::HostToArm => End::Host,
        }
    }
}

/// What a trial executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Recipe {
    /// One of the agent's probes.
    Probe(ProbeCall),
    /// A server and a client; the client measures. The server reports its port in `Reply::Listening`,
    /// and the engine passes `address` (text) and `port` (whole number) to the client's arguments.
    Pair {
        /// Runs at the path's server end.
        server: ProbeCall,
        /// Runs at the path's client end.
        client: ProbeCall,
    },
    /// Create the environment, wait for its first instruction, remove it: timed from outside.
    Lifecycle,
}
