//! Checks that a study's publication refers to what the study measures: every name in it must exist.
//!
//! Limits: does not check whether a published number is the printed one; that needs the publication itself.

use std::collections::BTreeSet;

use tare_model::publication::{Claim, INSTANCES, Quantity, Recorded, unfolded};
use tare_model::study::A_PRIME;
use tare_model::{ArmSpec, Publication, WorkloadSpec};

use super::error::{Source, StudyError};
use super::file::{PublicationOf, StudyFile};
use super::{Adjustments, builtin, file};
use crate::suggest;
use crate::workload;

/// A name that does not exist, for the caret, and the problem with it.
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

/// Returns the publication on the same question: the study's, or that of a built-in study.
pub(super) fn resolve(
    source: &Source<'_>,
    file: &StudyFile,
    arms: &[ArmSpec],
    workloads: &[WorkloadSpec],
    adjustments: &Adjustments,
) -> Result<Option<Publication>, StudyError> {
    let (given, place) = match (&file.publication, &file.publication_of) {
        (None, None) => return Ok(None),
        (Some(given), None) => (Ok(given.get_ref().clone().unfolded()), given.span()),
        (None, Some(of)) => (taken_over(of.get_ref()), of.span()),
        (Some(_), Some(of)) => {
            return Err(source.error(
                Some(of.span()),
                "the study has a publication of its own and that of another study",
                Some("leave out one of `publication` and `publication_of`".into()),
            ));
        }
    };
    let is_whole = adjustments.environments.is_empty() && adjustments.workloads.is_empty();
    let measured = Measured {
        arms,
        workloads,
        wanted: match &file.publication_of {
            _ if !is_whole => RequiredNames::Nothing,
            Some(of) => RequiredNames::Of(of.get_ref()),
            None => RequiredNames::Everything,
        },
    };
    given
        .and_then(|given| {
            check(&given, &measured)?;
            Ok(Some(given))
        })
        .map_err(|found| {
            // Points at the word itself if found, else at the whole.
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

/// What a study measures, and which names of its publication it must measure.
struct Measured<'a> {
    arms: &'a [ArmSpec],
    workloads: &'a [WorkloadSpec],
    wanted: RequiredNames<'a>,
}

/// Which names of its publication a study must measure. Missing measurements are reported as such, so a name is an
/// error only if it was written for this study.
enum RequiredNames<'a> {
    /// The study's own publication.
    Everything,
    /// Another study's publication: the parts that this study overrides.
    Of(&'a PublicationOf),
    /// A study with arms or workloads chosen on the command line.
    Nothing,
}

impl RequiredNames<'_> {
    fn has_quantity(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Of(of) => own(of).any(|own| own.name == name),
            Self::Nothing => false,
        }
    }

    /// Returns the arms that the study must have.
    fn arms<'b>(&'b self, publication: &'b Publication) -> Vec<&'b str> {
        match self {
            Self::Everything => wanted(publication).1,
            Self::Of(of) => {
                let columns = of.tables.iter().flat_map(|table| &table.columns);
                let arms = columns.flat_map(|it| std::iter::once(&it.arm).chain(&it.over));
                arms.map(String::as_str).collect()
            }
            Self::Nothing => Vec::new(),
        }
    }
}

/// Returns the quantities of another study's publication that this study overrides.
fn own(of: &PublicationOf) -> impl Iterator<Item = Quantity> {
    of.quantities.iter().flat_map(unfolded)
}

/// Returns the publication of a built-in study with the study's overrides: other deviations, quantities that are
/// measured differently or only here, and other tables.
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
    let mut publication = read.publication.ok_or_else(none)?.into_inner().unfolded();
    let named: BTreeSet<String> = publication
        .numbers
        .iter()
        .filter_map(|number| number.quantity.clone())
        .collect();
    let owned: Vec<Quantity> = own(of).collect();
    let is_in_a_table = |name: &String| of.tables.iter().any(|table| table.rows.contains(name));
    unique("quantities", owned.iter().map(|it| it.name.as_str()))?;
    for given in owned {
        let mut theirs = publication.quantities.iter_mut();
        if let Some(replaced) = theirs.find(|it| it.name == given.name) {
            *replaced = given;
        } else if named.contains(&given.name) || is_in_a_table(&given.name) {
            publication.quantities.push(given);
        } else {
            let known = publication.quantities.iter().map(|it| it.name.clone());
            let known: BTreeSet<String> = known.chain(named.iter().cloned()).collect();
            let wrong = format!("`{}` has no quantity `{}`", of.study, given.name);
            return Err(problem(&given.name, wrong, known));
        }
    }
    let is_replaced = |title: &str| of.tables.iter().any(|table| table.title == title);
    publication
        .tables
        .retain(|table| !is_replaced(&table.title));
    publication.tables.splice(0..0, of.tables.iter().cloned());
    publication.unfold_names(&of.quantities);
    publication.recorded.extend(of.recorded.iter().cloned());
    Ok(Publication {
        deviations: of.deviations.clone(),
        ..publication
    })
}

/// Checks the names of quantities, metrics, arms and claims.
fn check(publication: &Publication, measured: &Measured<'_>) -> Result<(), Problem> {
    let names: BTreeSet<&str> = publication
        .quantities
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let quantities = publication.quantities.iter().map(|it| it.name.as_str());
    unique("quantities", quantities)?;
    for quantity in &publication.quantities {
        conversion(quantity)?;
        metric(quantity, measured)?;
    }
    publication.recorded.iter().try_for_each(recorded)?;
    unique("claims", publication.claims.iter().map(|it| it.id.as_str()))?;
    for (claim, rule) in publication
        .claims
        .iter()
        .flat_map(|claim| claim.rules().map(move |rule| (claim, rule)))
    {
        let bounds = rule.bounds();
        if bounds.is_some_and(|(low, high)| (low <= 0.0 && high.is_infinite()) || low > high) {
            let wrong = format!(
                "the rule of `{}` has no bound that decides it: give `at_least` or `at_most`, the former not above the latter",
                claim.id
            );
            return Err(problem(&claim.id, wrong, []));
        }
    }
    let mut shares = publication.claims.iter().filter_map(|claim| {
        let share = claim.rule.several()?.share?;
        (!(0.5..1.0).contains(&share)).then_some(claim)
    });
    if let Some(claim) = shares.next() {
        let wrong = format!(
            "the share of `{}` is not at least a half and below 1",
            claim.id
        );
        return Err(problem(&claim.id, wrong, []));
    }
    for number in &publication.numbers {
        let [low, high] = number.interval.unwrap_or([number.value; 2]);
        if !(number.value.is_finite() && (low..=high).contains(&number.value)) {
            let wrong = format!(
                "the value of `{}` is not finite, or not within its interval",
                number.printed
            );
            return Err(problem(&number.printed, wrong, []));
        }
    }
    let (wanted, _) = wanted(publication);
    if let Some(name) = wanted.into_iter().find(|name| !names.contains(name)) {
        let known = names.iter().map(|name| (*name).to_owned());
        let wrong = format!("the publication has no quantity `{name}`");
        return Err(problem(name, wrong, known));
    }
    let is_arm = |name: &str| measured.arms.iter().any(|arm| arm.id.as_str() == name);
    let mut wanted_arms = measured.wanted.arms(publication).into_iter();
    if let Some(name) = wanted_arms.find(|name| !is_arm(name)) {
        let known = measured.arms.iter().map(|arm| arm.id.to_string());
        let wrong =
            format!("the publication speaks of an arm `{name}`, which the study does not have");
        return Err(problem(name, wrong, known.filter(|arm| arm != A_PRIME)));
    }
    Ok(())
}

/// Checks that a record from elsewhere has values, or a file that may have some.
fn recorded(it: &Recorded) -> Result<(), Problem> {
    let known = || workload::WORKLOADS.iter().map(|it| it.id().to_owned());
    let Some(found) = workload::find(&it.workload) else {
        let wrong = format!("there is no workload `{}`", it.workload);
        return Err(problem(&it.workload, wrong, known()));
    };
    let is_metric = |name: &str| found.metrics().iter().any(|metric| metric.id == name);
    if let Some(name) = it.values.keys().find(|name| !is_metric(name)) {
        let wrong = format!("`{}` has no metric `{name}`", it.workload);
        let known = found.metrics().iter().map(|metric| metric.id.to_owned());
        return Err(problem(name, wrong, known));
    }
    let is_value = |value: &f64| value.is_finite() && *value >= 0.0;
    let values: Vec<&f64> = it.values.values().flatten().collect();
    if !values.iter().all(|value| is_value(value)) || values.is_empty() == it.file.is_none() {
        let wrong = format!(
            "what was recorded of `{}` needs either `file`, what its tool printed, or `values` of its metrics, none below 0",
            it.arm
        );
        return Err(problem(&it.arm, wrong, []));
    }
    Ok(())
}

/// Checks that a quantity's conversion from its metric yields a number.
fn conversion(quantity: &Quantity) -> Result<(), Problem> {
    let wrong = |text: &str| {
        let text = format!("`{}` {text}", quantity.name);
        Err(problem(&quantity.name, text, []))
    };
    let is_positive = |factor: f64| factor.is_finite() && factor > 0.0;
    if quantity.factor.is_some_and(|factor| !is_positive(factor)) {
        return wrong("has a factor that is no number above 0");
    }
    let is_there = |name: &String| quantity.there.int(name).is_some_and(|count| count > 0);
    if quantity.linear.as_ref().is_some_and(|it| !is_there(it)) {
        return wrong("is linear in what `there` does not count");
    }
    if quantity.inverse && (quantity.factor.is_none() || quantity.unit.is_none()) {
        return wrong(
            "is inverse, which needs a `factor` to be divided by the metric and the `unit` that comes of it",
        );
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

/// Returns the quantities and arms that a publication refers to.
fn wanted(publication: &Publication) -> (Vec<&str>, Vec<&str>) {
    let (mut quantities, mut arms) = (Vec::new(), Vec::new());
    for (rows, columns) in publication.layouts() {
        quantities.extend(rows.iter().map(String::as_str));
        for column in columns {
            arms.push(column.arm.as_str());
            arms.extend(column.over.as_deref());
        }
    }
    for rule in publication.claims.iter().flat_map(Claim::rules) {
        quantities.extend(rule.quantities());
        arms.extend(rule.arms());
    }
    for number in &publication.numbers {
        // A number that is not measured may have the name by which another study measures it.
        let is_measured = number.without.is_none();
        quantities.extend(number.quantity.as_deref().filter(|_| is_measured));
        arms.extend(number.arm.as_deref());
        arms.extend(number.over.as_deref());
    }
    (quantities, arms)
}

/// Checks that exactly one workload of the study has the metric of a quantity.
fn metric(quantity: &Quantity, measured: &Measured<'_>) -> Result<(), Problem> {
    let workloads = measured.workloads;
    let is_wanted = measured.wanted.has_quantity(&quantity.name);
    let metrics = |spec: &WorkloadSpec| {
        workload::find(spec.id.as_str()).map_or(&[][..], |found| found.metrics())
    };
    let with_metric: Vec<&WorkloadSpec> = workloads
        .iter()
        .filter(|spec| metrics(spec).iter().any(|it| it.id == quantity.metric))
        .collect();
    if with_metric.is_empty() && is_wanted {
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
    let fits = |spec: &&WorkloadSpec| quantity.is_of(&spec.params, spec.path);
    // Workloads that differ only in the number of instances count as one.
    let is_same = |one: &WorkloadSpec, other: &WorkloadSpec| {
        one.id == other.id && one.params == other.params && one.path == other.path
    };
    let mut meant = with_metric.into_iter().filter(fits);
    let first = meant.next();
    if first.is_none() && !is_wanted || matches!(measured.wanted, RequiredNames::Nothing) {
        return Ok(());
    }
    if let Some(one) = first
        && meant.all(|other| is_same(one, other))
    {
        return parameters(quantity, one);
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

/// Checks the parameters of its workload that a quantity names.
fn parameters(quantity: &Quantity, spec: &WorkloadSpec) -> Result<(), Problem> {
    let params = workload::completed(spec.id.as_str(), &spec.params, spec.path);
    let mut names = quantity.there.0.keys();
    if let Some(name) = names.find(|name| params.value(name).is_none()) {
        let wrong = format!(
            "`{}` has no parameter `{name}` in its workload",
            quantity.name
        );
        return Err(problem(name, wrong, params.0.keys().cloned()));
    }
    let mut counts = quantity.times.iter();
    let is_count = |name: &str| name == INSTANCES || spec.params.int(name).is_some();
    let Some(name) = counts.find(|name| !is_count(name)) else {
        return Ok(());
    };
    let wrong = format!(
        "`{}` is multiplied by `{name}`, which is no whole number among the parameters of its workload",
        quantity.name
    );
    Err(problem(name, wrong, spec.params.0.keys().cloned()))
}
