//! Copies the programs of sides that differ: each side and the A/A control run from a separate file, below paths of
//! equal length, and each file is written anew between blocks.
//!
//! A program's location decides the length of its path, and which physical pages it lies in: of equal copies of a
//! shell, one computed up to 3 % longer than the other for as long as both stayed in the page cache. A comparison of
//! two copies would show that as a difference of the programs. Written anew again and again, it averages out, and
//! is in the interval. Sides with the same program run from its one file, which they have in common.
//! Each copy is tried once. If one fails or prints something else, all sides run their original files.
//! Limits: scripts and other files that are not ELF are not copied, and neither are libraries.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::sides::{can_run_alone, script};
use crate::compare::study::Side;
use crate::cx::{Context, files};
use crate::output;
use crate::why::observed::Observed;

/// Largest program that is copied, bytes.
const LARGEST: usize = 256 << 20;
/// Longest total time of the first runs for which copies are tried; slower commands run their original files.
const TRIED_BELOW_NS: u64 = 5_000_000_000;
/// Most bytes of earlier copies that are kept.
const KEPT_MOST: u64 = 256 << 20;
/// How often all copies are written anew at most: each earlier one takes a file descriptor.
const TIMES_MOST: u64 = 64;

/// Copies of the sides' programs.
pub(crate) struct Copies {
    /// The control's command.
    pub(crate) control: Vec<String>,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Earlier copies, kept open so that the next ones get other pages. `None` once one could not be written.
    earlier: Mutex<Option<Vec<File>>>,
}

impl Copies {
    /// Writes all copies anew, between two blocks. Does so less often if that takes much space: `expected` is the
    /// number of blocks.
    pub(crate) fn renew(&self, block: u64, expected: u64) {
        let Ok(mut guard) = self.earlier.lock() else {
            return;
        };
        let Some(earlier) = guard.as_mut() else {
            return;
        };
        let bytes: u64 = self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let times = times(bytes);
        let is_due = times > 0 && block.is_multiple_of(expected.div_ceil(times).max(1));
        if !is_due || earlier.len() as u64 >= times * self.files.len() as u64 {
            return;
        }
        for (path, bytes) in &self.files {
            let written = files::open_file(path, false).and_then(|file| {
                earlier.extend(file);
                files::write_own_program(path, bytes)
            });
            if let Err(error) = written {
                output::tell(&format!(
                    "note: the copies of the programs stay as they are: {error}"
                ));
                *guard = None;
                return;
            }
        }
    }
}

/// How often copies of this many bytes in total may be written anew.
fn times(bytes: u64) -> u64 {
    (KEPT_MOST / bytes.max(1)).min(TIMES_MOST)
}

/// Gives each side and the control a copy of its program. The sides stay unchanged, and the answer is `None`, if
/// their programs are one file or cannot be copied. `prints_same`: whether each run of a side prints the same.
pub(crate) fn made(
    cx: &Context<'_>,
    sides: &mut [Side],
    looks: &[Observed],
    prints_same: bool,
) -> Option<Copies> {
    let is_short = looks.iter().map(|look| look.wall_ns).sum::<u64>() <= TRIED_BELOW_NS;
    let program = |side: &Side| files::canonical(Path::new(&side.call.argv[0])).ok();
    let is_one = sides.iter().all(|side| program(side) == program(&sides[0]));
    if !is_short || is_one || !can_run_alone(sides, looks) {
        return None;
    }
    let all = sides.iter().chain([&sides[0]]).enumerate();
    let copies = all.map(|(place, side)| copied(cx, place, &side.call.argv[0]));
    let copies: Vec<(PathBuf, Vec<u8>)> = copies.collect::<Option<_>>()?;
    let paths = copies.iter().map(|(path, _)| path.to_str());
    let mut paths: Vec<String> = paths
        .map(|it| it.map(str::to_owned))
        .collect::<Option<_>>()?;
    let looked = looks.iter().chain([&looks[0]]);
    for ((side, look), copy) in sides.iter().chain([&sides[0]]).zip(looked).zip(&paths) {
        if !does_the_same(cx, side, (look, prints_same), copy) {
            output::tell(&format!(
                "note: a copy of `{}` does not do the same, so all sides run from their own files, the A/A control from the base's",
                &side.call.argv[0]
            ));
            return None;
        }
    }
    let mut control = sides[0].call.argv.clone();
    control[0] = paths.pop()?;
    for (side, path) in sides.iter_mut().zip(paths) {
        side.call.argv[0] = path;
    }
    Some(Copies {
        control,
        files: copies,
        earlier: Mutex::new(Some(Vec::new())),
    })
}

/// Returns the copy's path and its bytes; `None` if the program is not an ELF file.
fn copied(cx: &Context<'_>, place: usize, program: &str) -> Option<(PathBuf, Vec<u8>)> {
    let path = files::canonical(Path::new(program)).ok()?;
    if files::head(&path, 4).ok()? != b"\x7fELF" {
        return None;
    }
    let bytes = files::read_plain(&path, LARGEST as u64).ok()?;
    let folder = cx.scratch.join(format!("copy-{place:02}"));
    files::create_folder(&folder).ok()?;
    // Some programs act on the name they are called by.
    let copy = folder.join(Path::new(program).file_name()?);
    files::write_own_program(&copy, &bytes).ok()?;
    Some((copy, bytes))
}

/// Whether the copy exits like the original, and prints the same if every run of the original does.
fn does_the_same(
    cx: &Context<'_>,
    side: &Side,
    (look, prints_same): (&Observed, bool),
    copy: &str,
) -> bool {
    let line = script(side, "cd \"$0\" && exec \"$@\"", copy, &side.call.argv[1..]);
    let limit = Duration::from_nanos(look.wall_ns.saturating_mul(20)) + Duration::from_secs(5);
    let Ok(finished) = cx.exec.run(&line, &[], limit) else {
        return false;
    };
    let status = match look.report.exit {
        tare_model::outcome::Exit::Code(code) => Some(code),
        tare_model::outcome::Exit::Signal(_) => None,
    };
    // Messages may contain the path that the program was started with.
    let is_compared = prints_same && !look.report.is_cut;
    finished.status == status && (!is_compared || finished.stdout == look.report.stdout.0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn renewed_copy_is_another_file_with_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let bytes = vec![7; 10];
        files::write_own_program(&path, &bytes).unwrap();
        let copies = Copies {
            control: Vec::new(),
            files: vec![(path.clone(), bytes)],
            earlier: Mutex::new(Some(Vec::new())),
        };
        let inode = || path.metadata().unwrap().ino();
        let mut seen = vec![inode()];
        for block in 1..=4 {
            copies.renew(block, 2 * TIMES_MOST);
            seen.push(inode());
        }
        // Every second block, so that the earlier ones have room.
        assert!(seen[0] == seen[1] && seen[2] == seen[3], "{seen:?}");
        assert!(seen[1] != seen[2] && seen[3] != seen[4], "{seen:?}");
        assert_eq!(files::read(&path).unwrap(), [7; 10]);
    }

    #[test]
    fn large_copies_are_renewed_less_often() {
        assert_eq!([1, 8 << 20, 1 << 30].map(times), [TIMES_MOST, 32, 0]);
    }

    #[test]
    fn copies_that_cannot_be_written_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folder/program");
        let copies = Copies {
            control: Vec::new(),
            files: vec![(path, vec![7; 10])],
            earlier: Mutex::new(Some(Vec::new())),
        };
        copies.renew(1, 1);
        assert!(copies.earlier.lock().unwrap().is_none());
    }
}
