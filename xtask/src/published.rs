//! `cargo xtask published FOLDER`: checks that every published number in a study occurs in its publication, and that
//! every number and note reaches the reader.
//!
//! A number is shown next to this study's value if it has a place in a table or figure; otherwise it is listed with
//! the reason. Notes are our sentences on quantities and numbers; those on quantities are shown below the tables,
//! those on numbers next to or below them. The reports' tests check that all of it is drawn.
//! A study's `printed` is compared character by character with the publication's text in `FOLDER`; only non-breaking
//! spaces count as spaces, because they look alike. A number counts as found if no further digit touches it, so `44`
//! is not found in `1,445`.
//! Conversely, every number of a publication's text is in a study or on a line of a kind that is set aside.
//! Limits: does not check that the number is about the right thing; `value`, `unit` and `at` are for people to check.

use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tare_model::Publication;
use toml::Spanned;

use crate::workspace::root;

mod rest;

/// Studies that repeat a publication, and the files with the publications' texts.
const SOURCES: &[(&str, &str)] = &[
    ("ram-disk", "000.txt"),
    ("os-micro", "001.txt"),
    ("python", "002.txt"),
    ("cluster", "003.txt"),
    ("storage", "004.txt"),
];

/// Studies without the publication's text; their numbers come from its raw runs and from notes on it.
const WITHOUT_TEXT: &[&str] = &["classic"];

/// The part of a study file that is read here.
#[derive(Deserialize)]
struct StudyFile {
    publication: Option<Published>,
}

/// The same part, as studies read it.
#[derive(Deserialize)]
struct WholeFile {
    publication: Option<Publication>,
}

#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    number: Vec<Number>,
}

#[derive(Deserialize)]
struct Number {
    printed: Spanned<String>,
}

/// The number of values looked for, and those not found: one line each, with file and line.
#[derive(Debug, Default)]
struct Tally {
    wanted: usize,
    missing: Vec<String>,
    reach: Reach,
    rest: rest::CarriedNumbers,
}

/// Counts of what reaches the reader.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reach {
    /// Numbers next to a value of the study.
    shown: usize,
    /// Numbers listed with the reason why they have no counterpart.
    listed: usize,
    /// Notes, and those that are shown.
    notes: usize,
    notes_shown: usize,
    /// What does not reach the reader.
    lost: Vec<String>,
}

impl Reach {
    fn add(&mut self, study: &str, publication: &Publication) {
        for number in &publication.numbers {
            // A note on a number is shown where the number is.
            let notes =
                usize::from(number.what.is_some()) + usize::from(number.corrected.is_some());
            self.notes += notes;
            let has_place = publication.has_place_for(number);
            match number.without {
                None if has_place => self.shown += 1,
                Some(_) if !has_place => self.listed += 1,
                None => {
                    let problem = "has no place in a table and no reason";
                    self.lost
                        .push(format!("{study}: `{}` {problem}", number.printed));
                    continue;
                }
                Some(why) => {
                    let problem = format!("has a place in a table, and is said to be {why}");
                    self.lost
                        .push(format!("{study}: `{}` {problem}", number.printed));
                    continue;
                }
            }
            self.notes_shown += notes;
        }
        let remarks = publication
            .quantities
            .iter()
            .filter(|it| it.remark.is_some());
        let n_remarks = remarks.count();
        self.notes += n_remarks;
        // All of them are below the tables, even for quantities that are in no table.
        self.notes_shown += n_remarks;
    }

    fn line(&self) -> String {
        format!(
            "shown {}, listed {}, of {}; notes {} of {}",
            self.shown,
            self.listed,
            self.shown + self.listed + self.lost.len(),
            self.notes_shown,
            self.notes
        )
    }
}

/// Looks for every number of every study.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [folder] = arguments else {
        bail!(
            "usage: cargo xtask published FOLDER, where FOLDER holds {}",
            SOURCES
                .iter()
                .map(|(_, file)| *file)
                .collect::<Vec<_>>()
                .join(", ")
        );
    };
    let tally = tally(&root().join("studies"), Path::new(folder))?;
    for line in &tally.missing {
        println!("{line}");
    }
    let found = tally.wanted - tally.missing.len();
    println!("published {found} of {} numbers found", tally.wanted);
    for line in tally.rest.left.iter().chain([&tally.rest.line()]) {
        println!("{line}");
    }
    for line in &tally.reach.lost {
        println!("{line}");
    }
    println!("{}", tally.reach.line());
    let is_whole = tally.missing.is_empty() && tally.rest.left.is_empty();
    Ok(if is_whole && tally.reach.lost.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads every study in `studies` and its publication in `sources`.
fn tally(studies: &Path, sources: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut seen = 0;
    let mut names: Vec<_> = std::fs::read_dir(studies)
        .with_context(|| format!("cannot list {}", studies.display()))?
        .collect::<Result<_, _>>()?;
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let id = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let study: StudyFile =
            toml::from_str(&text).with_context(|| format!("{} is no study", path.display()))?;
        let source = SOURCES.iter().find(|(study, _)| *study == id);
        let (publication, file) = match (study.publication, source) {
            (None, None) => continue,
            (Some(_), None) if WITHOUT_TEXT.contains(&id.as_str()) => {
                add_reach(&mut tally, &id, &path, &text)?;
                continue;
            }
            (Some(publication), Some((_, file))) => (publication, file),
            (Some(_), None) => bail!("no file is named for the publication of `{id}`"),
            (None, Some(_)) => bail!("{} has no publication", path.display()),
        };
        seen += 1;
        add_reach(&mut tally, &id, &path, &text)?;
        let original = std::fs::read_to_string(sources.join(file))
            .with_context(|| format!("cannot read {}", sources.join(file).display()))?;
        let original = with_plain_spaces(&original);
        let mut carried = Vec::new();
        for number in &publication.number {
            tally.wanted += 1;
            let printed = with_plain_spaces(number.printed.get_ref());
            let before = carried.len();
            carried.extend(places(&original, &printed));
            if carried.len() == before {
                tally.missing.push(format!(
                    "studies/{id}.toml:{}: `{}` is not in {file}",
                    line_of(&text, &number.printed.span()),
                    number.printed.get_ref().escape_debug(),
                ));
            }
        }
        tally.rest.add(rest::classify(file, &original, &carried));
    }
    if seen != SOURCES.len() {
        bail!(
            "{seen} of {} studies with a publication are in {}",
            SOURCES.len(),
            studies.display()
        );
    }
    Ok(tally)
}

/// Counts what reaches the reader of a study's publication.
fn add_reach(tally: &mut Tally, id: &str, path: &Path, text: &str) -> Result<()> {
    let whole: WholeFile =
        toml::from_str(text).with_context(|| format!("{} is no study", path.display()))?;
    if let Some(publication) = whole.publication {
        tally.reach.add(id, &publication.unfolded());
    }
    Ok(())
}

/// Replaces no-break space, narrow no-break space and figure space by spaces.
fn with_plain_spaces(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}', '\u{2007}'], " ")
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text[..span.start].matches('\n').count() + 1
}

/// Returns where `printed` occurs in `text` with no further digit at its ends.
fn places<'a>(text: &'a str, printed: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let is_digit = |letter: Option<char>| letter.is_some_and(|it| it.is_ascii_digit());
    let is_mark = |letter: Option<char>| matches!(letter, Some('.' | ','));
    let begins_with_digit = is_digit(printed.chars().next());
    let ends_with_digit = is_digit(printed.chars().next_back());
    let is_blank = printed.trim().is_empty();
    let starts = text.match_indices(printed).map(|(start, _)| start);
    starts
        .filter(move |start| {
            let mut before = text[..*start].chars().rev();
            let mut after = text[start + printed.len()..].chars();
            let (last, next_to_last) = (before.next(), before.next());
            let (first, second) = (after.next(), after.next());
            let goes_on_before =
                begins_with_digit && (is_digit(last) || is_mark(last) && is_digit(next_to_last));
            let goes_on_after =
                ends_with_digit && (is_digit(first) || is_mark(first) && is_digit(second));
            !is_blank && !goes_on_before && !goes_on_after
        })
        .map(move |start| start..start + printed.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::skip::skip;

    fn stands_in(text: &str, printed: &str) -> bool {
        places(text, printed).next().is_some()
    }

    #[test]
    fn a_number_is_found_only_as_a_whole() {
        let text = "1,445 and 19,2549 then 157k; 0.784/1.430, 64 bytes. Wait 12.";
        for whole in ["1,445", "19,2549", "157k", "0.784", "1.430", "64", "12"] {
            assert!(stands_in(text, whole), "{whole}");
        }
        for part in ["44", "445", "2549", "19", "0.78", "430", "1.43", "", " "] {
            assert!(!stands_in(text, part), "{part}");
        }
    }

    #[test]
    fn only_non_breaking_spaces_count_as_spaces() {
        assert!(stands_in(
            &with_plain_spaces("8\u{a0}000\u{202f}s"),
            "8 000 s"
        ));
        assert!(!stands_in(&with_plain_spaces("8\t000 s"), "8 000 s"));
    }

    #[test]
    fn unpublished_number_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let rest = "value = 7.2, unit = \"s\", at = \"page 1\", what = \"a time\"";
        for (id, file) in SOURCES {
            let study = format!(
                "id = \"{id}\"\n[publication]\ntitle = \"x\"\nwhere = \"y\"\nmachine = \"z\"\nnumber = [\n  {{ printed = \"7,25\", {rest}, without = \"total\" }},\n  {{ printed = \"7,26\", {rest} }},\n]\n"
            );
            std::fs::write(folder.path().join(format!("{id}.toml")), study).unwrap();
            std::fs::write(folder.path().join(file), "it took 7,25 s").unwrap();
        }
        let tally = tally(folder.path(), folder.path()).unwrap();
        assert_eq!((tally.wanted, tally.missing.len()), (10, 5));
        assert!(
            tally
                .missing
                .contains(&"studies/ram-disk.toml:8: `7,26` is not in 000.txt".to_owned()),
            "{:?}",
            tally.missing
        );
        // The first has a reason, the second has neither reason nor place.
        let n = SOURCES.len();
        let reach = &tally.reach;
        assert_eq!((reach.shown, reach.listed, reach.lost.len()), (0, n, n));
        assert_eq!(
            reach.line(),
            format!("shown 0, listed {n}, of {}; notes {n} of {}", 2 * n, 2 * n)
        );
    }

    #[test]
    fn every_published_number_and_note_is_rendered() {
        let mut reach = Reach::default();
        let mut n_lines = 0;
        for entry in std::fs::read_dir(root().join("studies")).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            n_lines += text.matches("{ printed = ").count();
            let file: WholeFile = toml::from_str(&text).unwrap();
            if let Some(publication) = file.publication {
                reach.add(&path.display().to_string(), &publication.unfolded());
            }
        }
        assert!(reach.lost.is_empty(), "{}", reach.lost.join("\n"));
        // Equals the number of lines in the files.
        assert_eq!(reach.shown + reach.listed, n_lines, "{}", reach.line());
        assert!(n_lines > 0);
        assert_eq!(reach.notes, reach.notes_shown);
    }

    /// Needs the publications' texts, which are not in this repository.
    #[test]
    fn every_published_number_is_in_its_publication() {
        let Some(folder) = std::env::var_os("TARE_SOURCES") else {
            return skip(
                "sources",
                "TARE_SOURCES names no folder with the publications' texts",
            );
        };
        let tally = tally(&root().join("studies"), Path::new(&folder)).unwrap();
        assert!(tally.wanted > 0);
        assert!(tally.missing.is_empty(), "{}", tally.missing.join("\n"));
        let left = &tally.rest.left;
        assert!(left.is_empty(), "{}", left.join("\n"));
    }
}
