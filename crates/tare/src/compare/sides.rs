//! Builds the sides of a comparison from the command line: commands, environments or revisions.

use std::collections::BTreeMap;
use std::path::Path;

use tare_model::{ArmId, Params};

use super::commits::Commits;
use super::options::Options;
use crate::compare::study::Side;
use crate::config::environment_flags;
use crate::cx::exec::CommandLine;
use crate::cx::files;
use crate::env;
use crate::failed::Failed;
use crate::output;
use crate::report::command_line;
use crate::session::home;
use crate::why::observed::Observed;
use crate::why::{WhyError, carry};

const HOST: &str = "host";

/// An environment as typed.
struct Environment {
    text: String,
    driver: &'static dyn env::Driver,
    settings: Params,
}

fn environment(text: &str) -> Result<Environment, Failed> {
    let mut found = environment_flags::environments(text).map_err(Failed::usage)?;
    let (Some(given), true) = (found.pop(), found.is_empty()) else {
        return Err(Failed::usage(format!("`{text}` is not one environment"))
            .hint("name one with its settings: `docker:image=app:1`"));
    };
    let driver = env::find(&given.name).ok_or_else(|| {
        let known: Vec<&str> = env::DRIVERS.iter().map(|driver| driver.id()).collect();
        Failed::usage(format!("there is no environment `{}`", given.name))
            .hint(format!("known are: {}", known.join(", ")))
    })?;
    Ok(Environment {
        text: text.to_owned(),
        driver,
        settings: given.settings,
    })
}

/// A side before its command is looked up.
struct SideRequest {
    arm: String,
    label: String,
    argv: Vec<String>,
    environment: Option<usize>,
    directory: Option<String>,
}

/// Returns the sides: revisions, environments or commands, in the order of the command line.
///
/// # Errors
/// The command line names too few sides, or a command that does not exist.
pub(crate) fn from_options(
    options: &Options,
    commits: Option<&Commits>,
    is_aa: bool,
) -> Result<Vec<Side>, Failed> {
    let mut environments = Vec::new();
    for text in [&options.env, &options.a, &options.b].into_iter().flatten() {
        environments.push(environment(text)?);
    }
    let mut wanted = Vec::new();
    if let Some(commits) = commits {
        for commit in commits.all() {
            wanted.push(SideRequest {
                arm: commit.arm.to_owned(),
                label: commit.label(),
                argv: options.command.clone(),
                environment: None,
                directory: Some(commit.directory.clone()),
            });
        }
    } else if options.a.is_some() {
        for (place, arm) in ["a", "b"].into_iter().enumerate() {
            wanted.push(SideRequest {
                arm: arm.to_owned(),
                label: environments[place].text.clone(),
                argv: options.command.clone(),
                environment: Some(place),
                directory: None,
            });
        }
    } else {
        let letters = 'a'..='z';
        for ((text, argv), letter) in options.commands()?.into_iter().zip(letters) {
            wanted.push(SideRequest {
                arm: letter.to_string(),
                label: text,
                argv,
                environment: options.env.as_ref().map(|_| 0),
                directory: None,
            });
        }
    }
    if is_aa {
        wanted.truncate(1);
        let base = &wanted[0];
        let again = SideRequest {
            arm: "again".to_owned(),
            label: format!("{} (again)", base.label),
            argv: base.argv.clone(),
            environment: base.environment,
            directory: base.directory.clone(),
        };
        wanted.push(again);
    }
    let mut sides = Vec::new();
    for side in wanted {
        let environment = side.environment.map(|place| &environments[place]);
        sides.push(carried(options, side, environment)?);
    }
    show_all(&mut sides);
    Ok(sides)
}

/// Determines how to run a side's command in its environment.
fn carried(
    options: &Options,
    side: SideRequest,
    environment: Option<&Environment>,
) -> Result<Side, Failed> {
    let host = env::find(HOST).expect("the host is always an environment");
    let (driver, settings) = match environment {
        Some(given) => (given.driver, given.settings.clone()),
        None => (host, Params::new()),
    };
    let stdin_file = match &options.input {
        Some(file) => Some(files::canonical(file).map_err(|error| {
            Failed::usage(format!("`--input`: {error}")).hint("name a file that is there")
        })?),
        None => None,
    };
    let is_host = driver.id() == HOST;
    let (variables, argv) = assigned(&side.argv);
    let wish = carry::CarryRequest {
        argv: argv.to_vec(),
        variables: options.variables.clone(),
        stdin_file,
        has_own_image: settings.value("image").is_some(),
        // On the host nothing is mounted.
        shows_private: options.show_private || is_host,
        empty: home::empty_folder()?,
        directory: side.directory,
    };
    let carried = carry::carried(&wish).map_err(|trouble| match trouble {
        WhyError::NotHere { program } => Failed::usage(format!(
            "`{program}` is no program of this machine"
        ))
        .hint("name it by its path; what only a shell knows needs `--shell`, an alias written out"),
        other => other.into(),
    })?;
    let settings = carry::with_binds(driver, &settings, &carried);
    driver
        .configure(
            ArmId::new("check").expect("the constant is a name"),
            &settings,
        )
        .map_err(|error| Failed::usage(format!("`{}`: {error}", driver.id())).maybe(error.hint))?;
    let shows = is_host || carry::shows_folders(driver);
    let mut call = carried.call;
    call.pick = options.pick()?;
    call.keep_output = options.keep_output;
    if options.ignore_failure {
        call.tolerated = (1..=255).collect();
    }
    Ok(Side {
        arm: side.arm,
        label: side.label,
        command: side.argv,
        driver: driver.id().to_owned(),
        program: (!shows).then(|| call.argv[0].clone()),
        settings,
        call,
        variables,
    })
}

/// Splits leading variable assignments from a command, as a shell does.
fn assigned(words: &[String]) -> (BTreeMap<String, String>, &[String]) {
    let is_name = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let pair = |word: &String| {
        let (name, text) = word.split_once('=').filter(|(name, _)| is_name(name))?;
        Some((name.to_owned(), text.to_owned()))
    };
    let variables: Vec<(String, String)> = words.iter().map_while(pair).collect();
    let argv = &words[variables.len()..];
    (variables.into_iter().collect(), argv)
}

/// Gives all sides of one environment the bind mounts that any of them needs, so that they differ only in their
/// command.
fn show_all(sides: &mut [Side]) {
    let others = |side: &Side| {
        let mut settings = side.settings.clone();
        settings.0.remove("binds");
        settings
    };
    let first = others(&sides[0]);
    if !sides.iter().all(|side| others(side) == first) {
        return;
    }
    let mut binds: Vec<String> = Vec::new();
    for bind in sides.iter().flat_map(|side| side.settings.words("binds")) {
        if !binds.contains(&bind) {
            binds.push(bind);
        }
    }
    if binds.is_empty() {
        return;
    }
    for side in sides {
        let list = binds.iter().cloned().map(tare_model::Value::Text).collect();
        side.settings = side
            .settings
            .clone()
            .with("binds", tare_model::Value::List(list));
    }
}

/// Whether two sides are the same program: equal hashes of all files loaded and read, and equal words, with paths
/// relative to each side's folder.
pub(crate) fn are_same_program(sides: &[Side], looks: &[Observed]) -> bool {
    let is_one = |side: &Side| {
        let first = &sides[0];
        (side.whole_call(), &side.driver, &side.settings)
            == (first.whole_call(), &first.driver, &first.settings)
    };
    if sides.iter().all(is_one) {
        return true;
    }
    let loaded = |place: usize| {
        let (side, look) = (&sides[place], &looks[place]);
        let seen = look.report.seen.as_ref()?;
        let below = side.call.directory.as_deref().unwrap_or_default();
        let name = |path: &str| path.strip_prefix(below).unwrap_or(path).to_owned();
        let executed = seen.executed.as_ref()?;
        seen.sha256.get(executed)?;
        // A file that was read but not hashed could differ.
        let is_known = |path: &&String| seen.sha256.contains_key(*path);
        if !seen.mapped.iter().all(|path| is_known(&path)) {
            return None;
        }
        let unread = seen.opened.iter().filter(|path| !is_known(path));
        if unread
            .clone()
            .any(|path| Path::new(path).starts_with(below))
            && !below.is_empty()
        {
            return None;
        }
        let hashes: Vec<(String, String)> = seen
            .sha256
            .iter()
            .map(|(path, digits)| (name(path), digits.clone()))
            .collect();
        let words: Vec<String> = side.call.argv[1..].iter().map(|word| name(word)).collect();
        let variables = side.variables.clone();
        Some((
            hashes,
            words,
            variables,
            side.driver.clone(),
            side.settings.clone(),
        ))
    };
    let first = loaded(0);
    first.is_some() && (1..sides.len()).all(|place| loaded(place) == first)
}

/// Whether the sides' programs can be run once more by themselves, next to the measured runs.
pub(crate) fn can_run_alone(sides: &[Side], looks: &[Observed]) -> bool {
    let is_plain = |side: &Side| side.driver == HOST && side.call.stdin_file.is_none();
    // A process that is left running keeps its output open.
    let leaves_some = looks.iter().any(|look| look.report.left_running > 0);
    sides.iter().all(is_plain) && !leaves_some
}

/// Runs a shell script as a side's command is run; its words are the side's folder, `first` and `argv`.
pub(crate) fn script(side: &Side, script: &str, first: &str, argv: &[String]) -> CommandLine {
    let call = side.whole_call();
    let folder = call.directory.as_deref().unwrap_or("/");
    let words = ["-c", script, folder, first].into_iter();
    let mut line = CommandLine::new("sh", words.chain(argv.iter().map(String::as_str)));
    line.variables = call.variables;
    if call.clean {
        line = line.with_variables_alone();
    }
    line
}

/// A side's command as quoted in a sentence.
pub(crate) fn named(side: &Side) -> String {
    output::printable(&command_line(&side.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_assignments_become_variables() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let line = words("A=1 B_2= x C=3");
        let (variables, argv) = assigned(&line);
        assert_eq!(argv, ["x", "C=3"]);
        let pairs: Vec<(&str, &str)> = variables
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(pairs, [("A", "1"), ("B_2", "")]);
        let line = words("./a=b 2=3");
        assert_eq!(assigned(&line).1, line);
    }
}
