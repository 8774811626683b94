//! The agent's examples: agents with planted faults.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder of examples that are already built, so that no test waits for a build.
const BUILT: &str = "TARE_TEST_EXAMPLES";

/// Returns an example of the agent's package, built from the current sources into this target folder.
///
/// # Panics
/// If it cannot be built.
pub fn example(name: &str, target: &Path) -> PathBuf {
    if let Some(folder) = std::env::var_os(BUILT) {
        return Path::new(&folder).join(name);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "tare-agent"])
        .args(["--example", name, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.unwrap().success(), "{name} cannot be built");
    target.join("debug/examples").join(name)
}
