//! What is to be executed in one trial: plain data that can be stored, printed and replayed.

use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::words::words;

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
    /// Inside a second instance of the arm.
    Second,
    /// Inside a third instance of the arm.
    Third,
}

impl End {
    /// The number of the arm's instance, from 1; `None` for the host.
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
    /// The way between the two ends of a workload; part of the cell's identity.
    pub enum Path {
        /// Both ends inside the arm, over its own loopback.
        Loopback: "loopback",
        /// The client on the host, the server inside the arm.
        HostToArm: "host→arm",
        /// The client inside the arm, the server on the host.
        ArmToHost: "arm→host",
        /// The client inside a second instance of the arm, the server inside the first, on their common network.
        ArmToArm: "arm→arm",
        /// The client inside the arm, the server inside a second instance of it: the other way of `arm→arm`.
        FirstToSecond: "node-1→node-2",
        /// The client inside a second instance of the arm, the server inside a third.
        SecondToThird: "node-2→node-3",
        /// The client on the host, the server inside the arm, by a port published on the host's loopback.
        PublishedLoopback: "host→published 127.0.0.1",
        /// The client on the host, the server inside the arm, by a port published on the host's address on the
        /// arm's bridge.
        PublishedBridge: "host→published bridge",
    }
}

impl Path {
    /// Those of which an address alone is an end, and no port that is published for TCP.
    pub const UNPUBLISHED: [Self; 6] = [
        Self::Loopback,
        Self::HostToArm,
        Self::ArmToHost,
        Self::ArmToArm,
        Self::FirstToSecond,
        Self::SecondToThird,
    ];

    /// Where the server runs.
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

    /// Where the client runs.
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

    /// Which end is inside the arm and knows the way to the other: the server, where that is not on the host.
    pub fn inside(self) -> End {
        match self.server() {
            End::Host => self.client(),
            server => server,
        }
    }

    /// How many instances of the arm it takes.
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
    /// A service on every node, and then a client on the first; the client measures. The nodes are instances of
    /// one environment on one network. Each service reports its port in `Reply::Listening`, and it is the same
    /// port on every node: node 1 finds it. The engine passes `address` (text; the node's own), `port` (whole
    /// number) and a [`ClusterView`](crate::cluster::ClusterView) to the arguments of both.
    Cluster {
        /// How many nodes, at least 1.
        nodes: u32,
        /// How many processes each node takes.
        slots: u32,
        /// Runs on every node until the client has ended.
        service: ProbeCall,
        /// Runs on node 1.
        client: ProbeCall,
    },
    /// Create the environment, wait for its first instruction, remove it: timed from outside.
    Lifecycle,
}

impl Recipe {
    /// How many instances of the arm it takes at once, over `path`.
    pub fn nodes(&self, path: Option<Path>) -> u32 {
        match self {
            Self::Cluster { nodes, .. } => (*nodes).max(1),
            Self::Pair { .. } => path.map_or(1, Path::nodes),
            Self::Probe(_) | Self::Lifecycle => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_says_how_many_instances_it_takes() {
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
