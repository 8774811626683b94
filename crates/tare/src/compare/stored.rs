//! Compares two stored runs. They are unpaired, and the answer says what that loses.

use std::collections::BTreeMap;

use tare_model::dossier::{Dossier, DossierCell, Span};
use tare_model::fact;

use super::options::Options;
use crate::compare::limits::Limits;
use crate::compare::{self, Comparison, Decision, gate};
use crate::failed::Failed;
use crate::recount;
use crate::session::home::GivenPaths;

/// Returns the comparison if the command line names just two stored runs.
///
/// # Errors
/// The store cannot be read, or the runs have no metric in common.
pub(crate) fn asked(
    options: &Options,
    limits: &Limits,
    place: &GivenPaths,
) -> Result<Option<Comparison>, Failed> {
    let [first, second] = options.sides.as_slice() else {
        return Ok(None);
    };
    if !looks_like_a_run(first) || !looks_like_a_run(second) {
        return Ok(None);
    }
    let store = place.store_to_read()?;
    let mut sides = Vec::new();
    for text in [first, second] {
        let run = store.resolve(text)?;
        sides.push(recount::dossier(&store, &run)?);
    }
    let [base, head] = sides.as_slice() else {
        unreachable!("two were read");
    };
    let cells = unpaired(base, head);
    if cells.is_empty() {
        return Err(Failed::usage("the two runs measured nothing in common")
            .hint("`tare runs` lists what was measured in which"));
    }
    let all = Dossier {
        cells,
        aa: Vec::new(),
        ..head.clone()
    };
    let (rows, decision) = gate::compared(&all, limits, true);
    let sides = [("base", base), ("head", head)].map(|(arm, dossier)| {
        let (run, started) = (&dossier.run, &dossier.started);
        let label = format!("{run} of {started}, {}", dossier.arms[0].id);
        compare::side_note(arm, label)
    });
    Ok(Some(Comparison {
        runs: vec![base.run.clone(), head.run.clone()],
        paired: false,
        seed: head.study.seed,
        wall_s: base.cost.wall_s + head.cost.wall_s,
        how: "two runs at different times".to_owned(),
        rows,
        decision: if decision == Decision::Slower {
            Decision::Inconclusive
        } else {
            decision
        },
        ..compare::unmeasured(sides.into(), notes(base, head), false)
    }))
}

/// Checks that a stored run exists.
///
/// # Errors
/// It does not.
pub(crate) fn check(run: &str, place: &GivenPaths) -> Result<(), Failed> {
    place.store_to_read()?.resolve(run)?;
    Ok(())
}

/// Whether a text looks like `20261125-152301-9f3c`, or its beginning up to the time.
pub(crate) fn looks_like_a_run(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_number = |part: Option<&str>, length: usize| {
        part.is_some_and(|part| part.len() == length && part.bytes().all(|it| it.is_ascii_digit()))
    };
    is_number(parts.next(), 8) && is_number(parts.next(), 6) && text.len() <= 20
}

/// Compares the levels of the last arms for each metric that both runs measured.
fn unpaired(base: &Dossier, head: &Dossier) -> Vec<DossierCell> {
    let levels = |dossier: &Dossier| -> BTreeMap<(String, String), DossierCell> {
        let cells = dossier.cells.iter();
        cells
            .map(|cell| ((cell.workload.clone(), cell.metric.clone()), cell.clone()))
            .collect()
    };
    let (first, second) = (levels(base), levels(head));
    let pairs = second.into_iter().filter_map(|(key, cell)| {
        let before = first.get(&key)?;
        let (base, env) = (before.env?, cell.env?);
        Some(DossierCell {
            base: Some(base),
            env: Some(env),
            ratio: ratio(&base, &env),
            ratio90: None,
            p: None,
            mde: None,
            flags: Vec::new(),
            blocks: Vec::new(),
            n_blocks: cell.n_blocks.min(before.n_blocks),
            arm: "head".to_owned(),
            ..cell
        })
    });
    pairs.collect()
}

/// The ratio of two independent levels; half-widths add as squares.
fn ratio(base: &Span, head: &Span) -> Option<Span> {
    if base.low <= 0.0 || head.low <= 0.0 {
        return None;
    }
    let half = |span: &Span| (span.high / span.low).ln() / 2.0;
    let both = half(base).hypot(half(head));
    let point = head.point / base.point;
    Some(Span::new(point * (-both).exp(), point, point * both.exp()))
}

/// Notes on what pairing would have controlled for.
fn notes(base: &Dossier, head: &Dossier) -> Vec<String> {
    let mut notes = vec![
        "unpaired: what the machine did between the two runs is taken for a difference, so nothing is proven; both sides in one run: tare compare 'CMD A' 'CMD B'".to_owned(),
    ];
    let facts = |dossier: &Dossier| {
        dossier
            .arms
            .first()
            .map(|arm| arm.facts.clone())
            .unwrap_or_default()
    };
    let (first, second) = (facts(base), facts(head));
    for name in [fact::CPU_MODEL, fact::KERNEL_RELEASE] {
        if let (Some(one), Some(other)) = (first.get(name), second.get(name))
            && one != other
        {
            notes.push(format!("{name} differs: {one} and {other}"));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_not_mistaken_for_runs() {
        assert!(looks_like_a_run("20261125-152301-9f3c"));
        assert!(looks_like_a_run("20261125-152301"));
        for command in ["gzip", "20261125", "date 20261125-152301", "latest"] {
            assert!(!looks_like_a_run(command), "{command}");
        }
    }

    #[test]
    fn unpaired_interval_is_wider_than_either() {
        let found = ratio(
            &Span::new(95.0, 100.0, 105.0),
            &Span::new(104.0, 110.0, 116.0),
        )
        .unwrap();
        assert!((found.point - 1.1).abs() < 1e-9);
        assert!(found.low < 110.0 / 105.0 && found.high > 110.0 / 95.0 - 0.02);
        assert!(ratio(&Span::new(0.0, 1.0, 2.0), &Span::new(1.0, 1.0, 1.0)).is_none());
    }
}
