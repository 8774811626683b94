//! A runtime with a separate kernel: gVisor, Kata, Firecracker, Sysbox.
//!
//! Named by the engine or the arm's settings; a kernel that reports `4.4.0` or names gVisor is gVisor's. Limits: does
//! not know its options.

use super::prelude::*;

const RUNTIMES: &[(&str, &str)] = &[
    ("runsc", "gVisor, which serves system calls in user space"),
    ("gvisor", "gVisor, which serves system calls in user space"),
    (
        "kata",
        "Kata, which puts each container into a virtual machine",
    ),
    (
        "firecracker",
        "Firecracker, which puts each container into a virtual machine",
    ),
    (
        "sysbox",
        "Sysbox, which serves parts of /proc and /sys itself",
    ),
];
const FAMILIES: &[Family] = &[
    Family::CostlierCalls,
    Family::Waiting,
    Family::MoreCalls,
    Family::Faults,
    Family::OtherCode,
    Family::OnBehalf,
];

pub(super) static CAUSE: Entry = Entry {
    id: "security.isolating-runtime",
    title: "The runtime gives the container a kernel of its own",
    mechanism: "System calls are answered in user space by gVisor, which passes file access to another process; Kata and Firecracker \
                add a virtual machine and its file system. What enters the kernel or looks up files pays for it, plain \
                computation does not.",
    needs: &[
        fact::ASKED_RUNTIME,
        fact::ENGINE_RUNTIME,
        fact::OCI_RUNTIME,
        fact::KERNEL_RELEASE,
        fact::KERNEL_BOOT_ID,
    ],
    size: "Severalfold for system calls and file look-ups, next to nothing for computation; the makers' guide says which \
           platform suits which machine.",
    advice: "Keep it for code that is not trusted; use its faster ways to files where the work allows, and an ordinary \
             runtime for code that is trusted.",
    price: "The separation is what was bought: an ordinary runtime shares the host's kernel.",
    suspect,
};

/// Describes the runtime of this name, if it has a separate kernel.
pub(super) fn isolating(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let mut all = RUNTIMES.iter();
    all.find(|(word, _)| lower.contains(word))
        .map(|(_, what)| *what)
}

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let named = [fact::ASKED_RUNTIME, fact::OCI_RUNTIME, fact::ENGINE_RUNTIME]
        .iter()
        .find_map(|name| {
            let value = case.fact(name)?;
            Some((value.to_owned(), isolating(value)?))
        });
    let set = case.setting("runtime");
    let by_setting = set.and_then(|value| isolating(&value).map(|what| (value, what)));
    let release = case.differs(fact::KERNEL_RELEASE).map(|(_, here)| here);
    let by_kernel = release
        .filter(|release| *release == "4.4.0" || release.contains("gvisor"))
        .map(|release| {
            (
                format!("a kernel that calls itself {release}"),
                "gVisor, which serves system calls in user space",
            )
        });
    let (name, what) = named.or(by_setting).or(by_kernel)?;
    let cells = case.costs(&[
        Kind::Kernel,
        Kind::Clock,
        Kind::Metadata,
        Kind::CopyUp,
        Kind::Disk,
        Kind::Network,
        Kind::Touch,
        Kind::StartUp,
    ]);
    Some(
        case.found(
            &cells,
            0.93 * case.fit(&cells, FAMILIES).max(0.8),
            format!("The arm runs under {what}"),
        )
        .seen(format!("the runtime is `{name}`"))
        .seen_differing("the kernel is", case.differs(fact::KERNEL_RELEASE))
        .because(FAMILIES)
        .with_counterfactual(switch::runtime(case, "runc")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolating_runtime_suspected_for_calls_not_compute() {
        let runtime = |name: &str| Composed::new("docker").fact("asked.Runtime", name);
        let kata = Composed::new("oci").setting("runtime", "/opt/kata/bin/kata-runtime");
        let one_kernel = Composed::new("docker").both("kernel.release", "4.4.0");
        check(
            &CAUSE,
            &[
                runtime("runsc").cost("syscall.getppid.time", 9.0),
                kata.cost("fs.stat.time", 3.0),
                Composed::golden("gvisor-docker").cost("fs.stat.time", 5.0),
                Composed::golden("kata-virtiofs").cost("disk.fsync.time", 2.0),
            ],
            &[
                runtime("runc").cost("syscall.getppid.time", 1.2),
                runtime("runsc").cost("cpu.integer.time", 1.2),
                one_kernel.cost("syscall.getppid.time", 1.2),
            ],
        );
    }
}
