//! Chooses what a user's container is compared with.
//!
//! The host's program, if it and everything mapped with it is the same bytes; else the image's files as a bare
//! process; else the same image as a plain container, without any difference or with those that the program may need.
//! Each is tried, and the first in which the command prints the same as in the container is used.
//! Pure: observations are passed in.
//! Limits: misses files that the command reads too briefly to be observed, or finds on the host alone.

use std::path::Path;

use tare_model::command::ProcessSamples;
use tare_model::{CommandChange, fact};

use super::super::observed::Observed;
use super::super::{Base, HOST};
use super::{ContainerQuestion, IMAGE, PLAIN};
use crate::driver::user_container::{self, Bare, Difference, UserContainer};

/// The maximum number of files named in a message.
const NAMED_MOST: usize = 3;

/// Files that C libraries read for every program, and that engines write for each container.
const EVERYBODYS: [&str; 17] = tare_model::rows! {
    "/dev", "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hostname", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/protocols",
    "/etc/resolv.conf", "/etc/services", "/run", "/usr/lib/locale", "/usr/share/locale",
    "/usr/share/zoneinfo",
};

/// How a file of this machine compares with the one at the same path in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// The same, as far as can be checked.
    Same,
    /// Other bytes or another size.
    Other,
    /// Missing or unreadable.
    Absent,
}

/// How removing these differences changes the command.
fn change(own: &UserContainer, ids: &[String]) -> CommandChange {
    let mut change = CommandChange::default();
    user_container::leave_out(&own.of_command, ids, &mut change);
    change
}

/// These differences without those that are parts of the command.
fn with_whole_command(own: &UserContainer, ids: &[String]) -> Vec<String> {
    let is_kept = |id: &&String| {
        let part = own.of_command.get(*id);
        part.is_none_or(|part| part.left_out == 0 && part.directory.is_none())
    };
    ids.iter().filter(is_kept).cloned().collect()
}

/// Files as a bare process that runs the whole command and, if parts of the command can be removed, one without them.
pub fn whole_and_less(own: &UserContainer, files: &Bare) -> (Bare, Option<Bare>) {
    let whole = Bare {
        without: with_whole_command(own, &files.without),
        ..files.clone()
    };
    let less = (whole.without != files.without).then(|| files.clone());
    (whole, less)
}

fn asks(own: &UserContainer, ids: &[String], base: Base) -> ContainerQuestion {
    let differences: Vec<Difference> = own
        .differences
        .iter()
        .filter(|difference| ids.contains(&difference.id))
        .cloned()
        .collect();
    ContainerQuestion {
        base,
        differences,
        of_command: own.of_command.clone(),
        kept: own.protected(),
        copy: own.inside.as_ref().map(|_| own.settings.clone()),
        ..ContainerQuestion::default()
    }
}

/// Plain containers, the barest first: without any difference, with the whole command, and with what the program may
/// need.
pub fn plain(own: &UserContainer, driver: &str) -> Vec<ContainerQuestion> {
    let mut sets = own.barest_first(|_| true);
    let whole = with_whole_command(own, &sets[0]);
    if !sets.contains(&whole) {
        sets.insert(1, whole);
    }
    let of = |ids: Vec<String>| ContainerQuestion {
        what: "the same image and command in a plain container".to_owned(),
        ..asks(
            own,
            &ids,
            Base {
                id: PLAIN,
                driver: driver.to_owned(),
                settings: user_container::without(&own.settings, &ids),
                change: change(own, &ids),
            },
        )
    };
    sets.into_iter().map(of).collect()
}

fn bare(own: &UserContainer, bare: &Bare, id: &'static str) -> ContainerQuestion {
    let base = Base {
        id,
        driver: bare.driver.clone(),
        settings: bare.settings.clone(),
        change: change(own, &bare.without),
    };
    ContainerQuestion {
        plain: Some(user_container::without(&own.settings, &bare.without)),
        ..asks(own, &bare.without, base)
    }
}

/// A baseline of the host's files as a bare process.
pub fn host(own: &UserContainer, files: &Bare) -> ContainerQuestion {
    ContainerQuestion {
        what: "the host's own program as a bare process (the same bytes as the image's, and so are its libraries)"
            .to_owned(),
        ..bare(own, files, HOST)
    }
}

/// A baseline of the image's files as a bare process; `why` says why not the host's program.
pub fn image(own: &UserContainer, files: &Bare, why: &str) -> ContainerQuestion {
    ContainerQuestion {
        what: format!("the image's own files as a bare process ({why})"),
        ..bare(own, files, IMAGE)
    }
}

/// The maximum number of differences named in the description.
const DESCRIBED_MOST: usize = 6;

/// Describes the baseline in one line.
pub fn describe(asks: &ContainerQuestion) -> String {
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

/// Names the bytes of the program and of everything mapped with it that differ between two places, or says why they
/// could not be compared; `None` if all are the same.
pub fn other_bytes(one: &Observed, other: &Observed) -> Option<String> {
    let unseen = "whether the host's program is the same could not be seen";
    // Checksums of the files themselves are known however short the command runs.
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
    // The same bytes under another name or path are the same program.
    let only = |of: &ProcessSamples, without: &ProcessSamples| -> Vec<String> {
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

/// A sentence on a file that the command reads in the container but that is missing or different on this machine, so
/// that the host's program would do other work. `here` compares a path, given its digest in the container if known.
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
        look.report.seen = Some(ProcessSamples {
            mapped: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            sha256: files
                .iter()
                .filter(|(_, digits)| !digits.is_empty())
                .map(|(path, digits)| ((*path).to_owned(), (*digits).to_owned()))
                .collect(),
            ..ProcessSamples::default()
        });
        look
    }

    #[test]
    fn program_is_the_same_only_with_equal_mapped_files() {
        let image = look(&[("/bin/work", "1"), ("/lib/libc.so.6", "2")]);
        let host = |files: &[(&str, &str)]| other_bytes(&look(files), &image);
        // The same program under another path.
        assert_eq!(
            host(&[("/usr/bin/work", "1"), ("/lib64/libc.so.6", "2")]),
            None
        );
        let shown = host(&[("/bin/work", "1"), ("/lib/libc.so.6", "3")]).unwrap();
        assert!(
            shown.contains("`libc.so.6`") && !shown.contains("`work`"),
            "{shown}"
        );
        // A static build has no libraries; an unreadable file does not count as the same.
        assert!(host(&[("/bin/work", "1")]).unwrap().contains("`libc.so.6`"));
        assert!(host(&[("/bin/work", ""), ("/lib/libc.so.6", "2")]).is_some());
        assert!(host(&[]).is_some());
        let of_program = |digits: &str| {
            let mut host = look(&[("/bin/work", "1"), ("/lib/libc.so.6", "2")]);
            let name = fact::name_for(fact::TOOL_SHA256, "work");
            host.facts.insert(name, digits.to_owned());
            host
        };
        let shown = other_bytes(&of_program("4"), &of_program("5")).unwrap();
        assert!(shown.contains("other bytes: `work`"), "{shown}");
        assert_eq!(other_bytes(&of_program("4"), &of_program("4")), None);
        let mut unseen = image.clone();
        unseen.report.seen = None;
        assert!(other_bytes(&unseen, &image).is_some());
    }

    #[test]
    fn file_missing_or_different_on_host_is_other_work() {
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
    fn baseline_description_names_kind_and_removed_parts() {
        let own = UserContainer {
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
            ..UserContainer::default()
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
