//! Any machine that the user's `ssh` reaches: another node, a virtual machine, WSL.
//!
//! The program rather than a library, because the way to a host (user, keys, agents, jump hosts, ciphers) is in the
//! user's configuration and only that program understands all of it. No terminal, no questions: a prompt becomes an
//! error that says so. The agent is copied into a fresh folder there, and a guard (`script.rs`) removes it when the
//! connection ends, for any reason. What the guard could not remove is on record in the run's folder, for `sweep`.
//! A ratio between two machines compares machines, not environments: the facts say whether the other end runs on this
//! kernel, and the analysis labels it.
//! Limits: other load on that machine and on the network between is not seen.

use crate::env::prelude::*;

use super::record;

mod command;
mod connection;
mod environment;
mod errors;
mod folder_record;
mod install;
mod instance;
mod reader;
mod script;
mod settings;

use environment::SshEnvironment;
use folder_record::FolderRecord;
use settings::{SETTINGS, Settings};

/// The driver's name.
const ID: &str = "ssh";

/// Time limit for `ssh -V`.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// The driver.
#[derive(Debug, Clone, Copy)]
pub struct Ssh;

/// Returns the version of the local `ssh`.
fn version(cx: &Context<'_>) -> Result<String> {
    let absent = |why: String| {
        EnvError::absent(
            why,
            if cfg!(target_os = "linux") {
                "`sudo apt-get install openssh-client`".to_owned()
            } else {
                "install the OpenSSH client".to_owned()
            },
        )
    };
    let command = CommandLine::new("ssh", ["-V"]);
    let finished = match cx.exec.run(&command, &[], VERSION_LIMIT) {
        Ok(finished) => finished,
        Err(CommandError::Missing { .. }) => return Err(absent("`ssh` is not installed".into())),
        Err(error) => return Err(absent(error.to_string())),
    };
    // `ssh -V` prints to stderr.
    let text = finished.stderr_text();
    let version = text.split(',').next().unwrap_or_default().trim();
    if !finished.succeeded() || !version.contains("OpenSSH") {
        return Err(absent(format!(
            "`ssh` is not OpenSSH's; it answers `{}`",
            version.escape_debug()
        )));
    }
    Ok(escaped(version))
}

impl Driver for Ssh {
    fn declared(&self) -> &Declared {
        &tare_core::driver::ssh::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// Checks that `ssh` is installed; only settings can name a host.
    fn detect(&self, cx: &Context<'_>) -> Availability {
        match version(cx) {
            Ok(version) => Availability::Ready(Facts::from([(
                fact::name_for(fact::SSH, "version"),
                version,
            )])),
            Err(error) => error.into(),
        }
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        let settings = Settings::read(settings)?;
        Ok(Box::new(SshEnvironment::new(arm, settings)))
    }

    /// Sweeps every host on the run's records. A host that cannot be reached is an error, and stays on record.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        let mut trouble = None;
        for mut record in record::of_run::<FolderRecord>(cx, self.id(), run)? {
            for place in record.places.clone() {
                let Some(settings) = place.checked(run) else {
                    trouble = Some(record.kept("on another machine", &"a record is damaged"));
                    continue;
                };
                let names = [place.name.clone()];
                match install::sweep(cx, &settings, Some(run), &names) {
                    Ok(lines) => {
                        removed.extend(lines);
                        record.forget(&place)?;
                    }
                    // Not `Absent`: something may be left there.
                    Err(error) => {
                        trouble = Some(record.kept(&format!("on `{}`", settings.host), &error));
                    }
                }
            }
        }
        trouble.map_or(Ok(removed), Err)
    }
}
