//! Interpreters that find libraries which hardly any distribution packages: each in a virtual environment of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::ensured;
use crate::shell::{program, step};
use crate::workspace::target_folder;

/// Libraries that are wanted together.
pub(crate) struct Libraries {
    /// The folder's name, and what is told where they cannot be had.
    name: &'static str,
    /// The variable that tells the tests of the interpreter; a newcomer may set it to one of his own.
    pub(crate) variable: &'static str,
    /// What is installed: the versions that the tests know.
    releases: &'static [&'static str],
    /// What tests that miss one of them say that they need.
    pub(crate) needs: &'static [&'static str],
    /// What imports them.
    import: &'static str,
}

/// Times commands as another tool does.
pub(crate) const PYPERF: Libraries = Libraries {
    name: "pyperf",
    variable: "TARE_PYPERF",
    releases: &["pyperf==2.10.0"],
    needs: &["pyperf"],
    import: "import pyperf",
};

/// Read the tables that reports write; pandas reads files of columns by the third.
pub(crate) const TABLES: Libraries = Libraries {
    name: "pandas",
    variable: "TARE_PANDAS",
    releases: &["pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1"],
    needs: &["pandas", "polars"],
    import: "import pandas, polars, pyarrow",
};

impl Libraries {
    /// The interpreter that is named, else one in the target folder; `None`, and the reason told, where they cannot be
    /// had.
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
