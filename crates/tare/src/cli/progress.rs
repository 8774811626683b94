//! The progress bar: drawn only between trials, only on a terminal, with the time left.
//!
//! There is no ticking thread: a redraw during a trial would be measured with it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;
use crate::cx::{Event, Observer};

/// Shows what the engine does.
pub(crate) struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Progress {
    /// A bar on standard error; plain remarks where that is no terminal.
    pub(crate) fn new() -> Self {
        use std::io::IsTerminal;
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // Until the first trial is done there is nothing to count.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, is_terminal }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn remark(&self, text: &str) {
        let text = output::printable(text);
        if self.is_terminal {
            self.bar.suspend(|| output::tell(&text));
        } else {
            output::tell(&text);
        }
    }
}

impl Observer for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::Starting { arm, what } => {
                self.bar.set_message(format!("{what} {arm}"));
            }
            Event::Absent { arm, reason } => {
                self.remark(&format!("{arm}: not available here: {reason}"));
            }
            Event::TrialDone {
                done,
                left,
                left_ns,
                workload,
                arm,
                ..
            } => {
                if self.bar.length().is_none()
                    && let Ok(style) =
                        ProgressStyle::with_template("{bar:24} {pos}/{len} trials  {wide_msg}")
                {
                    self.bar.set_style(style);
                }
                self.bar.update(|state| {
                    state.set_len(u64::from(done + left));
                    state.set_pos(u64::from(*done));
                });
                self.bar.set_message(format!(
                    "about {} left; {workload} in {arm} done",
                    seconds(*left_ns)
                ));
            }
            Event::Remark(text) => self.remark(text),
            Event::Removing => self.bar.set_message("removing what was started"),
        }
    }
}

fn seconds(nanoseconds: u64) -> String {
    let seconds = nanoseconds.div_ceil(1_000_000_000);
    if seconds < 120 {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds.div_ceil(60))
    }
}

/// Leaves out in what the arms differ: a study that follows another would say it again.
pub(super) struct WithoutDifferences<'a>(pub(super) &'a Progress);

impl Observer for WithoutDifferences<'_> {
    fn event(&self, event: &Event) {
        if !matches!(event, Event::Remark(text) if text.starts_with("differs: ")) {
            self.0.event(event);
        }
    }
}
