//! Builds and parses rtnetlink messages by hand.
//!
//! Only what a veth pair needs. Layouts from `include/uapi/linux/{netlink,rtnetlink,if_link}.h`; numbers are in the
//! machine's byte order, addresses in network order.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use super::sys;

/// A message under construction.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// The start of a nested attribute, to be passed to [`Message::close`].
#[derive(Debug)]
pub(super) struct Nest(usize);

/// `AF_INET` with the width that the fixed parts need.
const IPV4: u8 = 2;

/// Narrows a message type or flag, for which the C library has wider numbers.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "fields of 16 bits, whose constants are made for them"
)]
const fn short(number: libc::c_int) -> u16 {
    number as u16
}

/// Converts an attribute's length; the kernel refuses one that is wrong.
fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

impl Message {
    /// Starts a request of a type, with flags in addition to `NLM_F_REQUEST`.
    pub(super) fn new(kind: u16, flags: i32) -> Self {
        let mut bytes = vec![0u8; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&short(flags | libc::NLM_F_REQUEST).to_ne_bytes());
        Self { bytes }
    }

    /// Appends the fixed part of a link message (`struct ifinfomsg`).
    pub(super) fn link(mut self, index: i32, flags: u32, change: u32) -> Self {
        self.bytes.extend([0, 0, 0, 0]);
        self.bytes.extend(index.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(change.to_ne_bytes());
        self
    }

    /// Appends the fixed part of an address message (`struct ifaddrmsg`), IPv4.
    pub(super) fn address(mut self, index: u32, prefix_bits: u8) -> Self {
        self.bytes
            .extend([IPV4, prefix_bits, 0, libc::RT_SCOPE_UNIVERSE]);
        self.bytes.extend(index.to_ne_bytes());
        self
    }

    /// Appends the fixed part of a route message (`struct rtmsg`), IPv4.
    pub(super) fn route(mut self, table: u8, kind: u8) -> Self {
        self.bytes.extend([
            IPV4,
            0,
            0,
            0,
            table,
            libc::RTPROT_STATIC,
            libc::RT_SCOPE_UNIVERSE,
            kind,
        ]);
        self.bytes.extend(0u32.to_ne_bytes());
        self
    }

    /// Appends an attribute.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.bytes.extend(length(value.len() + 4).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.pad();
        self
    }

    /// Appends a NUL-terminated text as an attribute.
    pub(super) fn text(self, kind: u16, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value)
    }

    /// Opens a nested attribute.
    pub(super) fn open(mut self, kind: u16) -> (Self, Nest) {
        let start = self.bytes.len();
        self.bytes.extend([0, 0]);
        self.bytes.extend(kind.to_ne_bytes());
        (self, Nest(start))
    }

    /// Closes a nested attribute.
    pub(super) fn close(mut self, nest: &Nest) -> Self {
        let length = length(self.bytes.len() - nest.0);
        self.bytes[nest.0..nest.0 + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad();
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// A received message: its type and the bytes after its header.
#[derive(Debug)]
struct Answer<'a> {
    kind: u16,
    body: &'a [u8],
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    bytes
        .get(position..position + 2)
        .map(|two| u16::from_ne_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    bytes
        .get(position..position + 4)
        .map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

fn answers(mut bytes: &[u8]) -> Vec<Answer<'_>> {
    let mut answers = Vec::new();
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        if length < 16 || length > bytes.len() {
            break;
        }
        answers.push(Answer {
            kind,
            body: &bytes[16..length],
        });
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    answers
}

/// Parses the attributes after a fixed part.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut attributes = Vec::new();
    while let (Some(length), Some(kind)) = (u16_at(bytes, 0), u16_at(bytes, 2)) {
        let length = usize::from(length);
        if length < 4 || length > bytes.len() {
            break;
        }
        attributes.push((kind & 0x3fff, &bytes[4..length]));
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    attributes
}

fn refusal(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Sends a request and waits for the kernel's acknowledgement.
pub(super) fn ask(socket: &OwnedFd, message: Message) -> io::Result<()> {
    sys::send(socket, &message.finish())?;
    let mut buffer = vec![0u8; 16 << 10];
    loop {
        let length = sys::receive(socket, &mut buffer)?;
        for answer in answers(&buffer[..length]) {
            if answer.kind == short(libc::NLMSG_ERROR) {
                return refusal(answer.body);
            }
        }
    }
}

/// Returns the index of the device of this name, if there is one.
pub(super) fn link_index(socket: &OwnedFd, name: &str) -> io::Result<Option<i32>> {
    let message = Message::new(libc::RTM_GETLINK, 0)
        .link(0, 0, 0)
        .text(libc::IFLA_IFNAME, name);
    sys::send(socket, &message.finish())?;
    let mut buffer = vec![0u8; 32 << 10];
    let length = sys::receive(socket, &mut buffer)?;
    for answer in answers(&buffer[..length]) {
        if answer.kind == libc::RTM_NEWLINK {
            return Ok(u32_at(answer.body, 4).map(u32::cast_signed));
        }
        if answer.kind == short(libc::NLMSG_ERROR) {
            return match refusal(answer.body) {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
                Err(error) => Err(error),
                Ok(()) => Ok(None),
            };
        }
    }
    Ok(None)
}

/// Dumps a table and returns the values of `read` for the bodies of this type.
fn dump<T>(
    socket: &OwnedFd,
    message: Message,
    wanted: u16,
    read: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Vec<T>> {
    sys::send(socket, &message.finish())?;
    let mut found = Vec::new();
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let length = sys::receive(socket, &mut buffer)?;
        for answer in answers(&buffer[..length]) {
            if answer.kind == short(libc::NLMSG_DONE) {
                return Ok(found);
            }
            if answer.kind == short(libc::NLMSG_ERROR) {
                return refusal(answer.body).map(|()| found);
            }
            if answer.kind == wanted {
                found.extend(read(answer.body));
            }
        }
    }
}

/// Returns every device with a text attribute (`IFLA_IFALIAS`, `IFLA_QDISC`): index, name, text.
pub(super) fn texts(socket: &OwnedFd, wanted: u16) -> io::Result<Vec<(i32, String, String)>> {
    let message = Message::new(libc::RTM_GETLINK, libc::NLM_F_DUMP).link(0, 0, 0);
    dump(socket, message, libc::RTM_NEWLINK, |body| {
        let attributes = attributes(body.get(16..)?);
        let text = |wanted: u16| {
            let (_, value) = attributes.iter().find(|(kind, _)| *kind == wanted)?;
            let text = String::from_utf8_lossy(value);
            Some(text.trim_end_matches('\0').to_owned())
        };
        let index = u32_at(body, 4).unwrap_or(0).cast_signed();
        Some((index, text(libc::IFLA_IFNAME)?, text(wanted)?))
    })
}

/// Returns the destinations of every IPv4 route of every table, local addresses included, as network and prefix
/// length; default routes have length 0.
pub(super) fn destinations(socket: &OwnedFd) -> io::Result<Vec<(Ipv4Addr, u8)>> {
    let message = Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP).route(0, 0);
    dump(socket, message, libc::RTM_NEWROUTE, |body| {
        let attributes = attributes(body.get(12..)?);
        if i32::from(body[0]) != libc::AF_INET {
            return None;
        }
        let destination = attributes
            .into_iter()
            .find(|(kind, value)| *kind == libc::RTA_DST && value.len() == 4)
            .map_or(Ipv4Addr::UNSPECIFIED, |(_, value)| {
                Ipv4Addr::new(value[0], value[1], value[2], value[3])
            });
        Some((destination, body[1]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netlink_length_counts_only_inner_padding() {
        let (message, nest) = Message::new(16, 0).open(18);
        let bytes = message.text(3, "abcd").text(4, "x").close(&nest).finish();
        assert_eq!(bytes.len(), 16 + 4 + 12 + 8);
        assert_eq!(u32_at(&bytes, 0), Some(40));
        assert_eq!(u16_at(&bytes, 16), Some(24));
        let inner = attributes(&bytes[20..]);
        assert_eq!(inner, vec![(3, &b"abcd\0"[..]), (4, &b"x\0"[..])]);
    }

    #[test]
    fn truncated_netlink_message_yields_no_answer() {
        let bytes = Message::new(16, 0).link(1, 2, 3).finish();
        for length in 0..bytes.len() {
            assert!(answers(&bytes[..length]).is_empty());
        }
        assert_eq!(answers(&bytes).len(), 1);
    }

    #[test]
    fn loopback_qdisc_is_read_over_netlink() {
        let socket = sys::route_socket().unwrap();
        let queues = texts(&socket, libc::IFLA_QDISC).unwrap();
        let loopback = queues.iter().find(|(_, name, _)| name == "lo").unwrap();
        assert!(!loopback.2.is_empty(), "{queues:?}");
        assert_eq!(texts(&socket, 0x3fff).unwrap(), []);
    }

    #[test]
    fn the_kernel_lists_the_route_to_the_loopback_address() {
        let socket = sys::route_socket().unwrap();
        let loopback = Ipv4Addr::LOCALHOST;
        assert!(
            destinations(&socket)
                .unwrap()
                .iter()
                .any(|(address, _)| *address == loopback)
        );
        assert_eq!(link_index(&socket, "lo").unwrap(), Some(1));
        assert_eq!(link_index(&socket, "tare-missing").unwrap(), None);
    }
}
