//! The first look: the command a few times on the host and inside, before anything is planned.
//!
//! It says how long the command takes, whether it works on both sides and more than once, and what its processes
//! are like. It runs outside of every block and is compared with nothing: its times serve the plan only.
//! What it cannot see: a command that fails now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tare_model::command::InSlices;
use tare_model::fact;
use tare_model::tool::ToolQuestion;
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{
    ArmId, CommandCall, CommandReport, Facts, Outcome, Params, ProbeReport, RawOutput, Reason,
    whole_ns,
};

use super::observed::{First, Inside, Observed, common};
use super::served::AtServer;
use super::studies::CHATTY_BYTES;
use super::trouble::{absent, failed, how, meaning, said};
use super::{Ask, HOST, Trouble, carry, from_outside, pace, served, trouble};
use crate::cause::switch::target;
use crate::cx::{CONTROL_LIMIT, Context, Event};
use crate::env::question::{self, NoAnswer};
use crate::env::{self, Availability, Channel, EnvError, Instance, StartMode, Wanted};
use crate::workload::{stoppable, user_command};

mod inside;
mod rates;
mod side;

pub use inside::look_inside;
pub use rates::look_at_rates;
pub use side::look_at_side;

/// How long after a worker's limit its agent may still say so.
const GRACE: Duration = Duration::from_secs(3);
/// Folders of opened files that are asked about at most.
const FOLDERS_MOST: usize = 32;
/// A command that takes longer is run once on the host, not twice.
const TWICE_BELOW_NS: u64 = 10_000_000_000;

/// Looks at the command on the host and inside `settings`; where it was seen inside before, and took long or did not
/// end, that is what is known of it.
///
/// # Errors
/// Why it cannot be measured, with what helps.
pub fn look(
    cx: &Context<'_>,
    ask: &Ask,
    settings: &Params,
    seen: Option<&Inside>,
) -> Result<First, Trouble> {
    let call = CommandCall {
        observe: true,
        ..ask.call.clone()
    };
    let limit = Duration::from_nanos((ask.budget_ns / 2).max(5_000_000_000));
    let mut remarks = Vec::new();
    let mut paths = paths(&call, settings);
    let base = ask.base();
    let base_call = base.change.changed(call.clone());
    // Where the working directory is not inside, it is started elsewhere there.
    let directory = ask.change().directory.or(call.directory.clone());
    let call = CommandCall { directory, ..call };
    let ((mut host, in_slices), facts, _) =
        at(cx, ask, &base.driver, &base.settings, |instance| {
            let mut tried = Tried::new(cx, ask, instance, limit);
            let look = tried.on_host(&base_call)?;
            paths.extend(folders(&look.report));
            let in_slices = tried.stopped_on_host(&look)?;
            Ok(((look, in_slices), paths.iter().cloned().collect()))
        })?;
    host.facts = facts;
    if host.report.left_running > 0 {
        remarks.push(format!(
            "the command leaves {} process{} running in the background; what they do after it has ended is not counted, and they are ended after each run",
            host.report.left_running,
            if host.report.left_running == 1 { "" } else { "es" }
        ));
    }
    if ask.call.stdin_file.is_some() {
        remarks.push("standard input is given to every run from a file".to_owned());
    }
    let (mut env, facts, life_ns) = at(cx, ask, &ask.driver, settings, |instance| {
        let known = seen.and_then(|seen| seen.for_good(&host, TWICE_BELOW_NS));
        let look = match known {
            Some(look) => look,
            None => Tried::new(cx, ask, instance, limit).inside(&call)?,
        };
        Ok((look, paths.iter().cloned().collect()))
    })?;
    env.facts = facts;
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
        in_slices,
    };
    first.remarks.extend(pace::repeated(&first));
    Ok(first)
}

/// What shows that both sides may not do the same work.
fn unlike(host: &CommandReport, env: &CommandReport) -> impl Iterator<Item = String> + use<> {
    let is_other = env.stdout != host.stdout && !host.stdout.0.is_empty();
    let prints = is_other.then(|| {
        "what it prints on the host and inside is not the same; if it should be, look at that first"
            .to_owned()
    });
    let complaint = trouble::complaint(["on the host", "inside"], [host, env]);
    prints.into_iter().chain(complaint)
}

/// How it can be cut inside.
fn inside_slices(ask: &Ask, env: &Observed) -> Result<InSlices, String> {
    if ask.change().stdout.is_some() && env.report.stdout.0.len() > CHATTY_BYTES {
        return Err("prints much, which its engine passes on while it is stopped".to_owned());
    }
    let inside = stoppable::cut(&env.report, &env.counters);
    inside.map_err(|why| format!("{why} in `{}`", ask.driver))
}

/// Paths under which the command's files may lie, whichever it opens: where it is started, where temporary files
/// go, and what the environment's settings put at a place.
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

/// The folders of the files that it was seen to have open, the userland's aside.
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

/// How long starting and removing an environment with these settings takes, nanoseconds.
///
/// # Errors
/// It cannot be started or removed.
pub(super) fn life(cx: &Context<'_>, ask: &Ask, settings: &Params) -> Result<u64, Trouble> {
    let ((), _, life_ns) = at(cx, ask, &ask.driver, settings, |_| Ok(((), Vec::new())))?;
    Ok(life_ns)
}

/// Starts an environment, lets `work` use it, asks what it sees, also of the paths that `work` names, and removes
/// it.
fn at<T>(
    cx: &Context<'_>,
    ask: &Ask,
    id: &str,
    settings: &Params,
    work: impl FnOnce(&mut dyn Instance) -> Result<(T, Vec<String>), Trouble>,
) -> Result<(T, Facts, u64), Trouble> {
    let wrap = |source: EnvError| Trouble::Environment {
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
        environment.provide(&Wanted {
            programs: vec![program.clone()],
            ..Wanted::default()
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
        let result = greet(cx, id, instance.channel())
            .and_then(|()| work(instance.as_mut()))
            .and_then(|(value, paths)| {
                let mut facts = environment.describe(cx);
                facts.extend(facts_of(cx, ask, id, instance.as_mut(), &paths)?);
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
        // What it was is on record in the run's folder, which is kept.
        (Ok(_), Err(Trouble::Environment { env, source })) => {
            Err(Trouble::NotRemoved { env, source })
        }
        (Ok(_), Err(other)) => Err(other),
        (Err(first), Err(Trouble::Environment { source: left, .. })) => Err(Trouble::Left {
            first: Box::new(first),
            left,
        }),
        (Err(first), _) => Err(first),
    }
}

fn greet(cx: &Context<'_>, place: &str, channel: &mut dyn Channel) -> Result<(), Trouble> {
    let hello = Request::Hello { protocol: PROTOCOL };
    match asked(cx, place, channel, &hello, CONTROL_LIMIT)? {
        Reply::Hello {
            protocol, build, ..
        } => {
            let greeted = cx.agents.greeted(protocol, &build);
            greeted.map(drop).map_err(|why| agent(place, why))
        }
        _ => Err(agent(
            place,
            "its agent is not the one that this Tare brought",
        )),
    }
}

/// What the agent sees of its place, the bytes of the command's program and of what interprets it among it; what
/// lies under the command's `paths` is told apart from what lies under the agent's own.
fn facts_of(
    cx: &Context<'_>,
    ask: &Ask,
    place: &str,
    instance: &mut dyn Instance,
    paths: &[String],
) -> Result<Facts, Trouble> {
    let mut own = vec!["/".to_owned(), instance.workdir()];
    own.dedup();
    let of_command: Vec<&String> = paths.iter().filter(|path| !own.contains(path)).collect();
    let all = own.iter().chain(of_command.iter().copied()).cloned();
    // Without a question for its version: somebody's own program is not run with arguments of ours.
    let program = ask.call.argv.first().map(|program| ToolQuestion {
        program: program.clone(),
        version: Vec::new(),
    });
    let request = Request::Facts {
        paths: all.collect(),
        tools: program.into_iter().collect(),
    };
    match asked(cx, place, instance.channel(), &request, CONTROL_LIMIT)? {
        Reply::Facts { facts } => Ok(named(facts, &of_command)),
        _ => Err(agent(place, "its agent answered something else")),
    }
}

/// The facts with those about the command's paths under a name of their own: `mount.<path>` is where the probes'
/// files lie.
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
                Some(part) => (fact::of(fact::COMMAND_MOUNT, part), value),
                None => (name, value),
            }
        })
        .collect()
}

fn agent(place: &str, why: impl Into<String>) -> Trouble {
    Trouble::Agent {
        place: place.to_owned(),
        why: why.into(),
    }
}

fn asked(
    cx: &Context<'_>,
    place: &str,
    channel: &mut dyn Channel,
    request: &Request,
    limit: Duration,
) -> Result<Reply, Trouble> {
    question::ask(cx, channel, request, limit).map_err(|no_answer| match no_answer {
        NoAnswer::Cancelled => Trouble::Cancelled,
        NoAnswer::Channel(error) => agent(place, error.to_string()),
    })
}

fn probe(raw: &RawOutput) -> Option<(CommandReport, BTreeMap<String, f64>)> {
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).ok()?;
    let counters = super::readings::counters_of(&report);
    Some((report.command?, counters))
}

/// The command on one side, as often as it is tried there.
struct Tried<'a, 'b> {
    /// The server that it is, once it was started.
    server: AtServer,
    cx: &'a Context<'b>,
    ask: &'a Ask,
    instance: &'a mut dyn Instance,
    /// How long it may take each time.
    limit: Duration,
}

impl<'a, 'b> Tried<'a, 'b> {
    fn new(
        cx: &'a Context<'b>,
        ask: &'a Ask,
        instance: &'a mut dyn Instance,
        limit: Duration,
    ) -> Self {
        Self {
            server: AtServer::default(),
            cx,
            ask,
            instance,
            limit,
        }
    }

    /// One run; `None` if it did not end in time.
    fn once(&mut self, place: &str, call: &CommandCall) -> Result<Outcome, Trouble> {
        if call.client.is_some() {
            return self
                .server
                .asked(self.cx, self.instance, (place, call), self.limit);
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
        match asked(
            self.cx,
            place,
            self.instance.channel(),
            &request,
            self.limit + GRACE,
        )? {
            Reply::Done { raw, .. } => Ok(Outcome::Completed(raw)),
            Reply::Unavailable { reason, .. } => Ok(Outcome::Unavailable(reason)),
            Reply::Failed { failure, .. } => Ok(Outcome::Failed(failure)),
            _ => Err(agent(place, "its agent answered something else")),
        }
    }

    /// The report of one run, whatever its exit status.
    fn reported(
        &mut self,
        place: &str,
        call: &CommandCall,
    ) -> Result<(CommandReport, BTreeMap<String, f64>), Trouble> {
        let before = from_outside::Before::now(self.instance, call);
        match self.once(place, call)? {
            Outcome::Completed(raw) => {
                let (report, mut counters) =
                    probe(&raw).ok_or_else(|| agent(place, "its agent left no report"))?;
                served::check(place, call, &report)?;
                before.add_since(&mut counters);
                Ok((report, counters))
            }
            Outcome::Unavailable(reason @ Reason::MissingTool(_)) => Err(Trouble::NotInside {
                env: place.to_owned(),
                why: absent(&reason),
            }),
            Outcome::Unavailable(reason) => Err(agent(place, absent(&reason))),
            Outcome::Failed(tare_model::Failure::TimedOut { .. }) => Err(Trouble::TooLong {
                place: if place == "host" {
                    "on the host".to_owned()
                } else {
                    format!("in `{place}`")
                },
                limit_s: self.limit.as_secs(),
                budget_s: self.ask.budget_ns / 1_000_000_000,
            }),
            Outcome::Failed(failure) => Err(agent(place, failed(&failure))),
        }
    }

    fn again(
        &mut self,
        place: &str,
        call: &CommandCall,
    ) -> Result<(CommandReport, BTreeMap<String, f64>), Trouble> {
        let (report, counters) = self.reported(place, call)?;
        if !(report.exit.is_success() || stoppable::is_tolerated(&report)) {
            return Err(Trouble::FailsAgain {
                how: how(report.exit),
                said: said(&report),
            });
        }
        Ok((report, counters))
    }

    fn on_host(&mut self, call: &CommandCall) -> Result<Observed, Trouble> {
        let ask = self.ask;
        let place = ask.base().driver;
        let (first, counters) = self.reported(&place, call)?;
        if !first.exit.is_success() {
            return Err(Trouble::FailsOnHost {
                how: how(first.exit),
                said: said(&first),
                hint: meaning(&first, false),
            });
        }
        check_pick(ask, "on the host", &first)?;
        if first.wall_ns > TWICE_BELOW_NS || ask.is_fresh() {
            return Ok(Observed {
                wall_ns: first.wall_ns,
                report: first,
                counters,
                facts: Facts::new(),
            });
        }
        let (second, counters) = self.again(&place, call)?;
        Ok(Observed {
            wall_ns: first.wall_ns.min(second.wall_ns),
            report: second,
            counters,
            facts: Facts::new(),
        })
    }

    /// How the command can be cut on the host, tried by stopping it again and again.
    fn stopped_on_host(&mut self, look: &Observed) -> Result<Result<InSlices, String>, Trouble> {
        let ask = self.ask;
        if ask.own.is_some() && ask.driver != HOST {
            // Which of a container's settings take processor time away is the question.
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
        let (report, _) = self.reported("host", &paused)?;
        Ok(stoppable::confirmed(&report, &look.report).map(|()| slices))
    }

    fn inside(&mut self, call: &CommandCall) -> Result<Observed, Trouble> {
        let ask = self.ask;
        let call = ask.change().changed(call.clone());
        let (report, counters) = self.reported(&ask.driver, &call)?;
        if !report.exit.is_success() {
            return Err(Trouble::FailsInside {
                env: ask.driver.clone(),
                how: how(report.exit),
                said: said(&report),
                hint: meaning(&report, true),
            });
        }
        check_pick(ask, "inside", &report)?;
        Ok(Observed {
            wall_ns: report.wall_ns,
            report,
            counters,
            facts: Facts::new(),
        })
    }
}

/// Whether the number that is wanted is in the output.
fn check_pick(ask: &Ask, place: &str, report: &CommandReport) -> Result<(), Trouble> {
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
    Err(Trouble::NothingPicked {
        pattern: pick.pattern.escape_debug().to_string(),
        place: place.to_owned(),
        begins: if beginning.is_empty() {
            "is empty".to_owned()
        } else {
            format!("begins `{}`", beginning.escape_debug())
        },
    })
}
