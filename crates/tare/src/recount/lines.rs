//! Stored runs as a list shows them.

use tare_model::StoppedBy;
use tare_model::study::A_PRIME;

use crate::report::command_line;
use crate::store::RunLine;

/// Returns one line per answer, under the name of its last run: earlier runs of the same study are merged into it.
/// Newest first.
pub(crate) fn answers(runs: Vec<RunLine>) -> Vec<RunLine> {
    let mut answers: Vec<RunLine> = Vec::new();
    for run in runs {
        let later = answers.iter_mut().find(|later| {
            later.study == run.study && later.before.as_deref() == Some(run.id.as_str())
        });
        match later {
            Some(later) => {
                later.started_unix_ns = run.started_unix_ns;
                later.n_trials += run.n_trials;
                later.wall_ns += run.wall_ns;
                later.before = run.before;
            }
            None => answers.push(run),
        }
    }
    answers
}

/// The longest text about a run in a list.
const MOST_LETTERS: usize = 60;

/// Describes a run: the command of an answer and its environment, or the study's title.
pub(crate) fn about(run: &RunLine) -> String {
    let mut arms = run.arms.iter().skip(1).filter(|arm| *arm != A_PRIME);
    let text = match (&run.command, arms.next()) {
        (Some(command), Some(arm)) => format!("`{}` in {arm}", command_line(command)),
        (Some(command), None) => format!("`{}`", command_line(command)),
        (None, _) => run.title.clone(),
    };
    shortened(text, MOST_LETTERS)
}

/// The text, of at most so many letters.
pub(crate) fn shortened(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// How a run ended, in words.
pub(crate) fn ended(run: &RunLine) -> &'static str {
    run.stopped_by
        .map_or("killed, or still running", StoppedBy::name)
}

/// A point in time as text, to the second, UTC.
pub(crate) fn started(unix_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use tare_model::RunId;

    use super::*;

    pub(crate) fn line() -> RunLine {
        RunLine {
            id: RunId::new("r").unwrap(),
            study: "why".to_owned(),
            title: "the command on the host and inside".to_owned(),
            arms: ["host", A_PRIME, "docker", "off-1"]
                .map(str::to_owned)
                .to_vec(),
            command: Some(["python3", "app.py"].map(str::to_owned).to_vec()),
            workloads: vec!["user-command".to_owned()],
            before: None,
            started_unix_ns: 0,
            n_trials: 1,
            stopped_by: None,
            wall_ns: 0,
        }
    }

    #[test]
    fn an_answer_is_one_line_however_many_runs_it_took() {
        let of = |id: &str, study: &str, before: Option<&str>, at| RunLine {
            id: RunId::new(id).unwrap(),
            study: study.to_owned(),
            before: before.map(str::to_owned),
            started_unix_ns: at,
            ..line()
        };
        let runs = vec![
            of("proof", "proof", Some("other"), 5),
            of("c", "why", Some("b"), 4),
            of("other", "quick", None, 3),
            of("b", "why", Some("a"), 2),
            of("gone", "why", Some("no-such"), 1),
            of("a", "why", Some("c"), 0),
        ];
        let shown: Vec<_> = answers(runs)
            .into_iter()
            .map(|run| (run.id.to_string(), run.n_trials, run.started_unix_ns))
            .collect();
        let expected = [
            ("proof", 1, 5),
            ("c", 3, 0),
            ("other", 1, 3),
            ("gone", 1, 1),
        ];
        let expected = expected.map(|(id, trials, at)| (id.to_owned(), trials, at));
        assert_eq!(shown, expected);
    }

    #[test]
    fn run_summary_is_one_short_line() {
        let mut line = line();
        assert_eq!(about(&line), "`python3 app.py` in docker");
        line.command = Some(vec!["x".repeat(500)]);
        assert_eq!(about(&line).chars().count(), MOST_LETTERS);
        line.command = None;
        assert_eq!(about(&line), line.title);
    }
}
