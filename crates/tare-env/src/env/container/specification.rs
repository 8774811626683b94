//! Writes the launcher's specification and reads its report.

use crate::env::prelude::*;

use tare_model::launch::{LaunchReport, LaunchSpec, RUN_VARIABLE, Rootfs};

use super::super::private;
use super::WORKDIR;
use super::layers::Layers;
use super::settings::Settings;

/// The report's name in the instance's folder.
const REPORT: &str = "report.json";

/// The launcher's specification of an instance.
pub(super) fn specification(
    cx: &Context<'_>,
    (settings, layers): (&Settings, Option<&Layers>),
    name: &str,
    folder: &Path,
    arguments: &[&str],
) -> LaunchSpec {
    let spec = settings.launch.clone();
    let workdir = match spec.rootfs {
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
    binds.extend(spec.binds);
    LaunchSpec {
        run: cx.run.clone(),
        name: name.to_owned(),
        argv: argv.map(str::to_owned).collect(),
        agent: cx.agent.pinned().display().to_string(),
        scratch: folder.display().to_string(),
        report: folder.join(REPORT).display().to_string(),
        lower: layers.map_or_else(Vec::new, |layers| layers.lower.clone()),
        docker: settings.docker.unwrap_or_default(),
        hidden,
        workdir,
        parent: Some(std::process::id()),
        // Another root has its own variables.
        clean_environment: spec.clean_environment && layers.is_none(),
        binds,
        ..spec
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
    let text = files::read_text(&folder.join(REPORT)).ok()?;
    serde_json::from_str(&text).ok()
}
