//! A disk figure that is one of memory, on one side or on both.
//!
//! Either one side read from the device and the other from the cache, or a figure lies above what any device
//! gives. Gains count as well as costs: whoever runs second finds the cache warm. What it cannot see: a cache
//! of a host under a guest, which no counter inside shows.

use tare_model::dossier::DossierCell;

use super::entry::{Entry, Found};
use super::kind::Kind;
use super::look::bytes;
use super::{Case, switch};

/// Above this no storage device reads: about the speed of a PCIe 5.0 ×4 link, bytes a second.
const FASTEST_DEVICE: f64 = 14e9;
/// Share of the bytes read that came from the device, from which on the device was measured.
const FROM_DEVICE: f64 = 0.5;
/// Share below which the cache was.
const FROM_CACHE: f64 = 0.1;
/// Less than this per unit of work proves nothing.
const FEWEST_BYTES: f64 = 4096.0;

/// The registered cause.
pub(super) static CAUSE: Entry = Entry {
    id: "tooling.page-cache",
    title: "The disk figure is one of memory, on one side at least",
    mechanism: "Files that fit into memory are read from the page cache, and files of a few kilobytes from the \
                processor's own. Whoever runs second finds what the first one read, so that the order decides which \
                side is fast, and a limit on memory does not apply to pages that somebody else has loaded.",
    needs: &["read_bytes", "rchar", "cells of disk with their values"],
    size: "64 MiB: 4–7.7 GB/s again from the cache, 0.7–1.2 GB/s from the device. A file that the host had read came at \
           6 GB/s in a container limited to 64 MiB, and at 1 GB/s after it had been dropped. A published figure of \
           64 GB/s was 64 kB in one tick of a clock of 1 µs.",
    advice: "Drop the file's cached pages before every repetition on every side, read around the cache, or use files of \
             twice the memory; and randomise the order of the sides.",
    price: "The measurement takes longer; nothing else is lost.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<Found> {
    let cells = case.differences(&[Kind::Disk]);
    let share = |index: usize| {
        let (base_device, device) = case.counter(&[index], "read_bytes")?;
        let (base_all, all) = case.counter(&[index], "rchar")?;
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
        return Some(
            Found::new(
                vec![index],
                0.85,
                format!(
                    "`{}` compares a cache with a device: {:.0} % of what the arm read came from the device, and {:.0} % in the baseline.",
                    cell.metric,
                    here * 100.0,
                    there * 100.0
                ),
            )
            .seen(format!("{side} was served from the page cache"))
            .by(switch::not_here("the cache is the machine's: it is dropped before each repetition, not switched off in one arm")),
        );
    }
    let impossible: Vec<usize> = cells
        .into_iter()
        .filter(|index| speed(&case.cells[*index]).is_some_and(|speed| speed > FASTEST_DEVICE))
        .collect();
    let fastest = impossible
        .iter()
        .filter_map(|index| speed(&case.cells[*index]))
        .fold(0.0, f64::max);
    (!impossible.is_empty()).then(|| {
        Found::new(
            impossible.clone(),
            0.9,
            format!(
                "A figure of {} a second is no disk's, so that {} says nothing about storage.",
                bytes(fastest),
                names(case, &impossible)
            ),
        )
        .seen(format!(
            "no storage device gives more than {} a second",
            bytes(FASTEST_DEVICE)
        ))
        .by(switch::not_here(
            "the file must be larger than the caches, or be read around them",
        ))
    })
}

fn names(case: &Case<'_>, cells: &[usize]) -> String {
    let first = cells
        .first()
        .map_or("", |index| case.cells[*index].metric.as_str());
    format!("`{first}`")
}

/// The larger of the two values, for rates in bytes a second.
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
    use super::super::composed::{Composed, cell, check};

    fn read(base: f64, arm: f64, ratio: f64) -> Composed {
        Composed::of("docker")
            .cost("fio.read.rate", ratio)
            .counted("fio", &[("rchar", 1e8, 1e8), ("read_bytes", base, arm)])
    }

    fn rate(bytes_per_second: f64) -> Composed {
        let mut cell = cell("iozone.read.rate", 2.0);
        cell.unit = "B/s".into();
        cell.base = cell.base.map(|span| tare_model::dossier::Span {
            point: bytes_per_second,
            ..span
        });
        Composed::of("vm").cell(cell)
    }

    #[test]
    fn a_cache_against_a_device_and_an_impossible_speed_are_suspected() {
        check(
            &super::CAUSE,
            &[read(0.0, 1e8, 5.0), read(1e8, 0.0, 0.2), rate(64e9)],
            &[
                read(1e8, 1e8, 2.0),
                read(0.0, 0.0, 2.0),
                rate(3e9),
                Composed::of("docker").cost("fio.read.rate", 5.0),
            ],
        );
    }
}
