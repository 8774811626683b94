//! The page's figures: inline SVG with horizontal positions as shares of the width, so that text keeps its size from
//! phone to poster.
//!
//! Points rather than bars, lines only between ordered levels, ratio axes logarithmic with 1 on them. Every number
//! drawn is also in a table next to the figure. Colours come from classes that light, dark and print define.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use maud::{Markup, html};
use tare_model::dossier::{Concurrency, DossierBlock, DossierCell, Span};
use tare_model::study::A_PRIME;

use crate::axis::{RatioAxis, tick_label};
use crate::number::{label, scale_for, significant, with_unit};
use crate::svg::interval_text;
use crate::words::{self, Tone};
use tare_core::foreign::harmless;

/// Above this many blocks, quartile and range bands are drawn instead: single points would cover each other.
const MOST_POINTS: usize = 240;
/// The number of bands.
const BANDS: usize = 60;

/// Formats a position as a share of the width.
pub(super) fn pc(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// Formats a position in pixels.
pub(super) fn px(place: f64) -> String {
    format!("{place:.1}")
}

/// Renders one row's interval on the shared axis of its table.
pub(super) fn interval(axis: RatioAxis, ratio: &Span, margin: f64) -> Markup {
    let place = |value: f64| axis.place(value).clamp(0.0, 1.0);
    let (low, point, high) = (
        axis.place(ratio.low),
        axis.place(ratio.point),
        axis.place(ratio.high),
    );
    let zone = (place(1.0 / (1.0 + margin)), place(1.0 + margin));
    html! {
        svg width="100%" height="16" aria-hidden="true" {
            rect.zone x=(pc(zone.0)) y="0" width=(pc(zone.1 - zone.0)) height="16" {}
            line.one x1=(pc(place(1.0))) x2=(pc(place(1.0))) y1="0" y2="16" {}
            line.line x1=(pc(low.clamp(0.0, 1.0))) x2=(pc(high.clamp(0.0, 1.0))) y1="8" y2="8" {}
            @for end in [low, high] {
                @if (0.0..=1.0).contains(&end) { line.line x1=(pc(end)) x2=(pc(end)) y1="4" y2="12" {} }
            }
            @if point > 1.0 { text.mark x="100%" y="12" text-anchor="end" { "▶" } }
            @else if point < 0.0 { text.mark x="0" y="12" { "◀" } }
            @else { circle.mark cx=(pc(point)) cy="8" r="3.4" {} }
        }
    }
}

/// Letter width and minimum gap of axis labels above the narrowest column, as shares of the column.
const LETTER: f64 = 0.055;
const BETWEEN_LABELS: f64 = 0.06;

/// Renders the labels of a table's shared axis, as many as fit, outermost first; 1 is always included.
pub(super) fn axis(axis: RatioAxis) -> Markup {
    html! {
        svg width="100%" height="14" aria-hidden="true" {
            @for tick in axis.labelled(LETTER, BETWEEN_LABELS) {
                text x=(pc(axis.place(tick))) y="11" text-anchor="middle" { (tick_label(tick)) }
            }
        }
    }
}

/// A value axis with a margin below the minimum and above the maximum.
pub(super) struct Values {
    low: f64,
    high: f64,
    height: f64,
}

impl Values {
    pub(super) fn over(values: impl Iterator<Item = f64>, height: f64) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return None;
        }
        let pad = if high > low {
            (high - low) * 0.08
        } else {
            high.abs().max(1.0) * 0.05
        };
        Some(Self {
            low: low - pad,
            high: high + pad,
            height,
        })
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.height * (1.0 - (value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns about four round values on the axis, and their distance.
    fn ticks(&self) -> (Vec<f64>, f64) {
        let span = self.high - self.low;
        let power = 10f64.powf((span / 4.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let wide_enough = steps.into_iter().find(|step| span / step <= 5.0);
        let step = wide_enough.unwrap_or(10.0 * power);
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        let numbers = (0..8).map(|n| first + f64::from(n));
        let numbers = numbers.take_while(|n| *n <= last);
        (numbers.map(|n| n * step).collect(), step)
    }
}

pub(super) const HEIGHT: f64 = 150.0;
/// Blocks start here, to the right of the labels.
pub(super) const LEFT: f64 = 0.13;

/// Renders a line over the width of a plot.
fn across(class: &str, at: f64) -> Markup {
    html! { line class=(class) x1=(pc(LEFT)) x2="100%" y1=(px(at)) y2=(px(at)) {} }
}

/// Renders a line of the grid with its label.
fn grid(at: f64, label: &str) -> Markup {
    html! {
        (across("grid", at))
        text x=(pc(LEFT - 0.012)) y=(px(at + 4.0)) text-anchor="end" { (label) }
    }
}

/// Renders the values of both sides by block, the ratio of each block with margin and interval, and `further`
/// figures.
pub(super) fn blocks(cell: &DossierCell, further: &Markup, name: &str) -> Markup {
    html! {
        div.figures {
            (values_by_block(cell, name))
            @if !words::is_start(cell) { (ratios_by_block(cell, name)) }
            (further)
        }
    }
}

/// The inner width of a plot in its own units, which are stretched to the available width.
pub(super) const INNER: f64 = 1000.0;

/// Returns the x position of block `place` of `n` within a plot.
fn x(place: usize, n: usize) -> f64 {
    INNER * 0.985 * (place as f64 + 0.5) / n.max(1) as f64
}

/// Renders a plot to the right of the labels. Strokes keep their width when the plot is stretched, so a point (a
/// stroke of zero length) stays round.
pub(super) fn plot(content: &Markup) -> Markup {
    html! {
        svg.plot x=(pc(LEFT)) y="0" width=(pc(1.0 - LEFT)) height=(px(HEIGHT)) viewBox={ "0 0 " (INNER) " " (HEIGHT) } preserveAspectRatio="none" { (content) }
    }
}

/// Renders points as one path.
pub(super) fn dots(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let _ = write!(path, "M{x:.0} {y:.0}h0");
    }
    path
}

fn launches(blocks: &[DossierBlock]) -> Markup {
    let starts: Vec<usize> = (1..blocks.len())
        .filter(|place| blocks[*place].launch != blocks[place - 1].launch)
        .collect();
    let is_told = !starts.is_empty() && starts.len() * 3 <= blocks.len() && starts.len() <= 40;
    html! {
        @if is_told {
            @for place in starts {
                @let at = px(f64::midpoint(x(place - 1, blocks.len()), x(place, blocks.len())));
                line.launch x1=(at) x2=(at) y1="0" y2=(px(HEIGHT)) {}
            }
        }
    }
}

fn values_by_block(cell: &DossierCell, name: &str) -> Markup {
    let blocks = &cell.blocks;
    let all = blocks.iter().flat_map(|block| [block.base, block.env]);
    let Some(axis) = Values::over(all, HEIGHT) else {
        return html! {};
    };
    let scale = scale_for(axis.high, &cell.unit);
    let (ticks, step) = axis.ticks();
    let described = format!(
        "{name}: the value of each of {} blocks, of {} and of {}",
        blocks.len(),
        harmless(&cell.baseline),
        harmless(&cell.arm)
    );
    html! {
        figure {
            svg width="100%" height=(px(HEIGHT + 18.0)) role="img" aria-label=(described) {
                @for tick in ticks { (grid(axis.y(tick), &label(tick / scale.factor, step / scale.factor))) }
                (plot(&html! {
                    (launches(blocks))
                    @if blocks.len() <= MOST_POINTS {
                        @let base = dots(points(blocks, &axis, |block| Some(block.base)));
                        path.ring d=(base) {}
                        path.hole d=(base) {}
                        path.dot d=(dots(points(blocks, &axis, |block| Some(block.env)))) {}
                    } @else {
                        g.k1 { (bands(blocks, &axis, |block| Some(block.base))) }
                        g.k2 { (bands(blocks, &axis, |block| Some(block.env))) }
                    }
                }))
                (below(blocks, scale.symbol))
            }
            figcaption {
                @if blocks.len() <= MOST_POINTS { "○ " (harmless(&cell.baseline)) ", ● " (harmless(&cell.arm)) }
                @else { (harmless(&cell.baseline)) " (blue) and " (harmless(&cell.arm)) " (orange): middle, quartiles and ends of " (blocks.len().div_ceil(BANDS)) " blocks each" }
                ", in " (unit(scale.symbol)) ", blocks in order. The axis need not begin at 0."
            }
        }
    }
}

/// Renders the unit of the x axis, and the first and last block below the plot.
fn below(blocks: &[DossierBlock], counted: &str) -> Markup {
    let y = px(HEIGHT + 14.0);
    html! {
        text x=(pc(LEFT - 0.012)) y=(y) text-anchor="end" { (counted) }
        @if let [first, .., last] = blocks {
            text x=(pc(LEFT + 0.03)) y=(y) { "block " (first.block) }
            text x="100%" y=(y) text-anchor="end" { "block " (last.block) }
        }
    }
}

fn unit(symbol: &str) -> &str {
    if symbol.is_empty() { "numbers" } else { symbol }
}

/// Renders the margin, labelled lines and 1 on an axis of log-ratios.
pub(super) fn ratio_lines(axis: &Values, margin: f64) -> Markup {
    let reach = Span::new(axis.low.exp(), 1.0, axis.high.exp());
    let ticks = RatioAxis::of_spans([(reach, 0.0)].into_iter()).ticks();
    let zone = (axis.y(margin), axis.y(-margin));
    html! {
        rect.zone x=(pc(LEFT)) y=(px(zone.0)) width=(pc(1.0 - LEFT)) height=(px(zone.1 - zone.0)) {}
        @for tick in ticks {
            @if (axis.low..=axis.high).contains(&tick.ln()) { (grid(axis.y(tick.ln()), &tick_label(tick))) }
        }
        (across("one", axis.y(0.0)))
    }
}

fn ratios_by_block(cell: &DossierCell, name: &str) -> Markup {
    let blocks = &cell.blocks;
    let ln = |block: &DossierBlock| block.ratio(cell.better).map(f64::ln);
    let span = cell.ratio.map(|span| [span.low, span.high].map(f64::ln));
    let margin = cell.margin.ln_1p();
    let ends = span.into_iter().flatten().chain([0.0, margin, -margin]);
    let all = blocks.iter().filter_map(ln).chain(ends);
    let Some(axis) = Values::over(all, HEIGHT).filter(|_| blocks.iter().any(|it| ln(it).is_some()))
    else {
        return html! {};
    };
    let described = format!(
        "{name}: the cost of {} against {} in each of {} blocks, with the interval and the margin",
        harmless(&cell.arm),
        harmless(&cell.baseline),
        blocks.len()
    );
    let last = blocks.iter().map(|block| block.position).max().unwrap_or(0);
    html! {
        figure {
            svg width="100%" height=(px(HEIGHT + 18.0)) role="img" aria-label=(described) {
                (ratio_lines(&axis, margin))
                @if let Some([low, high]) = span {
                    g.(tone(cell)) {
                        rect.band x=(pc(LEFT)) y=(px(axis.y(high))) width=(pc(1.0 - LEFT)) height=(px((axis.y(low) - axis.y(high)).max(1.0))) {}
                        @if let Some(ratio) = &cell.ratio { (across("line", axis.y(ratio.point.ln()))) }
                    }
                }
                (plot(&html! {
                    (launches(blocks))
                    @if blocks.len() <= MOST_POINTS {
                        @let late = dots(points(blocks, &axis, |block| ln(block).filter(|_| block.position * 2 > last)));
                        path.ring d=(late) {}
                        path.hole d=(late) {}
                        path.dot d=(dots(points(blocks, &axis, |block| ln(block).filter(|_| block.position * 2 <= last)))) {}
                    } @else {
                        (bands(blocks, &axis, ln))
                    }
                }))
                (below(blocks, "ratio"))
            }
            figcaption {
                "Cost of each block, × " (harmless(&cell.baseline)) ", logarithmic; line and band: estimate and 95 % interval; grey: the margin."
                @if blocks.len() <= MOST_POINTS && last > 0 { " ● early, ○ late in the order of its block." }
            }
        }
    }
}

/// Returns the CSS class for a cell's colour.
pub(super) fn tone(cell: &DossierCell) -> &'static str {
    class(words::verdict(cell).1)
}

/// Returns the CSS class of a colour.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Cost => "cost",
        Tone::SomeCost => "some",
        Tone::Nothing => "nothing",
        Tone::Less => "less",
        Tone::Open => "open",
    }
}

/// Computes median, quartiles and ends of up to `BANDS` groups of neighbouring blocks.
fn bands(
    blocks: &[DossierBlock],
    axis: &Values,
    value: impl Fn(&DossierBlock) -> Option<f64>,
) -> Markup {
    let size = blocks.len().div_ceil(BANDS);
    let groups: Vec<Vec<f64>> = blocks
        .chunks(size)
        .map(|chunk| {
            let mut values: Vec<f64> = chunk.iter().filter_map(&value).collect();
            values.sort_by(f64::total_cmp);
            values
        })
        .collect();
    let at = |values: &[f64], share: f64| {
        values[tare_model::whole_place(((values.len() - 1) as f64 * share).round())]
    };
    let n = groups.len();
    let [mut lines, mut boxes] = [String::new(), String::new()];
    let mut middles = Vec::new();
    for (place, values) in groups
        .iter()
        .enumerate()
        .filter(|(_, values)| !values.is_empty())
    {
        let y = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| axis.y(at(values, share)));
        let middle = x(place, n);
        let _ = write!(lines, "M{middle:.0} {:.0}V{:.0}", y[0], y[4]);
        let _ = write!(boxes, "M{middle:.0} {:.0}V{:.0}", y[1], y[3]);
        middles.push((middle, y[2]));
    }
    html! {
        path.thin d=(lines) {}
        path.box d=(boxes) {}
        path.mid d=(dots(middles.into_iter())) {}
    }
}

/// Returns the positions of the blocks that have a value.
fn points<'a>(
    blocks: &'a [DossierBlock],
    axis: &'a Values,
    value: impl Fn(&DossierBlock) -> Option<f64> + 'a,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    blocks
        .iter()
        .enumerate()
        .filter_map(move |(place, block)| Some((x(place, blocks.len()), axis.y(value(block)?))))
}

/// Renders efficiency over the number of instances, one line per arm.
pub(super) fn efficiency(series: &Concurrency, name: &str) -> Markup {
    let arms: Vec<_> = series
        .arms
        .iter()
        .filter(|arm| arm.arm != A_PRIME)
        .collect();
    let points = || arms.iter().flat_map(|arm| &arm.points[..]);
    let numbers: BTreeSet<u32> = points().map(|point| point.instances).collect();
    let numbers: Vec<u32> = numbers.into_iter().collect();
    let spans = || {
        // One instance relative to itself is 1 by definition.
        points().filter_map(|point| point.efficiency.filter(|_| point.instances > 1))
    };
    let ends = spans().flat_map(|span| [span.low, span.high]);
    let Some(mut axis) = Values::over(ends.chain([1.0]), HEIGHT) else {
        return html! {};
    };
    if numbers.len() < 2 {
        return html! {};
    }
    axis.low = 0.0;
    let place = |instances: u32| {
        let at = numbers.iter().position(|it| *it == instances).unwrap_or(0);
        LEFT + (1.0 - LEFT) * x(at, numbers.len()) / INNER
    };
    let (ticks, step) = axis.ticks();
    html! {
        figure {
            svg width="100%" height=(px(HEIGHT + 22.0)) role="img" aria-label={ (name) ": efficiency by the number of instances, a line for each arm" } {
                @for tick in ticks { (grid(axis.y(tick), &label(tick, step))) }
                (across("one", axis.y(1.0)))
                @for number in &numbers {
                    text x=(pc(place(*number))) y=(px(HEIGHT + 16.0)) text-anchor="middle" { (number) }
                }
                @for (number, arm) in arms.iter().enumerate() {
                    @let points: Vec<(f64, Span)> = arm.points.iter().filter_map(|point| Some((place(point.instances), point.efficiency?))).collect();
                    g class={ "k" (number % 6) } {
                        @for pair in points.windows(2) {
                            line.line x1=(pc(pair[0].0)) x2=(pc(pair[1].0)) y1=(px(axis.y(pair[0].1.point))) y2=(px(axis.y(pair[1].1.point)))
                                stroke-dasharray=[(number > 0).then(|| format!("{} 3", 3 + 3 * number))] {}
                        }
                        @for (at, span) in &points {
                            line.line x1=(pc(*at)) x2=(pc(*at)) y1=(px(axis.y(span.low))) y2=(px(axis.y(span.high))) {}
                            circle.mark cx=(pc(*at)) cy=(px(axis.y(span.point))) r="3" {}
                        }
                    }
                }
            }
            figcaption {
                "Efficiency (throughput against that of as many instances alone) over the number of instances; whiskers: " (interval_text(spans())) ". "
                @for (number, arm) in arms.iter().enumerate() {
                    @if number > 0 { ", " }
                    span class={ "k" (number % 6) } {
                        "● " (harmless(&arm.arm)) (["", " (dashed)", " (long dashes)"].get(number).copied().unwrap_or_default())
                    }
                }
                "."
            }
        }
    }
}

/// Formats a value with its unit and the digits that its interval supports.
pub(super) fn number(value: f64, half_width: f64, unit: &str) -> String {
    let scale = scale_for(value, unit);
    let digits = if half_width > 0.0 {
        significant(half_width / scale.factor, 2)
    } else {
        significant((value / scale.factor).abs(), 4)
    };
    with_unit(&format!("{:.digits$}", value / scale.factor), scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_values_holds_them_with_few_round_ticks() {
        for values in [
            vec![1.0],
            vec![3.0, 3.0],
            vec![-5.0, 12.0],
            vec![1e9, 1.000_1e9],
            vec![0.0],
        ] {
            let axis = Values::over(values.iter().copied(), 100.0).unwrap();
            for value in &values {
                assert!((0.0..=100.0).contains(&axis.y(*value)));
            }
            let (ticks, step) = axis.ticks();
            assert!((1..=8).contains(&ticks.len()), "{values:?}: {ticks:?}");
            assert!(step > 0.0);
        }
        assert!(Values::over([f64::NAN].into_iter(), 100.0).is_none());
    }

    #[test]
    fn many_blocks_are_drawn_in_bounded_room() {
        let axis = Values::over([0.0, 1.0].into_iter(), 100.0).unwrap();
        let blocks: Vec<DossierBlock> = (0..100_000)
            .map(|block| DossierBlock {
                block,
                position: 0,
                launch: 0,
                base: 1.0,
                env: f64::from(block % 97) / 97.0,
                base_alone: None,
                env_alone: None,
                apart: None,
            })
            .collect();
        let drawn = bands(&blocks, &axis, |block| Some(block.env)).into_string();
        assert_eq!(drawn.matches("h0").count(), BANDS);
        assert!(drawn.len() < 5_000, "{}", drawn.len());
    }
}
