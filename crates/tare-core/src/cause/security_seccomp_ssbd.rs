//! A seccomp filter that switched speculation mitigations on: kernels before 5.16.
//!
//! Not the filter is slow, but what the kernel tied to it: loads may no longer bypass stores, and a program without a
//! single syscall slows down. The process's status shows it if recorded; otherwise the kernel's age and the pattern
//! do (interpreters suffer, numerical kernels do not). From 5.16 on this cause is never suspected.
//! Limits: does not see mitigations that a program requested itself.

use super::prelude::*;

/// The first kernel that does not tie the mitigations to seccomp.
const UNTIED: (u32, u32) = (5, 16);
/// A numerical kernel counts as unaffected below this ratio.
const SPARED: f64 = 1.15;
/// An interpreter counts as affected from this ratio on.
const SUFFERS: f64 = 1.15;

/// Advice if the kernel does not tie the mitigations to the filter.
const ASKED_FOR: &str = "Find what asks for the mitigation: a setting of the environment, a wrapper that calls prctl, or the boot option \
     `spec_store_bypass_disable` (`prctl` leaves it to the programs that want it); the seccomp filter has no part in it, keep it.";

pub(super) static CAUSE: Entry = Entry {
    id: "security.seccomp-ssbd",
    title: "A seccomp filter switched speculation mitigations on (kernels before 5.16)",
    mechanism: "Before Linux 5.16 loading any seccomp filter also forbade loads to pass older stores and restricted the \
                prediction of indirect branches, unless the runtime asked otherwise. Interpreters store and load the \
                same places all the time, so they slow down without making a single system call.",
    needs: &[
        fact::STATUS_STORE_BYPASS,
        fact::STATUS_INDIRECT_BRANCH,
        fact::STATUS_SECCOMP,
        fact::MITIGATION_STORE_BYPASS,
        fact::KERNEL_RELEASE,
        "cells of interpreters and dependent loads",
    ],
    size: "Ruby 1.32 to 2.45 s, pybench 1964 to 2773 ms on a 5.15 kernel (reports). With the mitigation switched on by \
           hand: a CPython loop 25 %, dictionaries 34 %, a chain of dependent loads 2.5 times; numerical libraries are \
           hardly touched.",
    advice: "Upgrade the kernel to 5.16 or later, or the runtime to one that loads its filter without the mitigations \
             (crun, runc from 1.2), or boot with `spec_store_bypass_disable=prctl spectre_v2_user=prctl`; keep the \
             seccomp filter.",
    price: "The mitigation guards only against hostile code within one process, such as a browser's scripts; giving the \
            filter up instead would re-open dozens of system calls.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.costs(&[Kind::Interpreted, Kind::Compute]);
    if cells.is_empty() {
        return None;
    }
    let version = kernel(&case.arm.facts).or_else(|| kernel(&case.baseline.facts));
    let policy = case.fact(fact::MITIGATION_STORE_BYPASS);
    let here = case.fact(fact::STATUS_STORE_BYPASS);
    let there = case.baseline.fact(fact::STATUS_STORE_BYPASS);
    let mut evidence = Vec::new();
    let likelihood = match (here, there) {
        (Some(here), there) if here.contains("mitigated") => {
            if there.is_some_and(|there| there.contains("mitigated")) {
                return None;
            }
            evidence.push(format!(
                "loads may not pass stores: `{here}`, in the baseline `{}`",
                there.unwrap_or("not recorded")
            ));
            0.97
        }
        // The process status reports that it is unaffected.
        (Some(_), _) => return None,
        (None, _) => {
            let filtered = case.fact(fact::STATUS_SECCOMP) == Some("2")
                && case.baseline.fact(fact::STATUS_SECCOMP) != Some("2");
            let untied = version.is_some_and(|version| version >= UNTIED)
                || policy.is_some_and(|text| text.contains("prctl") && !text.contains("seccomp"));
            if !filtered || untied {
                return None;
            }
            evidence
                .push("system calls pass a filter in the arm and not in the baseline".to_owned());
            match (version, pattern(case)) {
                (Some(_), _) => 0.75,
                (None, Some(line)) => {
                    evidence.push(line);
                    0.65
                }
                (None, None) => 0.4,
            }
        }
    };
    let is_tied = version.is_none_or(|version| version < UNTIED);
    match version {
        Some((major, minor)) if is_tied => {
            evidence.push(format!(
                "the kernel is {major}.{minor}: before 5.16 a filter brings the mitigations with it"
            ));
        }
        Some((major, minor)) => evidence.push(format!(
            "the kernel is {major}.{minor}: something else than seccomp asks for it"
        )),
        None => evidence.push("the kernel's release was not recorded".to_owned()),
    }
    if let Some(text) = policy {
        evidence.push(format!("the kernel's policy: `{text}`"));
    }
    let found = case
        .found(
            &cells,
            likelihood,
            format!(
                "Speculation mitigations {}slow user code down",
                if is_tied {
                    "that came with the seccomp filter "
                } else {
                    ""
                }
            ),
        )
        .also_seen(evidence)
        .with_counterfactual(counterfactual(case, is_tied));
    Some(if is_tied {
        found
    } else {
        found.advising(ASKED_FOR)
    })
}

/// Interpreters suffer and numerical kernels do not: the signature of this cause if nothing else was recorded.
fn pattern(case: &Case<'_>) -> Option<String> {
    let worst = |kind: Kind| {
        let cells = case
            .cells
            .iter()
            .filter(|cell| Kind::for_cell(cell) == kind);
        cells.map(ratio).reduce(f64::max)
    };
    let (interpreted, numerical) = (worst(Kind::Interpreted)?, worst(Kind::Matrix)?);
    (interpreted >= SUFFERS && numerical < SPARED.max(1.0 + (interpreted - 1.0) / 3.0)).then(|| {
        format!(
            "interpreted code is {interpreted:.2}× slower and numerical code {numerical:.2}×: the mark of the mitigation"
        )
    })
}

/// Prefers a switch that keeps the filter.
fn counterfactual(case: &Case<'_>, is_tied: bool) -> Counterfactual {
    if case.is_set("ssbd", "true") {
        // Requested explicitly, so the filter is not what causes it.
        return switch::without(case, "ssbd");
    }
    if !is_tied {
        return switch::not_here(
            "the filter does not bring it here, and who asks for it is not known",
        );
    }
    if let Some(sparing) = switch::with_sparing_filter(case) {
        return sparing;
    }
    let runtimes = case.fact(fact::ENGINE_RUNTIMES).unwrap_or_default();
    let has_crun = runtimes.split(' ').any(|name| name == "crun");
    let now = case
        .setting("runtime")
        .or_else(|| case.fact(fact::ENGINE_RUNTIME).map(str::to_owned));
    if has_crun && now.as_deref() != Some("crun") {
        switch::runtime(case, "crun")
    } else {
        switch::without_seccomp(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(release: &str) -> Composed {
        Composed::new("docker")
            .both("kernel.release", release)
            .differing("status.Seccomp", "0", "2")
            .cost("cpu.chase.time", 2.4)
    }

    #[test]
    fn old_kernels_are_suspected_and_from_5_16_on_never() {
        let shown = |here: &str| {
            filtered("5.15.0-91-generic").differing(
                "status.Speculation_Store_Bypass",
                "thread vulnerable",
                here,
            )
        };
        check(
            &CAUSE,
            &[
                filtered("5.15.0"),
                filtered("4.19.0-26-amd64"),
                shown("thread force mitigated"),
                Composed::golden("kernel-5.10-docker-ssbd").cost("python.pi-loop.time", 1.8),
            ],
            &[
                filtered("5.16.0"),
                filtered("6.18.44"),
                shown("thread vulnerable"),
                filtered("5.15.0").fact("status.Seccomp", "0"),
                Composed::new("docker")
                    .both("kernel.release", "5.15.0")
                    .fact("status.Seccomp", "2")
                    .cost("blas.inverse.time", 2.0),
                filtered("5.15.0").fact(
                    "mitigation.spec_store_bypass",
                    "Mitigation: Speculative Store Bypass disabled via prctl",
                ),
            ],
        );
    }

    #[test]
    fn ssbd_on_new_kernel_blames_requester_not_seccomp() {
        let mut forced = filtered("6.18.44").differing(
            "status.Speculation_Store_Bypass",
            "thread vulnerable",
            "thread mitigated",
        );
        let on_docker = forced.suspects(&CAUSE).unwrap();
        assert!(on_docker.likelihood > 0.9);
        assert!(!on_docker.claim.contains("seccomp"), "{}", on_docker.claim);
        let advice = on_docker.advice;
        assert!(advice.contains("spec_store_bypass_disable"), "{advice}");
        assert!(!advice.contains("unconfined"), "{advice}");
        forced.arm.driver = "container".into();
        let built_in = forced.setting("ssbd", true).suspects(&CAUSE).unwrap();
        let expected = format!("{:?}", Params::new().with("ssbd", ""));
        assert!(format!("{:?}", built_in.counterfactual).contains(&expected));
    }

    #[test]
    fn ssbd_counterfactual_and_advice_keep_the_filter() {
        let with_crun = filtered("5.10.0").fact("engine.runtimes", "crun runc");
        let suspicion = with_crun.suspects(&CAUSE).unwrap();
        assert!(format!("{:?}", suspicion.counterfactual).contains("crun"));
        assert!(!suspicion.advice.contains("unconfined"));
        let mut own = filtered("5.10.0");
        own.arm.driver = "container".into();
        let suspicion = own.suspects(&CAUSE).unwrap();
        assert!(format!("{:?}", suspicion.counterfactual).contains("seccomp_spec_allow"));
    }
}
