//! The disk of a machine: a raw image with an ext4 file system made by the host.
//!
//! All blocks are allocated and the file system is fully initialised, so that neither a full host disk nor background
//! work disturbs a measurement. Images are made before an instance is timed and reused after a clean shutdown; the
//! image of a killed machine is discarded.
//! Limits: the storage below the image is unknown. `cache` decides whether the host's page cache is used.

use crate::env::prelude::*;

use super::settings::Settings;
use crate::env::error::succeed;
use crate::env::siblings::Number;

/// The program that creates the file system, and its paths if `PATH` lacks the system folders.
const MAKERS: &[&str] = &["mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];

/// Time limit for making a file system and copying a system into it.
const MAKING_LIMIT: Duration = Duration::from_secs(600);

/// An image in use; released when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    _number: Number,
    folder: PathBuf,
    is_clean: bool,
}

impl Lease {
    /// Returns the image of this number; creates it below `folder` if there is none, as large as the settings say and
    /// with their system.
    pub(super) fn take(
        cx: &Context<'_>,
        number: Number,
        folder: &Path,
        settings: &Settings,
    ) -> Result<Self> {
        let lease = Self {
            folder: folder.join(format!("disk-{}", number.get())),
            _number: number,
            is_clean: false,
        };
        if !lease.image().exists() {
            make(cx, &lease, settings)?;
        }
        Ok(lease)
    }

    /// Returns the image's path.
    pub(super) fn image(&self) -> PathBuf {
        self.folder.join("image.ext4")
    }

    /// Marks the image as reusable; call it once the guest has unmounted it.
    pub(super) fn keep(mut self) {
        self.is_clean = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_clean {
            // Removing the environment tries again.
            let _ = files::remove_folder(&self.folder);
        }
    }
}

fn make(cx: &Context<'_>, lease: &Lease, settings: &Settings) -> Result<()> {
    let bytes = settings.disk_bytes;
    files::create_folder(&lease.folder)?;
    let image = lease.image().display().to_string();
    let allocate = cx.agent.command(["allocate", &image, &bytes.to_string()]);
    let what = format!("no disk image of {} MiB can be made", bytes >> 20);
    succeed(cx, &allocate, CONTROL_LIMIT, what)?;
    // Discarding would free the blocks, and lazy initialisation would run during a measurement.
    let mut options = vec![
        "-q",
        "-F",
        "-E",
        "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    ];
    let system = settings.system.as_ref().map(|it| it.display().to_string());
    if let Some(system) = &system {
        options.extend(["-d", system]);
    }
    options.push(&image);
    for maker in MAKERS {
        let command = CommandLine::new(*maker, options.iter().copied());
        let what = "making a file system in the disk image";
        match succeed(cx, &command, MAKING_LIMIT, what) {
            Err(EnvError::Command(CommandError::Missing { .. })) => {}
            made => return made.map(drop),
        }
    }
    Err(EnvError::absent(
        "`mkfs.ext4` is not installed, so there is no file system for the disk",
        "`apt-get install e2fsprogs`, or disk = \"none\"",
    ))
}
