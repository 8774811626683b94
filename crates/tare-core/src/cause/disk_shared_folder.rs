//! A folder of another operating system under the files: Docker Desktop, WSL 2's `/mnt/c`, network file systems.
//!
//! Recognised by the file system's name in mountinfo, because statfs gives one number for every FUSE; if no mount was
//! recorded, by an engine that is known to run its containers in a virtual machine. Limits: cannot distinguish a
//! server that is slow for other reasons.

use super::prelude::*;

/// File systems that another machine or operating system serves.
pub(super) const SHARED: &[&str] = &tare_model::rows! {
    "9p", "virtiofs", "fuse.grpcfuse", "fuse.osxfs", "fakeowner", "drvfs", "vboxsf", "prl_fs", "vmhgfs",
    "fuse.vmhgfs-fuse", "cifs", "smb3", "nfs", "nfs4", "fuse.sshfs",
};
/// Engine systems that run their containers in a virtual machine.
const ON_A_DESKTOP: &[&str] = &[
    "Docker Desktop",
    "OrbStack",
    "Rancher Desktop",
    "Lima",
    "Colima",
];
/// If submission takes this many times as long as completion, there is no queue.
const BLOCKED_SUBMISSION: f64 = 10.0;
const FAMILIES: &[Family] = &[Family::Waiting, Family::Device, Family::CostlierCalls];

pub(super) static CAUSE: Entry = Entry {
    id: "disk.shared-folder",
    title: "The files lie in a folder that another operating system serves",
    mechanism: "A folder of Windows or macOS that is bound into a container is a network file system in disguise: \
                each lookup, open and read travels to a server on the other side of a virtual machine and back. \
                Asynchronous and direct requests are often carried out one after the other there, so that a deep \
                queue gains nothing.",
    needs: &[
        fact::MOUNT_FSTYPE,
        fact::MOUNT_SUPER_OPTIONS,
        fact::ENGINE_SYSTEM,
        fact::KERNEL_RELEASE,
        "cells of disk and fs",
    ],
    size: "4 KiB random reads fell from 157 000 to 3 600 a second and a web page took 3 s instead of 0.2 s (Docker \
           on Windows, 2025); 9p is about ten times slower than the native file system, virtiofs about half as \
           much again (user reports).",
    advice: "Keep the files in a named volume, or in the Linux file system of the virtual machine (WSL 2: its own \
             ext4 tree); where the folder must be shared, prefer virtiofs to 9p, or synchronise copies.",
    price: "Files in a volume are not visible to the tools of the other system and need a backup of their own; \
            security does not suffer.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.costs(&[Kind::Disk, Kind::Metadata, Kind::CopyUp]);
    if cells.is_empty() {
        return None;
    }
    let places = case.places();
    let is_shared = |place: &&FileLocation<'_>| {
        let differs = place
            .part(case, fact::MOUNT_FSTYPE)
            .is_none_or(|(there, here)| there != here);
        let fstype = place.part_here(case, fact::MOUNT_FSTYPE);
        differs && fstype.is_some_and(|fstype| SHARED.contains(&fstype))
    };
    let place = places.iter().find(is_shared).or(places.first());
    let here = place.and_then(|place| place.part_here(case, fact::MOUNT_FSTYPE));
    let there = place.and_then(|place| Some(place.part(case, fact::MOUNT_FSTYPE)?.0));
    let fit = case.fit(&cells, FAMILIES);
    let found = match here {
        Some(fstype) if SHARED.contains(&fstype) => {
            if there == here {
                return None;
            }
            let options = place.and_then(|place| place.part_here(case, fact::MOUNT_SUPER_OPTIONS));
            let options = options.unwrap_or_default();
            let is_drive = options.contains("aname=drvfs") || fstype == "drvfs";
            let whose = if is_drive { " of a Windows drive" } else { "" };
            case.found(&cells, 0.95 * fit, format!("The files lie on `{fstype}`{whose}, which another system serves"))
            .seen(format!(
                "the file system {} is `{fstype}`, in the baseline `{}`",
                place.map(FileLocation::words).unwrap_or_default(),
                there.unwrap_or("not recorded")
            ))
        }
        None if is_bound(case) && runs_in_a_machine(case) => case.found(&cells, 0.8 * fit, "The files lie in a bound folder of the other side of a virtual machine")
        .seen("the folder is bound from the system outside of the engine's virtual machine; its file system was not recorded"),
        // Known and of another kind, or without evidence.
        _ => return None,
    };
    let found = found
        .also_seen(
            case.fact(fact::ENGINE_SYSTEM)
                .map(|system| format!("the engine says that it is `{system}`")),
        )
        .also_seen(blocked_submission(case))
        .because(FAMILIES);
    // On one kernel the directory itself can be mounted instead of what serves it.
    let own = place.filter(|place| place.path.is_some() && case.same_kernel() == Some(true));
    Some(found.with_counterfactual(match own {
        Some(place) => switch::same_folder(case, place),
        None if case.takes("disk") => switch::machine(case, "disk", "virtio"),
        None => switch::volume(case),
    }))
}

fn is_bound(case: &Case<'_>) -> bool {
    case.is_set("storage", "bind") || case.fact(fact::ASKED_BINDS).is_some()
}

fn runs_in_a_machine(case: &Case<'_>) -> bool {
    case.says(fact::ENGINE_SYSTEM, ON_A_DESKTOP)
        || case.says(
            fact::KERNEL_RELEASE,
            &["microsoft-standard-WSL2", "linuxkit"],
        )
        || case.says(
            fact::ENGINE_KERNEL,
            &["microsoft-standard-WSL2", "linuxkit"],
        )
}

/// Reports a submission latency far above the completion latency: the requests ran while they were submitted.
fn blocked_submission(case: &Case<'_>) -> Option<String> {
    let value = |word: &str| {
        let cell = case.cells.iter().find(|cell| cell.metric.contains(word))?;
        cell.env.map(|span| span.point)
    };
    let (submit, complete) = (value("submission")?, value("completion")?);
    (submit > BLOCKED_SUBMISSION * complete).then(|| {
        format!(
            "handing requests over took {:.0} times as long as waiting for them: they ran one after the other, whatever the queue's depth",
            submit / complete
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_folder_is_suspected_and_local_mount_is_not() {
        let on = |fstype: &str| {
            Composed::new("docker")
                .base("mount./tmp.fstype", "ext4")
                .fact("mount./.fstype", "overlay")
                .fact("mount./tare-work.fstype", fstype)
                .cost("fs.stat.time", 8.0)
        };
        let of_command = |opened: &str| {
            Composed::new("container")
                .both("kernel.boot_id", "one")
                .both("command.directory", "/work")
                .both("command.mount./work.fstype", "ext4")
                .differing("command.mount./work/data.fstype", "ext4", "fuse.sshfs")
                .both("command.opened", opened)
                .cost("command.wall.time", 3.0)
        };
        check(
            &CAUSE,
            &[
                on("9p"),
                on("virtiofs"),
                on("fakeowner"),
                of_command("/work/data/x"),
                Composed::new("docker")
                    .setting("storage", "bind")
                    .fact("engine.system", "Docker Desktop")
                    .cost("disk.fio-read.rate", 43.0),
                Composed::golden("docker-desktop-windows-bind").cost("fs.stat.time", 10.0),
                Composed::golden("docker-desktop-mac-fakeowner").cost("fs.stat.time", 3.0),
                Composed::golden("wsl2-drvfs").cost("fs.stat.time", 10.0),
            ],
            &[
                on("ext4"),
                on("overlay"),
                Composed::new("docker")
                    .setting("storage", "bind")
                    .cost("disk.fio-read.rate", 2.0),
                on("9p").base("mount./tmp.fstype", "9p"),
                // It is under a path that the command does not use.
                of_command("/work/x"),
                Composed::new("docker")
                    .fact("mount./w.fstype", "9p")
                    .cost("cpu.integer.time", 2.0),
            ],
        );
    }

    #[test]
    fn shared_folder_counterfactual_is_volume_or_disk() {
        let shown = Composed::golden("docker-desktop-windows-bind")
            .setting("storage", "bind")
            .cost("fs.stat.time", 10.0)
            .counterfactual(&CAUSE);
        assert!(shown.contains("volume"), "{shown}");
        let shown = Composed::new("vm")
            .setting("disk", "shared")
            .base("mount./tmp.fstype", "ext4")
            .fact("mount./work.fstype", "virtiofs")
            .cost("fs.stat.time", 8.0)
            .counterfactual(&CAUSE);
        assert!(shown.contains("virtio"), "{shown}");
    }
}
