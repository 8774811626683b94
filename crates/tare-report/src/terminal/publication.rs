//! Prints a publication's tables with this machine's numbers, its claims with verdicts, and its errors.
//!
//! An entry shows the value with its interval and below it, after “publ.”, the published value, kept exactly as
//! printed.

use tare_model::ClaimVerdict;
use tare_model::dossier::{
    Dossier, DossierClaim, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierPublication,
};

use super::text::{Column, Paint, Text, bold, paragraph, table_or, width};
use super::{Style, published, tail};
use crate::answer::listed;
use crate::number::{Digits, Scale, decimals_of_value, scale_for, value, with_unit};

/// Draws what can be compared: the tables with at least one number of this run, and the claims that could be judged.
/// The rest is counted and left to the full table.
pub(super) fn draw_brief(out: &mut String, dossier: &Dossier, style: Style) {
    let mut left_out = Vec::new();
    if let Some(publication) = &dossier.publication {
        cited(out, publication, style);
        otherwise(out, publication, style);
        let tables = publication.tables.iter();
        let (shown, others): (Vec<_>, Vec<_>) = tables.partition(|table| has_a_value(table));
        scales(out, shown.iter().copied(), style);
        for table in shown {
            out.push('\n');
            layout(out, table, style);
        }
        if !others.is_empty() {
            left_out.push("the tables in which no number of this run stands".to_owned());
        }
        if !publication.notes.is_empty() {
            left_out.push("notes on these numbers".to_owned());
        }
        if !publication.others.is_empty() {
            let n_others = publication.others.len();
            left_out.push(format!(
                "{n_others} published numbers that have no counterpart here"
            ));
        }
        if !publication.mistakes.is_empty() {
            left_out.push("what was wrong there".to_owned());
        }
    }
    let is_judged = |claim: &&DossierClaim| claim.verdict != ClaimVerdict::NotTestable;
    let judged: Vec<&DossierClaim> = dossier.claims.iter().filter(is_judged).collect();
    if !judged.is_empty() {
        tail::heading(out, "Published claims", style);
        for claim in &judged {
            draw_claim(out, claim, style);
        }
    }
    let n_others = dossier.claims.len() - judged.len();
    if n_others > 0 {
        out.push('\n');
        let n_claims = dossier.claims.len();
        let text = format!("Not testable here: {n_others} of {n_claims} published claims.");
        paragraph(out, "  ", &text, style);
        left_out.insert(0, "why".to_owned());
    }
    if dossier.claims.iter().any(|claim| claim.own.is_some()) {
        left_out.push("what the publication's own numbers say of its claims".to_owned());
    }
    if !left_out.is_empty() {
        let text = format!(
            "`tare show {}` has {} as well.",
            dossier.run,
            listed(&left_out)
        );
        paragraph(out, "  ", &text, style);
    }
}

/// Whether the table has a number of this run.
fn has_a_value(table: &DossierLayout) -> bool {
    let mut values = table.rows.iter().flat_map(|row| &row.values);
    values.any(|value| value.here.is_some())
}

fn cited(out: &mut String, publication: &DossierPublication, style: Style) {
    let authors = publication.authors.as_deref();
    let by = authors
        .map(|authors| format!("{authors}: "))
        .unwrap_or_default();
    let text = format!("Compared with {by}{}", publication.title);
    tail::heading(out, &text, style);
    paragraph(out, "  ", &publication.place, style);
    let machine = format!("measured there on: {}", publication.machine);
    paragraph(out, "  ", &machine, style);
}

/// Writes the intentional differences of the study.
fn otherwise(out: &mut String, publication: &DossierPublication, style: Style) {
    for deviation in &publication.deviations {
        let text = format!("here on purpose otherwise: {deviation}");
        paragraph(out, "  ", &text, style);
    }
}

/// Writes the rows of these tables that were measured at another scale.
fn scales<'a>(out: &mut String, tables: impl IntoIterator<Item = &'a DossierLayout>, style: Style) {
    for line in crate::published::scale_lines(tables) {
        paragraph(out, "  ", &line, style);
    }
}

/// Draws the publication, if the study repeats one, and the claims.
pub(super) fn draw(out: &mut String, dossier: &Dossier, style: Style) {
    if let Some(publication) = &dossier.publication {
        cited(out, publication, style);
        otherwise(out, publication, style);
        scales(out, &publication.tables, style);
        for table in &publication.tables {
            out.push('\n');
            layout(out, table, style);
        }
        published::notes(out, publication, style);
        if !publication.figures.is_empty() {
            let names = publication.figures.iter().map(|it| it.title.as_str());
            let names: Vec<&str> = names.collect();
            out.push('\n');
            let text = format!(
                "Figures ({}): `tare report {} --format svg`.",
                names.join("; "),
                dossier.run
            );
            paragraph(out, "  ", &text, style);
        }
        published::others(out, publication, style);
    }
    claims(out, dossier, style);
    mistakes(out, dossier, style);
}

fn layout(out: &mut String, table: &DossierLayout, style: Style) {
    bold(out, &table.title, style);
    let mut rows = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for row in &table.rows {
        let scale = scale_of(row);
        let mut line = vec![Text::plain(&row.label)];
        line.extend(row.values.iter().map(|value| here(value, scale)));
        rows.push(line);
        for value in &row.values {
            if let (None, Some(reason)) = (&value.here, &value.reason)
                && !reasons.contains(reason)
            {
                reasons.push(reason.clone());
            }
        }
        if row.values.iter().any(|value| !value.each.is_empty()) {
            let mut line = vec![Text::plain("  each")];
            line.extend(row.values.iter().map(|value| each(value, scale)));
            rows.push(line);
        }
        if row.values.iter().any(|value| !value.published.is_empty()) {
            let mut line = vec![Text::painted("  publ.", Paint::Dim)];
            let published = row.values.iter().map(|value| value.published.join(" / "));
            line.extend(published.map(|text| Text::painted(text, Paint::Dim)));
            rows.push(line);
        }
    }
    let mut columns = vec![Column::words("", 10)];
    // Headings are wrapped before numbers are.
    columns.extend(table.columns.iter().enumerate().map(|(place, title)| {
        let cells = rows.iter().map(|row| width(&row[place + 1].text));
        let column = Column::number(title);
        let word = column.title.split(' ').map(width).max().unwrap_or(0);
        Column {
            least: Some(cells.max().unwrap_or(0).max(word)),
            ..column
        }
    }));
    // Too many columns for this width: one paragraph per entry.
    table_or(out, &columns, &rows, style, |out, row, style| {
        let name = row.first().map_or("", |cell| cell.text.as_str());
        paragraph(out, "", name.trim(), style);
        for (column, cell) in table.columns.iter().zip(&row[1..]) {
            let text = format!("{column}: {}", cell.text);
            paragraph(out, "    ", &text, style);
        }
    });
    for reason in reasons {
        paragraph(out, "  – ", &reason, style);
    }
}

/// Returns the scale of a row's values, by the largest.
fn scale_of(row: &DossierLayoutRow) -> Scale {
    let spans = row.values.iter().filter_map(|value| value.here);
    let most = spans.map(|span| span.point).fold(0.0, f64::max);
    scale_for(most, &row.unit)
}

/// Formats `1.23 ± 0.05 s` with the interval's half-width, so that several fit next to each other.
fn here(value: &DossierLayoutValue, scale: Scale) -> Text {
    let Some(span) = value.here else {
        return Text::plain("–");
    };
    let decimals = decimals_of_value(&span, scale, Digits::Short);
    let (low, high) = (
        (span.point - span.low) / scale.factor,
        (span.high - span.point) / scale.factor,
    );
    let half = f64::max(low, high);
    if span.level.is_some() {
        // Too few blocks for a 95 % interval.
        return Text::plain(with_unit(
            &format!("{:.decimals$}", span.point / scale.factor),
            scale,
        ));
    }
    Text::plain(with_unit(
        &format!(
            "{:.decimals$} ± {half:.decimals$}",
            span.point / scale.factor
        ),
        scale,
    ))
}

/// Formats the value of each of several instances, in one unit.
fn each(value: &DossierLayoutValue, scale: Scale) -> Text {
    let texts = value
        .each
        .iter()
        .map(|span| self::value(span, scale, Digits::Short));
    match texts.collect::<Vec<String>>().join(" / ") {
        none if none.is_empty() => Text::plain(none),
        numbers => Text::plain(with_unit(&numbers, scale)),
    }
}

fn claims(out: &mut String, dossier: &Dossier, style: Style) {
    if dossier.claims.is_empty() {
        return;
    }
    tail::heading(out, "Published claims", style);
    for claim in &dossier.claims {
        draw_claim(out, claim, style);
        published::own(out, claim, style);
    }
}

fn draw_claim(out: &mut String, claim: &DossierClaim, style: Style) {
    let (verdict, paint) = match claim.verdict {
        ClaimVerdict::Holds => ("holds here", Paint::Green),
        ClaimVerdict::Fails => ("does not hold here", Paint::Red),
        ClaimVerdict::NotTestable => ("not testable here", Paint::Dim),
        ClaimVerdict::Undecided => ("undecided", Paint::Dim),
    };
    let message = format!("{}{}", claim.published, crate::published::place(claim));
    paragraph(out, "  ", &message, style);
    let mut text = String::new();
    let because = format!("{verdict}: {}", claim.because);
    paragraph(&mut text, "    → ", &because, style);
    out.push_str(&text.replacen(verdict, &paint.apply(verdict, style.colour), 1));
}

fn mistakes(out: &mut String, dossier: &Dossier, style: Style) {
    let Some(publication) = &dossier.publication else {
        return;
    };
    if publication.mistakes.is_empty() {
        return;
    }
    tail::heading(
        out,
        "What was wrong there, and what is done here instead",
        style,
    );
    for mistake in &publication.mistakes {
        paragraph(out, "  ", &mistake.what, style);
        paragraph(out, "    → ", &mistake.here, style);
    }
}
