//! A configured `ssh` arm: connects when prepared, and again after the connection was lost.

use crate::env::prelude::*;

use super::super::record;
use super::ID;
use super::command::control_path;
use super::connection::{Connection, Shared, own_boot};
use super::folder_record::{FolderRecord, folder_name};
use super::install::{agent_for, install, sweep};
use super::instance::SshInstance;
use super::settings::Settings;

/// A connection with the agent installed.
struct Ready {
    connection: Shared,
    /// The agent's path on the other machine.
    agent: String,
}

/// A configured `ssh`.
pub(super) struct SshEnvironment {
    arm: ArmId,
    settings: Settings,
    ready: Option<Ready>,
    /// Number of connections so far.
    number: u32,
    facts: Facts,
}

impl SshEnvironment {
    pub(super) fn new(arm: ArmId, settings: Settings) -> Self {
        let facts = Facts::from([(fact::name_for(fact::SSH, "host"), settings.host.clone())]);
        Self {
            arm,
            settings,
            ready: None,
            number: 0,
            facts,
        }
    }

    /// Returns the connection; connects if it is not open.
    fn ready(&mut self, cx: &Context<'_>) -> Result<&Ready> {
        let stands = self
            .ready
            .as_ref()
            .is_some_and(|ready| locked(&ready.connection).is_alive());
        if !stands {
            // Leftovers of a lost connection stay on record until `remove` has swept them.
            if let Some(lost) = self.ready.take() {
                forget_socket(&locked(&lost.connection));
            }
            self.ready = Some(self.connect(cx)?);
        }
        Ok(self.ready.as_ref().expect("it was just made"))
    }

    fn connect(&mut self, cx: &Context<'_>) -> Result<Ready> {
        let version = super::version(cx)?;
        self.number += 1;
        let name = folder_name(cx.run, &self.arm, self.number);
        let place = FolderRecord::new(&self.settings, &name);
        record::add(cx, ID, &self.arm, &place)?;
        let control = control_path(cx.scratch, &format!("{}-{}", self.arm, self.number));
        let mut connection =
            match Connection::open(cx, &self.settings, control.clone(), name.clone()) {
                Ok(connection) => connection,
                Err(none) => {
                    if let Some(control) = control {
                        // The socket hardly ever exists; a failure to remove it must not hide the first error.
                        let _ = files::remove(control.as_ref());
                    }
                    if !none.is_touched {
                        record::forget(cx, ID, &self.arm, &place)?;
                    }
                    return Err(none.error);
                }
            };
        let prepared = self.look(&connection).and_then(|()| {
            let agent = agent_for(cx, &self.settings, &connection)?;
            let path = install(cx, &self.settings, &connection, agent)?;
            Ok((path, agent))
        });
        match prepared {
            Ok((path, agent)) => {
                self.tell(&version, &connection, &agent.sha256);
                Ok(Ready {
                    connection: Arc::new(Mutex::new(connection)),
                    agent: path,
                })
            }
            Err(first) => Err(and_cleanup(first, self.close(cx, &mut connection))),
        }
    }

    /// Checks that the connection is with the intended host and key.
    fn look(&self, connection: &Connection) -> Result<()> {
        let host = &self.settings.host;
        if connection.log.has_changed_key {
            return Err(EnvError::absent(
                format!(
                    "the key of `{host}` is not the one that is known for it, and your ssh configuration lets that pass"
                ),
                format!(
                    "if you know why it changed, remove the old key: `ssh-keygen -R '{}'`",
                    connection.log.known_name.as_ref().unwrap_or(host)
                ),
            ));
        }
        if let Some(key) = &self.settings.identity
            && connection.log.has_no_identity
        {
            return Err(EnvError::absent(
                format!(
                    "`ssh` did not use the key `{}` but another one: it cannot be read, or others can read it too",
                    key.escape_debug()
                ),
                "name the file of a private key, `identity = \"FILE\"`, and `chmod 600` it",
            ));
        }
        Ok(())
    }

    /// Records facts learnt while connecting.
    fn tell(&mut self, version: &str, connection: &Connection, sha256: &str) {
        let report = &connection.report;
        self.facts.extend(connection.log.facts.clone());
        let same = match (own_boot(), &report.boot) {
            (Some(_), Some(_)) if connection.is_same_machine() => {
                "yes: the other end runs on this kernel"
            }
            (Some(_), Some(_)) => "no",
            _ => "unknown: there is no boot id to compare",
        };
        for (name, value) in [
            ("version", version.to_owned()),
            ("folder", escaped(&report.folder)),
            ("work", escaped(&report.work)),
            ("same_machine", same.to_owned()),
            (
                "shared_connection",
                connection.control.is_some().to_string(),
            ),
            ("greeting_bytes", report.n_skipped.to_string()),
            ("agent_sha256", sha256.to_owned()),
            ("connections", self.number.to_string()),
        ] {
            self.facts.insert(fact::name_for(fact::SSH, name), value);
        }
    }

    /// Closes a connection; its folder is removed from the record once it is gone.
    fn close(&self, cx: &Context<'_>, connection: &mut Connection) -> Result<()> {
        let closed = connection.close(&self.settings);
        forget_socket(connection);
        closed?;
        let place = FolderRecord::new(&self.settings, &connection.name);
        record::forget(cx, ID, &self.arm, &place)
    }
}

/// Removes the control socket, which `ssh` leaves behind only if it was killed.
fn forget_socket(connection: &Connection) {
    if let Some(control) = &connection.control {
        // The whole run folder is removed at the end.
        let _ = files::remove(control.as_ref());
    }
}

impl Environment for SshEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        self.ready(cx).map(drop)
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        let ready = self.ready(cx)?;
        let (connection, agent) = (ready.connection.clone(), ready.agent.clone());
        let instance = SshInstance::start(cx, &self.settings, connection, &agent, mode)?;
        Ok(Box::new(instance))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        self.facts.clone()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        if let Some(ready) = self.ready.take() {
            // If this fails, the folder stays on record and is swept below.
            let _ = self.close(cx, &mut locked(&ready.connection));
        }
        for place in record::of_arm::<FolderRecord>(cx, ID, &self.arm)? {
            sweep(cx, &self.settings, None, std::slice::from_ref(&place.name))?;
            record::forget(cx, ID, &self.arm, &place)?;
        }
        Ok(())
    }
}
