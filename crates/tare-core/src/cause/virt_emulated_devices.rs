//! Old network and disk devices that the hypervisor emulates register by register.
//!
//! A physical machine may have the same device, so being a guest is checked first. Limits: misses devices that are
//! emulated faithfully and fast.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, Device, OnBehalf, Steal, Waiting};

const NETWORK: &[&str] = &[
    "e1000", "e1000e", "8139cp", "8139too", "pcnet32", "ne2k_pci", "tulip", "rtl8139",
];
const DISK: &[&str] = &tare_model::rows! {
    "ata_piix", "ahci", "mptspi", "sym53c8xx", "pata_legacy", "ide",
};
const IMITATED_MODELS: &[&str] = &["QEMU HARDDISK", "VBOX HARDDISK", "VMware Virtual"];
const FAMILIES: &[Family] = &[CostlierCalls, Waiting, Device, Steal, OnBehalf];

pub(super) static CAUSE: Entry = Entry {
    id: "virt.emulated-devices",
    title: "The guest uses imitated devices instead of paravirtual ones",
    mechanism: "Every access to a register of an imitated card leaves the guest for the hypervisor, and such cards have \
                one queue and no large packets. A hypervisor's own translation of addresses, run as a program, is \
                slower still.",
    needs: &[
        fact::NET_DEFAULT_DRIVER,
        fact::BLOCK_DRIVER,
        fact::BLOCK_MODEL,
        fact::HYPERVISOR_VENDOR,
        fact::VM_NIC,
        fact::VM_DISK,
    ],
    size: "394 Mbit/s with 416 repeated packets and 0.8–1.8 ms a round trip between two guests of one computer (adapter \
           not stated); makers rank paravirtual above imitated cards.",
    advice: "Give the guest paravirtual devices (virtio, vmxnet3, pvscsi).",
    price: "The guest needs drivers for them, and some move work into the host's kernel.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let is_guest = case
        .fact(fact::HYPERVISOR_VENDOR)
        .is_some_and(|name| name != "none")
        || case
            .fact(fact::CPU_FLAGS)
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
        || case.takes("nic");
    if !is_guest {
        return None;
    }
    let card = case
        .fact(fact::NET_DEFAULT_DRIVER)
        .or_else(|| case.fact(fact::VM_NIC))
        .filter(|driver| NETWORK.contains(driver));
    let card = card.filter(|driver| case.baseline.fact(fact::NET_DEFAULT_DRIVER) != Some(driver));
    let driver = of_work_mount(&case.arm.facts, fact::BLOCK_DRIVER)
        .or_else(|| case.fact(fact::VM_DISK))
        .filter(|driver| DISK.contains(driver));
    let model = of_work_mount(&case.arm.facts, fact::BLOCK_MODEL)
        .filter(|model| IMITATED_MODELS.iter().any(|known| model.contains(known)));
    let disk = driver
        .filter(|driver| model.is_some() || *driver == "ide")
        .or(model);
    let mut kinds = Vec::new();
    kinds.extend(card.map(|_| Kind::Network));
    kinds.extend(disk.map(|_| Kind::Disk));
    let cells = case.costs_only(&kinds);
    let device = card.or(disk)?;
    Some(
        case.found(
            &cells,
            0.85 * case.fit(&cells, FAMILIES).max(0.8),
            format!("The guest's `{device}` device is imitated by the hypervisor"),
        )
        .also_seen(card.map(|driver| format!("the network device is driven by `{driver}`")))
        .also_seen(disk.map(|name| format!("the disk is `{name}`")))
        .also_seen(
            case.fact(fact::HYPERVISOR_VENDOR)
                .map(|name| format!("the hypervisor is `{name}`")),
        )
        .with_counterfactual(switch::machine(
            case,
            if card.is_some() { "nic" } else { "disk" },
            "virtio",
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_nic_in_guest_is_suspected_real_one_is_not() {
        let card = |vendor: &str, driver: &str, metric: &str| {
            Composed::new("ssh")
                .fact("hypervisor.vendor", vendor)
                .fact("net.default.driver", driver)
                .cost(metric, 20.0)
        };
        check(
            &CAUSE,
            &[
                card("VBoxVBoxVBox", "e1000", "net.tcp.throughput.rate"),
                card("KVMKVMKVM", "8139cp", "net.iperf3.throughput"),
                Composed::new("vm")
                    .fact("mount./.fstype", "ext4")
                    .fact("mount./.block.driver", "ata_piix")
                    .fact("mount./.block.model", "QEMU HARDDISK")
                    .cost("disk.random-read-qd1.time", 3.0),
            ],
            &[
                card("none", "e1000e", "net.tcp.throughput.rate"),
                card("KVMKVMKVM", "virtio_net", "net.tcp.throughput.rate"),
                card("VBoxVBoxVBox", "e1000", "cpu.integer.time"),
            ],
        );
    }
}
