//! How many instances of a workload may run at once, and of which workloads.
//!
//! The limits are what the machinery can keep its promises for, not what a machine can bear: that is for the
//! study to find out. What it cannot see: the memory of the machine.
//! This file is no workload.

use tare_model::{Recipe, Spread, WorkloadSpec};

use super::ParamError;

/// The name under which study files give the number of instances.
pub const PARAM: &str = "instances";

/// The probe that can do its work once in an environment.
const COPY_UP: &str = "copy-up";

/// Most instances at once, for each way to spread them.
pub fn most(spread: Spread) -> u32 {
    match spread {
        Spread::Processes => 256,
        Spread::Environments => 32,
    }
}

/// Why there are no more.
fn why(spread: Spread) -> &'static str {
    match spread {
        Spread::Processes => {
            "the agent holds three pipes for each, and 1024 open files are the usual limit"
        }
        Spread::Environments => "all environments run all the time",
    }
}

/// Whether so many instances of this recipe can run at once.
///
/// # Errors
/// No instance, too many, or a recipe of which several at once mean nothing; `param` is [`PARAM`].
pub fn check(spec: &WorkloadSpec, recipe: &Recipe) -> Result<(), ParamError> {
    let refused = |problem: String, hint: Option<String>| {
        Err(ParamError {
            param: PARAM.to_owned(),
            problem,
            hint,
        })
    };
    let Some(spread) = spec.spread else {
        if spec.instances == 1 {
            return Ok(());
        }
        return refused(
            format!(
                "`{}` has {} instances and nothing says where they run",
                spec.id, spec.instances
            ),
            Some("`spread` is `processes` or `environments`".to_owned()),
        );
    };
    let most = most(spread);
    if spec.instances == 0 {
        return refused(
            "there cannot be 0 instances".to_owned(),
            Some("the least is 1".to_owned()),
        );
    }
    if spec.instances > most {
        return refused(
            format!("{} instances are too many", spec.instances),
            Some(format!(
                "at most {most} run as {}: {}",
                spread.name(),
                why(spread)
            )),
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
                Some("add `spread = \"environments\"`".to_owned()),
            )
        }
        Recipe::Probe(_) => Ok(()),
        Recipe::Pair { .. } => refused(
            format!(
                "`{}` has two ends on this path, and several at once are not distinguished",
                spec.id
            ),
            Some("run it over `loopback`, or remove `instances`".to_owned()),
        ),
        Recipe::Cluster { .. } => refused(
            format!(
                "`{}` has several nodes already, and several clusters at once are not distinguished",
                spec.id
            ),
            Some("remove `instances`, and say how many nodes it has".to_owned()),
        ),
        Recipe::Lifecycle => refused(
            format!(
                "`{}` starts and stops an environment and runs nothing in it",
                spec.id
            ),
            Some("remove `instances`".to_owned()),
        ),
    }
}
