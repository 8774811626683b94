//! Renders how trials develop over time: per second or per request, one line per arm and a table of the values drawn.
//!
//! Limits: does not show which of two trials gave a step's minimum.

use maud::{Markup, PreEscaped, html};
use tare_model::course::{CourseArm, CoursePoint, DossierCourse};
use tare_model::dossier::Dossier;

use super::scroll;
use crate::number::{or_dash, scale_for, significant};
use crate::svg;
use crate::words::called;
use tare_core::foreign::harmless;

/// The maximum number of steps listed on the page.
const MOST_STEPS: usize = 1_000;

/// Renders the section, if a workload reports the course of its trials.
pub(super) fn section(dossier: &Dossier) -> Markup {
    html! {
        @if !dossier.courses.is_empty() {
            section {
                h2 id="courses" { "Trials from beginning to end" }
                p.note { "What a program reported while it ran. Nothing is inferred from a step: trials are no sample of one. In the dossier they stand below " code { "courses" } ": " code { "tare show " (harmless(&dossier.run)) " --json" } "." }
                div.figures.publication { @for drawing in svg::courses(dossier) { figure { (PreEscaped(drawing.svg)) } } }
                @for course in &dossier.courses { (table(course)) }
            }
        }
    }
}

/// Renders the numbers of a figure: one row per step, with the median, minimum and maximum of each arm's trials.
fn table(course: &DossierCourse) -> Markup {
    let steps = |arm: &CourseArm| arm.points.len();
    let n_steps = course.arms.iter().map(steps).max().unwrap_or(0);
    let greatest = course.arms.iter().flat_map(|arm| &arm.points);
    let greatest = greatest.map(|point| point.greatest).fold(0.0, f64::max);
    let scale = scale_for(greatest, &course.unit);
    let shown = |point: &CoursePoint| {
        let [typical, least, most] = [point.typical, point.least, point.greatest].map(|value| {
            let value = value / scale.factor;
            format!("{value:.*}", significant(value.abs(), 3))
        });
        format!("{typical} [{least}, {most}] ({})", point.trials)
    };
    let title = svg::course_title(course);
    html! {
        details {
            summary { (harmless(&title)) ", in numbers" }
            @if n_steps > MOST_STEPS {
                p.note { "The first " (MOST_STEPS) " of " (n_steps) " steps; the dossier has all." }
            }
            (scroll(&format!("{}, in numbers", harmless(&title)), &html! {
                table {
                    caption { "Median over trials with the least and the greatest, and how many trials got so far" }
                    thead { tr {
                        th.num scope="col" { (harmless(&course.axis)) }
                        @for arm in &course.arms { th.num scope="col" { (scale.after(called(&harmless(&arm.arm)))) } }
                    } }
                    tbody { @for step in 0..n_steps.min(MOST_STEPS) { tr {
                        @let at = course.arms.iter().find_map(|arm| arm.points.get(step));
                        th.num scope="row" { (at.map(|point| svg::place_text(point.at)).unwrap_or_default()) }
                        @for arm in &course.arms { td.num { (or_dash(arm.points.get(step), shown)) } }
                    } } }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::testing as composed;
    use tare_model::Params;

    #[test]
    fn course_section_exists_only_with_courses() {
        let mut dossier = composed::stored();
        dossier.courses.clear();
        assert_eq!(section(&dossier).into_string(), "");
        let arm = |name: &str| CourseArm {
            arm: name.to_owned(),
            points: (1..=4)
                .map(|step| CoursePoint {
                    at: f64::from(step) / 2.0,
                    trials: 3,
                    typical: 2e6 + f64::from(step) * 1e4,
                    least: 1e6,
                    greatest: 3e6,
                })
                .collect(),
        };
        dossier.courses.push(DossierCourse {
            workload: "ping".into(),
            params: Params::new(),
            path: Some(tare_model::Path::ArmToArm),
            instances: 1,
            metric: "net.ping.time".into(),
            unit: "ns".into(),
            axis: "request".into(),
            arms: vec![arm("host"), arm("<script>")],
            published: Vec::new(),
        });
        let page = section(&dossier).into_string();
        assert_eq!(page.matches("<polyline").count(), 2);
        assert!(page.contains("id=\"courses\"") && page.contains("by request"));
        assert!(!page.contains("<script>"), "{page}");
        // Drawn values must also be in a table.
        assert!(
            page.contains("ping, arm→arm: net.ping.time by request, in numbers"),
            "{page}"
        );
        assert_eq!(page.matches("2.03 [1.00, 3.00] (3)").count(), 2, "{page}");
        assert!(page.contains(">1.5</th>"), "{page}");
        // Longer courses are truncated with a note.
        for arm in &mut dossier.courses[0].arms {
            arm.points = vec![arm.points[0]; MOST_STEPS + 7];
        }
        let page = section(&dossier).into_string();
        assert!(page.contains("The first 1000 of 1007 steps"), "{page}");
        assert_eq!(page.matches("2.01 [1.00").count(), 2 * MOST_STEPS);
    }
}
