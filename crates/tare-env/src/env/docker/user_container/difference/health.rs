//! The health check of a container as a difference: it runs periodically next to the program.

use super::{Pair, Part, Switch};

/// The interval of an engine's health checks, from its configuration; 30 s by default.
pub(crate) fn check_ns(interval_ns: i64) -> u64 {
    match u64::try_from(interval_ns) {
        Ok(0) | Err(_) => 30_000_000_000,
        Ok(interval_ns) => interval_ns,
    }
}

/// The periodic health check, which runs next to the program and under its limits.
pub(super) fn part(pair: Pair<'_>) -> Option<Part> {
    let test = pair.body["Healthcheck"]["Test"].as_array();
    let test = test.filter(|test| !test.is_empty());
    let every_ns = match test {
        Some(test) if test[0] == "NONE" => None,
        Some(_) => Some(check_ns(
            pair.body["Healthcheck"]["Interval"].as_i64().unwrap_or(0),
        )),
        None => pair.images_check_ns,
    };
    let what = match test {
        Some(_) => "the health check (`--health-cmd`)",
        None => "the image's health check",
    };
    let mut part = Part::new(
        "health",
        what,
        "check less often (`--health-interval`, in a compose file: `interval:` below `healthcheck:`) or by less; as a measurement: `--no-healthcheck`",
        "a program that hangs is not reported",
        0.4,
        Switch::HealthCheck,
    );
    part.difference.every_ns = Some(every_ns?);
    Some(part)
}
