//! A publication's tables and figures, filled in with what was measured here.
//!
//! Every place is either a value with its interval or a reason why there is none; what was published for the
//! place stands beside it as it was printed. Nothing is computed from published numbers.
//! What it cannot see: whether the two are comparable; the report says on what each was measured.

use tare_model::LayoutKind;
use tare_model::dossier::{
    Dossier, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierMistake,
    DossierPublication,
};
use tare_model::publication::{FigureKind, LayoutColumn, Publication};

use super::claims::Look;

/// The publication beside this run's values.
pub(super) fn filled_in(publication: &Publication, dossier: &Dossier) -> DossierPublication {
    let look = Look {
        publication,
        dossier,
    };
    let layout =
        |title: &str, kind: LayoutKind, rows: &[String], columns: &[LayoutColumn]| DossierLayout {
            title: title.to_owned(),
            kind,
            columns: columns
                .iter()
                .map(|column| heading(&look, column))
                .collect(),
            rows: rows.iter().map(|name| row(&look, name, columns)).collect(),
        };
    DossierPublication {
        title: publication.title.clone(),
        authors: publication.authors.clone(),
        place: publication.place.clone(),
        machine: publication.machine.clone(),
        deviations: publication.deviations.clone(),
        tables: publication
            .tables
            .iter()
            .map(|table| layout(&table.title, LayoutKind::Table, &table.rows, &table.columns))
            .collect(),
        figures: publication
            .figures
            .iter()
            .map(|figure| {
                let kind = match figure.kind {
                    FigureKind::Bars => LayoutKind::Bars,
                    FigureKind::Lines => LayoutKind::Lines,
                };
                layout(&figure.title, kind, &figure.rows, &figure.columns)
            })
            .collect(),
        mistakes: publication
            .mistakes
            .iter()
            .map(|mistake| DossierMistake {
                what: mistake.what.clone(),
                here: mistake.here.clone(),
            })
            .collect(),
    }
}

/// A column's heading, which also says where its numbers are no cost of the environment that it names.
fn heading(look: &Look<'_>, column: &LayoutColumn) -> String {
    if look.is_emulated(&column.arm) {
        format!("{} (EMULATED here)", column.label)
    } else {
        column.label.clone()
    }
}

fn row(look: &Look<'_>, name: &str, columns: &[LayoutColumn]) -> DossierLayoutRow {
    let quantity = look.quantity(name);
    let mut unit = String::new();
    let values = columns
        .iter()
        .map(|column| {
            let published = look
                .publication
                .numbers
                .iter()
                .filter(|number| {
                    number.quantity.as_deref() == Some(name)
                        && number.arm.as_deref() == Some(column.arm.as_str())
                        && number.instances == column.instances
                })
                .map(|number| {
                    // Some are printed with their unit.
                    if number.printed.ends_with(&number.unit) {
                        number.printed.clone()
                    } else {
                        format!("{} {}", number.printed, number.unit)
                    }
                })
                .collect();
            match look.value(name, &column.arm, column.instances) {
                Ok((span, cell)) => {
                    unit.clone_from(&cell.unit);
                    DossierLayoutValue {
                        here: Some(span),
                        reason: None,
                        published,
                    }
                }
                Err(why) => DossierLayoutValue {
                    here: None,
                    reason: Some(why),
                    published,
                },
            }
        })
        .collect();
    DossierLayoutRow {
        label: quantity.map_or_else(|| name.to_owned(), |quantity| quantity.label.clone()),
        unit,
        values,
    }
}
