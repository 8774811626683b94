//! Podman, rootful and rootless, through its command.
//!
//! An instance is a container whose first process is the agent, on the pipes of an attached `podman run` or `podman
//! start`: podman has no daemon, so every user has this interface. A resident instance is set up in steps, so that
//! each step can report what it refuses; an instance for one first instruction is a single `podman run`. As root,
//! Tare can also use an ordinary user's rootless podman (`as`).
//! Limits: containers of a `podman machine` run on another machine; only the agent's facts describe it.

use crate::env::prelude::*;

use super::record;
use super::user_container::{ArmRequest, Changed, ChangedLine, ContainerRequest, UserContainer};

mod account;
mod address;
mod caller;
mod detect;
mod environment;
mod errors;
mod facts;
mod image;
mod instance;
mod settings;
mod sweep;
mod user_container;

use account::Account;
use caller::Access;
use environment::PodmanEnvironment;
use settings::{SETTINGS, Settings};

/// The podman of Tare's user.
pub static PODMAN: Podman = Podman { user: None };

/// The driver.
#[derive(Debug, Clone)]
pub struct Podman {
    user: Option<String>,
}

impl Podman {
    /// Returns the driver for the podman of this user, for arms that name no other one.
    pub fn of_user(name: impl Into<String>) -> Self {
        Self {
            user: Some(name.into()),
        }
    }

    /// Returns how to call podman for an arm with these settings.
    fn access(&self, cx: &Context<'_>, settings: &Settings) -> Result<Access> {
        let user = settings.account.as_ref().or(self.user.as_ref());
        Ok(Access {
            account: user.map_or(Ok(None), |user| Account::find(cx, user))?,
            runtime: settings.runtime.clone(),
        })
    }
}

impl Driver for Podman {
    fn declared(&self) -> &Declared {
        &tare_core::driver::podman::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn knows_line(&self, command: &[String]) -> bool {
        user_container::is_line(command)
    }

    fn has_container(&self, cx: &Context<'_>, name: &str) -> bool {
        let access = self.access(cx, &Settings::default());
        access.is_ok_and(|access| user_container::has(access.caller(cx), name))
    }

    fn writers(&self, cx: &Context<'_>, path: &std::path::Path) -> Vec<String> {
        let access = self.access(cx, &Settings::default());
        access.map_or_else(
            |_| Vec::new(),
            |access| user_container::writers(access.caller(cx), path),
        )
    }

    fn take(&self, cx: &Context<'_>, wish: &ContainerRequest<'_>) -> Result<UserContainer> {
        self.taken(cx, wish)
    }

    fn take_copies(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
    ) -> Result<Option<Vec<ChangedLine>>> {
        self.taken_with_copies(cx, taken)
    }

    fn take_changed(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
        without: &[String],
    ) -> Result<Changed> {
        self.taken_changed(cx, taken, without)
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        detect::detect(cx, self, &Settings::default())
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        let settings = Settings::read(settings)?;
        Ok(Box::new(PodmanEnvironment::new(
            self.clone(),
            arm,
            settings,
        )))
    }

    /// Sweeps every podman on record; it is an error if one fails. This driver's default podman is swept too, if it
    /// answers.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        let mut trouble = None;
        let mut looked_at = Vec::new();
        for mut record in record::of_run::<CreationRecord>(cx, self.id(), run)? {
            for place in record.places.clone() {
                let swept = place.sweep(cx, run).and_then(|lines| {
                    record.forget(&place)?;
                    Ok(lines)
                });
                match swept {
                    Ok(lines) => removed.extend(lines),
                    Err(error) => trouble = Some(record.kept(&place.to_string(), &error)),
                }
                looked_at.push(place);
            }
        }
        let own = CreationRecord {
            user: self.user.clone(),
        };
        if !looked_at.contains(&own) {
            removed.extend(own.sweep(cx, run).unwrap_or_default());
        }
        trouble.map_or(Ok(removed), Err)
    }
}

/// Returns the name under which something that belongs to no arm is on record.
fn fixed_arm(name: &str) -> ArmId {
    ArmId::new(name).expect("the constant is a name")
}

/// The podman with which an arm creates something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CreationRecord {
    /// The user, if not Tare's.
    user: Option<String>,
}

impl CreationRecord {
    fn new(access: &Access) -> Self {
        Self {
            user: access.user(),
        }
    }

    /// Removes everything of `run` in this podman.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        let podman = Podman {
            user: self.user.clone(),
        };
        let access = podman.access(cx, &Settings::default())?;
        sweep::sweep(access.caller(cx), run)
    }
}

impl std::fmt::Display for CreationRecord {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.user {
            Some(user) => write!(out, "with the podman of `{}`", user.escape_debug()),
            None => write!(out, "with podman"),
        }
    }
}
