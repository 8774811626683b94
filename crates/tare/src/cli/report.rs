//! `tare report RUN --format svg`: a stored run in a form for others.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::home::Place;
use super::{Exit, Failed, output, recount};
use crate::cx::files;
use crate::report;
use crate::store::Store;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The figures of the publication that the study repeats.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run: its name, the beginning of it, or `latest`.
    #[arg(default_value = "latest")]
    run: String,
    /// The form.
    #[arg(long, value_enum)]
    format: Format,
    /// The folder for the files; the current one if it is left out.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

impl Report {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let store = Store::open_to_read(&place.store_file()?)?;
        let run = recount::resolve(&store, &self.run)?;
        let dossier = recount::dossier(&store, &run)?;
        let Format::Svg = self.format;
        let drawings = report::svg::figures(&dossier);
        if drawings.is_empty() {
            return Err(Failed::new(
                Exit::Usage,
                format!(
                    "run `{}` has no figure: its study repeats no publication that has one",
                    dossier.run
                ),
            )
            .hint("`tare list studies` says which do"));
        }
        let folder = self.output.clone().unwrap_or_else(|| PathBuf::from("."));
        files::create_output_folder(&folder)?;
        for drawing in drawings {
            let path = folder.join(&drawing.name);
            files::write_output(&path, drawing.svg.as_bytes())?;
            output::data(&format!("{}\n", path.display()))?;
        }
        Ok(Exit::Done)
    }
}
