//! Creates TAP devices: network devices of the host whose other end is a descriptor.
//!
//! Not persistent: a device vanishes with the last copy of the descriptor, so a killed machine emulator leaves no
//! device. Named, labelled and addressed like the outer end of the built-in container's pair, so that one sweep for
//! leftovers finds both. Numbers from `include/uapi/linux/if_tun.h`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use tare_model::RunId;
use tare_model::launch::PairAddresses;

use crate::launch::network;

/// `TUNSETIFF`.
const SET_DEVICE: libc::Ioctl = 0x4004_54ca;
/// `IFF_TAP`: whole Ethernet frames; `IFF_NO_PI`: without packet information; `IFF_VNET_HDR`: with a virtio header,
/// which allows leaving checksums and segmentation to the other side.
const FLAGS: libc::c_short = 0x0002 | 0x1000 | 0x4000;

/// A device with its descriptor, which a child inherits, and the addresses of both ends.
#[derive(Debug)]
pub struct Tap {
    /// The other end of the device.
    pub descriptor: OwnedFd,
    /// The addresses; the device has the host's.
    pub addresses: PairAddresses,
}

/// Creates a device for the instance `label` of `run` and brings it up.
///
/// # Errors
/// The refused operation, in words.
pub fn make(run: &RunId, label: &str) -> Result<Tap, String> {
    let label = format!("{run}/{label}");
    let name = network::outer_name(&label);
    let addresses = network::choose(&label).map_err(|error| error.to_string())?;
    let descriptor = open(&name).map_err(|error| format!("cannot make a TAP device: {error}"))?;
    network::raise_outside(&name, run, &addresses)
        .map_err(|error| format!("cannot raise the TAP device `{name}`: {error}"))?;
    Ok(Tap {
        descriptor,
        addresses,
    })
}

/// Creates a device in the network namespace of a hub and attaches it to the bridge there.
///
/// # Errors
/// The refused operation, in words.
pub fn make_sibling(hub: u32, number: u32) -> Result<OwnedFd, String> {
    let name = network::port_name(number, std::process::id());
    network::within_hub(hub, || {
        let descriptor = open(&name)?;
        network::plug_in(&name, network::BRIDGE)?;
        Ok(descriptor)
    })
    .map_err(|error| format!("cannot make a TAP device between the machines: {error}"))
}

fn open(name: &str) -> io::Result<OwnedFd> {
    // SAFETY: the path ends with NUL and is static. Without O_CLOEXEC, because it must be inherited.
    let descriptor = unsafe { libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and it is owned nowhere else.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // Leave one byte for the NUL at the end.
    let room = request.ifr_name.len() - 1;
    for (place, byte) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_flags = FLAGS;
    // SAFETY: the descriptor is open, and `request` is a live `ifreq` as TUNSETIFF reads and writes it.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), SET_DEVICE, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_device_lives_as_long_as_its_descriptor() {
        let run = RunId::new(format!("tap-test-{}", std::process::id())).unwrap();
        let tap = match make(&run, "arm") {
            Ok(tap) => tap,
            Err(why) => return crate::skip::skip("root", &why),
        };
        let name = network::outer_name(&format!("{run}/arm"));
        let device = Path::new("/sys/class/net").join(&name);
        let alias = std::fs::read_to_string(device.join("ifalias")).unwrap();
        assert_eq!(alias.trim(), format!("tare.run={run}"));
        assert_ne!(tap.addresses.host, tap.addresses.arm);
        drop(tap);
        assert!(!device.exists());
    }
}
