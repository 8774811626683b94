//! Describes the counters of a command on both sides in words.

use tare_model::counter;
use tare_model::dossier::{DossierCounter, DossierWhy};
use tare_model::names::Measure;

use crate::number::{scale_for, significant, with_unit};

/// The name prefix of counters that the host kernel maintains.
pub(crate) const CHARGED: &str = "charged_";

/// Descriptions of the kernel's short counter names.
const NAMES: &[(&str, &str)] = &[
    (counter::MINFLT, "page faults"),
    (counter::MAJFLT, "page faults from a disk"),
    (counter::NVCSW, "waits"),
    (counter::NIVCSW, "times interrupted"),
    (counter::SYSCR, "reads"),
    (counter::SYSCW, "writes"),
    (counter::NR_THROTTLED, "times stopped by the quota"),
];

/// Describes a counter on both sides, its name without `prefix`; `None` if it is 0 on both.
fn counter_text(counter: &DossierCounter, prefix: &str) -> Option<String> {
    if [counter.base, counter.env]
        .into_iter()
        .flatten()
        .all(|it| it == 0.0)
    {
        return None;
    }
    let known = counter::COUNTERS.iter().find(|it| it.name == counter.name);
    let unit = match known.map(|it| it.measure) {
        Some(Measure::Nanoseconds) => "ns",
        Some(Measure::Bytes) => "B",
        _ => "count",
    };
    let shown = |value: Option<f64>| {
        let Some(value) = value else {
            return "–".to_owned();
        };
        let scale = scale_for(value, unit);
        let scaled = value / scale.factor;
        // Counts have no decimals, except a median between two counts.
        let is_whole = unit != "ns" && scaled.fract() == 0.0;
        let digits = if is_whole {
            0
        } else {
            significant(scaled.abs(), 3)
        };
        with_unit(&format!("{scaled:.digits$}"), scale)
    };
    let name = counter
        .name
        .trim_start_matches(prefix)
        .trim_end_matches("_ns");
    let name = NAMES
        .iter()
        .find(|(own, _)| *own == name)
        .map_or_else(|| name.replace('_', " "), |(_, name)| (*name).to_owned());
    let (base, env) = (shown(counter.base), shown(counter.env));
    Some(format!("{name} {base} → {env}"))
}

/// Returns the command's counters on both sides: those that start with `prefix`, or without one those that are not
/// charges.
pub(crate) fn counters(why: &DossierWhy, prefix: &str) -> Vec<String> {
    why.counters
        .iter()
        .filter(|counter| counter.name.starts_with(CHARGED) != prefix.is_empty())
        .filter_map(|counter| counter_text(counter, prefix))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_text_uses_counter_units() {
        let counter = DossierCounter {
            name: counter::CHARGED_WRITE.to_owned(),
            base: Some(4096.0),
            env: None,
        };
        let shown = counter_text(&counter, CHARGED);
        assert_eq!(shown.as_deref(), Some("write bytes 4\u{a0}KiB → –"));
    }
}
