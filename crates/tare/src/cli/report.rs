//! `tare report RUN --format NAME`: writes a stored run in one of the report formats.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tare_model::dossier::Dossier;

use super::compared::Compared;
use super::{Exit, Failed, bundle, output, recount};
use crate::analyze::Series;
use crate::cx::{files, fonts};
use crate::report::{self, FORMATS, Format, Material, ReportOutput};
use crate::session::home::GivenPaths;

#[derive(Args)]
pub(crate) struct Report {
    /// The run: its name, the beginning of it, or `latest`.
    #[arg(default_value = "latest")]
    run: String,
    /// Write the report in this format.
    #[arg(long, value_name = "NAME", default_value = "table", value_parser = formats())]
    format: &'static Format,
    #[command(flatten)]
    compared: Compared,
    /// Write to this file, or several files to this folder (default: stdout, or the current folder).
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Write an archive for `tare replay`: raw output, study, dossier, page, versions, checksums.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "against", "pairs", "output"])]
    bundle: Option<PathBuf>,
    /// Leave out of the archive what commands printed, where no number is read from it.
    #[arg(long, requires = "bundle")]
    redact: bool,
}

impl std::fmt::Debug for Report {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "report {} as {}", self.run, self.format.name)
    }
}

/// The format names with their descriptions for the help.
fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter().map(|format| {
        PossibleValue::new(format.name)
            .aliases(format.alias)
            .help(format.about)
    });
    PossibleValuesParser::new(names)
        .try_map(|name| report::find(&name).ok_or("there is no such form"))
}

impl Report {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let store = place.store_to_read()?;
        let run = recount::resolve(&store, &self.run)?;
        if let Some(file) = &self.bundle {
            let (archive, n_with_output) = bundle::of_run(&store, &run, self.redact)?;
            files::write_output(file, &archive)?;
            if n_with_output > 0 {
                output::tell(&format!(
                    "note: {n_with_output} of its trials hold what your command printed; `--redact` leaves that out"
                ));
            }
            return Ok(Exit::Done);
        }
        let (dossier, readings) = if self.format.needs_readings {
            // Readings of each arm, independent of the comparison.
            recount::readings(&store, &run)?
        } else {
            (self.compared.dossier(&store, &run)?, Vec::new())
        };
        write(self.format, &dossier, &readings, self.output.as_deref())?;
        Ok(Exit::Done)
    }
}

/// Writes a report to its destination.
fn write(
    format: &Format,
    dossier: &Dossier,
    readings: &[Series],
    to: Option<&Path>,
) -> Result<(), Failed> {
    let fonts = if format.needs_fonts {
        fonts::faces()
    } else {
        Vec::new()
    };
    let material = Material {
        dossier,
        readings,
        fonts: &fonts,
        style: output::style(),
    };
    match format.make(&material) {
        ReportOutput::Text(text) => match to {
            Some(file) => files::write_output(file, text.as_bytes())?,
            None if format.is_for_terminals => output::text(&text)?,
            None => output::data(&text)?,
        },
        ReportOutput::Bytes(bytes) => match to {
            Some(file) => files::write_output(file, &bytes)?,
            None if output::is_terminal() => {
                return Err(Failed::usage(format!(
                    "`{}` is nothing for a terminal to show",
                    format.name
                ))
                .hint("name a file with `-o FILE`, or pass it on with `|`"));
            }
            None => output::bytes(&bytes)?,
        },
        ReportOutput::Files(made) => {
            let folder = to.unwrap_or(Path::new("."));
            files::create_output_folder(folder)?;
            for file in made {
                let path = folder.join(&file.name);
                files::write_output(&path, &file.content)?;
                output::data(&format!("{}\n", path.display()))?;
            }
        }
        ReportOutput::Nothing(reason) => {
            return Err(Failed::usage(reason));
        }
    }
    Ok(())
}
