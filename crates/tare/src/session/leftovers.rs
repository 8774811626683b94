//! Removes leftovers of killed runs, for `tare clean` and before a command measures.

use std::path::Path;

use tare_model::RunId;

use crate::cx::Context;
use crate::cx::files;
use crate::cx::owner::{self, Owner};
use crate::env;
use crate::failed::Failed;
use crate::output;

/// File in the folder of a killed run that could not be cleaned up before a command; the next command does not retry.
const TRIED: &str = "clean-tried";

/// Removes leftovers of killed runs before a run begins. What cannot be removed at once is left to `tare clean`.
pub(crate) fn before_a_run(cx: &Context<'_>, state: &Path) -> Result<(), Failed> {
    let dead = owner::dead_runs(state)?;
    let is_tried = |run: &&RunId| owner::folder(state, run).join(TRIED).exists();
    let (tried, new): (Vec<_>, Vec<_>) = dead.iter().partition(is_tried);
    let swept = sweep(cx, state, new)?;
    if !swept.removed.is_empty() {
        output::tell(&format!(
            "note: removed what killed runs had left ({})",
            swept.removed.join(", ")
        ));
    }
    for (run, problem) in &swept.problems {
        files::write(&owner::folder(state, run).join(TRIED), b"")?;
        output::tell(&format!("note: {problem}"));
    }
    if !tried.is_empty() || !swept.problems.is_empty() {
        output::tell(LEFTOVERS);
    }
    Ok(())
}

/// Note about remaining leftovers.
const LEFTOVERS: &str = "note: a killed run left files behind, maybe containers and copies of variables too: `tare clean` \
                         removes them";

/// Result of cleaning up after killed runs.
#[derive(Default)]
pub(crate) struct Swept {
    /// One line per removed thing.
    pub(crate) removed: Vec<String>,
    /// Why something of a run remains.
    pub(crate) problems: Vec<(RunId, String)>,
}

/// Lets every driver clean up after every dead run, even if another one fails. A run's folder is removed last and
/// only if nothing else remains, so that `tare clean` can retry. Meanwhile this process owns the run, so that no
/// other command resumes it.
pub(crate) fn sweep<'a>(
    cx: &Context<'_>,
    state: &Path,
    dead: impl IntoIterator<Item = &'a RunId>,
) -> Result<Swept, Failed> {
    let mut swept = Swept::default();
    for run in dead {
        // Another command may have resumed or removed it.
        let Some(owner) = Owner::take_dead(state, run)? else {
            continue;
        };
        let n_problems = swept.problems.len();
        for driver in env::DRIVERS {
            let id = driver.id();
            match driver.sweep(cx, run.as_str()) {
                Ok(lines) => {
                    let lines = lines.iter().map(|line| format!("{run}: {id}: {line}"));
                    swept.removed.extend(lines);
                }
                Err(error) => swept
                    .problems
                    .push((run.clone(), format!("{run}: {id}: {error}"))),
            }
        }
        if swept.problems.len() > n_problems {
            continue;
        }
        match owner.remove() {
            Ok(()) => swept.removed.push(format!("{run}: its folder")),
            Err(error) => swept
                .problems
                .push((run.clone(), format!("{run}: {error}"))),
        }
    }
    Ok(swept)
}
