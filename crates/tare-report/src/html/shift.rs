//! An arm's overhead at each decile of the blocks' values, as a figure and a table.

use maud::{Markup, html};
use tare_model::dossier::DossierCell;

use super::figures::{HEIGHT, INNER, LEFT, Values, dots, pc, plot, px, ratio_lines, tone};
use super::scroll;
use crate::number::{Scale, or_dash};
use crate::shift::Tenth;
use tare_core::foreign::harmless;

/// Renders the overhead at each decile; empty if there are too few blocks.
pub(super) fn figure(cell: &DossierCell, tenths: &[Tenth], name: &str) -> Markup {
    let costs = || tenths.iter().filter_map(|tenth| tenth.cost.map(f64::ln));
    if costs().next().is_none() {
        return html! {};
    }
    let margin = cell.margin.ln_1p();
    let Some(axis) = Values::over(costs().chain([0.0, margin, -margin]), HEIGHT) else {
        return html! {};
    };
    let share = |tenth: &Tenth| f64::from(tenth.percent) / 100.0;
    let points = tenths
        .iter()
        .filter_map(|tenth| Some((share(tenth) * INNER, axis.y(tenth.cost?.ln()))));
    let described = format!(
        "{name}: the cost of {} against {} at each tenth of the blocks' values",
        harmless(&cell.arm),
        harmless(&cell.baseline)
    );
    html! {
        figure {
            svg width="100%" height=(px(HEIGHT + 18.0)) role="img" aria-label=(described) {
                (ratio_lines(&axis, margin))
                g.(tone(cell)) { (plot(&html! { path.dot d=(dots(points)) {} })) }
                text x=(pc(LEFT - 0.012)) y=(px(HEIGHT + 14.0)) text-anchor="end" { "ratio" }
                @for percent in [10, 50, 90] {
                    text x=(pc(LEFT + (1.0 - LEFT) * f64::from(percent) / 100.0)) y=(px(HEIGHT + 14.0)) text-anchor="middle" { (percent) " %" }
                }
            }
            figcaption { "Quantile shift: the cost at each tenth of the blocks' values, each side in its own order, without intervals. An end that leaves the other points is a tail that the middle does not show." }
        }
    }
}

/// Renders the numbers of the figure.
pub(super) fn table(
    cell: &DossierCell,
    tenths: &[Tenth],
    name: &str,
    (scale, digits): (Scale, usize),
) -> Markup {
    let shown = |value: f64| format!("{:.digits$}", value / scale.factor);
    html! {
        @if !tenths.is_empty() {
            details {
                summary { "Tenths of the blocks' values" }
                (scroll(&format!("{name} by tenths, {}", harmless(&cell.arm)), &html! {
                    table {
                        thead { tr {
                            th.num scope="col" { "% are less" }
                            @for arm in [&cell.baseline, &cell.arm] { th.num scope="col" { (scale.after(&harmless(arm))) } }
                            th.num scope="col" { "ratio" }
                        } }
                        tbody { @for tenth in tenths { tr {
                            td.num { (tenth.percent) } td.num { (shown(tenth.base)) } td.num { (shown(tenth.env)) }
                            td.num { (or_dash(tenth.cost, |cost| format!("{cost:.4}"))) }
                        } } }
                    }
                }))
            }
        }
    }
}
