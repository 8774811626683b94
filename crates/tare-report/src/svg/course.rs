//! Trials over time as a figure: one line per arm, over seconds or requests.
//!
//! Limits: does not show which of two trials gave a step's minimum.

use std::collections::BTreeMap;

use tare_model::course::{CoursePoint, DossierCourse, PublishedCourse};
use tare_model::dossier::{Dossier, Span};

use super::Figure;
use super::lines::{Plot, PublishedLine};
use super::plain;
use crate::number::without_idle_zeros;

/// Draws a figure for every workload that reports the course of its trials.
pub(crate) fn figures(dossier: &Dossier) -> Vec<Figure> {
    (1..)
        .zip(&dossier.courses)
        .map(|(number, course)| Figure {
            name: format!("course-{number}-{}", plain(&course.metric)),
            svg: drawn(course, &dossier.run),
        })
        .collect()
}

/// Returns the title of a course.
pub(crate) fn title(course: &DossierCourse) -> String {
    let path = course
        .path
        .map(|path| format!(", {path}"))
        .unwrap_or_default();
    let over = match course.axis.as_str() {
        "s" => "over time".to_owned(),
        step => format!("by {step}"),
    };
    let several = match course.instances {
        1 => String::new(),
        number => format!(" ×{number}"),
    };
    format!(
        "{}{path}{several}: {} {over}",
        course.workload, course.metric
    )
}

/// Formats a position on the axis, without trailing zeros.
pub(crate) fn place_text(at: f64) -> String {
    without_idle_zeros(&format!("{at:.2}")).to_owned()
}

/// Converts a position to thousandths of the axis, because the steps of two trials need not coincide.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a number of trials, which is far from what fits"
)]
fn level(at: f64) -> i64 {
    (at * 1000.0).round() as i64
}

fn drawn(course: &DossierCourse, run: &str) -> String {
    let points = |points: &[CoursePoint]| -> BTreeMap<i64, Span> {
        let spans = points.iter().map(|point| {
            let span = Span::new(point.least, point.typical, point.greatest);
            (level(point.at), span)
        });
        spans.collect()
    };
    let lines: Vec<(&str, BTreeMap<i64, Span>)> = course
        .arms
        .iter()
        .map(|arm| (arm.arm.as_str(), points(&arm.points)))
        .collect();
    // A line without a measured counterpart gets a separate colour.
    let published = |(number, of): (usize, &PublishedCourse)| PublishedLine {
        name: format!("{}, published", of.arm),
        of: lines
            .iter()
            .position(|(arm, _)| *arm == of.arm)
            .unwrap_or(lines.len() + number),
        values: of
            .points
            .iter()
            .map(|[at, value]| (level(*at), *value))
            .collect(),
    };
    let beside: Vec<PublishedLine> = course.published.iter().enumerate().map(published).collect();
    let shown = |level: i64| place_text(level as f64 / 1000.0);
    let hollow = if beside.is_empty() {
        ""
    } else {
        " Hollow: one trial as published, of other machines."
    };
    let lines = Plot {
        title: title(course),
        axis: &course.axis,
        unit: &course.unit,
        foot: &format!(
            "Points are medians of trials at the same step, whiskers reach from the least to the greatest trial; lines join the steps of one arm.{hollow}"
        ),
        is_in_proportion: true,
        shown: &shown,
        lines: &lines,
        beside: &beside,
    };
    lines.draw(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Params;
    use tare_model::course::CourseArm;

    #[test]
    fn course_is_one_line_per_arm_with_step_labels() {
        let arm = |name: &str, typical: f64| CourseArm {
            arm: name.to_owned(),
            points: (1..=30)
                .map(|step| CoursePoint {
                    at: f64::from(step) * 0.1,
                    trials: 2,
                    typical,
                    least: typical / 2.0,
                    greatest: typical * 2.0,
                })
                .collect(),
        };
        let course = DossierCourse {
            workload: "iperf3".into(),
            params: Params::new(),
            path: Some(tare_model::Path::ArmToArm),
            instances: 1,
            metric: "net.iperf3.throughput".into(),
            unit: "B/s".into(),
            axis: "s".into(),
            arms: vec![arm("host", 2e9), arm("<vm>", 1e8)],
            published: Vec::new(),
        };
        let figure = drawn(&course, "run");
        assert_eq!(figure.matches("<polyline").count(), 2);
        for name in [">2.7<", ">3<", "&lt;vm&gt;", "arm→arm", "GB/s"] {
            assert!(figure.contains(name), "{name}: {figure}");
        }
        // Thirty names would overlap.
        assert!(!figure.contains(">2.8<") && !figure.contains(">2.9<"));
        assert!(!figure.contains("Hollow"));
        let with_published = DossierCourse {
            published: vec![PublishedCourse {
                arm: "<vm>".into(),
                at: "a log".into(),
                points: vec![[1.0, 5e7], [2.0, 7e7], [9.0, 6e10]],
            }],
            ..course
        };
        let figure = drawn(&with_published, "run");
        assert_eq!(figure.matches("<polyline").count(), 3);
        // Three points and the sign next to the name; the axis reaches all of them.
        assert_eq!(figure.matches(r#"r="3" fill="none""#).count(), 4);
        for name in [">9<", "&lt;vm&gt;, published", "Hollow: one trial"] {
            assert!(figure.contains(name), "{name}: {figure}");
        }
    }
}
