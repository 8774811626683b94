//! `copy-up`: the first write to a file that came with the environment.
//!
//! Inside the timed region, once per trial: `open(O_WRONLY)` of a large file that has never been written to, and
//! `pwrite` of one byte over its first. If the file is in a lower layer of an overlay, this copies the whole file
//! first; anywhere else it writes one byte.
//! Outside: reading the file once to its end, so that every trial copies from memory and never from the disk;
//! creating the file if there are no layers and the environment has none; closing.
//! Known bias: an overlay that does not wait for the copy to reach the disk (`volatile`) is faster than one that
//! does; the write dirties its own first page, so a file system near its limits may wait.
//! A file can be copied up only once: the probe refuses a file on an overlay that has been written to, so a study
//! with this probe needs `lifecycle = "cold"` and a new instance for each trial.
//! Limits: does not detect whether the lower and the upper layer share a device that can clone (reflink), where the
//! copy costs almost nothing.
//! Source: `ovl_copy_up_file` of Linux (`fs/overlayfs/copy_up.c`), which copies at the first open for writing.

#[cfg(not(target_os = "linux"))]
use crate::other_systems::run;
#[cfg(target_os = "linux")]
use linux::run;

super::probe! {
    "copy-up": "opening a large file of the environment's own for writing, and writing one byte";
    revision 1, cut Whole("each file can be copied up once")
}

/// The metric: the time of the first write.
pub const TIME: &str = "disk.copy-up.time";

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::time::Instant;

    use tare_model::lower_file::{BLOCK_BYTES, LOWER_FILE, PRISTINE, TOUCHED, blocks};
    use tare_model::{Failure, Params, Reason, Unit};

    use super::TIME;
    use crate::args::whole;
    use crate::direct_file::file_system;
    use crate::meter::{Meter, ProbeError};

    pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
        let wanted_bytes = whole(params, "mib", 100, 1..=8191)? << 20;
        let path = meter.workdir().join(LOWER_FILE);
        let kind = file_system(meter.workdir());
        let is_layered = kind == "overlay";
        if !is_layered {
            make_where_missing(&path, wanted_bytes)?;
        }
        let first = read_through(&path, wanted_bytes, is_layered)?;
        if is_layered && first != PRISTINE {
            return Err(ProbeError::Failed(Failure::Probe(
                "the file was written to before and is copied up already: use `lifecycle = \"cold\"`"
                    .into(),
            )));
        }
        let begin = Instant::now();
        let file = OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(|error| ProbeError::system("open for writing", &error))?;
        file.write_all_at(&[TOUCHED], 0)
            .map_err(|error| ProbeError::system("write one byte", &error))?;
        let elapsed_ns = begin.elapsed().as_nanos() as f64;
        drop(file);
        meter.record(TIME, Unit::Nanosecond, vec![elapsed_ns], 1);
        meter.note(format!("file system {kind}"));
        Ok(())
    }

    /// Creates the file on the disk, complete and without holes.
    fn make_where_missing(path: &Path, bytes: u64) -> Result<(), ProbeError> {
        let failed = |error: &std::io::Error| ProbeError::system("make the file", error);
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = match opened {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other.map_err(|error| failed(&error))?,
        };
        blocks(bytes)
            .try_for_each(|block| file.write_all(&block))
            .and_then(|()| file.sync_all())
            .map_err(|error| {
                // The next trial would take half a file for a complete one.
                let _ = std::fs::remove_file(path);
                failed(&error)
            })
    }

    /// Reads the file into memory and returns its first byte.
    fn read_through(path: &Path, bytes: u64, is_layered: bool) -> Result<u8, ProbeError> {
        let failed = |error: &std::io::Error| ProbeError::system("read the file", error);
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && is_layered => {
                return Err(ProbeError::Unavailable(Reason::Unsupported(format!(
                    "the environment's image holds no `{LOWER_FILE}` to be copied up; set `lower_file`"
                ))));
            }
            other => other.map_err(|error| failed(&error))?,
        };
        let mut buffer = vec![0u8; BLOCK_BYTES];
        let mut first = None;
        let mut n_read = 0;
        loop {
            let count = file.read(&mut buffer).map_err(|error| failed(&error))?;
            if count == 0 {
                break;
            }
            first.get_or_insert(buffer[0]);
            n_read += count as u64;
        }
        match first {
            Some(first) if n_read == bytes => Ok(first),
            _ => Err(ProbeError::Failed(Failure::Probe(format!(
                "the file has {n_read} bytes, and the trial asks for one of {bytes}"
            )))),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn copy_up_creates_missing_file_unless_on_overlay() {
            let folder = std::env::temp_dir().join(crate::direct_file::unique("tare-copy-up"));
            std::fs::create_dir(&folder).unwrap();
            let is_layered = file_system(&folder) == "overlay";
            let mut meter = Meter::new(1_000_000, &folder);
            let outcome = run(&mut meter, &Params::new().with("mib", 1i64));
            if is_layered {
                assert!(matches!(
                    outcome,
                    Err(ProbeError::Unavailable(Reason::Unsupported(_)))
                ));
            } else {
                outcome.unwrap();
                let bytes = std::fs::read(folder.join(LOWER_FILE)).unwrap();
                assert_eq!((bytes.len(), bytes[0]), (1 << 20, TOUCHED));
                // Another size is another cell: one file must not serve both.
                let error = run(&mut meter, &Params::new().with("mib", 2i64)).unwrap_err();
                assert!(format!("{error:?}").contains("1048576"), "{error:?}");
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
