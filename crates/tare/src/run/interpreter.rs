//! The interpreter behind a shim, found once, before the first trial.
//!
//! pyenv, asdf and their like put a script named `python3` first on the search path, which chooses an interpreter
//! by the folder that it is called in. Such a script is no program to measure: its hash is not the interpreter's,
//! it chooses anew in the folder of each trial, and packed into an image it finds nothing there. So where a study
//! names an interpreter that is a script here, the script is asked, in the user's own folder, which interpreter it
//! starts, and the study is carried out, and stored, with that one's path.
//! What it cannot see: a shim that is a compiled program, and what the same name means on another machine.

use std::path::Path;
use std::time::Duration;

use tare_model::{Params, Study, Value};

use crate::cx::{CommandLine, Context, files, vars};
use crate::workload::python_tool::{OWN_FILE, PYTHON};

/// Choosing an interpreter may start several programs.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// The study with every shim replaced by the interpreter that it starts here, and each of these pairs.
pub fn without_shims(cx: &Context<'_>, study: &Study) -> (Study, Vec<(String, String)>) {
    let folders = vars::text("PATH").unwrap_or_default();
    let mut study = study.clone();
    let mut resolved: Vec<(String, String)> = Vec::new();
    for workload in &mut study.workloads {
        let Some(named) = workload.params.text(PYTHON.name).map(str::to_owned) else {
            continue;
        };
        let known = resolved.iter().find(|(shim, _)| *shim == named);
        let Some(real) = known
            .map(|(_, real)| real.clone())
            .or_else(|| behind(cx, &named, &folders))
        else {
            continue;
        };
        let params = std::mem::replace(&mut workload.params, Params::new());
        workload.params = params.with(PYTHON.name, Value::Text(real.clone()));
        if known.is_none() {
            resolved.push((named, real));
        }
    }
    (study, resolved)
}

/// The interpreter that the script `named` starts; `None` where it is none, or does not say.
fn behind(cx: &Context<'_>, named: &str, folders: &str) -> Option<String> {
    let file = files::program(named, folders, Path::new(""))?;
    if !is_script(&file) {
        return None;
    }
    let question = CommandLine::new(file.to_str()?, ["-c", OWN_FILE]);
    let finished = cx.exec.run(&question, b"", ASK_LIMIT).ok()?;
    let answer = String::from_utf8(finished.stdout).ok()?;
    let real = answer.trim_end_matches(['\r', '\n']);
    let is_real = finished.status == Some(0)
        && Path::new(real).is_absolute()
        && files::is_program(Path::new(real))
        && !is_script(Path::new(real));
    is_real.then(|| real.to_owned())
}

fn is_script(path: &Path) -> bool {
    files::head(path, 2).is_ok_and(|head| head == b"#!")
}
