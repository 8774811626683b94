//! The guest's kernel: its file, its release, and the modules that the devices need.
//!
//! The release is read from the file's header, so the modules are those of this kernel and not of one with a similar
//! name. Dependencies come from `modules.dep`, which `depmod` wrote when the kernel was installed. Without a module
//! folder, everything is assumed to be built in.
//! Limits: only the guest shows whether a driver works.

use crate::env::prelude::*;

use std::cmp::Reverse;

use crate::env::grammar::has_only;

/// The folder of distributions' kernels.
const BOOT: &str = "/boot";

/// The folder of their modules.
const MODULES: &str = "/lib/modules";

/// Hint on how to get a kernel.
pub(super) const KERNEL_FIX: &str = "install one with `apt-get install linux-image-cloud-amd64`, or name one with kernel = \"PATH\"";

/// A bootable kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) path: PathBuf,
    /// Release, as `uname -r` prints it; `None` if unknown.
    pub(super) release: Option<String>,
}

impl Kernel {
    /// Returns the chosen kernel, or the newest readable one of this machine.
    pub(super) fn find(chosen: Option<&Path>) -> Result<Self> {
        match chosen {
            Some(path) => Self::read(path),
            None => Self::newest(Path::new(BOOT)),
        }
    }

    fn newest(folder: &Path) -> Result<Self> {
        let mut names = files::names(folder).unwrap_or_default();
        names.retain(|name| name.starts_with("vmlinuz-"));
        names.sort_by_key(|name| Reverse(version(name)));
        let mut first_failure = None;
        for name in names {
            match Self::read(&folder.join(name)) {
                Ok(kernel) => return Ok(kernel),
                Err(error) => first_failure = first_failure.or(Some(error)),
            }
        }
        Err(first_failure.unwrap_or_else(|| {
            EnvError::absent(
                format!("there is no kernel in `{}`", folder.display()),
                KERNEL_FIX,
            )
        }))
    }

    fn read(path: &Path) -> Result<Self> {
        let shown = path.display().to_string().escape_debug().to_string();
        let bytes = files::read(path).map_err(|error| match error.source.kind() {
            std::io::ErrorKind::PermissionDenied => EnvError::denied(
                format!("the kernel `{shown}` cannot be read"),
                format!("make it readable with `chmod a+r {shown}`"),
            ),
            _ => EnvError::absent(
                format!("the kernel `{shown}` cannot be read: {}", error.source),
                KERNEL_FIX,
            ),
        })?;
        let header = header(&bytes);
        if header.is_none() {
            return Err(EnvError::absent(
                format!("`{shown}` is not a Linux kernel"),
                KERNEL_FIX,
            ));
        }
        let release = header.flatten().or_else(|| {
            let name = path.file_name()?.to_str()?;
            name.strip_prefix("vmlinuz-").map(str::to_owned)
        });
        Ok(Self {
            path: path.to_owned(),
            release,
        })
    }

    /// Returns the files of these modules and their dependencies, in load order.
    pub(super) fn modules(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let Some(release) = &self.release else {
            return Ok(Vec::new());
        };
        let folder = Path::new(MODULES).join(release);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let read = |name: &str| files::read_text(&folder.join(name)).unwrap_or_default();
        let chain = in_order(&read("modules.dep"), &read("modules.builtin"), wanted);
        chain
            .map(|paths| paths.iter().map(|path| folder.join(path)).collect())
            .map_err(|module| {
                EnvError::absent(
                    format!("the kernel {release} has no driver `{module}`"),
                    "choose other devices, or a kernel that has it, such as that of `apt-get install linux-image-amd64`",
                )
            })
    }
}

/// Parses a kernel's header: `None` if this is no kernel, `Some(None)` if it has no release.
/// Source: `Documentation/arch/x86/boot.rst` (`HdrS` at 0x202, pointer to the version at 0x20e) and
/// `Documentation/arch/arm64/booting.rst` (`ARM\x64` at 56; a compressed image begins with gzip's magic).
#[allow(
    clippy::option_option,
    reason = "no kernel and a kernel without a release are two answers"
)]
fn header(bytes: &[u8]) -> Option<Option<String>> {
    if bytes.get(0x202..0x206) == Some(b"HdrS") {
        let pointer = bytes.get(0x20e..0x210)?;
        let start = usize::from(u16::from_le_bytes([pointer[0], pointer[1]])) + 0x200;
        let text = bytes
            .get(start..)?
            .split(|byte| matches!(byte, 0 | b' '))
            .next()?;
        let is_release =
            (1..=64).contains(&text.len()) && has_only(text, b".-_+~") && text != b"..";
        let release = String::from_utf8_lossy(text).into_owned();
        return Some(is_release.then_some(release));
    }
    let is_arm = bytes.get(56..60) == Some(b"ARM\x64");
    let is_packed = cfg!(target_arch = "aarch64") && bytes.starts_with(b"\x1f\x8b");
    (is_arm || is_packed).then_some(None)
}

/// Splits a name so that the numbers in it compare as numbers: `6.1.0-9` comes before `6.1.0-56`.
fn version(name: &str) -> Vec<(u64, String)> {
    let is_one_part = |one: &u8, next: &u8| one.is_ascii_digit() == next.is_ascii_digit();
    let parts = name.as_bytes().chunk_by(is_one_part);
    let texts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    texts
        .map(|text| (text.parse().unwrap_or(0), text))
        .collect()
}

/// Returns the name of a module from its file's path: `virtio_blk` of `kernel/drivers/block/virtio-blk.ko.xz`.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

/// Returns the paths of the wanted modules, each after its dependencies and only once; the error is the first missing
/// module.
fn in_order(dep: &str, builtin: &str, wanted: &[&str]) -> Result<Vec<String>, String> {
    let builtin: BTreeSet<String> = builtin.lines().map(module_name).collect();
    let mut order: Vec<String> = Vec::new();
    for name in wanted {
        if builtin.contains(*name) {
            continue;
        }
        let line = dep
            .lines()
            .find(|line| {
                line.split(':')
                    .next()
                    .is_some_and(|path| module_name(path) == *name)
            })
            .ok_or_else(|| (*name).to_owned())?;
        let (path, needs) = line.split_once(':').unwrap_or((line, ""));
        // `depmod` lists the module to load first at the end.
        for path in needs.split_whitespace().rev().chain([path]) {
            if !order.iter().any(|known| known == path) {
                order.push(path.to_owned());
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/a/virtio.ko:\n\
        kernel/a/virtio_ring.ko: kernel/a/virtio.ko\n\
        kernel/b/virtio-blk.ko.xz: kernel/a/virtio_ring.ko kernel/a/virtio.ko\n\
        kernel/c/virtio_net.ko: kernel/c/failover.ko kernel/a/virtio_ring.ko kernel/a/virtio.ko\n";

    #[test]
    fn module_dependencies_are_ordered_once_before_it() {
        let order = in_order(
            DEP,
            "kernel/fs/ext4.ko\n",
            &["virtio_blk", "virtio_net", "ext4"],
        );
        assert_eq!(
            order.unwrap(),
            [
                "kernel/a/virtio.ko",
                "kernel/a/virtio_ring.ko",
                "kernel/b/virtio-blk.ko.xz",
                "kernel/c/failover.ko",
                "kernel/c/virtio_net.ko",
            ]
        );
        assert_eq!(in_order(DEP, "", &["e1000"]).unwrap_err(), "e1000");
    }

    #[test]
    fn the_newest_kernel_is_that_with_the_highest_numbers() {
        let mut names = [
            "vmlinuz-6.1.0-9-cloud",
            "vmlinuz-5.10.0-30",
            "vmlinuz-6.1.0-56-cloud",
        ];
        names.sort_by_key(|name| version(name));
        assert_eq!(
            names,
            [
                "vmlinuz-5.10.0-30",
                "vmlinuz-6.1.0-9-cloud",
                "vmlinuz-6.1.0-56-cloud"
            ]
        );
    }

    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0u8; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    #[test]
    fn kernel_release_is_read_and_safe_as_folder_name() {
        let release = header(&image("6.1.0-56-cloud-amd64 (someone@somewhere) #1"));
        assert_eq!(release, Some(Some("6.1.0-56-cloud-amd64".into())));
        assert_eq!(header(&image("../../etc")), Some(None));
        assert_eq!(header(b"#!/bin/sh\nexit 0\n"), None);
        assert_eq!(header(&vec![0u8; 0x210]), None);
    }

    #[test]
    fn invalid_or_missing_kernel_is_named_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinuz-1");
        files::write(&path, b"text").unwrap();
        for chosen in [path, folder.path().join("missing")] {
            let Err(EnvError::Absent { why, fix }) = Kernel::find(Some(&chosen)) else {
                panic!("accepted {}", chosen.display());
            };
            assert!(why.contains(&chosen.display().to_string()), "{why}");
            assert_eq!(fix.as_deref(), Some(KERNEL_FIX));
        }
        assert!(Kernel::newest(&folder.path().join("nowhere")).is_err());
    }

    #[test]
    fn readable_kernel_is_preferred_to_newer_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        files::write(&folder.path().join("vmlinuz-6.2"), b"broken").unwrap();
        files::write(&folder.path().join("vmlinuz-6.1"), &image("6.1 x")).unwrap();
        let kernel = Kernel::newest(folder.path()).unwrap();
        assert_eq!(kernel.release.as_deref(), Some("6.1"));
    }
}
