//! The options of `tare compare` and `tare gate`: what to compare, how to run it, how to decide, where to write.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tare_model::command::Pick;

use crate::compare::limits::Limits;
use crate::config::units;
use crate::env;
use crate::failed::Failed;
use crate::report::compared::Annotations;
use crate::workload::user_command;

/// The runners for whose logs there are lines.
fn runners() -> impl TypedValueParser<Value = Annotations> {
    let named = |name, about| PossibleValue::new(name).help(about);
    PossibleValuesParser::new([
        named("github", "GitHub's workflow commands"),
        named(
            "gitlab",
            "A plain line: GitLab shows the JUnit report instead",
        ),
        named("none", "Nothing"),
    ])
    .map(|name| match name.as_str() {
        "github" => Annotations::Github,
        "gitlab" => Annotations::Gitlab,
        _ => Annotations::None,
    })
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Commands to compare, each quoted as one word, the base first; or two stored runs.
    #[arg(value_name = "CMD")]
    pub(crate) sides: Vec<String>,
    /// Run the commands inside this environment (default: host).
    #[arg(long, value_name = "ENV", conflicts_with_all = ["a", "b"])]
    pub(crate) env: Option<String>,
    /// Run the base in this environment, with settings: `docker:image=app:1`.
    #[arg(long, value_name = "ENV", requires = "b")]
    pub(crate) a: Option<String>,
    /// Run the other side in this environment.
    #[arg(long, value_name = "ENV", requires = "a")]
    pub(crate) b: Option<String>,
    /// Take this revision as the base (default: where this branch left the one that it will be merged into).
    #[arg(long, value_name = "REV", conflicts_with_all = ["a", "env"])]
    pub(crate) base: Option<String>,
    /// Compare this revision with the base (default: HEAD).
    #[arg(long, value_name = "REV", conflicts_with_all = ["a", "env"])]
    pub(crate) head: Option<String>,
    /// Build both revisions with this shell command, each in a worktree of its own.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["a", "env"])]
    pub(crate) build: Option<String>,
    /// Compare every command of this TOML file: `[[compare]]` with `name`, `command`, and margins of its own.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sides", "command", "input", "metric"])]
    pub(crate) suite: Option<PathBuf>,
    /// Compare with this stored run, which proves nothing: the exit status stays 0.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["suite", "a", "base", "head", "build"])]
    pub(crate) against: Option<String>,
    /// Whether nothing is printed.
    #[arg(skip)]
    pub(crate) is_quiet: bool,
    /// Run each command so many times before its first measured run.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(crate) warmup: u32,
    /// Run this shell command once before everything.
    #[arg(short, long, value_name = "CMD")]
    pub(crate) setup: Option<String>,
    /// Run this shell command before each measured run, on the host.
    #[arg(short, long, value_name = "CMD")]
    pub(crate) prepare: Option<String>,
    /// Run this shell command after each measured run, on the host.
    #[arg(long, value_name = "CMD")]
    pub(crate) conclude: Option<String>,
    /// Run this shell command once after everything.
    #[arg(short, long, value_name = "CMD")]
    pub(crate) cleanup: Option<String>,
    /// Compare one command with `{NAME}` replaced by each of these values.
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "A,B"])]
    pub(crate) parameter_list: Vec<String>,
    /// Compare one command with `{NAME}` replaced by each whole number from MIN to MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["NAME", "MIN", "MAX"], conflicts_with = "parameter_list")]
    pub(crate) parameter_scan: Vec<String>,
    /// Step by so much in `--parameter-scan`.
    #[arg(
        short = 'D',
        long,
        value_name = "STEP",
        requires = "parameter_scan",
        default_value_t = 1
    )]
    pub(crate) parameter_step_size: u32,
    /// Give this file to each run as standard input (default: an empty one).
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Run each command through a shell, whose start is then measured too (default: no shell).
    #[arg(long, value_name = "SHELL", num_args = 0..=1, default_missing_value = "sh", require_equals = true)]
    pub(crate) shell: Option<String>,
    /// Measure commands whose exit status is not 0.
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// Compare commands that print different things.
    #[arg(long)]
    pub(crate) allow_different_output: bool,
    /// Limit the total time, without builds.
    #[arg(long, value_parser = units::some_duration_ns, default_value = "120s", value_name = "TIME")]
    pub(crate) budget: u64,
    /// Take two sides as the same up to this difference.
    #[arg(long, value_parser = units::fraction, default_value = "2%", value_name = "PERCENT")]
    pub(crate) margin: f64,
    /// Set another margin for the rows that a pattern names: `'memory=5%'`.
    #[arg(long, value_name = "ROW=PERCENT")]
    pub(crate) max: Vec<String>,
    /// Take these rows as the same below this absolute difference: `'wall=200us'`, `'memory=1MiB'`.
    #[arg(long, value_name = "ROW=SIZE")]
    pub(crate) floor: Vec<String>,
    /// Decide by these rows only: `wall`, `*.cpu`.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Decide without these rows.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Compare also the number that this regular expression finds in the output.
    #[arg(long, value_name = "REGEX")]
    pub(crate) metric: Option<String>,
    /// Treat a larger number of `--metric` as better.
    #[arg(long, requires = "metric")]
    pub(crate) more_is_better: bool,
    /// Pass a variable to every side, in addition to the usual ones.
    #[arg(long = "variable", value_name = "NAME[=TEXT]")]
    pub(crate) variables: Vec<String>,
    /// Expose the working directory inside even if it holds a home or Tare's files.
    #[arg(long)]
    pub(crate) show_private: bool,
    /// Seed for the trial order (default: random, recorded with the run).
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write the comparison as JSON; `-` prints it, and nothing else, on standard output.
    #[arg(long, alias = "export-json", value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a JUnit report.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Store what the commands print (default: length and SHA-256, unless they fail or `--metric` reads it).
    #[arg(long)]
    pub(crate) keep_output: bool,
    /// Write a SARIF log.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the summary for a pull request, as Markdown.
    #[arg(long, alias = "export-markdown", value_name = "FILE.md")]
    pub(crate) summary: Option<PathBuf>,
    /// Print a line that marks the job on this runner.
    #[arg(long, value_name = "RUNNER", default_value = "none", value_parser = runners())]
    pub(crate) annotations: Annotations,
    /// The command, where environments or revisions are compared.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

impl Options {
    /// Whether commands run before or after each measured run.
    pub(crate) fn has_hooks(&self) -> bool {
        self.prepare.is_some() || self.conclude.is_some()
    }

    /// What counts.
    pub(crate) fn limits(&self) -> Result<Limits, Failed> {
        let pairs = |all: &[String], value: fn(&str) -> Result<f64, String>, option: &str| {
            let read = |text: &String| {
                let (row, size) = text.rsplit_once('=').ok_or_else(|| {
                    Failed::usage(format!("`{option} {text}` names no row"))
                        .hint(format!("`{option} 'wall=…'`"))
                })?;
                let size = value(size)
                    .map_err(|problem| Failed::usage(format!("`{option} {text}`: {problem}")))?;
                Ok((row.to_owned(), size))
            };
            all.iter().map(read).collect::<Result<Vec<_>, Failed>>()
        };
        Ok(Limits {
            margin: self.margin,
            max: pairs(&self.max, units::fraction, "--max")?,
            floor: pairs(&self.floor, size, "--floor")?,
            only: self.only.clone(),
            skip: self.skip.clone(),
            ..Limits::default()
        })
    }

    /// The number that `--metric` picks from the output, if it is given.
    pub(crate) fn pick(&self) -> Result<Option<Pick>, Failed> {
        let pattern = self.metric.as_ref();
        pattern
            .map(|pattern| pick(pattern, self.more_is_better))
            .transpose()
    }

    /// The options of two sides: commands, or with a command environments or variables.
    pub(crate) fn of_sides(pair: [&str; 2], command: &[String]) -> Result<Self, Failed> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let are_variables = pair.iter().all(|text| {
            let name = text.split('=').next().unwrap_or_default();
            text.contains('=') && !name.contains([':', ',']) && env::find(name).is_none()
        });
        let mut words = vec!["compare".to_owned()];
        if command.is_empty() {
            words.extend(pair.map(str::to_owned));
        } else if are_variables {
            let command =
                shlex::try_join(command.iter().map(String::as_str)).map_err(Failed::usage)?;
            words.extend(pair.map(|text| format!("{text} {command}")));
        } else {
            words.extend(["--a", pair[0], "--b", pair[1], "--"].map(str::to_owned));
            words.extend(command.iter().cloned());
        }
        let line = <Line as clap::Parser>::try_parse_from(words).map_err(Failed::usage)?;
        Ok(line.options)
    }

    /// Returns the commands to compare, as typed and as words, with parameter values filled in.
    pub(crate) fn commands(&self) -> Result<Vec<(String, Vec<String>)>, Failed> {
        let mut texts = Vec::new();
        match self.parameter()? {
            None => texts.clone_from(&self.sides),
            Some((name, values)) => {
                let place = format!("{{{name}}}");
                if !self.sides.iter().any(|text| text.contains(&place)) {
                    return Err(Failed::usage(format!("no command holds `{place}`"))
                        .hint(format!("write it where the value belongs: 'CMD {place}'")));
                }
                for text in &self.sides {
                    texts.extend(values.iter().map(|value| text.replace(&place, value)));
                }
            }
        }
        if texts.len() > 26 {
            return Err(
                Failed::usage(format!("{} commands are too many", texts.len()))
                    .hint("compare up to 26 at a time"),
            );
        }
        texts
            .into_iter()
            .map(|text| Ok((text.clone(), self.words(&text)?)))
            .collect()
    }

    /// Returns the words of a command, or those that run it in a shell.
    pub(crate) fn words(&self, text: &str) -> Result<Vec<String>, Failed> {
        let Some(shell) = self.shell.as_ref().filter(|it| *it != "none") else {
            return words(text);
        };
        let mut words = words(shell)?;
        words.extend(["-c".to_owned(), text.to_owned()]);
        Ok(words)
    }

    fn parameter(&self) -> Result<Option<(&str, Vec<String>)>, Failed> {
        if let [name, values] = self.parameter_list.as_slice() {
            let values = values.split(',').map(str::to_owned).collect();
            return Ok(Some((name, values)));
        }
        let [name, low, high] = self.parameter_scan.as_slice() else {
            return Ok(None);
        };
        let number = |text: &String| {
            text.parse::<i64>().map_err(|_| {
                Failed::usage(format!("`--parameter-scan`: `{text}` is no whole number"))
            })
        };
        let (low, high) = (number(low)?, number(high)?);
        let step = i64::from(self.parameter_step_size.max(1));
        let values = (0..).map(|place| low.saturating_add(place * step));
        let values: Vec<String> = values
            .take_while(|value| *value <= high)
            .take(100)
            .map(|value| value.to_string())
            .collect();
        Ok(Some((name, values)))
    }
}

/// The number that a regular expression picks from a command's output.
pub(crate) fn pick(pattern: &str, more_is_better: bool) -> Result<Pick, Failed> {
    user_command::compiled(pattern).map_err(|problem| {
        Failed::usage(format!(
            "`--metric {pattern}` is no regular expression: {problem}"
        ))
        .hint("for example `--metric 'total: ([0-9.]+) s'`")
    })?;
    Ok(Pick {
        pattern: pattern.to_owned(),
        more_is_better,
        metric: None,
    })
}

/// Splits a command into words as a shell does, without expansion.
fn words(text: &str) -> Result<Vec<String>, Failed> {
    shlex::split(text)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| {
            Failed::usage(format!(
                "`{text}` is no command: a quote is not closed, or it is empty"
            ))
            .hint("quote each command as one word: tare compare 'gzip -6 big' 'zstd -3 big'")
        })
}

/// A time, a size or a plain number.
fn size(text: &str) -> Result<f64, String> {
    let end = text
        .find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let factor = match unit {
        "" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return units::duration_ns(text).map(|ns| ns as f64),
    };
    number
        .parse::<f64>()
        .map(|number| number * factor)
        .map_err(|_| format!("`{text}` is neither a time, a size nor a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &[&str]) -> Options {
        let words = std::iter::once(&"compare").chain(words);
        <Line as clap::Parser>::try_parse_from(words)
            .unwrap()
            .options
    }

    #[test]
    fn commands_are_split_into_words_without_a_shell() {
        let commands = options(&["gzip -6 'a b'", "echo $HOME"])
            .commands()
            .unwrap();
        assert_eq!(commands[0].1, ["gzip", "-6", "a b"]);
        assert_eq!(commands[1].1, ["echo", "$HOME"]);
        let through = options(&["--shell", "a | b", "c"]).commands().unwrap();
        assert_eq!(through[0].1, ["sh", "-c", "a | b"]);
        let without = options(&["--shell=none", "a | b"]).commands().unwrap();
        assert_eq!(without[0].1, ["a", "|", "b"]);
        assert!(options(&["'open"]).commands().is_err());
    }

    #[test]
    fn parameter_makes_a_command_of_each_value() {
        let of = |words: &[&str]| -> Vec<String> {
            let commands = options(words).commands().unwrap();
            commands.into_iter().map(|(text, _)| text).collect()
        };
        assert_eq!(of(&["-L", "n", "1,x", "gzip -{n}"]), ["gzip -1", "gzip -x"]);
        assert_eq!(
            of(&["-P", "n", "1", "5", "-D", "2", "a {n}"]),
            ["a 1", "a 3", "a 5"]
        );
        assert!(options(&["-L", "n", "1,2", "gzip"]).commands().is_err());
    }

    #[test]
    fn limits_are_read_with_their_units() {
        let limits = options(&[
            "a",
            "--max",
            "memory=5%",
            "--floor",
            "wall=200us",
            "--floor",
            "memory=1MiB",
        ])
        .limits()
        .unwrap();
        assert_eq!(limits.max, [("memory".to_owned(), 0.05)]);
        assert_eq!(
            limits.floor,
            [
                ("wall".to_owned(), 200_000.0),
                ("memory".to_owned(), 1_048_576.0)
            ]
        );
        for wrong in [["--max", "5%"], ["--max", "wall=5"], ["--floor", "wall=x"]] {
            assert!(
                options(&["a", wrong[0], wrong[1]]).limits().is_err(),
                "{wrong:?}"
            );
        }
    }
}
