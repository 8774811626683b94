//! `tare why -- CMD ARG…`: which mechanism makes a command cost more in an environment.

use std::path::PathBuf;

use clap::Args;
use tare_model::command::Pick;
use tare_model::{Params, WhyOutcome};

use super::home::Place;
use super::progress::Progress;
use super::rounds::{Ending, Measured, Runner};
use super::run::RUNNING;
use super::service::ServiceFlags;
use super::session::{self, Session};
use super::{Exit, Failed, dry_run, output, own};
use crate::config::{given, units};
use crate::cx::files;
use crate::cx::stdin::{self, Input};
use crate::env;
use crate::env::own::{self as own_env, Shares, Source};
use crate::report;
use crate::service::user::UserClient;
use crate::store::Store;
use crate::why::pace::Pace;
use crate::why::studies;
use crate::why::{self, Ask, First, again, carry, conclude, cut_off};

mod line;
mod metric;
mod sides;
mod words;

use words::{tell_first, tell_round, too_long, usual};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Clone, Args)]
pub(crate) struct Why {
    /// The environment, with settings if wanted: `docker`, `container:cpus=0.5,memory=64m`.
    /// Default: docker, else podman, else the built-in container.
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    /// Set a setting of the environment (all: `tare list environments`).
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Compare wall time, CPU time, or a number in the output that a regular expression finds.
    #[arg(long, default_value = "wall", value_name = "wall|cpu|REGEX")]
    metric: String,
    /// Treat a larger number as better (with a regular expression).
    #[arg(long)]
    more_is_better: bool,
    /// Limit the total time.
    #[arg(long, value_parser = units::some_duration_ns, default_value = "2m", value_name = "TIME")]
    budget: u64,
    /// Pass a variable to the command on both sides.
    #[arg(long = "variable", value_name = "NAME[=TEXT]")]
    variables: Vec<String>,
    /// Expose the working directory inside even if it holds a home or Tare's files.
    #[arg(long)]
    show_private: bool,
    /// Climb the ladder even if the command is not slower.
    #[arg(long)]
    ladder: bool,
    /// A container of yours, running or stopped, by name or id: what makes the command slower in one like it. Without
    /// a command its own is taken. A `docker run …` line as the command is taken as such a container too.
    #[arg(long, value_name = "CONTAINER", conflicts_with_all = ["inside", "compose"])]
    like: Option<String>,
    /// A running container of yours: the command is run in that itself, beside its own processes and under its limits as
    /// they are. Nothing is left in it.
    #[arg(
        long,
        value_name = "CONTAINER",
        conflicts_with = "compose",
        requires = "command"
    )]
    inside: Option<String>,
    /// A service of a compose file, by its name there: what makes its command, or the one given, slower in a container
    /// like it. What it depends on is started with `--with-dependencies` only.
    #[arg(long, num_args = 2, value_names = ["FILE", "SERVICE"])]
    compose: Option<Vec<String>>,
    /// Start what the service depends on for the time of the question, on a network of its own, with empty volumes where
    /// it could write to yours; all of it is removed in the end.
    #[arg(long, requires = "compose")]
    with_dependencies: bool,
    #[command(flatten)]
    sides: sides::SideFlags,
    /// Apply the fix to your command line at the end and check that the slowdown is gone.
    #[arg(long)]
    apply_check: bool,
    /// Allow writes to the volumes and folders of your container (default: read-only).
    #[arg(long)]
    share_writable: bool,
    #[command(flatten)]
    reach: own::ReachFlags,
    #[command(flatten)]
    service: ServiceFlags,
    /// Print what would be run, how often at most, what it reaches and what it would leave, and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Store what the command prints (default: its length and SHA-256, unless it fails or `--metric` reads it).
    #[arg(long)]
    keep_output: bool,
    /// Seed for the trial order (default: random; recorded with the run).
    #[arg(long)]
    seed: Option<u64>,
    /// Write the dossier to FILE; `-` prints only it on stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Command to run, or a `docker run …` line.
    #[arg(last = true, required_unless_present_any = ["like", "compose", "a"], value_name = "CMD")]
    command: Vec<String>,
}

/// The metric, the number that is picked, and what asks a server.
type Asked<'a> = (&'static str, Option<Pick>, Option<&'a UserClient>);

impl Why {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        output::check_files(self.html.as_deref(), self.json.as_deref())?;
        let (driver, settings) = self.environment()?;
        let named = driver.clone();
        self.check_flags(named.as_deref(), &settings)?;
        let client = self.service.client()?;
        let (metric, pick) = metric::of(self)?;
        let mut session = Session::begin(place, None)?;
        let begun_ns = session.now_ns();
        let progress = Progress::new();
        let (driver, named) = match (self.like.as_ref(), driver) {
            // Who names no engine means the one that has a container of this name.
            (Some(container), None) => {
                match own::engine_of(&session.context(&progress), container) {
                    Ok(found) => (found.map(str::to_owned), found.map(str::to_owned)),
                    Err(failed) => {
                        session.end()?;
                        return Err(failed);
                    }
                }
            }
            (_, driver) => (driver, named),
        };
        let line = self.as_line(named.as_deref(), &settings, &session, &progress);
        let (this, settings) = match line.as_ref() {
            Some((this, settings)) => (this, settings),
            None => (self, &settings),
        };
        // To take it, containers are made that no arm removes.
        if let Some(subject) = this.subject(named.as_deref(), settings) {
            session.starts_beside(subject.driver);
        }
        if this.dry_run {
            let asked = (metric, pick, client.as_ref());
            let lines = this.planned(driver, settings, asked, &session, &progress);
            progress.finish();
            return dry_run::printed(session, lines);
        }
        let mut store = match Store::open(&place.store_file()?) {
            Ok(store) => store,
            Err(error) => {
                session.end()?;
                return Err(error.into());
            }
        };
        let result = this
            .ask(
                driver,
                settings,
                (metric, pick, client.as_ref()),
                (&session, &progress),
            )
            .and_then(|(mut ask, mut first)| {
                let mut runner = Runner::new(place, &mut session, &mut store, &progress, begun_ns);
                if let Some(cut_ns) = cut_off::decided(&ask, &first, runner.left_ns(&ask)) {
                    first.cut_ns = Some(cut_ns);
                    let line = cut_off::remark(&ask, &first, cut_ns);
                    output::tell(&line);
                    ask.carried.push(line);
                }
                let measured = answer(&ask, &first, &mut runner, this)?;
                match this.subject(named.as_deref(), settings) {
                    Some(subject) if this.apply_check => {
                        own::apply(subject, &ask, &first, &mut runner, measured)
                    }
                    _ => Ok(measured),
                }
            });
        progress.finish();
        this.end(session, result)
    }

    /// Removes what stands beside the arms, tells the answer, and gives the folders of its runs back.
    fn end(&self, session: Session, result: Result<Measured, Failed>) -> Result<Exit, Failed> {
        let beside = session.end_beside();
        match result {
            Ok(mut measured) => {
                measured.left_behind.extend(beside);
                let outcome = self.write(&measured);
                output::left_behind(&measured.left_behind);
                if measured.left_behind.is_empty() {
                    session.end()?;
                }
                outcome?;
                if measured.ending == Ending::Interrupted {
                    output::tell(&format!(
                        "interrupted; what was measured is stored, and `tare run --resume {}` goes on",
                        measured.dossier.run
                    ));
                    return Ok(Exit::Interrupted);
                }
                Ok(Exit::Done)
            }
            Err(failed) => {
                // What could not be removed is looked for by `tare clean` where the folder is.
                if !failed.may_have_left && beside.is_empty() {
                    session.end()?;
                }
                output::left_behind(&beside);
                Err(failed)
            }
        }
    }

    /// The environment's name, if one is given, and its settings.
    fn environment(&self) -> Result<(Option<String>, Params), Failed> {
        let wrong = |problem: &str| Failed::new(Exit::Usage, output::printable(problem));
        let mut given = match &self.env {
            Some(text) => {
                given::environments(text).map_err(|problem| wrong(&problem).hint(RUNNING))?
            }
            None => Vec::new(),
        };
        if given.len() > 1 {
            return Err(wrong("`tare why` asks about one environment")
                .hint("`tare run --env A,B` measures several"));
        }
        let (name, mut settings) = match given.pop() {
            Some(given) => (Some(given.name), given.settings),
            None => (None, Params::new()),
        };
        if let Some(name) = &name {
            let known: Vec<&str> = env::DRIVERS.iter().map(|driver| driver.id()).collect();
            if !known.contains(&name.as_str()) {
                let failed = Failed::new(
                    Exit::Usage,
                    format!("there is no environment `{}`", output::printable(name)),
                );
                return Err(match crate::suggest::nearest(name, known.iter().copied()) {
                    Some(near) => failed.hint(format!("did you mean `{near}`?")),
                    None => failed.hint(format!("known are: {}; {RUNNING}", known.join(", "))),
                });
            }
            if name == "host" {
                return Err(Failed::new(
                    Exit::Usage,
                    "the host is what environments are compared with",
                )
                .hint("`tare run` compares the host with itself too, as A′"));
            }
        }
        for text in &self.settings {
            let (arm, setting, value) =
                given::setting_of(text).map_err(|problem| wrong(&problem))?;
            if let (Some(arm), Some(name)) = (arm, &name)
                && arm != name
            {
                return Err(wrong(&format!("`{text}`: there is no arm `{arm}`"))
                    .hint(format!("`{name}` is asked about")));
            }
            settings = settings.with(setting, value);
        }
        Ok((name, settings))
    }

    /// What of the user's own is asked about, if anything; `driver` is the environment that was named.
    fn subject<'a>(
        &'a self,
        driver: Option<&'a str>,
        settings: &'a Params,
    ) -> Option<own::Subject<'a>> {
        let named = match (&self.like, &self.inside, self.compose.as_deref()) {
            (Some(name), ..) => Some(Source::Container(name)),
            (_, Some(name), _) => Some(Source::Inside(name)),
            (.., Some([file, service])) => Some(Source::Service { file, service }),
            _ => None,
        };
        let knows = env::DRIVERS.iter().find(|it| it.knows_line(&self.command));
        let (driver, source) = match (named, knows, driver) {
            (Some(source), _, driver) => (driver.unwrap_or_else(|| env::usual()[0].id()), source),
            // A line for a client is a command like any other where another environment is named for it.
            (None, Some(own), Some(name)) if name != own.id() => return None,
            (None, own, _) => (own?.id(), Source::Line(&self.command)),
        };
        Some(own::Subject {
            driver,
            source,
            shares: if self.share_writable {
                Shares::Shared
            } else {
                Shares::ReadOnly
            },
            with_dependencies: self.with_dependencies,
            context: own_env::WHICH.iter().find_map(|name| settings.text(name)),
            consent: self.reach.consent(),
        })
    }

    /// What would be done, a line each.
    fn planned(
        &self,
        driver: Option<String>,
        settings: &Params,
        asked: Asked<'_>,
        session: &Session,
        progress: &Progress,
    ) -> Result<Vec<String>, Failed> {
        if let Some(subject) = self.subject(driver.as_deref(), settings) {
            return self
                .question(subject, settings, asked)
                .plan(session, progress);
        }
        let driver = match driver {
            Some(driver) => driver,
            None => usual(&session.context(progress))?,
        };
        Ok(dry_run::of_command(&self.command, &driver, self.budget))
    }

    fn question<'a>(
        &'a self,
        subject: own::Subject<'a>,
        settings: &'a Params,
        (metric, pick, client): Asked<'a>,
    ) -> own::Question<'a> {
        own::Question {
            subject,
            command: &self.command,
            settings,
            metric,
            pick,
            client,
            budget_ns: self.budget,
            seed: self.seed.unwrap_or_else(crate::cx::drawn_seed),
        }
    }

    /// What is asked: about a container of the user's own, or about an environment. Carries the command and looks at it
    /// on both sides.
    fn ask(
        &self,
        driver: Option<String>,
        settings: &Params,
        asked: Asked<'_>,
        (session, progress): (&Session, &Progress),
    ) -> Result<(Ask, First), Failed> {
        if let Some(subject) = self.subject(driver.as_deref(), settings) {
            return self
                .question(subject, settings, asked)
                .ask(session, progress);
        }
        let (metric, pick, client) = asked;
        let cx = session.context(progress);
        if let Some(pair) = self.sides.given() {
            return self.ask_sides(pair, (metric, pick), &cx);
        }
        let driver = match driver {
            Some(driver) => driver,
            None => usual(&cx)?,
        };
        let empty = Place::state_folder()?.join("empty");
        files::create_folder(&empty)?;
        let mut wish = carry::Wish {
            argv: self.command.clone(),
            variables: self.variables.clone(),
            stdin_file: None,
            has_own_image: settings.value("image").is_some(),
            shows_private: self.show_private,
            empty,
            ..carry::Wish::default()
        };
        match stdin::read()? {
            Input::None => {}
            Input::Silent => output::tell(
                "standard input is a pipe in which nothing came; the command gets an empty one",
            ),
            Input::TooMuch => {
                return Err(
                    Failed::new(Exit::Usage, "standard input holds more than 1 GiB").hint(
                        "put it into a file and name that: `tare why -- sh -c 'COMMAND <FILE'`",
                    ),
                );
            }
            Input::Bytes(bytes) => {
                let file = cx.scratch.join("stdin");
                files::write_working(&file, &bytes)?;
                // Inside somebody else may be the one who reads it; the folder stays closed.
                if ["user", "as", "image"]
                    .iter()
                    .any(|name| settings.value(name).is_some())
                {
                    files::let_read(&file)?;
                }
                wish.stdin_file = Some(file);
            }
        }
        let carried = carry::carried(&wish)?;
        if carried.is_missing {
            return Err(carry::not_here(&self.command[0]).into());
        }
        let found = env::find(&driver).expect("the name was looked up, or found, before");
        let settings = carry::with_binds(found, settings, &carried);
        // Where nothing can be shown, the program is packed or looked up; over the host's files it asks for these.
        let shows = found.settings().iter().any(|spec| spec.name == "binds");
        let is_over_hosts = found.declared().files == env::Files::Hosts;
        let program = (!shows || is_over_hosts).then(|| carried.call.argv[0].clone());
        found
            .configure(
                tare_model::ArmId::new("check").expect("the constant is a name"),
                &settings,
            )
            .map_err(|error| {
                let failed = Failed::new(Exit::Usage, format!("`{driver}`: {error}"));
                match error.hint {
                    _ if error.setting == "container" => failed.hint(RUNNING),
                    Some(hint) => failed.hint(hint),
                    None => failed,
                }
            })?;
        session::tell_old_words(&driver, &settings);
        let mut notes = carry::described(found, &carried);
        let mut call = carried.call;
        if let Some(client) = client {
            let (client, note) = own::server::in_environment(client, pick.as_ref(), &settings)?;
            output::tell(&note);
            notes.push(note);
            notes.extend(own::server::own_cost(&cx, &client));
            call.client = Some(client.to_text());
        }
        call.pick = pick;
        call.keep_output = self.keep_output;
        let ask = Ask {
            command: self.command.clone(),
            driver,
            settings,
            program,
            metric: metric.to_owned(),
            budget_ns: self.budget,
            seed: self.seed.unwrap_or_else(crate::cx::drawn_seed),
            call,
            carried: notes,
            instead: carried.instead,
            own: None,
        };
        for line in ask.carried.iter().filter(|line| line.starts_with("NOT ")) {
            output::tell(line);
        }
        let first = why::calibrate::look(&cx, &ask, &ask.settings, None)?;
        tell_first(&ask, &first);
        Ok((ask, first))
    }

    fn write(&self, measured: &Measured) -> Result<(), Failed> {
        let dossier = &measured.dossier;
        if output::write_files(dossier, self.html.as_deref(), self.json.as_deref())? {
            return Ok(());
        }
        let text = report::terminal::short_answer(dossier, output::style());
        Ok(output::text(&text)?)
    }
}

/// From this ratio on the cause of what is not decided is searched for.
const WORTH_A_SEARCH: f64 = 1.1;
/// Blocks of the first study that gives more to what is not decided.
const AGAIN_FIRST: u32 = 24;

/// Compares, suspects and proves, as far as the budget goes.
fn answer(
    ask: &Ask,
    first: &First,
    runner: &mut Runner<'_>,
    asked: &Why,
) -> Result<Measured, Failed> {
    let Some(study) = studies::first_study(ask, first, runner.left_ns(ask)) else {
        return Err(too_long(ask, first));
    };
    runner.tell_early(ask, first);
    let mut measured = runner.measure(&study)?;
    runner.tell_first(&measured);
    measured = closer(ask, first, runner, measured, true);
    if measured.is_over() {
        return Ok(measured);
    }
    if !(asked.ladder || differs(&measured) || may_differ(ask, &measured)) {
        return Ok(closer(ask, first, runner, measured, false));
    }
    let measured = if ask.own.is_some() {
        let measured = own::hunt(ask, first, runner, measured, asked.apply_check)?;
        own::hint_kept(ask, &measured);
        measured
    } else {
        rounds(ask, first, runner, measured)
    };
    // What seemed a difference may be open after more blocks: then the rest of the time is for both sides.
    Ok(if differs(&measured) && asked.apply_check {
        measured
    } else if differs(&measured) {
        decided(ask, first, runner, measured)
    } else {
        closer(ask, first, runner, measured, false)
    })
}

/// Tries suspects and steps, as far as the time goes.
fn rounds(ask: &Ask, first: &First, runner: &mut Runner<'_>, mut measured: Measured) -> Measured {
    let mut trials = conclude::suspects(&measured.data, &measured.dossier);
    loop {
        let data = &measured.data;
        let before = studies::Before {
            pace: Pace::of(data, &ask.driver, first),
            n_arms: data.head.arms.len(),
            // Several steps of a server would have the machine's own network, and the same port.
            has_ladder: measured.dossier.ladder.is_some() || ask.call.client.is_some(),
        };
        let left_ns = runner.left_ns(ask);
        let Some(round) = studies::round(ask, first, before, &trials, left_ns) else {
            return measured;
        };
        tell_round(&round, left_ns);
        measured = runner.more(&round.study, measured);
        if measured.is_over() || !round.is_open() {
            return measured;
        }
        trials = round.waiting;
    }
}

/// Until both sides were compared closely enough, or the time is over: more blocks of both, first in a part of the time,
/// so that some is left to say why. With `then_why` a difference that is still there after a closer look is enough, and
/// the time for a search is left: it has both sides in its blocks again.
fn closer(
    ask: &Ask,
    first: &First,
    runner: &mut Runner<'_>,
    mut measured: Measured,
    then_why: bool,
) -> Measured {
    // The first comparison of a user's container is a short one.
    let first_part = if ask.own.is_some() { 4 } else { 2 };
    let mut part = first_part;
    while !measured.is_over() && !why::is_settled(&measured.dossier) {
        if then_why && part < first_part && differs(&measured) {
            break;
        }
        let pace = Pace::of(&measured.data, &ask.driver, first);
        let left_ns = runner.left_ns(ask);
        let searched = ask.own.as_ref().filter(|_| then_why);
        let search_ns = searched.map_or(0, |asks| crate::why::own::search_ns(asks, pace));
        let time_ns = (left_ns / part).min(left_ns.saturating_sub(search_ns));
        let n_blocks = measured.n_blocks();
        if let Some(study) = studies::closer_study(ask, first, pace, (time_ns, n_blocks)) {
            output::tell("looking more closely at both sides");
            measured = runner.more(&study, measured);
        } else if part == 1 {
            break;
        }
        part = (part / 2).max(1);
    }
    measured
}

/// What was tried and not decided gets further blocks, as long as six of them fit: each time twice as many.
fn decided(ask: &Ask, first: &First, runner: &mut Runner<'_>, mut measured: Measured) -> Measured {
    let mut blocks = AGAIN_FIRST;
    while !measured.is_over() && differs(&measured) {
        let pace = Pace::of(&measured.data, &ask.driver, first);
        let open = again::undecided(&measured.data, &measured.dossier);
        let left_ns = runner.left_ns(ask);
        let Some(study) = again::study(ask, first, pace, open, (left_ns, blocks)) else {
            break;
        };
        output::tell("more blocks for what was tried and is not decided");
        measured = runner.more(&study, measured);
        blocks *= 2;
    }
    measured
}

/// Whether the sides of a user's container look different but for their intervals.
fn may_differ(ask: &Ask, measured: &Measured) -> bool {
    let mut cells = measured.dossier.cells.iter();
    let cell = cells.find(|cell| cell.arm == ask.driver && cell.metric == ask.metric);
    let ratio = cell.and_then(|cell| cell.ratio);
    ask.own.is_some() && ratio.is_some_and(|ratio| ratio.point.ln().abs() >= WORTH_A_SEARCH.ln())
}

/// Whether there is a difference to explain: the command is slower or faster, or starting the environment takes long.
fn differs(measured: &Measured) -> bool {
    let why = measured.dossier.why.as_ref();
    why.is_some_and(|why| {
        let explained = [WhyOutcome::Cost, WhyOutcome::Gain, WhyOutcome::StartUp];
        explained.contains(&why.outcome)
    })
}
