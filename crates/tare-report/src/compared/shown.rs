//! Numbers and sentences of a comparison, shared by all formats.

use tare_core::compare::limits::Unit;
use tare_core::compare::row::{Effect, Row, Word};
use tare_core::compare::{Comparison, Decision};
use tare_core::foreign::harmless;

use crate::number::or_dash;
use crate::terminal::time;

/// Formats a change as `+4.1 % [3.3, 4.9]`, or `2.31× [2.28, 2.34]` if it is large.
pub fn change(effect: &Effect) -> String {
    if is_far(effect) {
        let times = |change: f64| significant(1.0 + change);
        return format!(
            "{}× [{}, {}]",
            times(effect.point),
            times(effect.low),
            times(effect.high)
        );
    }
    let digits = digits(effect);
    let number = |value: f64| minus(format!("{:.digits$}", value * 100.0));
    let point = minus(format!("{:+.digits$}", effect.point * 100.0));
    format!(
        "{point} % [{}, {}]",
        number(effect.low),
        number(effect.high)
    )
}

/// Whether a change is shown as a factor: from a factor of two upward.
fn is_far(effect: &Effect) -> bool {
    effect.point >= 1.0 || effect.point <= -0.5
}

fn digits(effect: &Effect) -> usize {
    let half = (effect.high - effect.low).abs() * 50.0;
    match half {
        half if half >= 3.0 => 0,
        half if half < 0.1 => 2,
        _ => 1,
    }
}

fn minus(text: String) -> String {
    // −0.0 is shown as 0.
    let is_zero = text
        .bytes()
        .all(|it| matches!(it, b'0' | b'.' | b'-' | b'+'));
    let text = if is_zero { text.replace('-', "") } else { text };
    text.replace('-', "−")
}

fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a level with its unit.
pub fn level(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => time(value),
        Unit::Bytes => tare_model::unit::bytes(value),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count => significant(value),
    }
}

/// Formats both levels: `118 ms → 123 ms`.
pub fn levels(row: &Row) -> String {
    let of = |value: Option<f64>| or_dash(value, |it| level(it, row.unit));
    format!("{} → {}", of(row.base), of(row.head))
}

/// Returns the verdict of a row, with its reason or bound.
pub fn says(row: &Row) -> String {
    let word = match (row.word, row.unit, row.exact) {
        (Word::Slower, Unit::Nanoseconds, _) => "slower",
        (Word::Faster, Unit::Nanoseconds, _) => "faster",
        (Word::Slower, ..) if row.metric.ends_with("picked.rate") => "worse",
        (Word::Faster, ..) if row.metric.ends_with("picked.rate") => "better",
        (Word::Slower, ..) => "more",
        (Word::Faster, ..) => "less",
        (Word::Same, _, true) if row.base == row.head => "the same",
        (Word::Same, ..) => "same",
        (Word::Inconclusive, ..) => "inconclusive",
    };
    match row.word {
        Word::Slower if row.confirmed == Some(true) => {
            format!("{word}, confirmed in fresh processes")
        }
        Word::Same if !row.exact => {
            // Equality is judged by the 90 % interval, which is narrower.
            let reach = |it: Effect| it.point.abs() + 0.42 * (it.high - it.low);
            let is_small = row.change.is_none_or(|it| reach(it) <= row.margin);
            if is_small {
                format!("same (within {})", percent(row.margin))
            } else {
                format!("same (less than {} apart)", level(row.floor, row.unit))
            }
        }
        Word::Inconclusive => match (&row.note, row.detectable) {
            (Some(note), _) => format!("{word}: {note}"),
            (None, Some(bound)) if bound >= 1.0 => {
                format!("{word}: too few blocks, or too much noise")
            }
            (None, Some(bound)) => format!("{word}: could have detected {}", percent(bound)),
            (None, None) => word.to_owned(),
        },
        _ => word.to_owned(),
    }
}

/// Formats a fraction as `2 %` or `0.5 %`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let text = if percent >= 10.0 || percent.fract().abs() < 1e-9 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.1}")
    };
    format!("{text} %")
}

/// Formats the size and direction of a change, as in `4.1 % slower` or `2.3× faster`.
pub fn change_text(effect: &Effect, unit: Unit) -> String {
    let (more, less) = match unit {
        Unit::Nanoseconds => ("slower", "faster"),
        _ => ("more", "less"),
    };
    let is_more = effect.point >= 0.0;
    let word = if is_more { more } else { less };
    if is_far(effect) {
        let ratio = 1.0 + effect.point;
        let times = if is_more { ratio } else { 1.0 / ratio };
        return format!("{}× {word}", significant(times));
    }
    let digits = digits(effect);
    format!("{:.digits$} % {word}", effect.point.abs() * 100.0)
}

/// Returns the headline. It uses the rows of the table, so it never contradicts them.
pub fn headline(comparison: &Comparison) -> String {
    let gated: Vec<&Row> = comparison.rows.iter().filter(|row| row.gated).collect();
    let of = |word: Word| gated.iter().filter(move |row| row.word == word);
    let count = |word: Word| of(word).count();
    let total = gated.len();
    let first = |word: Word| {
        let row = of(word).next()?;
        let effect = row.change?;
        let label = harmless(comparison.label(&row.arm));
        // Without the arm, which the label names.
        let name = row.name.replacen(&format!("{}.", row.arm), "", 1);
        let what = if row.unit == Unit::Nanoseconds {
            format!("{label}: {name} time")
        } else {
            format!("{label}: {name}")
        };
        Some(format!("{what} {}", change_text(&effect, row.unit)))
    };
    let with = |start: String, word: Word| match first(word) {
        Some(text) => format!("{start} · {text}"),
        None => start,
    };
    match comparison.decision {
        Decision::Slower => with(
            format!("Slower: {} of {total} rows", count(Word::Slower)),
            Word::Slower,
        ),
        Decision::Faster => with(
            format!("Faster: {} of {total} rows", count(Word::Faster)),
            Word::Faster,
        ),
        Decision::Same if comparison.rows.is_empty() => {
            "Same: the sides are the same program".to_owned()
        }
        Decision::Same => format!("Same: {total} of {total} rows within their margin"),
        Decision::Inconclusive if count(Word::Faster) > 0 => with(
            format!(
                "Inconclusive: {} of {total} rows, {} faster",
                count(Word::Inconclusive),
                count(Word::Faster)
            ),
            Word::Faster,
        ),
        Decision::Inconclusive => {
            format!(
                "Inconclusive: {} of {total} rows",
                count(Word::Inconclusive)
            )
        }
    }
}

/// Returns the metric of a row without its arm.
pub fn row_metric(row: &Row) -> &str {
    row.name.rsplit('.').next().unwrap_or(&row.name)
}

/// Describes the A/A control: whether the base differs from itself on this machine.
pub fn control(comparison: &Comparison) -> String {
    let gated = || comparison.rows.iter().filter(|row| row.gated);
    if gated().all(|row| row.change.is_none()) {
        return "\nToo few blocks to say whether this machine would be red for nothing; give more time with `--budget`.\n".to_owned();
    }
    let red = gated().filter(|row| row.word == Word::Slower).count();
    let wide = gated().filter_map(|row| row.change.map(|it| (it.high - it.low) / 2.0));
    let widest = wide.fold(0.0, f64::max);
    let verdict = if red == 0 {
        "This machine would not be red for nothing here".to_owned()
    } else {
        format!("This machine would be red for nothing: {red} rows")
    };
    format!(
        "\n{verdict}; in this time it detects changes from about {} on.\n",
        percent(widest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(point: f64, half: f64) -> Effect {
        Effect {
            point,
            low: point - half,
            high: point + half,
        }
    }

    #[test]
    fn small_changes_are_percentages_large_ones_factors() {
        assert_eq!(change(&effect(0.041, 0.008)), "+4.1 % [3.3, 4.9]");
        assert_eq!(change(&effect(-0.002, 0.007)), "−0.2 % [−0.9, 0.5]");
        assert_eq!(change(&effect(0.2, 0.1)), "+20 % [10, 30]");
        assert_eq!(change(&effect(0.0, 0.0)), "+0.00 % [0.00, 0.00]");
        assert_eq!(change(&effect(3.3, 0.1)), "4.30× [4.20, 4.40]");
        assert_eq!(
            change_text(&effect(-0.75, 0.01), Unit::Nanoseconds),
            "4.00× faster"
        );
        assert_eq!(
            change_text(&effect(0.041, 0.008), Unit::Nanoseconds),
            "4.1 % slower"
        );
        assert_eq!(
            change_text(&effect(-0.1, 0.001), Unit::Bytes),
            "10.0 % less"
        );
    }

    #[test]
    fn same_row_names_margin_or_floor_as_reason() {
        let of = |point: f64| {
            let mut row = Row::counted("memory".into(), "b", Unit::Bytes, (1e6, 1e6));
            (row.exact, row.margin, row.floor) = (false, 0.02, 131_072.0);
            row.change = Some(effect(point, 0.01));
            says(&row)
        };
        assert_eq!(of(0.005), "same (within 2 %)");
        assert_eq!(of(0.04), "same (less than 128 KiB apart)");
    }

    #[test]
    fn levels_have_their_unit() {
        assert_eq!(level(118.2e6, Unit::Nanoseconds), "118 ms");
        assert_eq!(level(8192.0, Unit::Bytes), "8 KiB");
        assert_eq!(level(92.0, Unit::Count), "92");
    }
}
