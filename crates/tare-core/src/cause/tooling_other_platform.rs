//! Two platforms instead of two environments: another operating system, or another kernel.
//!
//! If the kernels differ, everything differs at once, and nothing can be attributed to a container. Limits: does not
//! know which part of the platform is responsible.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "tooling.other-platform",
    title: "What is compared are two platforms, not an environment and its absence",
    mechanism: "Another operating system or another kernel means other file systems, another scheduler, other libraries \
                and other drivers, all at once. A container of Windows on a host of Windows and one of Linux in a \
                virtual machine share nothing that could be subtracted.",
    needs: &[
        fact::OS,
        fact::KERNEL_RELEASE,
        fact::KERNEL_BOOT_ID,
        fact::KERNEL_VERSION,
    ],
    size: "Anything in both directions: with the isolation of processes, containers of Windows took 2.35 times as long as \
           with that of a virtual machine (a report).",
    advice: "Run the baseline on the same kernel as the arm: in the same virtual machine, outside of the container.",
    price: "None.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let os = case.differs(fact::OS);
    let release = case.differs(fact::KERNEL_RELEASE);
    let likelihood = match (os, release) {
        (Some(_), _) => 0.8,
        (None, Some(_)) => 0.3,
        (None, None) => return None,
    };
    let cells = case.differences(&Kind::all_but(&[Kind::CopyUp, Kind::StartUp]));
    let what = if os.is_some() {
        "operating systems"
    } else {
        "kernels"
    };
    Some(
        case.found(&cells, likelihood, format!("Two {what} are compared"))
            .also_seen(os.map(|(there, here)| format!("`{here}`, in the baseline `{there}`")))
            .seen_differing("kernel", release)
            .with_counterfactual(switch::not_here("a platform is not a setting of an arm")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_os_or_kernel_is_suspected_for_any_metric() {
        check(
            &CAUSE,
            &[
                Composed::new("docker")
                    .differing("os", "windows", "linux")
                    .cost("cpu.des.time", 1.7),
                Composed::new("vm")
                    .differing("kernel.release", "6.18.44", "6.1.0-32")
                    .cost("syscall.getppid.time", 1.3),
            ],
            &[
                Composed::new("docker")
                    .both("os", "linux")
                    .both("kernel.release", "6.18.44")
                    .cost("cpu.des.time", 1.7),
                Composed::new("docker")
                    .fact("os", "linux")
                    .cost("cpu.des.time", 1.7),
            ],
        );
    }
}
