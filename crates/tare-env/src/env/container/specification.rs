//! Writes the launcher's specification and reads its report.

use crate::env::prelude::*;

use tare_model::launch::{LaunchReport, LaunchSpec, RUN_VARIABLE, Rootfs};

use super::super::private;
use super::WORKDIR;
use super::layers::Layers;
use super::settings::Settings;

/// The launcher's specification of an instance.
pub(super) fn specification(
    cx: &Context<'_>,
    (settings, layers): (&Settings, Option<&Layers>),
    name: &str,
    folder: &Path,
    arguments: &[&str],
) -> LaunchSpec {
    let workdir = match settings.rootfs {
        Rootfs::Overlay => WORKDIR.to_owned(),
        Rootfs::Host => folder.join("files").display().to_string(),
    };
    let argv = std::iter::once("agent").chain(arguments.iter().copied());
    let (hidden, mut binds) = if settings.private_paths {
        let hidden = private::paths(cx.store);
        let programs = private::programs(&hidden);
        (hidden, programs)
    } else {
        (Vec::new(), Vec::new())
    };
    binds.extend(layers.iter().flat_map(|layers| &layers.binds).cloned());
    binds.extend(settings.binds.iter().cloned());
    let agent = cx.agent.pinned().display().to_string();
    let scratch = folder.display().to_string();
    let argv = argv.map(str::to_owned).collect();
    LaunchSpec {
        namespaces: settings.namespaces.clone(),
        rootfs: settings.rootfs,
        lower: layers.map_or_else(Vec::new, |layers| layers.lower.clone()),
        mounts: settings.mounts,
        masked_paths: settings.masked_paths,
        docker: settings.docker.unwrap_or_default(),
        hidden,
        device_rules: settings.device_rules,
        capabilities: settings.capabilities.clone(),
        no_new_privs: settings.no_new_privs,
        seccomp: settings.seccomp,
        seccomp_spec_allow: settings.seccomp_spec_allow,
        ssbd: settings.ssbd,
        cgroup: settings.cgroup,
        limits: settings.limits.clone(),
        network: settings.network,
        workdir,
        stdio: settings.stdio,
        parent: Some(std::process::id()),
        // Another root has its own variables.
        clean_environment: settings.clean_environment && layers.is_none(),
        binds,
        ..LaunchSpec::apart(cx.run.clone(), name, argv, &agent, &scratch)
    }
}

/// Writes the specification and returns the launcher's command.
pub(super) fn write(
    cx: &Context<'_>,
    spec: &LaunchSpec,
    layers: Option<&Layers>,
    folder: &Path,
) -> Result<CommandLine> {
    files::create_folder(folder)?;
    let path = folder.join("spec.json");
    let bytes = serde_json::to_vec(spec).expect("plain data with text keys becomes JSON");
    files::write_working(&path, &bytes)?;
    let arguments = ["launch".to_owned(), path.display().to_string()];
    let mut command = cx.agent.command(arguments);
    if let Some(layers) = layers {
        command = command.with_variables_alone();
        for (name, text) in &layers.variables {
            command = command.variable(name, text.as_str());
        }
    }
    Ok(command.variable(RUN_VARIABLE, cx.run.as_str()))
}

/// The launcher's current report, if it has written one.
pub(super) fn read_report(folder: &Path) -> Option<LaunchReport> {
    let text = files::read_text(&folder.join("report.json")).ok()?;
    serde_json::from_str(&text).ok()
}
