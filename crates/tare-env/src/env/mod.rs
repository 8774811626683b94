//! Environments: where work is run. One file a driver.
//!
//! An environment knows nothing of workloads. It can be detected, started with an agent inside, talked to
//! through a channel, stopped and removed; everything that it creates carries the run's label.
//! Adding one is a file here and a word in [`DRIVERS`]; a test fails if a file is not registered.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tare_model::wire::{Reply, Request};
use tare_model::{ArmId, Facts, Params, Reason};

use crate::cx::{CommandError, Context, files::FileError};

pub use charged::Charged;
pub use image::host_files::Wanted;
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
mod grammar;
pub mod host;
pub mod image;
mod known;
pub mod oci;
pub mod own;
mod peer;
pub mod podman;
mod prelude;
pub mod private;
mod published;
pub mod question;
mod reader;
mod record;
pub mod setting;
mod siblings;
pub mod ssh;
mod text;
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

/// The drivers that are asked about where none is named, the first choice first.
pub fn usual() -> Vec<&'static dyn Driver> {
    let mut usual: Vec<_> = DRIVERS
        .iter()
        .filter_map(|driver| Some((driver.declared().choice?, *driver)))
        .collect();
    usual.sort_unstable_by_key(|(choice, _)| *choice);
    usual.into_iter().map(|(_, driver)| driver).collect()
}

/// The driver of this name.
pub fn find(id: &str) -> Option<&'static dyn Driver> {
    DRIVERS.iter().copied().find(|driver| driver.id() == id)
}

/// Whether a kind of environment can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can; with what is worth knowing about it.
    Ready(Facts),
    /// It cannot.
    Absent {
        /// Why, as one clause.
        why: String,
        /// The command or change that would help.
        fix: Option<String>,
    },
}

/// An environment with the settings that were asked for.
pub type Configured = Result<Box<dyn Environment>, SettingsError>;

/// A kind of environment.
pub trait Driver: Sync {
    /// What it declares of itself.
    fn declared(&self) -> &Declared;
    /// Its name.
    fn id(&self) -> &'static str {
        self.declared().id
    }
    /// One sentence.
    fn about(&self) -> &'static str {
        self.declared().about
    }
    /// The settings it takes.
    fn settings(&self) -> &'static [Setting];
    /// What its environments are made of, and how each part is switched off.
    fn mechanisms(&self) -> &'static Mechanisms {
        self.declared().mechanisms
    }
    /// Whether it can be used here: by doing it, quickly, leaving nothing.
    fn detect(&self, cx: &Context<'_>) -> Availability;
    /// An environment with these settings; touches nothing outside.
    fn configure(&self, arm: ArmId, settings: &Params) -> Configured;
    /// Whether a command is a line for its engine's client that would make a container.
    fn knows_line(&self, _command: &[String]) -> bool {
        false
    }
    /// The line for its client that means the same as these settings, where the image brings differences that no
    /// setting names.
    fn line_for(
        &self,
        _cx: &Context<'_>,
        _settings: &Params,
        _asked: &own::asked::Asked,
    ) -> Option<Vec<String>> {
        None
    }
    /// Whether its engine has a container of this name.
    fn has_container(&self, _cx: &Context<'_>, _name: &str) -> bool {
        false
    }
    /// The running containers of its engine that write to a path of the engine's machine, above it or below it.
    fn writers(&self, _cx: &Context<'_>, _path: &std::path::Path) -> Vec<String> {
        Vec::new()
    }
    /// Takes something of the user's own, so that arms can be like it; nothing of the user's is touched.
    ///
    /// # Errors
    /// There is no such thing, or the driver has none.
    fn take(&self, _cx: &Context<'_>, _wish: &own::Wish<'_>) -> Result<own::Own, EnvError> {
        Err(EnvError::Absent {
            why: format!("`{}` cannot be made like something of your own", self.id()),
            fix: Some("`--env docker` can, for containers and `docker run` lines".into()),
        })
    }
    /// The files of what was taken as bare processes, without every difference and then with what the program may need
    /// of them; nothing of the user's is touched or written to.
    ///
    /// # Errors
    /// They cannot be had, with the reason as one clause.
    fn take_bare(
        &self,
        _cx: &Context<'_>,
        _wish: &own::Wish<'_>,
        _taken: &own::Own,
    ) -> Result<Vec<own::Bare>, EnvError> {
        Err(EnvError::Absent {
            why: format!("`{}` does not expose the files of its images", self.id()),
            fix: None,
        })
    }
    /// Settings that give bare processes a network from which they reach what a container like what was taken reaches,
    /// and nothing of the user's; `None` where a loopback device is all it has, or nothing else can be had here.
    ///
    /// # Errors
    /// It could not be made, with the reason as one clause.
    fn take_outside(
        &self,
        _cx: &Context<'_>,
        _wish: &own::Wish<'_>,
        _taken: &own::Own,
    ) -> Result<Option<Params>, EnvError> {
        Ok(None)
    }
    /// Has every arm that is like something of the user's write to copies of its own of what it could write to, where
    /// that was shown read-only; `settings` are those of what was taken. Says which those are, a line each in place of
    /// what was told, and `None` where there is nothing to copy.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    fn take_copies(
        &self,
        _cx: &Context<'_>,
        _taken: &own::Taken<'_>,
    ) -> Result<Option<Vec<own::Retold>>, EnvError> {
        Ok(None)
    }
    /// Whether what was started beside something of the user's is still there.
    ///
    /// # Errors
    /// Some of it has ended.
    fn check_beside(&self, _cx: &Context<'_>, _wish: &own::Wish<'_>) -> Result<(), EnvError> {
        Ok(())
    }
    /// Takes something of the user's own once more, changed as its user would change it so that it does without these
    /// differences. Nothing of the user's is touched.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    fn take_changed(
        &self,
        _cx: &Context<'_>,
        taken: &own::Taken<'_>,
        without: &[String],
    ) -> Result<own::Changed, EnvError> {
        Ok(own::Changed {
            settings: own::without(taken.settings, without),
            change: "the same without it".to_owned(),
        })
    }
    /// Copies, in `folder`, of files of the image that these settings name, and its variables.
    /// # Errors
    /// The driver has no images, or a file is not there.
    fn image_parts(
        &self,
        _cx: &Context<'_>,
        _settings: &Params,
        _paths: &[String],
        _folder: &std::path::Path,
    ) -> Result<own::ImageParts, EnvError> {
        Err(EnvError::Absent {
            why: format!("`{}` does not expose the files of its images", self.id()),
            fix: None,
        })
    }
    /// Removes whatever carries the label of `run`, which nobody carries out at the time, and says what it
    /// removed, one line each. An error means that something may be left. For what an earlier crash left behind.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>, EnvError>;
}

/// Why an instance is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// To stay, for many trials.
    Resident,
    /// For one first instruction: started as a user would start a program of one's own.
    Once,
}

/// How a container ran as its user's client runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsTyped {
    /// Until its command was started, nanoseconds.
    pub start_ns: u64,
    /// From there until its output ended.
    pub run_ns: u64,
    /// From there until it was removed.
    pub end_ns: u64,
    /// Its exit status.
    pub status: i64,
    /// How much it printed, bytes.
    pub printed: u64,
}

/// One configured environment of a study.
pub trait Environment: Send {
    /// The arm it serves.
    fn arm(&self) -> &ArmId;
    /// Has these programs ready inside, besides what the settings say; asked before `prepare`. An environment
    /// in which the host's files are anyway, or whose files the user chose, has nothing to do.
    fn provide(&mut self, _wanted: &Wanted) {}
    /// Has room for so many instances at once on one network, and a folder that all of them share; asked before
    /// `prepare`. An environment whose instances meet anyway has nothing to do for the network.
    fn gather(&mut self, _nodes: u32) {}
    /// Makes what every instance needs, such as an image: untimed; twice is fine.
    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError>;
    /// Whether an instance may still be leaving while the next one starts: they share no name, port or file.
    fn may_leave_late(&self) -> bool {
        false
    }
    /// Starts an instance; its agent has not been spoken to yet.
    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError>;
    /// Runs a command of at least one word as the first process of a new instance, with `input` and its output over the
    /// way that a client of the user's has; the command may take `limit`. `None` where that is not built.
    ///
    /// # Errors
    /// It could not be started, did not end in time, or may be left.
    fn as_typed(
        &mut self,
        _cx: &Context<'_>,
        _argv: &[String],
        _input: &[u8],
        _limit: Duration,
    ) -> Result<Option<AsTyped>, EnvError> {
        Ok(None)
    }
    /// Whether it can be used here, where its settings make that another question than its driver's; `None`
    /// leaves the answer to the driver.
    fn detect(&self, _cx: &Context<'_>) -> Option<Availability> {
        None
    }
    /// What the host side knows about it: engine and runtime versions, image digests, limits asked for.
    fn describe(&self, cx: &Context<'_>) -> Facts;
    /// Removes what `prepare` and any instance made; twice is fine.
    fn remove(&mut self, cx: &Context<'_>) -> Result<(), EnvError>;
}

/// A started environment with an agent in it.
pub trait Instance: Send {
    /// The way to the agent.
    fn channel(&mut self) -> &mut dyn Channel;
    /// Where the host reaches a server inside.
    fn address_from_host(&self) -> Result<IpAddr, Reason>;
    /// Where the host reaches a server that listens inside on `port`: where the engine publishes that on the loopback, else
    /// at its own address.
    fn way_to(&self, port: u16) -> Result<SocketAddr, Reason> {
        Ok(SocketAddr::new(self.address_from_host()?, port))
    }
    /// Where the inside reaches a server on the host.
    fn host_address(&self) -> Result<IpAddr, Reason>;
    /// Where another instance of the same environment reaches a server inside.
    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        Err(Reason::NoPath(
            "two instances of this environment share no network".into(),
        ))
    }
    /// Where the host reaches a server inside by a port that is published on the host's loopback or on the
    /// host's address on the arm's bridge.
    fn published(&self, at: PublishedAt) -> Result<Published, Reason> {
        let _ = at;
        Err(Reason::NoPath("this environment publishes no port".into()))
    }
    /// A folder that every instance of the arm has at this path, with the same files in it.
    fn shared(&self) -> Result<String, Reason> {
        Err(Reason::Unsupported(
            "a folder that the instances of this environment share".into(),
        ))
    }
    /// Where the page of memory by which workers pass the turn is found inside; `None` where this environment
    /// shares no memory with the host.
    fn turn_page(&self) -> Option<String> {
        None
    }
    /// A directory inside for the probes' files, on the environment's own storage.
    fn workdir(&self) -> String;
    /// Where the kernel of this machine counts what it uses. Asked before every trial: what must be looked up is
    /// kept.
    fn charged(&self) -> Charged {
        Charged::Nowhere
    }
    /// How much disk it takes where it runs, bytes: what it was made of, counted whole however many share it, and what
    /// was written in it since; `None` where that is not known.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        None
    }
    /// Stops and removes it; the instance is gone afterwards, whatever is returned.
    fn stop(self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError>;
}

/// The way to an agent.
pub trait Channel: Send {
    /// Sends a request.
    fn send(&mut self, request: &Request) -> Result<(), ChannelError>;
    /// Waits for a reply, at most `limit`.
    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError>;
}

/// Where the page by which workers pass the turn is shown in an environment with a root of its own.
const TURN_PAGE: &str = "/tare-turns";

/// Why the agent cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// It is gone.
    #[error("the agent is gone: {0}")]
    Closed(String),
    /// It did not answer in time.
    #[error("no answer from the agent within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// What came back is no frame.
    #[error("unreadable answer from the agent: {0}")]
    Garbled(String),
}

/// Why an environment failed, cut by what the reader can do.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// Something that it needs is not here.
    #[error("{why}")]
    Absent {
        /// Why, as one clause.
        why: String,
        /// What would help.
        fix: Option<String>,
    },
    /// The user may not do this.
    #[error("permission denied: {what}")]
    Denied {
        /// What was refused.
        what: String,
        /// What would help.
        fix: Option<String>,
    },
    /// The engine, runtime or kernel refused.
    #[error("{what}: {answer}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Its own words, control characters escaped.
        answer: String,
    },
    /// It took too long.
    #[error("{phase} took longer than {} s", limit.as_secs_f64())]
    Timeout {
        /// What was waited for.
        phase: String,
        /// The limit.
        limit: Duration,
    },
    /// The agent inside cannot be talked to.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// It failed, and so did cleaning up after it.
    #[error("{first}; and cleaning up failed too: {then}")]
    AndCleanup {
        /// The first failure.
        first: Box<EnvError>,
        /// The failure of the clean-up.
        then: Box<EnvError>,
    },
}

impl EnvError {
    /// What would help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Absent { fix, .. } | Self::Denied { fix, .. } => fix.clone(),
            Self::AndCleanup { first, .. } => first.hint(),
            Self::File(error) => error.advice().map(str::to_owned),
            _ => None,
        }
    }
}

impl From<EnvError> for Availability {
    fn from(error: EnvError) -> Self {
        Self::Absent {
            fix: error.hint(),
            why: error.to_string(),
        }
    }
}

impl From<Result<Facts, EnvError>> for Availability {
    fn from(found: Result<Facts, EnvError>) -> Self {
        found.map_or_else(Self::from, Self::Ready)
    }
}

#[cfg(test)]
mod tests;
