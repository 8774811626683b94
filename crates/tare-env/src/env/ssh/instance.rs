//! A started `ssh` instance: a session with the agent at its other end.
//!
//! A resident agent is a session of the existing connection. One for a first instruction has a separate connection,
//! because that is the overhead of a user's `ssh host program`: name, keys, login, shell.
//! Limits: when the other machine's processes have really ended is unknown; the agent ends with its stdin.

use crate::env::prelude::*;

use std::net::TcpListener;

use super::super::channel::{Explaining, StreamChannel, pipes, wait_for_last_words};
use super::super::peer;
use super::command::{Share, ssh};
use super::connection::{Connection, Shared, refused};
use super::errors::words;
use super::reader::AfterMark;
use super::script::{SERVE, remote};
use super::settings::Settings;

/// Time limit for a connection to end after the loss of one of its sessions.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for an agent to end after its goodbye, and for `ssh` after its session.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// A started `ssh` instance.
pub(super) struct SshInstance {
    channel: SshChannel,
    workdir: String,
    inside: Result<IpAddr, Reason>,
    outside: Result<IpAddr, Reason>,
}

impl SshInstance {
    pub(super) fn start(
        cx: &Context<'_>,
        settings: &Settings,
        shared: Shared,
        agent: &str,
        mode: StartMode,
    ) -> Result<Self> {
        let connection = locked(&shared);
        let workdir = connection.report.work.clone();
        let mut arguments = vec![agent, workdir.as_str()];
        let share = match mode {
            StartMode::Resident => connection.share(),
            StartMode::Once => {
                arguments.push("--no-spare");
                Share::Alone
            }
        };
        let script = remote(Some(cx.run), SERVE, &arguments).ok_or_else(|| {
            let answer = format!(
                "the folder `{}` has other characters than a path of Tare's",
                workdir.escape_debug()
            );
            refused(settings, "starting the agent on", &answer)
        })?;
        let command = ssh(settings, share, None, cx.run, &script);
        let mut running = cx.exec.spawn(&command)?;
        let (writer, reader) = pipes(running.as_mut(), cx.cancel)?;
        let (inside, outside) = (inside(&connection), outside(&connection));
        drop(connection);
        Ok(Self {
            channel: SshChannel {
                stream: StreamChannel::new(writer, Box::new(AfterMark::new(reader))),
                running,
                connection: shared,
                host: settings.host.clone(),
            },
            workdir,
            inside,
            outside,
        })
    }
}

/// Checks an address that the other end named. The loopback is accepted only if it runs on this kernel.
fn named(connection: &Connection, address: IpAddr) -> Result<IpAddr, Reason> {
    if address.is_loopback() && connection.is_same_machine() {
        return Ok(address);
    }
    peer::on_network(address)
}

/// Returns the address of the other machine: the one that `ssh` reached, if it is the machine's own.
fn inside(connection: &Connection) -> Result<IpAddr, Reason> {
    let no_path = |why: String| Err(Reason::NoPath(why));
    match (connection.log.address, connection.report.ends) {
        (None, _) => no_path("ssh goes through a proxy, so only it reaches the other end".into()),
        (_, None) => no_path("the other end does not tell its address".into()),
        (Some(there), Some((_, own))) if there == own => named(connection, there),
        (Some(there), Some((_, own))) => no_path(format!(
            "ssh goes to {there}, which the other end knows as {own}: addresses are translated in between"
        )),
    }
}

/// Returns this machine's address for the other one: the one that it saw `ssh` come from, if it is ours.
fn outside(connection: &Connection) -> Result<IpAddr, Reason> {
    let no_path = |why: String| Err(Reason::NoPath(why));
    match (connection.log.address, connection.report.ends) {
        (None, _) => no_path("ssh goes through a proxy, so the other end sees only that".into()),
        (_, None) => no_path("the other end does not tell who connected".into()),
        (Some(_), Some((here, _))) => {
            let here = named(connection, here)?;
            // Binding succeeds only for an address of this machine.
            if TcpListener::bind((here, 0)).is_ok() {
                return Ok(here);
            }
            no_path(format!(
                "the other end sees this machine as {here}, which is not its address: addresses are translated in between"
            ))
        }
    }
}

/// The exit status of `ssh` for its own errors.
const SSH_FAILED: i32 = 255;

/// The agent's streams, with the process and connection that explain why they end.
struct SshChannel {
    stream: StreamChannel,
    running: Box<dyn Running>,
    connection: Shared,
    host: String,
}

impl Explaining for SshChannel {
    fn stream(&mut self) -> &mut StreamChannel {
        &mut self.stream
    }

    fn explain(&mut self, error: ChannelError) -> ChannelError {
        let ChannelError::Closed(text) = error else {
            return error;
        };
        let status = wait_for_last_words(self.running.as_mut(), STOP_LIMIT);
        let mut stderr = words(&self.running.stderr_tail());
        let mut connection = locked(&self.connection);
        // `ssh` reserves status 255 for its own errors, and the agent never ends with it. The session notices the end
        // before its master has ended, and the next session must not use a connection that is ending.
        let is_lost = status == Some(SSH_FAILED) || !connection.is_alive();
        if is_lost {
            connection.wait_for_end(END_LIMIT);
        }
        if is_lost && stderr.is_empty() {
            stderr = connection.words();
        }
        drop(connection);
        let host = &self.host;
        ChannelError::Closed(match (is_lost, status, stderr.as_str()) {
            (true, _, "") => format!("the connection to `{host}` is lost"),
            (true, _, said) => format!("the connection to `{host}` is lost: {said}"),
            (false, None, "") => text,
            (false, Some(status), "") => {
                format!("its session on `{host}` ended with status {status} ({text})")
            }
            (false, _, said) => format!("its session on `{host}` ended: {said}"),
        })
    }
}

impl Instance for SshInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.inside.clone()
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.outside.clone()
    }

    fn workdir(&self) -> String {
        self.workdir.clone()
    }

    fn stop(mut self: Box<Self>, _cx: &Context<'_>) -> Result<()> {
        // An agent that is gone cannot receive it, and does not need it.
        let is_sent = self.channel.stream.send(&Request::Bye).is_ok();
        let ended = is_sent && matches!(self.channel.running.wait(STOP_LIMIT), Ok(Some(_)));
        if !ended {
            self.channel.running.kill();
        }
        Ok(())
    }
}
