//! Reads and checks the specification: contradictory ones are refused before anything is made.

use std::fs;
use std::path::Path;

use tare_model::launch::{LaunchError, LaunchSpec, Missing, Network, Rootfs, UserNamespace};
use tare_model::wire::Json as _;

use super::sys;

/// A checked specification.
#[derive(Debug)]
pub(super) struct Plan {
    /// The requested container.
    pub(super) spec: LaunchSpec,
    /// Whether a user namespace is entered.
    pub(super) has_user_namespace: bool,
    /// Whether the launcher is an ordinary user.
    pub(super) is_rootless: bool,
    /// Whether the network is a veth pair.
    pub(super) has_pair: bool,
}

fn wrong(problem: impl Into<String>, hint: impl Into<String>) -> LaunchError {
    LaunchError {
        step: "read the specification".into(),
        problem: problem.into(),
        errno: None,
        hint: Some(hint.into()),
    }
}

/// Reads a specification from a file.
pub(super) fn read(path: &Path) -> Result<LaunchSpec, LaunchError> {
    let text = fs::read(path).map_err(super::refused(&format!("read `{}`", path.display())))?;
    LaunchSpec::from_json(&text).map_err(|error| {
        wrong(
            format!("`{}`: {error}", path.display()),
            "host and agent must be of the same build",
        )
    })
}

/// Returns whether a name is valid: it becomes part of a path and of a device's label.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Checks a specification; features that an ordinary user cannot have are removed and added to `missing`.
pub(super) fn plan(spec: LaunchSpec, missing: &mut Vec<Missing>) -> Result<Plan, LaunchError> {
    let is_rootless = sys::effective_user() != 0;
    plan_for(spec, is_rootless, missing)
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

/// Refuses paths that are relative or contain `..`, and hiding the root.
fn check_paths(spec: &LaunchSpec) -> Result<(), LaunchError> {
    let is_root = |path: &str| path.trim_end_matches('/').is_empty();
    let hidden = spec.hidden.iter();
    let hidden = hidden.filter(|path| !is_absolute(path) || is_root(path));
    let bound = spec
        .binds
        .iter()
        .flat_map(|bind| [&bind.source, &bind.target]);
    let bound = bound.filter(|path| !is_absolute(path));
    let shared = spec.shared.iter().map(|folder| &folder.target);
    let wrong_paths = [&spec.workdir]
        .into_iter()
        .filter(|path| !is_absolute(path))
        .map(|path| (path, "is no working directory"))
        .chain(hidden.map(|path| (path, "cannot be hidden")))
        .chain(bound.map(|path| (path, "is no path to be bound")))
        .chain(
            shared
                .filter(|path| !is_absolute(path))
                .map(|path| (path, "is no place for a folder")),
        )
        .next();
    wrong_paths.map_or(Ok(()), |(path, what)| {
        Err(wrong(
            format!("`{}` {what}", path.escape_debug()),
            "absolute paths without `..`, and to be hidden none that is the root",
        ))
    })
}

/// Refuses impossible or contradictory specifications.
fn check(spec: &LaunchSpec, may_do_without_root: bool) -> Result<(), LaunchError> {
    if !is_name(&spec.name) {
        return Err(wrong(
            format!("`{}` is no instance's name", spec.name.escape_debug()),
            "letters, digits, `.`, `_` and `-`",
        ));
    }
    check_paths(spec)?;
    let mounts = [spec.mounts.proc, spec.mounts.sys, spec.mounts.dev];
    let needs_mounts = spec.rootfs == Rootfs::Overlay
        || mounts.contains(&true)
        || spec.masked_paths
        || !spec.hidden.is_empty();
    let contradictions = [
        (
            spec.argv.is_empty(),
            "there is no program to start",
            "fill `argv`",
        ),
        (
            needs_mounts && !spec.namespaces.mount,
            "an overlay, new mounts, masked and hidden paths need the mount namespace",
            "add `mount` to the namespaces, or use rootfs = \"host\", masked_paths = false and private_paths = false",
        ),
        (
            !spec.binds.is_empty() && !spec.namespaces.mount,
            "binds need the mount namespace",
            "add `mount` to the namespaces, or leave the binds out",
        ),
        (
            spec.namespaces.net == (spec.network == Network::Host),
            "the network is the host's if, and only if, there is no network namespace",
            "remove `net` from the namespaces for network = \"host\", and only then",
        ),
        (
            !spec.limits.is_empty() && !spec.cgroup,
            "limits need cgroups of their own",
            "set `cgroup`",
        ),
        (
            !may_do_without_root,
            "without root nothing but a user namespace allows the rest",
            "run as root, or add `user` to the namespaces",
        ),
    ];
    let found = contradictions.iter().find(|(is_so, ..)| *is_so);
    found.map_or(Ok(()), |(_, problem, hint)| Err(wrong(*problem, *hint)))
}

fn plan_for(
    mut spec: LaunchSpec,
    is_rootless: bool,
    missing: &mut Vec<Missing>,
) -> Result<Plan, LaunchError> {
    let has_user_namespace = match spec.namespaces.user {
        UserNamespace::Yes => true,
        UserNamespace::No => false,
        UserNamespace::IfNeeded => is_rootless,
    };
    check(&spec, has_user_namespace || !is_rootless)?;
    let has_pair = spec.network == Network::Veth && !is_rootless;
    if spec.network == Network::Veth && is_rootless {
        missing.push(Missing {
            what: Missing::VETH.into(),
            why: "only root can put a device into the host's network namespace; \
                  there is a loopback device only"
                .into(),
        });
    }
    if spec.siblings.is_some() && (is_rootless || !spec.namespaces.net) {
        spec.siblings = None;
        missing.push(Missing {
            what: Missing::SIBLINGS.into(),
            why: if is_rootless {
                "only root can plug a container into a bridge".into()
            } else {
                "there is no network namespace to plug into it".into()
            },
        });
    }
    Ok(Plan {
        spec,
        has_user_namespace,
        is_rootless,
        has_pair,
    })
}

/// Returns the label from which an instance's addresses and device name are derived.
pub(super) fn label(run: &str, name: &str) -> String {
    format!("{run}/{name}")
}

impl Plan {
    /// Returns the flags of the namespaces in which the first process is created. The cgroup namespace is not among
    /// them: it must be entered after joining the cgroup, because its root is the process's cgroup at that moment.
    pub(super) fn namespace_flags(&self) -> libc::c_int {
        let names = &self.spec.namespaces;
        [
            (self.has_user_namespace, libc::CLONE_NEWUSER),
            (names.mount, libc::CLONE_NEWNS),
            (names.pid, libc::CLONE_NEWPID),
            (names.uts, libc::CLONE_NEWUTS),
            (names.ipc, libc::CLONE_NEWIPC),
            (names.net, libc::CLONE_NEWNET),
        ]
        .into_iter()
        .filter(|(is_wanted, _)| *is_wanted)
        .fold(0, |flags, (_, flag)| flags | flag)
    }

    /// Returns the name of the instance's cgroups.
    pub(super) fn cgroup_name(&self) -> String {
        format!("tare-{}-{}", self.spec.run, self.spec.name)
    }

    /// Returns the label from which the instance's addresses and device name are derived.
    pub(super) fn label(&self) -> String {
        label(self.spec.run.as_str(), &self.spec.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::RunId;

    fn spec() -> LaunchSpec {
        let argv = vec!["agent".into(), "true".into()];
        let run = RunId::new("run").unwrap();
        LaunchSpec::apart(run, "arm-1", argv, "/proc/self/exe", "/tmp")
    }

    #[test]
    fn unprivileged_plan_has_user_namespace_and_no_veth() {
        let mut missing = Vec::new();
        let plan = plan_for(spec(), true, &mut missing).unwrap();
        assert!(plan.has_user_namespace && !plan.has_pair);
        assert!(missing[0].what.contains("veth"));
        let plan = plan_for(spec(), false, &mut Vec::new()).unwrap();
        assert!(!plan.has_user_namespace && plan.has_pair);
        assert_eq!(plan.cgroup_name(), "tare-run-arm-1");
    }

    #[test]
    fn sibling_network_requires_root_and_net_namespace() {
        let mut spec = spec();
        spec.siblings = Some(tare_model::launch::SiblingLink {
            hub: 1,
            number: 1,
            address: [192, 0, 2, 1].into(),
            prefix_bits: 24,
        });
        let plan = plan_for(spec.clone(), false, &mut Vec::new()).unwrap();
        assert!(plan.spec.siblings.is_some());
        let mut missing = Vec::new();
        let plan = plan_for(spec.clone(), true, &mut missing).unwrap();
        assert!(plan.spec.siblings.is_none());
        assert!(missing.iter().any(|one| one.why.contains("only root")));
        spec.namespaces.net = false;
        spec.network = Network::Host;
        let plan = plan_for(spec, false, &mut Vec::new()).unwrap();
        assert!(plan.spec.siblings.is_none());
    }

    #[test]
    fn contradictory_launch_spec_is_an_error_with_a_hint() {
        let changes: [fn(&mut LaunchSpec); 7] = [
            |spec| spec.namespaces.mount = false,
            |spec| spec.network = Network::Host,
            |spec| spec.name = "../x".into(),
            |spec| spec.argv.clear(),
            |spec| spec.hidden = vec!["/".into()],
            |spec| spec.workdir = "/a/../b".into(),
            |spec| {
                spec.cgroup = false;
                spec.limits.pids = Some(10);
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut spec = spec();
            change(&mut spec);
            let error = plan_for(spec, false, &mut Vec::new()).unwrap_err();
            assert!(error.hint.is_some(), "{number}: {error}");
        }
        let mut spec = spec();
        spec.namespaces.user = UserNamespace::No;
        assert!(plan_for(spec, true, &mut Vec::new()).is_err());
    }
}
