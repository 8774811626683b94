//! The page's sweeps: every metric over the values of a parameter, one line per arm. Concurrent instances have a
//! separate section.

use maud::{Markup, PreEscaped, html};
use tare_model::dossier::Dossier;

use crate::svg;

/// Renders the section if the study sweeps a parameter, else nothing.
pub(super) fn section(dossier: &Dossier) -> Markup {
    let drawings = svg::sweeps(dossier);
    html! {
        @if !drawings.is_empty() {
            section {
                h2 id="sweeps" { "Over a parameter" }
                p.note { "Lines join the values that were measured; the numbers stand below “Every metric”." }
                div.figures.publication { @for drawing in drawings { figure { (PreEscaped(drawing.svg)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Params;
    use tare_model::dossier::{DossierCell, Span};

    use super::*;
    use tare_core::testing as composed;

    #[test]
    fn sweep_section_exists_only_with_sweep() {
        let mut dossier = composed::stored();
        dossier.cells.clear();
        assert_eq!(section(&dossier).into_string(), "");
        let cell = |size: i64, instances: u32| DossierCell {
            params: Params::new().with("size", size),
            instances,
            base: Some(Span::new(1.0, 2.0, 3.0)),
            ..composed::cell("blas.matrices.time", 1.1)
        };
        // Instances are reported elsewhere.
        dossier.cells = (1..=3).map(|n| cell(1, n)).collect();
        assert_eq!(section(&dossier).into_string(), "");
        dossier.cells = [1, 2, 3].map(|size| cell(size, 1)).into();
        let page = section(&dossier).into_string();
        assert!(
            page.contains("id=\"sweeps\"") && page.contains("by size"),
            "{page}"
        );
        assert_eq!(page.matches("<svg").count(), 1);
    }
}
