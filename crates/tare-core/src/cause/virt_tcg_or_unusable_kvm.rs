//! A guest whose CPU is emulated in software.
//!
//! The device node is no evidence; the driver finds out by booting, and a guest sees the emulator's name in its CPU.
//! Limits: does not know how much of the slowdown an accelerator would remove.

use super::prelude::*;
use tare_model::facts::emulation;

pub(super) static CAUSE: Entry = Entry {
    id: "virt.tcg-or-unusable-kvm",
    title: "The guest's processor is imitated by software",
    mechanism: "Without usable virtualisation in the processor the emulator translates every instruction of the guest. \
                The guest works, but whatever enters its kernel is many times slower.",
    needs: &[fact::VM_EMULATED, fact::VM_NO_KVM, fact::HYPERVISOR_VENDOR],
    size: "A guest without acceleration against its host: an integer loop 2.4 times, a system call 9, fork 23, `stat` \
           41, a page fault 57 times as slow. A device node for acceleration existed there and no guest ran on it.",
    advice: "Use a machine whose processor allows virtualisation, or switch nested virtualisation on; take these figures \
             for the imitation and not for a guest's cost.",
    price: "Nested virtualisation exposes more of the outer hypervisor.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    // An image for another CPU has a separate rule, and an emulated baseline means no difference.
    let by_driver = emulation(&case.arm.facts)
        .filter(|_| case.fact(fact::IMAGE_EMULATED) != Some("true"))
        .filter(|_| emulation(&case.baseline.facts).is_none());
    let by_processor = case.says(fact::HYPERVISOR_VENDOR, &["TCG"])
        && !case
            .baseline
            .fact(fact::HYPERVISOR_VENDOR)
            .is_some_and(|name| name.contains("TCG"));
    if by_driver.is_none() && !by_processor {
        return None;
    }
    let cells = case.costs(&Kind::all_but(&[]));
    Some(
        case.found(&cells, 0.98, "Software imitates the arm's processor")
            .also_seen(by_driver.map(|how| format!("the arm is emulated: {how}")))
            .also_seen(by_processor.then(|| {
                format!(
                    "the processor names `{}`",
                    case.fact(fact::HYPERVISOR_VENDOR).unwrap_or_default()
                )
            }))
            .also_seen(
                case.fact(fact::VM_NO_KVM)
                    .map(|why| format!("no acceleration: {why}")),
            )
            .with_counterfactual(match case.fact(fact::VM_NO_KVM) {
                Some(why) => {
                    switch::not_here(format!("acceleration is not usable on this machine: {why}"))
                }
                None => switch::machine(case, "accel", "kvm"),
            }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imitated_processor_is_suspected_of_everything() {
        let guest = |is_emulated: &str| Composed::new("vm").fact("vm.emulated", is_emulated);
        let remote = |vendor: &str| Composed::new("ssh").fact("hypervisor.vendor", vendor);
        let image = Composed::new("docker").fact("image.emulated", "true");
        check(
            &CAUSE,
            &[
                guest("true").cost("syscall.getppid.time", 9.0),
                remote("TCGTCGTCGTCG").cost("cpu.integer.time", 2.4),
            ],
            &[
                guest("false").cost("cpu.integer.time", 1.2),
                remote("KVMKVMKVM").cost("cpu.integer.time", 1.2),
                image.cost("cpu.integer.time", 20.0),
            ],
        );
    }
}
