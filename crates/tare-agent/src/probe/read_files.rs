//! `read-files`: reads whole text files into memory, all in parallel.
//!
//! Inside the timed region: `fs.read-files.time`, opening `files` files of `kib` KiB, reading each completely into a
//! separate variable, and closing them: uninterrupted (`how = "whole"`) or line by line (`how = "lines"`); several
//! files by one thread each, in parallel. Outside: writing them, and freeing the memory.
//! Known bias: the files were just written, so they come from the page cache, as they do in the source after its
//! first repeat. The variable is new each time, so the kernel allocates its pages within the timed region, as there.
//! Correspondence: reading a large file (12 464 KB, whole) and ten small ones (1 247 KB each, line by line, by
//! parallel streams) of Danilova and Sergeev (2024).
//! Source: see above.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

use tare_model::{Failure, Params, Unit, whole_ns, whole_size};

use crate::args::{refused, whole};
use crate::folder::Folder;
use crate::meter::{Meter, ProbeError};

super::probe! {
    "read-files": "reading whole files of text into memory, at a stretch or line by line";
    revision 1, cut Whole("files are read as wholes")
}

/// Characters per line including its end, as in the source.
const LINE_BYTES: usize = 31;
/// The buffer size of a text file in most scripting languages.
const BUFFER_BYTES: usize = 8 << 10;
const FEWEST: usize = 5;

#[derive(Clone, Copy)]
enum ReadMode {
    Whole,
    Lines,
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let bytes = whole(params, "kib", 12_464, 1..=4_194_304)? << 10;
    let files = whole(params, "files", 1, 1..=64)?;
    let how = match params.value("how").map(ToString::to_string).as_deref() {
        None | Some("whole") => ReadMode::Whole,
        Some("lines") => ReadMode::Lines,
        Some(other) => {
            let shown = other.escape_default();
            return Err(refused(format!(
                "`how` is `whole` or `lines`, not `{shown}`"
            )));
        }
    };
    let folder = Folder::new(meter.workdir(), "tare-read-files")?;
    let name = |number: u64| folder.path().join(format!("text-{number:02}"));
    for number in 0..files {
        write(&name(number), bytes).map_err(|error| ProbeError::system("write a file", &error))?;
    }
    let paths: Vec<_> = (0..files).map(name).collect();
    let mut times = Vec::new();
    read_all(&paths, bytes, how)?;
    let begin = Instant::now();
    while times.len() < FEWEST || whole_ns(begin.elapsed()) < meter.target_ns() {
        let start = Instant::now();
        let texts = read_all(&paths, bytes, how)?;
        times.push(start.elapsed().as_nanos() as f64);
        drop(texts);
    }
    meter.count_timed(begin.elapsed());
    meter.record("fs.read-files.time", Unit::Nanosecond, times, 1);
    Ok(())
}

/// Writes a text of this many bytes.
fn write(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut block = Vec::with_capacity(LINE_BYTES << 10);
    for _ in 0..1 << 10 {
        block.extend(std::iter::repeat_n(b'a', LINE_BYTES - 1));
        block.push(b'\n');
    }
    let mut file = File::create(path)?;
    let mut left = bytes;
    while left > 0 {
        let part = left.min(block.len() as u64);
        file.write_all(&block[..whole_size(part)])?;
        left -= part;
    }
    Ok(())
}

fn read(path: &Path, how: ReadMode) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    match how {
        ReadMode::Whole => {
            file.read_to_end(&mut text)?;
        }
        ReadMode::Lines => {
            let mut lines = BufReader::with_capacity(BUFFER_BYTES, file);
            while lines.read_until(b'\n', &mut text)? > 0 {}
        }
    }
    Ok(text)
}

/// Returns the texts of all files, read in parallel if there are several.
fn read_all<P: AsRef<Path> + Sync>(
    paths: &[P],
    bytes: u64,
    how: ReadMode,
) -> Result<Vec<Vec<u8>>, ProbeError> {
    let failed = |error: std::io::Error| ProbeError::system("read a file", &error);
    let texts = match paths {
        [one] => vec![read(one.as_ref(), how).map_err(failed)?],
        several => std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for path in several {
                let thread = std::thread::Builder::new()
                    .spawn_scoped(scope, move || read(path.as_ref(), how))
                    .map_err(|error| ProbeError::system("start a thread", &error))?;
                threads.push(thread);
            }
            let mut texts = Vec::new();
            for thread in threads {
                let text = thread.join().map_err(|_| {
                    ProbeError::Failed(Failure::Probe("a thread with a file panicked".to_owned()))
                })?;
                texts.push(text.map_err(failed)?);
            }
            Ok(texts)
        })?,
    };
    match texts.iter().find(|text| text.len() as u64 != bytes) {
        None => Ok(texts),
        Some(text) => Err(ProbeError::Failed(Failure::Void(format!(
            "{} bytes were read of a file of {bytes}",
            text.len()
        )))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_every_file_is_read_in_both_ways() {
        let folder = Folder::new(&std::env::temp_dir(), "tare-read-files-test").unwrap();
        let paths: Vec<_> = (0..3)
            .map(|number| folder.path().join(number.to_string()))
            .collect();
        for path in &paths {
            write(path, 100_001).unwrap();
        }
        for paths in [&paths[..1], &paths[..]] {
            for how in [ReadMode::Whole, ReadMode::Lines] {
                let texts = read_all(paths, 100_001, how).unwrap();
                assert_eq!(texts.len(), paths.len());
                assert!(texts.iter().all(|text| text.starts_with(b"aaaa")));
            }
        }
        // A file that was truncated meanwhile must not count as a measurement.
        File::options()
            .write(true)
            .open(&paths[0])
            .unwrap()
            .set_len(5)
            .unwrap();
        assert!(read_all(&paths, 100_001, ReadMode::Whole).is_err());
    }
}
