//! What a command that starts environments holds: the run's name and folder, the agents, the wish to stop.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Facts, Params, fact};
use tare_model::{RunId, Study};

use crate::cx::begun;
use crate::cx::files::FileError;
use crate::cx::measuring::{self, Measuring};
use crate::cx::observer::Silent;
use crate::cx::owner::Owner;
use crate::cx::{AgentError, Agents, Cancel, Clock, Context, Observer, SystemClock, SystemExec};
use crate::env::{self, Instance, StartMode};
use crate::failed::{Exit, Failed};
use crate::output;
use crate::plan::Plan;
use crate::run::{self, Precision, Registry, RunError, RunSummary};
use crate::session::home::Place;
use crate::store::Store;

pub(crate) mod dry_run;
pub(crate) mod home;
pub(crate) mod leftovers;
pub(crate) mod progress;

/// One command's hold on the machine.
pub(crate) struct Session {
    exec: SystemExec,
    clock: SystemClock,
    cancel: Cancel,
    agents: Agents,
    owner: Owner,
    store: PathBuf,
    /// Runs that this command carried out before the present one; their folders go with the last.
    earlier: Vec<Owner>,
    /// The driver with which something is started that stands beside the arms.
    beside: Option<&'static str>,
    /// Says to others that this command measures; set by its first run.
    measuring: OnceLock<Option<Measuring>>,
}

impl Session {
    /// Takes the run's folder and finds the agents; removes what runs that were killed have left. Ctrl-C from here on
    /// asks to stop in order.
    pub(crate) fn begin(place: &Place, run: Option<RunId>) -> Result<Self, Failed> {
        let session = Self::begin_to_clean(place, run)?;
        leftovers::before_a_run(&session.context(&Silent), session.owner.state())?;
        Ok(session)
    }

    /// The same without a look at killed runs.
    pub(crate) fn begin_to_clean(place: &Place, run: Option<RunId>) -> Result<Self, Failed> {
        let state = Place::state_folder()?;
        let store = place.store_file()?;
        let clock = SystemClock::default();
        let run = run.unwrap_or_else(|| new_run(&clock));
        let (owner, agents) = owned(place, &state, &run)?;
        let cancel = Cancel::new();
        // Without it Ctrl-C ends this process at once.
        let _ = cancel.ask_on_signals();
        Ok(Self {
            exec: SystemExec,
            clock,
            cancel,
            agents,
            owner,
            store,
            earlier: Vec::new(),
            beside: None,
            measuring: OnceLock::new(),
        })
    }

    /// The context for drivers and the engine.
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

    /// Goes on under a new run's name, with a folder of its own.
    pub(crate) fn renew(&mut self, place: &Place) -> Result<(), Failed> {
        // The agents lie in the run's folder.
        let (owner, agents) = owned(place, &Place::state_folder()?, &new_run(&self.clock))?;
        self.agents = agents;
        let old = std::mem::replace(&mut self.owner, owner);
        self.earlier.push(old);
        Ok(())
    }

    /// Notes that the run that is about to begin is this user's own, so that it can be resumed. Warns where another
    /// Tare measures.
    fn note(&self, plan: &Plan) -> Result<(), FileError> {
        let warned = self.measuring.get().is_some();
        if self.measuring.get_or_init(measuring::claimed).is_none() && !warned {
            output::tell(ANOTHER);
        }
        begun::note(self.owner.state(), self.run(), plan.sha256())
    }

    /// Carries a study out as the run of this session.
    ///
    /// # Errors
    /// What ended the run before its time; nothing of it is lost.
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

    /// The wish to stop.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The time, as the engine counts it.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The run's name.
    pub(crate) fn run(&self) -> &RunId {
        self.owner.run()
    }

    /// Notes the driver with which something is started beside the arms, which no arm removes.
    pub(crate) fn starts_beside(&mut self, driver: &str) {
        self.beside = env::find(driver).map(env::Driver::id);
    }

    /// Removes what was started beside the arms; a line for what is still there.
    pub(crate) fn end_beside(&self) -> Vec<String> {
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

    /// Ends the processes of its runs that are still there, and says which. Every arm ends its own, so mostly there is
    /// none; what cannot be looked for is left to `tare clean`.
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

    /// Says what could not be removed, and ends it if there is nothing.
    pub(crate) fn end_unless(self, left_behind: &[String]) -> Result<(), Failed> {
        output::left_behind(left_behind);
        if left_behind.is_empty() {
            self.end()?;
        }
        Ok(())
    }

    /// Ends it after a failure, unless that may have left something for `tare clean`; the failure to tell.
    pub(crate) fn end_after(self, failed: Failed) -> Failed {
        if failed.may_have_left {
            return failed;
        }
        self.end().err().unwrap_or(failed)
    }

    /// Ends what is left on this machine of what was started, and removes the run's folder and those of the runs
    /// before it.
    pub(crate) fn end(self) -> Result<(), Failed> {
        self.end_processes();
        let mut first = self.owner.remove();
        for owner in self.earlier {
            first = first.and(owner.remove());
        }
        Ok(first?)
    }
}

/// Two runs at once are each other's noise.
const ANOTHER: &str = "note: another Tare measures on this machine at the moment; each is noise in the other's results";

/// A run's folder with the agents in it; none is left where there are no agents.
fn owned(place: &Place, state: &Path, run: &RunId) -> Result<(Owner, Agents), Failed> {
    let owner = Owner::acquire(state, run)?;
    match Agents::locate(place.agent.as_deref(), owner.folder()) {
        Ok(agents) => Ok((owner, agents)),
        Err(error) => {
            // Nothing was started: a folder would only look like a run that was killed.
            owner.remove()?;
            Err(no_agent(error))
        }
    }
}

fn no_agent(error: AgentError) -> Failed {
    match error {
        // The disk is at fault, and not the file that was named.
        AgentError::File(error) if error.advice().is_some() => error.into(),
        AgentError::Missing { .. } => Failed::new(Exit::Failure, error)
            .hint("build one file with everything inside: `cargo xtask dist`"),
        AgentError::Foreign { .. } | AgentError::File(_) => Failed::new(Exit::Usage, error)
            .hint("without `--agent` the one inside this program is used"),
    }
}

/// A name that sorts by time and is not used twice: date, time and four digits of the nanoseconds and process.
fn new_run(clock: &SystemClock) -> RunId {
    let unix_ns = clock.unix_ns();
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    let mixed = (unix_ns.cast_unsigned() ^ u64::from(std::process::id()) << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let name = format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), mixed >> 48);
    RunId::new(name).expect("digits and dashes are a name")
}

/// A plain process on this machine with an agent that has answered.
pub(crate) fn host_instance(cx: &Context<'_>) -> Result<Box<dyn Instance>, Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        Failed::new(
            Exit::Failure,
            format!("the agent does not run on this machine: {error}"),
        )
    };
    let driver = env::find("host")
        .ok_or_else(|| Failed::new(Exit::Failure, "this program has no `host` environment"))?;
    let arm = ArmId::new("doctor").expect("the constant is a name");
    let mut environment = driver
        .configure(arm, &Params::new())
        .map_err(|error| failed(&error))?;
    environment.prepare(cx).map_err(|error| failed(&error))?;
    let mut instance = environment
        .start(cx, StartMode::Resident)
        .map_err(|error| failed(&error))?;
    let channel = instance.channel();
    channel
        .send(&Request::Hello { protocol: PROTOCOL })
        .map_err(|error| failed(&error))?;
    match channel.receive(Duration::from_secs(5)) {
        Ok(Reply::Hello {
            protocol, build, ..
        }) => match cx.agents.greeted(protocol, &build) {
            Ok(_) => Ok(instance),
            Err(why) => Err(failed(&why)),
        },
        Ok(other) => Err(failed(&format!("unexpected answer {other:?}"))),
        Err(error) => Err(failed(&error)),
    }
}

/// Says which settings of an arm have another name or word today.
pub(crate) fn tell_old_words(driver: &str, said: &Params) {
    let table = env::find(driver).map_or(&[][..], |driver| driver.settings());
    for note in env::setting::old_words(table, said) {
        output::tell(&format!("note: {driver}: {note}"));
    }
}

/// What is known of the machine before any agent runs; the baseline's facts say the rest.
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
        let place = Place {
            agent: Some(state.path().join("no-agent")),
            store: None,
        };
        let run = RunId::new("r1").unwrap();
        assert!(owned(&place, state.path(), &run).is_err());
        assert!(!crate::cx::owner::folder(state.path(), &run).exists());
    }
}
