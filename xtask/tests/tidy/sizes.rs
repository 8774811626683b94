//! Checks the length of files and functions, with exceptions that have a reason.
//!
//! A function's length is the number of lines in its body that are neither empty nor comments. The function ends at
//! the closing bracket with its indentation.

use super::{all_rust_files, assert_none, read, root};

/// Maximum lines of a file.
const FILE: usize = 500;
/// Maximum lines of a function.
const FUNCTION: usize = 80;

/// Longer files, a line each: the file, its maximum length, the reason. No other file may be longer.
const LONG_FILES: &str = "\
crates/tare-agent/src/launch/sys.rs 550 system calls with their preconditions, side by side
crates/tare-agent/src/meter.rs 600 one protocol of timing
crates/tare-model/src/dossier.rs 600 one format, whose parts are read together
crates/tare-model/src/fact.rs 650 one table, a row a fact
crates/tare-model/src/launch.rs 600 one format, whose parts are read together
crates/tare-core/src/analyze/concurrency.rs 550 one estimate with its diagnostics
crates/tare-core/src/cause/queries.rs 550 the questions that rules ask of a case
crates/tare-core/src/cause/triage.rs 650 one catalogue of what counters tell
crates/tare-env/src/env/docker/environment.rs 650 one life: made, started, stopped, removed
crates/tare-env/src/env/docker/user_container/difference.rs 570 every part of a container, and how each is removed
crates/tare-env/src/env/ssh/connection.rs 600 one life: opened, used, closed
crates/tare-report/src/terminal/why.rs 650 one page or table, drawn from top to bottom
crates/tare/src/run/session.rs 600 one run, whose arms and order live together
crates/tare/src/why/calibrate.rs 600 one stage of the question, in the order of time
crates/tare/src/why/carry.rs 600 one stage of the question, in the order of time
crates/tare-core/src/why/studies.rs 550 one stage of the question, in the order of time
crates/tare/tests/analysis/verdicts.rs 650 tests of one thing, with what they set up
crates/tare/tests/it/engine/fake.rs 700 one stage with all that can go wrong on it
crates/tare/tests/it/podman.rs 700 tests of one thing, with what they set up
crates/tare/tests/it/tools.rs 650 tests of one thing, with what they set up
";

/// Longer functions, a line each: the file, the name, the reason.
const LONG_FUNCTIONS: &str = "\
crates/tare-core/src/analyze/together.rs joint one pass over the trials
crates/tare/src/why/in_environment.rs ask one command, in the order of time
crates/tare-env/src/env/docker/settings.rs every_setting_is_read its steps share what they look at
crates/tare-report/src/html/mod.rs body one picture, drawn from left to right
crates/tare/src/run/alternate.rs alternate one turn of a clock, whose order is what matters
crates/tare/src/run/turns.rs turns one turn of a clock, whose order is what matters
crates/tare/src/store/read.rs run_without_records one row after the other, as the table has them
crates/tare-core/src/why/studies.rs round one round, in the order of time
xtask/src/test.rs all one command of development, in the order of time
";

/// Returns the rows of such a list: two words and the rest.
fn rows(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    list.lines().map(|line| {
        let (file, rest) = line.split_once(' ').unwrap();
        let (word, reason) = rest.split_once(' ').unwrap();
        assert!(reason.len() > 10, "{line}");
        (file, word, reason)
    })
}

/// Returns the functions of a file with the number of lines in their bodies.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        let words: Vec<&str> = code.split([' ', '(', '<']).collect();
        let is_before = |word: &&str| {
            ["pub", "in", "const", "unsafe", "extern", "async"].contains(word)
                || word.ends_with([')', '"'])
        };
        let place = words.iter().position(|word| *word == "fn");
        let Some(place) = place.filter(|place| words[..*place].iter().all(is_before)) else {
            continue;
        };
        let end = format!("{}}}", " ".repeat(depth));
        let has_body = !line.ends_with(';');
        let body = lines[begin..]
            .iter()
            .position(|line| has_body && *line == end);
        let body = body.unwrap_or(0);
        let body = &lines[begin + 1..begin + body.max(1)];
        let counts = |line: &&&str| {
            let code = line.trim_start();
            !code.is_empty() && !code.starts_with("//")
        };
        let name = words.get(place + 1).copied().unwrap_or_default();
        found.push((name.to_owned(), body.iter().filter(counts).count()));
    }
    found
}

#[test]
fn functions_are_found_with_the_lines_of_their_bodies() {
    let text = "impl A {\n    pub(super) fn one(&self) -> u8 {\n        // no\n\n        1\n    }\n    fn two();\n}\nfn three<T>(\n    x: T,\n) {\n    x;\n}\nlet fn_four = 1;\n";
    let found = functions(text);
    let expected = [("one", 1), ("two", 0), ("three", 3)];
    assert_eq!(
        found,
        expected.map(|(name, lines)| (name.to_owned(), lines))
    );
}

#[test]
fn files_and_functions_are_short_or_have_a_reason() {
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for file in all_rust_files() {
        let text = read(&file);
        let path = file.strip_prefix(root()).unwrap().display().to_string();
        let n_lines = text.lines().count();
        let known = rows(LONG_FILES).find(|(known, ..)| *known == path);
        match known.map(|(_, most, _)| most.parse::<usize>().unwrap()) {
            Some(most) if n_lines > most => {
                wrong.push(format!("{path} has {n_lines} lines and may have {most}"));
            }
            Some(_) if n_lines <= FILE => wrong.push(format!("{path} is short now: strike it out")),
            None if n_lines > FILE => {
                wrong.push(format!(
                    "{path} has {n_lines} lines: divide it by what its parts do"
                ));
            }
            _ => {}
        }
        for (name, n_lines) in functions(&text) {
            if n_lines <= FUNCTION {
                continue;
            }
            match rows(LONG_FUNCTIONS).find(|(of, known, _)| *of == path && *known == name) {
                Some(row) => seen.push(row),
                None => wrong.push(format!(
                    "{path}: `{name}` has {n_lines} lines: divide it by what it does"
                )),
            }
        }
    }
    for row in rows(LONG_FUNCTIONS).filter(|row| !seen.contains(row)) {
        wrong.push(format!(
            "{}: `{}` is short now: strike it out",
            row.0, row.1
        ));
    }
    assert_none(&wrong);
}
