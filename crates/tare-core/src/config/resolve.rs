//! Turns the structure of a study file into a validated study.

use std::ops::Range;

use tare_model::study::A_PRIME;
use tare_model::{ArmId, ArmSpec, Params, Path, Study, Value, WorkloadId, WorkloadSpec};

use super::design::{blocks, count, lift_the_bound_of_blocks, margins, written};
use super::error::{Source, StudyError};
use super::file::{Arm, StudyFile, Workload, plain};
use super::{Adjustments, Drivers, Table, instances, publication, sweep, units};
use crate::suggest;
use crate::{driver, workload};

pub(super) fn resolve(
    name: &str,
    text: &str,
    file: &StudyFile,
    adjustments: &Adjustments,
    drivers: &dyn Drivers,
) -> Result<Study, StudyError> {
    let source = Source { name, text };
    let id = file.id.get_ref();
    if tare_model::WorkloadId::new(id.clone()).is_err() {
        return Err(source.error(
            Some(file.id.span()),
            format!("`{id}` is not a name"),
            Some("use letters, digits, `-`, `_` and `.`".into()),
        ));
    }
    let arms = arms(&source, file, adjustments, drivers)?;
    let baseline = arms[0].id.clone();
    let workloads = workloads(&source, file, adjustments)?;
    let design = &file.design;
    let (blocks_min, blocks_max) = blocks(&source, design, adjustments)?;
    let duration = |value: &Option<_>, default| {
        written(&source, value.as_ref(), default, units::some_duration_ns)
    };
    let percent =
        |value: &Option<_>, default| written(&source, value.as_ref(), default, units::fraction);
    let budget_ns = match adjustments.budget_ns {
        None if design.budget.is_some() => Some(duration(&design.budget, 0)?),
        given => given,
    };
    let precision = match adjustments.precision {
        None if design.precision.is_some() => Some(percent(&design.precision, 0.0)?),
        given => given,
    };
    let trial_ns = duration(&design.trial, 100_000_000)?;
    let limit_ns = duration(&design.limit, 20_000_000_000)?;
    if limit_ns <= trial_ns {
        let span = design.limit.as_ref().map(toml::Spanned::span);
        let problem = "`limit` is not longer than `trial`: every trial would be given up";
        return Err(source.error(span, problem, None));
    }
    let publication = publication::resolve(&source, file, &arms, &workloads, adjustments)?;
    let seed = adjustments.seed.or(design.seed);
    let mut study = Study {
        id: id.clone(),
        title: file.title.clone().unwrap_or_else(|| id.clone()),
        seed: seed.unwrap_or(adjustments.drawn_seed),
        baseline,
        arms,
        workloads,
        margins: margins(&source, &file.margins)?,
        blocks_min,
        blocks_max,
        blocks_per_launch: count(
            &source,
            design.blocks_per_launch.as_ref(),
            1,
            "`blocks_per_launch`",
        )?,
        precision,
        budget_ns,
        trial_ns,
        limit_ns,
        settle_ns: written(&source, design.settle.as_ref(), 0, units::duration_ns)?,
        lifecycle: design.lifecycle.unwrap_or_default(),
        publication,
        alternate: design.alternate.unwrap_or(true),
        pairs: design.pairs || adjustments.pairs,
        usage: design.usage || adjustments.usage,
        allow_different_tools: design.allow_different_tools || adjustments.allow_different_tools,
    };
    let is_bound_by_time = adjustments.budget_ns.is_some() || design.blocks_max.is_none();
    if adjustments.blocks.is_none() && is_bound_by_time {
        lift_the_bound_of_blocks(&mut study);
    }
    Ok(study)
}

/// Returns the arms: baseline first, its copy A′ second, then the others in the file's order.
fn arms(
    source: &Source<'_>,
    file: &StudyFile,
    adjustments: &Adjustments,
    drivers: &dyn Drivers,
) -> Result<Vec<ArmSpec>, StudyError> {
    let mut specs: Vec<ArmSpec> = Vec::new();
    for arm in &file.arms {
        let spec = arm_spec(source, arm, drivers)?;
        if spec.id.as_str() == A_PRIME || specs.iter().any(|other| other.id == spec.id) {
            return Err(source.error(
                Some(arm.id.span()),
                format!("there are two arms named `{}`", spec.id),
                (spec.id.as_str() == A_PRIME)
                    .then(|| "this name is taken by the second copy of the baseline".into()),
            ));
        }
        specs.push(spec);
    }
    let position = match &file.baseline {
        Some(name) => {
            let mut ids = specs.iter().map(|spec| spec.id.as_str());
            ids.position(|id| id == name.get_ref()).ok_or_else(|| {
                let known = specs.iter().map(|spec| spec.id.as_str());
                source.error(
                    Some(name.span()),
                    format!("no arm is named `{}`", name.get_ref()),
                    Some(suggest::hint(name.get_ref(), known)),
                )
            })?
        }
        None if specs.is_empty() => {
            return Err(source.error(
                None,
                "the study has no arm",
                Some("add `[[arm]]` with `id = \"host\"`".into()),
            ));
        }
        None => 0,
    };
    let baseline = specs.remove(position);
    if !adjustments.environments.is_empty() {
        specs = chosen_arms(&specs, &baseline, adjustments, drivers)?;
    }
    let mut baseline = ArmSpec {
        required: true,
        ..baseline
    };
    for (arm, name, value) in &adjustments.settings {
        let mut all = specs.iter_mut().chain(std::iter::once(&mut baseline));
        let Some(spec) = all.find(|spec| spec.id.as_str() == arm) else {
            let known = specs.iter().chain([&baseline]);
            return Err(Source::of_option("--set").error(
                None,
                format!("there is no arm `{arm}`"),
                Some(suggest::hint(arm, known.map(|spec| spec.id.as_str()))),
            ));
        };
        let more = Params::new().with(name, value.clone());
        *spec = with_settings("--set", spec, &more, drivers)?;
    }
    let again = ArmSpec {
        id: ArmId::new(A_PRIME).expect("the constant is a name"),
        ..baseline.clone()
    };
    Ok([baseline, again].into_iter().chain(specs).collect())
}

fn chosen_arms(
    specs: &[ArmSpec],
    baseline: &ArmSpec,
    adjustments: &Adjustments,
    drivers: &dyn Drivers,
) -> Result<Vec<ArmSpec>, StudyError> {
    let option = Source::of_option("--env");
    let mut chosen: Vec<ArmSpec> = Vec::new();
    for given in &adjustments.environments {
        let name = given.name.as_str();
        let is_taken = chosen
            .iter()
            .chain([baseline])
            .any(|arm| arm.id.as_str() == name);
        if is_taken && given.settings.is_empty() {
            continue;
        }
        if is_taken {
            return Err(option.error(
                None,
                format!("there are two arms named `{name}`"),
                Some("a study file gives each a name: `tare run FILE.toml`".into()),
            ));
        }
        let spec = if let Some(spec) = specs.iter().find(|spec| spec.id.as_str() == name) {
            spec.clone()
        } else if let Some(driver) = driver::find(name) {
            let id = ArmId::new(driver.id).expect("a driver's id is a name");
            ArmSpec::new(id, driver.id, Params::new())
        } else {
            let known: Vec<&str> = specs
                .iter()
                .map(|spec| spec.id.as_str())
                .chain(driver::DRIVERS.iter().map(|driver| driver.id))
                .collect();
            return Err(option.error(
                None,
                format!("there is no environment `{name}`"),
                Some(suggest::hint(name, known)),
            ));
        };
        let spec = with_settings("--env", &spec, &given.settings, drivers)?;
        chosen.push(ArmSpec {
            required: true,
            ..spec
        });
    }
    Ok(chosen)
}

/// Returns an arm with further settings, which its driver must accept.
fn with_settings(
    option: &'static str,
    spec: &ArmSpec,
    more: &Params,
    drivers: &dyn Drivers,
) -> Result<ArmSpec, StudyError> {
    let mut spec = spec.clone();
    if more.is_empty() {
        return Ok(spec);
    }
    spec.settings.0.extend(more.0.clone());
    let option = Source::of_option(option);
    if driver::find(&spec.driver).is_none() {
        let problem = format!("there is no environment `{}`", spec.driver);
        return Err(option.error(None, problem, None));
    }
    drivers
        .check(&spec.driver, &spec.id, &spec.settings)
        .map_err(|error| {
            option.error(
                None,
                format!("`{}`: {}", spec.id, error.problem),
                error.hint,
            )
        })?;
    Ok(spec)
}

fn arm_spec(source: &Source<'_>, arm: &Arm, drivers: &dyn Drivers) -> Result<ArmSpec, StudyError> {
    let name = arm.id.get_ref();
    let id = ArmId::new(name.clone())
        .map_err(|error| source.error(Some(arm.id.span()), error.to_string(), None))?;
    let named = arm.driver.as_ref().unwrap_or(&arm.id);
    let driver_name = named.get_ref();
    let Some(driver) = driver::find(driver_name) else {
        let known = driver::DRIVERS.iter().map(|driver| driver.id);
        return Err(source.error(
            Some(named.span()),
            format!("there is no environment `{driver_name}`"),
            Some(suggest::hint(driver_name, known)),
        ));
    };
    let known = drivers.settings(driver.id);
    let settings = table(source, &arm.settings, &known, "setting", driver.id)?;
    if let Err(error) = drivers.check(driver.id, &id, &settings) {
        return Err(source.error(
            value_span(&arm.settings, &error.setting).or(Some(arm.id.span())),
            error.problem,
            error.hint,
        ));
    }
    Ok(ArmSpec {
        required: arm.required,
        ..ArmSpec::new(id, driver.id, settings)
    })
}

fn workloads(
    source: &Source<'_>,
    file: &StudyFile,
    adjustments: &Adjustments,
) -> Result<Vec<WorkloadSpec>, StudyError> {
    let mut specs = Vec::new();
    for entry in &file.workloads {
        for params in sweep::points(source, entry)? {
            let spec = workload_spec(source, entry, &params)?;
            specs.extend(instances::expanded(source, entry, spec)?);
        }
    }
    if !adjustments.workloads.is_empty() {
        let mut chosen: Vec<WorkloadSpec> = Vec::new();
        for name in &adjustments.workloads {
            let before = chosen.len();
            chosen.extend(
                specs
                    .iter()
                    .filter(|spec| spec.id.as_str() == name)
                    .cloned(),
            );
            if chosen.len() > before {
                continue;
            }
            let Some(found) = workload::find(name) else {
                let known = workload::WORKLOADS.iter().map(|workload| workload.id());
                return Err(Source::of_option("--workload").error(
                    None,
                    format!("there is no workload `{name}`"),
                    Some(suggest::hint(name, known)),
                ));
            };
            let id = WorkloadId::new(found.id()).expect("a workload's id is a name");
            chosen.push(WorkloadSpec {
                path: found.paths().first().copied(),
                ..WorkloadSpec::new(id, with_defaults(found, Params::new()))
            });
        }
        specs = chosen;
    }
    let specs = instances::adjusted(specs, adjustments)?;
    if specs.is_empty() {
        return Err(source.error(
            None,
            "the study has no workload",
            Some(
                "add `[[workload]]` with `id = \"getppid\"`; `tare list workloads` shows all"
                    .into(),
            ),
        ));
    }
    Ok(specs)
}

fn workload_spec(
    source: &Source<'_>,
    entry: &Workload,
    given: &Table,
) -> Result<WorkloadSpec, StudyError> {
    let name = entry.id.get_ref();
    let Some(found) = workload::find(name) else {
        return Err(source.error(
            Some(entry.id.span()),
            format!("there is no workload `{name}`"),
            Some(suggest::hint(
                name,
                workload::WORKLOADS.iter().map(|workload| workload.id()),
            )),
        ));
    };
    let path = match &entry.path {
        None => found.paths().first().copied(),
        Some(text) => Some(path(source, found, text)?),
    };
    let known: Vec<&str> = found.params().iter().map(|param| param.name).collect();
    let params = with_defaults(found, table(source, given, &known, "parameter", name)?);
    if let Err(error) = found.recipe(&params, path) {
        return Err(source.error(
            value_span(given, &error.param).or(Some(entry.id.span())),
            error.problem,
            error.hint,
        ));
    }
    let id = WorkloadId::new(name.clone()).expect("a workload's id is a name");
    Ok(WorkloadSpec {
        path,
        ..WorkloadSpec::new(id, params)
    })
}

fn path(
    source: &Source<'_>,
    found: &dyn workload::Workload,
    text: &toml::Spanned<String>,
) -> Result<Path, StudyError> {
    let wanted = text.get_ref().replace("->", "→");
    let labels: Vec<&str> = found.paths().iter().map(|path| path.name()).collect();
    match found.paths().iter().find(|path| path.name() == wanted) {
        Some(path) => Ok(*path),
        None if labels.is_empty() => Err(source.error(
            Some(text.span()),
            format!("`{}` has one end and takes no path", found.id()),
            None,
        )),
        None => Err(source.error(
            Some(text.span()),
            format!("`{}` is no path of `{}`", text.get_ref(), found.id()),
            Some(suggest::hint(&wanted, labels)),
        )),
    }
}

fn with_defaults(found: &dyn workload::Workload, given: Params) -> Params {
    found.params().iter().fold(given, |params, spec| {
        if params.value(spec.name).is_some() {
            params
        } else {
            params.with(spec.name, Value::from(spec.default))
        }
    })
}

/// Checks the names of a table and converts its values.
fn table(
    source: &Source<'_>,
    table: &Table,
    known: &[&str],
    what: &str,
    of: &str,
) -> Result<Params, StudyError> {
    let mut params = Params::new();
    for (key, value) in table {
        let name = key.get_ref();
        if !known.contains(&name.as_str()) {
            let hint = if known.is_empty() {
                format!("`{of}` takes no {what}")
            } else {
                suggest::hint(name, known.iter().copied())
            };
            return Err(source.error(
                Some(key.span()),
                format!("`{of}` has no {what} `{name}`"),
                Some(hint),
            ));
        }
        let plain = plain(value.get_ref()).ok_or_else(|| {
            source.error(
                Some(value.span()),
                format!("`{name}` must be a number, a text, true or false, or a list of these"),
                None,
            )
        })?;
        params = params.with(name, plain);
    }
    Ok(params)
}

fn value_span(table: &Table, name: &str) -> Option<Range<usize>> {
    table
        .iter()
        .find(|(key, _)| key.get_ref() == name)
        .map(|(_, value)| value.span())
}
