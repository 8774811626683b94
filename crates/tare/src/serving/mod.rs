//! A server in an arm, and a client on this machine that asks it.
//!
//! The server is the command of the call ([`CommandCall`]); its agent starts it once in an instance and it stays until
//! the instance goes. The client is a program of this machine, one run of it a trial; what it prints and how long it
//! takes is the trial's raw output. It is the same program for every arm, and outside of all of them.
//! What it cannot see: what the server prints while it runs; its agent keeps that.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tare_model::wire::{Reply, Request};
use tare_model::{CommandCall, CommandReport, Outcome, ProbeReport, Reason, Recipe};

use crate::cx::Context;
use crate::env::{Channel, ChannelError, Instance};

mod ask;
mod http;
mod ready;

pub use http::Http;
pub use ready::Ready;

/// Stands in a client's arguments for the address by which the arm's server is reached.
pub const HOST: &str = "{host}";
/// Stands there for the port.
pub const PORT: &str = "{port}";

/// A server has no time of its own: it lives as long as its instance.
const LIFE_NS: u64 = 7 * 24 * 3_600_000_000_000;
/// Set in the number of a resident server, so that it differs from every trial's.
const SERVER: u64 = 1 << 33;
/// How long the host waits for news of the server before it looks again whether it answers.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long an agent may take to end the server.
const END_LIMIT: Duration = Duration::from_secs(5);
/// How much of what a server said is repeated, bytes.
const SAID_LIMIT: usize = 600;

/// A client of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// The program and its arguments; [`HOST`] and [`PORT`] are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The requests that Tare itself sends, instead of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// The port on which the server listens inside.
    pub port: u16,
    /// When it is ready.
    pub ready: Ready,
    /// How long it may take until then, nanoseconds.
    pub ready_ns: u64,
}

impl Client {
    /// The client of a call, if its command is a server.
    ///
    /// # Errors
    /// What is not understood.
    pub fn of(call: &CommandCall) -> Result<Option<Self>, String> {
        let text = call.client.as_deref();
        text.map(serde_json::from_str)
            .transpose()
            .map_err(|error| format!("`client`: {error}"))
    }

    /// As a call holds it.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are always JSON")
    }
}

/// The server and its client, where a recipe is one.
pub fn asked(recipe: &Recipe) -> Option<(CommandCall, Client)> {
    let Recipe::Probe(probe) = recipe else {
        return None;
    };
    let call = CommandCall::from_args(&probe.args).ok()?;
    let client = Client::of(&call).ok()??;
    Some((call, client))
}

/// Why a server does not serve, or its client got no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Ctrl-C.
    Cancelled,
    /// The agent cannot be talked to.
    Channel(ChannelError),
    /// It cannot be here.
    Unavailable(Reason),
    /// What the server did, as what follows "the server".
    Server(String),
    /// The client did not end within this time.
    TooLong(Duration),
    /// The client could not be run.
    Client(String),
}

/// A server that runs in an instance.
#[derive(Debug)]
pub struct Server {
    /// The trial under which its agent knows it.
    number: u64,
    /// Where the client reaches it.
    pub way: SocketAddr,
}

impl Server {
    /// Starts the server of a call and waits until it is ready.
    ///
    /// # Errors
    /// It never gets ready; it is ended then.
    pub fn start(
        cx: &Context<'_>,
        instance: &mut dyn Instance,
        (call, client): (&CommandCall, &Client),
        number: u64,
    ) -> Result<Self, NoAnswer> {
        let way = instance
            .way_to(client.port)
            .map_err(NoAnswer::Unavailable)?;
        // A proxy in front of it takes connections before it does.
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
        let mut last;
        loop {
            server.check(channel, LOOK_AGAIN)?;
            if cx.cancel.is_requested() {
                return Err(NoAnswer::Cancelled);
            }
            let looked = client.ready.look(own).and_then(|()| {
                if way == own {
                    Ok(())
                } else {
                    client.ready.look(way)
                }
            });
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

    /// Looks whether it still runs, for news at most so long.
    ///
    /// # Errors
    /// It has ended.
    pub fn check(&self, channel: &mut dyn Channel, limit: Duration) -> Result<(), NoAnswer> {
        match channel.receive(limit) {
            Err(ChannelError::Timeout(_)) => Ok(()),
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
            Ok(_) => Ok(()),
        }
    }

    /// Ends it, and waits until it is gone.
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

    /// One run of the client against it.
    ///
    /// # Errors
    /// It did not end in time, could not be run, or the server ended meanwhile.
    pub fn ask(
        &self,
        cx: &Context<'_>,
        channel: &mut dyn Channel,
        (call, client): (&CommandCall, &Client),
        limit: Duration,
    ) -> Result<Outcome, NoAnswer> {
        let outside = (cx.exec, cx.clock, cx.cancel);
        let asked = match &client.http {
            Some(http) => http::run(outside, http, self.way),
            None => ask::run(outside, &client.argv, self.way, limit),
        };
        // Why the client failed is the server's end, where that came first.
        self.check(channel, Duration::ZERO)?;
        Ok(ask::outcome(CommandReport {
            pick: call.pick.clone(),
            ..asked?
        }))
    }
}

/// How a server ended and what it said last.
fn ended(report: &CommandReport) -> String {
    use tare_model::outcome::Exit;
    let how = match report.exit {
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    };
    let said = [&report.stderr.0, &report.stdout.0];
    let said = said.into_iter().find(|bytes| !bytes.is_empty());
    let said = said.map_or_else(String::new, |bytes| {
        let end = &bytes[bytes.len().saturating_sub(SAID_LIMIT)..];
        let text = String::from_utf8_lossy(end);
        format!(": {}", text.trim().escape_debug())
    });
    format!("{how} instead of serving{said}")
}

#[cfg(test)]
mod tests;
