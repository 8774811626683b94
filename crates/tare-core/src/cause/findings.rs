//! Derives suspected causes from a run's measurements, without switching anything off.
//!
//! Pure: arms with their facts and counters, and the cells of a dossier. A suspicion needs a relevant slowdown, so
//! facts alone never make one. As a finding it is `supported` if the evidence is specific, else `untested`;
//! `confirmed` needs a counterfactual, which only code that can start arms can run. Limits: misses two causes of one
//! slowdown that hide each other.

use tare_model::dossier::{DossierCell, DossierFinding};
use tare_model::{Status, Verdict, whole_count};

use super::{ArmEvidence, Case, Suspicion, likely_suspicions};

/// From this likelihood on the evidence counts as supporting a suspicion.
const SUPPORTED: f64 = 0.5;
/// Suspicions below this are not reported: no suspect is better than a wild guess.
const LEAST: f64 = 0.2;
/// A suspicion is omitted if other suspicions that are this many times as likely explain all of its cells.
const OUTDONE: f64 = 2.0;

/// A suspicion based on a run's cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspected {
    /// The slower arm.
    pub arm: String,
    /// The cause's id.
    pub cause: &'static str,
    /// The suspicion; its cells are indices into those of all arms.
    pub suspicion: Suspicion,
}

impl Suspected {
    /// Returns it as a finding without a counterfactual.
    pub fn finding(&self) -> DossierFinding {
        let Suspicion {
            claim,
            evidence,
            cells,
            likelihood,
            advice,
            price,
            ..
        } = &self.suspicion;
        let status = if *likelihood >= SUPPORTED {
            Status::Supported
        } else {
            Status::Untested
        };
        DossierFinding {
            cause: self.cause.to_owned(),
            status,
            cells: cells.iter().copied().map(whole_count).collect(),
            claim: claim.clone(),
            evidence: evidence.clone(),
            effect: None,
            advice: advice.clone(),
            price: price.clone(),
            share: None,
            arm: None,
            tried: None,
        }
    }
}

/// Returns the suspicions in every arm but the baseline, the likeliest first. `cells` are those of all arms.
pub fn suspected(arms: &[ArmEvidence], baseline: &str, cells: &[DossierCell]) -> Vec<Suspected> {
    let Some(base) = arms.iter().find(|arm| arm.arm == baseline) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for arm in arms.iter().filter(|arm| arm.arm != baseline) {
        let places: Vec<usize> = (0..cells.len())
            .filter(|place| cells[*place].arm == arm.arm)
            .collect();
        let own: Vec<DossierCell> = places.iter().map(|place| cells[*place].clone()).collect();
        if own.iter().all(|cell| cell.verdict != Verdict::MaterialCost) {
            continue;
        }
        let case = Case {
            baseline: base,
            arm,
            cells: &own,
        };
        for (cause, mut suspicion) in likely_suspicions(&case, LEAST, OUTDONE) {
            let is_material = suspicion
                .cells
                .iter()
                .any(|cell| own[*cell].verdict == Verdict::MaterialCost);
            if !is_material {
                continue;
            }
            for cell in &mut suspicion.cells {
                *cell = places[*cell];
            }
            found.push(Suspected {
                arm: arm.arm.clone(),
                cause: cause.id,
                suspicion,
            });
        }
    }
    found.sort_by(|a, b| b.suspicion.likelihood.total_cmp(&a.suspicion.likelihood));
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::composed::Composed;
    use super::*;

    fn findings_of(composed: &Composed) -> Vec<DossierFinding> {
        suspected(
            &[composed.baseline.clone(), composed.arm.clone()],
            "host",
            &composed.cells,
        )
        .iter()
        .map(Suspected::finding)
        .collect()
    }

    fn filtered() -> Composed {
        Composed::new("docker")
            .differing("status.Seccomp", "0", "2")
            .both("kernel.release", "6.18.44")
    }

    #[test]
    fn material_cost_with_specific_evidence_is_supported() {
        let found = findings_of(
            &filtered()
                .cost("cpu.integer.time", 1.0)
                .cost("syscall.getppid.time", 1.16),
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].cause.as_str(), found[0].status),
            ("security.seccomp-syscall-tax", Status::Supported)
        );
        assert_eq!(found[0].cells, [1]);
        assert!(found[0].effect.is_none());
    }

    #[test]
    fn facts_without_a_cost_make_no_finding() {
        assert!(findings_of(&filtered()).is_empty());
        assert!(findings_of(&filtered().cost("syscall.getppid.time", 1.0)).is_empty());
        let mut small = filtered().cost("syscall.getppid.time", 1.16);
        small.cells[0].verdict = Verdict::Cost;
        assert!(findings_of(&small).is_empty(), "not material");
        assert!(suspected(&[], "host", &[]).is_empty());
    }

    #[test]
    fn unlikely_cause_is_omitted_given_a_likely_one() {
        let composed = Composed::new("docker")
            .differing("shm.size_bytes", "12884901888", "67108864")
            .both("cpu.affinity", "0-1")
            .fact("cgroup.cpu.max", "50000 100000")
            .cost("command.wall.time", 2.0)
            .took("command", (1e9, 2e9), (0.9e9, 0.9e9), (0.0, 0.0))
            .counted("command", &[("throttled_ns", 0.0, 1e9)]);
        let causes: Vec<String> = findings_of(&composed)
            .into_iter()
            .map(|finding| finding.cause)
            .collect();
        assert_eq!(
            causes.first().map(String::as_str),
            Some("cpu.cfs-quota-throttle")
        );
        assert!(!causes.contains(&"limits.shm-64m".to_owned()), "{causes:?}");
    }
}
