//! Prints pairwise comparisons of arms: for every metric a triangle of ratios, row arm against column arm.
//!
//! A triangle with three columns shows all six pairs of four arms, instead of six tables. If it does not fit, there
//! is one line per pair. Every entry starts with the sign of its verdict.

use tare_model::dossier::{Dossier, DossierCell};

use super::Style;
use super::text::{Column, Paint, Text, bold, paragraph, table as laid_out};
use crate::groups::{Group, by_metric};
use crate::words::{self, Names};
use tare_core::foreign::NO_BREAK;

/// Draws the pairs, if there are any.
pub(super) fn draw(out: &mut String, dossier: &Dossier, names: &Names<'_>, style: Style) {
    if dossier.pairs.is_empty() {
        return;
    }
    let has_ratio = |cells: &Vec<&DossierCell>| cells.iter().any(|it| words::effect(it).is_some());
    let (metrics, without): (Vec<_>, Vec<_>) =
        by_metric(&dossier.pairs).into_iter().partition(has_ratio);
    out.push('\n');
    bold(out, "Pairwise", style);
    if !without.is_empty() {
        let plural = if without.len() == 1 { "" } else { "s" };
        let text = format!("no ratio of any two for {} metric{plural}", without.len());
        paragraph(out, "… ", &text, style);
    }
    if metrics.is_empty() {
        return;
    }
    match triangles(&metrics, names, style) {
        Some(drawn) => out.push_str(&drawn),
        None => lines(out, &metrics, names, style),
    }
    out.push('\n');
    let text = "▲ the row's arm is slower than the column's, ▼ faster, = within the margin, ? inconclusive; ratio [95 % CI], from the same blocks.";
    paragraph(out, "", text, style);
}

/// Returns the names of the arms, in the order of the study.
fn arms<'a>(metrics: &[Vec<&'a DossierCell>]) -> Vec<&'a str> {
    let mut arms: Vec<&str> = Vec::new();
    for cell in metrics.iter().flatten() {
        for arm in [cell.baseline.as_str(), cell.arm.as_str()] {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
    }
    arms
}

/// Formats `▲ 1.42 [1.37, 1.48]` without line breaks.
fn entry(cell: &DossierCell) -> Text {
    let text = words::effect(cell).map_or_else(
        || Group::Missing.sign().to_string(),
        |effect| format!("{} {effect}", Group::for_cell(cell).sign()),
    );
    let paint = Paint::for_tone(words::verdict(cell).1);
    Text::painted(text.replace(' ', &NO_BREAK.to_string()), paint)
}

fn triangles(metrics: &[Vec<&DossierCell>], names: &Names<'_>, style: Style) -> Option<String> {
    let arms = arms(metrics);
    let (_, columns) = arms.split_last()?;
    let mut heads = vec![Column::words("against", 14)];
    heads.extend(columns.iter().map(|arm| Column {
        right: false,
        ..Column::number(arm)
    }));
    let mut rows = Vec::new();
    for cells in metrics {
        let mut head = vec![Text::painted(names.name(cells[0]), Paint::Bold)];
        head.resize_with(heads.len(), || Text::plain(""));
        rows.push(head);
        for arm in &arms[1..] {
            let mut row = vec![Text::plain(format!("{NO_BREAK}{NO_BREAK}{arm}"))];
            row.extend(columns.iter().map(|first| {
                let found = cells
                    .iter()
                    .find(|cell| cell.arm == *arm && cell.baseline == *first);
                found.map_or_else(|| Text::plain(""), |cell| entry(cell))
            }));
            rows.push(row);
        }
    }
    laid_out(&heads, &rows, style)
}

fn lines(out: &mut String, metrics: &[Vec<&DossierCell>], names: &Names<'_>, style: Style) {
    for cells in metrics {
        paragraph(out, "", &names.name(cells[0]), style);
        for cell in cells {
            let effect = words::effect_or_dash(cell);
            let verdict = words::short_verdict(cell);
            let text = format!(
                "{} against {}: {effect}, {verdict}",
                cell.arm, cell.baseline
            );
            let sign = format!("  {} ", Group::for_cell(cell).sign());
            paragraph(out, &sign, &text, style);
        }
    }
}
