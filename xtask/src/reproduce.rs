//! `reproduce [--agent]`: builds everything, or only the agent, again from a copy of the sources in another folder,
//! and checks that the bytes are the same.
//!
//! With the same compiler, a user can then verify that a `tare` was built from these sources.
//! Limits: does not see differences between machines, such as another path of cargo's registry.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use xtask_build::dist::{self, BuildPaths};
use xtask_build::shell::{program, step};
use xtask_build::workspace::{root, target_folder};

/// Builds everything twice.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [] => same(dist::build)?,
        [only] if only == "--agent" => same(dist::own_agent)?,
        _ => bail!("usage: cargo xtask reproduce [--agent]"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds here and in the copy and compares the results.
fn same(build: fn(&BuildPaths) -> Result<PathBuf>) -> Result<()> {
    let here = build(&BuildPaths::own())?;
    let copy = Copy::new(target_folder().join("again"))?;
    let there = build(&BuildPaths {
        root: copy.0.clone(),
        target: copy.0.join("target"),
    })?;
    let first = first_difference(&here, &there)?;
    ensure!(
        first.is_none(),
        "{} built in another folder differs at byte {}",
        here.display(),
        first.unwrap_or_default()
    );
    step(&format!(
        "{} is the same from another folder",
        here.display()
    ));
    Ok(())
}

/// Returns the offset of the first difference of two files, if any.
fn first_difference(one: &Path, other: &Path) -> Result<Option<usize>> {
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (one, other) = (read(one)?, read(other)?);
    let pairs = one.iter().zip(&other);
    let shorter = (one.len() != other.len()).then(|| one.len().min(other.len()));
    Ok(pairs.into_iter().position(|(a, b)| a != b).or(shorter))
}

/// A copy of the sources; removed on drop.
struct Copy(PathBuf);

impl Copy {
    fn new(folder: PathBuf) -> Result<Self> {
        // Left over from an interrupted run.
        let _ = std::fs::remove_dir_all(&folder);
        let copy = Self(folder);
        let listing = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        for name in program("git", &listing).output()?.split_terminator('\0') {
            let (from, to) = (root().join(name), copy.0.join(name));
            // A deleted file is still listed until the deletion is committed.
            if !from.is_file() {
                continue;
            }
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        ensure!(copy.0.join("Cargo.toml").is_file(), "git names no sources");
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // It is in the target folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_differing_byte_or_missing_end_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let one = file("one", "tare");
        for (name, bytes, expected) in [
            ("same", "tare", None),
            ("other", "tAre", Some(1)),
            ("shorter", "tar", Some(3)),
            ("longer", "tares", Some(4)),
        ] {
            assert_eq!(
                first_difference(&one, &file(name, bytes)).unwrap(),
                expected
            );
        }
    }
}
