//! Expands numbers of instances: one entry of a study file, or one command-line option, becomes one workload for each
//! number.
//!
//! Limits: does not check whether the machine can run that many.

use tare_model::{Spread, WorkloadSpec};

use super::Adjustments;
use super::error::{Source, StudyError};
use super::file::Workload;
use crate::suggest;
use crate::workload::{self, instances};

/// Returns one workload for each number of instances that the entry lists.
pub(super) fn expanded(
    source: &Source<'_>,
    entry: &Workload,
    spec: WorkloadSpec,
) -> Result<Vec<WorkloadSpec>, StudyError> {
    let spread = match &entry.spread {
        None => Spread::default(),
        Some(word) => named(word.get_ref()).ok_or_else(|| {
            source.error(
                Some(word.span()),
                format!("`{}` is no way to spread instances", word.get_ref()),
                Some(suggest::hint(word.get_ref(), labels())),
            )
        })?,
    };
    let Some(given) = &entry.instances else {
        return match &entry.spread {
            None => Ok(vec![spec]),
            Some(word) => Err(source.error(
                Some(word.span()),
                "`spread` says where instances run, and `instances` does not say how many",
                Some("add `instances = [1, 2, 3]`, or remove `spread`".into()),
            )),
        };
    };
    let wrong =
        |problem: String, hint: Option<String>| source.error(Some(given.span()), problem, hint);
    let numbers = numbers(given.get_ref()).ok_or_else(|| {
        wrong(
            "`instances` must be a whole number or a list of them".into(),
            Some("for example `instances = [1, 2, 3]`".into()),
        )
    })?;
    several(&spec, &numbers, spread).map_err(|(problem, hint)| wrong(problem, hint))
}

/// Returns the workloads with the command line's numbers instead of the study's.
pub(super) fn adjusted(
    specs: Vec<WorkloadSpec>,
    adjustments: &Adjustments,
) -> Result<Vec<WorkloadSpec>, StudyError> {
    if adjustments.instances.is_empty() && adjustments.spread.is_none() {
        return Ok(specs);
    }
    if adjustments.instances.is_empty() {
        let mut specs = specs;
        let several = specs.iter_mut().filter(|spec| spec.spread.is_some());
        if several.map(|spec| spec.spread = adjustments.spread).count() == 0 {
            return Err(Source::of_option("--spread").error(
                None,
                "no workload of the study has instances to spread",
                Some("add `--instances 1,2,3`".into()),
            ));
        }
        return Ok(specs);
    }
    let mut bases: Vec<WorkloadSpec> = Vec::new();
    for spec in specs {
        let base = WorkloadSpec {
            instances: 1,
            ..spec
        };
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    let numbers: Vec<i64> = adjustments
        .instances
        .iter()
        .map(|it| i64::from(*it))
        .collect();
    let mut all = Vec::new();
    for base in bases {
        let spread = adjustments.spread.or(base.spread).unwrap_or_default();
        let more = several(&base, &numbers, spread).map_err(|(problem, hint)| {
            let choose = "choose with `--workload` what is to have several";
            let hint = hint.map_or(choose.to_owned(), |hint| format!("{hint}; or {choose}"));
            Source::of_option("--instances").error(None, problem, Some(hint))
        })?;
        all.extend(more);
    }
    Ok(all)
}

/// Returns the spread of this name.
pub(super) fn named(word: &str) -> Option<Spread> {
    Spread::ALL.into_iter().find(|spread| spread.name() == word)
}

pub(super) fn labels() -> impl Iterator<Item = &'static str> + Clone {
    Spread::ALL.into_iter().map(Spread::name)
}

fn numbers(value: &toml::Value) -> Option<Vec<i64>> {
    match value {
        toml::Value::Integer(number) => Some(vec![*number]),
        toml::Value::Array(values) => values.iter().map(toml::Value::as_integer).collect(),
        _ => None,
    }
}

/// Returns one workload for each number, or the error with a hint.
fn several(
    spec: &WorkloadSpec,
    numbers: &[i64],
    spread: Spread,
) -> Result<Vec<WorkloadSpec>, (String, Option<String>)> {
    if numbers.is_empty() {
        return Err((
            "`instances` names no number".into(),
            Some("for example `instances = [1, 2, 3]`".into()),
        ));
    }
    let recipe = workload::find(spec.id.as_str())
        .expect("the workload was looked up before")
        .recipe(&spec.params, spec.path)
        .map_err(|error| (error.problem, error.hint))?;
    let mut specs: Vec<WorkloadSpec> = Vec::new();
    for number in numbers {
        let Ok(instances) = u32::try_from(*number) else {
            return Err((
                format!("there cannot be {number} instances"),
                Some(format!("from 1 to {}", instances::most(spread))),
            ));
        };
        if specs.iter().any(|other| other.instances == instances) {
            return Err((format!("{number} instances are asked for twice"), None));
        }
        let spec = WorkloadSpec {
            instances,
            spread: Some(spread),
            ..spec.clone()
        };
        instances::check(&spec, &recipe).map_err(|error| (error.problem, error.hint))?;
        specs.push(spec);
    }
    specs.sort_by_key(|spec| spec.instances);
    Ok(specs)
}
