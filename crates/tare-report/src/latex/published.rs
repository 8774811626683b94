//! A publication as LaTeX: its tables with this run's values and the printed ones, the notes, the numbers without a
//! counterpart, and the claims.
//!
//! Printed numbers are kept as printed, so they are text, not quantities.

use std::fmt::Write as _;

use tare_model::dossier::{Dossier, DossierLayout, DossierPublication};

use super::{escaped, quantity, without_sign};
use crate::number::scale_for;
use crate::published;

/// Returns the file; `None` if the study repeats no publication and claims nothing.
pub(super) fn file(dossier: &Dossier) -> Option<String> {
    let mut out = String::from("% Needs what costs.tex needs.\n");
    if let Some(publication) = &dossier.publication {
        if !publication.deviations.is_empty() {
            let text = publication.deviations.join("; ");
            let _ = writeln!(
                out,
                "\\paragraph{{Here on purpose otherwise.}}\n{}.\n",
                escaped(&text)
            );
        }
        for layout in &publication.tables {
            table(&mut out, layout);
        }
        for line in published::scale_lines(&publication.tables) {
            let _ = writeln!(out, "{}.\n", escaped(&line));
        }
        notes(&mut out, publication);
        others(&mut out, publication);
    }
    claims(&mut out, dossier);
    (dossier.publication.is_some() || !dossier.claims.is_empty()).then_some(out)
}

fn table(out: &mut String, layout: &DossierLayout) {
    let headings: Vec<String> = layout.columns.iter().map(|it| escaped(it)).collect();
    let _ = write!(
        out,
        "{{\\small\n\\begin{{longtable}}{{>{{\\raggedright\\arraybackslash}}p{{.22\\linewidth}}{columns}}}\n\\caption{{{title}: measured here, and below it in italics as published.}}\\\\\n\\toprule\n & {headings} \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n",
        columns = format!(
            ">{{\\raggedleft\\arraybackslash}}p{{{:.3}\\linewidth}}",
            0.68 / layout.columns.len().max(1) as f64
        )
        .repeat(layout.columns.len()),
        title = escaped(&layout.title),
        headings = headings.join(" & ")
    );
    for row in &layout.rows {
        let here = row.values.iter().map(|value| {
            let point = value.here.map_or(0.0, |span| span.point);
            quantity(value.here.as_ref(), scale_for(point, &row.unit))
        });
        let here: Vec<String> = here.collect();
        let _ = writeln!(out, "{} & {} \\\\", escaped(&row.label), here.join(" & "));
        if row.values.iter().any(|value| !value.each.is_empty()) {
            let each = row.values.iter().map(|value| {
                let each = value.each.iter();
                let each = each.map(|span| quantity(Some(span), scale_for(span.point, &row.unit)));
                each.collect::<Vec<_>>().join(" / ")
            });
            let each: Vec<String> = each.collect();
            let _ = writeln!(out, "\\quad each & {} \\\\", each.join(" & "));
        }
        if row.values.iter().any(|value| !value.published.is_empty()) {
            let printed = row
                .values
                .iter()
                .map(|value| format!("\\emph{{{}}}", escaped(&value.published.join(" / "))));
            let printed: Vec<String> = printed.collect();
            let _ = writeln!(out, " & {} \\\\", printed.join(" & "));
        }
    }
    out.push_str("\\end{longtable}}\n");
}

fn notes(out: &mut String, publication: &DossierPublication) {
    let notes = published::notes(publication);
    if notes.is_empty() {
        return;
    }
    out.push_str("\\paragraph{Notes on these numbers.}\n");
    for note in notes {
        let _ = writeln!(out, "{}.", escaped(&note.line()));
    }
    out.push('\n');
}

fn others(out: &mut String, publication: &DossierPublication) {
    for of_reason in published::others(publication) {
        let _ = writeln!(
            out,
            "\\paragraph{{Published numbers without a counterpart: {} ({}).}}",
            escaped(of_reason.why.sentence()),
            of_reason.count
        );
        for (at, shown) in of_reason.places {
            let text = format!("{at}: {}.", shown.join("; "));
            let _ = writeln!(out, "{}", escaped(&text));
        }
        out.push('\n');
    }
}

fn claims(out: &mut String, dossier: &Dossier) {
    if dossier.claims.is_empty() {
        return;
    }
    out.push_str("{\\small\n\\begin{longtable}{>{\\raggedright\\arraybackslash}p{.4\\linewidth}l>{\\raggedright\\arraybackslash}p{.38\\linewidth}}\n\\caption{Published claims, judged by rules that were fixed before the run.}\\\\\n\\toprule\nclaim & here & because \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n");
    for claim in &dossier.claims {
        let own = match (&claim.own, published::own(claim)) {
            (Some(own), Some((told, _))) => {
                format!(" Its own numbers {told}: {}.", own.because)
            }
            _ => String::new(),
        };
        let verdict = without_sign(published::verdict(claim));
        let _ = writeln!(
            out,
            "{}{} & {verdict} & {}.{} \\\\",
            escaped(&claim.published),
            escaped(&published::place(claim)),
            escaped(&claim.because),
            escaped(&own)
        );
    }
    out.push_str("\\end{longtable}}\n");
}
