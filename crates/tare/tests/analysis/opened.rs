//! Opens reports with the programs they are for: a compiler makes a paper of one, and data libraries read the others
//! as correct numbers.
//!
//! Uses the programs themselves if installed: LaTeX with BibTeX, and pandas and polars in the interpreter that
//! `TARE_PANDAS` names, else in `python3`.

use std::path::Path;
use std::process::{Command, Stdio};

use tare::analyze::{RunData, Series, analyze, readings};
use tare::report::ReportOutput;
use tare_model::dossier::{Dossier, DossierDeviation};
use tare_model::{Deviation, Sliced};

use super::forms::{answer_of_why, files_of, made_of};
use super::generator::{Plan, find, rewrite};
use super::snapshots::{hostile, ordinary};
use tare_testkit::skip::skip;

/// Runs a program in a folder; `None` if there is no such program.
fn run_in(folder: &Path, program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let stderr_text = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&stderr_text).into_owned();
    Some((output.status.success(), shown))
}

#[test]
fn paper_document_compiles_with_tables_and_refs() {
    let mut extended = ordinary().run();
    extended.head.study.pairs = true;
    extended.head.deviations = vec![DossierDeviation {
        kind: Deviation::Extended,
        detail: "blocks were added to it".to_owned(),
    }];
    let dossiers: [(&str, Dossier); 5] = [
        ("pairs and added blocks", analyze(&extended, &find)),
        ("one block", ordinary().blocks(1).dossier()),
        ("hostile", analyze(&hostile(), &find)),
        ("publication", super::publication::dossier()),
        ("why", answer_of_why()),
    ];
    for (name, dossier) in dossiers {
        let folder = tempfile::tempdir().unwrap();
        let files = files_of("latex", &dossier);
        for file in files {
            std::fs::write(folder.path().join(&file.name), &file.content).unwrap();
        }
        let compile = || {
            let arguments = ["-interaction=nonstopmode", "-halt-on-error", "report.tex"];
            run_in(folder.path(), "pdflatex", &arguments)
        };
        let Some(first) = compile() else {
            return skip("latex", "the program `pdflatex` is not installed");
        };
        assert!(first.0, "{name}: {}", first.1);
        let (is_done, told) = run_in(folder.path(), "bibtex", &["report"]).unwrap();
        assert!(is_done && !told.contains("Warning"), "{name}: {told}");
        compile();
        let (is_done, told) = compile().unwrap();
        assert!(is_done, "{name}: {told}");
        for complaint in ["undefined", "Missing character", "multiply defined"] {
            assert!(!told.contains(complaint), "{name}: {complaint}: {told}");
        }
        let pdf = std::fs::read(folder.path().join("report.pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF"), "{name}");
    }
}

/// Prints a file as the library reads it: number of rows and columns, sums of the readings' and of the slices'
/// values, and the arms. In text files a column with gaps must remain numeric.
const PANDAS: &str = r#"
import sys, pandas
kind, path = sys.argv[1:]
frame = pandas.read_csv(path) if kind == "csv" else pandas.read_parquet(path)
assert frame["value"].dtype.kind == "f" and frame["block"].dtype.kind in "iu"
whole = frame[frame["slice"].isna()]
print(len(frame), len(frame.columns), repr(float(whole["value"].sum())), repr(float(frame["value"].sum())), "|".join(sorted(frame["arm"].unique())))
"#;
const POLARS: &str = r#"
import sys, polars
kind, path = sys.argv[1:]
frame = polars.read_csv(path) if kind == "csv" else polars.read_parquet(path)
assert frame["value"].dtype == polars.Float64 and frame["block"].dtype.is_integer()
whole = frame.filter(frame["slice"].is_null())
print(frame.height, frame.width, repr(float(whole["value"].sum())), repr(float(frame["value"].sum())), "|".join(sorted(frame["arm"].unique())))
"#;

/// A run of which half is in slices.
fn with_slices() -> RunData {
    let mut run = Plan::default()
        .workloads(["integer", "syscall"])
        .blocks(8)
        .run();
    rewrite(
        &mut run,
        |trial| trial.workload_index == 0,
        |report| {
            report.sliced = Some(Sliced {
                slice_ns: 1_000_000,
                by_page: true,
                cpu: Some(0),
                stage: None,
            });
        },
    );
    run
}

/// Returns what a library must find in these readings.
fn expected(all: &[Series]) -> (usize, f64, f64, String) {
    let points = || all.iter().flat_map(|series| &series.points);
    let slices = || points().flat_map(|point| &point.slices);
    let whole: f64 = points().map(|point| point.typical).sum();
    let sliced: f64 = slices().map(|slice| f64::from(*slice)).sum();
    let mut arms: Vec<&str> = all.iter().map(|series| series.arm.as_str()).collect();
    arms.sort_unstable();
    arms.dedup();
    let n_rows = points().count() + slices().count();
    (n_rows, whole, whole + sliced, arms.join("|"))
}

/// Checks what each available library finds in this form of the runs.
fn opens(form: &str) {
    let python = std::env::var("TARE_PANDAS").unwrap_or_else(|_| "python3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    for (library, script) in [("pandas", PANDAS), ("polars", POLARS)] {
        let import = format!("import {library}");
        let is_there = run_in(folder.path(), &python, &["-c", &import]);
        if is_there.is_none_or(|(is_done, _)| !is_done) {
            skip(library, &format!("`{python}` has no {library}"));
            continue;
        }
        for run in [ordinary().run(), hostile(), with_slices()] {
            let (dossier, all) = (analyze(&run, &find), readings(&run, &find));
            let content = match made_of(form, &dossier, &all) {
                ReportOutput::Text(text) => text.into_bytes(),
                ReportOutput::Bytes(bytes) => bytes,
                other => panic!("{other:?}"),
            };
            let path = folder.path().join("readings");
            std::fs::write(&path, content).unwrap();
            let arguments = ["-c", script, form, path.to_str().unwrap()];
            let (is_done, told) = run_in(folder.path(), &python, &arguments).unwrap();
            assert!(is_done, "{library}: {told}");
            let found: Vec<&str> = told.trim().splitn(5, ' ').collect();
            let number = |place: usize| found[place].parse::<f64>().unwrap();
            let (n_rows, whole, sum, arms) = expected(&all);
            assert_eq!(found[0], n_rows.to_string(), "{library}: {told}");
            assert_eq!(found[1], "15", "{library}: {told}");
            for (own, wanted) in [(number(2), whole), (number(3), sum)] {
                assert!((own / wanted - 1.0).abs() < 1e-9, "{library}: {told}");
            }
            assert_eq!(found[4], arms, "{library}");
        }
    }
}

#[test]
fn data_libraries_read_csv_as_numbers() {
    opens("csv");
}

#[cfg(feature = "parquet")]
#[test]
fn data_libraries_read_parquet_as_numbers() {
    opens("parquet");
}
