//! A hash of the sources, by which a bundle knows the build that made it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rustc-env=TARE_SOURCES={:016x}", sources());
}

/// A hash of all that a reading is made by: what one build has read of trials is no other's business.
fn sources() -> u64 {
    let mut files = Vec::new();
    for folder in [
        "src",
        "../tare-env/src",
        "../tare-core/src",
        "../tare-model/src",
        "../tare-stats/src",
    ] {
        println!("cargo::rerun-if-changed={folder}");
        list(Path::new(folder), &mut files);
    }
    let locked = "../../Cargo.lock";
    println!("cargo::rerun-if-changed={locked}");
    files.push(locked.into());
    // Not the order of the file system.
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        (&file, std::fs::read(&file).unwrap_or_default()).hash(&mut hash);
    }
    hash.finish()
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}
