//! Draws intervals as characters on a logarithmic axis.

use tare_model::dossier::Span;
use tare_model::whole_place;

use crate::axis::{RatioAxis, tick_label};

/// Converts a position between 0 and 1 to a column of the axis.
fn column(place: f64, columns: usize) -> usize {
    let column = (place.clamp(0.0, 1.0) * (columns - 1) as f64).round();
    whole_place(column)
}

/// Renders the labels of an axis above its columns, as many as do not touch.
pub(super) fn labels(axis: RatioAxis, columns: usize) -> String {
    let mut line = vec![' '; columns + 8];
    let mut put = |tick: f64| {
        let label: Vec<char> = tick_label(tick).chars().collect();
        let at = column(axis.place(tick), columns);
        let from = at.saturating_sub(label.len() / 2);
        let around = from.saturating_sub(1)..(from + label.len() + 1).min(line.len());
        if from + label.len() <= columns && line[around].iter().all(|it| *it == ' ') {
            line.splice(from..from + label.len(), label);
        }
    };
    // 1 is always shown.
    put(1.0);
    for tick in axis.ticks() {
        put(tick);
    }
    line.into_iter().take(columns).collect()
}

/// Renders an interval on its axis: `├──●──┤`, with `│` at 1 and `┊` at the margin.
pub(super) fn drawn(axis: RatioAxis, ratio: &Span, margin: f64, columns: usize) -> String {
    let mut line = vec![' '; columns];
    for edge in [1.0 / (1.0 + margin), 1.0 + margin] {
        line[column(axis.place(edge), columns)] = '┊';
    }
    line[column(axis.place(1.0), columns)] = '│';
    let (low, point, high) = (
        axis.place(ratio.low),
        axis.place(ratio.point),
        axis.place(ratio.high),
    );
    let (from, to) = (column(low, columns), column(high, columns));
    let (from, to) = (from.min(to), from.max(to));
    for place in &mut line[from..=to] {
        *place = if *place == '│' { '┼' } else { '─' };
    }
    let is_on = |place: f64| (0.0..=1.0).contains(&place);
    if from < to {
        line[from] = if is_on(low) { '├' } else { '◀' };
        line[to] = if is_on(high) { '┤' } else { '▶' };
    }
    if is_on(point) {
        line[column(point, columns)] = '●';
    } else {
        line[column(point, columns)] = if point > 1.0 { '▶' } else { '◀' };
    }
    line.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_bar_matches_values_and_column_width() {
        let wide = [Span::new(0.9, 1.0, 1.1), Span::new(1.2, 1.4, 1.6)];
        let axis = RatioAxis::of_spans(wide.into_iter().map(|span| (span, 0.02)));
        for columns in [12, 25, 60] {
            for ratio in [
                Span::new(0.9, 1.0, 1.1),
                Span::new(1.5, 1.5, 1.5),
                Span::new(190.0, 200.0, 210.0),
                Span::new(0.001, 0.01, 1.2),
            ] {
                let text = drawn(axis, &ratio, 0.02, columns);
                assert_eq!(text.chars().count(), columns, "{text:?}");
                let marks = text.chars().filter(|it| matches!(it, '●' | '▶' | '◀'));
                assert!(marks.count() >= 1, "{text:?}");
            }
        }
        let right = drawn(axis, &Span::new(1.2, 1.4, 1.6), 0.02, 40);
        let one = right.chars().position(|it| it == '│').unwrap();
        let from = right.chars().position(|it| it == '├').unwrap();
        assert!(from > one, "a cost lies right of 1: {right:?}");
        let beyond = drawn(axis, &Span::new(190.0, 200.0, 210.0), 0.02, 40);
        assert!(beyond.ends_with('▶'), "{beyond:?}");
    }

    #[test]
    fn axis_labels_never_touch_and_include_one() {
        let axis = RatioAxis::of_spans([(Span::new(0.5, 1.0, 3.0), 0.02)].into_iter());
        for columns in [12, 20, 60] {
            let text = labels(axis, columns);
            assert_eq!(text.chars().count(), columns);
            assert!(
                text.split_whitespace().any(|label| label == "1"),
                "{text:?}"
            );
            for label in text.split_whitespace() {
                assert!(label.parse::<f64>().is_ok(), "{text:?}");
            }
        }
    }
}
