//! How trials went from beginning to end as a figure: a line an arm, over seconds or requests.
//!
//! What it cannot see: which of two trials a step's least value is of.

use std::collections::BTreeMap;

use tare_model::course::{CoursePoint, DossierCourse};
use tare_model::dossier::{Dossier, Span};

use super::Figure;
use super::lines::Plot;
use super::plain;

/// A figure for every workload that tells its trials' course.
pub(in crate::report) fn figures(dossier: &Dossier) -> Vec<Figure> {
    (1..)
        .zip(&dossier.courses)
        .map(|(number, course)| Figure {
            name: format!("course-{number}-{}", plain(&course.metric)),
            svg: drawn(course, &dossier.run),
        })
        .collect()
}

/// What a course is of.
pub(in crate::report) fn title(course: &DossierCourse) -> String {
    let path = course
        .path
        .map_or_else(String::new, |path| format!(", {path}"));
    let over = match course.axis.as_str() {
        "s" => "over time".to_owned(),
        step => format!("by {step}"),
    };
    format!("{}{path}: {} {over}", course.workload, course.metric)
}

/// A place on its axis, without idle zeros.
pub(in crate::report) fn place_told(at: f64) -> String {
    let text = format!("{at:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn drawn(course: &DossierCourse, run: &str) -> String {
    let points = |points: &[CoursePoint]| -> BTreeMap<i64, Span> {
        let spans = points.iter().map(|point| Span {
            point: point.typical,
            low: point.least,
            high: point.greatest,
            level: None,
        });
        (1..).zip(spans).collect()
    };
    let lines: Vec<(&str, BTreeMap<i64, Span>)> = course
        .arms
        .iter()
        .map(|arm| (arm.arm.as_str(), points(&arm.points)))
        .collect();
    let at: Vec<f64> = course
        .arms
        .iter()
        .max_by_key(|arm| arm.points.len())
        .map(|arm| arm.points.iter().map(|point| point.at).collect())
        .unwrap_or_default();
    let shown = |level: i64| {
        let place = usize::try_from(level - 1).unwrap_or_default();
        at.get(place).map_or_else(String::new, |at| place_told(*at))
    };
    let lines = Plot {
        title: title(course),
        axis: &course.axis,
        unit: &course.unit,
        foot: "Points are medians of trials at the same step, whiskers reach from the least to the greatest trial; lines join the steps of one arm.",
        is_in_proportion: true,
        shown: &shown,
        lines: &lines,
    };
    lines.draw(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Params;
    use tare_model::course::CourseArm;

    #[test]
    fn a_course_is_a_line_an_arm_whose_steps_have_their_names() {
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
            metric: "net.iperf3.throughput".into(),
            unit: "B/s".into(),
            axis: "s".into(),
            arms: vec![arm("host", 2e9), arm("<vm>", 1e8)],
        };
        let figure = drawn(&course, "run");
        assert_eq!(figure.matches("<polyline").count(), 2);
        for name in [">2.7<", ">3<", "&lt;vm&gt;", "arm→arm", "GB/s"] {
            assert!(figure.contains(name), "{name}: {figure}");
        }
        // Thirty names would stand in each other.
        assert!(!figure.contains(">2.8<") && !figure.contains(">2.9<"));
    }
}
