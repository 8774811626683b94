//! Finds programs by name: the file that a shell would execute, and its interpreter.
//!
//! The probe that runs programs and the facts about them use the same lookup, so that the reported hash is that of
//! the executed file. The interpreter is read from the file, as the kernel does: the segment `PT_INTERP` of an ELF
//! file (elf(5)), the first line of a script (execve(2)), and after `/usr/bin/env` the program that `env` would
//! start.
//! Limits: does not see the programs that a program starts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use tare_model::whole_size;

/// Default search path if `PATH` is not set.
#[cfg(not(windows))]
pub const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Default search path if `PATH` is not set.
#[cfg(windows)]
pub const SEARCH_PATH: &str = r"C:\Windows\System32;C:\Windows";

/// The longest first line of a script that Linux reads, and the longest interpreter name, bytes.
const LINE_LIMIT: usize = 256;
/// `PT_INTERP` of elf(5).
const INTERPRETER_SEGMENT: u32 = 3;
/// More segments than any real program has.
const SEGMENTS_LIMIT: u16 = 256;

/// Returns the file that a shell would execute for `name`, if any.
pub fn look_up(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| SEARCH_PATH.into());
    look_up_in(name, &folders)
}

/// Like [`look_up`], with another search path than this process's.
pub fn look_up_in(name: &str, folders: &OsStr) -> Option<PathBuf> {
    if name.contains(std::path::is_separator) {
        return as_program(PathBuf::from(name));
    }
    std::env::split_paths(folders).find_map(|folder| as_program(folder.join(name)))
}

/// Returns this file if it is executable.
#[cfg(not(windows))]
fn as_program(path: PathBuf) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let data = std::fs::metadata(&path).ok()?;
    (data.is_file() && data.permissions().mode() & 0o111 != 0).then_some(path)
}

/// Returns this file if it is executable, with `.exe` appended if the extension is missing.
#[cfg(windows)]
fn as_program(path: PathBuf) -> Option<PathBuf> {
    let mut with_ending = path.clone().into_os_string();
    with_ending.push(".exe");
    [PathBuf::from(with_ending), path]
        .into_iter()
        .find(|path| path.is_file() && path.extension().is_some())
}

#[cfg(not(windows))]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Computes the SHA-256 of a file as hexadecimal digits.
///
/// # Errors
/// The file cannot be read.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut bytes = vec![0; 64 << 10];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => hash.update(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut digits = String::with_capacity(64);
    for byte in hash.finalize() {
        for half in [byte >> 4, byte & 15] {
            digits.push(char::from_digit(u32::from(half), 16).expect("four bits are one digit"));
        }
    }
    Ok(digits)
}

/// Returns the loader or interpreter of a program; `None` for a static one.
///
/// # Errors
/// The file cannot be read.
pub fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let file = File::open(program)?;
    let mut head = [0; LINE_LIMIT];
    let length = read_up_to(&file, &mut head, 0)?;
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        return Ok(of_script(line));
    }
    of_elf(&file, head)
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_at(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Parses the first line of a script, without `#!`.
fn of_script(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        let started = words.find(|word| !word.starts_with('-') && !word.contains('='));
        if let Some(program) = started.and_then(look_up) {
            return Some(program);
        }
    }
    Some(PathBuf::from(first))
}

/// Returns the name in an ELF file's `PT_INTERP`; `None` without such a segment, or if it is not an ELF file.
fn of_elf(file: &File, head: &[u8]) -> io::Result<Option<PathBuf>> {
    let Some(layout) = Layout::parse(head) else {
        return Ok(None);
    };
    for number in 0..layout.segments.min(SEGMENTS_LIMIT) {
        let mut bytes = [0; 56];
        let entry = &mut bytes[..layout.entry_size()];
        let offset = layout
            .table
            .saturating_add(u64::from(number) * u64::from(layout.stride));
        if read_up_to(file, entry, offset)? < entry.len() {
            return Ok(None);
        }
        if layout.half_long(entry, 0) != Some(INTERPRETER_SEGMENT) {
            continue;
        }
        let (place, length) = if layout.is_64 { (8, 32) } else { (4, 16) };
        let (Some(place), Some(length)) = (layout.long(entry, place), layout.long(entry, length))
        else {
            return Ok(None);
        };
        let mut name = vec![0; whole_size(length).min(LINE_LIMIT)];
        let read = read_up_to(file, &mut name, place)?;
        name.truncate(read);
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        return Ok(std::str::from_utf8(name).ok().map(PathBuf::from));
    }
    Ok(None)
}

/// The location and the format of an ELF file's segment table.
struct Layout {
    is_64: bool,
    is_little: bool,
    table: u64,
    stride: u16,
    segments: u16,
}

impl Layout {
    fn parse(head: &[u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        let mut layout = Self {
            is_64: *head.get(4)? == 2,
            is_little: *head.get(5)? == 1,
            table: 0,
            stride: 0,
            segments: 0,
        };
        let (table, stride, segments) = if layout.is_64 {
            (32, 54, 56)
        } else {
            (28, 42, 44)
        };
        layout.table = layout.long(head, table)?;
        layout.stride = layout.short(head, stride)?;
        layout.segments = layout.short(head, segments)?;
        Some(layout)
    }

    /// Bytes per entry of the table.
    fn entry_size(&self) -> usize {
        if self.is_64 { 56 } else { 32 }
    }

    /// Returns the bytes of a number in little-endian order.
    fn least_first<const N: usize>(&self, bytes: &[u8], at: usize) -> Option<[u8; N]> {
        let mut bytes: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
        if !self.is_little {
            bytes.reverse();
        }
        Some(bytes)
    }

    fn short(&self, bytes: &[u8], at: usize) -> Option<u16> {
        self.least_first(bytes, at).map(u16::from_le_bytes)
    }

    fn half_long(&self, bytes: &[u8], at: usize) -> Option<u32> {
        self.least_first(bytes, at).map(u32::from_le_bytes)
    }

    /// Returns a number as wide as the file's addresses.
    fn long(&self, bytes: &[u8], at: usize) -> Option<u64> {
        if !self.is_64 {
            return self.half_long(bytes, at).map(u64::from);
        }
        self.least_first(bytes, at).map(u64::from_le_bytes)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn interpreter_is_elf_linker_or_script_shebang() {
        let shell = look_up("sh").unwrap();
        // A static shell has no interpreter: nothing to check.
        if let Some(linker) = interpreter(&shell).unwrap() {
            assert!(linker.is_absolute() && linker.exists(), "{linker:?}");
        }
        assert_eq!(look_up("no-program-has-this-name"), None);
        // Readable, but not executable.
        assert_eq!(look_up("/proc/version"), None, "it is no program");
        assert_eq!(
            of_script(b" /bin/sh -e\necho"),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(of_script(b"/usr/bin/env -S A=1 sh -e\n"), Some(shell));
        assert_eq!(of_script(b"\n"), None);
    }

    #[test]
    fn a_file_that_is_cut_off_has_no_interpreter() {
        let folder = std::env::temp_dir().join(format!("tare-elf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("cut");
        let whole = std::fs::read(look_up("sh").unwrap()).unwrap();
        for length in [0, 3, 5, 20, 63, 64, 100] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(interpreter(&path).unwrap(), None, "{length} bytes");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
