//! Checks flags that need a `docker run …` line or a container of the user.

use super::Why;
use crate::failed::Failed;
use crate::why::question::Question;

impl Why {
    /// Refuses flags that need a line or container of the user when there is neither.
    pub(super) fn check_flags(&self, question: &Question) -> Result<(), Failed> {
        if question.subject().is_some() {
            return Ok(());
        }
        let refused = |text: String, hint: &str| Err(Failed::usage(text).hint(hint));
        if question.apply_check {
            return refused(
                "`--apply-check` changes a line or a container of your own, and none is asked about"
                    .to_owned(),
                "`tare why --apply-check -- docker run …`, or `--like CONTAINER`",
            );
        }
        let of_line = "`tare why -- docker run …`, or `--like CONTAINER`";
        match (question.reach(), self.service.given()) {
            (Some(flag), _) => refused(
                format!(
                    "`{flag}` is for a line or a container of your own, and none is asked about"
                ),
                of_line,
            ),
            (_, Some(flag)) if question.sides().is_some() => refused(
                format!("`{flag}` asks one server, and `--a` and `--b` are two commands that end"),
                of_line,
            ),
            _ => Ok(()),
        }
    }
}
