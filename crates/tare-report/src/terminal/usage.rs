//! Prints what programs used while they ran, if that was recorded: processors, memory and devices, one row per workload
//! and arm. The steps are in the page and in the dossier, below `courses`.

use tare_model::Params;
use tare_model::course::{CourseArm, DossierCourse, usage};
use tare_model::distinguishing::{distinguishing_params, distinguishing_words};
use tare_model::dossier::Dossier;

use super::Style;
use super::text::{Column, Text, bold, paragraph, row_in_line, table_or};
use crate::number::{or_dash, scale_for, significant, with_unit};
use crate::words::called;

/// Draws the section, if anything was recorded.
pub(super) fn draw(out: &mut String, dossier: &Dossier, style: Style) {
    let courses = dossier.courses.iter();
    let busy: Vec<&DossierCourse> = courses
        .filter(|course| course.metric == usage::PROCESSORS)
        .collect();
    if busy.is_empty() {
        return;
    }
    out.push('\n');
    bold(out, "Used while it ran", style);
    let rows: Vec<Vec<Text>> = busy
        .iter()
        .flat_map(|course| rows(dossier, course, &name_among(&busy, course)))
        .collect();
    let columns = [
        Column::words("workload", 12),
        Column::words("in", 4),
        Column::number("processors"),
        Column::number("memory, most"),
        Column::number("read"),
        Column::number("written"),
    ];
    table_or(out, &columns, &rows, style, row_in_line);
    let text = "By the program and its children, in tenths of a second: processors busy on average, the most memory in any trial, bytes to and from devices.";
    paragraph(out, "", text, style);
}

/// The workload's name with what distinguishes it from others of the same name.
fn name_among(all: &[&DossierCourse], course: &DossierCourse) -> String {
    let twins = all.iter().filter(|it| it.workload == course.workload);
    let twins: Vec<&Params> = twins.map(|it| &it.params).collect();
    let params = distinguishing_params(&twins);
    let more = (&course.params, params.as_slice());
    let mut words = vec![course.workload.clone()];
    words.extend(distinguishing_words(
        more,
        course.path,
        course.instances,
        None,
    ));
    words.join(" ")
}

/// One row per arm; of each part the mean over the steps, of memory the most.
fn rows(dossier: &Dossier, busy: &DossierCourse, name: &str) -> Vec<Vec<Text>> {
    let same = |course: &&DossierCourse| {
        (&course.workload, &course.params) == (&busy.workload, &busy.params)
            && (course.path, course.instances) == (busy.path, busy.instances)
    };
    let of_arm = |metric: &str, arm: &str| -> Option<(&CourseArm, &str)> {
        let mut courses = dossier.courses.iter().filter(same);
        let course = courses.find(|course| course.metric == metric)?;
        let mut arms = course.arms.iter();
        Some((arms.find(|it| it.arm == arm)?, &course.unit))
    };
    let shown = |value: Option<f64>, unit: &str| {
        or_dash(value, |value| {
            let scale = scale_for(value, unit);
            let scaled = value / scale.factor;
            with_unit(&format!("{scaled:.*}", significant(scaled, 3)), scale)
        })
    };
    let mean = |metric: &str, arm: &str| {
        let found = of_arm(metric, arm);
        let points = found.map_or(&[][..], |(arm, _)| &arm.points);
        let sum: f64 = points.iter().map(|point| point.typical).sum();
        let mean = (!points.is_empty()).then(|| sum / points.len() as f64);
        shown(mean, found.map_or("", |(_, unit)| unit))
    };
    let most = |arm: &str| {
        let points = of_arm(usage::MEMORY, arm).map_or(&[][..], |(arm, _)| &arm.points);
        let most = points.iter().map(|point| point.greatest).reduce(f64::max);
        shown(most, "B")
    };
    let row = |arm: &CourseArm| {
        let arm = arm.arm.as_str();
        vec![
            Text::plain(name),
            Text::plain(called(arm)),
            Text::plain(mean(usage::PROCESSORS, arm)),
            Text::plain(most(arm)),
            Text::plain(mean(usage::READ, arm)),
            Text::plain(mean(usage::WRITTEN, arm)),
        ]
    };
    busy.arms.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::testing as composed;
    use tare_model::course::CoursePoint;

    #[test]
    fn usage_is_one_row_per_arm() {
        let mut dossier = composed::stored();
        dossier.courses.clear();
        let mut out = String::new();
        let style = Style {
            width: 100,
            colour: false,
        };
        draw(&mut out, &dossier, style);
        assert_eq!(out, "");
        for (metric, unit, values) in [
            (usage::PROCESSORS, "count", [1.0, 0.5]),
            (usage::MEMORY, "B", [1e6, 64e6]),
            (usage::WRITTEN, "B/s", [0.0, 0.0]),
        ] {
            let point = |value: f64| CoursePoint {
                at: 0.1,
                trials: 2,
                typical: value,
                least: value,
                greatest: value,
            };
            dossier.courses.push(DossierCourse {
                workload: "fio".into(),
                params: Params::new(),
                path: None,
                instances: 1,
                metric: metric.into(),
                unit: unit.into(),
                axis: "s".into(),
                arms: vec![CourseArm {
                    arm: "docker".into(),
                    points: values.map(point).into(),
                }],
                published: Vec::new(),
            });
        }
        draw(&mut out, &dossier, style);
        let row = out.lines().find(|line| line.contains("fio")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1..3], ["docker", "0.750"], "{out}");
        assert!(row.contains("61.0") && row.contains('–'), "{out}");
        // Of several instances there is a row of its own.
        let mut two = dossier.courses[0].clone();
        (two.instances, two.arms[0].points[0].typical) = (2, 2.0);
        dossier.courses.push(two);
        let mut out = String::new();
        draw(&mut out, &dossier, style);
        let row = out.lines().find(|line| line.contains("fio ×2")).unwrap();
        assert!(row.contains("1.25"), "{out}");
    }
}
