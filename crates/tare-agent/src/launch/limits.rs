//! Checks an instance's cgroup limits, maps them to controllers and writes them under either cgroup version.
//!
//! Limits that this machine cannot satisfy are refused before anything is made, because the kernel accepts some of
//! them and then kills or starves the processes inside.

use std::path::Path;

use tare_model::launch::{LaunchError, Limits};

use super::control::{Group, read, write};

/// The CPU quota's period, microseconds: the default of the kernel and of Docker.
const PERIOD_US: f64 = 100_000.0;

/// The least memory, bytes: Docker's minimum.
const LEAST_MEMORY: u64 = 6 << 20;

fn limit_error(what: &str, problem: String, hint: String) -> LaunchError {
    LaunchError {
        step: format!("limit {what}"),
        problem,
        errno: None,
        hint: Some(hint),
    }
}

/// Refuses limits that this machine cannot satisfy; the error says what it could.
pub(super) fn check(limits: &Limits) -> Result<(), LaunchError> {
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(cpus) = limits.cpus {
        // The kernel's minimum quota is 1 ms: a hundredth of the period.
        if !(0.01..=online as f64).contains(&cpus) {
            return Err(limit_error(
                "cpus",
                format!("`{cpus}` processors cannot be given"),
                format!("between 0.01 and {online} here"),
            ));
        }
    }
    if let Some(bytes) = limits.memory_bytes.filter(|bytes| *bytes < LEAST_MEMORY) {
        return Err(limit_error(
            "memory",
            format!("`{bytes}` bytes are too few to start anything"),
            "at least 6 MiB, as Docker demands too".into(),
        ));
    }
    if let Some(pids) = limits.pids.filter(|pids| *pids < 2) {
        return Err(limit_error(
            "pids",
            format!("`{pids}` is too few: the agent and its worker are two"),
            "at least 2".into(),
        ));
    }
    Ok(())
}

/// Returns the controllers that the limits need.
pub(super) fn controllers(limits: &Limits) -> Vec<&'static str> {
    [
        (limits.cpus.is_some(), "cpu"),
        (limits.cpuset.is_some(), "cpuset"),
        (limits.memory_bytes.is_some(), "memory"),
        (limits.pids.is_some(), "pids"),
    ]
    .into_iter()
    .filter_map(|(is_needed, controller)| is_needed.then_some(controller))
    .collect()
}

/// Returns the cgroup that has a controller.
fn with<'a>(groups: &'a [Group], controller: &str) -> Option<&'a Group> {
    groups.iter().find(|group| group.hierarchy.has(controller))
}

/// Writes the limits into the cgroups that have their controllers.
pub(super) fn set(limits: &Limits, groups: &[Group]) -> Result<(), LaunchError> {
    let put = |what: &str, file: &Path, text: &str, hint: String| {
        write(file, text).map_err(|error| LaunchError {
            step: format!("limit {what}"),
            problem: format!("`{text}` written to `{}`: {error}", file.display()),
            errno: error.raw_os_error(),
            hint: Some(hint),
        })
    };
    if let (Some(cpus), Some(group)) = (limits.cpus, with(groups, "cpu")) {
        let quota = (cpus * PERIOD_US).round();
        let hint = "the parent group may have a smaller quota".to_owned();
        if group.hierarchy.is_unified {
            put(
                "cpus",
                &group.folder.join("cpu.max"),
                &format!("{quota} {PERIOD_US}"),
                hint,
            )?;
        } else {
            let period = group.folder.join("cpu.cfs_period_us");
            put("cpus", &period, &format!("{PERIOD_US}"), hint.clone())?;
            put(
                "cpus",
                &group.folder.join("cpu.cfs_quota_us"),
                &format!("{quota}"),
                hint,
            )?;
        }
    }
    if let (Some(list), Some(group)) = (&limits.cpuset, with(groups, "cpuset")) {
        let file = if group.hierarchy.is_unified {
            "cpuset.cpus.effective"
        } else {
            "cpuset.cpus"
        };
        let usable = read(&group.hierarchy.own.join(file));
        let hint = format!("the processors that may be used here are `{usable}`");
        put(
            "cpuset",
            &group.folder.join("cpuset.cpus"),
            list,
            hint.clone(),
        )?;
        // Version 2 accepts any list and then falls back to the parent's CPUs.
        let got = read(&group.folder.join(file));
        if group.hierarchy.is_unified && !is_same_list(list, &got) {
            return Err(limit_error(
                "cpuset",
                format!("`{list}` became `{got}`"),
                hint,
            ));
        }
    }
    if let (Some(bytes), Some(group)) = (limits.memory_bytes, with(groups, "memory")) {
        let hint = "the parent group may hold more than that already".to_owned();
        let file = if group.hierarchy.is_unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        put("memory", &group.folder.join(file), &bytes.to_string(), hint)?;
    }
    if let (Some(pids), Some(group)) = (limits.pids, with(groups, "pids")) {
        let hint = "a whole number of processes".to_owned();
        put(
            "pids",
            &group.folder.join("pids.max"),
            &pids.to_string(),
            hint,
        )?;
    }
    Ok(())
}

/// Parses a CPU list such as `0-2,5`.
fn processors(list: &str) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for part in list
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        if high < low || high > 65_535 {
            return None;
        }
        found.extend(low..=high);
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

fn is_same_list(asked: &str, got: &str) -> bool {
    processors(asked).is_some_and(|asked| processors(got) == Some(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_limit_is_an_error_with_a_hint() {
        type Case = (&'static str, fn(&mut Limits));
        let cases: [Case; 5] = [
            ("cpus", |limits| limits.cpus = Some(1e6)),
            ("cpus", |limits| limits.cpus = Some(0.001)),
            ("cpus", |limits| limits.cpus = Some(f64::NAN)),
            ("memory", |limits| limits.memory_bytes = Some(1)),
            ("pids", |limits| limits.pids = Some(0)),
        ];
        for (what, ask) in cases {
            let mut limits = Limits::default();
            ask(&mut limits);
            let error = check(&limits).unwrap_err();
            assert!(error.step.ends_with(what), "{error}");
            assert!(error.hint.is_some());
        }
        assert!(check(&Limits::default()).is_ok());
    }

    #[test]
    fn two_spellings_of_the_same_processors_are_the_same() {
        assert!(is_same_list("0,1,2", "0-2"));
        assert!(!is_same_list("0-3", "0-2"));
        assert!(!is_same_list("99", ""));
        assert!(!is_same_list("x", "x"));
        assert_eq!(processors("3-1"), None);
    }
}
