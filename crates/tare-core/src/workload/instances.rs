//! Checks how many instances of a workload may run at once, and of which workloads.
//!
//! The limits are Tare's, not the machine's; a study finds the latter.
//! Limits: does not check the machine's memory.
//! Not a workload itself.

use tare_model::{Recipe, Spread, WorkloadSpec};

use super::ParamError;

/// The key for the number of instances in study files.
pub const PARAM: &str = "instances";

/// The probe that can work only once in an environment.
const COPY_UP: &str = "copy-up";

/// The maximum number of instances for each way to spread them.
pub fn most(spread: Spread) -> u32 {
    match spread {
        Spread::Processes => 256,
        Spread::Environments => 32,
    }
}

/// The reason for the maximum.
fn why(spread: Spread) -> &'static str {
    match spread {
        Spread::Processes => {
            "the agent holds three pipes for each, and 1024 open files are the usual limit"
        }
        Spread::Environments => "all environments run all the time",
    }
}

/// Checks whether the requested instances of this recipe can run at once.
///
/// # Errors
/// There are no instances or too many, or several of the recipe make no sense; `param` is [`PARAM`].
pub fn check(spec: &WorkloadSpec, recipe: &Recipe) -> Result<(), ParamError> {
    let refused = |problem: String, hint: &str| Err(ParamError::new(PARAM, problem, hint));
    let Some(spread) = spec.spread else {
        if spec.instances == 1 {
            return Ok(());
        }
        return refused(
            format!(
                "`{}` has {} instances and nothing says where they run",
                spec.id, spec.instances
            ),
            "`spread` is `processes` or `environments`",
        );
    };
    let most = most(spread);
    if spec.instances == 0 {
        return refused("there cannot be 0 instances".to_owned(), "the least is 1");
    }
    if spec.instances > most {
        return refused(
            format!("{} instances are too many", spec.instances),
            &format!("at most {most} run as {}: {}", spread.name(), why(spread)),
        );
    }
    match recipe {
        Recipe::Probe(call)
            if call.name == COPY_UP && spread == Spread::Processes && spec.instances > 1 =>
        {
            refused(
                format!(
                    "`{}` copies a file up that an environment has only one of",
                    spec.id
                ),
                "add `spread = \"environments\"`",
            )
        }
        Recipe::Probe(_) => Ok(()),
        Recipe::Pair { .. } => refused(
            format!(
                "`{}` has two ends on this path, and several at once are not distinguished",
                spec.id
            ),
            "run it over `loopback`, or remove `instances`",
        ),
        Recipe::Cluster { .. } => refused(
            format!(
                "`{}` has several nodes already, and several clusters at once are not distinguished",
                spec.id
            ),
            "remove `instances`, and say how many nodes it has",
        ),
        Recipe::Lifecycle { .. } => refused(
            format!(
                "`{}` starts and stops an environment and runs nothing in it",
                spec.id
            ),
            "`held = N` in its parameters holds N idle ones meanwhile",
        ),
    }
}
