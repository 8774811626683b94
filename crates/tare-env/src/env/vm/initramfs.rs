//! Builds the guest's only file system: the agent as its first process, the modules of its devices, and the host
//! programs that the settings name, with the host's folders and links on their paths.

use crate::env::prelude::*;

use super::cpio::Archive;
use super::kernel::Kernel;
use super::settings::Settings;
use crate::env::image::host_files::{HostEntry, HostFile};
use crate::env::image::{GROUP, PASSWD, SSHD_FOLDERS};

/// Memory for the kernel, in addition to the packed and the unpacked archive, bytes.
const KERNEL_SHARE_BYTES: u64 = 64 << 20;

/// Writes the archive into `folder`, with these modules and host files; returns its path.
pub(super) fn make(
    agent: &AgentBinary,
    kernel: &Kernel,
    settings: &Settings,
    modules: &[&str],
    packed: &[HostFile],
    folder: &Path,
) -> Result<PathBuf> {
    let modules = kernel.modules(modules)?;
    let mut archive = Archive::default();
    archive.folder("dev");
    archive.device("dev/console", 5, 1);
    archive.folder("modules");
    for (number, path) in modules.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The number keeps the load order.
        let name = format!("modules/{number:02}-{name}");
        archive.file(&name, 0o644, &files::read(path)?);
    }
    archive.file("init", 0o755, &agent.bytes()?);
    if !packed.is_empty() {
        // The root itself, and what the guest already has.
        let mut there = vec!["", "dev", "init", "modules", "etc/passwd", "etc/group"];
        for folder in ["etc", "root"].into_iter().chain(SSHD_FOLDERS) {
            archive.folder(folder);
            there.push(folder);
        }
        archive.file("etc/passwd", 0o644, PASSWD.as_bytes());
        archive.file("etc/group", 0o644, GROUP.as_bytes());
        for file in packed {
            let path = file.path.trim_start_matches('/');
            if there.contains(&path) {
                continue;
            }
            match &file.entry {
                HostEntry::Folder { .. } => archive.folder(path),
                HostEntry::Link { target } => archive.link(path, target),
                HostEntry::File { mode, bytes } => archive.file(path, *mode, bytes),
            }
        }
    }
    let bytes = archive.finish();
    // The packed and the unpacked copy exist at the same time.
    let needed = bytes.len() as u64 * 2 + KERNEL_SHARE_BYTES;
    if settings.memory_bytes < needed {
        return Err(EnvError::absent(
            format!(
                "{} MiB of memory are too small for the guest's own files",
                settings.memory_bytes >> 20
            ),
            format!("memory = \"{}m\" or more", (needed >> 20) + 1),
        ));
    }
    files::create_folder(folder)?;
    let path = folder.join("initramfs.cpio");
    files::write_working(&path, &bytes)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Params;

    #[test]
    fn memory_below_twice_archive_is_refused_with_minimum() {
        let folder = tempfile::tempdir().unwrap();
        let agent = AgentBinary::fake(&folder.path().join("agent"));
        let kernel = Kernel {
            path: folder.path().join("kernel"),
            release: None,
        };
        let settings = Settings::read(&Params::new().with("memory", "96m")).unwrap();
        let made = |bytes: usize| {
            files::write(&agent.path, &vec![0; bytes]).unwrap();
            make(
                &agent,
                &kernel,
                &settings,
                &settings.modules(),
                &[],
                &folder.path().join("made"),
            )
        };
        assert!(made(8 << 20).unwrap().exists());
        let Err(EnvError::Absent { why, fix }) = made(20 << 20) else {
            panic!("accepted");
        };
        assert!(why.contains("96 MiB"), "{why}");
        assert_eq!(fix.as_deref(), Some("memory = \"105m\" or more"));
    }
}
