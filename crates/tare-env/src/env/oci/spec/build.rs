//! Applies the settings to a specification: Tare's, or the user's.
//!
//! Limits: a runtime may ignore what it is asked for.

use serde_json::json;
use tare_model::launch::{DOCKER_CAPABILITIES, Network, READ_ONLY_PATHS};
use tare_model::whole_part;

use super::super::seccomp;
use super::super::settings::{
    Capabilities as RequestedCapabilities, OPTIONAL_NAMESPACES, Settings,
};
use super::{
    AGENT, Built, Namespace, PERIOD_US, Remarks, Spec, SpecTarget, WORKDIR, cover, mount, show,
};
use crate::env::EnvError;

/// Returns the capabilities that can be granted: only those that Tare has.
fn give(
    wanted: RequestedCapabilities,
    available: &[String],
    remarks: &mut Remarks,
) -> Result<Vec<String>, EnvError> {
    let (names, is_listed) = match wanted {
        RequestedCapabilities::All => return Ok(available.to_vec()),
        RequestedCapabilities::Group(names) => (names, false),
        RequestedCapabilities::Listed(names) => (names, true),
    };
    let (given, lacking): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| available.contains(name));
    if lacking.is_empty() {
        return Ok(given);
    }
    let lacking = lacking.join(", ");
    if is_listed {
        return Err(EnvError::denied(
            format!("Tare itself does not have {lacking}, so it cannot give it"),
            "start Tare with that capability, or leave it out of `caps`",
        ));
    }
    remarks.push((
        "caps",
        format!("not given, as Tare does not have it: {lacking}"),
    ));
    Ok(given)
}

fn set_limits(spec: &mut Spec, settings: &Settings) {
    let limits = &settings.limits;
    let resources = &mut spec.linux.resources;
    if let Some(cpus) = limits.cpus {
        let quota = whole_part((cpus * PERIOD_US as f64).round());
        resources.cpu.insert("quota".into(), json!(quota));
        resources.cpu.insert("period".into(), json!(PERIOD_US));
    }
    if let Some(cpuset) = &limits.cpuset {
        resources.cpu.insert("cpus".into(), json!(cpuset));
    }
    if let Some(bytes) = limits.memory_bytes {
        resources.memory.insert("limit".into(), json!(bytes));
    }
    if let Some(pids) = limits.pids {
        resources.pids.insert("limit".into(), json!(pids));
    }
}

/// Removes from a user's or Docker's specification what would reach beyond the container or into the engine that
/// created it.
fn isolate(spec: &mut Spec, remarks: &mut Remarks) {
    if spec.hooks.take().is_some() {
        remarks.push((
            "hooks",
            "dropped: they belong to the engine that wrote them".into(),
        ));
    }
    for kind in ["mount", "pid", "network"] {
        let joined = spec
            .linux
            .namespaces
            .iter()
            .find(|one| one.kind == kind)
            .and_then(|one| one.path.clone());
        if let Some(path) = joined {
            spec.set_namespace(kind, Some(Namespace::new(kind)));
            remarks.push((kind, format!("a new namespace instead of that of `{path}`")));
        }
    }
    spec.process.terminal = false;
    spec.process.rest.remove("consoleSize");
    spec.process.cwd = "/".into();
}

/// Sets the container's namespaces.
fn set_namespaces(
    spec: &mut Spec,
    settings: &Settings,
    place: &SpecTarget<'_>,
    is_own: bool,
    remarks: &mut Remarks,
) {
    if let Some(wanted) = &settings.namespaces {
        for kind in OPTIONAL_NAMESPACES {
            let namespace = wanted.contains(&kind).then(|| Namespace::new(kind));
            spec.set_namespace(kind, namespace);
        }
    }
    for kind in ["mount", "pid"] {
        if !spec.linux.namespaces.iter().any(|one| one.kind == kind) {
            spec.set_namespace(kind, Some(Namespace::new(kind)));
            if !is_own {
                remarks.push((kind, "a new namespace instead of the host's".into()));
            }
        }
    }
    match settings.network {
        None => {}
        Some(Network::Host) => spec.set_namespace("network", None),
        Some(Network::None | Network::Veth) => {
            let mut namespace = Namespace::new("network");
            namespace.path.clone_from(&place.netns);
            spec.set_namespace("network", Some(namespace));
        }
    }
    if !spec.has_namespace("uts") {
        // It would be set for the host, which runtimes refuse.
        spec.hostname = None;
    }
    for name in spec.drop_sysctls_of_the_host() {
        let without = format!("without `{name}`, which would be set for the host");
        remarks.push(("sysctl", without));
    }
}

/// Sets capabilities, seccomp filter and masked paths; for Tare's specification (`is_own`) the default is Docker's.
fn set_rights(
    spec: &mut Spec,
    settings: &Settings,
    place: &SpecTarget<'_>,
    is_own: bool,
    remarks: &mut Remarks,
) -> Result<(), EnvError> {
    let usual = || RequestedCapabilities::Group(DOCKER_CAPABILITIES.map(str::to_owned).to_vec());
    let wanted = settings.capabilities.clone();
    if let Some(wanted) = wanted.or_else(|| is_own.then(usual)) {
        spec.set_capabilities(give(wanted, place.available, remarks)?);
    }
    match settings.has_seccomp.or(is_own.then_some(true)) {
        None => {}
        Some(false) => spec.linux.seccomp = None,
        Some(true) => {
            let filter = seccomp::docker_default(place.release, &spec.capabilities(), place.kernel);
            spec.linux.seccomp = Some(filter);
        }
    }
    if let Some(no_new_privs) = settings.no_new_privs {
        spec.process.no_new_privileges = no_new_privs;
    }
    if let Some(is_masked) = settings.masked_paths.or(is_own.then_some(true)) {
        let of = |paths: &[&str]| {
            let masked = paths.iter().filter(|_| is_masked);
            masked.map(ToString::to_string).collect()
        };
        let hidden: Vec<&str> = place.release.masked_paths().collect();
        spec.linux.masked_paths = of(&hidden);
        spec.linux.readonly_paths = of(&READ_ONLY_PATHS);
    }
    Ok(())
}

/// Sets the root, bind mounts, program and cgroup of the container.
fn set_program(spec: &mut Spec, place: &SpecTarget<'_>, remarks: &mut Remarks) {
    spec.root.path.clone_from(&place.root);
    let covers = place.hidden.iter().map(cover);
    let shown = covers.chain(place.shown.iter().map(show));
    spec.mounts.splice(0..0, shown);
    if spec.root.readonly {
        let files = mount(WORKDIR, "bind", &place.files, &["rbind", "rw"]);
        spec.mounts.push(files);
        let remark = "a folder of the host, as the root is read-only";
        remarks.push(("workdir", remark.into()));
    }
    let arguments = place.arguments.iter().copied();
    let process = &mut spec.process;
    process.args = std::iter::once(AGENT)
        .chain(arguments)
        .map(str::to_owned)
        .collect();
    process
        .env
        .retain(|variable| !variable.starts_with("TARE_RUN="));
    process.env.push(format!("TARE_RUN={}", place.run));
    spec.linux.cgroups_path = Some(format!("/{}", place.id));
}

/// Applies the settings to Tare's own specification, or to `base`.
pub(crate) fn build(
    base: Option<&Spec>,
    settings: &Settings,
    place: &SpecTarget<'_>,
) -> Result<Built, EnvError> {
    let mut remarks = Vec::new();
    let mut spec = base.cloned().unwrap_or_else(Spec::own);
    let is_own = base.is_none();
    if !is_own {
        isolate(&mut spec, &mut remarks);
    }
    set_namespaces(&mut spec, settings, place, is_own, &mut remarks);
    set_rights(&mut spec, settings, place, is_own, &mut remarks)?;
    set_limits(&mut spec, settings);
    set_program(&mut spec, place, &mut remarks);
    let network = settings.network.unwrap_or_else(|| spec.network());
    Ok(Built {
        spec,
        network,
        remarks,
    })
}
