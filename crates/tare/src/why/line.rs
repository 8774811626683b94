//! Translates a question about a command in an image to one about the equivalent `docker run` line, so that the
//! search through a container's differences also covers the image's variables.

use tare_model::Params;

use super::question::Question;
use crate::cx::stdin;
use crate::env;
use crate::env::user_container::WHICH;
use crate::env::user_container::image_command::ImageCommand;
use crate::output;
use crate::session::Session;
use crate::session::home;
use crate::session::progress::Progress;
use crate::why::carry;

impl Question {
    /// The same question about a line, with the remaining settings, if the image brings something that no setting
    /// names. On failure the original question is kept.
    pub(crate) fn as_line(&self, session: &Session, progress: &Progress) -> Option<Self> {
        let settings = &self.settings;
        let found = env::find(self.driver.as_deref()?)?;
        let is_about_image =
            settings.value("image").is_some() && self.subject().is_none() && stdin::is_empty();
        if !is_about_image {
            return None;
        }
        let carried = carry::carried(&carry::CarryRequest {
            argv: self.command.clone(),
            variables: self.variables.clone(),
            has_own_image: true,
            shows_private: self.show_private,
            empty: home::empty_folder().ok()?,
            ..carry::CarryRequest::default()
        });
        let carried = carried.ok()?;
        let asked = ImageCommand {
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
        let mut line = self.clone();
        line.command = command;
        line.variables = Vec::new();
        line.settings = Params(left.collect());
        Some(line)
    }
}
