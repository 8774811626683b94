//! Not the same file system, or not the same device, under the same path.
//!
//! Overlays and shared folders have causes of their own; what is left is a tmpfs against a disk, or one disk
//! against another. What it cannot see: paths other than the probes' folder and the root.

use super::entry::{Entry, Found};
use super::kind::Kind;
use super::look::of_work_mount;
use super::triage::Family;
use super::{Case, switch};

const FAMILIES: &[Family] = &[Family::Device, Family::Waiting, Family::CostlierCalls];
/// File systems that live in memory: a flush costs nothing there.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "rootfs"];

/// The registered cause.
pub(super) static CAUSE: Entry = Entry {
    id: "disk.other-filesystem-under-the-path",
    title: "The same path lies on another file system or another device",
    mechanism: "A temporary folder is often memory on one side and a disk on the other. A flush to memory costs nothing \
                and one to a disk waits for it, so that the same program looks hundreds of times slower without any \
                cost of the environment.",
    needs: &[
        "mount.*.fstype",
        "mount.*.device",
        "mount.*.options",
        "mount.*.block.*",
    ],
    size: "Writing and flushing 4 KiB: 2.5–3.7 ms on ext4, an overlay or a volume, 2 µs on tmpfs; creating a file 24–31 \
           µs against 6–10 µs.",
    advice: "Compare like with like: put both sides' files on the same file system; for scratch files use a tmpfs on \
             both.",
    price: "What lies in a tmpfs counts as memory and is gone afterwards.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<Found> {
    let part = |name: &str| {
        Some((
            of_work_mount(&case.baseline.facts, name)?,
            of_work_mount(&case.arm.facts, name)?,
        ))
    };
    let (there, here) = part("fstype")?;
    let in_memory = |fstype: &str| IN_MEMORY.contains(&fstype);
    // An overlay's own cost is another cause; that it lies on a disk and the baseline in memory is this one.
    let is_layered = |fstype: &str| fstype.contains("overlay");
    let is_shared = |fstype: &str| {
        ["9p", "virtiofs", "cifs", "nfs", "fakeowner", "drvfs"]
            .iter()
            .any(|name| fstype.starts_with(name))
            || fstype.starts_with("fuse.")
    };
    if is_shared(here) || is_shared(there) {
        return None;
    }
    let memory_differs = in_memory(there) != in_memory(here);
    let fstype_differs = there != here && !is_layered(here) && !is_layered(there);
    // Numbers of devices mean something on one kernel only.
    let devices = part("device").filter(|(there, here)| there != here);
    let device_differs = devices.is_some()
        && there == here
        && !is_layered(here)
        && !in_memory(here)
        && case.same_kernel() == Some(true);
    if !(memory_differs || fstype_differs || device_differs) {
        return None;
    }
    let cells = case.costs(&[Kind::Disk, Kind::Metadata]);
    Some(
        Found::new(
            cells.clone(),
            (if memory_differs { 0.9 } else { 0.6 }) * case.fit(&cells, FAMILIES),
            if there == here {
                format!(
                    "The files lie on another device than in the baseline, and {}.",
                    case.told(&cells)
                )
            } else {
                format!(
                    "The files lie on `{here}` and in the baseline on `{there}`, and {}.",
                    case.told(&cells)
                )
            },
        )
        .seen(format!(
            "under the files: `{here}`, in the baseline `{there}`"
        ))
        .seen_if(devices.map(|(there, here)| format!("device {here}, in the baseline {there}")))
        .seen_all(case.because(&cells, FAMILIES))
        .by(if in_memory(there) {
            switch::tmpfs(case)
        } else {
            switch::bind(case)
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::super::composed::{Composed, check};

    #[test]
    fn memory_against_a_disk_is_suspected_and_equal_file_systems_are_not() {
        let on = |there: &str, here: &str| {
            Composed::of("docker")
                .both("kernel.boot_id", "one")
                .base("mount./tmp.fstype", there)
                .fact("mount./work.fstype", here)
                .cost("disk.fsync.time", 900.0)
        };
        let devices = |kernel: &str| {
            on("ext4", "ext4")
                .base("mount./tmp.device", "8:1")
                .fact("mount./work.device", "8:2")
                .fact("kernel.boot_id", kernel)
        };
        check(
            &super::CAUSE,
            &[
                on("tmpfs", "ext4"),
                on("tmpfs", "overlay"),
                on("ext4", "xfs"),
                devices("one"),
            ],
            &[
                on("ext4", "ext4"),
                on("ext4", "overlay"),
                on("ext4", "9p"),
                devices("other"),
                Composed::of("docker")
                    .base("mount./.fstype", "tmpfs")
                    .cost("disk.fsync.time", 9.0),
            ],
        );
    }
}
