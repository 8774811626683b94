//! A figure that is named after one thing and measures another.
//!
//! A "disk" workload that keeps the CPU busy and a "network" one that copies memory on one machine are recognised by
//! their counters and by the kernel that both ends share. Tare's built-in probes are named after what they measure.
//! Limits: misses figures without counters and units.

use super::prelude::*;

/// From this share of the wall time on a CPU, a disk workload is a computation.
const BUSY: f64 = 0.85;
/// Below this share of bytes that reached the device, the device was not measured.
const UNTOUCHED: f64 = 0.1;
/// No ordinary network card is faster, in bytes per second: 40 Gbit/s.
const FASTEST_CARD: f64 = 5e9;

pub(super) static CAUSE: Entry = Entry {
    id: "tooling.not-the-thing",
    title: "The figure measures something else than its name says",
    mechanism: "A loop that writes short lines measures its interpreter, a transfer of a few megabytes the sender's \
                buffer, a stream between two containers of one machine the copying of memory, and a file of a few \
                kilobytes the clock. Changing the environment then changes something, but not what was named.",
    needs: &[
        counter::USER,
        counter::SYS,
        counter::WALL,
        counter::READ_BYTES,
        counter::WRITE_BYTES,
        fact::KERNEL_BOOT_ID,
        "values of the cells",
    ],
    size: "92 Gbit/s between two containers of one machine; 29 MB/s by a copy through netcat and 49 MB/s by a stream on \
           the same path; 0.55 µs a line in a disk test written in Python.",
    advice: "Double what is said to limit, or take it away, and see whether the figure moves; measure the device around \
             the cache, the wire between two machines, and the receiver instead of the sender.",
    price: "None.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells: Vec<usize> = case
        .differences(&[Kind::Disk, Kind::Network])
        .into_iter()
        .filter(|index| {
            let cell = &case.cells[*index];
            !is_own_probe(cell) && Kind::for_cell(cell) != Kind::Any
        })
        .collect();
    let mut evidence = Vec::new();
    let named: Vec<usize> = cells
        .into_iter()
        .filter(|index| {
            let line = if Kind::for_cell(&case.cells[*index]) == Kind::Disk {
                computes(case, *index)
            } else {
                copies(case, *index)
            };
            let is_other = line.is_some();
            evidence.extend(line);
            is_other
        })
        .collect();
    let first = named
        .first()
        .map(|index| case.cells[*index].metric.clone())?;
    Some(
        CauseMatch::new(
            named,
            0.7,
            format!(
                "`{first}` does not measure what its name says, so that it is no cost of that kind."
            ),
        )
        .also_seen(evidence)
        .with_counterfactual(switch::not_here(
            "the workload has to be changed, not the environment",
        )),
    )
}

/// Reports a disk workload that keeps the CPU busy and hardly uses the device, on both sides.
fn computes(case: &Case<'_>, index: usize) -> Option<String> {
    let (_, wall) = case.counter(&[index], counter::WALL)?;
    let sum = |names: [&str; 2]| {
        let [a, b] = names.map(|name| case.counter(&[index], name).map(|(_, here)| here));
        Some(a? + b?)
    };
    let busy = sum([counter::USER, counter::SYS])? / wall;
    let device = sum([counter::READ_BYTES, counter::WRITE_BYTES])?;
    let all = sum([counter::RCHAR, counter::WCHAR]).unwrap_or(0.0);
    (busy >= BUSY && device <= UNTOUCHED * all).then(|| {
        format!(
            "`{}` is on the processor for {:.0} % of its time and reaches the device with {:.0} % of its bytes",
            case.cells[index].metric,
            (busy * 100.0).min(100.0),
            if all > 0.0 { device / all * 100.0 } else { 0.0 }
        )
    })
}

/// Reports a network figure above any card's, with both ends on one kernel.
fn copies(case: &Case<'_>, index: usize) -> Option<String> {
    let cell = &case.cells[index];
    let factor = match cell.unit.as_str() {
        "B/s" => 1.0,
        "bit/s" => 0.125,
        "Gbit/s" => 0.125e9,
        "Mbit/s" => 0.125e6,
        _ => return None,
    };
    let value = [cell.base, cell.env]
        .into_iter()
        .flatten()
        .map(|span| span.point * factor)
        .reduce(f64::max)?;
    (value > FASTEST_CARD).then(|| {
        format!(
            "`{}` reaches {:.0} Gbit/s: memory is copied, nothing passes a wire",
            cell.metric,
            value * 8.0 / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_bound_disk_and_in_memory_network_are_suspected() {
        let disk = |user: f64, device: f64| {
            let counters = [
                ("wall_ns", 1e9, 1.2e9),
                ("user_ns", 0.9e9, user),
                ("sys_ns", 0.05e9, 0.05e9),
                ("rchar", 1e8, 1e8),
                ("wchar", 1e8, 1e8),
                ("read_bytes", 0.0, device),
                ("write_bytes", 0.0, 0.0),
            ];
            Composed::new("docker")
                .cost("disk.fio-write.rate", 1.2)
                .counted("disk", &counters)
        };
        let stream = |gbits: f64| {
            let mut cell = cell("net.iperf3.throughput", 0.004);
            cell.unit = "bit/s".into();
            cell.env = cell.env.map(|span| tare_model::dossier::Span {
                point: gbits * 1e9,
                ..span
            });
            Composed::new("docker").cell(cell)
        };
        check(
            &CAUSE,
            &[disk(1.1e9, 0.0), stream(92.4)],
            &[
                disk(0.2e9, 0.0),
                disk(1.1e9, 1e8),
                stream(9.4),
                Composed::new("docker").cost("disk.fio-write.rate", 1.2),
            ],
        );
    }
}
