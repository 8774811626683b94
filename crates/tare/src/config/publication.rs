//! Whether a study's publication speaks of what the study measures: every name that it uses must exist.
//!
//! What it cannot see: whether a published number is the one that was printed; that is checked against the
//! publication itself, where one has it.

use std::collections::BTreeSet;

use tare_model::publication::INSTANCES;
use tare_model::study::A_PRIME;
use tare_model::{ArmSpec, Publication, WorkloadSpec};

use super::error::{Source, StudyError};
use super::file::{PublicationOf, StudyFile};
use super::{Adjustments, builtin, file};
use crate::suggest;
use crate::workload;

/// A name that does not exist, for the caret, and what is wrong with it.
struct Problem {
    offender: String,
    text: String,
    known: Vec<String>,
}

fn problem(offender: &str, text: String, known: impl IntoIterator<Item = String>) -> Problem {
    Problem {
        offender: offender.to_owned(),
        text,
        known: known.into_iter().collect(),
    }
}

/// What was published about the same question: the study's own, or that of a built-in study.
pub(super) fn of(
    source: &Source<'_>,
    file: &StudyFile,
    arms: &[ArmSpec],
    workloads: &[WorkloadSpec],
    adjustments: &Adjustments,
) -> Result<Option<Publication>, StudyError> {
    let (given, place) = match (&file.publication, &file.publication_of) {
        (None, None) => return Ok(None),
        (Some(given), None) => (Ok(given.get_ref().clone()), given.span()),
        (None, Some(of)) => (taken_over(of.get_ref()), of.span()),
        (Some(_), Some(of)) => {
            return Err(source.error(
                Some(of.span()),
                "the study has a publication of its own and that of another study",
                Some("leave out one of `publication` and `publication_of`".into()),
            ));
        }
    };
    given
        .and_then(|given| {
            check(&given, arms, workloads, adjustments)?;
            Ok(Some(given))
        })
        .map_err(|found| {
            // The word itself where it can be found, else the whole.
            let quoted = format!("\"{}\"", found.offender);
            let offset = source
                .text
                .get(place.start..)
                .and_then(|part| part.find(&quoted));
            let span = offset.map_or(place.clone(), |offset| {
                let start = place.start + offset;
                start..start + quoted.len()
            });
            let known = found.known.iter().map(String::as_str);
            let hint = (!found.known.is_empty()).then(|| suggest::hint(&found.offender, known));
            source.error(Some(span), found.text, hint)
        })
}

/// The publication of a built-in study, with other deviations, and quantities that are measured otherwise.
fn taken_over(of: &PublicationOf) -> Result<Publication, Problem> {
    let known = || {
        builtin::STUDIES
            .iter()
            .filter(|study| study.text.contains("\n[publication]\n"))
            .map(|study| study.id.to_owned())
    };
    let none = || {
        let problem = format!("no built-in study `{}` repeats a publication", of.study);
        self::problem(&of.study, problem, known())
    };
    let study = builtin::find(&of.study).ok_or_else(none)?;
    let read = file::read(study.id, study.text).map_err(|_| none())?;
    let mut publication = read.publication.ok_or_else(none)?.into_inner();
    for given in &of.quantities {
        let mut own = publication.quantities.iter_mut();
        let Some(replaced) = own.find(|it| it.name == given.name) else {
            let known = publication.quantities.iter().map(|it| it.name.clone());
            let wrong = format!("`{}` has no quantity `{}`", of.study, given.name);
            return Err(problem(&given.name, wrong, known));
        };
        replaced.clone_from(given);
    }
    unique(
        "quantities",
        of.quantities.iter().map(|it| it.name.as_str()),
    )?;
    Ok(Publication {
        deviations: of.deviations.clone(),
        ..publication
    })
}

/// Checks the names of quantities, metrics, arms and claims. With arms or workloads chosen on the command line,
/// names of others are no mistake: what is not measured is said not to be.
fn check(
    publication: &Publication,
    arms: &[ArmSpec],
    workloads: &[WorkloadSpec],
    adjustments: &Adjustments,
) -> Result<(), Problem> {
    let is_whole = adjustments.environments.is_empty() && adjustments.workloads.is_empty();
    let names: BTreeSet<&str> = publication
        .quantities
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let quantities = publication.quantities.iter().map(|it| it.name.as_str());
    unique("quantities", quantities)?;
    if is_whole {
        for quantity in &publication.quantities {
            metric(quantity, workloads)?;
        }
    }
    unique("claims", publication.claims.iter().map(|it| it.id.as_str()))?;
    for claim in &publication.claims {
        let bounds = claim.rule.bounds();
        if bounds.is_some_and(|(low, high)| (low <= 0.0 && high.is_infinite()) || low > high) {
            let wrong = format!(
                "the rule of `{}` has no bound that decides it: give `at_least` or `at_most`, the former not above the latter",
                claim.id
            );
            return Err(problem(&claim.id, wrong, []));
        }
    }
    if let Some(number) = publication.numbers.iter().find(|it| !it.value.is_finite()) {
        let wrong = format!("the value of `{}` is not finite", number.printed);
        return Err(problem(&number.printed, wrong, []));
    }
    let (wanted, wanted_arms) = wanted(publication);
    if let Some(name) = wanted.into_iter().find(|name| !names.contains(name)) {
        let known = names.iter().map(|name| (*name).to_owned());
        let wrong = format!("the publication has no quantity `{name}`");
        return Err(problem(name, wrong, known));
    }
    let is_arm = |name: &str| arms.iter().any(|arm| arm.id.as_str() == name);
    let mut wanted_arms = wanted_arms.into_iter();
    if let Some(name) = wanted_arms.find(|name| is_whole && !is_arm(name)) {
        let known = arms.iter().map(|arm| arm.id.to_string());
        let wrong =
            format!("the publication speaks of an arm `{name}`, which the study does not have");
        return Err(problem(name, wrong, known.filter(|arm| arm != A_PRIME)));
    }
    Ok(())
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(problem(
                name,
                format!("there are two {what} named `{name}`"),
                [],
            ));
        }
    }
    Ok(())
}

/// The quantities and arms that a publication speaks of.
fn wanted(publication: &Publication) -> (Vec<&str>, Vec<&str>) {
    let tables = publication.tables.iter().map(|it| (&it.rows, &it.columns));
    let figures = publication.figures.iter().map(|it| (&it.rows, &it.columns));
    let (mut quantities, mut arms) = (Vec::new(), Vec::new());
    for (rows, columns) in tables.chain(figures) {
        quantities.extend(rows.iter().map(String::as_str));
        for column in columns {
            arms.push(column.arm.as_str());
            arms.extend(column.over.as_deref());
        }
    }
    for claim in &publication.claims {
        quantities.extend(claim.rule.quantities());
        arms.extend(claim.rule.arms());
    }
    for number in &publication.numbers {
        quantities.extend(number.quantity.as_deref());
        arms.extend(number.arm.as_deref());
        arms.extend(number.over.as_deref());
    }
    (quantities, arms)
}

fn metric(
    quantity: &tare_model::publication::Quantity,
    workloads: &[WorkloadSpec],
) -> Result<(), Problem> {
    let metrics = |spec: &WorkloadSpec| {
        workload::find(spec.id.as_str()).map_or(&[][..], |found| found.metrics())
    };
    let with_metric: Vec<&WorkloadSpec> = workloads
        .iter()
        .filter(|spec| metrics(spec).iter().any(|it| it.id == quantity.metric))
        .collect();
    if with_metric.is_empty() {
        let known = workloads
            .iter()
            .flat_map(|spec| metrics(spec).iter().map(|it| it.id.to_owned()));
        return Err(problem(
            &quantity.metric,
            format!(
                "no workload of the study has the metric `{}`",
                quantity.metric
            ),
            known,
        ));
    }
    let fits = |spec: &&&WorkloadSpec| {
        spec.params.covers(&quantity.params)
            && quantity
                .path
                .as_ref()
                .is_none_or(|path| spec.path.is_some_and(|own| own.name() == path))
    };
    // Numbers of instances are told apart by the cells' own number.
    let mut meant: Vec<&WorkloadSpec> = Vec::new();
    for spec in with_metric.iter().filter(fits) {
        let is_known = meant.iter().any(|known| {
            known.id == spec.id && known.params == spec.params && known.path == spec.path
        });
        if !is_known {
            meant.push(spec);
        }
    }
    if let [one] = meant.as_slice() {
        let mut counts = quantity.times.iter();
        let is_count = |name: &str| name == INSTANCES || one.params.int(name).is_some();
        return match counts.find(|name| !is_count(name)) {
            None => Ok(()),
            Some(name) => Err(problem(
                name,
                format!(
                    "`{}` is multiplied by `{name}`, which is no whole number among the parameters of its workload",
                    quantity.name
                ),
                one.params.0.keys().cloned(),
            )),
        };
    }
    Err(problem(
        &quantity.name,
        format!(
            "`{}` does not say which of the study's workloads with `{}` it means: exactly one must have its parameters and path",
            quantity.name, quantity.metric
        ),
        [],
    ))
}
