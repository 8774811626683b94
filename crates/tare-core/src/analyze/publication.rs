//! Fills a publication's tables and figures with the values measured here.
//!
//! Every place is either a value with its interval or a reason why there is none, next to the published value as it
//! was printed. Numbers without a place are listed with the reason, so that no published number is lost. Values
//! computed from published numbers are in `own_numbers`.
//! Limits: does not judge whether the two are comparable; the report states what each was measured on.

use tare_model::course::{DossierCourse, PublishedCourse};
use tare_model::dossier::{
    Dossier, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierMistake, DossierNote,
    DossierPublication, DossierPublished,
};
use tare_model::publication::{
    FigureKind, LayoutColumn, NoCounterpart, Publication, PublishedNumber, Quantity,
};
use tare_model::{LayoutKind, Study};

use super::quantity::Lookup;
use crate::workload::{completed, metric};

/// Returns the publication with this run's values.
pub(super) fn filled_in(publication: &Publication, dossier: &Dossier) -> DossierPublication {
    let look = Lookup {
        publication,
        dossier,
    };
    let layout = |title: &str, kind, full_range, (rows, columns): (&[String], &[LayoutColumn])| {
        let columns = with_recorded(&look, rows, columns);
        DossierLayout {
            title: title.to_owned(),
            kind,
            full_range,
            columns: columns.iter().map(|it| heading(&look, it)).collect(),
            rows: rows.iter().map(|name| row(&look, name, &columns)).collect(),
        }
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
            .map(|it| layout(&it.title, LayoutKind::Table, false, (&it.rows, &it.columns)))
            .collect(),
        figures: publication
            .figures
            .iter()
            .map(|it| {
                let kind = match it.kind {
                    FigureKind::Bars => LayoutKind::Bars,
                    FigureKind::Lines => LayoutKind::Lines,
                };
                layout(&it.title, kind, it.full_range, (&it.rows, &it.columns))
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

/// Describes how the study's scale differs from its publication's, to be shown before the run; `None` if it does not.
pub fn other_scale(study: &Study) -> Option<String> {
    let publication = study.publication.as_ref()?;
    let mut texts: Vec<String> = Vec::new();
    for quantity in &publication.quantities {
        let workload = study.workloads.iter().find(|spec| {
            let found = crate::workload::find(spec.id.as_str());
            let metrics = found.map_or(&[][..], |found| found.metrics());
            metrics.iter().any(|it| it.id == quantity.metric)
                && spec.params.covers(&quantity.params)
        });
        let scale = workload
            .and_then(|spec| quantity.scale(&completed(spec.id.as_str(), &spec.params, spec.path)));
        texts.extend(scale.filter(|text| !texts.contains(text)));
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Marks a row measured at another scale than published.
const SCALED: &str = " ‡";

/// A column's heading, with a note if its numbers do not measure the environment that it names.
fn heading(look: &Lookup<'_>, column: &LayoutColumn) -> String {
    if look.is_emulated(&column.arm) {
        format!("{} (EMULATED here)", column.label)
    } else if look.is_recorded(&column.arm) {
        format!("{} (recorded)", column.label)
    } else {
        column.label.clone()
    }
}

/// The columns, plus one for each further arm with a recorded value in one of the rows.
fn with_recorded(
    look: &Lookup<'_>,
    rows: &[String],
    columns: &[LayoutColumn],
) -> Vec<LayoutColumn> {
    let mut columns = columns.to_vec();
    let has_ratios = columns.iter().any(|column| column.over.is_some());
    for it in look.publication.recorded.iter().filter(|_| !has_ratios) {
        let is_there = columns.iter().any(|column| column.arm == it.arm);
        let of_rows = |name: &String| look.recorded((name, &it.arm, 1)).is_some();
        if !is_there && rows.iter().any(of_rows) {
            columns.push(LayoutColumn {
                label: it.label.clone().unwrap_or_else(|| it.arm.clone()),
                arm: it.arm.clone(),
                over: None,
                instances: 1,
            });
        }
    }
    columns
}

fn row(look: &Lookup<'_>, name: &str, columns: &[LayoutColumn]) -> DossierLayoutRow {
    let quantity = look.quantity(name);
    let given = quantity.and_then(|quantity| quantity.unit.as_deref());
    let of_metric = || Some(metric(&quantity?.metric)?.unit.symbol());
    let unit = given.or_else(of_metric);
    let mut unit = unit.unwrap_or_default().to_owned();
    let values = columns
        .iter()
        .map(|column| {
            let numbers = look.publication.numbers.iter();
            let numbers: Vec<&PublishedNumber> = numbers
                .filter(|number| number.quantity.as_deref() == Some(name) && column.holds(number))
                .collect();
            let is_ratio = column.over.is_some();
            if is_ratio {
                "ratio".clone_into(&mut unit);
            }
            let place = (name, column.arm.as_str(), column.instances);
            let here = match &column.over {
                None => look
                    .value(place)
                    .map(|(span, cell)| (span, look.unit(name, cell))),
                Some(over) => look
                    .between(place, (name, over, column.instances))
                    .map(|ratio| (ratio.span, "ratio".to_owned())),
            };
            let recorded = if is_ratio || here.is_ok() {
                None
            } else {
                look.recorded(place)
            };
            let (here, reason) = match here {
                Ok((span, of_value)) => {
                    unit = of_value;
                    (Some(span), None)
                }
                Err(_) if recorded.is_some() => (recorded, None),
                Err(_) if look.is_recorded(&column.arm) => {
                    (None, Some(format!("`{}` has no record of it", column.arm)))
                }
                Err(why) => (None, Some(why)),
            };
            let range = if is_ratio { None } else { look.range(place) };
            // Instances are listed separately if the publication does so.
            let n_parts = numbers.iter().filter(|it| it.part.is_some()).count();
            let each = if n_parts > 1 && !is_ratio {
                look.each(place)
            } else {
                Vec::new()
            };
            DossierLayoutValue {
                here,
                recorded: recorded.is_some(),
                reason,
                published: numbers.iter().map(|number| number.shown()).collect(),
                range,
                each,
                printed: numbers
                    .iter()
                    .filter_map(|number| match &column.over {
                        Some(over) => number.cost_over(&column.arm, over),
                        None => in_unit(number.meant(), &unit),
                    })
                    .collect(),
            }
        })
        .collect();
    let label = quantity.map_or(name, |quantity| quantity.label.as_str());
    let scale = look.scale(name);
    DossierLayoutRow {
        label: format!("{label}{}", scale.as_ref().map_or("", |_| SCALED)),
        unit,
        scale,
        values,
    }
}

/// Returns the published courses of such trials over time, one entry for each arm and place.
pub(super) fn published_course(
    publication: &Publication,
    course: &DossierCourse,
) -> Vec<PublishedCourse> {
    let is_of = |quantity: &&Quantity| {
        quantity.metric == course.metric && quantity.is_of(&course.params, course.path)
    };
    let names: Vec<&str> = publication
        .quantities
        .iter()
        .filter(is_of)
        .map(|quantity| quantity.name.as_str())
        .collect();
    let mut found: Vec<PublishedCourse> = Vec::new();
    for number in &publication.numbers {
        let name = number.quantity.as_deref();
        let value = in_unit(number.meant(), &course.unit);
        let (Some(step), Some(arm), Some(value), true) = (
            number.step,
            &number.arm,
            value,
            name.is_some_and(|name| names.contains(&name)),
        ) else {
            continue;
        };
        let mut known = found.iter_mut();
        match known.find(|it| it.arm == *arm && it.at == number.at) {
            Some(known) => known.points.push([step, value]),
            None => found.push(PublishedCourse {
                arm: arm.clone(),
                at: number.at.clone(),
                points: vec![[step, value]],
            }),
        }
    }
    found
}

/// Converts a published value to the base unit of its kind, if known.
pub(super) fn in_base_unit((value, unit): (f64, &str)) -> (f64, &str) {
    let (factor, base) = match unit {
        "s" => (1e9, "ns"),
        "ms" => (1e6, "ns"),
        "us" => (1e3, "ns"),
        "KB" | "kB" => (1e3, "B"),
        "MB" => (1e6, "B"),
        "GB" => (1e9, "B"),
        "kB/s" => (1e3, "B/s"),
        "MB/s" => (1e6, "B/s"),
        "GB/s" => (1e9, "B/s"),
        "MiB/s" => (f64::from(1 << 20), "B/s"),
        "Mbit/s" | "Mbits/sec" => (1e6 / 8.0, "B/s"),
        "Gbit/s" | "Gb/s" | "Gbits/sec" => (1e9 / 8.0, "B/s"),
        "k op/s" => (1e3, "op/s"),
        "events/s" | "bogo ops/s" => (1.0, "op/s"),
        "GFlops" | "GFLOPS" | "GUPS" => (1e9, "op/s"),
        "TFlops" => (1e12, "op/s"),
        other => (1.0, other),
    };
    (value * factor, base)
}

/// Converts a published value to the unit of a metric; `None` if its kind differs.
fn in_unit(published: (f64, &str), wanted: &str) -> Option<f64> {
    let (value, base) = in_base_unit(published);
    (base == wanted && value.is_finite() && value >= 0.0).then_some(value)
}

/// Returns the notes on quantities and numbers of tables and figures: each once, in order.
fn notes(publication: &Publication) -> Vec<DossierNote> {
    let mut notes = Vec::new();
    for it in &publication.recorded {
        let from = it
            .file
            .as_ref()
            .map_or_else(String::new, |file| format!(", from {file}"));
        notes.push(DossierNote {
            of: format!("{}, {}", it.label.as_ref().unwrap_or(&it.arm), it.workload),
            text: format!(
                "recorded elsewhere{from}: not paired with the blocks of this run, so that it decides no claim; in brackets the least and the greatest of its values"
            ),
        });
    }
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

/// Returns the numbers that are in no table or figure, in order.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds a publication with these parts.
    pub(crate) fn publication_of(parts: &str) -> Publication {
        let head = "title = \"t\"\nwhere = \"w\"\nmachine = \"m\"\n";
        toml::from_str(&(head.to_owned() + parts)).unwrap()
    }

    #[test]
    fn published_steps_match_course_by_metric_and_path() {
        let publication = publication_of(
            r#"
number = [
  { printed = "2", value = 2.0, unit = "s", at = "a", quantity = "q", arm = "docker", step = 1.0, without = "step" },
  { printed = "3", value = 3.0, unit = "s", at = "a", quantity = "q", arm = "docker", step = 2.0, without = "step" },
  { printed = "4", value = 4.0, unit = "s", at = "a", quantity = "q", arm = "host", step = 1.0, without = "step" },
  { printed = "5", value = 5.0, unit = "B", at = "a", quantity = "q", arm = "host", step = 2.0, without = "step" },
  { printed = "6", value = 6.0, unit = "s", at = "a", quantity = "q", arm = "host" },
]
[[quantity]]
name = "q"
label = "Q"
metric = "net.ping.time"
path = "arm→arm"
"#,
        );
        let course = |path| DossierCourse {
            workload: "ping".into(),
            params: tare_model::Params::new(),
            path: Some(path),
            instances: 1,
            metric: "net.ping.time".into(),
            unit: "ns".into(),
            axis: "request".into(),
            arms: Vec::new(),
            published: Vec::new(),
        };
        let found = published_course(&publication, &course(tare_model::Path::ArmToArm));
        let points: Vec<(&str, &[[f64; 2]])> = found
            .iter()
            .map(|it| (it.arm.as_str(), it.points.as_slice()))
            .collect();
        // A number in another kind of unit is not a step, and neither is one without a step.
        assert_eq!(
            points,
            [
                ("docker", [[1.0, 2e9], [2.0, 3e9]].as_slice()),
                ("host", [[1.0, 4e9]].as_slice()),
            ]
        );
        let other = published_course(&publication, &course(tare_model::Path::HostToArm));
        assert!(other.is_empty());
    }

    #[test]
    fn published_value_converts_to_metric_unit_or_fails() {
        assert_eq!(in_unit((1.5, "ms"), "ns"), Some(1.5e6));
        assert_eq!(in_unit((8.0, "Mbit/s"), "B/s"), Some(1e6));
        assert_eq!(in_unit((12.0, "op/s"), "op/s"), Some(12.0));
        assert_eq!(in_unit((2.0, "GB"), "B"), Some(2e9));
        for (value, unit, wanted) in [
            (1.0, "GFLOPS", "ns"),
            (1.0, "reads", "count"),
            (f64::NAN, "s", "ns"),
            (-1.0, "s", "ns"),
        ] {
            assert_eq!(in_unit((value, unit), wanted), None, "{unit}");
        }
    }
}
