//! Holds the agent's bytes in a sealed file in memory, where they cannot be changed.
//!
//! The agent is started and read many times in a run. A file on disk could have other bytes each time than those that
//! were hashed at the beginning. On Linux the bytes are put into an anonymous file, which is then sealed
//! (memfd_create(2), `F_SEAL_WRITE` etc. in fcntl(2)); seals cannot be removed. Everything that starts or copies the
//! agent goes through this process's file descriptor.
//! Limits: not on other systems, nor without `/proc` or the right to execute such files; there the reader of the
//! agent keeps a copy in its folder.

use std::fs::File;
use std::path::PathBuf;

/// A sealed file that exists as long as this value.
#[derive(Debug)]
pub(super) struct Sealed {
    _file: File,
    path: PathBuf,
}

impl Sealed {
    /// Its path for this process and its children, whatever their working directory.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Seals a copy of these bytes; `None` where sealed files are not supported.
    #[cfg(target_os = "linux")]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;

        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Since Linux 6.3 execution must be requested; earlier kernels do not know the flag.
        let file = memfd_create("tare-agent", flags | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("tare-agent", flags));
        let mut file = File::from(file.ok()?);
        file.write_all(bytes).ok()?;
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).ok()?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let path = PathBuf::from(path);
        path.exists().then_some(Self { _file: file, path })
    }

    /// Not supported here.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(_bytes: &[u8]) -> Option<Self> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn sealed_file_is_readable_executable_immutable() {
        let program = std::fs::read("/bin/true").unwrap();
        let sealed = Sealed::new(&program).unwrap();
        assert_eq!(std::fs::read(sealed.path()).unwrap(), program);
        let opened = File::options().write(true).open(sealed.path());
        let written = opened.and_then(|file| {
            use std::os::unix::fs::FileExt as _;
            file.write_all_at(b"x", 0)
        });
        assert!(written.is_err());
        let cut = File::options().write(true).open(sealed.path());
        assert!(cut.and_then(|file| file.set_len(0)).is_err());
        assert_eq!(std::fs::read(sealed.path()).unwrap(), program);
        let status = std::process::Command::new(sealed.path()).status().unwrap();
        assert!(status.success());
    }
}
