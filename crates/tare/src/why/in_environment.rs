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
        let (written, interrupted) = Session::within(place, |session, progress| {
            let begun_ns = session.now_ns();
            // Without a named engine: the one that has a container of this name.
            if let (Some(container), None) = (&self.like, &self.driver) {
                let found = user::engine_of(&session.context(progress), container)?;
                self.driver = found.map(str::to_owned);
            }
            let this = self.as_line(session, progress).unwrap_or(self);
            // Taking it creates containers that no arm removes.
            if let Some(subject) = this.subject() {
                session.starts_extra(subject.driver);
            }
            if this.is_dry {
                let lines = this.planned(session, progress)?;
                progress.finish();
                return Ok(((dry_run::print(&lines), None), Vec::new()));
            }
            let mut store = place.store()?;
            let mut runner = Runner::new(session, &mut store, progress, begun_ns);
            let measured = this.measured(&mut runner, progress)?;
            progress.finish();
            let written = write(&measured.dossier);
            let is_interrupted = measured.ending == Ending::Interrupted;
            let run = is_interrupted.then_some(measured.dossier.run);
            Ok(((written, run), measured.left_behind))
        })?;
        written?;
        if let Some(run) = interrupted {
            output::tell(&format!(
                "interrupted; what was measured is stored, and `tare resume {run}` goes on"
            ));
            return Ok(Exit::Interrupted);
        }
        Ok(Exit::Done)
    }

    fn measured(&self, runner: &mut Runner<'_>, progress: &Progress) -> Result<Measured, Failed> {
        let (mut ask, mut first) = self.ask(runner.session(), progress)?;
        if !self.rates.is_empty() {
            let sides = calibrate::look_at_rates(&runner.context(), &ask, &self.rates)?;
            for line in served::settle_rate(&mut ask, &sides) {
                output::tell(&line);
                ask.carried.push(line);
            }
        }
        let doubts = first.remarks.iter();
        let doubts = doubts.filter(|line| line.starts_with(COMPLAINT));
        ask.carried.extend(doubts.cloned());
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
            ladder: self.ladder,
            apply: self.apply_check,
        };
        let measured = answer(&ask, &first, runner, options)?;
        match self.subject() {
            Some(subject) if self.apply_check => {
                user::apply(subject, &ask, &first, runner, measured)
            }
            _ => Ok(measured),
        }
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
