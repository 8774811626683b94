//! `socket`: sends one byte from one end of a connection to the other, both ends in one thread.
//!
//! Inside the timed regions: `net.tcp.send-receive.time`, writing a byte at one end and reading it at the other,
//! where it has already arrived, so no thread sleeps; `net.tcp.receive-send.time`, a read before the byte is there,
//! writing it at the other end, waiting with `epoll` (on Windows `WSAPoll`) until it is readable, and reading it.
//! Outside: connecting over the loopback.
//! Known bias: no thread is woken, so this measures the protocol stack and not the scheduler, which `tcp-round-trip`
//! measures. On the loopback the packet is delivered within the `write`.
//! Correspondence: "Send Async Then Receive" and "Receive and Send Async" of a published comparison of containers
//! (2019). It has each twice, for two interfaces of one runtime that end in the same system calls.
//! Source: ours, after those.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "socket": "one byte over a TCP connection to oneself: sent then received, and asked for before it is sent";
    revision 1, cut KERNEL
}

super::needs!(linux or windows, "epoll");

/// Timeout for a sent byte, milliseconds.
#[cfg(any(target_os = "linux", windows))]
const PATIENCE_MS: i32 = 5_000;

#[cfg(any(target_os = "linux", windows))]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::io::{ErrorKind, Read, Write};

    use tare_model::Failure;

    use crate::tcp;

    let (listener, address) = tcp::listen_on_loopback()?;
    let mut near = tcp::without_delay(tcp::connect(address)?)?;
    let mut far = tcp::without_delay(tcp::accept(&listener)?)?;
    let broken = |error: &std::io::Error| tcp::broken("to itself", error);
    let mut byte = [0x5au8];
    meter.loops("net.tcp.send-receive.time", 0.5, |times| {
        for _ in 0..times {
            near.write_all(&byte)
                .and_then(|()| far.read_exact(&mut byte))
                .map_err(|error| broken(&error))?;
        }
        Ok(())
    })?;
    far.set_nonblocking(true)
        .map_err(|error| ProbeError::system("set O_NONBLOCK", &error))?;
    let waiting = Waiting::new(&far)?;
    meter.loops("net.tcp.receive-send.time", 0.5, |times| {
        for _ in 0..times {
            match far.read(&mut byte) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(broken(&error)),
                Ok(_) => {
                    return Err(ProbeError::Failed(Failure::Void(
                        "a byte was there before it was sent".to_owned(),
                    )));
                }
            }
            near.write_all(&[0x5a]).map_err(|error| broken(&error))?;
            if !waiting.is_readable(&far)? {
                return Err(broken(&ErrorKind::TimedOut.into()));
            }
            far.read_exact(&mut byte).map_err(|error| broken(&error))?;
        }
        Ok(())
    })
}

/// Waits until a stream is readable.
#[cfg(target_os = "linux")]
struct Waiting(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Waiting {
    fn new(stream: &std::net::TcpStream) -> Result<Self, ProbeError> {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

        // SAFETY: epoll_create1 takes flags only.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(ProbeError::last("epoll_create1"));
        }
        // SAFETY: just opened, and owned nowhere else.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: both descriptors are open and `event` is live.
        let added = unsafe {
            libc::epoll_ctl(
                epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &raw mut event,
            )
        };
        if added != 0 {
            return Err(ProbeError::last("epoll_ctl"));
        }
        Ok(Self(epoll))
    }

    /// Waits for a byte; returns whether it arrived before the timeout.
    #[inline]
    fn is_readable(&self, _stream: &std::net::TcpStream) -> Result<bool, ProbeError> {
        use std::os::fd::AsRawFd;

        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the descriptor is open, and the buffer holds the one event that is requested.
        let ready = unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, PATIENCE_MS) };
        match ready {
            1 => Ok(true),
            0 => Ok(false),
            _ => Err(ProbeError::last("epoll_wait")),
        }
    }
}

/// Waits until a stream is readable; needs no handle.
#[cfg(windows)]
struct Waiting;

#[cfg(windows)]
impl Waiting {
    #[allow(clippy::unnecessary_wraps, reason = "the same signature everywhere")]
    fn new(_stream: &std::net::TcpStream) -> Result<Self, ProbeError> {
        Ok(Self)
    }

    /// Waits for a byte; returns whether it arrived before the timeout.
    #[allow(clippy::unused_self, reason = "the same signature everywhere")]
    fn is_readable(&self, stream: &std::net::TcpStream) -> Result<bool, ProbeError> {
        use std::os::windows::io::{AsRawSocket, RawSocket};

        /// `WSAPOLLFD`.
        #[repr(C)]
        struct PollEntry {
            socket: RawSocket,
            wanted: i16,
            found: i16,
        }
        /// `POLLRDNORM`.
        const READABLE: i16 = 0x0100;
        #[link(name = "ws2_32")]
        unsafe extern "system" {
            fn WSAPoll(asked: *mut PollEntry, count: u32, limit_ms: i32) -> i32;
        }
        let mut asked = PollEntry {
            socket: stream.as_raw_socket(),
            wanted: READABLE,
            found: 0,
        };
        // SAFETY: the socket is open, and one live structure is passed with its count.
        match unsafe { WSAPoll(&raw mut asked, 1, PATIENCE_MS) } {
            1 => Ok(true),
            0 => Ok(false),
            _ => Err(ProbeError::last("WSAPoll")),
        }
    }
}
