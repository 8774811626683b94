//! Prints the result of `tare run`: a headline per environment, then its table, largest slowdown first.
//!
//! One screen of 80 columns and 24 lines: as many rows as have room, primary metrics only, equal rows folded into a
//! line, everything else in `tare show`. Tables of a publication, of instances and of pairs come on top.
//! Every row has a sign and a word for what its colour means. The axis is logarithmic and includes 1 and the row's
//! margin; values beyond it become arrows.

use std::fmt::Write as _;

use tare_model::dossier::{Dossier, DossierArm, DossierCell};

use super::interval::{drawn, labels};
use super::text::{Paint, bold, paragraph, width, wrapped};
use super::{
    Style, both, compared_arms, concurrency, emulated, pairs, publication, tail, title, usage,
};
use crate::answer::{self, trust_in_short};
use crate::axis::RatioAxis;
use crate::groups::{Group, grouped, primary};
use crate::number::percent;
use crate::words::{self, Names, TooFew};
use tare_core::analyze::counted;
use tare_core::foreign::{NO_BREAK, harmless};

/// The minimum useful width of an axis.
const LEAST_AXIS: usize = 12;
/// Names are wrapped to make room for the axis, but not below this width.
const LEAST_NAME: usize = 18;
/// A wider axis shows no more.
const MOST_AXIS: usize = 60;
/// From this width on, rows include the values.
const WITH_VALUES: usize = 110;

/// The heading of the column of ratios.
const RATIO: &str = "ratio [95 % CI]";
/// The one line that explains a row.
const LEGEND: &str = "ratio 1.10 = 10 % slower; ├●┤ 95 % CI, │ equal, ┊ margin, ▶ off scale";
/// The lines of a screen.
const SCREEN: usize = 24;
/// The fewest rows of an environment's table.
const LEAST_ROWS: usize = 2;
/// The most.
const MOST_ROWS: usize = 12;

/// Renders the dossier.
pub fn brief(dossier: &Dossier, style: Style) -> String {
    let style = style.drawable();
    let names = Names::new(dossier);
    let arms = compared_arms(dossier);
    let mut head = String::new();
    paragraph(&mut head, "", &title_line(dossier, style), style);
    head.push('\n');
    for (arm, cells) in &arms {
        let headline = answer::summary(&arm.id, cells, &names);
        paragraph(&mut head, "", &headline, style);
    }
    if arms.is_empty() {
        paragraph(&mut head, "", "Nothing was compared.", style);
    }
    let foot = foot(dossier, style);
    let tables = |n_rows: usize| {
        let mut tables = String::new();
        for (arm, cells) in &arms {
            tables.push('\n');
            of_arm(
                &mut tables,
                arm,
                cells,
                &names,
                (n_rows, arms.len() == 1),
                style,
            );
        }
        tables
    };
    let taken = head.lines().count() + foot.lines().count();
    let mut n_rows = MOST_ROWS;
    let mut drawn = tables(n_rows);
    while taken + drawn.lines().count() > SCREEN && n_rows > LEAST_ROWS {
        n_rows -= 1;
        drawn = tables(n_rows);
    }
    let mut out = head + &drawn;
    pairs::draw(&mut out, dossier, &names, style);
    concurrency::draw(&mut out, dossier, style);
    usage::draw(&mut out, dossier, style);
    publication::draw_brief(&mut out, dossier, style);
    out + &foot
}

/// Returns the title, without that of the study if the line has no room for it.
fn title_line(dossier: &Dossier, style: Style) -> String {
    let whole = title(dossier);
    if width(&whole) <= style.width {
        return whole;
    }
    let name = format!(" · {}", harmless(&dossier.study.title));
    whole.replacen(&name, "", 1)
}

/// Renders what follows the tables.
fn foot(dossier: &Dossier, style: Style) -> String {
    let mut out = "\n".to_owned();
    let mut ratios = dossier.cells.iter().filter_map(words::ratio);
    if ratios.next().is_some() {
        paragraph(&mut out, "", LEGEND, style);
    }
    paragraph(&mut out, "", &trust_in_short(dossier), style);
    tail::draw_brief(&mut out, dossier, style);
    out
}

/// The column widths of an arm's table.
struct Widths {
    name: usize,
    values: usize,
    ratio: usize,
    word: usize,
    axis: usize,
}

impl Widths {
    fn new(rows: &[Row<'_>], limit: usize) -> Self {
        let longest = |of: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let most_name = match limit {
            ..90 => 28,
            90..WITH_VALUES => 30,
            _ => 40,
        };
        let name = longest(&|row| width(&row.name)).min(most_name);
        let ratio = longest(&|row| width(&row.ratio));
        // Without a ratio, the word can use its column as well.
        let word = longest(&|row| match row.cell.ratio {
            Some(_) => width(&row.word),
            None => (width(&row.word) + width(&row.ratio)).saturating_sub(ratio),
        });
        // If there is nothing to draw, show the values.
        let is_drawn = rows.iter().any(|row| words::ratio(row.cell).is_some());
        let values = if limit < WITH_VALUES && is_drawn {
            0
        } else {
            longest(&|row| width(&row.values)) + 2
        };
        // The sign before the name, and two spaces between columns.
        let taken = 2 + name + values + 2 + ratio + 2 + word;
        let axis = limit.saturating_sub(taken + 2).min(MOST_AXIS);
        let missing = LEAST_AXIS.saturating_sub(axis);
        let room = if limit >= taken + 2 && name >= LEAST_NAME + missing {
            missing
        } else {
            0
        };
        Self {
            name: name - room,
            values,
            ratio,
            word,
            axis: axis + room,
        }
    }

    /// Whether a row fits in one line.
    fn is_a_table(&self, limit: usize) -> bool {
        2 + self.name + self.values + 2 + self.ratio + 2 + self.word <= limit
    }
}

/// One metric.
struct Row<'a> {
    cell: &'a DossierCell,
    group: Group,
    name: String,
    values: String,
    ratio: String,
    word: String,
}

impl<'a> Row<'a> {
    fn new(cell: &'a DossierCell, names: &Names<'_>, few: Option<&TooFew>) -> Self {
        let mut word = words::short_verdict(cell);
        // A note that applies to every row is printed once.
        if few.is_some_and(|few| cell.n_blocks < few.needed) {
            word = word.trim_end_matches('?').to_owned();
        }
        if words::is_moving(cell) {
            word.push_str(", moves");
        }
        if words::is_flagged(cell, "different-tool") {
            word.push_str(", other tool");
        } else if words::is_doubtful(cell) {
            word.push_str(", doubtful");
        }
        Self {
            cell,
            group: Group::for_cell(cell),
            name: names.name(cell),
            values: both(cell).replace(NO_BREAK, " "),
            ratio: words::effect_or_dash(cell).replace(NO_BREAK, " "),
            word: word.replace(NO_BREAK, " "),
        }
    }

    fn paint(&self) -> Paint {
        Paint::for_tone(words::verdict(self.cell).1)
    }
}

fn of_arm(
    out: &mut String,
    arm: &DossierArm,
    cells: &[&DossierCell],
    names: &Names<'_>,
    (n_rows, is_alone): (usize, bool),
    style: Style,
) {
    let baseline = harmless(&cells[0].baseline);
    let few = TooFew::check(cells);
    let primary = primary(cells);
    let is_within = |cell: &&&DossierCell| Group::for_cell(cell) == Group::Nothing;
    let (within, shown): (Vec<&DossierCell>, Vec<&DossierCell>) =
        primary.iter().copied().partition(|cell| is_within(&cell));
    let mut rows: Vec<Row<'_>> = grouped(&shown)
        .into_iter()
        .flat_map(|(_, cells)| cells)
        .map(|cell| Row::new(cell, names, few.as_ref()))
        .collect();
    // Start-up is already in the headline.
    rows.sort_by_key(|row| words::is_start(row.cell));
    // Printing the last one is as short as counting it.
    let left_out = if rows.len() > n_rows + 1 {
        rows.split_off(n_rows)
    } else {
        Vec::new()
    };
    let mut widths = Widths::new(&rows, style.width);
    // The values have no column heading.
    let order = if widths.values > 0 && !rows.is_empty() {
        format!("; values: {baseline} → {}", harmless(&arm.id))
    } else {
        String::new()
    };
    let heading = format!(
        "{}{} against {baseline}{order}",
        words::purpose(arm),
        emulated(arm)
    );
    // One line for heading and columns, if there is room.
    let missing = width(&heading).saturating_sub(2 + widths.name + widths.values);
    if missing + MOST_AXIS / 2 <= widths.axis {
        widths.name += missing;
        widths.axis -= missing;
    }
    let axis = RatioAxis::over(rows.iter().map(|row| row.cell));
    let is_table = widths.is_a_table(style.width);
    let has_ratio = rows.iter().any(|row| words::ratio(row.cell).is_some());
    let is_drawn = is_table && has_ratio && widths.axis >= LEAST_AXIS;
    head(out, &heading, &widths, is_drawn.then_some(axis), style);
    for row in &rows {
        if is_table {
            table_row(out, row, &widths, is_drawn.then_some(axis), style);
        } else {
            narrow_row(out, row, style);
        }
    }
    // With several environments there is no room for what their headlines count.
    if is_alone {
        folded(out, &within, names, style);
        left_over(out, &left_out, cells.len() - primary.len(), style);
    }
    notes(out, &rows, style);
}

/// Writes the heading of an arm's table, with the column headings in the same line if there is room.
fn head(out: &mut String, heading: &str, widths: &Widths, axis: Option<RatioAxis>, style: Style) {
    let columns = axis.map(|axis| {
        format!(
            "  {}  {RATIO:>ratio$}",
            labels(axis, widths.axis),
            ratio = widths.ratio
        )
    });
    let before = 2 + widths.name + widths.values;
    match &columns {
        Some(_) if width(heading) <= before => {
            out.push_str(&Paint::Bold.apply(heading, style.colour));
            out.push_str(&" ".repeat(before - width(heading)));
        }
        _ => {
            bold(out, heading, style);
            out.push_str(&" ".repeat(if columns.is_some() { before } else { 0 }));
        }
    }
    if let Some(columns) = columns {
        out.push_str(&Paint::Dim.apply(columns.trim_end(), style.colour));
        out.push('\n');
    }
}

/// Writes the metrics within their margin, in a line.
fn folded(out: &mut String, within: &[&DossierCell], names: &Names<'_>, style: Style) {
    if within.is_empty() {
        return;
    }
    let mut margins: Vec<f64> = within.iter().map(|cell| cell.margin).collect();
    margins.sort_by(f64::total_cmp);
    let mut margins: Vec<String> = margins.into_iter().map(percent).collect();
    margins.dedup();
    let mut text = format!(
        "{} within the margin ({}):",
        counted(within.len(), "metric"),
        margins.join(" or ")
    );
    for (place, cell) in within.iter().enumerate() {
        let name = names.name(cell);
        if place > 0 && width(&text) + width(&name) + 6 > style.width {
            text.push_str(" …");
            break;
        }
        let comma = if place + 1 < within.len() { "," } else { "" };
        let _ = write!(text, " {name}{comma}");
    }
    paragraph(out, "= ", &text, style);
}

/// Writes what only `tare show` includes.
fn left_over(out: &mut String, left_out: &[Row<'_>], n_secondary: usize, style: Style) {
    let mut parts: Vec<String> = Vec::new();
    for group in Group::ALL {
        let n = left_out.iter().filter(|row| row.group == group).count();
        if n > 0 {
            parts.push(format!("{n} {}", group.title().to_lowercase()));
        }
    }
    if n_secondary > 0 {
        parts.push(format!("{n_secondary} secondary"));
    }
    if !parts.is_empty() {
        paragraph(out, "… more: ", &parts.join(", "), style);
    }
}

/// Explains the marks after words, if there are any.
fn notes(out: &mut String, rows: &[Row<'_>], style: Style) {
    let is_any = |what: &str| rows.iter().any(|row| row.word.contains(what));
    if is_any("?") {
        let text = "“?”: significant alone, but not after correction for all metrics.";
        paragraph(out, "", text, style);
    }
    if is_any("moves") {
        let text = "“moves”: the effect itself changes from block to block, while the baseline's two copies agree: not noise.";
        paragraph(out, "", text, style);
    }
}

fn table_row(
    out: &mut String,
    row: &Row<'_>,
    widths: &Widths,
    axis: Option<RatioAxis>,
    style: Style,
) {
    let paint = row.paint();
    let lines = wrapped(&row.name, widths.name);
    let fill = |text: &str, to: usize| " ".repeat(to.saturating_sub(width(text)));
    let first = lines.first().map_or("", String::as_str);
    let mut line = format!(
        "{} {first}{}",
        paint.apply(&row.group.sign().to_string(), style.colour),
        fill(first, widths.name)
    );
    if widths.values > 0 {
        line.push_str(&fill(&row.values, widths.values));
        line.push_str(&row.values);
    }
    if let Some(axis) = axis {
        line.push_str("  ");
        let ratio = words::ratio(row.cell);
        let drawn = match ratio {
            Some(ratio) => drawn(axis, ratio, row.cell.margin, widths.axis),
            None => " ".repeat(widths.axis),
        };
        line.push_str(&paint.apply(&drawn, style.colour && ratio.is_some()));
    }
    line.push_str("  ");
    if row.cell.ratio.is_some() {
        line.push_str(&fill(&row.ratio, widths.ratio));
    }
    line.push_str(&row.ratio);
    line.push_str("  ");
    line.push_str(&paint.apply(&row.word, style.colour));
    out.push_str(line.trim_end());
    out.push('\n');
    for rest in &lines[1..] {
        out.push_str("    ");
        out.push_str(rest);
        out.push('\n');
    }
}

/// Writes a row on a narrow terminal: the name, and below it the number and the word.
fn narrow_row(out: &mut String, row: &Row<'_>, style: Style) {
    paragraph(out, &format!("{} ", row.group.sign()), &row.name, style);
    paragraph(out, "    ", &format!("{} {}", row.ratio, row.word), style);
}
