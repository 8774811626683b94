//! Describes a cluster to the programs that run in it: their node, the addresses of all nodes and the shared folder.
//!
//! The engine puts a [`ClusterView`] into the arguments of every call of a cluster, and the probe `command`
//! substitutes its parts for the placeholders below. Nodes are numbered from 1, and the client runs on node 1.
//! Addresses are always numeric, so that no node needs a name service.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::params::Params;

/// Name of the argument that holds the view as JSON.
const VIEW: &str = "cluster";

/// Placeholder for the number of the program's node, from 1.
pub const NODE: &str = "{node}";
/// Placeholder for the number of nodes.
pub const NODES: &str = "{nodes}";
/// Placeholder for the addresses of all nodes, in order, separated by commas.
pub const ADDRESSES: &str = "{addresses}";
/// Placeholder for the smallest network that contains all nodes, such as `10.0.0.0/30`.
pub const SUBNET: &str = "{subnet}";
/// Placeholder for the folder that every node has at this path.
pub const SHARED: &str = "{shared}";
/// Placeholder for a file in the program's folder with one line per node, `ADDRESS slots=SLOTS`.
pub const HOSTFILE: &str = "{hostfile}";

/// Name of that file.
pub const HOSTFILE_NAME: &str = "hostfile";

/// Returns the name of a node, numbered from 1.
pub fn node_name(number: u32) -> String {
    format!("node-{number}")
}

/// A cluster as one of its nodes sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Number of this node, from 1.
    pub node: u32,
    /// Addresses at which the nodes reach each other, in node order.
    pub addresses: Vec<IpAddr>,
    /// Number of processes that each node takes.
    pub slots: u32,
    /// Folder that every node has at this path; `None` if the environment has none.
    pub shared: Option<String>,
}

impl ClusterView {
    /// Adds this view to arguments.
    #[must_use]
    pub fn laid_into(&self, args: Params) -> Params {
        let json = serde_json::to_string(self).expect("texts and numbers are always JSON");
        args.with(VIEW, json)
    }

    /// Reads the view from arguments, if they contain one.
    ///
    /// # Errors
    /// Returns the parse error.
    pub fn from_args(args: &Params) -> Result<Option<Self>, String> {
        args.text(VIEW)
            .map(|text| serde_json::from_str(text).map_err(|error| format!("`{VIEW}`: {error}")))
            .transpose()
    }

    /// Returns the content of the hostfile in Open MPI's format.
    pub fn hostfile(&self) -> String {
        self.addresses.iter().fold(String::new(), |lines, address| {
            lines + &format!("{address} slots={}\n", self.slots)
        })
    }

    /// Returns the smallest network that contains every address, as `ADDRESS/BITS`; `None` for mixed address
    /// families.
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

    /// Returns the values of the placeholders except the hostfile, whose path only the node knows.
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
