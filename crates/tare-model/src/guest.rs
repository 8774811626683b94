//! What a virtual machine's first process tells the host before it hands the channel to the agent.

use serde::{Deserialize, Serialize};

use crate::launch::PairAddresses;

/// The name of the port of the virtio console that becomes the channel.
pub const GUEST_PORT: &str = "tare.agent";

/// The tag by which a guest finds the folder that it shares with the other machines of its arm.
pub const SHARED_TAG: &str = "tare-shared";

/// Where that folder is inside.
pub const SHARED_FOLDER: &str = "/tare-shared";

/// The first frame that a guest sends; the replies of the agent follow on the same stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// Time since the guest's kernel began to count, nanoseconds, by the guest's own clock.
    pub up_ns: u64,
    /// Modules that were loaded, in their order.
    pub modules: Vec<String>,
    /// The directory for the probes' files.
    pub workdir: String,
    /// The kind of file system under it.
    pub filesystem: String,
    /// The kernel's driver of the network device, where there is one.
    pub nic_driver: Option<String>,
    /// The addresses of both ends of the network, as the guest was told them.
    pub addresses: Option<PairAddresses>,
    /// The address on the network of the guest's siblings, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling_address: Option<std::net::Ipv4Addr>,
    /// Why the guest is not what was asked for; it powers off after this.
    pub error: Option<String>,
}
