//! Different mitigations of CPU vulnerabilities on the two sides.
//!
//! Only between two kernels: one kernel has one set of them. Limits: does not know which of them is responsible.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::CostlierCalls, Family::OtherCode];

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.mitigations-differ",
    title: "The two kernels guard against processor weaknesses in different ways",
    mechanism: "Flushing buffers and switching tables at each entry into the kernel costs with the number of entries. A \
                guest sees another processor than its host and decides for itself, and may not know that the outer \
                one guards it already.",
    needs: &[fact::MITIGATION, fact::KERNEL_CMDLINE, fact::KERNEL_BOOT_ID],
    size: "Nothing for plain computation, up to tens of percent for work that is made of system calls.",
    advice: "Give the guest the host's processor model, so that it sees which weaknesses its processor really has; keep \
             the mitigations.",
    price: "Switching mitigations off lets tenants read each other's data; on a shared machine that is no option.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if case.same_kernel() == Some(true) {
        return None;
    }
    let differing = case.all_differing(fact::MITIGATION);
    if differing.is_empty() {
        return None;
    }
    let cells = case.costs(&[Kind::Kernel, Kind::Metadata, Kind::Network, Kind::Clock]);
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            0.45,
            format!(
                "{} mitigations differ between the two kernels",
                differing.len()
            ),
        )
        .also_seen(differing.iter().take(4).map(|(name, there, here)| {
            format!(
                "`{}`: `{here}`, in the baseline `{there}`",
                name.trim_start_matches(fact::beginning(fact::MITIGATION))
            )
        }))
        .with_counterfactual(switch::not_here(
            "mitigations belong to a kernel's start and are not switched off in an arm",
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_mitigations_are_suspected_of_slow_calls() {
        let kernels = |other: &str, here: &str, metric: &str| {
            Composed::new("vm")
                .differing("kernel.boot_id", "a", other)
                .differing("mitigation.mds", "Not affected", here)
                .cost(metric, 1.3)
        };
        check(
            &CAUSE,
            &[kernels(
                "b",
                "Mitigation: Clear CPU buffers",
                "syscall.getppid.time",
            )],
            &[
                kernels("a", "Mitigation: Clear CPU buffers", "syscall.getppid.time"),
                kernels("b", "Not affected", "syscall.getppid.time"),
                kernels("b", "Vulnerable", "cpu.integer.time"),
            ],
        );
    }
}
