//! Foreign objects that look like Tare's, which a cleanup must not touch.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use anyhow::{Result, ensure};

use crate::traces::{has_docker, labelled};

/// The name of a folder without a mark, the label of a process, the label of a container.
pub(super) const FOREIGN: &str = "not-tares";

/// A process and a container of another run.
pub(super) struct Foreign {
    process: Child,
    container: Option<String>,
}

impl Foreign {
    pub(super) fn plant() -> Result<Self> {
        let process = Command::new("sleep")
            .arg("86400")
            .env("TARE_RUN", FOREIGN)
            .spawn()?;
        let mut foreign = Self {
            process,
            container: None,
        };
        if has_docker() {
            foreign.container = Some(made(&format!("faults-{}", std::process::id()))?);
        }
        Ok(foreign)
    }

    /// Creates a file in a folder next to those of runs.
    pub(super) fn file(home: &Path) -> Result<PathBuf> {
        let folder = home.join("runs").join(FOREIGN);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("precious");
        std::fs::write(&file, "precious")?;
        Ok(file)
    }

    /// Returns the objects that no longer exist.
    pub(super) fn missing(&self, file: &Path) -> Vec<String> {
        let mut missing = Vec::new();
        if !file.exists() {
            missing.push(format!("`{}` was removed", file.display()));
        }
        if !labelled(FOREIGN).contains_key(&self.process.id()) {
            missing.push("a process of another run was ended".to_owned());
        }
        if let Some(name) = &self.container
            && !docker(&["inspect", name]).is_ok_and(|output| output.status.success())
        {
            missing.push(format!("the container `{name}` was removed"));
        }
        missing
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(name) = &self.container {
            let _ = docker(&["rm", "-f", name]);
            let _ = docker(&["image", "rm", name]);
        }
    }
}

fn docker(arguments: &[&str]) -> std::io::Result<Output> {
    Command::new("docker").args(arguments).output()
}

/// Creates a container of another run from an empty image, without starting it.
fn made(name: &str) -> Result<String> {
    let label = format!("tare.run={FOREIGN}");
    let import = format!("tar -c --files-from /dev/null | docker import - {name}:latest");
    let imported = Command::new("sh").args(["-c", &import]).output()?;
    ensure!(imported.status.success(), "{imported:?}");
    let image = format!("{name}:latest");
    let created = docker(&[
        "create", "--name", name, "--label", &label, &image, "nothing",
    ])?;
    ensure!(created.status.success(), "{created:?}");
    Ok(name.to_owned())
}
