//! The report that a virtual machine's first process sends to the host before it hands the channel to the agent.

use serde::{Deserialize, Serialize};

use crate::launch::PairAddresses;

/// Name of the virtio console port that becomes the channel.
pub const GUEST_PORT: &str = "tare.agent";

/// Tag by which a guest finds the folder that it shares with the other machines of its arm.
pub const SHARED_TAG: &str = "tare-shared";

/// Path of that folder inside.
pub const SHARED_FOLDER: &str = "/tare-shared";

/// The first frame that a guest sends; the replies of the agent follow on the same stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// Time since the guest's kernel began to count, nanoseconds, by the guest's clock.
    pub up_ns: u64,
    /// Loaded modules, in order.
    pub modules: Vec<String>,
    /// The directory for the probes' files.
    pub workdir: String,
    /// File system type of `workdir`.
    pub filesystem: String,
    /// The kernel's driver of the network device, if there is one.
    pub nic_driver: Option<String>,
    /// The addresses of both ends of the network, as passed to the guest.
    pub addresses: Option<PairAddresses>,
    /// The address on the network of the guest's siblings, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sibling_address: Option<std::net::Ipv4Addr>,
    /// State of the system on the disk, in systemd's words, or the name of its other init; `None` without a system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Why the guest does not match the request; it powers off after this.
    pub error: Option<String>,
}
