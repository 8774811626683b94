//! Words for the size of a difference: percentages for small effects, factors for others, ranges, levels.

use tare_model::dossier::{DossierCell, Span};

use crate::workload::user_command;

/// From this ratio on a difference is written as a factor, below it as a percentage.
const FACTOR_FROM: f64 = 1.1;
/// Two levels that differ by this factor get a unit each.
const FAR: f64 = 10.0;

/// The words for more and less of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(super) worse: &'static str,
    pub(super) better: &'static str,
    /// The difference as a noun.
    pub(super) loss: &'static str,
    pub(super) gain: &'static str,
    /// The beginning of a sentence about the metric; empty for the command itself.
    pub(super) subject: &'static str,
}

impl Terms {
    pub(crate) fn for_metric(metric: &str) -> Self {
        let (worse, better, loss, gain) = match metric {
            user_command::WALL | user_command::REQUEST => {
                ("slower", "faster", "slowdown", "speed-up")
            }
            user_command::CPU => (
                "more CPU time",
                "less CPU time",
                "extra CPU time",
                "saving of CPU time",
            ),
            _ => ("worse", "better", "loss", "gain"),
        };
        Self {
            worse,
            better,
            loss,
            gain,
            subject: if metric == user_command::REQUEST {
                "A request is "
            } else {
                ""
            },
        }
    }

    fn side(self, ratio: f64) -> &'static str {
        if ratio > 1.0 { self.worse } else { self.better }
    }
}

/// "1.15× slower", "3 % faster".
pub(super) fn difference(ratio: f64, terms: Terms) -> String {
    let side = terms.side(ratio);
    match factor(ratio) {
        Some(factor) => format!("{} {side}", times(factor)),
        None => format!("{} % {side}", percent(ratio, digits(&[ratio]))),
    }
}

/// "95 % CI 1.13–1.16", "95 % CI 2–4 %": in the same form as the point estimate.
pub(super) fn interval(ratio: &Span) -> String {
    let is_worse = ratio.point > 1.0;
    let (low, high) = if is_worse {
        (ratio.low, ratio.high)
    } else {
        (ratio.high, ratio.low)
    };
    if factor(ratio.point).is_none() {
        let digits = digits(&[low, high]);
        return format!(
            "95 % CI {}–{} %",
            percent(low, digits),
            percent(high, digits)
        );
    }
    let [low, high] = [low, high].map(|end| if is_worse { end } else { 1.0 / end });
    format!("95 % CI {low:.2}–{high:.2}")
}

/// "0–2 % faster", "between 3 % faster and 5 % slower".
pub(super) fn range(ratio: &Span, terms: Terms) -> String {
    let (low, high) = (ratio.low, ratio.high);
    let digits = digits(&[low, high]);
    if low.min(1.0 / high) <= 0.5 {
        return format!(
            "between {} and {}",
            difference(low, terms),
            difference(high, terms)
        );
    }
    let is_nothing = |end: f64| {
        percent(end, digits)
            .bytes()
            .all(|it| matches!(it, b'0' | b'.'))
    };
    let [of_low, of_high] = [low, high].map(|end| percent(end, digits));
    match (is_nothing(low), is_nothing(high)) {
        (true, true) => format!("the same within {} %", percent(1.01, digits)),
        _ if low >= 1.0 || is_nothing(low) => format!("{of_low}–{of_high} % {}", terms.worse),
        _ if high <= 1.0 || is_nothing(high) => format!("{of_high}–{of_low} % {}", terms.better),
        _ => format!(
            "between {of_low} % {} and {of_high} % {}",
            terms.better, terms.worse
        ),
    }
}

/// "1 %" from a fraction.
pub(super) fn fraction(part: f64) -> String {
    let ratio = 1.0 + part.abs();
    format!("{} %", percent(ratio, digits(&[ratio])))
}

/// "29.8 → 33.6 ms".
pub(super) fn levels(cell: &DossierCell) -> Option<String> {
    let (base, env) = (cell.base?.point, cell.env?.point);
    let (least, most) = (base.abs().min(env.abs()), base.abs().max(env.abs()));
    if cell.unit != "ns" {
        return Some(format!("{} → {}", significant(base), significant(env)));
    }
    if most >= FAR * least {
        return Some(format!("{} → {}", time(base), time(env)));
    }
    let (scale, unit) = scale(most);
    Some(format!(
        "{} → {} {unit}",
        significant(base / scale),
        significant(env / scale)
    ))
}

/// A time in nanoseconds, with three digits.
pub(super) fn time(ns: f64) -> String {
    let (scale, unit) = scale(ns.abs());
    format!("{} {unit}", significant(ns / scale))
}

fn scale(ns: f64) -> (f64, &'static str) {
    match ns {
        _ if ns >= 1e9 => (1e9, "s"),
        _ if ns >= 1e6 => (1e6, "ms"),
        _ if ns >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

fn significant(value: f64) -> String {
    let digits = match value.abs() {
        it if it >= 100.0 => 0,
        it if it >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// The factor between two values in either direction, if it is large enough for one.
fn factor(ratio: f64) -> Option<f64> {
    let factor = ratio.max(1.0 / ratio);
    (factor >= FACTOR_FROM).then_some(factor)
}

pub(super) fn times(factor: f64) -> String {
    if factor >= 10.0 {
        format!("{}×", significant(factor))
    } else {
        format!("{factor:.2}×")
    }
}

/// The number of decimals: one if all differences are below one per cent.
fn digits(ratios: &[f64]) -> usize {
    let largest = ratios.iter().map(|it| (it - 1.0).abs()).fold(0.0, f64::max);
    usize::from(largest < 0.0095)
}

fn percent(ratio: f64, digits: usize) -> String {
    format!("{:.digits$}", 100.0 * (ratio - 1.0).abs())
}
