//! Provides Python libraries that few distributions package, each set in a virtual environment.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::ensured;
use xtask_build::shell::{program, step};
use xtask_build::workspace::target_folder;

/// Libraries that are installed together.
pub(crate) struct Libraries {
    /// The folder's name, also printed if they are not available.
    name: &'static str,
    /// The variable with the interpreter's path for the tests; may be set beforehand to another one.
    pub(crate) variable: &'static str,
    /// The installed versions, which the tests know.
    releases: &'static [&'static str],
    /// The needs that tests name when a library is missing.
    pub(crate) needs: &'static [&'static str],
    /// The import statement.
    import: &'static str,
}

/// Times commands, as a peer of Tare.
pub(crate) const PYPERF: Libraries = Libraries {
    name: "pyperf",
    variable: "TARE_PYPERF",
    releases: &["pyperf==2.10.0"],
    needs: &["pyperf"],
    import: "import pyperf",
};

/// Read the tables that reports write; pandas needs the third for columnar files.
pub(crate) const TABLES: Libraries = Libraries {
    name: "pandas",
    variable: "TARE_PANDAS",
    releases: &["pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1"],
    needs: &["pandas", "polars"],
    import: "import pandas, polars, pyarrow",
};

impl Libraries {
    /// Returns the named interpreter, else one in the target folder; `None`, with the reason printed, if the
    /// libraries are not available.
    pub(crate) fn ensure(&self) -> Option<PathBuf> {
        let folder = target_folder().join(self.name);
        let python = folder.join("bin/python3");
        let bring = || {
            let releases = self.releases.join(", ");
            step(&format!("installing {releases} into {}", folder.display()));
            self.install(&folder, &python)
        };
        let lack = format!("{} cannot be had, its tests are skipped", self.name);
        let finds_them = |python: &Path| {
            python.is_file() && program(python, &["-c", self.import]).output().is_ok()
        };
        ensured(self.variable, python.clone(), finds_them, bring, &lack)
    }

    fn install(&self, folder: &Path, python: &Path) -> Result<()> {
        program(
            "/usr/bin/python3",
            &["-m", "venv", &folder.to_string_lossy()],
        )
        .output()?;
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        program(python, &[&install[..], self.releases].concat()).output()?;
        Ok(())
    }
}
