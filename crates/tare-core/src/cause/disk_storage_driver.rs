//! An engine with an unusual storage driver for its layers.
//!
//! The containerd image store calls its snapshotter `overlayfs`, which is the usual driver. Limits: does not know
//! whether the files are on the layers; a volume is not.

use super::prelude::*;

/// Slow drivers, and why.
const SLOW: &[(&str, &str)] = &[
    ("vfs", "copies every layer as a whole for each container"),
    ("fuse-overlayfs", "answers every file access in user space"),
    (
        "devicemapper",
        "keeps layers as block devices, often on a file",
    ),
    ("btrfs", "keeps layers as snapshots"),
    ("zfs", "keeps layers as snapshots"),
    ("aufs", "is a union file system of old kernels"),
];

pub(super) static CAUSE: Entry = Entry {
    id: "disk.storage-driver",
    title: "The engine keeps its layers in a slow way",
    mechanism: "Where the kernel's overlay is not available, engines fall back: to copies of whole layers, to an overlay \
                in user space, to block devices on a file. Nested engines do so by default.",
    needs: &[
        fact::ENGINE_STORAGE_DRIVER,
        fact::ENGINE_STORAGE_PROGRAM,
        fact::ENGINE_STORAGE_FILESYSTEM,
        fact::MOUNT_FSTYPE,
    ],
    size: "From a copy of the image per container to a trip through user space per file access (reports of builds that \
           took several times as long).",
    advice: "Use the kernel's overlay (rootless from Linux 5.13), and volumes for data that is written.",
    price: "None; volumes have a backup of their own.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let fstype = of_work_mount(&case.arm.facts, fact::MOUNT_FSTYPE);
    let is_fuse = |text: Option<&str>| text.is_some_and(|text| text.contains("fuse-overlayfs"));
    let driver = if is_fuse(case.fact(fact::ENGINE_STORAGE_PROGRAM)) || is_fuse(fstype) {
        Some("fuse-overlayfs")
    } else {
        case.fact(fact::ENGINE_STORAGE_DRIVER)
    };
    let (name, why) = SLOW.iter().find(|(name, _)| driver == Some(*name))?;
    let on_layers = matches!(case.setting("storage").as_deref(), None | Some("layer"));
    let mut kinds = vec![Kind::StartUp];
    if on_layers {
        kinds.extend([Kind::Metadata, Kind::Disk, Kind::CopyUp]);
    }
    let cells = if on_layers {
        case.costs(&kinds)
    } else {
        case.costs_only(&kinds)
    };
    // Snapshots of a file system start quickly.
    let strength = match *name {
        "vfs" | "fuse-overlayfs" => 0.85,
        "devicemapper" | "aufs" => 0.7,
        _ => 0.35,
    };
    Some(
        case.found(
            &cells,
            strength,
            format!("The engine's storage driver `{name}` {why}"),
        )
        .seen(format!("the storage driver is `{name}`"))
        .also_seen(fstype.map(|name| format!("the files lie on `{name}`")))
        .also_seen(
            case.fact(fact::ENGINE_STORAGE_FILESYSTEM)
                .map(|name| format!("the layers lie on `{name}`")),
        )
        .with_counterfactual(switch::volume(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_storage_driver_is_suspected_overlay_is_not() {
        let driver = |name: &str| {
            Composed::new("docker")
                .fact("engine.storage_driver", name)
                .cost("fs.create.time", 3.0)
        };
        check(
            &CAUSE,
            &[
                driver("vfs"),
                driver("devicemapper"),
                driver("overlay").fact("engine.storage_program", "/usr/bin/fuse-overlayfs"),
            ],
            &[
                driver("overlay2"),
                driver("overlayfs"),
                driver("vfs").setting("storage", "volume"),
                Composed::new("docker")
                    .fact("engine.storage_driver", "vfs")
                    .cost("cpu.integer.time", 3.0),
            ],
        );
    }
}
