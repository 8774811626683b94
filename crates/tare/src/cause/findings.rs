//! Findings after a run: suspicions on what was measured, without anything having been switched off.
//!
//! Pure: arms with their facts and counters, and the cells of a dossier. A finding wants a material cost, so that
//! facts alone never make one. Its status is `supported` where the evidence is specific, else `untested`;
//! `confirmed` takes a counterfactual, which is for those who can start arms. What it cannot see: two causes of one
//! cost that hide each other.

use tare_model::dossier::{DossierCell, DossierFinding};

use super::{ArmEvidence, Case, suspicions};

/// From this likelihood on a suspicion counts as supported by its evidence.
pub const SUPPORTED: f64 = 0.5;
/// Below this nothing is said: a run without a suspect is better than one with a wild guess.
const LEAST: f64 = 0.2;
/// A suspicion is left out when all of its cells are explained by others that are this many times as likely.
const OUTDONE: f64 = 2.0;

/// The findings for every arm but the baseline, the likeliest first. `cells` are those of all arms, and the
/// findings name them by their place there.
pub fn findings(
    arms: &[ArmEvidence],
    baseline: &str,
    cells: &[DossierCell],
) -> Vec<DossierFinding> {
    let Some(base) = arms.iter().find(|arm| arm.arm == baseline) else {
        return Vec::new();
    };
    let mut found: Vec<(f64, DossierFinding)> = Vec::new();
    for arm in arms.iter().filter(|arm| arm.arm != baseline) {
        let places: Vec<usize> = (0..cells.len())
            .filter(|place| cells[*place].arm == arm.arm)
            .collect();
        let own: Vec<DossierCell> = places.iter().map(|place| cells[*place].clone()).collect();
        if own.iter().all(|cell| cell.verdict != "material-cost") {
            continue;
        }
        let case = Case {
            host: &base.facts,
            baseline: base,
            arm,
            cells: &own,
        };
        let suspects = suspicions(&case);
        let mut best = vec![0.0f64; own.len()];
        for (_, suspicion) in &suspects {
            for cell in &suspicion.cells {
                best[*cell] = best[*cell].max(suspicion.likelihood);
            }
        }
        for (cause, suspicion) in suspects {
            let material = suspicion
                .cells
                .iter()
                .any(|cell| own[*cell].verdict == "material-cost");
            let is_outdone = suspicion
                .cells
                .iter()
                .all(|cell| best[*cell] >= OUTDONE * suspicion.likelihood);
            if suspicion.likelihood < LEAST || !material || is_outdone {
                continue;
            }
            let status = if suspicion.likelihood >= SUPPORTED {
                "supported"
            } else {
                "untested"
            };
            found.push((
                suspicion.likelihood,
                DossierFinding {
                    cause: cause.id().to_owned(),
                    status: status.to_owned(),
                    cells: suspicion
                        .cells
                        .iter()
                        .map(|cell| places[*cell] as u32)
                        .collect(),
                    claim: suspicion.claim,
                    evidence: suspicion.evidence,
                    effect: None,
                    advice: suspicion.advice,
                    price: suspicion.price,
                    share: None,
                    arm: None,
                    tried: None,
                },
            ));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::composed::Composed;
    use super::*;

    fn of(composed: &Composed) -> Vec<DossierFinding> {
        findings(
            &[composed.baseline.clone(), composed.arm.clone()],
            "host",
            &composed.cells,
        )
    }

    fn filtered() -> Composed {
        Composed::of("docker")
            .base("status.Seccomp", "0")
            .fact("status.Seccomp", "2")
            .both("kernel.release", "6.18.44")
    }

    #[test]
    fn a_material_cost_with_specific_evidence_is_supported() {
        let found = of(&filtered()
            .cost("cpu.integer.time", 1.0)
            .cost("syscall.getppid.time", 1.16));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].cause.as_str(), found[0].status.as_str()),
            ("security.seccomp-syscall-tax", "supported")
        );
        assert_eq!(found[0].cells, [1]);
        assert!(found[0].effect.is_none());
    }

    #[test]
    fn facts_without_a_cost_make_no_finding() {
        assert!(of(&filtered()).is_empty());
        assert!(of(&filtered().cost("syscall.getppid.time", 1.0)).is_empty());
        let mut small = filtered().cost("syscall.getppid.time", 1.16);
        small.cells[0].verdict = "cost".into();
        assert!(of(&small).is_empty(), "not material");
        assert!(findings(&[], "host", &[]).is_empty());
    }

    #[test]
    fn a_wild_guess_beside_a_good_explanation_is_left_out() {
        let composed = Composed::of("docker")
            .base("shm.size_bytes", "12884901888")
            .fact("shm.size_bytes", "67108864")
            .both("cpu.affinity", "0-1")
            .fact("cgroup.cpu.max", "50000 100000")
            .cost("command.wall.time", 2.0)
            .counted(
                "command",
                &[
                    ("wall_ns", 1e9, 2e9),
                    ("user_ns", 0.9e9, 0.9e9),
                    ("sys_ns", 0.0, 0.0),
                    ("throttled_ns", 0.0, 1e9),
                ],
            );
        let causes: Vec<String> = of(&composed)
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
