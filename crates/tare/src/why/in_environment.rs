//! Answers a question from the first run of the command to the conclusion: what makes it slower in an environment?

use tare_model::dossier::Dossier;

use super::engine::{Engine, EngineOptions, SoFar};
use super::observed::COMPLAINT;
use super::question::Question;
use super::rounds::{Ending, Measured, Runner};
use super::words::{tell_first, tell_next, too_long, usual};
use super::{Ask, First, calibrate, carry, cut_off, served, user};
use crate::cx::files;
use crate::cx::stdin::{self, Input};
use crate::env;
use crate::failed::{Exit, Failed};
use crate::output;
use crate::session::home::{self, GivenPaths};
use crate::session::progress::Progress;
use crate::session::{self, Session, dry_run};

/// Hint on how to ask about a running container.
pub(crate) const RUNNING: &str =
    "a container that is running is asked about with `--env oci:spec=docker:CONTAINER`";

impl Question {
    /// Answers the question, or prints what would be done. `write` writes the dossier.
    pub(crate) fn answered(
        mut self,
        place: &GivenPaths,
        write: impl FnOnce(&Dossier) -> Result<(), Failed>,
    ) -> Result<Exit, Failed> {
        let mut session = Session::begin(place, None)?;
        let begun_ns = session.now_ns();
        let progress = Progress::new();
        // Without a named engine: the one that has a container of this name.
        if let (Some(container), None) = (&self.like, &self.driver) {
            match user::engine_of(&session.context(&progress), container) {
                Ok(found) => self.driver = found.map(str::to_owned),
                Err(failed) => return Err(session.end_after(failed)),
            }
        }
        let this = match self.as_line(&session, &progress) {
            Some(line) => line,
            None => self,
        };
        let subject = this.subject();
        // Taking it creates containers that no arm removes.
        if let Some(subject) = subject {
            session.starts_extra(subject.driver);
        }
        if this.is_dry {
            let lines = this.planned(&session, &progress);
            progress.finish();
            return dry_run::printed(session, lines);
        }
        let mut store = match place.store() {
            Ok(store) => store,
            Err(failed) => return Err(session.end_after(failed)),
        };
        let result = this
            .ask(&session, &progress)
            .and_then(|(mut ask, mut first)| {
                if !this.rates.is_empty() {
                    let cx = session.context(&progress);
                    let sides = calibrate::look_at_rates(&cx, &ask, &this.rates)?;
                    for line in served::settle_rate(&mut ask, &sides) {
                        output::tell(&line);
                        ask.carried.push(line);
                    }
                }
                let doubts = first.remarks.iter();
                let doubts = doubts.filter(|line| line.starts_with(COMPLAINT));
                ask.carried.extend(doubts.cloned());
                let mut runner = Runner::new(&mut session, &mut store, &progress, begun_ns);
                runner.tell_early(&ask, &first);
                let left_ns = runner.left_ns(&ask);
                let about_a_run = user::about_a_run(&runner.context(), &ask, &first, left_ns)?;
                ask.carried.extend(about_a_run);
                if let Some(cut_ns) = cut_off::decided(&ask, &first, runner.left_ns(&ask)) {
                    first.cut_ns = Some(cut_ns);
                    let line = cut_off::remark(&ask, &first, cut_ns);
                    output::tell(&line);
                    ask.carried.push(line);
                }
                let options = EngineOptions {
                    ladder: this.ladder,
                    apply: this.apply_check,
                };
                let measured = answer(&ask, &first, &mut runner, options)?;
                match subject {
                    Some(subject) if this.apply_check => {
                        user::apply(subject, &ask, &first, &mut runner, measured)
                    }
                    _ => Ok(measured),
                }
            });
        progress.finish();
        end(session, result, write)
    }

    /// What would be done, one line each.
    fn planned(&self, session: &Session, progress: &Progress) -> Result<Vec<String>, Failed> {
        if let Some(subject) = self.subject() {
            return subject.plan(session, progress);
        }
        let driver = self.driver_or_usual(&session.context(progress))?;
        Ok(dry_run::of_command(&self.command, &driver, self.budget_ns))
    }

    fn driver_or_usual(&self, cx: &crate::cx::Context<'_>) -> Result<String, Failed> {
        match &self.driver {
            Some(driver) => Ok(driver.clone()),
            None => usual(cx),
        }
    }

    /// Prepares the question, about the user's container or an environment: carries the command into it and runs it
    /// on both sides.
    fn ask(&self, session: &Session, progress: &Progress) -> Result<(Ask, First), Failed> {
        if let Some(subject) = self.subject() {
            return subject.ask(session, progress);
        }
        let cx = session.context(progress);
        if let Some(pair) = self.sides() {
            return self.ask_sides(pair, &cx);
        }
        let driver = self.driver_or_usual(&cx)?;
        let settings = &self.settings;
        let mut wish = carry::CarryRequest {
            argv: self.command.clone(),
            variables: self.variables.clone(),
            stdin_file: None,
            has_own_image: settings.value("image").is_some(),
            shows_private: self.show_private,
            empty: home::empty_folder()?,
            ..carry::CarryRequest::default()
        };
        match stdin::read()? {
            Input::None => {}
            Input::Silent => output::tell(
                "standard input is a pipe in which nothing came; the command gets an empty one",
            ),
            Input::TooMuch => {
                return Err(Failed::usage("standard input holds more than 1 GiB").hint(
                    "put it into a file and name that: `tare why -- sh -c 'COMMAND <FILE'`",
                ));
            }
            Input::Bytes(bytes) => {
                let file = cx.scratch.join("stdin");
                files::write_working(&file, &bytes)?;
                // Another user may read it inside; its folder stays closed.
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
        // Without bind mounts the program is packed or looked up; an environment over the host's files asks for
        // these.
        let is_over_hosts = found.declared().files == env::Files::Hosts;
        let program =
            (!carry::shows_folders(found) || is_over_hosts).then(|| carried.call.argv[0].clone());
        found
            .configure(
                tare_model::ArmId::new("check").expect("the constant is a name"),
                &settings,
            )
            .map_err(|error| {
                let failed = Failed::usage(format!("`{driver}`: {error}"));
                match error.hint {
                    _ if error.setting == "container" => failed.hint(RUNNING),
                    Some(hint) => failed.hint(hint),
                    None => failed,
                }
            })?;
        session::tell_old_words(&driver, &settings);
        let mut notes = carry::described(found, &carried);
        let mut call = carried.call;
        if let Some(client) = &self.client {
            let (client, note) =
                user::server::in_environment(client, self.pick.as_ref(), &settings)?;
            output::tell(&note);
            notes.push(note);
            notes.extend(user::server::own_cost(&cx, &client));
            call.client = Some(client.to_text());
        }
        call.keep_output = self.keep_output;
        let ask = Ask {
            program,
            carried: notes,
            instead: carried.instead,
            ..self.asks(&driver, settings, call)
        };
        for line in ask.carried.iter().filter(|line| line.starts_with("NOT ")) {
            output::tell(line);
        }
        let first = calibrate::look(&cx, &ask, &ask.settings, None)?;
        tell_first(&ask, &first);
        Ok((ask, first))
    }
}

/// Removes everything started in addition to the arms, writes the answer, and removes the folders of its runs.
fn end(
    session: Session,
    result: Result<Measured, Failed>,
    write: impl FnOnce(&Dossier) -> Result<(), Failed>,
) -> Result<Exit, Failed> {
    let beside = session.remove_extra();
    let mut measured = match result {
        Ok(measured) => measured,
        // `tare clean` needs the folder to find what could not be removed.
        Err(failed) if beside.is_empty() => return Err(session.end_after(failed)),
        Err(failed) => {
            output::left_behind(&beside);
            return Err(failed);
        }
    };
    measured.left_behind.extend(beside);
    let outcome = write(&measured.dossier);
    session.end_unless(&measured.left_behind)?;
    outcome?;
    if measured.ending == Ending::Interrupted {
        output::tell(&format!(
            "interrupted; what was measured is stored, and `tare resume {}` goes on",
            measured.dossier.run
        ));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

/// Measures study after study, as far as the budget goes.
fn answer(
    ask: &Ask,
    first: &First,
    runner: &mut Runner<'_>,
    options: EngineOptions,
) -> Result<Measured, Failed> {
    let mut engine = Engine::new(ask, first, options);
    let Some(study) = engine.first(runner.left_ns(ask)) else {
        return Err(too_long(ask, first));
    };
    let mut measured = runner.measure(&study)?;
    runner.tell_first(ask, &measured);
    while !measured.is_over() {
        let so_far = SoFar {
            data: &measured.data,
            dossier: &measured.dossier,
            left_ns: runner.left_ns(ask),
        };
        let Some(next) = engine.next(so_far) else {
            break;
        };
        tell_next(&next, so_far.left_ns);
        measured = runner.more(&next.study, measured);
    }
    if engine.has_searched() {
        user::hint_kept(ask, &measured);
    }
    Ok(measured)
}
