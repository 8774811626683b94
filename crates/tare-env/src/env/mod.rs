//! Environments: where work runs. One driver per file.
//!
//! An environment is independent of workloads. It can be detected, started with an agent inside, talked to through a
//! channel, stopped and removed; everything that it creates carries the run's label.
//! To add one, add a file here and an entry in [`DRIVERS`]; a test fails if a file is not registered.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tare_model::wire::{Reply, Request};
use tare_model::{ArmId, Facts, Params, Reason};

use crate::cx::Context;

pub use charged::Charged;
pub use error::{EnvError, Result};
pub use image::host_files::FileRequest;
pub use published::{Published, PublishedAt};
pub use setting::Setting;
pub use tare_core::driver::container::host_files;
pub use tare_core::driver::{
    Declared, Files, Mechanism, Mechanisms, SettingsError, links, mechanism, mechanisms,
};

pub mod channel;
mod charged;
mod common;
mod common_settings;
pub mod container;
pub mod docker;
mod error;
mod grammar;
pub mod host;
pub mod image;
pub mod oci;
mod peer;
pub mod podman;
mod prelude;
pub mod private;
mod published;
pub mod question;
mod reader;
mod record;
mod refusals;
pub mod setting;
mod siblings;
pub mod ssh;
mod text;
pub mod user_container;
pub mod vm;

/// Every driver.
pub static DRIVERS: &[&dyn Driver] = &[
    &container::Container,
    &docker::DOCKER,
    &host::Host,
    &ssh::Ssh,
    &oci::Oci,
    &podman::PODMAN,
    &vm::Vm,
];

/// Returns the drivers to try if none is named, in order of preference.
pub fn usual() -> Vec<&'static dyn Driver> {
    let mut usual: Vec<_> = DRIVERS
        .iter()
        .filter_map(|driver| Some((driver.declared().choice?, *driver)))
        .collect();
    usual.sort_unstable_by_key(|(choice, _)| *choice);
    usual.into_iter().map(|(_, driver)| driver).collect()
}

/// Returns the driver of this name.
pub fn find(id: &str) -> Option<&'static dyn Driver> {
    DRIVERS.iter().copied().find(|driver| driver.id() == id)
}

/// Whether a kind of environment can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Yes, with facts worth reporting.
    Ready(Facts),
    /// No.
    Absent {
        /// Reason, as one clause.
        why: String,
        /// Hint: the command or change that would help.
        fix: Option<String>,
    },
}

/// An environment with the requested settings, or what is wrong with them.
pub type Configured = Result<Box<dyn Environment>, SettingsError>;

/// A kind of environment.
pub trait Driver: Sync {
    /// Returns the driver's declaration.
    fn declared(&self) -> &Declared;
    /// Returns the driver's name.
    fn id(&self) -> &'static str {
        self.declared().id
    }
    /// Returns a description in one sentence.
    fn about(&self) -> &'static str {
        self.declared().about
    }
    /// Returns the settings that the driver takes.
    fn settings(&self) -> &'static [Setting];
    /// Returns the mechanisms of its environments, and how each is switched off.
    fn mechanisms(&self) -> &'static Mechanisms {
        self.declared().mechanisms
    }
    /// Checks by a quick trial whether it can be used here; leaves nothing behind.
    fn detect(&self, cx: &Context<'_>) -> Availability;
    /// Creates an environment with these settings, without side effects.
    fn configure(&self, arm: ArmId, settings: &Params) -> Configured;
    /// Whether this is a command line of the engine's client that would create a container.
    fn knows_line(&self, _command: &[String]) -> bool {
        false
    }
    /// Returns the client's command line that is equivalent to these settings, if the image brings differences that
    /// no setting names.
    fn line_for(
        &self,
        _cx: &Context<'_>,
        _settings: &Params,
        _asked: &user_container::image_command::ImageCommand,
    ) -> Option<Vec<String>> {
        None
    }
    /// Whether the engine has a container of this name.
    fn has_container(&self, _cx: &Context<'_>, _name: &str) -> bool {
        false
    }
    /// Returns the engine's running containers that write to a path of the engine's machine, above it or below it.
    fn writers(&self, _cx: &Context<'_>, _path: &std::path::Path) -> Vec<String> {
        Vec::new()
    }
    /// Reads the configuration of a user's container, so that arms can be like it. Does not touch the container.
    ///
    /// # Errors
    /// There is no such container, or the driver does not support this.
    fn take(
        &self,
        _cx: &Context<'_>,
        _wish: &user_container::ContainerRequest<'_>,
    ) -> Result<user_container::UserContainer> {
        Err(EnvError::absent(
            format!("`{}` cannot be made like something of your own", self.id()),
            "`--env docker` can, for containers and `docker run` lines",
        ))
    }
    /// Returns the container's files as bare processes: first without any difference, then with those that the
    /// program may need. Nothing of the user's is touched or written to.
    ///
    /// # Errors
    /// They are not available; the reason is one clause.
    fn take_bare(
        &self,
        _cx: &Context<'_>,
        _wish: &user_container::ContainerRequest<'_>,
        _taken: &user_container::UserContainer,
    ) -> Result<Vec<user_container::Bare>> {
        Err(EnvError::unavailable(format!(
            "`{}` does not expose the files of its images",
            self.id()
        )))
    }
    /// Returns settings that give bare processes a network from which they reach what a copy of the container
    /// reaches, and nothing of the user's. `None` if the container has only a loopback device, or no other network is
    /// possible here.
    ///
    /// # Errors
    /// The network could not be created; the reason is one clause.
    fn take_outside(
        &self,
        _cx: &Context<'_>,
        _wish: &user_container::ContainerRequest<'_>,
        _taken: &user_container::UserContainer,
    ) -> Result<Option<Params>> {
        Ok(None)
    }
    /// Gives every arm that is like a user's container its own copies of the shares that the container could write
    /// to, if they were mounted read-only until now. Returns the lines that describe these copies, each with the line
    /// that it replaces; `None` if there is nothing to copy.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    fn take_copies(
        &self,
        _cx: &Context<'_>,
        _taken: &user_container::ArmRequest<'_>,
    ) -> Result<Option<Vec<user_container::ChangedLine>>> {
        Ok(None)
    }
    /// Checks that the containers started next to the user's are still running.
    ///
    /// # Errors
    /// One of them has ended.
    fn check_dependencies(
        &self,
        _cx: &Context<'_>,
        _wish: &user_container::ContainerRequest<'_>,
    ) -> Result<()> {
        Ok(())
    }
    /// Reads the user's container again, changed as its user would change it to remove these differences. Does not
    /// touch the container.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    fn take_changed(
        &self,
        _cx: &Context<'_>,
        taken: &user_container::ArmRequest<'_>,
        without: &[String],
    ) -> Result<user_container::Changed> {
        Ok(user_container::Changed {
            settings: user_container::without(taken.settings, without),
            change: "the same without it".to_owned(),
        })
    }
    /// Copies files of the image that these settings name into `folder`, and returns the copies and the image's
    /// variables.
    ///
    /// # Errors
    /// The driver has no images, or a file is missing.
    fn image_parts(
        &self,
        _cx: &Context<'_>,
        _settings: &Params,
        _paths: &[String],
        _folder: &std::path::Path,
    ) -> Result<user_container::ImageParts> {
        Err(EnvError::unavailable(format!(
            "`{}` does not expose the files of its images",
            self.id()
        )))
    }
    /// Removes everything with the label of `run`, while that run is not running, and returns what was removed, one
    /// line each. For leftovers of a crash. An error means that something may be left.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>>;
}

/// The purpose of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// Many trials.
    Resident,
    /// One first instruction: started as a user would start a program.
    Once,
}

impl StartMode {
    /// Returns the agent's arguments.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Resident => &["serve"],
            Self::Once => &["serve", "--no-spare"],
        }
    }
}

/// Times and result of a container run the way its engine's client runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsTyped {
    /// From the request to the start of its command, nanoseconds.
    pub start_ns: u64,
    /// From there to the end of its output, nanoseconds.
    pub run_ns: u64,
    /// From there to its removal, nanoseconds.
    pub end_ns: u64,
    /// Its exit status.
    pub status: i64,
    /// Size of its output, bytes.
    pub printed: u64,
}

/// One configured environment of a study.
pub trait Environment: Send {
    /// Returns the arm that it serves.
    fn arm(&self) -> &ArmId;
    /// Makes these programs available inside, in addition to those of the settings. Called before `prepare`. No-op if
    /// the host's files are visible inside anyway, or if the user chose the files.
    fn provide(&mut self, _wanted: &FileRequest) {}
    /// Plans for this many concurrent instances on one network with a shared folder. Called before `prepare`.
    /// Instances that reach each other anyway need no network.
    fn gather(&mut self, _nodes: u32) {}
    /// Creates what every instance needs, such as an image. Untimed and idempotent.
    fn prepare(&mut self, cx: &Context<'_>) -> Result<()>;
    /// Whether an instance may still be shutting down while the next one starts: they share no name, port or file.
    fn may_leave_late(&self) -> bool {
        false
    }
    /// Starts an instance; no request has been sent to its agent yet.
    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>>;
    /// Runs a command of at least one word as the first process of a new instance, with stdin and stdout carried as
    /// the user's client does. The command may take `limit`. `None` if the driver does not support this.
    ///
    /// # Errors
    /// It could not be started, did not end in time, or may have left something behind.
    fn as_typed(
        &mut self,
        _cx: &Context<'_>,
        _argv: &[String],
        _input: &[u8],
        _limit: Duration,
    ) -> Result<Option<AsTyped>> {
        Ok(None)
    }
    /// Whether it can be used here, if that depends on its settings; `None` leaves the answer to the driver.
    fn detect(&self, _cx: &Context<'_>) -> Option<Availability> {
        None
    }
    /// Returns facts from the host side: engine and runtime versions, image digests, requested limits.
    fn describe(&self, cx: &Context<'_>) -> Facts;
    /// Removes what `prepare` and all instances created. Idempotent.
    fn remove(&mut self, cx: &Context<'_>) -> Result<()>;
}

/// A started environment with an agent in it.
pub trait Instance: Send {
    /// Returns the channel to the agent.
    fn channel(&mut self) -> &mut dyn Channel;
    /// Returns the address at which the host reaches a server inside.
    fn address_from_host(&self) -> Result<IpAddr, Reason>;
    /// Returns the address at which the host reaches a server that listens inside on `port`: the published port on
    /// the loopback if the engine publishes it, else the instance's address.
    fn way_to(&self, port: u16) -> Result<SocketAddr, Reason> {
        Ok(SocketAddr::new(self.address_from_host()?, port))
    }
    /// Returns the address at which the inside reaches a server on the host.
    fn host_address(&self) -> Result<IpAddr, Reason>;
    /// Returns the address at which another instance of the same environment reaches a server inside.
    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        Err(no_path(
            "two instances of this environment share no network",
        ))
    }
    /// Returns the port published on the host's loopback, or on the host's address on the arm's bridge, at which the
    /// host reaches a server inside.
    fn published(&self, at: PublishedAt) -> Result<Published, Reason> {
        let _ = at;
        Err(no_path("this environment publishes no port"))
    }
    /// Returns the path inside of a folder that all instances of the arm share.
    fn shared(&self) -> Result<String, Reason> {
        Err(Reason::Unsupported(
            "a folder that the instances of this environment share".into(),
        ))
    }
    /// Returns the path inside of the memory page through which workers hand over the turn; `None` if this
    /// environment shares no memory with the host.
    fn turn_page(&self) -> Option<String> {
        None
    }
    /// Returns the directory inside for the probes' files, on the environment's own storage.
    fn workdir(&self) -> String;
    /// Returns where the host's kernel accounts its resource use. Called before every trial: implementations cache
    /// lookups.
    fn charged(&self) -> Charged {
        Charged::Nowhere
    }
    /// Returns the disk space that it uses where it runs, bytes: what it was made of, counted in full even if shared,
    /// plus what was written since; `None` if unknown.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        None
    }
    /// Returns the paths of its own layer that were added or changed since it was created; empty if unknown.
    fn written(&self, _cx: &Context<'_>) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Stops and removes it; the instance is gone afterwards, whatever is returned.
    fn stop(self: Box<Self>, cx: &Context<'_>) -> Result<()>;
}

/// A connection to an agent.
pub trait Channel: Send {
    /// Sends a request.
    fn send(&mut self, request: &Request) -> Result<(), ChannelError>;
    /// Waits for a reply, at most `limit`.
    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError>;
}

/// The reason that one end of a connection cannot be reached from the other.
pub(crate) fn no_path(why: impl Into<String>) -> Reason {
    Reason::NoPath(why.into())
}

/// The reason that instances share no folder, although they could.
pub(crate) fn not_shared() -> Reason {
    Reason::NoEnvironment("a shared folder was not asked for at its start".into())
}

/// Path of the turn page in an environment with a separate root.
const TURN_PAGE: &str = "/tare-turns";

/// Why the agent cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The agent is gone.
    #[error("the agent is gone: {0}")]
    Closed(String),
    /// The agent did not answer in time.
    #[error("no answer from the agent within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The answer is not a frame.
    #[error("unreadable answer from the agent: {0}")]
    Garbled(String),
}

impl From<EnvError> for Availability {
    fn from(error: EnvError) -> Self {
        Self::Absent {
            fix: error.hint(),
            why: error.to_string(),
        }
    }
}

impl From<Result<Facts>> for Availability {
    fn from(found: Result<Facts>) -> Self {
        found.map_or_else(Self::from, Self::Ready)
    }
}

#[cfg(test)]
mod tests;
