//! Runs the user's server in an instance, and trials of a client against it.
//!
//! The server is the command of the call ([`CommandCall`]); its agent starts it once in an instance, where it stays
//! until the instance is removed. The client's output, or its duration, is the trial's raw output. All arms have the
//! same client, which runs outside of all of them.
//! Limits: the agent keeps the server's output, and the host reads it only until the server is ready.

use std::net::SocketAddr;
use std::time::Duration;

use tare_model::outcome::Bytes;
use tare_model::wire::{Reply, Request};
use tare_model::{CommandCall, CommandReport, Outcome, ProbeReport, Reason};

use crate::cx::Context;
use crate::env::{Channel, ChannelError, Instance};
use crate::service::program::{self, NoEnd};
use crate::service::request_plan::RequestPlan;
use crate::service::user::{UserClient, outcome};
#[cfg(target_os = "linux")]
use crate::service::{turns::Block, user::ask};
use crate::workload::user_command;

/// A server has no time limit; it lives as long as its instance.
const LIFE_NS: u64 = 7 * 24 * 3_600_000_000_000;
/// Set in the number of a resident server, so that it differs from every trial's.
const SERVER: u64 = 1 << 33;
/// How long the host waits for news of the server before it checks again whether it answers.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long the news of a server's end may take.
const NEWS_LIMIT: Duration = Duration::from_secs(2);
/// How long an agent may take to end the server.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of a server's output that are repeated.
const SAID_LIMIT: usize = 600;

/// Why a server does not serve, or its client got no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Ctrl-C.
    Cancelled,
    /// The channel to the agent failed.
    Channel(ChannelError),
    /// The server is unavailable here.
    Unavailable(Reason),
    /// What the server did, as the rest of a sentence that begins with "the server".
    Server(String),
    /// The client did not end within this time.
    TooLong(Duration),
    /// The client could not be run.
    Client(String),
}

impl From<NoEnd> for NoAnswer {
    fn from(end: NoEnd) -> Self {
        match end {
            NoEnd::Cancelled => Self::Cancelled,
            NoEnd::TooLong(limit) => Self::TooLong(limit),
            NoEnd::Failed(why) => Self::Client(why),
        }
    }
}

/// A server that runs in an instance.
#[derive(Debug)]
pub struct ResidentServer {
    /// The server's trial number in its agent.
    number: u64,
    /// The address where the client reaches it.
    pub way: SocketAddr,
}

impl ResidentServer {
    /// Starts the server of a call and waits until it is ready.
    ///
    /// # Errors
    /// The server does not become ready; it is ended then.
    pub fn start(
        cx: &Context<'_>,
        instance: &mut dyn Instance,
        (call, client): (&CommandCall, &UserClient),
        number: u64,
    ) -> Result<Self, NoAnswer> {
        let way = instance
            .way_to(client.port)
            .map_err(NoAnswer::Unavailable)?;
        // A proxy in front of the server accepts connections before the server does.
        let own = instance.address_from_host();
        let own = own.map_or(way, |address| SocketAddr::new(address, client.port));
        let server = Self {
            number: number | SERVER,
            way,
        };
        let request = Request::Run {
            trial: server.number,
            call: CommandCall {
                client: None,
                pick: None,
                observe: false,
                streams_output: client.ready.printed().is_some(),
                ..call.clone()
            }
            .to_probe(),
            target_ns: 0,
            limit_ns: LIFE_NS,
            workdir: instance.workdir(),
            hold: false,
            turns: None,
            cpu: None,
        };
        let channel = instance.channel();
        channel.send(&request).map_err(NoAnswer::Channel)?;
        let begun_ns = cx.clock.now_ns();
        let mut printed = Vec::new();
        let mut last;
        loop {
            if let Some(bytes) = server.news(channel, LOOK_AGAIN)? {
                printed.extend(bytes.0);
            }
            if cx.cancel.is_requested() {
                return Err(NoAnswer::Cancelled);
            }
            let looked = find_in(&printed, client.ready.printed());
            let looked = looked
                .and_then(|()| client.ready.look(own))
                .and_then(|()| client.ready.on_the_way().look(way));
            last = match looked {
                Ok(()) => return Ok(server),
                Err(why) => why,
            };
            if cx.clock.now_ns().saturating_sub(begun_ns) > client.ready_ns {
                break;
            }
        }
        server.end(cx, channel)?;
        Err(NoAnswer::Server(format!(
            "was not ready within {:.0} s: {} at {own}: {last}",
            client.ready_ns as f64 / 1e9,
            client.ready.what(),
        )))
    }

    /// Checks that the server still runs; waits up to `limit` for news.
    ///
    /// # Errors
    /// It has ended.
    pub fn check(&self, channel: &mut dyn Channel, limit: Duration) -> Result<(), NoAnswer> {
        while self.news(channel, limit)?.is_some() {}
        Ok(())
    }

    /// Returns new output of the server, if its output is streamed; waits up to `limit` for news.
    ///
    /// # Errors
    /// It has ended.
    fn news(&self, channel: &mut dyn Channel, limit: Duration) -> Result<Option<Bytes>, NoAnswer> {
        match channel.receive(limit) {
            Err(ChannelError::Timeout(_)) => Ok(None),
            Err(error) => Err(NoAnswer::Channel(error)),
            Ok(Reply::Done { trial, raw }) if trial == self.number => {
                let report = serde_json::from_slice::<ProbeReport>(&raw.stdout.0).ok();
                let report = report.and_then(|report| report.command);
                Err(NoAnswer::Server(
                    report
                        .as_ref()
                        .map_or_else(|| "ended without a report".to_owned(), ended),
                ))
            }
            Ok(Reply::Unavailable { trial, reason }) if trial == self.number => {
                Err(NoAnswer::Unavailable(reason))
            }
            Ok(Reply::Failed { trial, failure }) if trial == self.number => {
                Err(NoAnswer::Server(format!("ended: {failure}")))
            }
            Ok(Reply::Printed { trial, bytes }) if trial == self.number => Ok(Some(bytes)),
            Ok(_) => Ok(None),
        }
    }

    /// Checks that the server still runs after a request. If the client failed because the server ended, its agent
    /// may report that a moment later, so this waits longer.
    ///
    /// # Errors
    /// It has ended.
    pub fn check_after(&self, channel: &mut dyn Channel, is_failed: bool) -> Result<(), NoAnswer> {
        self.check(
            channel,
            if is_failed {
                NEWS_LIMIT
            } else {
                Duration::ZERO
            },
        )
    }

    /// Ends the server and waits until it is gone.
    fn end(&self, cx: &Context<'_>, channel: &mut dyn Channel) -> Result<(), NoAnswer> {
        let cancel = Request::Cancel { trial: self.number };
        channel.send(&cancel).map_err(NoAnswer::Channel)?;
        let asked_ns = cx.clock.now_ns();
        loop {
            match self.check(channel, LOOK_AGAIN) {
                Ok(()) => {}
                Err(NoAnswer::Channel(error)) => return Err(NoAnswer::Channel(error)),
                Err(_) => return Ok(()),
            }
            let waited = cx.clock.now_ns().saturating_sub(asked_ns);
            if u128::from(waited) > END_LIMIT.as_nanos() {
                return Err(NoAnswer::Channel(ChannelError::Timeout(END_LIMIT)));
            }
        }
    }

    /// Runs the client once against the server.
    ///
    /// # Errors
    /// The client did not end in time, could not be run, or the server ended meanwhile.
    pub fn ask(
        &self,
        cx: &Context<'_>,
        channel: &mut dyn Channel,
        (call, client): (&CommandCall, &UserClient),
        limit: Duration,
    ) -> Result<Outcome, NoAnswer> {
        let asked = match &client.http {
            Some(http) => by_http(cx, client, http, self.way, call),
            None => program::run(
                (cx.exec, cx.clock, cx.cancel),
                &client.argv,
                self.way,
                limit,
            )
            .map(|report| outcome(report, call.pick.clone(), None))
            .map_err(NoAnswer::from),
        };
        let is_failed = !matches!(asked, Ok(Outcome::Completed(_)));
        self.check_after(channel, is_failed)?;
        asked
    }
}

#[cfg(target_os = "linux")]
fn by_http(
    cx: &Context<'_>,
    client: &UserClient,
    http: &RequestPlan,
    way: SocketAddr,
    call: &CommandCall,
) -> Result<Outcome, NoAnswer> {
    let block = Block {
        rows: vec![vec![0]],
        ..Block::default()
    };
    let all = ask(cx, client, http, (&[way], block), call.pick.as_ref());
    let one = all.map_err(|_| NoAnswer::Cancelled)?.pop();
    one.ok_or_else(|| NoAnswer::Client("it was asked nothing".to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn by_http(
    _: &Context<'_>,
    _: &UserClient,
    _: &RequestPlan,
    _: SocketAddr,
    _: &CommandCall,
) -> Result<Outcome, NoAnswer> {
    Err(NoAnswer::Client(
        "HTTP is asked by Tare itself on Linux only; `--client CMD` asks with another program"
            .to_owned(),
    ))
}

/// Searches a server's output for a line, if there is a pattern.
///
/// # Errors
/// The line is missing, as one clause.
fn find_in(printed: &[u8], pattern: Option<&str>) -> Result<(), String> {
    let Some(pattern) = pattern else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(printed);
    if user_command::compiled(pattern)?.is_match(&text) {
        return Ok(());
    }
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    Err(match last {
        "" => "it printed nothing".to_owned(),
        _ => format!("it printed other lines, the last `{}`", last.escape_debug()),
    })
}

/// How a server ended, and the end of its output.
fn ended(report: &CommandReport) -> String {
    use tare_model::outcome::Exit;
    let how = match report.exit {
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    };
    let shown = match program::tail(&report.stderr.0, &report.stdout.0, SAID_LIMIT) {
        text if text.is_empty() => String::new(),
        text => format!(": {}", text.escape_debug()),
    };
    format!("{how} instead of serving{shown}")
}

#[cfg(test)]
mod tests;
