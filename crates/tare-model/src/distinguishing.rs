//! Distinguishes workloads of the same name by parameters, path and number of instances.

use std::collections::BTreeSet;

use crate::{Params, Path, Spread};

/// With more workloads of one name than this, all parameters that differ are used.
const MANY_TWINS: usize = 64;

/// Returns parameters, preferably with short names, that distinguish these as well as all of them do: of parameters
/// that change together, only one.
pub fn distinguishing_params<'a>(twins: &[&'a Params]) -> Vec<&'a str> {
    let value = |params: &'a Params, param: &str| params.0.get(param);
    let all: BTreeSet<&str> = twins
        .iter()
        .flat_map(|params| params.0.keys())
        .map(String::as_str)
        .collect();
    let differs = |param: &&str| {
        let mut twins_values = twins.iter().map(|twin| value(twin, param));
        twins_values.any(|own| own != value(twins[0], param))
    };
    let mut params: Vec<&str> = all.into_iter().filter(differs).collect();
    // A parameter that is empty somewhere would be shown without a value there, so it comes last.
    let is_empty_somewhere = |param: &str| {
        let mut values = twins.iter().filter_map(|twin| value(twin, param));
        values.any(|value| value.to_string().is_empty())
    };
    params.sort_by_cached_key(|param| (is_empty_somewhere(param), param.len(), *param));
    if twins.len() > MANY_TWINS {
        params.sort_unstable();
        return params;
    }
    let told_apart = |chosen: &[&str]| {
        let pairs = twins.iter().enumerate();
        pairs
            .flat_map(|(place, one)| twins[place + 1..].iter().map(move |other| (one, other)))
            .filter(|(one, other)| {
                chosen
                    .iter()
                    .any(|param| value(one, param) != value(other, param))
            })
            .count()
    };
    let mut chosen: Vec<&str> = Vec::new();
    for param in params {
        let with: Vec<&str> = chosen.iter().copied().chain([param]).collect();
        if told_apart(&with) > told_apart(&chosen) {
            chosen = with;
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Returns the words behind a name: the values of the distinguishing parameters, as [`distinguishing_params`] found them, the path,
/// and the number of instances if it is not one.
pub fn distinguishing_words(
    (params, telling): (&Params, &[&str]),
    path: Option<Path>,
    instances: u32,
    spread: Option<Spread>,
) -> Vec<String> {
    let values = telling
        .iter()
        .filter_map(|param| Some(format!("{param}={}", params.0.get(*param)?)));
    let path = path.map(|path| path.to_string());
    let number = match spread {
        Some(Spread::Environments) => Some(format!("×{instances} environments")),
        _ => (instances > 1).then(|| format!("×{instances}")),
    };
    values.chain(path).chain(number).collect()
}
