//! An HTTP/1.1 client that times requests to several servers, one server at a time.
//!
//! A single connection in a closed loop blocks in `read`: two syscalls per request. Several connections, or a rate,
//! use epoll. With a rate, latency counts from the scheduled send time, so that a stalled server does not get fewer
//! requests. The latency of a request that needs a new connection includes connecting. Connections stay open between
//! slices.
//! Limits: connecting blocks, so a full accept queue also delays the other connections of the same server.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use tare_model::{whole_ns, whole_part};

use super::http::{AnswerReader, Answered, Request, Unreadable};
use super::request_plan::RequestPlan;
use super::slice::LOOK;
pub use super::slice::{Answer, Limits, Slice, SliceError, SliceLength};
use crate::cx::{Cancel, Clock};

/// The end of a wait for the next send time is spun, because timers fire late.
const SPIN_NS: u64 = 80_000;
const BUFFER_BYTES: usize = 64 << 10;
const EVENTS: usize = 64;

/// A connection and its current request.
#[derive(Debug, Default)]
struct Line {
    stream: Option<TcpStream>,
    /// Whether the connection has delivered an answer before.
    is_used: bool,
    reader: Option<AnswerReader>,
    /// Index of the request in the mix.
    request: usize,
    /// Bytes of the request sent so far.
    n_sent: usize,
    from_ns: u64,
    sent_ns: u64,
    /// Answers in this slice.
    n_answers: u64,
}

struct Peer {
    address: SocketAddr,
    /// The encoded requests.
    requests: Vec<Vec<u8>>,
    /// Sent before the first request of a connection.
    session: Vec<u8>,
    lines: Vec<Line>,
    /// The epoll instance, unless a single connection blocks.
    watch: Option<OwnedFd>,
    /// Index of the next request in the mix.
    next: usize,
}

/// Sends requests to servers and times them.
pub struct Client<'c> {
    clock: &'c dyn Clock,
    cancel: &'c Cancel,
    asked: RequestPlan,
    limits: Limits,
    peers: Vec<Peer>,
    buffer: Vec<u8>,
}

impl<'c> Client<'c> {
    /// A client of these servers. Connections are opened when they are needed.
    pub fn new(
        clock: &'c dyn Clock,
        cancel: &'c Cancel,
        servers: &[SocketAddr],
        asked: RequestPlan,
    ) -> Self {
        let peer = |address: &SocketAddr| {
            let host = asked.host.clone().unwrap_or_else(|| address.to_string());
            let requests = asked.requests.iter();
            let lines = 0..asked.connections.max(1);
            Peer {
                address: *address,
                requests: requests
                    .map(|request| request.to_bytes(&host, asked.keep_alive))
                    .collect(),
                session: asked
                    .requests
                    .first()
                    .map_or_else(Vec::new, Request::session),
                lines: lines.map(|_| Line::default()).collect(),
                watch: None,
                next: 0,
            }
        };
        Self {
            peers: servers.iter().map(peer).collect(),
            clock,
            cancel,
            asked,
            limits: Limits::default(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// The number of servers.
    pub fn servers(&self) -> usize {
        self.peers.len()
    }

    /// The clock that times requests.
    pub fn clock(&self) -> &'c dyn Clock {
        self.clock
    }

    /// Closes all connections to a server and restarts its mix.
    pub fn forget(&mut self, server: usize) {
        self.peers[server].next = 0;
        for line in &mut self.peers[server].lines {
            line.stream = None;
            line.reader = None;
        }
    }

    /// Sends requests to one server.
    ///
    /// # Errors
    /// The first request without an answer; all connections to the server are closed.
    pub fn slice(&mut self, server: usize, how: SliceLength) -> Result<Slice, SliceError> {
        for line in &mut self.peers[server].lines {
            line.n_answers = 0;
        }
        let slice = if self.is_alone() {
            self.one_by_one(server, how)
        } else {
            self.at_once(server, how)
        };
        if slice.is_err() {
            self.forget(server);
        }
        slice
    }

    fn is_alone(&self) -> bool {
        self.asked.connections <= 1 && self.asked.rate.is_none()
    }

    /// Whether the first request of each connection counts too: for a sustained load, and if each request has a new
    /// connection.
    fn counts_all(&self) -> bool {
        self.asked.rate.is_some() || !self.asked.keep_alive
    }

    fn one_by_one(&mut self, server: usize, how: SliceLength) -> Result<Slice, SliceError> {
        let mut slice = Slice::default();
        let begun_ns = self.clock.now_ns();
        let (mut now_ns, mut counted_from_ns) = (begun_ns, begun_ns);
        loop {
            self.begin(server, 0, now_ns, &mut slice)?;
            while !self.advance(server, 0, &mut slice)? {}
            now_ns = self.clock.now_ns();
            if slice.answers.len() == 1 && !self.counts_all() {
                counted_from_ns = now_ns;
            }
            let is_over = match how {
                SliceLength::For(ns) => now_ns.saturating_sub(begun_ns) >= ns,
                SliceLength::Count(count) => slice.answers.len() as u64 >= count,
            };
            if is_over {
                slice.counted_ns = now_ns.saturating_sub(counted_from_ns);
                return Ok(slice);
            }
        }
    }

    fn at_once(&mut self, server: usize, how: SliceLength) -> Result<Slice, SliceError> {
        let mut slice = Slice::default();
        let watch = &mut self.peers[server].watch;
        if watch.is_none() {
            *watch = Some(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?);
        }
        let n_lines = self.peers[server].lines.len();
        let mut idle: Vec<usize> = (0..n_lines).rev().collect();
        let rate = self.asked.rate;
        let begun_ns = self.clock.now_ns();
        let due_ns = |n: u64| begun_ns + rate.map_or(0, |rate| whole_part(n as f64 / rate * 1e9));
        let is_over = |n: u64, now_ns: u64| match how {
            SliceLength::Count(count) => n >= count,
            SliceLength::For(ns) => {
                n > 0 && rate.map_or(now_ns, |_| due_ns(n)) >= begun_ns.saturating_add(ns)
            }
        };
        let (mut n_begun, mut counted_from_ns) = (0, None);
        let (mut checked_ns, mut events) = (begun_ns, Vec::with_capacity(EVENTS));
        loop {
            let mut now_ns = self.clock.now_ns();
            while !is_over(n_begun, now_ns)
                && due_ns(n_begun) <= now_ns
                && let Some(at) = idle.pop()
            {
                let from_ns = rate.map_or(now_ns, |_| due_ns(n_begun));
                if self.counts_all() || self.peers[server].lines[at].n_answers > 0 {
                    counted_from_ns.get_or_insert(from_ns);
                }
                self.begin(server, at, from_ns, &mut slice)?;
                n_begun += 1;
                now_ns = self.clock.now_ns();
            }
            let is_ending = is_over(n_begun, now_ns);
            if is_ending && idle.len() == n_lines {
                slice.counted_ns = now_ns.saturating_sub(counted_from_ns.unwrap_or(begun_ns));
                return Ok(slice);
            }
            let next_ns = (!is_ending && !idle.is_empty()).then(|| due_ns(n_begun));
            self.wait(server, next_ns, now_ns, &mut events)?;
            for event in &events {
                let at = usize::try_from(event.data.u64()).unwrap_or_default();
                let line = &mut self.peers[server].lines[at];
                if line.reader.is_none() {
                    // The server has closed an idle connection.
                    line.stream = None;
                } else if self.advance(server, at, &mut slice)? {
                    idle.push(at);
                }
            }
            // Limits are seconds, and checking all connections takes as long as a request.
            if now_ns.saturating_sub(checked_ns) >= whole_ns(LOOK) {
                self.check_limits(server)?;
                checked_ns = now_ns;
            }
        }
    }

    /// Waits until a connection is readable, at most until the next request is due.
    fn wait(
        &self,
        server: usize,
        next_ns: Option<u64>,
        now_ns: u64,
        events: &mut Vec<epoll::Event>,
    ) -> io::Result<()> {
        events.clear();
        let Some(watch) = &self.peers[server].watch else {
            return Ok(());
        };
        let until_ns = |next_ns: u64| next_ns.saturating_sub(now_ns).saturating_sub(SPIN_NS);
        let wait = next_ns.map_or(LOOK, |next_ns| Duration::from_nanos(until_ns(next_ns)));
        let wait = Timespec::try_from(wait.min(LOOK)).map_err(io::Error::other)?;
        match epoll::wait(watch, rustix::buffer::spare_capacity(events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Starts the next request on a connection.
    fn begin(
        &mut self,
        server: usize,
        at: usize,
        from_ns: u64,
        slice: &mut Slice,
    ) -> Result<(), SliceError> {
        let peer = &mut self.peers[server];
        let line = &mut peer.lines[at];
        line.request = peer.next;
        peer.next = (peer.next + 1) % peer.requests.len();
        (line.from_ns, line.sent_ns, line.n_sent) = (from_ns, self.clock.now_ns(), 0);
        let request = &self.asked.requests[line.request];
        line.reader = Some(request.reader(slice.answers.is_empty()));
        self.send(server, at, slice)
    }

    /// Sends the rest of a request; opens a connection if there is none.
    fn send(&mut self, server: usize, at: usize, slice: &mut Slice) -> Result<(), SliceError> {
        loop {
            let is_blocking = self.is_alone();
            let peer = &mut self.peers[server];
            let line = &mut peer.lines[at];
            let stream = match &mut line.stream {
                Some(stream) => stream,
                none => {
                    line.is_used = false;
                    let opened = open(peer.address, self.limits.time_ns, is_blocking);
                    let stream = none.insert(opened.map_err(|error| {
                        SliceError::Failed(format!("no connection to {}: {error}", peer.address))
                    })?);
                    if let (false, Some(watch)) = (is_blocking, &peer.watch) {
                        let data = epoll::EventData::new_u64(at as u64);
                        let added = epoll::add(watch, &*stream, data, epoll::EventFlags::IN);
                        added.map_err(io::Error::from)?;
                    }
                    if !peer.session.is_empty() {
                        // Short enough to fit into the empty buffer of a new connection at once.
                        stream.write_all(&peer.session)?;
                        if let Some(reader) = &mut line.reader {
                            reader.expect_session();
                        }
                    }
                    stream
                }
            };
            let rest = &peer.requests[line.request][line.n_sent..];
            if rest.is_empty() {
                return Ok(());
            }
            match stream.write(rest) {
                Ok(n) => line.n_sent += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let look = Timespec::try_from(LOOK).ok();
                    let _ = poll(&mut [PollFd::new(stream, PollFlags::OUT)], look.as_ref());
                    self.check_limits(server)?;
                }
                Err(error) => self.close(server, at, &error.to_string(), slice)?,
            }
        }
    }

    /// Handles a connection that was closed before it answered. A server may close an idle connection at any time;
    /// then the request is sent again over a new one, and that is counted.
    fn close(
        &mut self,
        server: usize,
        at: usize,
        why: &str,
        slice: &mut Slice,
    ) -> Result<(), SliceError> {
        let peer = &mut self.peers[server];
        let line = &mut peer.lines[at];
        let is_untouched = line.reader.as_ref().is_some_and(AnswerReader::is_untouched);
        line.stream = None;
        if line.is_used && is_untouched && self.asked.requests[line.request].is_safe() {
            line.n_sent = 0;
            slice.reopened += 1;
            return Ok(());
        }
        Err(SliceError::Failed(format!(
            "the connection was closed without an answer: {why}"
        )))
    }

    /// Reads available data; returns whether the answer is complete.
    fn advance(&mut self, server: usize, at: usize, slice: &mut Slice) -> Result<bool, SliceError> {
        let counts_all = self.counts_all();
        let peer = &mut self.peers[server];
        let line = &mut peer.lines[at];
        let (Some(stream), Some(reader)) = (&mut line.stream, &mut line.reader) else {
            return Ok(false);
        };
        let unreadable = |why: Unreadable| SliceError::Failed(why.to_string());
        let has_ended = match stream.read(&mut self.buffer) {
            Ok(0) if reader.is_untouched() => {
                self.close(server, at, "it ended before the first byte", slice)?;
                self.send(server, at, slice)?;
                return Ok(false);
            }
            Ok(0) => reader.close().map(|()| true).map_err(unreadable)?,
            Ok(n) => reader.take(&self.buffer[..n]).map_err(unreadable)?,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut => false,
                _ => {
                    self.close(server, at, &error.to_string(), slice)?;
                    self.send(server, at, slice)?;
                    return Ok(false);
                }
            },
        };
        if !has_ended {
            self.check_limits(server)?;
            return Ok(false);
        }
        let now_ns = self.clock.now_ns();
        let Some(answered) = line.reader.take().map(AnswerReader::finish) else {
            return Ok(false);
        };
        if !(answered.keeps && self.asked.keep_alive) {
            line.stream = None;
        }
        line.is_used = true;
        line.n_answers += 1;
        slice.answers.push(Answer {
            from_ns: line.from_ns,
            latency_ns: now_ns.saturating_sub(line.from_ns),
            status: answered.status,
            bytes: answered.bytes,
            digest: answered.digest,
            is_counted: counts_all || line.n_answers > 1,
        });
        if !self.asked.is_expected(answered.status) && slice.unexpected.is_none() {
            let name = self.asked.requests[line.request].name();
            slice.unexpected = Some(unexpected(name, &answered));
        }
        Ok(true)
    }

    /// Checks whether a request to this server exceeds a limit, or the user wants to stop.
    fn check_limits(&self, server: usize) -> Result<(), SliceError> {
        if self.cancel.is_requested() {
            return Err(SliceError::Cancelled);
        }
        let now_ns = self.clock.now_ns();
        let peer = &self.peers[server];
        for line in &peer.lines {
            let Some(reader) = &line.reader else {
                continue;
            };
            if reader.body_bytes() > self.limits.body_bytes {
                return Err(SliceError::Failed(format!(
                    "the answer is longer than {} bytes",
                    self.limits.body_bytes
                )));
            }
            if now_ns.saturating_sub(line.sent_ns) > self.limits.time_ns {
                return Err(SliceError::Failed(format!(
                    "no complete answer within {} s, {} bytes of its body so far",
                    self.limits.time_ns as f64 / 1e9,
                    reader.body_bytes()
                )));
            }
        }
        Ok(())
    }
}

fn unexpected(path: &str, answered: &Answered) -> String {
    let path = path.escape_debug();
    if let Some(location) = answered
        .location
        .as_ref()
        .filter(|_| answered.status / 100 == 3)
    {
        return format!(
            "{path} is redirected to `{location}` (status {}); hint: ask for that address, or expect {}",
            answered.status, answered.status
        );
    }
    let begins = String::from_utf8_lossy(&answered.excerpt);
    let begins = begins.trim().escape_debug();
    format!(
        "{path} is answered with status {}: `{begins}`",
        answered.status
    )
}

/// Opens a connection, non-blocking or with a short read timeout.
fn open(address: SocketAddr, limit_ns: u64, is_blocking: bool) -> io::Result<TcpStream> {
    let limit = Duration::from_nanos(limit_ns.max(1));
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_nodelay(true)?;
    if is_blocking {
        stream.set_read_timeout(Some(LOOK))?;
    } else {
        stream.set_nonblocking(true)?;
    }
    Ok(stream)
}

/// Measures the client's share of a request, nanoseconds: writing, reading and parsing over a socket that already
/// holds the answer.
///
/// # Errors
/// The system cannot provide a socket.
pub fn own_cost_ns(clock: &dyn Clock) -> io::Result<u64> {
    const TIMES: usize = 200;
    let (near, mut far) = UnixStream::pair()?;
    let cancel = Cancel::new();
    let asked = RequestPlan::closed_loop(Request::get("/")).map_err(io::Error::other)?;
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut client = Client::new(clock, &cancel, &[nowhere], asked);
    // A Unix socket as a TCP stream: reading and writing work the same for both.
    client.peers[0].lines[0].stream = Some(TcpStream::from(OwnedFd::from(near)));
    let answer = [
        b"HTTP/1.1 200 OK\r\nServer: none\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n".as_slice(),
        &[b'x'; 1024],
    ]
    .concat();
    let mut times = Vec::with_capacity(TIMES);
    let mut asked = vec![0; client.peers[0].requests[0].len()];
    for _ in 0..TIMES {
        far.write_all(&answer)?;
        let slice = client.slice(0, SliceLength::Count(1));
        let slice = slice.map_err(io::Error::other)?;
        times.push(slice.answers[0].latency_ns);
        far.read_exact(&mut asked)?;
    }
    times.sort_unstable();
    Ok(times[TIMES / 2])
}

#[cfg(test)]
pub(super) mod tests;
