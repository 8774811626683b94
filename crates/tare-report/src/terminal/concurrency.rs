//! Prints concurrent instances: for each metric a table of arms and instance counts, and whether the count changes
//! the overhead of an environment.
//!
//! Stretch, efficiency and fairness compare an arm with itself and say nothing about environments; the line below the
//! table does. The series of the A/A control is only in the dossier.

use tare_model::Spread;
use tare_model::dossier::{Concurrency, ConcurrencyArm, ConcurrencyPoint, Dossier, Doubling, Span};
use tare_model::study::A_PRIME;
use tare_stats::Verdict;

use tare_core::analyze::LEVEL;

use super::text::{Column, Paint, Text, bold, painted, paragraph, row_in_line, table_or};
use super::{Style, WIDE};
use crate::number::{Digits, interval, or_dash, percent, range, significant, typical};
use crate::words::{self, Tone};
use tare_core::foreign::{NO_BREAK, harmless};

/// Draws the series of a run, if there are any.
pub(super) fn draw(out: &mut String, dossier: &Dossier, style: Style) {
    for series in &dossier.concurrency {
        out.push('\n');
        draw_one(out, series, dossier, style);
    }
    if !dossier.concurrency.is_empty() {
        out.push('\n');
        let mut text = "stretch: how many times slower an instance is than one alone in the same place; fairness: 1.00 if all fare alike; efficiency: their throughput against that of as many alone.".to_owned();
        text.push_str(" makespan: from the first start to the last end, preparations of a program included; probes stop by time, so theirs says only how long they ran.");
        paragraph(out, "", &text, style);
    }
}

fn draw_one(out: &mut String, series: &Concurrency, dossier: &Dossier, style: Style) {
    let mut heading = format!(
        "{} with several at once, as {}",
        title(series, dossier),
        series.spread
    );
    if series.spread == Spread::Environments {
        heading = heading.replace("as environments", "each in an environment of its own");
    }
    bold(out, &heading, style);
    let arms: Vec<&ConcurrencyArm> = series
        .arms
        .iter()
        .filter(|arm| arm.arm != A_PRIME)
        .collect();
    let is_wide = style.width >= WIDE;
    let rows: Vec<Vec<Text>> = arms
        .iter()
        .flat_map(|arm| {
            let places = 0..arm.points.len();
            places.map(|place| row(series, arm, place, is_wide))
        })
        .collect();
    table_or(out, &columns(is_wide), &rows, style, row_in_line);
    for arm in &arms {
        for text in remarks(arm) {
            paragraph(out, "* ", &format!("{}: {text}", arm.arm), style);
        }
    }
    let baseline = arms.iter().find(|arm| arm.baseline);
    let baseline = baseline.map_or("the baseline", |arm| arm.arm.as_str());
    for arm in &arms {
        if let Some(doubling) = &arm.doubling {
            let (text, tone) = interaction(doubling);
            let line = format!("{} against {baseline}: {text}", arm.arm);
            painted(out, Paint::for_tone(tone), &line, style);
        }
        if let Some(scaling) = &arm.scaling {
            let bounded = |value: f64, bounds: &Option<Span>| match bounds {
                Some(span) => interval(span, Digits::Short),
                None => format!("{value:.3}"),
            };
            let peak = scaling
                .peak
                .map(|peak| format!(", most throughput near {peak:.0} instances"))
                .unwrap_or_default();
            let text = format!(
                "{} scales as {}: {} done one at a time, {} lost to agreeing{peak}",
                arm.arm,
                scaling.law,
                bounded(scaling.alpha, &scaling.alpha_interval),
                bounded(scaling.beta, &scaling.beta_interval),
            );
            paragraph(out, "", &text, style);
        }
    }
}

/// Returns the metric with the parameters that distinguish this series from others of the metric.
pub(crate) fn title(series: &Concurrency, dossier: &Dossier) -> String {
    let mut name = vec![words::spoken(&series.metric)];
    let twins = || {
        let others = dossier.concurrency.iter();
        others.filter(|other| other.metric == series.metric)
    };
    for (param, value) in &series.params.0 {
        if twins().any(|twin| twin.params.0.get(param) != Some(value)) {
            name.push(format!("{param}={value}"));
        }
    }
    name.extend(series.path.map(|path| path.to_string()));
    harmless(&name.join(" "))
}

fn columns(is_wide: bool) -> Vec<Column> {
    let mut columns = vec![Column::words("arm", 6)];
    columns.extend(["N", "mean"].map(Column::number));
    if is_wide {
        columns.push(Column::number("worst"));
    }
    columns.extend(["makespan", "stretch [95 %]", "fair", "efficient"].map(Column::number));
    if is_wide {
        columns.extend(["start skew", "all at work"].map(Column::number));
    }
    columns
}

fn row(series: &Concurrency, arm: &ConcurrencyArm, place: usize, is_wide: bool) -> Vec<Text> {
    let point = &arm.points[place];
    let name = if place == 0 {
        arm.arm.clone()
    } else {
        String::new()
    };
    let in_unit = |span: &Option<Span>, unit: &str| typical(span.as_ref(), unit);
    let share = |span: &Option<Span>| {
        or_dash(*span, |span| {
            format!("{:.0}{NO_BREAK}%", span.point * 100.0)
        })
    };
    let stretch = match &point.stretch {
        Some(_) if point.instances == 1 => "1".to_owned(),
        span => or_dash(span.as_ref(), bounds),
    };
    let fairness = or_dash(point.fairness, |span| format!("{:.2}", span.point));
    let mut texts = vec![
        name,
        point.instances.to_string(),
        in_unit(&point.value, &series.unit),
    ];
    if is_wide {
        texts.push(in_unit(&point.worst, &series.unit));
    }
    texts.extend([
        in_unit(&point.makespan_ns, "ns"),
        stretch,
        fairness,
        share(&point.efficiency),
    ]);
    if is_wide {
        texts.push(in_unit(&point.skew_ns, "ns"));
        texts.push(share(&point.overlap));
    }
    texts.into_iter().map(Text::plain).collect()
}

/// Formats `16 [14, 19]` with the digits that the half-width supports.
fn bounds(span: &Span) -> String {
    let digits = significant((span.high - span.low) / 2.0, 1).min(3);
    let level = span
        .level
        .map(|level| format!(" at {}", percent(level).replace(NO_BREAK, "")))
        .unwrap_or_default();
    format!(
        "{:.digits$} [{:.digits$}, {:.digits$}]{level}",
        span.point, span.low, span.high
    )
}

/// Returns remarks on the trials, each once with the instance counts it applies to.
fn remarks(arm: &ConcurrencyArm) -> Vec<String> {
    let mut shown: Vec<(&str, Vec<&ConcurrencyPoint>)> = Vec::new();
    for point in &arm.points {
        for flag in &point.flags {
            match shown.iter_mut().find(|(id, _)| *id == flag.id) {
                Some((_, points)) => points.push(point),
                None => shown.push((&flag.id, vec![point])),
            }
        }
    }
    shown
        .iter()
        .map(|(id, points)| {
            let mut details: Vec<&str> = points
                .iter()
                .flat_map(|point| &point.flags)
                .filter(|flag| flag.id == *id)
                .map(|flag| flag.detail.as_str())
                .collect();
            let meaning = words::meaning(id).unwrap_or(id);
            details.dedup();
            format!("{meaning} ({})", details.join("; "))
        })
        .collect()
}

/// Describes whether the number of instances changes the overhead, as a clause.
pub(crate) fn interaction(doubling: &Doubling) -> (String, Tone) {
    let (clause, tone) = by_itself(doubling);
    let is_claimed = doubling.verdict.is_cost() || doubling.verdict.is_gain();
    match doubling.q {
        Some(q) if is_claimed && q > 1.0 - LEVEL => {
            (format!("{clause}; by itself only, q = {q:.2}"), tone)
        }
        _ => (clause, tone),
    }
}

fn by_itself(doubling: &Doubling) -> (String, Tone) {
    let margin = percent(doubling.margin);
    let Some(ratio) = &doubling.ratio else {
        let n = doubling.n_blocks;
        let are = if n == 1 { "block is" } else { "blocks are" };
        let text = format!(
            "undecided whether its cost depends on the number of instances: {n} whole {are} too few"
        );
        return (text, Tone::Open);
    };
    let percents = |low: f64, high: f64| range(100.0 * low, 100.0 * high);
    let adds = || {
        format!(
            "each doubling of the instances adds {}{NO_BREAK}% to its cost",
            percents(ratio.low - 1.0, ratio.high - 1.0)
        )
    };
    let takes = || {
        format!(
            "each doubling of the instances takes {}{NO_BREAK}% off its cost",
            percents(1.0 - ratio.high, 1.0 - ratio.low)
        )
    };
    let worse = || format!("it gets worse with more instances: {}", adds());
    let better = || format!("it gets better with more instances: {}", takes());
    let unresolved = |text: String| format!("{text} (margin {margin})");
    match doubling.verdict {
        Verdict::MaterialCost => (worse(), Tone::Cost),
        Verdict::Cost => (unresolved(worse()), Tone::SomeCost),
        Verdict::NegligibleCost => (format!("negligible: {}", adds()), Tone::Nothing),
        Verdict::Equivalent => {
            let text = format!(
                "its cost does not depend on the number of instances: within {margin} for each doubling"
            );
            (text, Tone::Nothing)
        }
        Verdict::NegligibleGain => (format!("negligible: {}", takes()), Tone::Nothing),
        Verdict::Gain => (unresolved(better()), Tone::Less),
        Verdict::MaterialGain => (better(), Tone::Less),
        Verdict::Inconclusive => {
            let text = format!(
                "undecided whether its cost depends on the number of instances: × {} for each doubling",
                interval(ratio, Digits::Short)
            );
            (text, Tone::Open)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubling(verdict: Verdict, low: f64, high: f64) -> Doubling {
        Doubling {
            n_blocks: 10,
            ratio: Some(Span {
                point: f64::midpoint(low, high),
                low,
                high,
                level: None,
            }),
            ratio90: None,
            p: None,
            q: None,
            margin: 0.02,
            verdict,
        }
    }

    #[test]
    fn instance_effect_text_follows_verdict() {
        let shown = |verdict, low, high| interaction(&doubling(verdict, low, high)).0;
        let worse = shown(Verdict::MaterialCost, 1.15, 1.17);
        assert!(
            worse.contains("gets worse") && worse.contains("adds 15–17"),
            "{worse}"
        );
        let better = shown(Verdict::MaterialGain, 0.83, 0.85);
        assert!(
            better.contains("gets better") && better.contains("takes 15–17"),
            "{better}"
        );
        let same = shown(Verdict::Equivalent, 0.995, 1.005);
        assert!(same.contains("does not depend"), "{same}");
        let unknown = shown(Verdict::Inconclusive, 0.9, 1.2);
        assert!(
            unknown.starts_with("undecided") && unknown.contains("1.2"),
            "{unknown}"
        );
    }

    #[test]
    fn change_failing_correction_is_marked_with_q() {
        let mut worse = doubling(Verdict::MaterialCost, 1.15, 1.17);
        worse.q = Some(0.01);
        assert!(!interaction(&worse).0.contains("by itself"));
        worse.q = Some(0.09);
        assert!(
            interaction(&worse)
                .0
                .ends_with("; by itself only, q = 0.09")
        );
    }

    #[test]
    fn too_few_blocks_are_undecided() {
        let mut few = doubling(Verdict::Inconclusive, 1.0, 1.0);
        (few.ratio, few.n_blocks) = (None, 3);
        assert!(interaction(&few).0.contains("3 whole blocks are too few"));
    }
}
