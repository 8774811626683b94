//! The guest's only file system: the agent as its first process, and the modules of its devices.

use std::path::{Path, PathBuf};

use super::cpio::Archive;
use super::kernel::Kernel;
use super::settings::Settings;
use crate::cx::{AgentBinary, files};
use crate::env::EnvError;

/// How much of the memory the archive and what is unpacked from it may take, besides the kernel's own share.
const KERNEL_SHARE_BYTES: u64 = 64 << 20;

/// Makes the archive in `folder`; its path.
pub(super) fn make(
    agent: &AgentBinary,
    kernel: &Kernel,
    settings: &Settings,
    folder: &Path,
) -> Result<PathBuf, EnvError> {
    let modules = kernel.modules(&settings.modules())?;
    let mut archive = Archive::default();
    archive.folder("dev");
    archive.device("dev/console", 5, 1);
    archive.folder("modules");
    for (number, path) in modules.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The number keeps the order, which is that of what needs what.
        let name = format!("modules/{number:02}-{name}");
        archive.file(&name, 0o644, &files::read(path)?);
    }
    archive.file("init", 0o755, &files::read(&agent.path)?);
    let bytes = archive.finish();
    // The packed and the unpacked copy are there at the same time.
    let needed = bytes.len() as u64 * 2 + KERNEL_SHARE_BYTES;
    if settings.memory_bytes < needed {
        return Err(EnvError::Absent {
            why: format!(
                "{} MiB of memory are too small for the guest's own files",
                settings.memory_bytes >> 20
            ),
            fix: Some(format!("memory = \"{}m\" or more", (needed >> 20) + 1)),
        });
    }
    files::create_folder(folder)?;
    let path = folder.join("initramfs.cpio");
    files::write(&path, &bytes)?;
    Ok(path)
}
