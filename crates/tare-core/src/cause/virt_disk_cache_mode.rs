//! A virtual disk whose host caches, or pretends to flush.
//!
//! Limits: sees a host's cache from inside only by a flush that is too fast to be real.

use super::prelude::*;

/// No device flushes faster: a faster one did not flush.
const TRUE_FLUSH_NS: f64 = 30_000.0;

pub(super) static CAUSE: Entry = Entry {
    id: "virt.disk-cache-mode",
    title: "The host caches the virtual disk, or does not flush it",
    mechanism: "A hypervisor can serve a disk from the host's memory, pass every request on, or write each one through; \
                it can also ignore flushes. The same disk is then too good or too bad by an order of magnitude.",
    needs: &[
        fact::VM_CACHE,
        fact::BLOCK_WRITE_CACHE,
        fact::BLOCK_DRIVER,
        "disk.fsync.time",
    ],
    size: "About ten times slower than the host's disk in several default configurations of several products (a \
           comparison); flushes of microseconds where they are ignored.",
    advice: "For databases pass requests on (`none`) over a paravirtual disk.",
    price: "Reads are no longer served from the host's memory; the faster `unsafe` loses data when the power fails.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let is_guest = case.takes("nic")
        || (case.same_kernel() == Some(false)
            && case
                .fact(fact::HYPERVISOR_VENDOR)
                .is_some_and(|name| name != "none"));
    let has_disk = case.fact(fact::VM_CACHE).is_some()
        || of_work_mount(&case.arm.facts, fact::BLOCK_DRIVER).is_some();
    if !is_guest || !has_disk {
        return None;
    }
    let cells: Vec<usize> = case
        .differences(&[Kind::Disk])
        .into_iter()
        .filter(|index| Kind::for_cell(&case.cells[*index]) == Kind::Disk)
        .collect();
    let fast_flush = cells
        .iter()
        .filter_map(|index| case.cells.get(*index))
        .find_map(|cell| {
            let value = cell.env?.point;
            (cell.metric.contains("fsync")
                && cell.unit == "ns"
                && value < TRUE_FLUSH_NS
                && cell.base.is_some_and(|base| base.point > TRUE_FLUSH_NS))
            .then_some(value)
        });
    let mode = case.fact(fact::VM_CACHE);
    let modes = of_work_mount(&case.baseline.facts, fact::BLOCK_WRITE_CACHE)
        .zip(of_work_mount(&case.arm.facts, fact::BLOCK_WRITE_CACHE))
        .filter(|(there, here)| there != here);
    let likelihood = if fast_flush.is_some() { 0.9 } else { 0.5 };
    Some(
        CauseMatch::new(
            cells.clone(),
            likelihood,
            match fast_flush {
                Some(flush) => format!(
                    "A flush of {:.0} µs is none: the host does not pass it on to its disk.",
                    flush / 1e3
                ),
                None => format!(
                    "The host's way of caching the virtual disk decides, and {}.",
                    case.cost_clause(&cells)
                ),
            },
        )
        .seen(mode.map_or_else(
            || "the host's cache mode was not recorded".to_owned(),
            |mode| format!("the host caches it as `{mode}`"),
        ))
        .seen_differing("the device says", modes)
        .with_counterfactual(switch::machine(
            case,
            "cache",
            if mode == Some("none") {
                "writeback"
            } else {
                "none"
            },
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vm_cache_mode_is_suspected_only_for_disk_metrics() {
        let mut flush = cell("disk.fsync.time", 0.01);
        flush.base = flush
            .base
            .map(|span| tare_model::dossier::Span { point: 3e6, ..span });
        flush.env = flush
            .env
            .map(|span| tare_model::dossier::Span { point: 9e3, ..span });
        let cached = |driver: &str, mode: &str| Composed::new(driver).fact("vm.cache", mode);
        check(
            &CAUSE,
            &[
                cached("vm", "directsync").cost("disk.random-read-qd1.time", 5.0),
                cached("vm", "unsafe").cell(flush),
            ],
            &[
                Composed::new("vm").cost("disk.random-read-qd1.time", 5.0),
                cached("docker", "none").cost("disk.fsync.time", 5.0),
                cached("vm", "none").cost("fs.stat.time", 5.0),
            ],
        );
    }
}
