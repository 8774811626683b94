//! Checks the documentation against the program: every command in it parses, every study in it is valid, and every
//! page is in the book.
//!
//! Limits: does not check what a command does; integration tests run those that need only this machine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::Cli;
use crate::config::{self, Adjustments};
use crate::env;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The README and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let book = std::fs::read_dir(root().join("docs/src")).unwrap();
    let mut pages: Vec<PathBuf> = book.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|it| it == "md"));
    pages.sort();
    pages.push(root().join("README.md"));
    assert!(pages.len() > 8, "{pages:?}");
    pages
}

/// Splits a line as a shell does, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') => words.push(String::new()),
            (_, letter) => words.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(quote, None, "{line}");
    words.retain(|word| !word.is_empty());
    let is_end = |word: &String| ["#", "|", ">", "&&"].contains(&word.as_str());
    let end = words.iter().position(is_end).unwrap_or(words.len());
    words.truncate(end);
    words
}

/// Returns the commands of a page: lines of its code blocks, and inline code elsewhere.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            commands.push(line.to_owned());
        } else {
            let code = line.split('`').skip(1).step_by(2);
            commands.extend(code.map(str::to_owned));
        }
    }
    commands.retain(|command| command.starts_with("tare "));
    commands
}

/// Returns 1 for a command that is accepted, and 0 for a name alone, in a sentence about the command.
fn parsed(place: &Path, words: &[String]) -> usize {
    match Cli::try_parse_from(words) {
        Ok(_) => 1,
        Err(error) if words.len() == 2 && error.kind() == ErrorKind::MissingRequiredArgument => 0,
        Err(error) => panic!("{}: `{}`: {error}", place.display(), words.join(" ")),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn documented_commands_parse() {
    let mut n_taken = 0;
    for page in pages() {
        for command in commands(&text(&page)) {
            n_taken += parsed(&page, &words(&command));
        }
    }
    assert!(n_taken > 50, "only {n_taken} were found");
    assert!(Cli::try_parse_from(words("tare run --agian x")).is_err());
}

/// The files of the program's source.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn recommended_commands_parse() {
    let mut n_taken = 0;
    let folders = [
        "crates/tare/src",
        "crates/tare-env/src",
        "crates/tare-core/src",
        "crates/tare-report/src",
    ];
    for file in folders
        .iter()
        .flat_map(|folder| sources(&root().join(folder)))
    {
        // This file is about commands and recommends none.
        if file.ends_with("cli/tests.rs") {
            continue;
        }
        let text = text(&file);
        // A command may continue in the next line of a text.
        let lines = text.lines().map(str::trim);
        let code: String = lines.filter(|line| !line.starts_with("//")).collect();
        for begun in code.split("`tare ").skip(1) {
            let command = begun.split('`').next().unwrap_or_default();
            // A placeholder may be any word; `…` and brackets stand for more words.
            let mut filled = String::from("tare ");
            for (n, part) in command.split('{').enumerate() {
                let rest = if n == 0 {
                    part
                } else {
                    part.split_once('}').map_or("", |it| it.1)
                };
                filled.push_str(if n == 0 { "" } else { "60s" });
                filled.push_str(rest);
            }
            let mut words = words(&filled.replace(['[', ']', '…'], " "));
            if words.len() == 1 || words == ["tare", "why"] {
                // A name alone, in a sentence about the command.
                continue;
            }
            if words.last().is_some_and(|last| last == "--") {
                words.push("true".to_owned());
            }
            n_taken += parsed(&file, &words);
        }
    }
    assert!(n_taken > 30, "only {n_taken} were found");
}

#[test]
fn every_study_in_the_documentation_is_understood() {
    let mut n_read = 0;
    for page in pages() {
        let text = text(&page);
        for block in text.split("```toml\n").skip(1) {
            let study = block.split("```").next().unwrap();
            n_read += 1;
            if study.starts_with("[[compare]]") {
                crate::compare::suite::check(&page, study)
                    .unwrap_or_else(|failed| panic!("{failed:?}"));
                continue;
            }
            let name = page.display().to_string();
            let read = config::parse(&name, study, &Adjustments::default());
            read.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(n_read >= 2, "only {n_read} were found");
}

#[test]
fn book_lists_settings_as_drivers_declare_them() {
    let mut page = String::from(
        "# Settings of environments\n\nWhat `[arm.settings]`, `--set` and `--env NAME:setting=value` take. A list is a \
         list, or one text with commas; words of before are still understood, with a note.\n",
    );
    for driver in env::DRIVERS {
        let (id, about) = (driver.id(), driver.about());
        let _ = write!(
            page,
            "\n## {id}\n\n{about}\n\n| setting | takes | default | what it is |\n|---|---|---|---|\n"
        );
        for row in driver.settings() {
            let was = match row.was {
                [] => String::new(),
                names => format!(" (before: `{}`)", names.join("`, `")),
            };
            let default = if row.default.is_empty() {
                "must be said"
            } else {
                row.default
            };
            let _ = writeln!(
                page,
                "| `{}`{was} | {} | {default} | {} |",
                row.name, row.takes, row.doc
            );
        }
    }
    let file = root().join("docs/src/settings.md");
    if std::env::var_os("TARE_BLESS").is_some() {
        crate::cx::files::write_output(&file, page.as_bytes()).unwrap();
    }
    assert!(
        text(&file) == page,
        "docs/src/settings.md is not what the drivers declare; TARE_BLESS=1 writes it anew"
    );
}

#[test]
fn book_lists_every_page_and_links_resolve() {
    let summary = text(&root().join("docs/src/SUMMARY.md"));
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let is_listed = summary.contains(&format!("({name})"));
        assert!(
            is_listed || ["SUMMARY.md", "README.md"].contains(&name),
            "{name}"
        );
        let text = text(&page);
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap();
            let is_here = link.is_empty() || link.starts_with("http");
            let target = page.parent().unwrap().join(link);
            assert!(is_here || target.is_file(), "{name}: {link}");
        }
    }
}
