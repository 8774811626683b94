//! Runs the command a few times on the host and inside, before anything is planned.
//!
//! This shows how long the command takes, whether it works on both sides and more than once, and how its processes
//! behave. These runs are outside of all blocks; their times are only used for planning. Limits: a command that fails
//! occasionally goes unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tare_model::command::InSlices;
use tare_model::fact;
use tare_model::tool::ToolQuestion;
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{
    ArmId, CommandCall, CommandReport, Facts, Failure, Outcome, Params, ProbeReport, RawOutput,
    Reason, whole_ns,
};

use super::error::{how, meaning, output_tail};
use super::observed::{First, Inside, Observed, common};
use super::served::AtServer;
use super::studies::CHATTY_BYTES;
use super::user_container::ContainerQuestion;
use super::{Ask, HOST, WhyError, carry, error, fresh, host_accounting, pace, served};
use crate::cause::switch::target;
use crate::cx::{CONTROL_LIMIT, Context, Event};
use crate::env::question::{self, NoAnswer};
use crate::env::{self, Availability, EnvError, FileRequest, Instance, StartMode};
use crate::workload::{stoppable, user_command};

mod inside;
mod rates;
mod side;

use inside::{differs_again, in_environment};
pub use inside::{inside_limits, look_inside};
pub use rates::look_at_rates;
pub use side::look_at_side;

/// How long after a worker's limit its agent may still report that.
const GRACE: Duration = Duration::from_secs(3);
/// Most folders of opened files about which facts are requested.
const FOLDERS_MOST: usize = 32;
/// Where the command runs on the other side: each start has new files.
const BASELINE: &str = "new copy of the baseline's files";
/// Why an answer of an agent is useless.
const OTHER_ANSWER: &str = "its agent answered something else";
/// A command that takes longer runs once on the host, not twice.
const TWICE_BELOW_NS: u64 = 10_000_000_000;

/// Runs the command on the host and inside `settings`. If `seen` shows that it takes long inside or does not end,
/// that result is reused.
///
/// # Errors
/// Why the command cannot be measured, with a hint.
pub fn look(
    cx: &Context<'_>,
    ask: &Ask,
    settings: &Params,
    seen: Option<&Inside>,
) -> Result<First, WhyError> {
    let call = CommandCall {
        observe: true,
        ..ask.call.clone()
    };
    let limit = Duration::from_nanos((ask.budget_ns / 2).max(5_000_000_000));
    let mut remarks = Vec::new();
    let mut paths = paths(&call, settings);
    let base = ask.base();
    let base_call = base.change.changed(call.clone());
    // If the working directory does not exist inside, the command starts elsewhere there.
    let directory = ask.change().directory.or(call.directory.clone());
    let call = CommandCall { directory, ..call };
    let ((mut host, in_slices, first_ns), facts, _) =
        in_started(cx, ask, (&base.driver, &base.settings), limit, |tried| {
            let (look, first_ns) = tried.on_host(&base_call)?;
            paths.extend(folders(&look.report));
            let in_slices = tried.stopped_on_host(&look)?;
            Ok(((look, in_slices, first_ns), paths.iter().cloned().collect()))
        })?;
    host.facts = facts;
    remarks.extend(error::left_running("the command", &host.report));
    if ask.call.stdin_file.is_some() {
        remarks.push("standard input is given to every run from a file".to_owned());
    }
    let (env, life_ns) = in_environment(cx, ask, settings, (seen, &host), (&call, &paths, limit))?;
    let may_repeat =
        first_ns.is_some_and(|first_ns| fresh::is_like_first(first_ns, host.wall_ns, env.wall_ns));
    let base_differs = if may_repeat {
        let place = (base.driver.as_str(), &base.settings);
        differs_again(cx, ask, (BASELINE, place), &base_call, limit)?
    } else {
        None
    };
    let is_server = ask.call.client.is_some();
    served::alike(ask, &host.report, &env.report)?;
    if !is_server {
        remarks.extend(unlike(&host.report, &env.report));
    }
    let in_slices = in_slices.and_then(|on_host| {
        let inside = inside_slices(ask, &env)?;
        stoppable::on_as_many_processors([&host.report, &env.report])?;
        Ok(common(on_host, inside))
    });
    remarks.extend(match &in_slices {
        _ if is_server => None,
        Ok(slices) => format!(
            "the command only computes: its copies are interleaved in slices of {} ms",
            slices.ns / 1_000_000
        )
        .into(),
        Err(why) => format!("the command runs uninterrupted, because it {why}").into(),
    });
    let mut first = First {
        host,
        env,
        life_ns,
        remarks,
        cut_ns: None,
        is_fresh: ask.is_fresh(),
        base_differs,
        in_slices,
    };
    first.remarks.extend(pace::repeated(&first));
    Ok(first)
}

/// Remarks that both sides may not do the same work.
fn unlike(host: &CommandReport, env: &CommandReport) -> impl Iterator<Item = String> + use<> {
    let is_other = env.stdout != host.stdout && !host.stdout.0.is_empty();
    let prints = is_other.then(|| {
        "what it prints on the host and inside is not the same; if it should be, look at that first"
            .to_owned()
    });
    let complaint = error::complaint(["on the host", "inside"], [host, env]);
    prints.into_iter().chain(complaint)
}

/// How the command can be sliced inside, or why not.
fn inside_slices(ask: &Ask, env: &Observed) -> Result<InSlices, String> {
    if ask.change().stdout.is_some() && env.report.stdout.0.len() > CHATTY_BYTES {
        return Err("prints much, which its engine passes on while it is stopped".to_owned());
    }
    let inside = stoppable::cut(&env.report, &env.counters);
    inside.map_err(|why| format!("{why} in `{}`", ask.driver))
}

/// Paths that may contain the command's files, whichever it opens: working directory, temporary files, and mounts in
/// the environment's settings.
fn paths(call: &CommandCall, settings: &Params) -> BTreeSet<String> {
    let mut paths: BTreeSet<String> = call.directory.iter().cloned().collect();
    paths.extend([call
        .variables
        .get("TMPDIR")
        .map_or("/tmp", String::as_str)
        .to_owned()]);
    let binds = settings.words("binds");
    paths.extend(
        binds
            .iter()
            .filter_map(|bind| target(bind).map(str::to_owned)),
    );
    paths.extend(settings.words("tmpfs"));
    paths.retain(|path| {
        path.starts_with('/') && path != "/" && !carry::is_in_userland(Path::new(path))
    });
    paths
}

/// Folders of the files that the command had open, except the userland.
fn folders(report: &CommandReport) -> BTreeSet<String> {
    let opened = report.seen.iter().flat_map(|seen| &seen.opened);
    opened
        .map(Path::new)
        .filter(|path| !carry::is_in_userland(path))
        .filter_map(|path| Some(path.parent()?.to_str()?.to_owned()))
        .filter(|path| path != "/")
        .take(FOLDERS_MOST)
        .collect()
}

/// Measures how long starting and removing an environment with these settings takes, nanoseconds.
///
/// # Errors
/// The environment cannot be started or removed.
pub(super) fn life(cx: &Context<'_>, ask: &Ask, settings: &Params) -> Result<u64, WhyError> {
    let place = (ask.driver.as_str(), settings);
    let ((), _, life_ns) = in_started(cx, ask, place, Duration::ZERO, |_| Ok(((), Vec::new())))?;
    Ok(life_ns)
}

/// Starts an environment, does `work` with runs in it of up to `limit`, collects its facts, including those about the
/// paths that `work` returns, and removes it.
fn in_started<T>(
    cx: &Context<'_>,
    ask: &Ask,
    (id, settings): (&str, &Params),
    limit: Duration,
    work: impl FnOnce(&mut SideRuns<'_, '_>) -> Result<(T, Vec<String>), WhyError>,
) -> Result<(T, Facts, u64), WhyError> {
    let wrap = |source: EnvError| WhyError::Environment {
        env: id.to_owned(),
        source,
    };
    let absent = |why: String, fix: Option<String>| wrap(EnvError::Absent { why, fix });
    let driver =
        env::find(id).ok_or_else(|| absent("there is no such environment".into(), None))?;
    let name = ArmId::new("look").expect("the constant is a name");
    let mut environment = driver
        .configure(name, settings)
        .map_err(|error| absent(error.to_string(), error.hint.clone()))?;
    if let Some(program) = ask.program.as_ref().filter(|_| id == ask.driver) {
        environment.provide(&FileRequest {
            programs: vec![program.clone()],
            ..FileRequest::default()
        });
    }
    cx.observer.event(&Event::Starting {
        arm: id.to_owned(),
        what: "looking at the command in",
    });
    if let Availability::Absent { why, fix } =
        environment.detect(cx).unwrap_or_else(|| driver.detect(cx))
    {
        return Err(absent(why, fix));
    }
    let result = environment.prepare(cx).map_err(wrap).and_then(|()| {
        let begun_ns = cx.clock.now_ns();
        let mut instance = environment.start(cx, StartMode::Resident).map_err(wrap)?;
        let mut life_ns = cx.clock.now_ns().saturating_sub(begun_ns);
        let mut tried = SideRuns {
            server: AtServer::default(),
            cx,
            ask,
            place: id,
            instance: instance.as_mut(),
            limit,
        };
        let result = tried
            .greet()
            .and_then(|()| work(&mut tried))
            .and_then(|(value, paths)| {
                let mut facts = environment.describe(cx);
                facts.extend(tried.facts(&paths)?);
                Ok((value, facts))
            });
        let begun_ns = cx.clock.now_ns();
        let stopped = instance.stop(cx).map_err(wrap);
        life_ns += cx.clock.now_ns().saturating_sub(begun_ns);
        result.and_then(|(value, facts)| stopped.map(|()| (value, facts, life_ns)))
    });
    let removed = environment.remove(cx).map_err(wrap);
    match (result, removed) {
        (Ok(value), Ok(())) => Ok(value),
        // The run's folder, which is kept, has the record of what remains.
        (Ok(_), Err(WhyError::Environment { env, source })) => {
            Err(WhyError::NotRemoved { env, source })
        }
        (Ok(_), Err(other)) => Err(other),
        (Err(first), Err(WhyError::Environment { source: left, .. })) => Err(WhyError::Left {
            first: Box::new(first),
            left,
        }),
        (Err(first), _) => Err(first),
    }
}

/// Renames the facts about the command's paths: `mount.<path>` is about the probes' files.
fn named(facts: Facts, of_command: &[&String]) -> Facts {
    let is_of_command = |name: &str| {
        name.strip_prefix(fact::beginning(fact::MOUNT))
            .is_some_and(|rest| {
                let mut paths = of_command.iter();
                paths.any(|path| {
                    rest.strip_prefix(path.as_str())
                        .is_some_and(|part| part.starts_with('.'))
                })
            })
    };
    facts
        .into_iter()
        .map(|(name, value)| {
            match fact::what(fact::MOUNT, &name).filter(|_| is_of_command(&name)) {
                Some(part) => (fact::name_for(fact::COMMAND_MOUNT, part), value),
                None => (name, value),
            }
        })
        .collect()
}

/// The report of a run, and the counters meanwhile.
type Reported = (CommandReport, BTreeMap<String, f64>);

fn probe(raw: &RawOutput) -> Option<Reported> {
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).ok()?;
    let counters = super::readings::counters_of(&report);
    Some((report.command?, counters))
}

fn observed((report, counters): Reported) -> Observed {
    Observed {
        wall_ns: report.wall_ns,
        report,
        counters,
        facts: Facts::new(),
    }
}

/// Runs of the command on one side.
struct SideRuns<'a, 'b> {
    /// The command's server, once it was started.
    server: AtServer,
    cx: &'a Context<'b>,
    ask: &'a Ask,
    /// Name of the environment.
    place: &'a str,
    instance: &'a mut dyn Instance,
    /// Time limit of each run.
    limit: Duration,
}

impl SideRuns<'_, '_> {
    fn asked(&mut self, request: &Request, limit: Duration) -> Result<Reply, WhyError> {
        let answer = question::ask(self.cx, self.instance.channel(), request, limit);
        answer.map_err(|no_answer| match no_answer {
            NoAnswer::Cancelled => WhyError::Cancelled,
            NoAnswer::Channel(error) => self.agent(error.to_string()),
        })
    }

    fn agent(&self, why: impl Into<String>) -> WhyError {
        WhyError::Agent {
            place: self.place.to_owned(),
            why: why.into(),
        }
    }

    fn greet(&mut self) -> Result<(), WhyError> {
        match self.asked(&Request::Hello { protocol: PROTOCOL }, CONTROL_LIMIT)? {
            Reply::Hello {
                protocol, build, ..
            } => {
                let greeted = self.cx.agents.greeted(protocol, &build);
                greeted.map(drop).map_err(|why| self.agent(why))
            }
            _ => Err(self.agent("its agent is not the one that this Tare brought")),
        }
    }

    /// Collects the agent's facts, including hashes of the command's program and its interpreter. Facts about the
    /// command's `paths` are named differently from those about the agent's.
    fn facts(&mut self, paths: &[String]) -> Result<Facts, WhyError> {
        let mut own = vec!["/".to_owned(), self.instance.workdir()];
        own.dedup();
        let of_command: Vec<&String> = paths.iter().filter(|path| !own.contains(path)).collect();
        let all = own.iter().chain(of_command.iter().copied()).cloned();
        // Without asking for its version: a user's program is not run with other arguments.
        let program = self.ask.call.argv.first().map(|program| ToolQuestion {
            program: program.clone(),
            version: Vec::new(),
        });
        let request = Request::Facts {
            paths: all.collect(),
            tools: program.into_iter().collect(),
        };
        match self.asked(&request, CONTROL_LIMIT)? {
            Reply::Facts { facts } => Ok(named(facts, &of_command)),
            _ => Err(self.agent(OTHER_ANSWER)),
        }
    }

    /// Runs the command once.
    fn once(&mut self, call: &CommandCall) -> Result<Outcome, WhyError> {
        if call.client.is_some() {
            return self
                .server
                .asked(self.cx, self.instance, (self.place, call), self.limit);
        }
        let request = Request::Run {
            hold: false,
            turns: None,
            cpu: None,
            trial: 0,
            call: call.to_probe(),
            target_ns: 0,
            limit_ns: whole_ns(self.limit),
            workdir: self.instance.workdir(),
        };
        match self.asked(&request, self.limit + GRACE)? {
            Reply::Done { raw, .. } => Ok(Outcome::Completed(raw)),
            Reply::Unavailable { reason, .. } => Ok(Outcome::Unavailable(reason)),
            Reply::Failed { failure, .. } => Ok(Outcome::Failed(failure)),
            _ => Err(self.agent(OTHER_ANSWER)),
        }
    }

    /// Runs the command once and returns its report, whatever the exit status.
    fn reported(&mut self, call: &CommandCall) -> Result<Reported, WhyError> {
        let before = host_accounting::Before::now(self.instance, call);
        let place = self.place;
        match self.once(call)? {
            Outcome::Completed(raw) => {
                let (report, mut counters) =
                    probe(&raw).ok_or_else(|| self.agent("its agent left no report"))?;
                served::check(place, call, &report)?;
                before.add_since(&mut counters);
                Ok((report, counters))
            }
            Outcome::Unavailable(reason @ Reason::MissingTool(_)) => Err(WhyError::NotInside {
                env: place.to_owned(),
                why: reason.to_string(),
            }),
            Outcome::Unavailable(reason) => Err(self.agent(reason.to_string())),
            Outcome::Failed(Failure::TimedOut { .. }) => Err(WhyError::TooLong {
                place: if place == HOST {
                    "on the host".to_owned()
                } else {
                    format!("in `{place}`")
                },
                limit_s: self.limit.as_secs(),
                budget_s: self.ask.budget_ns / 1_000_000_000,
            }),
            Outcome::Failed(failure) => {
                Err(self.agent(failure.to_string().escape_debug().to_string()))
            }
        }
    }

    fn again(&mut self, call: &CommandCall) -> Result<Reported, WhyError> {
        let (report, counters) = self.reported(call)?;
        if !(report.exit.is_success() || stoppable::is_tolerated(&report)) {
            return Err(WhyError::FailsAgain {
                how: how(report.exit),
                said: output_tail(&report),
            });
        }
        Ok((report, counters))
    }

    /// Runs the command at the baseline; also returns the wall time of its first run, nanoseconds, if the next differs
    /// and new containers may have to repeat the first.
    fn on_host(&mut self, call: &CommandCall) -> Result<(Observed, Option<u64>), WhyError> {
        let ask = self.ask;
        let (first, counters) = self.reported(call)?;
        if !first.exit.is_success() {
            return Err(WhyError::FailsOnHost {
                how: how(first.exit),
                said: output_tail(&first),
                hint: meaning(&first, false),
            });
        }
        check_pick(ask, "on the host", &first)?;
        if first.wall_ns > TWICE_BELOW_NS || ask.is_fresh() {
            return Ok((observed((first, counters)), None));
        }
        let (mut second, counters) = self.again(call)?;
        let may_repeat = ask.own.as_ref().is_some_and(has_copies) && call.client.is_none();
        let differs =
            may_repeat && fresh::differs(BASELINE, [&first, &second], Vec::new()).is_some();
        self.until_seen(call, &mut second)?;
        let look = Observed {
            wall_ns: first.wall_ns.min(second.wall_ns),
            ..observed((second, counters))
        };
        Ok((look, differs.then_some(first.wall_ns)))
    }

    /// Determines how the command can be sliced on the host, by stopping it repeatedly.
    fn stopped_on_host(&mut self, look: &Observed) -> Result<Result<InSlices, String>, WhyError> {
        let ask = self.ask;
        if ask.own.is_some() && ask.driver != HOST {
            // Whether a limit on CPU time is the cause is the question.
            return Ok(Err(
                "is in a container of your own, whose limits slices would hide".to_owned(),
            ));
        }
        if ask.call.client.is_some() {
            return Ok(Err("is a server".to_owned()));
        }
        let slices = match stoppable::cut(&look.report, &look.counters) {
            Ok(slices) => slices,
            Err(why) => return Ok(Err(why)),
        };
        let paused = CommandCall {
            in_slices: Some(slices),
            ..ask.base().change.changed(ask.call.clone())
        };
        let (report, _) = self.reported(&paused)?;
        Ok(stoppable::confirmed(&report, &look.report).map(|()| slices))
    }

    /// Runs the command inside, at most as long as the call says.
    fn inside(&mut self, call: &CommandCall) -> Result<Observed, WhyError> {
        let ask = self.ask;
        let call = ask.change().changed(call.clone());
        let (mut report, counters) = self.reported(&call)?;
        let is_whole = !report.is_ended_early;
        if is_whole && !report.exit.is_success() {
            return Err(WhyError::FailsInside {
                env: ask.driver.clone(),
                how: how(report.exit),
                said: output_tail(&report),
                hint: meaning(&report, true),
            });
        }
        if is_whole {
            check_pick(ask, "inside", &report)?;
            if !ask.is_fresh() {
                self.until_seen(&call, &mut report)?;
            }
        }
        Ok(observed((report, counters)))
    }
}

/// Whether the question's container is started anew, rather than a running one or one of two sides.
fn has_copies(asks: &ContainerQuestion) -> bool {
    asks.copy.is_none() && asks.undo.is_empty()
}

/// Checks that the output contains the number to pick.
fn check_pick(ask: &Ask, place: &str, report: &CommandReport) -> Result<(), WhyError> {
    let Some(pick) = &ask.call.pick else {
        return Ok(());
    };
    let pattern = user_command::compiled(&pick.pattern);
    let found = pattern.is_ok_and(|pattern| {
        [&report.stdout.0, &report.stderr.0]
            .iter()
            .any(|bytes| user_command::picked(&pattern, &String::from_utf8_lossy(bytes)).is_some())
    });
    if found {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&report.stdout.0);
    let beginning: String = text.trim().chars().take(200).collect();
    Err(WhyError::NothingPicked {
        pattern: pick.pattern.escape_debug().to_string(),
        place: place.to_owned(),
        begins: if beginning.is_empty() {
            "is empty".to_owned()
        } else {
            format!("begins `{}`", beginning.escape_debug())
        },
    })
}
