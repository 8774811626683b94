//! The overhead table of an arm: one row per metric, grouped by outcome, with intervals on a shared axis; below it,
//! the data behind each row.
//!
//! Sorting and filtering are optional: the browser may not run scripts.

use maud::{Markup, html};
use tare_model::dossier::{Dossier, DossierArm, DossierCell, Flag, Span};
use tare_model::facts::emulation;

use super::{figures, prose, scroll, shift};
use crate::axis::RatioAxis;
use crate::groups::{Group, by_metric, grouped};
use crate::number::{
    Digits, Scale, decimals, decimals_of, difference, interval, level_text, or_dash, percent,
    scale_for, scales_for, whole, with_unit,
};
use crate::shift::tenths;
use crate::words::{self, Names};
use tare_core::foreign::harmless;

/// The maximum number of block rows on the page over all cells; the other formats have the full data.
pub(super) const MOST_ROWS: usize = 4_000;

/// A cell with its index in the dossier, which names its anchor.
pub(super) type Placed<'a> = (usize, &'a DossierCell);

/// Renders the table of an arm.
pub(super) fn table(
    arm: &DossierArm,
    number: usize,
    cells: &[Placed<'_>],
    names: &Names<'_>,
) -> Markup {
    let plain: Vec<&DossierCell> = cells.iter().map(|(_, cell)| *cell).collect();
    let axis = RatioAxis::over(plain.iter().copied());
    let baseline = harmless(&plain[0].baseline);
    let id = format!("costs-{number}");
    let groups = grouped(&plain);
    let place_of = |cell: &DossierCell| {
        let found = cells.iter().find(|(_, other)| std::ptr::eq(*other, cell));
        found.map_or(0, |(place, _)| *place)
    };
    html! {
        div.tools hidden data-table=(id) {
            label { "Find " input type="search" aria-controls=(id); }
            @for (group, members) in &groups {
                label { input type="checkbox" value=(group.as_str()) checked; " " (group.sign()) " " (group.title()) " (" (members.len()) ")" }
            }
            output {}
        }
        table.costs id=(id) role="table" {
            caption { (words::purpose(arm)) " against " (baseline) ". Ratio 1.10: takes 1.10× as long as the baseline, or gives 1/1.10 of its throughput; in brackets the 95 % confidence interval. The grey field is the margin; the axis is logarithmic, and an arrow points to what lies beyond it." @if plain.iter().any(|cell| words::is_by_itself(cell)) { " “?” behind a word: significant by itself, not among the metrics of its arm." } }
            (head(["metric", &baseline, &harmless(&arm.id)], true, axis))
            @for (group, members) in &groups {
                tbody data-group=(group.as_str()) role="rowgroup" {
                    tr.group role="row" { th colspan="7" scope="rowgroup" role="rowheader" { (group.sign()) " " (group.title()) " (" (members.len()) ")" } }
                    @for cell in members {
                        @let name = html! { a href={ "#cell-" (place_of(cell)) } { (names.name(cell)) } };
                        (row(cell, &name, axis, *group))
                    }
                }
            }
        }
    }
}

/// Renders each pair of arms, one row per pair, by metric.
pub(super) fn pairs(cells: &[DossierCell], names: &Names<'_>) -> Markup {
    let axis = RatioAxis::over(cells.iter());
    html! {
        table.costs id="pairs" role="table" {
            caption { "The first of each pair against the second, from the same blocks. Ratio 1.10: the first takes 1.10× as long as the second, or gives 1/1.10 of its throughput; in brackets the 95 % confidence interval. The grey field is the margin; the axis is logarithmic." }
            (head(["pair", "second", "first"], false, axis))
            @for members in by_metric(cells) {
                tbody role="rowgroup" {
                    tr.group role="row" { th colspan="7" scope="rowgroup" role="rowheader" { (names.name(members[0])) } }
                    @for cell in members {
                        @let pair = html! { (harmless(&cell.arm)) " against " (harmless(&cell.baseline)) };
                        (row(cell, &pair, axis, Group::for_cell(cell)))
                    }
                }
            }
        }
    }
}

/// Renders the heads of a table: the first three columns and those that both kinds of tables have.
fn head(first: [&str; 3], is_sorted: bool, axis: RatioAxis) -> Markup {
    let columns = first.into_iter().chain(["difference", "ratio [95 % CI]"]);
    html! {
        thead role="rowgroup" {
            tr role="row" {
                @for (at, name) in columns.enumerate() {
                    th class=[(at > 0).then_some("num")] scope="col" role="columnheader" data-key=[is_sorted.then_some(at)] { (name) }
                }
                th.iv.axis scope="col" role="columnheader" { span.sr { "the interval drawn" } (figures::axis(axis)) }
                th scope="col" role="columnheader" { "verdict" }
            }
        }
    }
}

/// Returns a number for sorting; missing values sort last.
fn key(span: Option<&Span>) -> String {
    span.map(|span| format!("{:e}", span.point))
        .unwrap_or_default()
}

fn row(cell: &DossierCell, name: &Markup, axis: RatioAxis, group: Group) -> Markup {
    let (of_base, of_env) = scales_for(cell.base.as_ref(), cell.env.as_ref(), &cell.unit);
    html! {
        tr role="row" data-k1=(key(cell.base.as_ref())) data-k2=(key(cell.env.as_ref())) data-k3=(key(cell.difference.as_ref())) data-k4=(key(words::ratio(cell))) {
            th scope="row" role="rowheader" { (name) }
            td.num role="cell" data-label=(harmless(&cell.baseline)) { (whole(cell.base.as_ref(), of_base)) }
            td.num role="cell" data-label=(harmless(&cell.arm)) { (whole(cell.env.as_ref(), of_env)) }
            td.num role="cell" data-label="difference" { (or_dash(cell.difference.as_ref(), |span| difference(span, &cell.unit))) }
            td.num role="cell" data-label="ratio" { (words::effect_or_dash(cell)) }
            @if let Some(ratio) = words::ratio(cell) {
                td.iv.(figures::tone(cell)) role="cell" { (figures::interval(axis, ratio, cell.margin)) }
            } @else {
                td.iv.empty role="cell" { "–" }
            }
            td.verdict.(figures::tone(cell)) role="cell" {
                (group.sign()) " " (words::guarded_verdict(cell))
            }
        }
    }
}

/// Renders the data behind every cell of an arm.
pub(super) fn details(cells: &[Placed<'_>], names: &Names<'_>, n_rows: usize) -> Markup {
    html! {
        @for (place, cell) in cells {
            details {
                summary { h4 { (names.name(cell)) ": " span class={ "verdict " (figures::tone(cell)) } { (Group::for_cell(cell).sign()) " " (words::verdict(cell).0) } } }
                div.cell id={ "cell-" (place) } { (detail(cell, &names.name(cell), n_rows)) }
            }
        }
    }
}

/// Counts the block rows of all cells.
pub(super) fn rows_of_blocks(dossier: &Dossier) -> usize {
    dossier.cells.iter().map(|cell| cell.blocks.len()).sum()
}

fn detail(cell: &DossierCell, name: &str, n_rows: usize) -> Markup {
    let span = |span: &Option<Span>| or_dash(span.as_ref(), |span| spanned(span, &cell.unit));
    let ratio = |span: &Option<Span>| or_dash(span.as_ref(), |span| interval(span, Digits::Full));
    let p = |value: Option<f64>| or_dash(value, probability);
    html! {
        dl.facts {
            dt { "metric" } dd { code { (harmless(&cell.metric)) } " of " code { (harmless(&cell.workload)) } ", " (if cell.better == tare_model::Better::Lower { "less is better" } else { "more is better" }) }
            @if !cell.params.0.is_empty() {
                dt { "parameters" } dd { @for (at, (param, value)) in cell.params.0.iter().enumerate() { @if at > 0 { ", " } (harmless(&format!("{param} = {value}"))) } }
            }
            dt { (harmless(&cell.baseline)) } dd { (span(&cell.base)) }
            dt { (harmless(&cell.arm)) } dd { (span(&cell.env)) }
            dt { "difference" } dd { (span(&cell.difference)) }
            @if !words::is_start(cell) {
                dt { "ratio, 95 % CI" } dd { (ratio(&cell.ratio)) }
                dt { "ratio, 90 % CI" } dd { (ratio(&cell.ratio90)) }
            }
            @if cell.floor.is_some() { dt { "uncontended ×" } dd { (ratio(&cell.floor)) " (the best moments of the trials)" } }
            dt { "p, and q after correction" } dd { (p(cell.p)) ", " (p(cell.q)) }
            dt { "margin" } dd { (percent(cell.margin)) }
            @if let Some(mde) = cell.mde { dt { "would have been seen" } dd { "80 % sure from " (percent(mde)) " on" } }
            dt { "blocks" } dd {
                (cell.n_blocks) @if cell.in_turn { ", arms interleaved in slices" } @else { ", whole trials" }
                @if let Some(further) = cell.further_blocks { "; about " (further) " more for the precision that was asked for" }
            }
            @for flag in &cell.flags { (remark(flag)) }
        }
        @if cell.blocks.is_empty() {
            p.note {
                @if cell.n_blocks == 0 { "There is no block to draw." }
                @else { "The dossier does not hold these blocks, because there are too many or an earlier version made it; " code { "--format csv" } " tells all of them." }
            }
        } @else {
            @let tenths = tenths(cell);
            @let written = of_blocks(cell);
            (figures::blocks(cell, &shift::figure(cell, &tenths, name), name))
            (shift::table(cell, &tenths, name, written))
            @if n_rows <= MOST_ROWS { (by_block(cell, name, written)) }
        }
    }
}

/// Formats a probability with four decimals; below 0.0001 as `< 0.0001`.
fn probability(value: f64) -> String {
    if value < 0.0001 {
        "< 0.0001".to_owned()
    } else {
        format!("{value:.4}")
    }
}

fn remark(flag: &Flag) -> Markup {
    html! {
        dt { "remark" }
        dd { (words::meaning(&flag.id).map_or_else(|| harmless(&flag.id), str::to_owned)) @if !flag.detail.is_empty() { " (" (prose(&flag.detail)) ")" } }
    }
}

/// Formats a value with its interval and unit, and the level if it is less than 95 %.
fn spanned(span: &Span, unit: &str) -> String {
    let most = span.point.abs().max(span.low.abs()).max(span.high.abs());
    let scale = scale_for(most, unit);
    let digits = decimals_of(span, scale.factor);
    let [point, low, high] =
        [span.point, span.low, span.high].map(|value| format!("{:.digits$}", value / scale.factor));
    format!(
        "{} [{low}, {high}]{}",
        with_unit(&point, scale),
        level_text(span)
    )
}

/// Returns the unit of a cell's blocks and the digits after the point for their values.
fn of_blocks(cell: &DossierCell) -> (Scale, usize) {
    let typical = cell.base.or(cell.env).map_or(0.0, |span| span.point);
    let scale = scale_for(typical, &cell.unit);
    let half = [cell.base, cell.env].into_iter().flatten();
    let half = half
        .map(|span| (span.high - span.low) / 2.0)
        .fold(0.0, f64::max);
    (scale, decimals(half / scale.factor).max(2))
}

fn by_block(cell: &DossierCell, name: &str, (scale, digits): (Scale, usize)) -> Markup {
    let sides = [&cell.baseline, &cell.arm].map(|arm| scale.after(&harmless(arm)));
    html! {
        details {
            summary { "The values of the " (cell.blocks.len()) " blocks" }
            (scroll(&format!("{name} by block, {}", harmless(&cell.arm)), &html! {
                table {
                    thead { tr {
                        @for head in ["block", "launch", "order", &sides[0], &sides[1], "ratio"] { th.num scope="col" { (head) } }
                    } }
                    tbody { @for block in &cell.blocks { tr {
                        td.num { (block.block) } td.num { (block.launch) } td.num { (block.position + 1) }
                        td.num { (format!("{:.digits$}", block.base / scale.factor)) } td.num { (format!("{:.digits$}", block.env / scale.factor)) }
                        td.num { (or_dash(block.ratio(cell.better), |ratio| format!("{ratio:.4}"))) }
                    } } }
                }
            }))
        }
    }
}

/// Renders the note after an arm's name if its processor is emulated.
pub(super) fn emulated(arm: &DossierArm) -> Markup {
    html! { @if let Some(how) = emulation(&arm.facts) { " " strong { "(EMULATED: " (harmless(how)) ")" } } }
}
