//! The progress bar: time left and preliminary answer, drawn only between trials and only on a terminal.
//!
//! There is no ticking thread, because a redraw during a trial would be measured with it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use tare_model::study::A_PRIME;

use crate::analyze::SoFar;
use crate::cx::{Event, Observer};
use crate::output;
use crate::report::called;

/// Shows the events of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Progress {
    /// A bar on stderr; only remarks if stderr is not a terminal.
    pub(crate) fn new() -> Self {
        use std::io::IsTerminal;
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // Before the first trial is done there is nothing to count.
        let progress = Self { bar, is_terminal };
        progress.draw_as("{msg}");
        progress
    }

    fn draw_as(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(if output::has_unicode() {
                style
            } else {
                style.progress_chars("##-")
            });
        }
    }

    fn say(&self, text: &str) {
        self.bar.set_message(output::readable(text).into_owned());
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn remark(&self, text: &str) {
        if self.is_terminal {
            self.bar.suspend(|| output::tell(text));
        } else {
            output::tell(text);
        }
    }
}

impl Observer for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::Starting { arm, what } => {
                self.say(&format!("{what} {}", called(arm)));
            }
            Event::Absent { arm, reason, fix } => {
                self.remark(&format!("{arm}: not available here: {reason}"));
                if let Some(fix) = fix {
                    self.remark(&format!("  hint: {fix}"));
                }
            }
            Event::TrialDone {
                done,
                left,
                left_ns,
                workload,
                arm,
                ..
            } => {
                if self.bar.length().is_none() {
                    self.draw_as("{bar:24} {pos}/{len} trials  {wide_msg}");
                }
                self.bar.update(|state| {
                    state.set_len(u64::from(done + left));
                    state.set_pos(u64::from(*done));
                });
                self.say(&format!(
                    "about {} left; {workload} in {} done",
                    output::lasting(*left_ns),
                    called(arm)
                ));
            }
            Event::SoFar(text) => {
                self.draw_as("{bar:24} {pos}/{len} trials  {wide_msg}\n{prefix}");
                let text = output::printable(text);
                self.bar.set_prefix(output::readable(&text).into_owned());
            }
            Event::Remark(text) => self.remark(text),
            Event::Removing => self.say("removing what was started"),
        }
    }
}

/// Formats the preliminary verdicts per arm in a line: `so far, docker: 9 cost more, 12 no relevant difference, 7
/// open`.
pub(crate) fn so_far(arms: &[SoFar]) -> Option<String> {
    let shown: Vec<String> = arms
        .iter()
        .filter(|arm| arm.arm != A_PRIME)
        .map(|arm| {
            let parts = [
                (arm.more, "cost more"),
                (arm.less, "cost less"),
                (arm.nothing, "no relevant difference"),
                (arm.open, "open"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts
                .map(|(count, words)| format!("{count} {words}"))
                .collect();
            format!("{}: {}", arm.arm, parts.join(", "))
        })
        .collect();
    (!shown.is_empty()).then(|| format!("so far, {}", shown.join("; ")))
}

/// Drops remarks about differences between arms, which a follow-up study would repeat.
pub(crate) struct WithoutDifferences<'a>(pub(crate) &'a Progress);

impl Observer for WithoutDifferences<'_> {
    fn event(&self, event: &Event) {
        if !matches!(event, Event::Remark(text) if is_difference(text)) {
            self.0.event(event);
        }
    }
}

fn is_difference(remark: &str) -> bool {
    ["differs: ", "not equal: "]
        .iter()
        .any(|word| remark.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_omits_empty_counts() {
        let arm = |arm: &str, [more, less, nothing, open]: [usize; 4]| SoFar {
            arm: arm.to_owned(),
            more,
            less,
            nothing,
            open,
        };
        assert_eq!(so_far(&[]), None);
        assert_eq!(so_far(&[arm(A_PRIME, [0, 0, 9, 0])]), None);
        assert_eq!(
            so_far(&[arm("box", [0, 0, 3, 0]), arm("docker", [9, 1, 12, 6])]).unwrap(),
            "so far, box: 3 no relevant difference; docker: 9 cost more, 1 cost less, 12 no relevant difference, 6 open"
        );
    }
}
