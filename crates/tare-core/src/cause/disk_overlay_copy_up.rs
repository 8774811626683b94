//! The image's overlay layers: the first write to a file copies it, and each lookup takes one step more.
//!
//! Limits: does not know whether a file existed in the image; the probe for this writes one that does.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, Device, MoreCalls, Waiting};

const FAMILIES: &[Family] = &[CostlierCalls, MoreCalls, Device, Waiting];

pub(super) static CAUSE: Entry = Entry {
    id: "disk.overlay-copy-up",
    title: "The files lie on the image's layers, where a first write copies the whole file",
    mechanism: "An overlay copies a file of a lower layer to the upper one when it is opened for writing, whole, however \
                little is written. Every path through the layers also costs a look-up more, and reading ahead is \
                shorter there.",
    needs: &[
        fact::MOUNT_FSTYPE,
        fact::MOUNT_SUPER_OPTIONS,
        "cells of disk.copy-up, fs and disk",
    ],
    size: "Opening a file of 100 MB for writing: 84–89 ms the first time, 0.01 ms the second, 0.003 ms outside. `stat` \
           376 to 436 ns (16 %); cold sequential reading 10–30 % slower.",
    advice: "Put data that is written into a volume or a tmpfs; what stays in the image is best left read-only.",
    price: "A volume has a life and a backup of its own; a tmpfs counts as memory; nothing in security.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let is_overlay = |fstype: Option<&str>| {
        fstype.is_some_and(|name| name == "overlay" || name == "fuse.fuse-overlayfs")
    };
    let here = of_work_mount(&case.arm.facts, fact::MOUNT_FSTYPE);
    if !is_overlay(here) || is_overlay(of_work_mount(&case.baseline.facts, fact::MOUNT_FSTYPE)) {
        return None;
    }
    let copied = case.costs_only(&[Kind::CopyUp]);
    let cells = case.costs(&[Kind::CopyUp, Kind::Metadata, Kind::Disk]);
    let layers = of_work_mount(&case.arm.facts, fact::MOUNT_SUPER_OPTIONS)
        .and_then(|options| {
            options
                .split(',')
                .find_map(|option| option.strip_prefix("lowerdir="))
        })
        .map(|lower| lower.split(':').count());
    let likelihood = if copied.is_empty() {
        let only_metadata = cells
            .iter()
            .all(|index| Kind::for_cell(&case.cells[*index]) == Kind::Metadata);
        (if only_metadata { 0.7 } else { 0.45 }) * case.fit(&cells, FAMILIES)
    } else {
        0.95
    };
    let what = if copied.is_empty() {
        "each path leads through the image's layers"
    } else {
        "the first write copies the whole file out of the image"
    };
    Some(
        case.found(
            &cells,
            likelihood,
            format!("The files lie on an overlay, where {what}"),
        )
        .seen(format!(
            "the file system under the files is `overlay`, in the baseline `{}`",
            of_work_mount(&case.baseline.facts, fact::MOUNT_FSTYPE).unwrap_or("not recorded")
        ))
        .also_seen(
            layers.map(|layers| {
                format!("{layers} lower layer{}", if layers == 1 { "" } else { "s" })
            }),
        )
        .because(FAMILIES)
        .with_counterfactual(switch::volume(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_in_the_arm_alone_is_suspected() {
        let on = |here: &str, metric: &str| {
            Composed::new("docker")
                .differing("mount./tmp.fstype", "ext4", here)
                .cost(metric, 1.2)
        };
        check(
            &CAUSE,
            &[
                on("overlay", "disk.copy-up.time"),
                on("overlay", "fs.stat.time"),
                on("overlay", "disk.sequential-read.rate"),
            ],
            &[
                on("ext4", "fs.stat.time"),
                on("overlay", "syscall.getppid.time"),
                on("overlay", "fs.stat.time").base("mount./tmp.fstype", "overlay"),
            ],
        );
    }

    #[test]
    fn a_copied_file_is_surer_than_a_slow_look_up() {
        let likelihood = |metric: &str| {
            let composed = Composed::new("docker")
                .differing("mount./.fstype", "ext4", "overlay")
                .cost(metric, 1.2);
            composed.suspects(&CAUSE).unwrap().likelihood
        };
        assert!(likelihood("disk.copy-up.time") > likelihood("fs.stat.time"));
        assert!(likelihood("fs.stat.time") > likelihood("disk.fsync.time"));
    }
}
