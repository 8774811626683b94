//! Published claims, judged by rules that were fixed before the run.
//!
//! A rule is a ratio with bounds. Its interval inside of the bounds: the claim holds here. Outside of them: it
//! does not. Across one of them: undecided. What was not measured decides nothing, and says why.
//! The ratios are made in `rule`.
//! What it cannot see: whether this machine and these versions are what the authors meant.

use std::fmt::Write;

use tare_model::ClaimVerdict;
use tare_model::dossier::{Dossier, DossierClaim, Span};
use tare_model::publication::{Claim, Publication, Rule};

use super::bounds::{of_several, three, wanted};
use super::own_numbers;
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
    let told = |verdict: ClaimVerdict, because: String| DossierClaim {
        id: claim.id.clone(),
        published: claim.published.clone(),
        at: claim.at.clone(),
        verdict,
        because,
        own: own_numbers::judged(&claim.rule, &look),
    };
    let Some(bounds) = claim.rule.bounds() else {
        let Rule::NotTestable { because } = &claim.rule else {
            unreachable!("every other rule has bounds");
        };
        return told(ClaimVerdict::NotTestable, because.clone());
    };
    let Some(several) = claim.rule.several() else {
        return match look.ratio(&claim.rule) {
            Err(why) => told(ClaimVerdict::NotTestable, why),
            Ok(ratio) => {
                let outcome = place(&ratio, bounds);
                told(
                    outcome,
                    format!("{} was claimed to be {}", shown(&ratio), wanted(bounds)),
                )
            }
        };
    };
    let mut counts = [0usize; 3];
    let mut missing = Vec::new();
    for name in &several.quantities {
        match look.one_of(name, several) {
            Ok(ratio) => counts[place(&ratio, bounds) as usize] += 1,
            Err(why) => missing.push(why),
        }
    }
    let [holds, fails, undecided] = counts;
    if holds + fails + undecided == 0 {
        // Several quantities mostly lack for one reason.
        let mut reasons = Vec::new();
        for why in missing {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        return told(ClaimVerdict::NotTestable, reasons.join("; "));
    }
    let n = several.quantities.len();
    let outcome = of_several(&claim.rule, holds, fails, n);
    let mut because = format!(
        "of {n} ratios, {holds} {}, {fails} clearly not, {undecided} undecided",
        wanted(bounds)
    );
    if !missing.is_empty() {
        let _ = write!(because, ", {} not measured", missing.len());
    }
    told(outcome, because)
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
    use super::*;
    use crate::analyze::publication::tests::publication_of;

    #[test]
    fn an_interval_across_a_bound_decides_nothing() {
        let bounds = (1.5, f64::INFINITY);
        assert_eq!(
            place(&Span::new(1.6, 1.8, 2.0), bounds),
            ClaimVerdict::Holds
        );
        assert_eq!(
            place(&Span::new(1.4, 1.8, 2.0), bounds),
            ClaimVerdict::Undecided
        );
        assert_eq!(
            place(&Span::new(1.1, 1.2, 1.4), bounds),
            ClaimVerdict::Fails
        );
        assert_eq!(
            place(&Span::new(0.9, 1.0, 1.1), (0.98, 1.02)),
            ClaimVerdict::Undecided
        );
    }

    #[test]
    fn two_programs_decide_no_claim_about_two_arms_and_one_of_them_may_one_about_itself() {
        const STORED: &str = include_str!("../../../../fixtures/before/20261122-210539-1f5a.json");
        const PARTS: &str = r#"
quantity = [{ name = "call", label = "Call", metric = "syscall.getppid.time" }]
claim = [
  { id = "a", published = "p", at = "", rule = { kind = "cost", quantity = "call", arm = "container", at_least = 0.01 } },
  { id = "b", published = "p", at = "", rule = { kind = "all", quantities = ["call"], arm = "container", at_least = 0.01 } },
  { id = "c", published = "p", at = "", rule = { kind = "ratio", quantity = "call", to = "call", arm = "container", at_least = 0.01 } },
]
"#;
        let mut dossier: Dossier = serde_json::from_str(STORED).unwrap();
        let publication = publication_of(PARTS);
        let verdicts = |dossier: &Dossier| -> Vec<ClaimVerdict> {
            let claims = judged(&publication, dossier);
            claims.iter().map(|claim| claim.verdict).collect()
        };
        assert_eq!(verdicts(&dossier), [ClaimVerdict::Holds; 3]);
        dossier.cells[0].flags.push(crate::analyze::flag::flag(
            crate::analyze::diagnostics::DIFFERENT_TOOL,
            "`sysbench`: 1.0 here, 1.1 in the baseline".to_owned(),
        ));
        let none = ClaimVerdict::NotTestable;
        assert_eq!(verdicts(&dossier), [none, none, ClaimVerdict::Holds]);
        let told = &judged(&publication, &dossier)[0].because;
        assert!(told.contains("1.0 here, 1.1 in the baseline"), "{told}");
    }
}
