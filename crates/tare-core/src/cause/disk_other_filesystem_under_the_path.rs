//! A different file system or device under the same path.
//!
//! Overlays and shared folders have separate causes. This one covers tmpfs against a disk, one disk against another,
//! or a file system served by a program (FUSE). For a user's command the paths that it was observed to use count; for
//! a probe its directory. Limits: misses files that a command keeps open too briefly to be observed.

use super::disk_shared_folder;
use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Device, Family::Waiting, Family::CostlierCalls];
/// File systems in memory: a flush costs nothing there.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "rootfs"];

pub(super) static CAUSE: Entry = Entry {
    id: "disk.other-filesystem-under-the-path",
    title: "The same path lies on another file system or another device",
    mechanism: "A temporary folder is often memory on one side and a disk on the other. A flush to memory takes no time \
                and one to a disk waits for it, so that the same program looks hundreds of times slower without any \
                cost of the environment.",
    needs: &[
        fact::MOUNT_FSTYPE,
        fact::MOUNT_DEVICE,
        fact::MOUNT_OPTIONS,
        fact::COMMAND_MOUNT,
        fact::COMMAND_OPENED,
    ],
    size: "Writing and flushing 4 KiB: 2.5–3.7 ms on ext4, an overlay or a volume, 2 µs on tmpfs; creating a file 24–31 \
           µs against 6–10 µs.",
    advice: "Compare like with like: put both sides' files on the same file system; for scratch files use a tmpfs on \
             both.",
    price: "What lies in a tmpfs counts as memory and is gone afterwards.",
    suspect,
};

/// A difference of the file systems under the files, with the likelihood that it is slower.
struct Difference<'a> {
    place: FileLocation<'a>,
    there: &'a str,
    here: &'a str,
    likelihood: f64,
}

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let places = case.places().into_iter();
    let found = places.filter_map(|place| difference(case, place));
    let Difference {
        place,
        there,
        here,
        likelihood,
    } = found.max_by(|a, b| a.likelihood.total_cmp(&b.likelihood))?;
    let devices = place
        .part(case, fact::MOUNT_DEVICE)
        .filter(|(there, here)| there != here);
    let cells = case.costs(&[Kind::Disk, Kind::Metadata]);
    let files = place.path.map_or_else(
        || "The files".to_owned(),
        |path| format!("The files of `{path}`"),
    );
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            likelihood,
            if there == here {
                format!("{files} lie on another device than in the baseline")
            } else {
                format!("{files} lie on `{here}` and in the baseline on `{there}`")
            },
        )
        .seen(format!(
            "{}: `{here}`, in the baseline `{there}`",
            place.words()
        ))
        .also_seen(devices.map(|(there, here)| format!("device {here}, in the baseline {there}")))
        .with_counterfactual(if place.path.is_some() {
            switch::same_folder(case, &place)
        } else if is_in_memory(there) {
            switch::tmpfs(case)
        } else {
            switch::bind(case)
        }),
    )
}

fn is_in_memory(fstype: &str) -> bool {
    IN_MEMORY.contains(&fstype)
}

/// Returns the difference at one place, if it is one that this cause covers.
fn difference<'a>(case: &Case<'a>, place: FileLocation<'a>) -> Option<Difference<'a>> {
    let (there, here) = place.part(case, fact::MOUNT_FSTYPE)?;
    // An overlay's overhead is another cause, but disk against memory is this one even under an overlay.
    let is_layered = |fstype: &str| fstype.contains("overlay");
    let is_shared = |fstype: &str| disk_shared_folder::SHARED.contains(&fstype);
    if is_shared(here) || is_shared(there) {
        return None;
    }
    let memory_differs = is_in_memory(there) != is_in_memory(here);
    let is_served_by_a_program = here.starts_with("fuse") && !there.starts_with("fuse");
    let fstype_differs = there != here && !is_layered(here) && !is_layered(there);
    // Device numbers are comparable on one kernel only.
    let device_differs = place
        .part(case, fact::MOUNT_DEVICE)
        .is_some_and(|(there, here)| there != here)
        && there == here
        && !is_layered(here)
        && !is_in_memory(here)
        && case.same_kernel() == Some(true);
    if !(memory_differs || fstype_differs || device_differs) {
        return None;
    }
    Some(Difference {
        place,
        there,
        here,
        likelihood: if memory_differs || (is_served_by_a_program && fstype_differs) {
            0.9
        } else {
            0.6
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_file_system_is_suspected_equal_one_is_not() {
        let on = |there: &str, here: &str| {
            Composed::new("docker")
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
        let of_command = |opened: &str| {
            Composed::new("container")
                .both("kernel.boot_id", "one")
                .both("command.directory", "/work")
                .both("command.mount./work.fstype", "ext4")
                .differing("command.mount./scratch.fstype", "tmpfs", "ext4")
                // The agent's directory is no evidence about the command's.
                .base("mount./a.fstype", "tmpfs")
                .fact("mount./b.fstype", "ext4")
                .base("command.opened", opened)
                .cost("command.wall.time", 3.0)
        };
        check(
            &CAUSE,
            &[
                on("tmpfs", "ext4"),
                on("tmpfs", "overlay"),
                on("ext4", "xfs"),
                on("ext4", "fuse.bindfs"),
                devices("one"),
                of_command("/scratch/x"),
            ],
            &[
                on("ext4", "ext4"),
                on("ext4", "overlay"),
                on("ext4", "9p"),
                on("ext4", "fuse.sshfs"),
                devices("other"),
                // A different file system under a path that the command does not use.
                of_command("/work/x"),
                Composed::new("docker")
                    .base("mount./.fstype", "tmpfs")
                    .cost("disk.fsync.time", 9.0),
            ],
        );
    }

    #[test]
    fn file_system_counterfactual_binds_host_folder() {
        let shown = Composed::new("docker")
            .both("kernel.boot_id", "one")
            .both("command.directory", "/work")
            .both("command.opened", "/work/data/x")
            .differing("command.mount./work/data.fstype", "ext4", "fuse.bindfs")
            .fact("command.mount./work/data.point", "/work/data")
            .setting("binds", "/slow:/work/data,/work:/work")
            .cost("command.wall.time", 3.0)
            .counterfactual(&CAUSE);
        assert!(shown.contains("/work/data:/work/data"), "{shown}");
        assert!(
            shown.contains("/work:/work\"") && !shown.contains("/slow"),
            "{shown}"
        );
    }
}
