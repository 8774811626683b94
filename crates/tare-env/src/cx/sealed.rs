//! The agent's bytes where nobody can change them any more: in a sealed file in memory.
//!
//! The agent is started and read many times in a run. From a file on a disk, each time could find other bytes than
//! those that were hashed at the beginning. On Linux the bytes that were read are put into a file without a name,
//! which is then sealed (memfd_create(2), `F_SEAL_WRITE` and its like in fcntl(2)); the kernel undoes no seal.
//! Everything that starts or copies the agent goes through this process's descriptor of it.
//! What it cannot do: anything on other systems, or where `/proc` or the right to execute such files is missing;
//! there whoever reads the agent keeps a copy in a folder of its own.

use std::fs::File;
use std::path::PathBuf;

/// A sealed file. It is there as long as this value is.
#[derive(Debug)]
pub(super) struct Sealed {
    _file: File,
    path: PathBuf,
}

impl Sealed {
    /// Its path for this process and those that it starts, whatever their working directory.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Seals a copy of these bytes; `None` where there is no such file.
    #[cfg(target_os = "linux")]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;

        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Since Linux 6.3 the right to execute is asked for; before that the flag is not known.
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

    /// There is none.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(_bytes: &[u8]) -> Option<Self> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_can_be_read_and_executed_and_not_changed() {
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
