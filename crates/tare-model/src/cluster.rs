//! What the programs of a cluster are told of it: which node they run on, where the others are, and which
//! folder all of them share.
//!
//! The engine lays a [`ClusterView`] into the arguments of every call of a cluster, and the probe `command`
//! puts its parts in place of the placeholders below. Nodes are numbered from 1, and node 1 is the one on which
//! the client runs. Addresses are written as numbers everywhere, so that no node needs a name service.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::params::Params;

/// The argument of a call that holds the view as JSON.
const VIEW: &str = "cluster";

/// Stands for the number of the node on which the program runs, from 1.
pub const NODE: &str = "{node}";
/// Stands for the number of nodes.
pub const NODES: &str = "{nodes}";
/// Stands for the addresses of all nodes in their order, with commas.
pub const ADDRESSES: &str = "{addresses}";
/// Stands for the smallest network in which all nodes are, such as `10.0.0.0/30`.
pub const SUBNET: &str = "{subnet}";
/// Stands for the folder that every node has at this path.
pub const SHARED: &str = "{shared}";
/// Stands for a file in the program's own folder with one line a node, `ADDRESS slots=SLOTS`.
pub const HOSTFILE: &str = "{hostfile}";

/// The name of that file.
pub const HOSTFILE_NAME: &str = "hostfile";

/// The name of a node, from 1.
pub fn node_name(number: u32) -> String {
    format!("node-{number}")
}

/// A cluster as one of its nodes sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// The number of this node, from 1.
    pub node: u32,
    /// Where each node reaches the others, in their order.
    pub addresses: Vec<IpAddr>,
    /// How many processes each node takes.
    pub slots: u32,
    /// The folder that every node has at this path; `None` where the environment has none.
    pub shared: Option<String>,
}

impl ClusterView {
    /// Arguments with this view in them.
    #[must_use]
    pub fn laid_into(&self, args: Params) -> Params {
        let json = serde_json::to_string(self).expect("texts and numbers are always JSON");
        args.with(VIEW, json)
    }

    /// The view that arguments hold, if they hold one.
    ///
    /// # Errors
    /// What is not understood.
    pub fn from_args(args: &Params) -> Result<Option<Self>, String> {
        args.text(VIEW)
            .map(|text| serde_json::from_str(text).map_err(|error| format!("`{VIEW}`: {error}")))
            .transpose()
    }

    /// The content of the hostfile, in the form that Open MPI reads.
    pub fn hostfile(&self) -> String {
        self.addresses.iter().fold(String::new(), |lines, address| {
            lines + &format!("{address} slots={}\n", self.slots)
        })
    }

    /// The smallest network that holds every address, as `ADDRESS/BITS`. Addresses of two families have none.
    pub fn subnet(&self) -> Option<String> {
        let bits = |address: &IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let first = self.addresses.first()?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let mut common = width;
        for address in &self.addresses {
            if address.is_ipv4() != first.is_ipv4() {
                return None;
            }
            common = common.min((bits(first) ^ bits(address)).leading_zeros());
        }
        let mask = u128::MAX.checked_shl(128 - common).unwrap_or(0);
        let network = bits(first) & mask;
        let network = if first.is_ipv4() {
            IpAddr::from(((network >> 96) as u32).to_be_bytes())
        } else {
            IpAddr::from(network.to_be_bytes())
        };
        Some(format!("{network}/{common}"))
    }

    /// What the placeholders stand for, but for the hostfile, whose place the node knows.
    pub fn blanks(&self) -> Vec<(&'static str, String)> {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let mut blanks = vec![
            (NODE, self.node.to_string()),
            (NODES, self.addresses.len().to_string()),
            (ADDRESSES, addresses.join(",")),
        ];
        blanks.extend(self.subnet().map(|subnet| (SUBNET, subnet)));
        blanks.extend(self.shared.clone().map(|shared| (SHARED, shared)));
        blanks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(addresses: &[&str]) -> ClusterView {
        ClusterView {
            node: 1,
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            slots: 2,
            shared: Some("/shared".into()),
        }
    }

    #[test]
    fn a_view_survives_the_way_through_a_calls_arguments() {
        let view = view(&["10.0.0.1", "10.0.0.2"]);
        let args = view.laid_into(Params::new().with("port", 1i64));
        assert_eq!(ClusterView::from_args(&args).unwrap(), Some(view));
        assert_eq!(ClusterView::from_args(&Params::new()).unwrap(), None);
        assert!(ClusterView::from_args(&Params::new().with(VIEW, "{")).is_err());
    }

    #[test]
    fn the_hostfile_has_one_line_a_node() {
        let text = view(&["10.0.0.1", "10.0.0.2"]).hostfile();
        assert_eq!(text, "10.0.0.1 slots=2\n10.0.0.2 slots=2\n");
    }

    #[test]
    fn the_subnet_is_the_smallest_that_holds_all() {
        for (addresses, subnet) in [
            (&["127.0.0.1"][..], "127.0.0.1/32"),
            (&["127.0.0.1", "127.0.0.2"], "127.0.0.0/30"),
            (&["172.17.0.2", "172.17.0.3", "172.17.0.4"], "172.17.0.0/29"),
            (&["1.0.0.0", "128.0.0.1"], "0.0.0.0/0"),
            (&["fd00::1", "fd00::2"], "fd00::/126"),
        ] {
            assert_eq!(view(addresses).subnet().as_deref(), Some(subnet));
        }
        assert_eq!(view(&["127.0.0.1", "::1"]).subnet(), None);
        assert_eq!(view(&[]).subnet(), None);
    }
}
