//! A publication's tables and figures, filled in with what was measured here.
//!
//! Every place is either a value with its interval or a reason why there is none; what was published for the
//! place stands beside it as it was printed. What has no place is listed with the reason, so that no published
//! number is lost. What is computed from published numbers stands in `own_numbers`.
//! What it cannot see: whether the two are comparable; the report says on what each was measured.

use tare_model::LayoutKind;
use tare_model::dossier::{
    Dossier, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierMistake, DossierNote,
    DossierPublication, DossierPublished,
};
use tare_model::publication::{
    FigureKind, LayoutColumn, NoCounterpart, Publication, PublishedNumber,
};

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
        notes: notes(publication),
        others: others(publication),
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
            let numbers = look.publication.numbers.iter();
            let published = numbers
                .filter(|number| number.quantity.as_deref() == Some(name) && column.holds(number))
                .map(PublishedNumber::shown)
                .collect();
            let here = match &column.over {
                None => look
                    .value(name, &column.arm, column.instances)
                    .map(|(span, cell)| (span, cell.unit.clone())),
                Some(over) => look
                    .between(
                        (name, &column.arm, column.instances),
                        (name, over, column.instances),
                    )
                    .map(|span| (span, "ratio".to_owned())),
            };
            let (here, reason) = match here {
                Ok((span, of_value)) => {
                    unit = of_value;
                    (Some(span), None)
                }
                Err(why) => (None, Some(why)),
            };
            DossierLayoutValue {
                here,
                reason,
                published,
            }
        })
        .collect();
    DossierLayoutRow {
        label: quantity.map_or_else(|| name.to_owned(), |quantity| quantity.label.clone()),
        unit,
        values,
    }
}

/// What is to be known of quantities and numbers that stand in tables and figures: each once, in their order.
fn notes(publication: &Publication) -> Vec<DossierNote> {
    let mut notes = Vec::new();
    for quantity in &publication.quantities {
        notes.extend(quantity.remark.iter().map(|remark| DossierNote {
            of: quantity.label.clone(),
            text: remark.clone(),
        }));
        let numbers = publication.numbers.iter().filter(|number| {
            number.quantity.as_ref() == Some(&quantity.name) && publication.has_place_for(number)
        });
        for number in numbers {
            let why = number.corrected.as_ref().map(|it| it.because.clone());
            for text in number.what.iter().cloned().chain(why) {
                notes.push(DossierNote {
                    of: format!("{}, {}", quantity.label, number.shown()),
                    text,
                });
            }
        }
    }
    notes
}

/// The numbers that stand in no table or figure, in their order.
fn others(publication: &Publication) -> Vec<DossierPublished> {
    let numbers = publication.numbers.iter();
    numbers
        .filter(|number| !publication.has_place_for(number))
        .map(|number| {
            let why = number.corrected.as_ref().map(|it| it.because.as_str());
            let what: Vec<&str> = number.what.as_deref().into_iter().chain(why).collect();
            DossierPublished {
                printed: number.shown(),
                at: number.at.clone(),
                what: (!what.is_empty()).then(|| what.join("; ")),
                why: number.without.unwrap_or(NoCounterpart::NotMeasured),
            }
        })
        .collect()
}
