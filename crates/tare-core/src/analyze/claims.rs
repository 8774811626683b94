//! Judges published claims by rules that were fixed before the run.
//!
//! A rule is a ratio with bounds. If its interval is inside the bounds, the claim holds here; if outside, it fails;
//! if it crosses a bound, the claim is undecided. A quantity that was not measured decides nothing and gives the
//! reason; so does a claim whose premise does not occur here, or whose quantity is a different one at this scale. The
//! ratios are made in `rule`.
//! Limits: cannot check whether this machine and these versions are the ones the authors meant.

use std::fmt::Write;

use tare_model::ClaimVerdict;
use tare_model::dossier::{Dossier, DossierClaim, Span};
use tare_model::publication::{Claim, Publication, Rule};

use super::authors_numbers;
use super::bounds::{of_several, three, wanted};
use super::quantity::Lookup;

/// Every claim with its verdict.
pub(super) fn judged(publication: &Publication, dossier: &Dossier) -> Vec<DossierClaim> {
    publication
        .claims
        .iter()
        .map(|claim| judge(claim, publication, dossier))
        .collect()
}

fn judge(claim: &Claim, publication: &Publication, dossier: &Dossier) -> DossierClaim {
    let look = Lookup {
        publication,
        dossier,
    };
    let decided = decided(claim, &look);
    let (verdict, because) = decided.unwrap_or_else(|why| (ClaimVerdict::NotTestable, why));
    DossierClaim {
        id: claim.id.clone(),
        published: claim.published.clone(),
        at: claim.at.clone(),
        verdict,
        because,
        own: authors_numbers::judged(&claim.rule, &look),
    }
}

/// Returns the verdict and what it is based on; why there is none for a claim that cannot be tested.
fn decided(claim: &Claim, look: &Lookup<'_>) -> Result<(ClaimVerdict, String), String> {
    let bounds = match &claim.rule {
        Rule::NotTestable { because } => Err(because.clone()),
        rule => Ok(rule.bounds().expect("every other rule has bounds")),
    }?;
    if let Some(why) = too_small(claim, look).or_else(|| without_premise(claim, look)) {
        return Err(why);
    }
    let Some(several) = claim.rule.several() else {
        let ratio = look.ratio(&claim.rule)?;
        let because = format!("{} was claimed to be {}", shown(&ratio), wanted(bounds));
        return Ok((place(&ratio, bounds), because));
    };
    let n = several.quantities.len();
    // "All" is tested in every quantity, so a failure of one is corrected for their number.
    let is_all = matches!(claim.rule, Rule::All(_));
    let mut counts = [0usize; 3];
    let mut missing = Vec::new();
    for name in &several.quantities {
        match look.one_of(name, several) {
            Ok(ratio) => {
                let outcome = match place(&ratio.span, bounds) {
                    ClaimVerdict::Fails if is_all => ratio
                        .of_several(n)
                        .map(|span| place(&span, bounds))
                        .filter(|outcome| *outcome == ClaimVerdict::Fails)
                        .unwrap_or(ClaimVerdict::Undecided),
                    outcome => outcome,
                };
                counts[outcome as usize] += 1;
            }
            Err(why) => missing.push(why),
        }
    }
    let [holds, fails, undecided] = counts;
    if holds + fails + undecided == 0 {
        // Several quantities are usually missing for one reason.
        let mut reasons = Vec::new();
        for why in missing {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        return Err(reasons.join("; "));
    }
    let mut because = format!(
        "of {n} ratios, {holds} {}, {fails} clearly not, {undecided} undecided",
        wanted(bounds)
    );
    if !missing.is_empty() {
        let _ = write!(because, ", {} not measured", missing.len());
    }
    Ok((of_several(&claim.rule, holds, fails, n), because))
}

/// The reason, if a quantity of the claim was measured at a scale at which it is a different one.
fn too_small(claim: &Claim, look: &Lookup<'_>) -> Option<String> {
    let quantity = look.quantity(claim.rule.quantities().first()?)?;
    let cells = look.dossier.cells.iter();
    let mut cells =
        cells.filter(|it| it.metric == quantity.metric && it.params.covers(&quantity.params));
    cells.find_map(|cell| {
        claim.from.iter().find_map(|(param, least)| {
            let own = cell.params.int(param).filter(|own| own < least)?;
            Some(format!(
                "“{}” was measured with {param} = {own}; below {least} it is another quantity than the claim's",
                quantity.label
            ))
        })
    })
}

/// The reason, if the claim's premise does not hold here or is not known.
fn without_premise(claim: &Claim, look: &Lookup<'_>) -> Option<String> {
    let given = claim.given.as_ref()?;
    let bounds = given.bounds()?;
    match look.ratio(given) {
        Err(why) => Some(why),
        Ok(ratio) => (place(&ratio, bounds) != ClaimVerdict::Holds).then(|| {
            let at = wanted(bounds);
            format!(
                "its premise does not occur here: {} is not surely {at}",
                shown(&ratio)
            )
        }),
    }
}

fn place(ratio: &Span, (low, high): (f64, f64)) -> ClaimVerdict {
    if ratio.low >= low && ratio.high <= high {
        ClaimVerdict::Holds
    } else if ratio.high < low || ratio.low > high {
        ClaimVerdict::Fails
    } else {
        ClaimVerdict::Undecided
    }
}

fn shown(ratio: &Span) -> String {
    format!(
        "× {} [{}, {}]",
        three(ratio.point),
        three(ratio.low),
        three(ratio.high)
    )
}

#[cfg(test)]
mod tests {
    use tare_model::Value;
    use tare_model::dossier::DossierBlock;

    use ClaimVerdict::{Fails, Holds, NotTestable, Undecided};

    use super::*;
    use crate::analyze::cell::level_of;
    use crate::analyze::publication::tests::publication_of;
    use crate::testing::stored;

    #[test]
    fn claim_with_interval_across_a_bound_is_undecided() {
        let from = (1.5, f64::INFINITY);
        for (low, high, bounds, verdict) in [
            (1.6, 2.0, from, Holds),
            (1.4, 2.0, from, Undecided),
            (1.1, 1.4, from, Fails),
            (0.9, 1.1, (0.98, 1.02), Undecided),
        ] {
            assert_eq!(place(&Span::new(low, low, high), bounds), verdict);
        }
    }

    #[test]
    fn different_tools_void_cross_arm_claims_only() {
        const PARTS: &str = r#"
quantity = [{ name = "call", label = "Call", metric = "syscall.getppid.time" }]
claim = [
  { id = "a", published = "p", at = "", rule = { kind = "cost", quantity = "call", arm = "container", at_least = 0.01 } },
  { id = "b", published = "p", at = "", rule = { kind = "all", quantities = ["call"], arm = "container", at_least = 0.01 } },
  { id = "c", published = "p", at = "", rule = { kind = "ratio", quantity = "call", to = "call", arm = "container", at_least = 0.01 } },
]
"#;
        let mut dossier = stored();
        let publication = publication_of(PARTS);
        let verdicts = |dossier: &Dossier| -> Vec<ClaimVerdict> {
            let claims = judged(&publication, dossier);
            claims.iter().map(|claim| claim.verdict).collect()
        };
        assert_eq!(verdicts(&dossier), [Holds; 3]);
        dossier.cells[0].flags.push(crate::analyze::flag::flag(
            crate::analyze::diagnostics::DIFFERENT_TOOL,
            "`sysbench`: 1.0 here, 1.1 in the baseline".to_owned(),
        ));
        let none = NotTestable;
        assert_eq!(verdicts(&dossier), [none, none, Holds]);
        let reported = &judged(&publication, &dossier)[0].because;
        assert!(
            reported.contains("1.0 here, 1.1 in the baseline"),
            "{reported}"
        );
    }

    /// Three arms of 16 blocks whose values move together by 10 % from block to block; each arm's noise is 0.5 %.
    fn of_blocks(costs: [f64; 3]) -> Dossier {
        let mut dossier = stored();
        let mut stream = tare_stats::Stream::new(7, 0, 0);
        let mut noise = |sd: f64| sd * stream.normal();
        let rows: Vec<[f64; 4]> = (0..16)
            .map(|_| {
                let shared = noise(0.1);
                [1.0, costs[0], costs[1], costs[2]]
                    .map(|cost| 100.0 * (shared + noise(0.005)).exp() * cost)
            })
            .collect();
        let like = dossier.cells[0].clone();
        let arm = dossier.arms[1].clone();
        dossier.cells.clear();
        dossier.aa.clear();
        for (place, id) in ["one", "two", "three"].into_iter().enumerate() {
            let mut cell = like.clone();
            (cell.arm, cell.n_blocks) = (id.to_owned(), 16);
            cell.flags.clear();
            let blocks = rows.iter().zip(0..).map(|(row, block)| DossierBlock {
                block,
                base: row[0],
                env: row[place + 1],
                ..like.blocks[0]
            });
            cell.blocks = blocks.collect();
            for block in &mut cell.blocks {
                (block.base_alone, block.env_alone, block.apart) = (None, None, None);
            }
            let values = |place: usize| -> Vec<f64> { rows.iter().map(|row| row[place]).collect() };
            let launches = [0; 16];
            cell.base = level_of(&values(0), &launches);
            cell.env = level_of(&values(place + 1), &launches);
            let mut of_arm = arm.clone();
            of_arm.id = id.to_owned();
            dossier.arms.push(of_arm);
            dossier.cells.push(cell);
        }
        dossier
    }

    #[test]
    fn between_claim_compares_arms_within_blocks() {
        const PARTS: &str = r#"
quantity = [{ name = "call", label = "Call", metric = "syscall.getppid.time" }]
claim = [
  { id = "even", published = "p", at = "", rule = { kind = "between", quantity = "call", arm = "two", other = "one", at_least = 0.98, at_most = 1.02 } },
  { id = "odd", published = "p", at = "", rule = { kind = "between", quantity = "call", arm = "three", other = "one", at_least = 0.98, at_most = 1.02 } },
  { id = "gains", published = "p", at = "", rule = { kind = "between", quantity = "call", arm = "two", other = "one", at_most = 1.02 }, given = { kind = "between", quantity = "call", arm = "two", other = "one", at_least = 1.03 } },
  { id = "premise", published = "p", at = "", rule = { kind = "between", quantity = "call", arm = "two", other = "one", at_most = 1.02 }, given = { kind = "between", quantity = "call", arm = "three", other = "one", at_least = 1.03 } },
]
"#;
        let dossier = of_blocks([1.0, 1.0, 1.05]);
        let claims = judged(&publication_of(PARTS), &dossier);
        let verdicts: Vec<ClaimVerdict> = claims.iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, [Holds, Fails, NotTestable, Holds], "{claims:?}");
        assert!(claims[2].because.contains("premise"), "{claims:?}");
    }

    #[test]
    fn one_of_many_at_the_bound_does_not_make_all_fail() {
        let mut parts = String::new();
        let mut names = Vec::new();
        for n in 0..30 {
            let name = format!("q{n}");
            let _ = write!(
                parts,
                "[[quantity]]\nname = \"{name}\"\nlabel = \"Q\"\nmetric = \"syscall.getppid.time\"\n"
            );
            names.push(format!("\"{name}\""));
        }
        let _ = write!(
            parts,
            "[[claim]]\nid = \"all\"\npublished = \"p\"\nat = \"\"\nrule = {{ kind = \"all\", quantities = [{}], arm = \"two\", other = \"one\", at_least = AT }}\n",
            names.join(", ")
        );
        let verdict = |two: f64, at_least: &str| {
            let publication = publication_of(&parts.replace("AT", at_least));
            judged(&publication, &of_blocks([1.0, two, 1.0]))[0].verdict
        };
        let dossier = of_blocks([1.0, 1.0, 1.0]);
        let publication = publication_of(&parts.replace("AT", "1.0"));
        let look = Lookup {
            publication: &publication,
            dossier: &dossier,
        };
        let several = publication.claims[0].rule.several().unwrap();
        let ratio = look.one_of("q0", several).unwrap();
        let corrected = ratio.of_several(30).unwrap();
        assert!(corrected.low < ratio.span.low && ratio.span.high < corrected.high);
        // A bound between both upper ends: a single test would fail, thirty do not.
        let between = f64::midpoint(ratio.span.high, corrected.high);
        assert_eq!(verdict(1.0, &between.to_string()), Undecided);
        assert_eq!(verdict(1.0, "1.2"), Fails);
    }

    #[test]
    fn claim_below_its_scale_is_not_testable() {
        const PARTS: &str = r#"
quantity = [{ name = "call", label = "Call", metric = "syscall.getppid.time" }]
claim = [{ id = "a", published = "p", at = "", rule = { kind = "cost", quantity = "call", arm = "container", at_least = 0.01 }, from = { size = 8000 } }]
"#;
        let mut dossier = stored();
        let publication = publication_of(PARTS);
        let claim = |dossier: &Dossier| judged(&publication, dossier).remove(0);
        for (size, verdict) in [(1000, NotTestable), (8000, Holds)] {
            for cell in dossier.cells.iter_mut().chain(&mut dossier.aa) {
                cell.params.0.insert("size".to_owned(), Value::Int(size));
            }
            let claim = claim(&dossier);
            assert_eq!(claim.verdict, verdict, "{claim:?}");
        }
    }
}
