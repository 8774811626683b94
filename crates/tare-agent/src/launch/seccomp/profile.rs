//! A list of allowed system calls as data: its notation, read and applied to this machine.
//!
//! The notation stands in the header of `docker-20.10.txt`. Conditions about the machine and the kept
//! capabilities are decided here, once; conditions about a call's arguments are left for the filter.
//! A name without a number on this architecture is skipped and returned, so that it can be reported.

use std::collections::BTreeMap;

use tare_model::launch::DockerRelease;

use super::table;

/// The default list of a release of Docker.
pub(super) fn of_docker(release: DockerRelease) -> &'static str {
    match release {
        DockerRelease::V20 => include_str!("docker-20.10.txt"),
        DockerRelease::V28 => include_str!("docker-28.txt"),
        DockerRelease::V29 => include_str!("docker-29.txt"),
    }
}

/// What the filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// The call goes through.
    Allow,
    /// The call fails with this error number.
    Errno(u16),
}

/// A condition about an argument: the argument, masked, equals a value; all 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArgumentTest {
    /// Position, 0 to 5.
    pub(super) index: u32,
    /// Bits that count.
    pub(super) mask: u64,
    /// What they must be.
    pub(super) value: u64,
}

/// What happens to one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Tried in order; the first whose tests all hold decides.
    pub(super) rules: Vec<(Vec<ArgumentTest>, Action)>,
}

/// A list applied to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    /// What happens by number; whatever is not here gets the default.
    pub(super) verdicts: BTreeMap<u32, Verdict>,
    /// The highest number that the list knows on this architecture, whether or not its rule applies.
    pub(super) highest: u32,
    /// Names that have no number here.
    pub(super) skipped: Vec<String>,
}

/// What a list's conditions are decided by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine<'a> {
    /// Names of the capabilities that are kept.
    pub(super) capabilities: &'a [String],
    /// The kernel's release.
    pub(super) kernel: &'a str,
}

/// Where a list is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProfileError {
    /// The line, from 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) problem: String,
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn whole(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn argument_test(text: &str) -> Option<ArgumentTest> {
    let (left, value) = text.strip_prefix("arg")?.split_once('=')?;
    let (index, mask) = match left.split_once('&') {
        Some((index, mask)) => (index, whole(mask)?),
        None => (left, u64::MAX),
    };
    Some(ArgumentTest {
        index: index.parse().ok().filter(|index| *index < 6)?,
        mask,
        value: whole(value)?,
    })
}

/// A line's left side, decided as far as the machine decides it.
struct Head {
    action: Action,
    tests: Vec<ArgumentTest>,
    applies: bool,
}

fn head(text: &str, machine: Machine<'_>) -> Result<Head, String> {
    let mut words = text.split_whitespace();
    let action = match words.next() {
        Some("allow") => Action::Allow,
        Some(word) => word
            .strip_prefix("errno=")
            .and_then(|number| number.parse().ok())
            .map(Action::Errno)
            .ok_or_else(|| format!("`{word}` is no action"))?,
        None => return Err("no action before the colon".into()),
    };
    let mut head = Head {
        action,
        tests: Vec::new(),
        applies: true,
    };
    for word in words {
        let has = |name: &str| machine.capabilities.iter().any(|kept| kept == name);
        if let Some(test) = argument_test(word) {
            head.tests.push(test);
            continue;
        }
        head.applies &= match word.split_once('=') {
            Some(("arch", name)) => name == std::env::consts::ARCH,
            Some(("cap", name)) => has(name),
            Some(("nocap", name)) => !has(name),
            Some(("kernel", least)) => version(machine.kernel) >= version(least),
            _ => return Err(format!("`{word}` is no condition")),
        };
    }
    Ok(head)
}

/// Reads a list and applies it.
pub(super) fn read(text: &str, machine: Machine<'_>) -> Result<Profile, ProfileError> {
    let mut profile = Profile {
        verdicts: BTreeMap::new(),
        highest: 0,
        skipped: Vec::new(),
    };
    let numbers = table::numbers();
    for (position, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |problem: String| ProfileError {
            line: position + 1,
            problem,
        };
        let (left, names) = line
            .split_once(':')
            .ok_or_else(|| error("no colon".into()))?;
        let head = head(left, machine).map_err(error)?;
        for name in names.split_whitespace() {
            let Some(number) = numbers.get(name).copied() else {
                profile.skipped.push(name.to_owned());
                continue;
            };
            profile.highest = profile.highest.max(number);
            if !head.applies {
                continue;
            }
            let verdict = profile
                .verdicts
                .entry(number)
                .or_insert(Verdict { rules: Vec::new() });
            let rule = (head.tests.clone(), head.action);
            if !verdict.rules.contains(&rule) {
                verdict.rules.push(rule);
            }
        }
    }
    // An unconditional rule decides whatever conditional ones of the same call stand before it.
    for verdict in profile.verdicts.values_mut() {
        if let Some(rule) = verdict.rules.iter().find(|(tests, _)| tests.is_empty()) {
            verdict.rules = vec![rule.clone()];
        }
    }
    profile.skipped.sort_unstable();
    profile.skipped.dedup();
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docker(capabilities: &[&str], kernel: &str) -> Profile {
        let capabilities: Vec<String> =
            capabilities.iter().map(|name| (*name).to_owned()).collect();
        let machine = Machine {
            capabilities: &capabilities,
            kernel,
        };
        read(of_docker(DockerRelease::V20), machine).unwrap()
    }

    #[test]
    fn newer_lists_refuse_rings_and_the_sockets_of_machines() {
        let machine = Machine {
            capabilities: &[],
            kernel: "6.1.0",
        };
        for (name, release) in DockerRelease::ALL {
            let profile = read(of_docker(release), machine).unwrap();
            let allows = |family: u64| {
                let verdict = &profile.verdicts[&table::number("socket").unwrap()];
                verdict.rules.iter().any(|(tests, action)| {
                    *action == Action::Allow
                        && tests.iter().all(|test| family & test.mask == test.value)
                })
            };
            let is_old = release == DockerRelease::V20;
            assert_eq!(
                rules(&profile, "io_uring_setup"),
                usize::from(is_old),
                "{name}"
            );
            for family in 0..48 {
                let is_refused =
                    (family == 40 && !is_old) || (family == 38 && release == DockerRelease::V29);
                for upper in [0, 1 << 32] {
                    assert_eq!(allows(family | upper), !is_refused, "{name}: {family}");
                }
            }
        }
    }

    fn rules(profile: &Profile, name: &str) -> usize {
        profile
            .verdicts
            .get(&table::number(name).unwrap())
            .map_or(0, |verdict| verdict.rules.len())
    }

    #[test]
    fn a_capability_opens_the_calls_that_need_it() {
        let few = docker(&[], "6.1.0");
        let admin = docker(&["CAP_SYS_ADMIN"], "6.1.0");
        for name in ["mount", "setns", "perf_event_open"] {
            assert_eq!(rules(&few, name), 0, "{name}");
            assert_eq!(rules(&admin, name), 1, "{name}");
        }
        let clone3 = &few.verdicts[&table::number("clone3").unwrap()];
        assert_eq!(clone3.rules, vec![(vec![], Action::Errno(38))]);
        let clone = &few.verdicts[&table::number("clone").unwrap()];
        assert_eq!(clone.rules[0].0[0].mask, 0x7e02_0000);
        assert_eq!(
            admin.verdicts[&table::number("clone").unwrap()].rules[0].0,
            vec![]
        );
        assert_eq!(rules(&few, "personality"), 5);
    }

    #[test]
    fn tracing_is_allowed_from_linux_4_8_on() {
        assert_eq!(rules(&docker(&[], "4.7.10-generic"), "ptrace"), 0);
        assert_eq!(rules(&docker(&[], "4.8"), "ptrace"), 1);
        assert_eq!(rules(&docker(&[], "10.0"), "ptrace"), 1);
    }

    #[test]
    fn names_of_other_architectures_are_reported_as_skipped() {
        let profile = docker(&[], "6.1");
        assert!(profile.skipped.contains(&"mmap2".to_owned()));
        assert!(!profile.skipped.contains(&"getppid".to_owned()));
        assert!(profile.verdicts.len() > 250, "{}", profile.verdicts.len());
    }

    #[test]
    fn an_error_names_its_line() {
        let machine = Machine {
            capabilities: &[],
            kernel: "6.1",
        };
        for text in [
            "\nallow getppid",
            "\nallwo : getppid",
            "\nallow arg9=1 : getppid",
            "\nallow kernal=4 : getppid",
        ] {
            assert_eq!(read(text, machine).unwrap_err().line, 2, "{text}");
        }
    }
}
