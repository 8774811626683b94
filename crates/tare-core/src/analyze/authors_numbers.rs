//! Checks claims against their authors' own published numbers.
//!
//! The same rule, with the same bounds, decides from the published numbers; a number that is wrong in its publication
//! counts as the corrected one. If two places have numbers of the same parts, such as two machines, the numbers of
//! each part are compared with each other; if only one place has parts, each is compared with the other place;
//! otherwise, and for several concurrent instances, their means count. There are no intervals, so every ratio is
//! within the bounds or not. A claim that its own data contradict is worth knowing; agreement proves nothing.
//! Limits: cannot use numbers that appear in figures only.

use tare_model::dossier::DossierOwnNumbers;
use tare_model::publication::{QuantityRef, Rule};
use tare_model::{Better, ClaimVerdict};

use super::bounds::{of_several, three, wanted};
use super::publication::in_base_unit;
use super::quantity::Lookup;
use crate::workload::metric;

/// A ratio of published numbers, and the part that it belongs to.
struct Own<'a> {
    part: Option<&'a str>,
    ratio: f64,
}

/// Applies the rule to the published numbers; `None` if they are not sufficient.
pub(super) fn judged(rule: &Rule, look: &Lookup<'_>) -> Option<DossierOwnNumbers> {
    let bounds = rule.bounds()?;
    let (ratios, n) = ratios(rule, look);
    if ratios.is_empty() {
        return None;
    }
    let is_within = |own: &&Own<'_>| bounds.0 <= own.ratio && own.ratio <= bounds.1;
    let n_within = ratios.iter().filter(is_within).count();
    let shown: Vec<String> = ratios.iter().map(shown).collect();
    let shown = shown.join(", ");
    if rule.several().is_none() {
        return Some(DossierOwnNumbers {
            holds: n_within == ratios.len(),
            partly: 0 < n_within && n_within < ratios.len(),
            because: format!("× {shown}, and {} was claimed", wanted(bounds)),
        });
    }
    let outcome = of_several(rule, n_within, ratios.len() - n_within, n);
    let decides = matches!(outcome, ClaimVerdict::Holds | ClaimVerdict::Fails);
    decides.then(|| DossierOwnNumbers {
        holds: outcome == ClaimVerdict::Holds,
        partly: false,
        because: format!("{n_within} of {n} are {}: × {shown}", wanted(bounds)),
    })
}

fn shown(own: &Own<'_>) -> String {
    let ratio = three(own.ratio);
    own.part
        .map_or_else(|| ratio.clone(), |part| format!("{ratio} ({part})"))
}

/// Returns the ratios of a rule for which there are numbers, and how many there should be.
fn ratios<'a>(rule: &Rule, look: &Lookup<'a>) -> (Vec<Own<'a>>, usize) {
    let baseline = look.baseline();
    if let Some(several) = rule.several() {
        let (arm, instances) = (several.arm.as_str(), several.instances);
        let other = several.other.as_deref().unwrap_or(baseline);
        let (other, others) = if several.alone {
            (arm, 1)
        } else {
            (other, instances)
        };
        let found: Vec<Vec<Own<'a>>> = several
            .quantities
            .iter()
            .map(|name| compared(look, (name, arm, instances), (name, other, others)))
            .collect();
        // A quantity without a number still counts as required.
        let n = found.iter().map(|own| own.len().max(1)).sum();
        return (found.into_iter().flatten().collect(), n);
    }
    let found = if let Some((first, second)) = rule.sides(baseline) {
        compared(look, first, second)
    } else {
        match rule {
            Rule::Costs {
                quantity,
                to,
                instances,
                to_instances,
                arm,
                other,
                ..
            } => {
                let other = other.as_deref().unwrap_or(baseline);
                let cost = |name, n: u32| compared(look, (name, arm, n), (name, other, n));
                of_costs(&cost(quantity, *instances), &cost(to, *to_instances))
            }
            Rule::Even {
                quantity,
                arm,
                instances,
                ..
            } => {
                let found = worst_over_mean(look, (quantity, arm, *instances));
                let own = |ratio| Own { part: None, ratio };
                found.map(own).into_iter().collect()
            }
            _ => Vec::new(),
        }
    };
    let n = found.len().max(1);
    (found, n)
}

/// Costs over costs, each over that of the same part.
fn of_costs<'a>(above: &[Own<'a>], below: &[Own<'a>]) -> Vec<Own<'a>> {
    let quotients = above.iter().filter_map(|own| {
        let mut of_part = below.iter().filter(|it| it.part == own.part);
        let ratio = own.ratio / of_part.next()?.ratio;
        Some(Own { ratio, ..*own })
    });
    quotients.collect()
}

/// Returns the cost of one place over another, by the parts that both have, or that one of them has.
fn compared<'a>(
    look: &Lookup<'a>,
    first: QuantityRef<'_>,
    second: QuantityRef<'_>,
) -> Vec<Own<'a>> {
    let is_alone = first.2 == 1 && second.2 == 1;
    let parts = |place| {
        if is_alone {
            parts(look, place)
        } else {
            Vec::new()
        }
    };
    let (above, below) = (parts(first), parts(second));
    let one = |part: Option<&'a str>, in_first, in_second| {
        let above = mean(look, first, in_first)?;
        let below = mean(look, second, in_second)?;
        let ratio = quotient(look, first.0, above, below)?;
        Some(Own { part, ratio })
    };
    let shared: Vec<&str> = match (above.is_empty(), below.is_empty()) {
        (true, _) => below.clone(),
        (_, true) => above.clone(),
        _ => {
            let in_both = above.iter().filter(|part| below.contains(part));
            in_both.copied().collect()
        }
    };
    if shared.is_empty() {
        let whole = one(None, None, None).or_else(|| printed(look, first, second));
        return whole.into_iter().collect();
    }
    let of_part = |part| {
        let within = |parts: &[&'a str]| parts.contains(&part).then_some(part);
        one(Some(part), within(&above), within(&below))
    };
    shared.into_iter().filter_map(of_part).collect()
}

/// Returns the printed ratio of two arms, for publications without the numbers themselves.
fn printed<'a>(
    look: &Lookup<'a>,
    first: QuantityRef<'_>,
    second: QuantityRef<'_>,
) -> Option<Own<'a>> {
    let (name, arm, instances) = first;
    let (_, other, _) = second;
    let mut numbers = look.publication.numbers.iter();
    numbers.find_map(|number| {
        let is_of = number.quantity.as_deref() == Some(name)
            && second.0 == name
            && (number.instances, second.2) == (instances, instances);
        let ratio = number.cost_over(arm, other).filter(|_| is_of)?;
        Some(Own { part: None, ratio })
    })
}

/// Returns the parts for which a place has numbers; none if some of its numbers belong to no part.
fn parts<'a>(look: &Lookup<'a>, place: QuantityRef<'_>) -> Vec<&'a str> {
    let mut parts = Vec::new();
    for (part, ..) in meant(look, place) {
        match part {
            None => return Vec::new(),
            Some(part) if !parts.contains(&part) => parts.push(part),
            Some(_) => {}
        }
    }
    parts
}

/// The cost of the first over the second.
fn quotient(look: &Lookup<'_>, name: &str, above: (f64, &str), below: (f64, &str)) -> Option<f64> {
    let quotient = match better(look, name, above.1)? {
        Better::Lower => above.0 / below.0,
        Better::Higher => below.0 / above.0,
    };
    (above.1 == below.1 && quotient.is_finite() && quotient > 0.0).then_some(quotient)
}

/// The worst number of one place over the mean.
fn worst_over_mean(look: &Lookup<'_>, place: QuantityRef<'_>) -> Option<f64> {
    let (mean, unit) = mean(look, place, None)?;
    let values = meant(look, place)
        .filter(|(_, _, other)| *other == unit)
        .map(|(_, value, _)| value);
    match better(look, place.0, unit)? {
        Better::Lower => values.reduce(f64::max).map(|worst| worst / mean),
        Better::Higher => values.reduce(f64::min).map(|worst| mean / worst),
    }
}

/// Returns the numbers of one place, with their parts and base units.
fn meant<'a>(
    look: &Lookup<'a>,
    place: QuantityRef<'_>,
) -> impl Iterator<Item = (Option<&'a str>, f64, &'a str)> {
    let (name, arm, instances) = place;
    let numbers = look.publication.numbers.iter();
    numbers
        .filter(move |number| {
            number.quantity.as_deref() == Some(name)
                && number.arm.as_deref() == Some(arm)
                && number.over.is_none()
                && number.step.is_none()
                && number.instances == instances
        })
        .map(|number| {
            let (value, unit) = in_base_unit(number.meant());
            (number.part.as_deref(), value, unit)
        })
}

/// Returns the mean of the numbers of one place, or of one part of it, and their unit; `None` if there are none, or
/// their units differ.
fn mean<'a>(
    look: &Lookup<'a>,
    place: QuantityRef<'_>,
    part: Option<&str>,
) -> Option<(f64, &'a str)> {
    let is_meant = |of: Option<&str>| part.is_none() || of == part;
    let meant: Vec<(f64, &str)> = meant(look, place)
        .filter(|(of, ..)| is_meant(*of))
        .map(|(_, value, unit)| (value, unit))
        .collect();
    let unit = meant.first()?.1;
    let sum: f64 = meant.iter().map(|(value, _)| value).sum();
    let is_one_unit = meant.iter().all(|(_, other)| *other == unit);
    is_one_unit.then(|| (sum / meant.len() as f64, unit))
}

/// Returns which direction is better for published numbers: rates and times by their unit, because they may differ
/// from the metric; others as the metric.
fn better(look: &Lookup<'_>, name: &str, unit: &str) -> Option<Better> {
    if unit.ends_with("/s") {
        return Some(Better::Higher);
    }
    if unit == "ns" {
        return Some(Better::Lower);
    }
    Some(metric(&look.quantity(name)?.metric)?.better)
}
