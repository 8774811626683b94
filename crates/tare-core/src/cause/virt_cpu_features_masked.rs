//! A guest whose CPU hides instructions that the host has.
//!
//! Limits: does not know whether a program would have used them.

use super::prelude::*;

/// Instructions for which libraries have fast paths, and features that make kernel entry cheap.
const FAST: &[&str] = &tare_model::rows! {
    "aes", "avx", "avx2", "avx512f", "avx512bw", "avx512_vnni", "bmi2", "fma", "sha_ni", "pclmulqdq", "vaes",
    "pcid", "invpcid", "fsrm", "erms", "rdtscp", "sse4_2", "popcnt", "asimd", "sve", "atomics", "crc32",
    "sha2",
};
const FAMILIES: &[Family] = &[Family::OtherCode, Family::CostlierCalls];

pub(super) static CAUSE: Entry = Entry {
    id: "virt.cpu-features-masked",
    title: "The guest's processor hides instructions that the host has",
    mechanism: "A processor model that every host can offer hides what newer ones add, so that ciphers, hashes and \
                numerical libraries take their slow ways, and switching between address spaces flushes more.",
    needs: &[fact::CPU_FLAGS, fact::CPU_MODEL, fact::VM_CPU],
    size: "Severalfold for ciphers and matrix kernels that have to do without; nothing for plain code.",
    advice: "Give the guest the host's own processor model.",
    price: "The guest can then move only to hosts with the same instructions, and new flags may also switch mitigations \
            on inside.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let (there, here) = case.differs(fact::CPU_FLAGS)?;
    let here: Vec<&str> = here.split(' ').collect();
    let hidden: Vec<&str> = there
        .split(' ')
        .filter(|flag| FAST.contains(flag) && !here.contains(flag))
        .collect();
    if hidden.is_empty() {
        return None;
    }
    let cells = case.costs(&[Kind::Compute, Kind::Interpreted, Kind::Matrix, Kind::Memory]);
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            (0.25 + 0.1 * hidden.len() as f64).min(0.8),
            format!(
                "The arm's processor hides {} instruction set features",
                hidden.len()
            ),
        )
        .seen(format!("missing: {}", hidden.join(" ")))
        .also_seen(
            case.fact(fact::CPU_MODEL)
                .map(|model| format!("the processor calls itself `{model}`")),
        )
        .with_counterfactual(switch::machine(case, "cpu", "host")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_cpu_flags_are_suspected_added_ones_are_not() {
        let flags = |there: &str, here: &str, metric: &str| {
            Composed::new("vm")
                .differing("cpu.flags", there, here)
                .cost(metric, 3.0)
        };
        check(
            &CAUSE,
            &[
                flags("fpu aes avx2 pcid", "fpu", "cpu.matrix.inverse.time"),
                flags("fpu avx2", "fpu hypervisor", "command.wall.time"),
            ],
            &[
                flags("fpu aes", "fpu aes hypervisor", "cpu.integer.time"),
                flags("fpu aes", "fpu", "disk.fsync.time"),
                flags("fpu vme", "fpu", "cpu.integer.time"),
            ],
        );
    }
}
