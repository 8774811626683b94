//! Process limits that an engine's daemon passes on to every container, compared with those of this process.
//!
//! A program that closes all descriptors up to its limit takes a limit of a million literally.

use crate::env::prelude::*;

use super::UserContainer;
use crate::env::grammar::Ulimit;

/// Prefix of the names of these differences.
const PREFIX: &str = concat!("engine", ".ulimit.");
/// The relevant limits: name, fact, title in the kernel's list, and description.
const KNOWN: [(&str, &str, &str, &str); 2] = tare_model::rows! {
    ("nofile", fact::RLIMIT_NOFILE, "Max open files", "open file descriptors"),
    ("stack", fact::RLIMIT_STACK, "Max stack size", "stack size"),
};

/// Returns the name of the difference.
pub(crate) fn id(name: &str) -> String {
    format!("{PREFIX}{name}")
}

pub(crate) fn words(name: &str) -> &str {
    let known = KNOWN.iter().find(|(known, ..)| *known == name);
    known.map_or(name, |(.., words)| words)
}

/// Formats a limit as `--ulimit` takes it.
pub(crate) fn text(limit: &Ulimit) -> String {
    format!("{}={}:{}", limit.name, limit.soft, limit.hard)
}

/// Returns this process's limits; empty if the system does not list them.
pub(crate) fn here() -> Vec<Ulimit> {
    let text = files::read_text(Path::new("/proc/self/limits")).unwrap_or_default();
    listed(&text)
}

fn listed(text: &str) -> Vec<Ulimit> {
    let known = KNOWN.iter();
    known
        .filter_map(|(name, _, title, _)| {
            let line = text.lines().find_map(|line| line.strip_prefix(title))?;
            let mut values = line.split_whitespace().map(|value| match value {
                "unlimited" => Some(-1),
                number => number.parse::<i64>().ok(),
            });
            Some(Ulimit {
                name: (*name).to_owned(),
                soft: values.next()??,
                hard: values.next()??,
            })
        })
        .collect()
}

/// Drops limits that are no difference: according to its facts, the container has the same soft limit.
pub fn drop_equal(own: &mut UserContainer, inside: &Facts) {
    drop_listed(own, inside, &here());
}

fn drop_listed(own: &mut UserContainer, inside: &Facts, here: &[Ulimit]) {
    own.differences.retain(|it| {
        let Some(name) = it.id.strip_prefix(PREFIX) else {
            return true;
        };
        let known = KNOWN.iter().find(|(known, ..)| *known == name);
        let there = known.and_then(|(_, fact, ..)| inside.get(*fact));
        let there = there.and_then(|text| text.split_whitespace().next());
        let soft = here.iter().find(|limit| limit.name == name);
        let soft = soft.map(|limit| match limit.soft {
            -1 => "unlimited".to_owned(),
            number => number.to_string(),
        });
        there.is_some() && there != soft.as_deref()
    });
}

#[cfg(test)]
mod tests {
    use super::super::Difference;
    use super::*;

    const PRINTED: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max stack size            8388608              unlimited            bytes     \n\
        Max open files            1024                 1048576              files     \n";

    #[test]
    fn limits_are_read_as_the_kernel_prints_them() {
        let texts: Vec<String> = listed(PRINTED).iter().map(text).collect();
        assert_eq!(texts, ["nofile=1024:1048576", "stack=8388608:-1"]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn equal_limits_are_no_difference() {
        let differences = ["nofile", "stack"].map(|name| Difference {
            id: id(name),
            ..Difference::default()
        });
        let mut own = UserContainer {
            differences: differences.into(),
            ..UserContainer::default()
        };
        let inside = Facts::from([
            (fact::RLIMIT_NOFILE.to_owned(), "1048576 1048576".to_owned()),
            (
                fact::RLIMIT_STACK.to_owned(),
                "8388608 unlimited".to_owned(),
            ),
        ]);
        drop_listed(&mut own, &inside, &listed(PRINTED));
        assert_eq!(own.names(|_| true), [id("nofile")]);
        // A limit that is unknown inside is no difference that could be named.
        drop_listed(&mut own, &Facts::new(), &listed(PRINTED));
        assert!(own.differences.is_empty());
    }
}
