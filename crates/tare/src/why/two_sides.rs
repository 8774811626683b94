//! Answers `tare why --a … --b …`: which difference between two sides makes the second one slower?
//!
//! The sides are two environments or images, two sets of variables, or two commands. Differences are listed from what
//! both were seen to run and read. An arm is the second side with some of them from the first.

use std::collections::BTreeMap;

use tare_model::CommandChange;
use tare_model::command::ProcessSamples;

use super::question::Question;
use crate::compare::study::Side;
use crate::compare::{self, options::Options};
use crate::cx::{Context, files};
use crate::env;
use crate::failed::Failed;
use crate::output;
use crate::report;
use crate::why::user_container::ContainerQuestion;
use crate::why::user_container::sides::{FIRST, Listed, other_files};
use crate::why::{Ask, Base, First, WhyError, calibrate};

/// Most differences named in a line.
const NAMED_MOST: usize = 8;

impl Question {
    /// Runs both sides once and lists their differences.
    pub(crate) fn ask_sides(
        &self,
        pair: [&str; 2],
        cx: &Context<'_>,
    ) -> Result<(Ask, First), Failed> {
        let options = Options::of_sides(pair, &self.command)?;
        let [a, b] = compare::two_sides(&options)?;
        if a.driver != b.driver {
            return Err(Failed::usage(format!(
                "`{}` and `{}` have no differences that could be exchanged one by one",
                a.driver, b.driver
            ))
            .hint("`tare why --env ENV -- CMD` explains an environment against the host"));
        }
        let mut asks = asked_of(&a, &b);
        let mut ask = Ask {
            command: b.command.clone(),
            program: b.program.clone(),
            own: Some(asks.clone()),
            ..self.asks(&b.driver, b.settings.clone(), a.call.clone())
        };
        let first = calibrate::look(cx, &ask, &ask.settings, None).map_err(fails_with)?;
        output::tell(&format!(
            "{} with a, {} with b at the first look",
            report::terminal::time(first.host.wall_ns as f64),
            report::terminal::time(first.env.wall_ns as f64),
        ));
        let (listed, notes) = listed(cx, &a, &b, &first)?;
        ask.carried = vec![format!("compared with: {}", asks.what), described(&listed)];
        ask.carried.extend(notes);
        for line in &ask.carried {
            output::tell(line);
        }
        asks.differences = listed.differences;
        asks.undo = listed.undo;
        ask.own = Some(asks);
        Ok((ask, first))
    }
}

/// The same error with the names of the sides.
fn fails_with(trouble: WhyError) -> Failed {
    let (side, how, said, hint) = match trouble {
        WhyError::FailsOnHost { how, said, hint } => (FIRST, how, said, hint),
        WhyError::FailsInside {
            how, said, hint, ..
        } => ("b", how, said, hint),
        other => return other.into(),
    };
    let problem = format!("the command fails with {side}: it {how}{said}");
    Failed::failure(problem).maybe(hint)
}

/// The question without the differences, which are unknown before both sides have run.
fn asked_of(a: &Side, b: &Side) -> ContainerQuestion {
    ContainerQuestion {
        base: Base {
            id: FIRST,
            driver: a.driver.clone(),
            settings: a.settings.clone(),
            change: CommandChange {
                variables: a.variables.clone(),
                ..CommandChange::default()
            },
        },
        head: CommandChange {
            argv: if a.call.argv == b.call.argv {
                Vec::new()
            } else {
                b.call.argv.clone()
            },
            variables: b.variables.clone(),
            ..CommandChange::default()
        },
        what: format!("a, {}", a.label),
        ..ContainerQuestion::default()
    }
}

/// Describes the differences in a line.
fn described(listed: &Listed) -> String {
    let what = listed.differences.iter().map(|it| it.what.as_str());
    let mut names: Vec<&str> = what.collect();
    let rest = names.len().saturating_sub(NAMED_MOST);
    names.truncate(NAMED_MOST);
    let more = format!("{rest} more");
    if rest > 0 {
        names.push(&more);
    }
    if names.is_empty() {
        return "b differs from a in nothing that was seen".to_owned();
    }
    format!("b differs from a in {}", names.join(", "))
}

/// Lists the differences of the second side, and those that are not tried.
fn listed(
    cx: &Context<'_>,
    a: &Side,
    b: &Side,
    first: &First,
) -> Result<(Listed, Vec<String>), Failed> {
    let (mut listed, mut notes) = (Listed::default(), Vec::new());
    listed.settings(&a.settings, &b.settings);
    listed.words(&a.call.argv, &b.call.argv);
    listed.variables(&a.variables, &b.variables);
    let images = [a, b].map(|side| side.settings.text("image"));
    if images[0] == images[1] {
        return Ok((listed, notes));
    }
    let nothing = ProcessSamples::default();
    let seen = [&first.host, &first.env].map(|look| look.report.seen.as_ref().unwrap_or(&nothing));
    let (paths, alone) = other_files(seen[0], seen[1]);
    let driver = env::find(&a.driver).expect("the name was looked up before");
    let folder = |name: &str| -> Result<std::path::PathBuf, Failed> {
        let folder = cx.scratch.join(name);
        files::create_folder(&folder)?;
        Ok(folder)
    };
    let failed = |source| WhyError::Environment {
        env: a.driver.clone(),
        source,
    };
    let parts = driver
        .image_parts(cx, &a.settings, &paths, &folder("parts-a")?)
        .map_err(failed)?;
    let others = driver
        .image_parts(cx, &b.settings, &[], &folder("parts-b")?)
        .map_err(failed)?;
    for (path, file) in &parts.files {
        listed.file(path, &file.display().to_string());
    }
    // A variable of an image can be set, but not unset.
    let (can, cannot): (BTreeMap<_, _>, BTreeMap<_, _>) = others
        .variables
        .into_iter()
        .partition(|(name, _)| parts.variables.contains_key(name));
    listed.variables(&parts.variables, &can);
    if !cannot.is_empty() || !alone.is_empty() {
        let mut names: Vec<String> = alone;
        names.extend(
            cannot
                .keys()
                .map(|name| format!("the variable `{}` of b", name.escape_debug())),
        );
        notes.push(format!("not tried: {}", names.join(", ")));
    }
    Ok((listed, notes))
}
