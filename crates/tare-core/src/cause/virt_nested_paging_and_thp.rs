//! Nested paging, which takes two page walks, and small pages on one side.
//!
//! Limits: does not know whether the host backs the guest's memory with large pages.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::OtherCode, Family::Faults];

pub(super) static CAUSE: Entry = Entry {
    id: "virt.nested-paging-and-thp",
    title: "Translating addresses costs more: a guest's two tables, or smaller pages",
    mechanism: "A miss of the translation cache walks the guest's table and, for each step of it, the host's. Large pages \
                take most of that away, and whether a process gets them is a setting that may differ between the sides.",
    needs: &[
        fact::THP_ENABLED,
        fact::STATUS_THP_ENABLED,
        fact::CPU_FLAGS,
        fact::HYPERVISOR_VENDOR,
    ],
    size: "Random reads in 512 MiB of a guest: 205–225 ns with pages of 4 KiB, 143–151 ns with large ones.",
    advice: "Let large pages be given to those who ask (`madvise`), let allocators and databases ask, and back guests \
             with large pages.",
    price: "Memory that is reserved and not used, and pauses while large pages are put together.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let pages = case
        .differs(fact::THP_ENABLED)
        .or_else(|| case.differs(fact::STATUS_THP_ENABLED));
    let is_guest =
        |flags: Option<&str>| flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let nested = is_guest(case.baseline.fact(fact::CPU_FLAGS)) == Some(false)
        && is_guest(case.fact(fact::CPU_FLAGS)) == Some(true);
    if pages.is_none() && !nested {
        return None;
    }
    let cells = case.costs(&[Kind::Memory, Kind::Matrix]);
    let likelihood = match (pages.is_some(), nested) {
        (true, true) => 0.75,
        (true, false) => 0.65,
        _ => 0.55,
    };
    let why = if pages.is_some() {
        "Large pages are given on other terms in the arm"
    } else {
        "A miss of the translation cache takes two walks in the arm"
    };
    Some(
        case.fitting(FAMILIES, &cells, likelihood, why)
            .seen_differing("large pages:", pages)
            .also_seen(nested.then(|| "the arm is a guest, the baseline is not".to_owned()))
            .with_counterfactual(switch::variables(&[(
                "GLIBC_TUNABLES",
                "glibc.malloc.hugetlb=1".to_owned(),
            )])),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thp_difference_or_guest_suspected_of_slow_memory() {
        let pages = |there: &str, here: &str, metric: &str| {
            Composed::new("vm")
                .differing("thp.enabled", there, here)
                .cost(metric, 1.4)
        };
        let guest = |there: &str, here: &str| {
            Composed::new("vm")
                .differing("cpu.flags", there, here)
                .cost("mem.random.time", 1.4)
        };
        check(
            &CAUSE,
            &[
                pages(
                    "always [madvise] never",
                    "always madvise [never]",
                    "mem.random.time",
                ),
                guest("fpu", "fpu hypervisor"),
            ],
            &[
                pages("[always]", "[always]", "mem.random.time"),
                guest("fpu hypervisor", "fpu hypervisor"),
                pages("[always]", "[never]", "syscall.getppid.time"),
            ],
        );
    }
}
