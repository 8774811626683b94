//! Resolves `--metric` to a metric.

use tare_model::command::Pick;

use super::super::{Exit, Failed, output, service};
use super::Why;
use crate::workload::user_command;

/// Returns the metric, and the number to pick if it is read from the output.
pub(super) fn from_arguments(asked: &Why) -> Result<(&'static str, Option<Pick>), Failed> {
    if asked.service.given().is_some()
        && let Some(found) = service::metric(&asked.metric, asked.service.is_by_url())?
    {
        return Ok(found);
    }
    let pick = match asked.metric.as_str() {
        "wall" => return Ok((user_command::WALL, None)),
        "cpu" => return Ok((user_command::CPU, None)),
        pattern => Pick {
            pattern: pattern.to_owned(),
            more_is_better: asked.more_is_better,
            metric: None,
        },
    };
    user_command::compiled(&pick.pattern).map_err(|problem| {
        Failed::new(
            Exit::Usage,
            format!(
                "`--metric {}` is no regular expression: {problem}",
                output::printable(&pick.pattern)
            ),
        )
        .hint("`wall`, `cpu`, or for example `--metric 'total: ([0-9.]+) s'`")
    })?;
    let metric = if pick.more_is_better {
        user_command::RATE
    } else {
        user_command::COST
    };
    Ok((metric, Some(pick)))
}
