//! What a container of the user's own is compared with, chosen by what is there.
//!
//! The host's own program, where it and everything that is mapped with it is the same bytes; else the image's files as a
//! bare process; else the same image as a plain container, without any difference, or with those that the program may
//! need. Each is tried, and the first counts in which the command prints what it prints in the container.
//! Pure: what was seen comes in.
//! What it cannot see: files that the command reads too briefly to be caught at it, or finds on the host alone.

use std::path::Path;

use tare_model::command::Seen;
use tare_model::{CommandChange, fact};

use super::super::observed::Observed;
use super::super::{Base, HOST};
use super::{Asks, IMAGE, PLAIN};
use crate::driver::own::{self, Bare, Difference, Own};

/// So many files are named at most.
const NAMED_MOST: usize = 3;

/// Files that C libraries read for every program, and that engines write for each container.
const EVERYBODYS: [&str; 17] = tare_model::rows! {
    "/dev", "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hostname", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/protocols",
    "/etc/resolv.conf", "/etc/services", "/run", "/usr/lib/locale", "/usr/share/locale",
    "/usr/share/zoneinfo",
};

/// A file as it is on this machine, beside what is known of one of the same path in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// As far as can be seen.
    Same,
    /// Other bytes, or another number of them.
    Other,
    /// It is not there, or not to be read.
    Absent,
}

/// What of the command goes with these differences.
fn change(own: &Own, ids: &[String]) -> CommandChange {
    let mut change = CommandChange::default();
    own::leave_out(&own.of_command, ids, &mut change);
    change
}

/// These differences without the parts of the command.
fn with_whole_command(own: &Own, ids: &[String]) -> Vec<String> {
    let is_kept = |id: &&String| {
        let part = own.of_command.get(*id);
        part.is_none_or(|part| part.left_out == 0 && part.directory.is_none())
    };
    ids.iter().filter(is_kept).cloned().collect()
}

/// Files as a bare process that runs the whole command, and, where it has parts that can go, one without them.
pub fn whole_and_less(own: &Own, files: &Bare) -> (Bare, Option<Bare>) {
    let whole = Bare {
        without: with_whole_command(own, &files.without),
        ..files.clone()
    };
    let less = (whole.without != files.without).then(|| files.clone());
    (whole, less)
}

fn asks(own: &Own, ids: &[String], base: Base) -> Asks {
    let differences: Vec<Difference> = own
        .differences
        .iter()
        .filter(|difference| ids.contains(&difference.id))
        .cloned()
        .collect();
    Asks {
        base,
        differences,
        of_command: own.of_command.clone(),
        kept: own.protected(),
        copy: own.inside.as_ref().map(|_| own.settings.clone()),
        ..Asks::default()
    }
}

/// Plain containers, the barest first: without every difference, with the whole command, and with what the program may
/// need.
pub fn plain(own: &Own, driver: &str) -> Vec<Asks> {
    let mut sets = own.barest_first(|_| true);
    let whole = with_whole_command(own, &sets[0]);
    if !sets.contains(&whole) {
        sets.insert(1, whole);
    }
    let of = |ids: Vec<String>| Asks {
        what: "the same image and command in a plain container".to_owned(),
        ..asks(
            own,
            &ids,
            Base {
                id: PLAIN,
                driver: driver.to_owned(),
                settings: own::without(&own.settings, &ids),
                change: change(own, &ids),
            },
        )
    };
    sets.into_iter().map(of).collect()
}

fn bare(own: &Own, bare: &Bare, id: &'static str) -> Asks {
    let base = Base {
        id,
        driver: bare.driver.clone(),
        settings: bare.settings.clone(),
        change: change(own, &bare.without),
    };
    Asks {
        plain: Some(own::without(&own.settings, &bare.without)),
        ..asks(own, &bare.without, base)
    }
}

/// The host's own files as a bare process.
pub fn host(own: &Own, files: &Bare) -> Asks {
    Asks {
        what: "the host's own program as a bare process (the same bytes as the image's, and so are its libraries)"
            .to_owned(),
        ..bare(own, files, HOST)
    }
}

/// The image's files as a bare process; `why` says what is the matter with the host's program.
pub fn image(own: &Own, files: &Bare, why: &str) -> Asks {
    Asks {
        what: format!("the image's own files as a bare process ({why})"),
        ..bare(own, files, IMAGE)
    }
}

/// So many differences are named in the line.
const DESCRIBED_MOST: usize = 6;

/// What the baseline is, in a line.
pub fn describe(asks: &Asks) -> String {
    let what: Vec<&str> = asks
        .differences
        .iter()
        .map(|difference| difference.what.as_str())
        .collect();
    let without = if what.is_empty() {
        String::new()
    } else {
        let shown = &what[..what.len().min(DESCRIBED_MOST)];
        let more = match what.len() - shown.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!(", without {}{more}", shown.join(", "))
    };
    let userland = match asks.userland {
        Some(_) => "; the host's program stands below it, and between them the step `userland`",
        None => "",
    };
    let (kept, names): (Vec<&str>, Vec<&str>) = asks
        .kept
        .iter()
        .map(|(what, name)| (what.as_str(), name.as_str()))
        .unzip();
    let kept = if kept.is_empty() {
        String::new()
    } else {
        format!(
            "; both with {}, which protects you (`--loosen {}` measures what it costs)",
            kept.join(" and "),
            names.join(",")
        )
    };
    format!("compared with: {}{without}{userland}{kept}", asks.what)
}

/// What of the program and everything that is mapped with it is other bytes in two places, in words; `None` where all
/// of it is the same.
pub fn other_bytes(one: &Observed, other: &Observed) -> Option<String> {
    let unseen = "whether the host's program is the same could not be seen";
    // The files themselves, however short the command runs.
    let programs = |look: &Observed| -> Vec<(String, String)> {
        let facts = look.facts.iter();
        facts
            .filter_map(|(name, digits)| {
                let program = fact::what(fact::TOOL_SHA256, name)?;
                Some((program.to_owned(), digits.clone()))
            })
            .collect()
    };
    let there = programs(other);
    let differing = programs(one).into_iter().find(|it| !there.contains(it));
    if let Some((program, _)) = differing {
        return Some(format!(
            "the host has other bytes: `{}`",
            program.escape_debug()
        ));
    }
    let (Some(one), Some(other)) = (&one.report.seen, &other.report.seen) else {
        return Some(unseen.to_owned());
    };
    if one.mapped.is_empty() || other.mapped.is_empty() {
        return Some(unseen.to_owned());
    }
    // Under another name or path it is the same program.
    let only = |of: &Seen, without: &Seen| -> Vec<String> {
        let mapped = of.mapped.iter();
        mapped
            .filter(|path| match of.sha256.get(*path) {
                Some(digits) => !without.sha256.values().any(|it| it == digits),
                None => true,
            })
            .filter_map(|path| Some(path.rsplit('/').next()?.to_owned()))
            .collect()
    };
    let mut differing = only(one, other);
    differing.extend(only(other, one));
    differing.sort();
    differing.dedup();
    let differing: Vec<String> = differing
        .iter()
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    if differing.is_empty() {
        return None;
    }
    let more = differing.len().saturating_sub(NAMED_MOST);
    let named = differing.into_iter().take(NAMED_MOST).collect::<Vec<_>>();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!(
        "the host has other bytes: {}{more}",
        named.join(", ")
    ))
}

/// What the command reads in the container and would not find on this machine as it is there, in words: then the host's
/// program does other work. `here` looks at a path, given its digest in the container if that is known.
pub fn other_reads(
    inside: &Observed,
    here: impl Fn(&Path, Option<&str>) -> Here,
) -> Option<String> {
    let seen = inside.report.seen.as_ref()?;
    let is_everybodys = |path: &Path| EVERYBODYS.iter().any(|it| path.starts_with(it));
    seen.read.iter().find_map(|name| {
        let path = Path::new(name);
        if is_everybodys(path) || seen.mapped.contains(name) {
            return None;
        }
        let shown = name.escape_debug();
        match here(path, seen.sha256.get(name).map(String::as_str)) {
            Here::Same => None,
            Here::Other => Some(format!(
                "the command reads `{shown}`, which is other bytes on the host"
            )),
            Here::Absent => Some(format!(
                "the command reads `{shown}`, which the host does not have"
            )),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::studies::tests::first;
    use super::*;

    fn look(files: &[(&str, &str)]) -> Observed {
        let mut look = first(1).host;
        look.report.seen = Some(Seen {
            mapped: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            sha256: files
                .iter()
                .filter(|(_, digits)| !digits.is_empty())
                .map(|(path, digits)| ((*path).to_owned(), (*digits).to_owned()))
                .collect(),
            ..Seen::default()
        });
        look
    }

    #[test]
    fn a_program_is_the_same_only_with_all_that_is_mapped_with_it() {
        let image = look(&[("/bin/work", "1"), ("/lib/libc.so.6", "2")]);
        let host = |files: &[(&str, &str)]| other_bytes(&look(files), &image);
        // Under another path it is the same program.
        assert_eq!(
            host(&[("/usr/bin/work", "1"), ("/lib64/libc.so.6", "2")]),
            None
        );
        let said = host(&[("/bin/work", "1"), ("/lib/libc.so.6", "3")]).unwrap();
        assert!(
            said.contains("`libc.so.6`") && !said.contains("`work`"),
            "{said}"
        );
        // A static build has no library, and what could not be read is not the same.
        assert!(host(&[("/bin/work", "1")]).unwrap().contains("`libc.so.6`"));
        assert!(host(&[("/bin/work", ""), ("/lib/libc.so.6", "2")]).is_some());
        assert!(host(&[]).is_some());
        let of_program = |digits: &str| {
            let mut host = look(&[("/bin/work", "1"), ("/lib/libc.so.6", "2")]);
            let name = fact::of(fact::TOOL_SHA256, "work");
            host.facts.insert(name, digits.to_owned());
            host
        };
        let said = other_bytes(&of_program("4"), &of_program("5")).unwrap();
        assert!(said.contains("other bytes: `work`"), "{said}");
        assert_eq!(other_bytes(&of_program("4"), &of_program("4")), None);
        let mut unseen = image.clone();
        unseen.report.seen = None;
        assert!(other_bytes(&unseen, &image).is_some());
    }

    #[test]
    fn a_file_that_the_host_has_not_or_otherwise_makes_the_work_another() {
        let mut inside = look(&[("/bin/work", "1")]);
        let seen = inside.report.seen.as_mut().unwrap();
        let read = [
            "/app/data",
            "/bin/work",
            "/etc/passwd",
            "/usr/lib/locale/C/x",
        ];
        seen.read = read.map(str::to_owned).into();
        seen.sha256.insert("/app/data".to_owned(), "aa".to_owned());
        let reads = |found: Here| {
            other_reads(&inside, |path, digest| {
                assert_eq!((path, digest), (Path::new("/app/data"), Some("aa")));
                found
            })
        };
        assert_eq!(reads(Here::Same), None);
        assert!(
            reads(Here::Other)
                .unwrap()
                .contains("`/app/data`, which is other")
        );
        assert!(reads(Here::Absent).unwrap().contains("does not have"));
    }

    #[test]
    fn each_baseline_says_what_it_is_and_what_it_does_without() {
        let own = Own {
            differences: vec![
                Difference {
                    id: "cpus".into(),
                    what: "`--cpus 1`".into(),
                    ..Difference::default()
                },
                Difference {
                    id: "env.A".into(),
                    what: "`A`".into(),
                    ..Difference::default()
                },
            ],
            ..Own::default()
        };
        let files = Bare {
            driver: "x".into(),
            without: vec!["cpus".into()],
            ..Bare::default()
        };
        let mut of_image = image(&own, &files, "the host has no such program");
        assert_eq!((of_image.base.id, of_image.differences.len()), (IMAGE, 1));
        assert!(of_image.plain.is_some());
        let line = describe(&of_image);
        assert!(
            line.contains("no such program") && line.contains("`--cpus 1`"),
            "{line}"
        );
        assert!(!line.contains("userland"), "{line}");
        of_image.userland = Some(Base::default());
        assert!(describe(&of_image).contains("userland"));
        assert_eq!(host(&own, &files).base.id, HOST);
        assert!(plain(&own, "x")[0].plain.is_none());
    }
}
