//! A question about a command in an image, as one about the line for the engine's client that means the same.
//!
//! So an image's variables are found by the search through a container's differences.

use tare_model::Params;

use super::super::home::Place;
use super::super::progress::Progress;
use super::super::session::Session;
use super::super::{Exit, Failed, output};
use super::Why;
use crate::cx::{files, stdin};
use crate::env;
use crate::env::own::WHICH;
use crate::env::own::asked::Asked;
use crate::why::carry;

impl Why {
    /// The same question about a line, where the image brings what no setting names; with the settings that are left.
    /// Trouble on the way is left to the question as it was asked.
    pub(super) fn as_line(
        &self,
        driver: Option<&str>,
        settings: &Params,
        session: &Session,
        progress: &Progress,
    ) -> Option<(Self, Params)> {
        let found = env::find(driver?)?;
        let is_about_image = settings.value("image").is_some()
            && self.subject(driver, settings).is_none()
            && stdin::is_empty();
        if !is_about_image {
            return None;
        }
        let empty = Place::state_folder().ok()?.join("empty");
        files::create_folder(&empty).ok()?;
        let carried = carry::carried(&carry::Wish {
            argv: self.command.clone(),
            variables: self.variables.clone(),
            has_own_image: true,
            shows_private: self.show_private,
            empty,
            ..carry::Wish::default()
        });
        let carried = carried.ok()?;
        let asked = Asked {
            argv: self.command.clone(),
            binds: carried.own,
            directory: carried.call.directory,
            variables: self.variables.clone(),
            is_on_host: !carried.is_missing,
        };
        let command = found.line_for(&session.context(progress), settings, &asked)?;
        output::tell(
            "the image brings variables, or a program, of its own: asked as a line of the engine's client",
        );
        let is_which = |name: &&String| WHICH.contains(&name.as_str());
        let left = settings.0.iter().filter(|(name, _)| is_which(name));
        let left = left.map(|(name, value)| (name.clone(), value.clone()));
        let asked = Self {
            command,
            variables: Vec::new(),
            ..self.clone()
        };
        Some((asked, Params(left.collect())))
    }

    /// Refuses flags that need a line or a container of the user's.
    pub(super) fn check_flags(
        &self,
        driver: Option<&str>,
        settings: &Params,
    ) -> Result<(), Failed> {
        if self.subject(driver, settings).is_some() {
            return Ok(());
        }
        let refused = |text: String, hint: &str| Err(Failed::new(Exit::Usage, text).hint(hint));
        if self.apply_check {
            return refused(
                "`--apply-check` changes a line or a container of your own, and none is asked about"
                    .to_owned(),
                "`tare why --apply-check -- docker run …`, or `--like CONTAINER`",
            );
        }
        let of_line = "`tare why -- docker run …`, or `--like CONTAINER`";
        match (self.reach.given(), self.service.given()) {
            (Some(flag), _) => refused(
                format!(
                    "`{flag}` is for a line or a container of your own, and none is asked about"
                ),
                of_line,
            ),
            (_, Some(flag)) if self.sides.given().is_some() => refused(
                format!("`{flag}` asks one server, and `--a` and `--b` are two commands that end"),
                of_line,
            ),
            _ => Ok(()),
        }
    }
}
