//! Renders the same dossiers in every form of report: an ordinary one, an empty one, one of a single block, one with
//! hostile names, a huge one, and an answer of `tare why`.
//!
//! Text forms are kept as files and compared exactly, pages without their style and script. Whatever the dossier, a
//! page is well-formed, loads nothing, and shows every number as text.

use std::collections::BTreeSet;

use tare::analyze::{RunData, Series, analyze, readings};
use tare::report::terminal::{Style, brief, plain};
use tare::report::{self, FORMATS, File, Material, ReportOutput, html};
use tare_model::dossier::{Dossier, DossierBlock};
use tare_model::{Params, Value};

use super::generator::find;
use super::snapshots::{compare, hostile, ordinary, unavailable};

pub(crate) const STYLE: Style = Style {
    width: 100,
    colour: false,
};

fn made(name: &str, run: &RunData) -> ReportOutput {
    made_of(name, &analyze(run, &find), &readings(run, &find))
}

pub(crate) fn made_of(name: &str, dossier: &Dossier, readings: &[Series]) -> ReportOutput {
    report::find(name).unwrap().make(&Material {
        dossier,
        readings,
        fonts: &[],
        style: STYLE,
    })
}

fn text(name: &str, run: &RunData) -> String {
    text_of(made(name, run))
}

pub(crate) fn text_of(made: ReportOutput) -> String {
    match made {
        ReportOutput::Text(text) => text,
        ReportOutput::Bytes(bytes) => panic!("{} bytes are no text", bytes.len()),
        ReportOutput::Files(files) => {
            let shown = files.iter().map(|file| {
                let content = std::str::from_utf8(&file.content).unwrap();
                format!("=== {}\n{content}", file.name)
            });
            shown.collect()
        }
        ReportOutput::Nothing(reason) => reason,
    }
}

/// Returns the files of a form that has several.
pub(crate) fn files_of(form: &str, dossier: &Dossier) -> Vec<File> {
    match made_of(form, dossier, &[]) {
        ReportOutput::Files(files) => files,
        other => panic!("{form} is no files but {other:?}"),
    }
}

/// Returns the text of one of them.
pub(crate) fn file_of(form: &str, dossier: &Dossier, name: &str) -> String {
    let mut files = files_of(form, dossier).into_iter();
    let file = files.find(|file| file.name == name).unwrap();
    String::from_utf8(file.content).unwrap()
}

/// Asserts that a text contains this part.
#[track_caller]
pub(crate) fn assert_says(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in: {text}");
}

/// Asserts that a text does not contain this part.
#[track_caller]
pub(crate) fn assert_lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "{part} is in: {text}");
}

/// Returns the text with each run of white space as one space, so that wrapping does not matter.
pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn one_block() -> RunData {
    ordinary().blocks(1).run()
}

pub(crate) fn answer_of_why() -> Dossier {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/before");
    let text = std::fs::read_to_string(folder.join("20261122-210603-620a.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_form_matches_snapshot() {
    let runs = [
        ("ordinary", ordinary().run()),
        ("unavailable", unavailable()),
        ("one-block", one_block()),
        ("hostile", hostile()),
    ];
    let of_text = ["html", "markdown", "latex", "svg", "csv", "jsonl", "json"];
    for (run_name, run) in &runs {
        let (dossier, readings) = (analyze(run, &find), readings(run, &find));
        as_kept(run_name, &dossier, &readings, &of_text);
    }
    let many = ordinary().blocks(200);
    let readings = readings(&many.run(), &find);
    as_kept("huge", &huge(200, 500), &readings, &of_text);
    as_kept("huge", &huge(200, 500), &readings, &["table", "full"]);
}

#[test]
fn why_answer_matches_snapshots() {
    let dossier = answer_of_why();
    let forms = ["table", "full", "html", "markdown", "latex", "svg"];
    as_kept("why", &dossier, &[], &forms);
    for width in [80, 140] {
        let style = Style { width, ..STYLE };
        let drawn = report::terminal::draw(&dossier, style, brief);
        compare(&format!("why-brief-{width}"), &drawn);
    }
}

fn as_kept(run_name: &str, dossier: &Dossier, readings: &[Series], forms: &[&str]) {
    for form in forms {
        let text = text_of(made_of(form, dossier, readings));
        let has_one = |it: char| it.is_control() && it != '\n';
        // JSON is for programs and keeps names unchanged.
        assert!(
            *form == "json" || !text.chars().any(has_one),
            "{form}: {text:?}"
        );
        let text = if *form == "html" {
            without_style(&text)
        } else {
            text
        };
        compare(&format!("{run_name}-{form}"), &excerpt(&text));
    }
}

/// Shortens a long text to its begin, its end and the length in between.
fn excerpt(text: &str) -> String {
    const WHOLE: usize = 60_000;
    if text.len() <= WHOLE {
        return text.to_owned();
    }
    let begin: String = text.chars().take(4_000).collect();
    let end: Vec<char> = text.chars().rev().take(1_500).collect();
    let end: String = end.into_iter().rev().collect();
    let (bytes, lines) = (text.len(), text.lines().count());
    format!("{begin}\n… {bytes} bytes in {lines} lines …\n{end}")
}

fn without_style(page: &str) -> String {
    let mut out = page.to_owned();
    for name in ["style", "script"] {
        let (from, to) = (format!("<{name}>"), format!("</{name}>"));
        let begin = out.find(&from).unwrap() + from.len();
        let end = out.find(&to).unwrap();
        out.replace_range(begin..end, "…");
    }
    // The policy contains the hashes of both.
    let begin = out.find("sha256-").unwrap();
    let end = out[begin..].find("base-uri").unwrap();
    out.replace_range(begin..begin + end, "…; ");
    out
}

/// Asserts that tags are closed in the reverse order of opening, that nothing is loaded, and that no text of a
/// dossier is markup.
pub(crate) fn assert_sound(page: &str) {
    const VOID: &[&str] = &["meta", "input", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap();
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{tag}");
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name.to_owned());
        }
        if matches!(name, "style" | "script") {
            rest = &rest[rest.find("</").unwrap()..];
        }
        assert!(tag.matches(" class=").count() <= 1, "{tag}");
        for reference in tag.split("href=\"").skip(1) {
            assert!(reference.starts_with('#'), "{tag}");
        }
        assert!(
            !tag.contains("src=") && !tag.contains(" on") && !tag.contains(" style="),
            "{tag}"
        );
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("http-equiv=\"Content-Security-Policy\""));
    let is_hidden =
        |it: char| it.is_control() && it != '\n' || ('\u{202a}'..='\u{202e}').contains(&it);
    assert!(!page.chars().any(is_hidden));
    // Every anchor has a target.
    let between = |text: &'static str| {
        let parts = page.split(text).skip(1);
        parts.map(|part| part.split('"').next().unwrap())
    };
    let ids: BTreeSet<&str> = between(" id=\"").collect();
    for anchor in between("href=\"#") {
        assert!(ids.contains(anchor), "{anchor}");
    }
}

#[test]
fn pages_are_well_formed_and_self_contained() {
    let runs = [ordinary().run(), unavailable(), one_block(), hostile()];
    let dossiers = runs.iter().map(|run| analyze(run, &find));
    let others = [
        answer_of_why(),
        super::publication::dossier(),
        super::concurrency::with_series(),
    ];
    for (number, dossier) in dossiers.chain(others).enumerate() {
        let page = html::page(&dossier);
        super::figures::keep(&format!("page-{number}.html"), &page);
        assert_sound(&page);
    }
}

#[test]
fn page_has_ratios_as_text_and_answer_first() {
    let dossier = analyze(&ordinary().run(), &find);
    let page = html::page(&dossier);
    for cell in &dossier.cells {
        let ratio = cell.ratio.unwrap();
        let digits = format!("{:.2}", ratio.point);
        assert!(page.contains(&digits), "{}: {digits}", cell.metric);
    }
    let answer = page
        .find("docker: ")
        .or_else(|| page.find("Docker: "))
        .unwrap();
    assert!(answer < page.find("<table").unwrap());
    for block in dossier.cells.iter().flat_map(|cell| &cell.blocks).take(5) {
        let ratio = block.env / block.base;
        assert!(page.contains(&format!("{ratio:.4}")), "{ratio}");
    }
}

#[test]
fn dossier_without_blocks_is_drawn_with_notice() {
    let mut dossier = analyze(&ordinary().run(), &find);
    for cell in &mut dossier.cells {
        cell.blocks.clear();
    }
    let page = html::page(&dossier);
    assert_sound(&page);
    assert!(page.contains("does not hold these blocks"));
    assert!(page.contains("does not hold the blocks of every cell"));
}

/// Returns a dossier with `cells` cells of `blocks` blocks each.
pub(crate) fn huge(cells: u32, blocks: u32) -> Dossier {
    let mut dossier = analyze(&ordinary().run(), &find);
    let model = dossier.cells[1].clone();
    dossier.cells = (0..cells)
        .map(|number| {
            let mut cell = model.clone();
            cell.params = Params::new().with("size", Value::Int(number.into()));
            cell.blocks = (0..blocks)
                .map(|block| DossierBlock {
                    block,
                    position: block % 3,
                    launch: block / 10,
                    base: 100.0 + f64::from(block % 17),
                    env: 110.0 + f64::from(block % 13) + f64::from(number),
                    base_alone: None,
                    env_alone: None,
                    apart: None,
                })
                .collect();
            cell
        })
        .collect();
    dossier
}

#[test]
fn a_large_run_is_a_page_of_bounded_size() {
    let page = html::page(&huge(200, 500));
    super::figures::keep("huge.html", &page);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert_sound(&page);
    // 5 000 cells fill many pages of a table, and all of them are there.
    let page = html::page(&huge(5_000, 3));
    assert_eq!(page.matches("<div class=\"cell\"").count(), 5_000);
}

#[test]
fn non_finite_or_negative_differences_render() {
    let mut dossier = analyze(&ordinary().run(), &find);
    let odd = [
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -5.0,
        0.0,
        1e300,
        1e-300,
    ];
    for (cell, value) in dossier.cells.iter_mut().zip(odd.into_iter().cycle()) {
        for span in [&mut cell.ratio, &mut cell.difference, &mut cell.base]
            .into_iter()
            .flatten()
        {
            (span.low, span.point, span.high) = (-value, value, value);
        }
        for block in &mut cell.blocks {
            block.env = value;
        }
    }
    assert_sound(&html::page(&dossier));
    for width in [1, 20, 80, 200] {
        brief(&dossier, Style { width, ..STYLE });
    }
    for form in FORMATS {
        form.make(&Material {
            dossier: &dossier,
            readings: &[],
            fonts: &[],
            style: STYLE,
        });
    }
}

#[test]
fn brief_table_fits_width_without_colour_or_unicode() {
    for run in [ordinary().run(), unavailable(), one_block(), hostile()] {
        let dossier = analyze(&run, &find);
        for width in [20, 30, 40, 60, 80, 100, 140, 200] {
            let drawn = brief(&dossier, Style { width, ..STYLE });
            let lines = drawn.lines().map(|line| line.chars().count());
            let table = drawn.split("\nThe run took").next().unwrap();
            assert!(lines.max() <= Some(width), "{width}:\n{drawn}");
            let colour = Style {
                width,
                colour: true,
            };
            let coloured = brief(&dossier, colour);
            assert_eq!(super::snapshots::without_colour(&coloured), drawn);
            let plain = plain(&drawn);
            assert!(plain.is_ascii());
            assert_eq!(plain.lines().count(), drawn.lines().count());
            assert!(dossier.cells.is_empty() || table.len() > 100, "{table}");
        }
    }
}

#[test]
fn narrow_terminal_shortens_names_for_intervals() {
    let mut dossier = analyze(&ordinary().run(), &find);
    for cell in &mut dossier.cells {
        cell.metric = "net.tcp.throughput.to.somewhere.else.rate".into();
    }
    let drawn = brief(&dossier, Style { width: 72, ..STYLE });
    assert_says(&drawn, "●┤");
}

#[test]
fn jsonl_has_every_block_with_same_values() {
    let run = ordinary().run();
    let lines = text("jsonl", &run);
    let of_integer = lines
        .lines()
        .filter(|line| line.contains("cpu.integer.time"));
    let arms = run.head.study.arms.len();
    assert_eq!(of_integer.count(), arms * 20);
    let all = readings(&run, &find);
    for (line, point) in lines
        .lines()
        .zip(all.iter().flat_map(|series| &series.points))
    {
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        let value = read["value"].as_f64().unwrap();
        assert!((value - point.typical).abs() <= 1e-12 * value.abs());
    }
    let table = text("csv", &run);
    let columns = table.lines().next().unwrap().matches(',').count();
    for line in table.lines() {
        let quotes = line.matches('"').count();
        assert!(
            quotes % 2 == 0 && (quotes > 0 || line.matches(',').count() == columns),
            "{line}"
        );
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_table_rows_with_types() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    for run in [ordinary().run(), unavailable(), one_block(), hostile()] {
        let ReportOutput::Bytes(bytes) = made("parquet", &run) else {
            panic!("a file of bytes");
        };
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns())
            .collect();
        let table = text("csv", &run);
        let (head, lines) = table.split_once('\n').unwrap();
        assert_eq!(rows.len(), lines.lines().count());
        let all = readings(&run, &find);
        let mut rows = rows.into_iter();
        for series in &all {
            for point in &series.points {
                let row = rows.next().unwrap();
                let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!(names.join(","), head);
                let field = |name: &str| &row.iter().find(|(own, _)| own == name).unwrap().1;
                assert_eq!(field("arm"), &Field::Str(series.arm.clone()));
                assert_eq!(field("block"), &Field::Long(point.block.into()));
                assert_eq!(field("slice"), &Field::Null);
                assert_eq!(field("value"), &Field::Double(point.typical));
                assert_eq!(field("best"), &Field::Double(point.best));
                let path = series.path.map(|path| Field::Str(path.to_string()));
                assert_eq!(field("path"), &path.unwrap_or(Field::Null));
                for (number, slice) in (0..).zip(&point.slices) {
                    let row = rows.next().unwrap();
                    let field = |name: &str| &row.iter().find(|(own, _)| own == name).unwrap().1;
                    assert_eq!(field("slice"), &Field::Long(number));
                    assert_eq!(field("value"), &Field::Double((*slice).into()));
                    assert_eq!(field("best"), &Field::Null);
                }
            }
        }
    }
}
