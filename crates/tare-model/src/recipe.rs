//! What a trial executes: plain data that can be stored, printed and replayed.

use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::words::words;

/// A call of one of the agent's probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeCall {
    /// Name of the probe in the agent's registry.
    pub name: String,
    /// Its arguments.
    pub args: Params,
}

/// Where one end of a two-ended workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// On the host, outside every arm.
    Host,
    /// Inside the arm.
    Arm,
    /// Inside a second instance of the arm.
    Second,
    /// Inside a third instance of the arm.
    Third,
}

impl End {
    /// Returns the number of the arm's instance, from 1; `None` for the host.
    pub fn node(self) -> Option<u32> {
        match self {
            Self::Host => None,
            Self::Arm => Some(1),
            Self::Second => Some(2),
            Self::Third => Some(3),
        }
    }
}

words! {
    /// The path between the two ends of a workload; part of the cell's identity.
    pub enum Path {
        /// Both ends inside the arm, over its loopback.
        Loopback: "loopback",
        /// The client on the host, the server inside the arm.
        HostToArm: "host→arm",
        /// The client inside the arm, the server on the host.
        ArmToHost: "arm→host",
        /// The client inside a second instance of the arm, the server inside the first, on their common network.
        ArmToArm: "arm→arm",
        /// The client inside the arm, the server inside a second instance of it: the reverse of `arm→arm`.
        FirstToSecond: "node-1→node-2",
        /// The client inside a second instance of the arm, the server inside a third.
        SecondToThird: "node-2→node-3",
        /// The client on the host, the server inside the arm, through a port published on the host's loopback.
        PublishedLoopback: "host→published 127.0.0.1",
        /// The client on the host, the server inside the arm, through a port published on the host's address on the
        /// arm's bridge.
        PublishedBridge: "host→published bridge",
    }
}

impl Path {
    /// Paths that end at an address, not at a port published for TCP.
    pub const UNPUBLISHED: [Self; 6] = [
        Self::Loopback,
        Self::HostToArm,
        Self::ArmToHost,
        Self::ArmToArm,
        Self::FirstToSecond,
        Self::SecondToThird,
    ];

    /// Returns where the server runs.
    pub fn server(self) -> End {
        match self {
            Self::ArmToHost => End::Host,
            Self::FirstToSecond => End::Second,
            Self::SecondToThird => End::Third,
            Self::Loopback
            | Self::HostToArm
            | Self::ArmToArm
            | Self::PublishedLoopback
            | Self::PublishedBridge => End::Arm,
        }
    }

    /// Returns where the client runs.
    pub fn client(self) -> End {
        match self {
            Self::Loopback | Self::ArmToHost | Self::FirstToSecond => End::Arm,
            Self::ArmToArm | Self::SecondToThird => End::Second,
            Self::HostToArm | Self::PublishedLoopback | Self::PublishedBridge => End::Host,
        }
    }

    /// Whether one of its ends is `end`.
    pub fn touches(self, end: End) -> bool {
        self.server() == end || self.client() == end
    }

    /// Returns the end inside the arm that knows the way to the other: the server, unless it is on the host.
    pub fn inside(self) -> End {
        match self.server() {
            End::Host => self.client(),
            server => server,
        }
    }

    /// Returns the number of the arm's instances that it needs.
    pub fn nodes(self) -> u32 {
        let ends = [self.server(), self.client()];
        ends.into_iter().filter_map(End::node).max().unwrap_or(1)
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
    /// A service on every node, and then a client on the first; the client measures. The nodes are instances of one
    /// environment on one network. Each service reports its port in `Reply::Listening`, and the port is the same on
    /// every node: node 1 finds it. The engine passes `address` (text; the node's own), `port` (whole number) and a
    /// [`ClusterView`](crate::cluster::ClusterView) to the arguments of both.
    Cluster {
        /// Number of nodes, at least 1.
        nodes: u32,
        /// Number of processes that each node takes.
        slots: u32,
        /// Runs on every node until the client has ended.
        service: ProbeCall,
        /// Runs on node 1.
        client: ProbeCall,
    },
    /// Create the environment, wait for its first instruction, remove it; timed from outside.
    Lifecycle {
        /// Number of idle instances of the arm that are held meanwhile, in addition to the resident one.
        #[serde(default)]
        held: u32,
    },
}

impl Recipe {
    /// Returns the number of the arm's instances that it needs at once, over `path`.
    pub fn nodes(&self, path: Option<Path>) -> u32 {
        match self {
            Self::Cluster { nodes, .. } => (*nodes).max(1),
            Self::Pair { .. } => path.map_or(1, Path::nodes),
            Self::Probe(_) | Self::Lifecycle { .. } => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_reports_required_instance_count() {
        let call = |name: &str| ProbeCall {
            name: name.into(),
            args: Params::new(),
        };
        let pair = Recipe::Pair {
            server: call("a"),
            client: call("b"),
        };
        assert_eq!(pair.nodes(Some(Path::ArmToArm)), 2);
        assert_eq!(pair.nodes(Some(Path::FirstToSecond)), 2);
        assert_eq!(pair.nodes(Some(Path::SecondToThird)), 3);
        assert_eq!(pair.nodes(Some(Path::HostToArm)), 1);
        assert_eq!(Recipe::Probe(call("a")).nodes(None), 1);
        let cluster = Recipe::Cluster {
            nodes: 3,
            slots: 1,
            service: call("a"),
            client: call("b"),
        };
        assert_eq!(cluster.nodes(Some(Path::ArmToArm)), 3);
        let json = serde_json::to_string(&cluster).unwrap();
        assert!(json.starts_with(r#"{"kind":"cluster","nodes":3"#), "{json}");
    }
}
