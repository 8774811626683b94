//! Environment variables that are set on one side only: proxies, locales, allocators, pools.
//!
//! Limits: misses variables that a program sets itself, and files that its locale needs.

use super::prelude::*;
use super::triage::Family::{MoreCalls, OtherCode, Spin, Waiting};

const FAMILIES: &[Family] = &[OtherCode, MoreCalls, Waiting, Spin];

pub(super) static CAUSE: Entry = Entry {
    id: "tooling.variables-differ",
    title: "Variables that change how programs work are set on one side only",
    mechanism: "Proxies, locales, preloaded libraries and the sizes of pools come with a login and not with a container. \
                The same program then takes another way.",
    needs: &[fact::VARIABLE],
    size: "Anything from nothing to a proxy on the way of every request.",
    advice: "Set the same variables on both sides.",
    price: "None; variables with passwords do not belong into an image.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let side = |facts: &'_ Facts| -> Vec<(String, String)> {
        let variables = facts.iter().filter_map(|(name, value)| {
            Some((fact::what(fact::VARIABLE, name)?.to_owned(), value.clone()))
        });
        variables.collect()
    };
    let (there, here) = (side(&case.baseline.facts), side(&case.arm.facts));
    // Nothing is known unless both sides were recorded.
    if !case.baseline.facts.contains_key(fact::ENVIRONMENT_BYTES)
        || !case.arm.facts.contains_key(fact::ENVIRONMENT_BYTES)
    {
        return None;
    }
    let lacking: Vec<&(String, String)> =
        there.iter().filter(|pair| !here.contains(pair)).collect();
    let added: Vec<&(String, String)> = here
        .iter()
        .filter(|(name, _)| !there.iter().any(|(other, _)| other == name))
        .collect();
    if lacking.is_empty() && added.is_empty() {
        return None;
    }
    let cells = case.costs(&[]);
    let settable: Vec<(&str, String)> = lacking
        .iter()
        .filter(|(_, value)| value != "set")
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let names: Vec<String> = lacking
        .iter()
        .chain(&added)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    Some(
        case.found(
            &cells,
            0.2 * case.fit(&cells, FAMILIES),
            format!(
                "{} set otherwise in the arm",
                if names.len() == 1 {
                    format!("{} is", names[0])
                } else {
                    format!("{} are", names.join(", "))
                }
            ),
        )
        .also_seen(
            lacking
                .iter()
                .map(|(name, value)| format!("`{name}` is `{value}` in the baseline only")),
        )
        .also_seen(
            added
                .iter()
                .map(|(name, value)| format!("`{name}` is `{value}` in the arm only")),
        )
        .with_counterfactual(if settable.is_empty() {
            switch::not_here("a variable cannot be removed from a command")
        } else {
            switch::variables(&settable)
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_on_one_side_is_suspected_of_commands() {
        let known = || Composed::new("docker").both("environment.bytes", "900");
        let command = |case: Composed| case.cost("command.wall.time", 1.3);
        let there = known().base("variable.LANG", "C");
        check(
            &CAUSE,
            &[
                command(known().base("variable.MALLOC_ARENA_MAX", "2")),
                command(known().fact("variable.http_proxy", "set")),
            ],
            &[
                command(known().both("variable.LANG", "C.UTF-8")),
                command(Composed::new("docker").base("variable.LANG", "C")),
                there.cost("cpu.integer.time", 1.3),
            ],
        );
    }
}
