//! Applies a list of allowed syscalls to this machine and returns verdicts by syscall number.
//!
//! Argument conditions are left to the filter. A name without a number on this architecture is skipped and returned,
//! so that it can be reported.

use std::collections::BTreeMap;

use tare_model::call_list::{self, Action, ArgumentTest, ListError, Machine};

use super::table;

/// The rules for one syscall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Tried in order; the first whose tests all hold decides.
    pub(super) rules: Vec<(Vec<ArgumentTest>, Action)>,
}

/// A list applied to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    /// Verdicts by number; all other numbers get the default.
    pub(super) verdicts: BTreeMap<u32, Verdict>,
    /// The highest number in the list on this architecture, whether or not its rule applies.
    pub(super) highest: u32,
    /// Names that have no number here.
    pub(super) skipped: Vec<String>,
}

/// Reads a list and applies it.
pub(super) fn read(text: &str, machine: Machine<'_>) -> Result<Profile, ListError> {
    let mut profile = Profile {
        verdicts: BTreeMap::new(),
        highest: 0,
        skipped: Vec::new(),
    };
    let numbers = table::numbers();
    for line in call_list::read(text, machine)? {
        for name in line.names.split_whitespace() {
            let Some(number) = numbers.get(name).copied() else {
                profile.skipped.push(name.to_owned());
                continue;
            };
            profile.highest = profile.highest.max(number);
            if !line.applies {
                continue;
            }
            let verdict = profile
                .verdicts
                .entry(number)
                .or_insert(Verdict { rules: Vec::new() });
            let rule = (line.tests.clone(), line.action);
            if !verdict.rules.contains(&rule) {
                verdict.rules.push(rule);
            }
        }
    }
    // An unconditional rule takes precedence over conditional ones of the same syscall, even if those come first.
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
    use tare_model::call_list::of_docker;
    use tare_model::launch::DockerRelease;

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
    fn newer_profiles_deny_io_uring_and_vsock_sockets() {
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
    fn profile_reports_foreign_syscalls_as_skipped() {
        let profile = docker(&[], "6.1");
        assert!(profile.skipped.contains(&"mmap2".to_owned()));
        assert!(!profile.skipped.contains(&"getppid".to_owned()));
        assert!(profile.verdicts.len() > 250, "{}", profile.verdicts.len());
    }
}
