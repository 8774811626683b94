//! Finds the interpreter behind a shim, once, before the first trial.
//!
//! pyenv, asdf and similar tools put a script named `python3` first on the search path, which picks an interpreter
//! depending on the working directory. Such a script cannot be measured: its hash is not the interpreter's, it picks
//! again in the directory of each trial, and in an image it finds no interpreter. If a study names a script, it is
//! therefore asked, in the user's working directory, which interpreter it starts; the study then runs, and is stored,
//! with the path of that interpreter.
//! Limits: shims that are compiled programs are not detected, and the name may mean something else on another
//! machine.

use std::path::Path;
use std::time::Duration;

use tare_model::{Params, Study, Value};

use crate::cx::{CommandLine, Context, files, vars};
use crate::workload::python_tool::{OWN_FILE, PYTHON};

/// Time limit; picking an interpreter may start several programs.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Returns the study with every shim replaced by the interpreter that it starts, and these pairs.
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

/// The interpreter that the script `named` starts; `None` if it is not a script, or gives no usable answer.
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
