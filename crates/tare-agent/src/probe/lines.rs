//! `lines`: writes a text line by line, and reads it back.
//!
//! Inside the timed regions: `fs.line-write.time`, writing one line of `line_bytes` characters to a file through a
//! buffer of 8 KiB, as the text files of scripting languages do, and closing the file; `fs.line-write-direct.time`,
//! one `write` per line; `fs.line-read.time`, reading the file to its end through such a buffer and finding the line
//! ends. Each is the total time for `files` files of `lines` lines, divided by all lines; several files are written
//! and read by one thread each, in parallel.
//! Outside: creating and removing the files.
//! Known bias: nothing is synchronised and the text was just written, so this measures the page cache, as in the
//! source, which took it for its disk. The unbuffered part writes only a hundredth of the lines.
//! Correspondence: writing a large file (31 characters by 8 000 000 lines) and ten small ones (800 000 lines each),
//! and reading them, of Danilova and Sergeev (2024): `lines`, `line_bytes` and `files` are theirs.
//! Source: see above.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use tare_model::{Failure, Params, Unit, whole_ns, whole_size};

use crate::args::whole;
use crate::folder::Folder;
use crate::meter::{Meter, ProbeError};

super::probe! {
    "lines": "writing a text line by line through a buffer and without, and reading it back";
    revision 1, cut Whole("a file is written and read as a whole")
}

/// The buffer size of a text file in most scripting languages.
const BUFFER_BYTES: usize = 8 << 10;
/// One in this many lines is written without a buffer.
const DIRECT_PART: u64 = 100;
const FEWEST: usize = 5;

#[derive(Clone, Copy)]
struct Size {
    lines: u64,
    line_bytes: u64,
    files: u64,
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let size = Size {
        lines: whole(params, "lines", 20_000, 100..=100_000_000)?,
        line_bytes: whole(params, "line_bytes", 31, 2..=4096)?,
        files: whole(params, "files", 1, 1..=64)?,
    };
    let folder = Folder::new(meter.workdir(), "tare-lines")?;
    let path = folder.path();
    let (mut written, mut direct, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let all = size.lines * size.files;
    let few = Size {
        lines: (size.lines / DIRECT_PART).max(1),
        ..size
    };
    write(path, size, BUFFER_BYTES)?;
    let begin = Instant::now();
    while written.len() < FEWEST || whole_ns(begin.elapsed()) < meter.target_ns() {
        let start = Instant::now();
        write(path, size, BUFFER_BYTES)?;
        written.push(start.elapsed().as_nanos() as f64 / all as f64);
        let start = Instant::now();
        let found = read_back(path, size)?;
        read.push(start.elapsed().as_nanos() as f64 / all as f64);
        if found != all {
            return Err(ProbeError::Failed(Failure::Void(format!(
                "{found} lines were read of {all} that were written"
            ))));
        }
        let start = Instant::now();
        // With an empty buffer, every line is a separate write.
        write(path, few, 0)?;
        direct.push(start.elapsed().as_nanos() as f64 / (few.lines * few.files) as f64);
    }
    meter.count_timed(begin.elapsed());
    meter.record("fs.line-write.time", Unit::Nanosecond, written, all);
    meter.record(
        "fs.line-write-direct.time",
        Unit::Nanosecond,
        direct,
        few.lines * few.files,
    );
    meter.record("fs.line-read.time", Unit::Nanosecond, read, all);
    Ok(())
}

/// Does `work` for each file, in parallel if there are several, and returns the sum of the results.
fn for_each_file(
    folder: &Path,
    size: Size,
    work: impl Fn(&Path) -> std::io::Result<u64> + Sync,
) -> Result<u64, ProbeError> {
    let failed = |error: &std::io::Error| ProbeError::system("write or read lines", error);
    let name = |number: u64| folder.join(format!("lines-{number:02}"));
    if size.files == 1 {
        return work(&name(0)).map_err(|error| failed(&error));
    }
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..size.files {
            let (work, path) = (&work, name(number));
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || work(&path));
            threads.push(thread.map_err(|error| ProbeError::system("start a thread", &error))?);
        }
        let mut sum = 0;
        for thread in threads {
            let answer = thread.join().map_err(|_| {
                ProbeError::Failed(Failure::Probe("a thread with a file panicked".to_owned()))
            })?;
            sum += answer.map_err(|error| failed(&error))?;
        }
        Ok(sum)
    })
}

/// Writes every file from scratch.
fn write(folder: &Path, size: Size, buffer_bytes: usize) -> Result<(), ProbeError> {
    let mut line = vec![b'a'; whole_size(size.line_bytes)];
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    let written = for_each_file(folder, size, |path| {
        let mut file = BufWriter::with_capacity(buffer_bytes, File::create(path)?);
        for _ in 0..size.lines {
            file.write_all(&line)?;
        }
        file.flush()?;
        Ok(size.lines)
    })?;
    debug_assert_eq!(written, size.lines * size.files);
    Ok(())
}

/// Reads every file and returns the number of lines.
fn read_back(folder: &Path, size: Size) -> Result<u64, ProbeError> {
    for_each_file(folder, size, |path| {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
        let (mut line, mut n_lines) = (Vec::new(), 0);
        while file.read_until(b'\n', &mut line)? > 0 {
            n_lines += 1;
            line.clear();
        }
        Ok(n_lines)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_arrives_in_every_file() {
        let folder = Folder::new(&std::env::temp_dir(), "tare-lines-test").unwrap();
        for files in [1, 3] {
            let size = Size {
                lines: 1_000,
                line_bytes: 31,
                files,
            };
            for buffer_bytes in [0, BUFFER_BYTES] {
                write(folder.path(), size, buffer_bytes).unwrap();
                assert_eq!(read_back(folder.path(), size).unwrap(), 1_000 * files);
                let length = std::fs::metadata(folder.path().join("lines-00"))
                    .unwrap()
                    .len();
                assert_eq!(length, 31_000);
            }
        }
    }
}
