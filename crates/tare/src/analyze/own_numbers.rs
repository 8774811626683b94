//! Claims held against the numbers of those who made them.
//!
//! The same rule, with the same bounds, decides from the published means: of several numbers in one place their mean
//! counts, and a number that is wrong in its publication counts as what it should have been. There are no intervals,
//! so every ratio lies within the bounds or not; that a claim's own data are against it is worth knowing, and that
//! they are for it is no proof.
//! What it cannot see: numbers that stand in figures only.

use tare_model::dossier::DossierOwnNumbers;
use tare_model::publication::{Place, Rule};
use tare_model::{Better, ClaimVerdict};

use super::rule::{Look, of_several, three, wanted};
use crate::workload::WORKLOADS;

/// What the rule says of the published numbers; `None` where they are not enough for it.
pub(super) fn judged(rule: &Rule, look: &Look<'_>) -> Option<DossierOwnNumbers> {
    let bounds = rule.bounds()?;
    let is_within = |ratio: f64| bounds.0 <= ratio && ratio <= bounds.1;
    let (ratios, n) = ratios(rule, look);
    if rule.several().is_none() {
        let ratio = *ratios.first()?;
        return Some(DossierOwnNumbers {
            holds: is_within(ratio),
            because: format!("× {}, and {} was claimed", three(ratio), wanted(bounds)),
        });
    }
    let holds = ratios.iter().filter(|ratio| is_within(**ratio)).count();
    let outcome = of_several(rule, holds, ratios.len() - holds, n);
    let decides = matches!(outcome, ClaimVerdict::Holds | ClaimVerdict::Fails);
    let shown: Vec<String> = ratios.iter().map(|ratio| three(*ratio)).collect();
    (decides && !ratios.is_empty()).then(|| DossierOwnNumbers {
        holds: outcome == ClaimVerdict::Holds,
        because: format!(
            "{holds} of {n} are {}: × {}",
            wanted(bounds),
            shown.join(", ")
        ),
    })
}

/// The ratios that a rule is about, as far as there are numbers for them; and how many there should be.
fn ratios(rule: &Rule, look: &Look<'_>) -> (Vec<f64>, usize) {
    let one = |found: Option<f64>| (found.into_iter().collect(), 1);
    let baseline = look.baseline();
    if let Some(several) = rule.several() {
        let (arm, instances) = (several.arm.as_str(), several.instances);
        let other = several.other.as_deref().unwrap_or(baseline);
        let names = several.quantities.iter();
        let found =
            names.filter_map(|name| ratio(look, (name, arm, instances), (name, other, instances)));
        return (found.collect(), several.quantities.len());
    }
    if let Some((first, second)) = rule.sides(baseline) {
        return one(ratio(look, first, second));
    }
    match rule {
        Rule::Costs {
            quantity,
            to,
            arm,
            other,
            ..
        } => {
            let other = other.as_deref().unwrap_or(baseline);
            let cost = |name| ratio(look, (name, arm, 1), (name, other, 1));
            one(cost(quantity)
                .zip(cost(to))
                .map(|(above, below)| above / below))
        }
        Rule::Even {
            quantity,
            arm,
            instances,
            ..
        } => one(worst_over_mean(look, (quantity, arm, *instances))),
        _ => (Vec::new(), 0),
    }
}

/// What the mean of one place costs against that of another one.
fn ratio(look: &Look<'_>, first: Place<'_>, second: Place<'_>) -> Option<f64> {
    let (above, below) = (mean(look, first)?, mean(look, second)?);
    let quotient = match better(look, first.0, above.1)? {
        Better::Lower => above.0 / below.0,
        Better::Higher => below.0 / above.0,
    };
    (above.1 == below.1 && quotient.is_finite() && quotient > 0.0).then_some(quotient)
}

/// The worst of the numbers in one place against their mean.
fn worst_over_mean(look: &Look<'_>, place: Place<'_>) -> Option<f64> {
    let (mean, unit) = mean(look, place)?;
    let values = meant(look, place)
        .filter(|(_, other)| *other == unit)
        .map(|(value, _)| value);
    match better(look, place.0, unit)? {
        Better::Lower => values.reduce(f64::max).map(|worst| worst / mean),
        Better::Higher => values.reduce(f64::min).map(|worst| mean / worst),
    }
}

/// The numbers in one place, with their units; times all in nanoseconds.
fn meant<'a>(look: &Look<'a>, place: Place<'_>) -> impl Iterator<Item = (f64, &'a str)> {
    let (name, arm, instances) = place;
    let numbers = look.publication.numbers.iter();
    numbers
        .filter(move |number| {
            number.quantity.as_deref() == Some(name)
                && number.arm.as_deref() == Some(arm)
                && number.over.is_none()
                && number.instances == instances
        })
        .map(|number| {
            let (value, unit) = number.meant();
            match unit {
                "s" => (value * 1e9, "ns"),
                "ms" => (value * 1e6, "ns"),
                "us" => (value * 1e3, "ns"),
                _ => (value, unit),
            }
        })
}

/// The mean of the numbers in one place, and their unit; `None` if there is none, or not in one unit.
fn mean<'a>(look: &Look<'a>, place: Place<'_>) -> Option<(f64, &'a str)> {
    let meant: Vec<(f64, &str)> = meant(look, place).collect();
    let unit = meant.first()?.1;
    let sum: f64 = meant.iter().map(|(value, _)| value).sum();
    let is_one_unit = meant.iter().all(|(_, other)| *other == unit);
    is_one_unit.then(|| (sum / meant.len() as f64, unit))
}

/// Which way the published numbers are better: rates and times by their unit, for they need not be what the metric is;
/// others as the metric.
fn better(look: &Look<'_>, name: &str, unit: &str) -> Option<Better> {
    const RATES: [&str; 4] = ["GFLOPS", "GFlops", "TFlops", "GUPS"];
    if RATES.contains(&unit) || unit.ends_with("/s") {
        return Some(Better::Higher);
    }
    if unit == "ns" {
        return Some(Better::Lower);
    }
    let metric = &look.quantity(name)?.metric;
    let mut known = WORKLOADS.iter().flat_map(|workload| workload.metrics());
    known.find(|known| known.id == metric).map(|it| it.better)
}
