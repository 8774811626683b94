//! A disk figure that measures memory, on one side or on both.
//!
//! Either one side read from the device and the other from the cache, or a figure exceeds what any device delivers.
//! Gains count as well as slowdowns: the side that runs second finds the cache warm. Limits: misses the cache of a
//! host below a guest, which no counter inside shows.

use super::prelude::*;
use tare_model::dossier::DossierCell;

/// No storage device reads faster: about the speed of a PCIe 5.0 ×4 link, in bytes per second.
const FASTEST_DEVICE: f64 = 14e9;
/// The slowest device assumed, in bytes per second: a hard disk.
const SLOW_DEVICE: f64 = 50e6;
/// The share of the extra time that reading must be able to explain.
const PART: f64 = 0.3;
/// From this share of bytes read from the device on, the device was measured.
const FROM_DEVICE: f64 = 0.5;
/// Below this share, the cache was measured.
const FROM_CACHE: f64 = 0.1;
/// Families of waiting for a device; reading from it takes time in the kernel too.
const FAMILIES: &[Family] = &[Family::Device, Family::Waiting, Family::CostlierCalls];
/// Less than this per unit of work proves nothing.
const FEWEST_BYTES: f64 = 4096.0;

pub(super) static CAUSE: Entry = Entry {
    id: "tooling.page-cache",
    title: "The disk figure is one of memory, on one side at least",
    mechanism: "Files that fit into memory are read from the page cache, and files of a few kilobytes from the \
                processor's own. Whoever runs second finds what the first one read, so that the order decides which \
                side is fast, and a limit on memory does not apply to pages that somebody else has loaded.",
    needs: &[
        counter::READ_BYTES,
        counter::RCHAR,
        fact::COMMAND_OPENED,
        "cells of disk with their values",
    ],
    size: "64 MiB: 4–7.7 GB/s again from the cache, 0.7–1.2 GB/s from the device. A file that the host had read came at \
           6 GB/s in a container limited to 64 MiB, and at 1 GB/s after it had been dropped. A published figure of \
           64 GB/s was 64 kB in one tick of a clock of 1 µs.",
    advice: "Drop the file's cached pages before every repetition on every side, read around the cache, or use files of \
             twice the memory; and randomise the order of the sides.",
    price: "The measurement takes longer; nothing else is lost.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.differences(&[Kind::Disk]);
    let share = |index: usize| {
        let (base_device, device) = case.counter(&[index], counter::READ_BYTES)?;
        let (base_all, all) = case.counter(&[index], counter::RCHAR)?;
        let share = |device: f64, all: f64| (all >= FEWEST_BYTES).then(|| device / all);
        Some((share(base_device, base_all)?, share(device, all)?))
    };
    let unequal = cells.iter().copied().find_map(|index| {
        let (there, here) = share(index)?;
        let differs = (there < FROM_CACHE && here > FROM_DEVICE)
            || (here < FROM_CACHE && there > FROM_DEVICE);
        differs.then_some((index, there, here))
    });
    if let Some((index, there, here)) = unequal {
        let side = if here < there {
            "the arm"
        } else {
            "the baseline"
        };
        let cell = &case.cells[index];
        // A command's reads do not explain a slowdown that has other reasons.
        if Kind::for_cell(cell) == Kind::Any && !may_explain(case, index) {
            return None;
        }
        let fit = case.fit(&[index], FAMILIES);
        return Some(
            CauseMatch::new(
                vec![index],
                0.85 * fit,
                format!(
                    "`{}` compares a cache with a device: {:.0} % of what the arm read came from the device, and {:.0} % in the baseline.",
                    cell.metric,
                    here.min(1.0) * 100.0,
                    there.min(1.0) * 100.0
                ),
            )
            .seen(format!("{side} was served from the page cache"))
            .because(FAMILIES)
            .with_counterfactual(treated_alike(case, there < here)),
        );
    }
    let impossible: Vec<usize> = cells
        .into_iter()
        .filter(|index| speed(&case.cells[*index]).is_some_and(|speed| speed > FASTEST_DEVICE))
        .collect();
    let metric = &case.cells[*impossible.first()?].metric;
    let fastest = impossible
        .iter()
        .filter_map(|index| speed(&case.cells[*index]))
        .fold(0.0, f64::max);
    Some(
        CauseMatch::new(
            impossible,
            0.9,
            format!(
                "A figure of {} a second is no disk's, so that `{metric}` says nothing about storage.",
                bytes(fastest)
            ),
        )
        .seen(format!(
            "no storage device gives more than {} a second",
            bytes(FASTEST_DEVICE)
        ))
        .with_counterfactual(switch::not_here(
            "the file must be larger than the caches, or be read around them",
        )),
    )
}

/// Whether an unknown command may have waited for the device: a slow device would take a part of the extra time, and
/// the counters support that, or contention hides what they show.
fn may_explain(case: &Case<'_>, index: usize) -> bool {
    if case.contradicts(&[index], FAMILIES)
        && case.contradicts(&[index], &[Family::Contention, Family::Steal])
    {
        return false;
    }
    let counter = |name: &str| case.counter(&[index], name);
    let (Some((base_wall, wall)), Some((base_read, read))) =
        (counter(counter::WALL), counter(counter::READ_BYTES))
    else {
        return false;
    };
    (read - base_read).abs() / SLOW_DEVICE * 1e9 >= PART * (wall - base_wall).abs()
}

/// The baseline without its cache, if the arm had none and the files that were read are known.
fn treated_alike(case: &Case<'_>, is_baseline_cached: bool) -> Counterfactual {
    let read: Vec<String> = case
        .baseline
        .fact(fact::COMMAND_OPENED)
        .into_iter()
        .flat_map(str::lines)
        .filter(|file| !file.is_empty())
        .map(str::to_owned)
        .collect();
    if is_baseline_cached && !read.is_empty() && case.baseline.driver == "host" {
        return Counterfactual::BaselineCold(read);
    }
    switch::not_here(
        "it is not known which files were read, or only the arm's own could be dropped from the cache",
    )
}

/// Returns the larger of the two values, for rates in bytes per second.
fn speed(cell: &DossierCell) -> Option<f64> {
    let factor = match cell.unit.as_str() {
        "B/s" => 1.0,
        "kB/s" => 1e3,
        "KiB/s" => 1024.0,
        "MB/s" => 1e6,
        "MiB/s" => 1_048_576.0,
        "GB/s" => 1e9,
        _ => return None,
    };
    let values = [cell.base, cell.env].into_iter().flatten();
    values.map(|span| span.point * factor).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(base: f64, arm: f64, ratio: f64) -> Composed {
        Composed::new("docker")
            .cost("disk.fio-read.rate", ratio)
            .counted("disk", &[("rchar", 1e8, 1e8), ("read_bytes", base, arm)])
    }

    /// A command of 50 ms that takes 150 ms inside, where all of its reads come from the device.
    fn command(device: f64, user_ns: f64) -> Composed {
        Composed::new("container")
            .base("command.opened", "/data/one\n/data/two")
            .cost("command.wall.time", 3.0)
            .took("command", (50e6, 150e6), (10e6, user_ns), (20e6, 20e6))
            .counted(
                "command",
                &[("rchar", 64e6, 64e6), ("read_bytes", 0.0, device)],
            )
    }

    #[test]
    fn page_cache_counterfactual_drops_cache_on_baseline() {
        let suspicion = command(64e6, 10e6).suspects(&CAUSE).unwrap();
        let expected = ["/data/one".to_owned(), "/data/two".to_owned()];
        assert_eq!(
            suspicion.counterfactual,
            Counterfactual::BaselineCold(expected.to_vec())
        );
        // The time went elsewhere.
        assert!(command(64e6, 110e6).suspects(&CAUSE).is_none());
        assert!(command(2e6, 10e6).suspects(&CAUSE).is_none());
        // Too little to wait for so long.
        let small = command(1e6, 10e6).counted("command", &[("rchar", 1e6, 1e6)]);
        assert!(small.suspects(&CAUSE).is_none());
        // Contention on the machine hides what the counters would show.
        let busy = command(64e6, 10e6).counted("command", &[("run_delay_ns", 0.0, 60e6)]);
        assert!(busy.suspects(&CAUSE).is_some());
        let unknown = read(0.0, 1e8, 5.0).suspects(&CAUSE).unwrap();
        assert!(matches!(unknown.counterfactual, Counterfactual::NotHere(_)));
    }

    fn rate(bytes_per_second: f64) -> Composed {
        let mut cell = cell("disk.iozone-read.throughput", 2.0);
        cell.unit = "B/s".into();
        cell.base = cell.base.map(|span| tare_model::dossier::Span {
            point: bytes_per_second,
            ..span
        });
        Composed::new("vm").cell(cell)
    }

    #[test]
    fn one_sided_cache_or_impossible_rate_is_suspected() {
        check(
            &CAUSE,
            &[read(0.0, 1e8, 5.0), read(1e8, 0.0, 0.2), rate(64e9)],
            &[
                read(1e8, 1e8, 2.0),
                read(0.0, 0.0, 2.0),
                rate(3e9),
                Composed::new("docker").cost("disk.fio-read.rate", 5.0),
            ],
        );
    }
}
