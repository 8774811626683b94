//! The page's trials from beginning to end: second by second, or request by request, a line an arm.
//!
//! What it cannot see: which of two trials a step's least value is of.

use maud::{Markup, PreEscaped, html};
use tare_model::dossier::Dossier;

use super::super::svg;
use super::super::terminal::harmless;

/// The section, where a workload tells its trials' course.
pub(super) fn section(dossier: &Dossier) -> Markup {
    html! {
        @if !dossier.courses.is_empty() {
            section {
                h2 id="courses" { "Trials from beginning to end" }
                p.note { "What a program told while it ran. Nothing is inferred from a step: trials are no sample of one. The numbers stand in the dossier, below " code { "courses" } ": " code { "tare show " (harmless(&dossier.run)) " --json" } "." }
                div.figures.publication { @for drawing in svg::courses(dossier) { figure { (PreEscaped(drawing.svg)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Params;
    use tare_model::course::{CourseArm, CoursePoint, DossierCourse};

    #[test]
    fn a_run_with_courses_has_a_section_of_them_and_one_without_has_none() {
        const STORED: &str =
            include_str!("../../../../../fixtures/before/20261122-210539-1f5a.json");
        let mut dossier: Dossier = serde_json::from_str(STORED).unwrap();
        dossier.courses.clear();
        assert_eq!(section(&dossier).into_string(), "");
        let arm = |name: &str| CourseArm {
            arm: name.to_owned(),
            points: (1..=4)
                .map(|step| CoursePoint {
                    at: f64::from(step),
                    trials: 3,
                    typical: 2e6,
                    least: 1e6,
                    greatest: 3e6,
                })
                .collect(),
        };
        dossier.courses.push(DossierCourse {
            workload: "ping".into(),
            params: Params::new(),
            path: Some(tare_model::Path::ArmToArm),
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
    }
}
