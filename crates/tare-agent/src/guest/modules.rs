//! Loads the kernel modules of a folder, in the order of their names.
//!
//! The host has resolved the dependencies and numbered the files.
//! A compressed module is passed to the kernel unchanged; kernels from 5.17 on unpack it themselves if built with
//! `CONFIG_MODULE_DECOMPRESS`, others refuse it, which is reported.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `MODULE_INIT_COMPRESSED_FILE` of `include/uapi/linux/module.h`.
const COMPRESSED: libc::c_int = 4;

/// Loads every module of a folder and appends its name to `loaded`; returns one text per failure. A missing folder
/// counts as empty.
pub(super) fn load_all(folder: &Path, loaded: &mut Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    let mut problems = Vec::new();
    for name in names {
        match load(&folder.join(&name)) {
            Ok(()) => loaded.push(name),
            Err(error) => problems.push(format!("module {name}: {error}")),
        }
    }
    problems
}

fn load(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let is_plain = path.extension().is_some_and(|extension| extension == "ko");
    let flags = if is_plain { 0 } else { COMPRESSED };
    // SAFETY: the descriptor is open during the call, and the parameters are an empty NUL-terminated text; the kernel
    // copies what it needs.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Already present: built in, or loaded for another module.
    if error.raw_os_error() == Some(libc::EEXIST) {
        return Ok(());
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_module_is_reported_missing_folder_ignored() {
        let folder = std::env::temp_dir().join(format!("tare-modules-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("00-nothing.ko"), b"no module").unwrap();
        let mut loaded = Vec::new();
        let problems = load_all(&folder, &mut loaded);
        fs::remove_dir_all(&folder).unwrap();
        assert!(loaded.is_empty());
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("module 00-nothing.ko: "),
            "{problems:?}"
        );
        assert!(load_all(&folder, &mut loaded).is_empty());
    }
}
