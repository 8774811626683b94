//! The session of a command that starts environments: name and folder of the run, agents, cancellation.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tare_model::{Facts, Params, RunId, Study, fact};

use crate::cx::files::FileError;
use crate::cx::measuring::{self, Measuring};
use crate::cx::observer::Silent;
use crate::cx::owner::Owner;
use crate::cx::started_runs;
use crate::cx::{AgentError, Agents, Cancel, Clock, Context, Observer, SystemClock, SystemExec};
use crate::env;
use crate::failed::Failed;
use crate::output;
use crate::plan::Plan;
use crate::run::{self, Precision, Registry, RunError, RunSummary};
use crate::session::home::GivenPaths;
use crate::session::progress::Progress;
use crate::store::Store;

pub(crate) mod dry_run;
pub(crate) mod home;
pub(crate) mod leftovers;
pub(crate) mod noise;
pub(crate) mod progress;

/// The session of one command.
pub(crate) struct Session {
    exec: SystemExec,
    clock: SystemClock,
    cancel: Cancel,
    agents: Agents,
    owner: Owner,
    place: GivenPaths,
    store: PathBuf,
    /// Earlier runs of this command; their folders are removed together with the last.
    earlier: Vec<Owner>,
    /// The driver that starts something in addition to the arms.
    beside: Option<&'static str>,
    /// Announces to other processes that this command measures; set by its first run.
    measuring: OnceLock<Option<Measuring>>,
}

impl Session {
    /// Acquires the run's folder, finds the agents, and removes leftovers of killed runs. From here on Ctrl-C asks
    /// for an orderly stop.
    pub(crate) fn begin(place: &GivenPaths, run: Option<RunId>) -> Result<Self, Failed> {
        let session = Self::begin_to_clean(place, run)?;
        leftovers::before_a_run(&session.context(&Silent), session.owner.state())?;
        Ok(session)
    }

    /// Does `work` in a session of its own and ends that, with what was started in addition to the arms, unless
    /// something is left for `tare clean`. `work` also returns what it could not remove.
    pub(crate) fn within<T>(
        place: &GivenPaths,
        work: impl FnOnce(&mut Self, &Progress) -> Result<(T, Vec<String>), Failed>,
    ) -> Result<T, Failed> {
        let mut session = Self::begin(place, None)?;
        let progress = Progress::new();
        let done = work(&mut session, &progress);
        progress.finish();
        let extra = session.remove_extra();
        match done {
            Ok((value, mut left_behind)) => {
                left_behind.extend(extra);
                output::left_behind(&left_behind);
                if left_behind.is_empty() {
                    session.end()?;
                }
                Ok(value)
            }
            // `tare clean` needs the folder to find what could not be removed.
            Err(failed) if failed.may_have_left || !extra.is_empty() => {
                output::left_behind(&extra);
                Err(failed)
            }
            Err(failed) => Err(session.end().err().unwrap_or(failed)),
        }
    }

    /// Acquires the run's folder and finds the agents, without removing leftovers.
    pub(crate) fn begin_to_clean(place: &GivenPaths, run: Option<RunId>) -> Result<Self, Failed> {
        let state = GivenPaths::state_folder()?;
        let store = place.store_file()?;
        let clock = SystemClock::default();
        let run = run.unwrap_or_else(|| new_run(&clock));
        let (owner, agents) = owned(place, &state, &run)?;
        let place = place.clone();
        let cancel = Cancel::new();
        // If this fails, Ctrl-C ends the process at once.
        let _ = cancel.ask_on_signals();
        Ok(Self {
            exec: SystemExec,
            clock,
            cancel,
            agents,
            owner,
            place,
            store,
            earlier: Vec::new(),
            beside: None,
            measuring: OnceLock::new(),
        })
    }

    /// The context for drivers and runs.
    pub(crate) fn context<'a>(&'a self, observer: &'a dyn Observer) -> Context<'a> {
        Context {
            exec: &self.exec,
            clock: &self.clock,
            observer,
            cancel: &self.cancel,
            agent: self.agents.host(),
            agents: &self.agents,
            scratch: self.owner.folder(),
            run: self.owner.run(),
            store: Some(&self.store),
        }
    }

    /// Starts a new run, with a new name and folder, unless this one was not carried out yet.
    pub(crate) fn renew_if_used(&mut self) -> Result<(), Failed> {
        match self.measuring.get() {
            Some(_) => self.renew(),
            None => Ok(()),
        }
    }

    /// Starts a new run, with a new name and folder.
    pub(crate) fn renew(&mut self) -> Result<(), Failed> {
        let state = GivenPaths::state_folder()?;
        // The agents are in the run's folder.
        let (owner, agents) = owned(&self.place, &state, &new_run(&self.clock))?;
        self.agents = agents;
        let old = std::mem::replace(&mut self.owner, owner);
        self.earlier.push(old);
        Ok(())
    }

    /// Records that this user starts the run, so that it can be resumed. Warns if another Tare measures.
    fn note(&self, plan: &Plan) -> Result<(), FileError> {
        let warned = self.measuring.get().is_some();
        if self.measuring.get_or_init(measuring::claimed).is_none() && !warned {
            output::tell(ANOTHER);
        }
        started_runs::note(self.owner.state(), self.run(), plan.sha256())
    }

    /// Runs a study as the run of this session.
    ///
    /// # Errors
    /// Whatever ended the run early; no result is lost.
    pub(crate) fn carry_out(
        &self,
        study: &Study,
        observer: &dyn Observer,
        store: &mut Store,
        precision: &mut dyn Precision,
    ) -> Result<RunSummary, RunError> {
        let plan = Plan::new(study);
        self.note(&plan)?;
        let (cx, registry) = (self.context(observer), Registry::built_in());
        run::execute(&cx, &plan, &host_facts(), &registry, store, precision)
    }

    /// The cancellation flag.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The time of the session's clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The run's name.
    pub(crate) fn run(&self) -> &RunId {
        self.owner.run()
    }

    /// Records the driver that starts something in addition to the arms, which no arm removes.
    pub(crate) fn starts_extra(&mut self, driver: &str) {
        self.beside = env::find(driver).map(env::Driver::id);
    }

    /// Removes what was started in addition to the arms; returns a line for each failure.
    fn remove_extra(&self) -> Vec<String> {
        let Some(driver) = self.beside.and_then(env::find) else {
            return Vec::new();
        };
        let cx = self.context(&Silent);
        self.earlier
            .iter()
            .chain([&self.owner])
            .filter_map(|owner| driver.sweep(&cx, owner.run().as_str()).err())
            .map(|error| error.to_string())
            .collect()
    }

    /// Ends and reports remaining processes of its runs. Usually there are none, because every arm ends its own;
    /// whatever cannot be checked is left to `tare clean`.
    fn end_processes(&self) {
        let Some(host) = env::find("host") else {
            return;
        };
        let cx = self.context(&Silent);
        for owner in self.earlier.iter().chain([&self.owner]) {
            for line in host.sweep(&cx, owner.run().as_str()).unwrap_or_default() {
                output::tell(&line);
            }
        }
    }

    /// Ends the remaining processes, and removes the folders of this run and the earlier ones.
    pub(crate) fn end(self) -> Result<(), Failed> {
        self.end_processes();
        let mut first = self.owner.remove();
        for owner in self.earlier {
            first = first.and(owner.remove());
        }
        Ok(first?)
    }
}

/// Warning about a concurrent run.
const ANOTHER: &str = "note: another Tare measures on this machine at the moment; each is noise in the other's results";

/// Acquires a run's folder with the agents in it; leaves no folder if there are no agents.
fn owned(place: &GivenPaths, state: &Path, run: &RunId) -> Result<(Owner, Agents), Failed> {
    let owner = Owner::acquire(state, run)?;
    match Agents::locate(place.agent.as_deref(), owner.folder()) {
        Ok(agents) => Ok((owner, agents)),
        Err(error) => {
            // Nothing was started; the folder would look like that of a killed run.
            owner.remove()?;
            Err(no_agent(error))
        }
    }
}

fn no_agent(error: AgentError) -> Failed {
    match error {
        // The disk is at fault, not the named file.
        AgentError::File(error) if error.advice().is_some() => error.into(),
        AgentError::Missing { .. } => {
            Failed::failure(error).hint("build one file with everything inside: `cargo xtask dist`")
        }
        AgentError::Foreign { .. } | AgentError::File(_) => {
            Failed::usage(error).hint("without `--agent` the one inside this program is used")
        }
    }
}

/// A unique name that sorts by time: date, time and four digits from nanoseconds and process.
fn new_run(clock: &SystemClock) -> RunId {
    let unix_ns = clock.unix_ns();
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    let mixed = (unix_ns.cast_unsigned() ^ u64::from(std::process::id()) << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let name = format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), mixed >> 48);
    RunId::new(name).expect("digits and dashes are a name")
}

/// Reports the settings of an arm whose name or value has been renamed.
pub(crate) fn tell_old_words(driver: &str, said: &Params) {
    let table = env::find(driver).map_or(&[][..], |driver| driver.settings());
    for note in env::setting::old_words(table, said) {
        output::tell(&format!("note: {driver}: {note}"));
    }
}

/// Facts about the machine that need no agent; the baseline's facts contain the rest.
fn host_facts() -> Facts {
    let cpus =
        std::thread::available_parallelism().map_or("unknown".to_owned(), |cpus| cpus.to_string());
    Facts::from([
        (
            fact::HOST_SYSTEM.to_owned(),
            std::env::consts::OS.to_owned(),
        ),
        (
            fact::HOST_MACHINE.to_owned(),
            std::env::consts::ARCH.to_owned(),
        ),
        (fact::HOST_CPUS.to_owned(), cpus),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_left_of_a_run_that_finds_no_agent() {
        let state = tempfile::tempdir().unwrap();
        let place = GivenPaths {
            agent: Some(state.path().join("no-agent")),
            store: None,
        };
        let run = RunId::new("r1").unwrap();
        assert!(owned(&place, state.path(), &run).is_err());
        assert!(!crate::cx::owner::folder(state.path(), &run).exists());
    }
}
