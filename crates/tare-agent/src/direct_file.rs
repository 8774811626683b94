//! The file that the disk probes read: prepared once, kept in the work directory, opened past the page cache.
//!
//! Every block's contents derive from its number, so any block that was read can be checked, nothing can be
//! compressed or deduplicated, and a half-written file is recognised. It is written under another name next to its
//! place, synced and renamed, so two workers may prepare it at once. Preparation is outside every timed region.
//! Limits: caches behind the block device, such as that of a hypervisor's host, are not bypassed; O_DIRECT ends at
//! the device of this kernel.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::{SystemTime, UNIX_EPOCH};

use tare_model::{Failure, Reason, counter, whole_part};

use crate::meter::ProbeError;
use crate::proc::number_after;

/// Unit in which the contents are made and checked, bytes.
pub const BLOCK_BYTES: usize = 4096;

/// Prepares the file of `bytes` in `folder` unless it exists, and opens it for reading past the page cache.
///
/// # Errors
/// `Unavailable` if the file system refuses O_DIRECT, is read-only or may not be written to; `Failed` for anything
/// else, for example a full device.
pub fn open(folder: &Path, bytes: u64) -> Result<File, ProbeError> {
    let path = folder.join(format!("tare-read-{bytes}.dat"));
    let file = match open_direct(&path) {
        Ok(file) if is_whole(&file, bytes)? => file,
        Ok(_) => prepare(&path, bytes)?,
        Err(error) if error.kind() == ErrorKind::NotFound => prepare(&path, bytes)?,
        Err(error) => return Err(refused(&path, &error)),
    };
    // While a page is cached, the kernel checks it before every direct read.
    forget_pages(&file);
    Ok(file)
}

fn open_direct(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC)
        .open(path)
}

/// Translates an error of [`open_direct`].
fn refused(path: &Path, error: &std::io::Error) -> ProbeError {
    match error.raw_os_error() {
        Some(libc::EINVAL) => ProbeError::Unavailable(Reason::Unsupported(format!(
            "O_DIRECT on this file system ({})",
            path.parent().map_or_else(|| "unknown".into(), file_system)
        ))),
        _ => ProbeError::system("open with O_DIRECT", error),
    }
}

/// Returns the word at `position` of block `block`: the finaliser of SplitMix64 over both (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn word(block: u64, position: u64) -> u64 {
    let mut value =
        (block * (BLOCK_BYTES as u64 / 8) + position + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn fill(buffer: &mut [u8], first_block: u64) {
    for (number, block) in buffer.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        for (position, bytes) in block.chunks_exact_mut(8).enumerate() {
            bytes
                .copy_from_slice(&word(first_block + number as u64, position as u64).to_le_bytes());
        }
    }
}

/// Returns whether `read` is the file's content from byte `offset` on; both are multiples of [`BLOCK_BYTES`].
pub fn is_content(read: &[u8], offset: u64) -> bool {
    let mut expected = vec![0u8; read.len()];
    fill(&mut expected, offset / BLOCK_BYTES as u64);
    !read.is_empty() && read == expected
}

/// Checks size, kind, first and last block: what a crash or another program would leave wrong.
fn is_whole(file: &File, bytes: u64) -> Result<bool, ProbeError> {
    let is_right = file
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.size() == bytes);
    if !is_right {
        return Ok(false);
    }
    let mut slots = Slots::new(1, BLOCK_BYTES)?;
    Ok([0, bytes - BLOCK_BYTES as u64].iter().all(|offset| {
        file.read_exact_at(slots.bytes_mut(0), *offset).is_ok()
            && is_content(slots.bytes(0), *offset)
    }))
}

/// Writes the file under a temporary name in the same directory, renames it and opens it.
fn prepare(path: &Path, bytes: u64) -> Result<File, ProbeError> {
    let partial = Removed(path.with_file_name(unique("tare-partial")));
    let mut file = create(&partial.0)?;
    // Fail before everything is written.
    drop(open_direct(&partial.0).map_err(|error| refused(path, &error))?);
    let mut buffer = vec![0u8; 1 << 20];
    let mut offset = 0u64;
    while offset < bytes {
        let part = &mut buffer[..(bytes - offset).min(1 << 20) as usize];
        fill(part, offset / BLOCK_BYTES as u64);
        file.write_all(part).map_err(|error| {
            ProbeError::system(&format!("write the {bytes} bytes to be read"), &error)
        })?;
        offset += part.len() as u64;
    }
    file.sync_all()
        .map_err(|error| ProbeError::system("fsync of the file to be read", &error))?;
    std::fs::rename(&partial.0, path)
        .map_err(|error| ProbeError::system("rename the file to be read", &error))?;
    open_direct(path).map_err(|error| refused(path, &error))
}

/// Returns a name that no other worker uses in this work directory, even if containers with separate PID namespaces
/// share it.
pub fn unique(stem: &str) -> String {
    let now_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    format!("{stem}-{}-{now_ns}.dat", std::process::id())
}

/// Creates a new file for reading and writing.
///
/// # Errors
/// `Unavailable` if the file system is read-only or may not be written to.
pub fn create(path: &Path) -> Result<File, ProbeError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::ReadOnlyFilesystem => ProbeError::Unavailable(Reason::Unsupported(
                "the work directory is on a read-only file system".into(),
            )),
            ErrorKind::PermissionDenied => ProbeError::Unavailable(Reason::NeedsPrivilege(
                "permission to write in the work directory".into(),
            )),
            _ => ProbeError::system("create a file in the work directory", &error),
        })
}

/// A file that is removed when this goes out of scope.
#[derive(Debug)]
pub struct Removed(pub PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // It may never have been made, or have been renamed.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Asks the kernel to drop a file's cached pages; pages that are not yet on the device stay.
pub fn forget_pages(file: &File) {
    // SAFETY: `posix_fadvise` takes an open descriptor, which `file` keeps open for the call, and no
    // pointer. It is a hint: its failure changes nothing, since O_DIRECT stays correct with cached pages.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    }
}

/// Returns the type of the file system that holds `folder`: the name of a common one, else its number.
pub fn file_system(folder: &Path) -> String {
    let Ok(file) = File::open(folder) else {
        return "unknown".into();
    };
    // SAFETY: an all-zero `statfs` is a valid value of that plain structure of integers.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open while `file` lives; `answer` is a writable `statfs`.
    let status = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut answer) };
    if status != 0 {
        return "unknown".into();
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of 32 bits; the field is signed on some targets and sign-extended there"
    )]
    let kind = answer.f_type as u32;
    // Numbers from linux/magic.h.
    match kind {
        0xef53 => "ext4".into(),
        0x5846_5342 => "xfs".into(),
        0x9123_683e => "btrfs".into(),
        0x794c_7630 => "overlay".into(),
        0x0102_1994 => "tmpfs".into(),
        0x8584_58f6 => "ramfs".into(),
        0x0102_1997 => "9p".into(),
        0x6573_5546 => "fuse".into(),
        0x786f_4256 => "vboxsf".into(),
        0x6969 => "nfs".into(),
        0x2fc1_2fc1 => "zfs".into(),
        number => format!("{number:#x}"),
    }
}

/// Returns the bytes that this process has made the block layer read so far; `None` if the kernel does not say.
pub fn device_read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    number_after(&text, counter::READ_BYTES, ':').map(whole_part)
}

/// Returns a note if reads of `asked_bytes` did not reach a device; `before` is an earlier [`device_read_bytes`].
pub fn device_note(before: Option<u64>, asked_bytes: u64) -> Option<String> {
    let read = device_read_bytes()?.saturating_sub(before?);
    let share = read as f64 / asked_bytes as f64;
    Some(if share < 0.5 {
        format!(
            "the device was not what was measured: it read {read} of {asked_bytes} bytes, memory gave the rest"
        )
    } else {
        format!("the device read {share:.2} of the bytes asked for")
    })
}

/// Zeroed, page-aligned memory in slots of equal size, as direct reads need it.
#[derive(Debug)]
pub struct Slots {
    start: NonNull<u8>,
    slot_bytes: usize,
    count: usize,
    is_abandoned: bool,
}

impl Slots {
    /// Maps `n_slots` slots of `slot_bytes`, a multiple of [`BLOCK_BYTES`].
    pub fn new(n_slots: usize, slot_bytes: usize) -> Result<Self, ProbeError> {
        let length = n_slots
            .checked_mul(slot_bytes)
            .filter(|length| *length > 0 && slot_bytes.is_multiple_of(BLOCK_BYTES))
            .ok_or_else(|| {
                ProbeError::Failed(Failure::Probe(format!(
                    "{n_slots} buffers of {slot_bytes} bytes cannot be"
                )))
            })?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice, with a length other
        // than 0; it touches no memory that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self {
                start,
                slot_bytes,
                count: n_slots,
                is_abandoned: false,
            }),
            _ => Err(ProbeError::system(
                "mmap of the buffers",
                &std::io::Error::last_os_error(),
            )),
        }
    }

    /// Leaves the memory mapped for good, because the kernel may still write into it.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// Returns the number of slots.
    pub fn n_slots(&self) -> usize {
        self.count
    }

    /// Returns the size of a slot in bytes.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Returns the start of slot `slot`.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn pointer(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.count, "there are {} slots", self.count);
        // SAFETY: the mapping is `count * slot_bytes` long and `slot` is below `count`.
        unsafe { self.start.as_ptr().add(slot * self.slot_bytes) }
    }

    /// Returns the contents of slot `slot`. The caller has no read into it in flight.
    pub fn bytes(&self, slot: usize) -> &[u8] {
        // SAFETY: `pointer` checks the slot; the mapping is readable, `slot_bytes` long from there, and
        // lives as long as `self`. That no kernel write is in flight is the caller's duty as documented:
        // `Ring` lends its slots only while nothing is.
        unsafe { std::slice::from_raw_parts(self.pointer(slot), self.slot_bytes) }
    }

    /// Returns slot `slot` for writing.
    pub fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: as for `bytes`; `&mut self` excludes any other reference to the mapping.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(slot), self.slot_bytes) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.is_abandoned {
            return;
        }
        // SAFETY: exactly the mapping that `new` made; no reference into it outlives `self`.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.count * self.slot_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_model::whole_size;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn read_file_is_reused_and_recreated_if_damaged() {
        let folder = folder("direct-file");
        let bytes = 1 << 20;
        let file = open(&folder, bytes).unwrap();
        let inode = file.metadata().unwrap().ino();
        let path = folder.join(format!("tare-read-{bytes}.dat"));
        assert_eq!(
            open(&folder, bytes).unwrap().metadata().unwrap().ino(),
            inode
        );
        let mut slots = Slots::new(1, BLOCK_BYTES).unwrap();
        // Right size, wrong contents: as after a crash between writing and syncing.
        std::fs::write(&path, vec![0u8; whole_size(bytes)]).unwrap();
        assert_ne!(
            open(&folder, bytes).unwrap().metadata().unwrap().ino(),
            inode
        );
        std::fs::write(&path, b"short").unwrap();
        let again = open(&folder, bytes).unwrap();
        again.read_exact_at(slots.bytes_mut(0), 8192).unwrap();
        assert!(is_content(slots.bytes(0), 8192));
        assert!(!is_content(slots.bytes(0), 4096));
        let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn missing_work_directory_error_names_step() {
        let error = open(Path::new("/nonexistent/tare"), 1 << 20).unwrap_err();
        let ProbeError::Failed(Failure::Probe(text)) = error else {
            panic!("{error:?}")
        };
        assert!(
            text.starts_with("create a file in the work directory"),
            "{text}"
        );
    }

    #[test]
    fn buffers_are_aligned_separate_and_zero() {
        let mut slots = Slots::new(3, BLOCK_BYTES).unwrap();
        slots.bytes_mut(1).fill(7);
        assert!(slots.bytes(0).iter().all(|byte| *byte == 0));
        assert!(slots.bytes(2).iter().all(|byte| *byte == 0));
        assert!((0..3).all(|slot| (slots.pointer(slot) as usize).is_multiple_of(BLOCK_BYTES)));
        assert!(Slots::new(1, 100).is_err());
        assert!(Slots::new(0, BLOCK_BYTES).is_err());
    }

    #[test]
    fn proc_file_system_is_reported_by_magic_number() {
        assert_eq!(file_system(Path::new("/proc")), "0x9fa0");
        assert_eq!(file_system(Path::new("/nonexistent")), "unknown");
    }
}
