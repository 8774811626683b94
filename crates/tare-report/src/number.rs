//! Formats numbers with the digits that their interval supports: two significant digits of its half-width.
//!
//! More digits would be noise, fewer would hide the interval. Values are scaled to a unit with one to three digits
//! before the point; times and rates by thousands, bytes by 1 024. Values without an interval get four significant
//! digits.

use tare_model::dossier::Span;
use tare_model::whole_place;

use tare_core::analyze::LEVEL;
use tare_core::foreign::NO_BREAK;

/// A printed unit and its size in units of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) symbol: &'static str,
    pub(crate) factor: f64,
}

impl Scale {
    /// Returns a column heading with the unit of its numbers.
    pub(crate) fn after(self, heading: &str) -> String {
        match self.symbol {
            "" => heading.to_owned(),
            unit => format!("{heading}, {unit}"),
        }
    }
}

const fn scale(symbol: &'static str, factor: f64) -> Scale {
    Scale { symbol, factor }
}

/// Returns a unit with its thousands, millions and billions.
const fn thousands([unit, kilo, mega, giga]: [&'static str; 4]) -> [Scale; 4] {
    [
        scale(unit, 1.0),
        scale(kilo, 1e3),
        scale(mega, 1e6),
        scale(giga, 1e9),
    ]
}

const TIMES: &[Scale] = &thousands(["ns", "µs", "ms", "s"]);
const BYTES: &[Scale] = &[
    scale("B", 1.0),
    scale("KiB", 1024.0),
    scale("MiB", 1_048_576.0),
    scale("GiB", 1_073_741_824.0),
];
const BYTE_RATES: &[Scale] = &thousands(["B/s", "kB/s", "MB/s", "GB/s"]);
const RATES: &[Scale] = &thousands(["op/s", "kop/s", "Mop/s", "Gop/s"]);
const COUNTS: &[Scale] = &thousands(["", "k", "M", "G"]);
const RATIOS: &[Scale] = &[scale("", 1.0)];

/// Returns the scale in which `value`, in the dossier's unit, has one to three digits before the point.
pub(crate) fn scale_for(value: f64, unit: &str) -> Scale {
    let scales = match unit {
        "ns" => TIMES,
        "B" => BYTES,
        "B/s" => BYTE_RATES,
        "op/s" => RATES,
        "count" => COUNTS,
        _ => RATIOS,
    };
    let fits = scales.iter().rev().find(|it| value.abs() >= it.factor);
    *fits.unwrap_or(&scales[0])
}

/// From this ratio on, each value gets its own unit and digits.
const FAR: f64 = 10.0;

/// Whether two values are too far apart to share unit and digits.
pub(crate) fn are_far(one: &Span, other: &Span) -> bool {
    let (one, other) = (one.point.abs(), other.point.abs());
    f64::max(one, other) >= FAR * f64::min(one, other)
}

/// Returns the scales of two values shown next to each other: the same unless they are far apart.
pub(crate) fn scales_for(base: Option<&Span>, env: Option<&Span>, unit: &str) -> (Scale, Scale) {
    let of = |span: Option<&Span>| scale_for(span.map_or(0.0, |span| span.point), unit);
    match (base, env) {
        (Some(one), Some(other)) if are_far(one, other) => (of(base), of(env)),
        _ => (of(base.or(env)), of(base.or(env))),
    }
}

/// Returns the digits after the point that show two significant digits of a half-width; at most six.
pub(crate) fn decimals(half_width: f64) -> usize {
    significant(half_width, 2)
}

/// Returns the digits after the point that show `digits` significant digits of `size`; at most six.
pub(crate) fn significant(size: f64, digits: i32) -> usize {
    if !(size.is_finite() && size > 0.0) {
        return 0;
    }
    let places = f64::from(digits - 1) - size.log10().floor();
    whole_place(places.clamp(0.0, 6.0))
}

/// The maximum digits after the point that fit a label.
const MOST_PLACES: usize = 4;
/// The maximum digits of any number.
const MOST_DIGITS: f64 = 17.0;

/// Formats a value on an axis whose labels are `step` apart, with as many digits as distinguish it from its
/// neighbours; as a power of ten if those are too many.
pub(crate) fn label(value: f64, step: f64) -> String {
    if value == 0.0 || !(step.is_finite() && step > 0.0) {
        return format!("{value:.0}");
    }
    // A step that is a sum of binary fractions can be slightly below its power of ten.
    let order = |size: f64| (size.log10() + 1e-9).floor();
    let places = whole_place(-order(step));
    if places <= MOST_PLACES && value.abs() < 1e7 {
        return format!("{value:.places$}");
    }
    let digits = (order(value.abs()) - order(step)).min(MOST_DIGITS);
    powered(value, whole_place(digits))
}

/// Returns a number without the zeros at the end of its fraction.
pub(crate) fn without_idle_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// Formats `1.2e-7`: at most `digits` digits after the point, without trailing zeros.
pub(crate) fn powered(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((number, power)) = text.split_once('e') else {
        return text;
    };
    let number = without_idle_zeros(number);
    match power {
        "0" => number.to_owned(),
        _ => format!("{number}e{power}"),
    }
}

/// Returns the digits after the point that a span supports.
pub(crate) fn decimals_of(span: &Span, factor: f64) -> usize {
    let half = (span.high - span.low) / 2.0 / factor;
    if half > 0.0 {
        decimals(half)
    } else {
        significant(span.point.abs() / factor, 4)
    }
}

/// The number of digits to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Two significant digits of the half-width.
    Full,
    /// For narrow columns: three significant digits of a value, one of a ratio's half-width; never more than `Full`.
    Short,
}

/// Returns the digits after the point of a span's point estimate.
pub(crate) fn decimals_of_value(span: &Span, scale: Scale, digits: Digits) -> usize {
    let full = decimals_of(span, scale.factor);
    match digits {
        Digits::Full => full,
        Digits::Short => full.min(significant((span.point / scale.factor).abs(), 3)),
    }
}

/// Formats the point estimate in a given scale, without its unit.
pub(crate) fn value(span: &Span, scale: Scale, digits: Digits) -> String {
    let decimals = decimals_of_value(span, scale, digits);
    format!("{:.decimals$}", span.point / scale.factor)
}

/// Joins a number and its unit with a space.
pub(crate) fn with_unit(number: &str, scale: Scale) -> String {
    if scale.symbol.is_empty() {
        number.to_owned()
    } else {
        format!("{number}{NO_BREAK}{}", scale.symbol)
    }
}

/// Formats a value, or a dash if there is none.
pub(crate) fn or_dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), shown)
}

/// Formats a value with its unit and all its digits; a dash if there is none.
pub(crate) fn whole(span: Option<&Span>, scale: Scale) -> String {
    or_dash(span, |span| {
        with_unit(&value(span, scale, Digits::Full), scale)
    })
}

/// Formats a value in its best unit; a dash if there is none.
pub(crate) fn typical(span: Option<&Span>, unit: &str) -> String {
    or_dash(span, |span| {
        let scale = scale_for(span.point, unit);
        with_unit(&value(span, scale, Digits::Short), scale)
    })
}

/// Formats `1.160 [1.154, 1.167]`.
pub(crate) fn interval(span: &Span, digits: Digits) -> String {
    let half = (span.high - span.low) / 2.0;
    let digits = match digits {
        Digits::Short if half > 0.0 => significant(half, 1),
        _ => decimals_of(span, 1.0),
    };
    let digits = digits.max(2);
    format!(
        "{:.digits$} [{:.digits$}, {:.digits$}]",
        span.point, span.low, span.high
    )
}

/// Returns the note after a span whose level is below the run's, as with fewer than six blocks.
pub(crate) fn level_text(span: &Span) -> String {
    match span.level {
        Some(level) if level < LEVEL => format!(" (range, {:.0} % only)", level * 100.0),
        _ => String::new(),
    }
}

/// Formats a ratio as `1.42 [1.37, 1.48]` with one significant digit of its interval's width; with more if an end
/// would be printed as 1 without being 1.
pub(crate) fn glance(span: &Span) -> String {
    let least = if span.point < 10.0 { 2 } else { 0 };
    let mut digits = significant(span.high - span.low, 1).clamp(least, 3);
    #[allow(clippy::float_cmp, reason = "1 itself is printed as 1")]
    let is_one = |end: f64| end != 1.0 && format!("{end:.digits$}") == format!("{:.digits$}", 1.0);
    let excludes_one = span.low > 1.0 || span.high < 1.0;
    if excludes_one && (is_one(span.low) || is_one(span.high)) {
        digits = 3;
    }
    format!(
        "{:.digits$} [{:.digits$}, {:.digits$}]",
        span.point, span.low, span.high
    )
}

/// Formats a difference as `+14.70 ns`, or its upper bound if its interval contains 0.
pub(crate) fn difference(span: &Span, unit: &str) -> String {
    let most = f64::max(span.low.abs(), span.high.abs());
    let scale = scale_for(most, unit);
    if span.low <= 0.0 && span.high >= 0.0 {
        if most == 0.0 {
            return with_unit("0", scale);
        }
        let most = most / scale.factor;
        return with_unit(&format!("< {most:.*}", significant(most, 2)), scale);
    }
    let digits = decimals_of(span, scale.factor);
    with_unit(&format!("{:+.digits$}", span.point / scale.factor), scale)
}

/// Formats an added amount with its interval in one unit: `+312 [298, 330] ms`.
pub(crate) fn added(span: &Span, unit: &str) -> String {
    let scale = scale_for(f64::max(span.low.abs(), span.high.abs()), unit);
    let [low, point, high] = [span.low, span.point, span.high].map(|end| end / scale.factor);
    let digits = significant(high - low, 2).min(significant(point, 3));
    let text = format!("{point:+.digits$} [{low:.digits$}, {high:.digits$}]");
    with_unit(&text, scale)
}

/// Formats a fraction as a percentage without trailing zeros: `2 %`, `0.5 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let text = format!("{percent:.*}", significant(percent, 2));
    format!("{}{NO_BREAK}%", without_idle_zeros(&text))
}

/// Formats a range as `15–17`, `0.4–3`, or `16` if both ends round to the same number. An end that is not 0 is never
/// printed as 0.
pub(crate) fn range(low: f64, high: f64) -> String {
    let mut digits = significant((high - low) / 2.0, 1).min(3);
    let is_lost = |value: f64, digits: usize| {
        value != 0.0
            && format!("{value:.digits$}")
                .bytes()
                .all(|it| matches!(it, b'0' | b'.' | b'-'))
    };
    while digits < 3 && (is_lost(low, digits) || is_lost(high, digits)) {
        digits += 1;
    }
    let (from, to) = (format!("{low:.digits$}"), format!("{high:.digits$}"));
    if from == to {
        from
    } else {
        format!("{from}–{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_width_shows_two_significant_digits() {
        assert_eq!(
            interval(&Span::new(1.154, 1.160_3, 1.167), Digits::Full),
            "1.1603 [1.1540, 1.1670]"
        );
        assert_eq!(
            interval(&Span::new(0.9, 1.2, 1.6), Digits::Full),
            "1.20 [0.90, 1.60]"
        );
        assert_eq!(
            interval(&Span::new(20.0, 43.0, 90.0), Digits::Full),
            "43.00 [20.00, 90.00]"
        );
        let time = Span::new(91_800.0, 92_123.4, 92_600.0);
        assert_eq!(
            value(&time, scale_for(time.point, "ns"), Digits::Full),
            "92.12"
        );
        assert_eq!(scale_for(time.point, "ns").symbol, "µs");
    }

    #[test]
    fn added_time_and_interval_share_one_unit() {
        let text = added(&Span::new(298.2e6, 312.4e6, 330.1e6), "ns");
        assert_eq!(text, format!("+312 [298, 330]{NO_BREAK}ms"));
        let text = added(&Span::new(-0.21e6, -0.1e6, 0.04e6), "ns");
        assert_eq!(text, format!("-100 [-210, 40]{NO_BREAK}µs"));
    }

    #[test]
    fn two_sides_share_a_unit_unless_they_are_far_apart() {
        let units = |base: f64, env: f64| {
            let [base, env] = [base, env].map(|point| Span::new(point, point, point));
            let (base, env) = scales_for(Some(&base), Some(&env), "ns");
            (base.symbol, env.symbol)
        };
        assert_eq!(units(92.0, 107.0), ("ns", "ns"));
        assert_eq!(units(950.0, 1050.0), ("ns", "ns"));
        assert_eq!(units(507e3, 191e6), ("µs", "ms"));
        assert_eq!(units(191e6, 507e3), ("ms", "µs"));
        assert_eq!(units(0.0, 5e3), ("ns", "µs"));
    }

    #[test]
    fn axis_labels_are_distinct_at_any_scale() {
        for (from, step) in [
            (0.0, 2e-8),
            (0.0, 0.1),
            (0.0, 20.0),
            (1.0, 5e-9),
            (1e9, 1.0),
            (3e-300, 1e-301),
        ] {
            let ticks = (0..6).map(|n| from + f64::from(n) * step);
            let labels: Vec<String> = ticks.map(|tick| label(tick, step)).collect();
            let mut apart = labels.clone();
            apart.dedup();
            assert_eq!(apart, labels);
            for (n, label) in (0..).zip(&labels) {
                let read: f64 = label.parse().unwrap();
                let meant = from + f64::from(n) * step;
                assert!((read - meant).abs() < step / 4.0, "{label}: {meant}");
            }
        }
        assert_eq!(label(0.3, 0.1), "0.3");
        assert_eq!(label(0.1 + 0.2, 0.1), "0.3");
        assert_eq!(label(1.2e-7, 2e-8), "1.2e-7");
        assert_eq!(label(6e-8, 2e-8), "6e-8");
        assert_eq!(label(f64::INFINITY, 2e-8), "inf");
    }

    #[test]
    fn short_numbers_show_fewer_digits_and_never_more() {
        let ratio = Span::new(1.154, 1.160_3, 1.167);
        assert_eq!(interval(&ratio, Digits::Short), "1.160 [1.154, 1.167]");
        let noisy = Span::new(80.0, 106.83, 130.0);
        let plain = scale("", 1.0);
        assert_eq!(value(&noisy, plain, Digits::Short), "107");
        let quiet = Span::new(106.82, 106.83, 106.84);
        assert_eq!(value(&quiet, plain, Digits::Full), "106.830");
        assert_eq!(value(&quiet, plain, Digits::Short), "107");
    }

    #[test]
    fn a_span_without_width_shows_four_digits() {
        assert_eq!(
            value(&Span::new(2.0, 2.0, 2.0), scale("", 1.0), Digits::Full),
            "2.000"
        );
        assert_eq!(
            value(&Span::new(0.0, 0.0, 0.0), scale("", 1.0), Digits::Full),
            "0"
        );
    }

    #[test]
    fn short_ratio_never_hides_that_it_excludes_one() {
        assert_eq!(glance(&Span::new(1.374, 1.423, 1.481)), "1.42 [1.37, 1.48]");
        assert_eq!(glance(&Span::new(114.8, 191.87, 310.6)), "192 [115, 311]");
        assert_eq!(
            glance(&Span::new(0.97, 0.99, 0.998)),
            "0.990 [0.970, 0.998]"
        );
        assert_eq!(glance(&Span::new(0.97, 0.99, 1.002)), "0.99 [0.97, 1.00]");
    }

    #[test]
    fn possibly_zero_difference_is_shown_as_bound() {
        assert_eq!(
            difference(&Span::new(-1.2, -0.1, 0.8), "ns"),
            "< 1.2\u{a0}ns"
        );
        assert_eq!(
            difference(&Span::new(14.1, 14.7, 15.3), "ns"),
            "+14.70\u{a0}ns"
        );
        assert_eq!(
            difference(&Span::new(-5200.0, -5000.0, -4800.0), "ns"),
            "-5.00\u{a0}µs"
        );
        assert_eq!(difference(&Span::new(0.0, 0.0, 0.0), "ns"), "0\u{a0}ns");
    }

    #[test]
    fn range_never_prints_nonzero_end_as_zero() {
        assert_eq!(range(15.2, 16.9), "15.2–16.9");
        assert_eq!(range(14.0, 17.9), "14–18");
        assert_eq!(range(0.3, 4.0), "0.3–4.0");
        assert_eq!(range(3.0, 3.0), "3");
    }

    #[test]
    fn percentages_have_no_idle_zeros() {
        assert_eq!(percent(0.02), "2\u{a0}%");
        assert_eq!(percent(0.005), "0.5\u{a0}%");
        assert_eq!(percent(0.1), "10\u{a0}%");
        assert_eq!(percent(0.0721), "7.2\u{a0}%");
        assert_eq!(percent(1.5), "150\u{a0}%");
    }
}
