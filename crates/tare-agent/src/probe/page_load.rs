//! `page-load`: what an interpreter does to a source tree before it answers: `stat`, open, read, close.
//!
//! Inside the timed regions, for a tree of `files` files of `bytes` bytes in folders of 50: `fs.page-load.time`, one
//! pass over the whole tree: listing each folder, and for each file `stat`, opening, `fstat`, reading to the end and
//! closing; `fs.source-file.time`, the same for one file without the listing; `fs.missing-file.time`, one `stat` of a
//! file that does not exist, as in a search along a path.
//! Outside: creating the tree, one pass as warm-up, removing it.
//! Known bias: everything is in the kernel's caches after the first pass; a mount that asks its server each time has
//! no such caches and is slower. Names are relative to an open directory.
//! Correspondence: the page load of a web application that a published comparison of storage (2025) set out to
//! explain; it measured random reads of one large file instead.
//! Source: ours.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "page-load": "listing folders and stat, open, fstat, read and close of many small files";
    revision 1, cut KERNEL
}

super::needs!(linux, "openat and getdents64");

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    linux::run(meter, params)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    use tare_model::{Failure, Params, whole_size};

    use crate::args::whole;
    use crate::folder::Folder;
    use crate::listing::entries;
    use crate::meter::{Meter, ProbeError};

    /// Files per folder.
    const FILES_PER_FOLDER: u64 = 50;

    struct Tree {
        folder: Folder,
        folders: Vec<CString>,
        files: Vec<CString>,
        bytes: usize,
    }

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let files = whole(params, "files", 200, 1..=100_000)?;
        let bytes = whole_size(whole(params, "bytes", 4096, 0..=1 << 20)?);
        let tree = Tree::make(meter, files, bytes)?;
        let mut buffer = vec![0u8; bytes + 1];
        let at = tree.folder.handle().as_raw_fd();
        tree.pass(&mut buffer)?;
        meter.each("fs.page-load.time", 0.5, || tree.pass(&mut buffer))?;
        let mut next = tree.files.iter().cycle();
        meter.loops("fs.source-file.time", 0.3, |times| {
            for file in next.by_ref().take(whole_size(times)) {
                read(at, file, tree.bytes, &mut buffer)?;
            }
            Ok(())
        })?;
        meter.loops("fs.missing-file.time", 0.2, |times| {
            for _ in 0..times {
                if stat(at, c"folder-000/no-such-file.php")? {
                    return Err(void("a file is there that was never made"));
                }
            }
            Ok(())
        })
    }

    impl Tree {
        fn make(meter: &Meter, files: u64, bytes: usize) -> Result<Self, ProbeError> {
            let folder = Folder::new(meter.workdir(), "tare-page-load")?;
            let content = vec![b'.'; bytes];
            let (mut folders, mut names) = (Vec::new(), Vec::new());
            for number in 0..files {
                let parent = format!("folder-{:03}", number / FILES_PER_FOLDER);
                if number % FILES_PER_FOLDER == 0 {
                    std::fs::create_dir(folder.path().join(&parent))
                        .map_err(|error| ProbeError::system("mkdir", &error))?;
                    folders.push(named(&parent));
                }
                let name = format!("{parent}/source-{number:06}.php");
                std::fs::write(folder.path().join(&name), &content)
                    .map_err(|error| ProbeError::system("write", &error))?;
                names.push(named(&name));
            }
            Ok(Self {
                folder,
                folders,
                files: names,
                bytes,
            })
        }

        /// Lists every folder and reads every file once.
        fn pass(&self, buffer: &mut [u8]) -> Result<(), ProbeError> {
            let at = self.folder.handle().as_raw_fd();
            let mut found = 0;
            for folder in &self.folders {
                // `.` and `..` are entries too.
                found += entries(at, folder)?.saturating_sub(2);
            }
            if found != self.files.len() {
                return Err(void("the folders do not list all files"));
            }
            for file in &self.files {
                read(at, file, self.bytes, buffer)?;
            }
            Ok(())
        }
    }

    fn named(name: &str) -> CString {
        CString::new(name).expect("there is no zero byte in it")
    }

    fn void(problem: &str) -> ProbeError {
        ProbeError::Failed(Failure::Void(problem.to_owned()))
    }

    /// Whether a file exists.
    fn stat(at: RawFd, name: &CStr) -> Result<bool, ProbeError> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `at` is an open directory, the name ends with a zero byte, and `found` has the size of the answer.
        if unsafe { libc::fstatat(at, name.as_ptr(), found.as_mut_ptr(), 0) } == 0 {
            return Ok(true);
        }
        let error = std::io::Error::last_os_error();
        match error.kind() {
            std::io::ErrorKind::NotFound => Ok(false),
            _ => Err(ProbeError::system("fstatat", &error)),
        }
    }

    /// Calls `stat` for a file, opens it, reads all of it and closes it.
    fn read(at: RawFd, name: &CStr, bytes: usize, buffer: &mut [u8]) -> Result<(), ProbeError> {
        if !stat(at, name)? {
            return Err(void("a file has gone"));
        }
        // SAFETY: `at` is an open directory and the name ends with a zero byte.
        let descriptor =
            unsafe { libc::openat(at, name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if descriptor < 0 {
            return Err(ProbeError::last("openat"));
        }
        // SAFETY: just opened, and owned nowhere else.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the descriptor is open and `found` has the size of the answer.
        if unsafe { libc::fstat(file.as_raw_fd(), found.as_mut_ptr()) } != 0 {
            return Err(ProbeError::last("fstat"));
        }
        let mut length = 0;
        loop {
            let rest = &mut buffer[length..];
            // SAFETY: the descriptor is open and the rest of the buffer has the given length.
            match unsafe { libc::read(file.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len()) } {
                0 => break,
                more if more > 0 => length += more.cast_unsigned(),
                _ => return Err(ProbeError::last("read")),
            }
            if length > bytes {
                break;
            }
        }
        if length == bytes {
            return Ok(());
        }
        Err(void("a file has another length than was written"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn page_load_pass_detects_missing_or_changed_file() {
            let meter = Meter::new(1, &std::env::temp_dir());
            let tree = Tree::make(&meter, 120, 10).unwrap();
            assert_eq!(tree.folders.len(), 3);
            let mut buffer = vec![0; 11];
            tree.pass(&mut buffer).unwrap();
            let file = tree.folder.path().join("folder-001/source-000060.php");
            std::fs::write(&file, b"longer than it was").unwrap();
            assert!(tree.pass(&mut buffer).is_err());
            std::fs::remove_file(&file).unwrap();
            assert!(tree.pass(&mut buffer).is_err());
        }
    }
}
