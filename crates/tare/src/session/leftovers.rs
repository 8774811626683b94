//! What killed runs left behind: removed by `tare clean`, and before a command measures.

use std::path::Path;

use tare_model::RunId;

use crate::cx::Context;
use crate::cx::files;
use crate::cx::owner::{self, Owner};
use crate::env;
use crate::failed::Failed;
use crate::output;

/// In the folder of a killed run that a command could not remove before it began: the next does not try again.
const TRIED: &str = "clean-tried";

/// Removes what killed runs left, before a run begins. What cannot be removed at once is left to `tare clean`.
pub(crate) fn before_a_run(cx: &Context<'_>, state: &Path) -> Result<(), Failed> {
    let dead = owner::dead_runs(state)?;
    let is_tried = |run: &&RunId| owner::folder(state, run).join(TRIED).exists();
    let (tried, new): (Vec<_>, Vec<_>) = dead.iter().partition(is_tried);
    let swept = sweep(cx, state, new)?;
    if !swept.removed.is_empty() {
        output::tell(&format!(
            "note: removed what killed runs had left ({})",
            output::printable(&swept.removed.join(", "))
        ));
    }
    for (run, problem) in &swept.problems {
        files::write(&owner::folder(state, run).join(TRIED), b"")?;
        output::tell(&format!("note: {}", output::printable(problem)));
    }
    if !tried.is_empty() || !swept.problems.is_empty() {
        output::tell(LEFTOVERS);
    }
    Ok(())
}

/// What a killed run has done.
const LEFTOVERS: &str = "note: a killed run left files behind, maybe containers and copies of variables too: `tare clean` \
                         removes them";

/// What became of the leftovers of killed runs.
#[derive(Default)]
pub(crate) struct Swept {
    /// A line each.
    pub(crate) removed: Vec<String>,
    /// Why something of a run is still there.
    pub(crate) problems: Vec<(RunId, String)>,
}

/// Every driver is asked about every dead run, whatever the others answered; a run's folder goes last and
/// only if nothing of it is left, so that another `tare clean` can try again. Meanwhile the run is owned here, so
/// that no other command resumes what is being removed.
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
