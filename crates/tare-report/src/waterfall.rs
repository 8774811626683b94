//! Computes the bars of a ladder: each step's starts where the one above ends, so that they add up visually.
//!
//! For rates the bars would run backwards: the loss is drawn from the left, and neither end has a bar. The longest
//! bar sets the scale.

use tare_model::dossier::{DossierLadder, DossierRung, Span};

/// The metric for a number that a command prints, if more is better.
const RATE: &str = "command.picked.rate";

/// The ends of a bar, the smaller first.
pub(crate) type Bar = (f64, f64);

/// The bars of a ladder, in its unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waterfall<'a> {
    /// The baseline's bar.
    pub(crate) base: Option<Bar>,
    /// The steps from the bottom, each with its bar if it was measured.
    pub(crate) steps: Vec<(&'a DossierRung, Option<Bar>)>,
    /// The bar of the whole environment.
    pub(crate) env: Option<Bar>,
    /// The end of the longest bar; never 0.
    pub(crate) top: f64,
}

/// The direction of a step by its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adds {
    /// Overhead.
    More,
    /// Gain.
    Less,
    /// Not distinguishable from zero.
    Unsure,
}

impl Adds {
    /// Classifies a step by what it adds.
    pub(crate) fn classify(span: &Span) -> Self {
        if span.low > 0.0 {
            Self::More
        } else if span.high < 0.0 {
            Self::Less
        } else {
            Self::Unsure
        }
    }
}

impl<'a> Waterfall<'a> {
    /// Computes the bars of a ladder.
    pub(crate) fn new(ladder: &'a DossierLadder) -> Self {
        let is_rate = ladder.metric == RATE;
        let level = |span: Option<Span>| span.map_or(0.0, |span| span.point.abs());
        let whole = |span: Option<Span>| (!is_rate).then(|| (0.0, level(span)));
        let (base, env) = (whole(ladder.base), whole(ladder.env));
        let mut so_far = base.map_or(0.0, |(_, to)| to);
        let steps: Vec<_> = ladder
            .rungs
            .iter()
            .map(|rung| {
                let bar = rung.adds.map(|span| {
                    let from = so_far;
                    so_far += span.point;
                    (from.min(so_far), from.max(so_far))
                });
                (rung, bar)
            })
            .collect();
        let bars = steps.iter().filter_map(|(_, bar)| *bar);
        let ends = bars.chain(base).chain(env).map(|(_, to)| to);
        let top = ends.fold(0.0, f64::max);
        Self {
            base,
            steps,
            env,
            top: if top > 0.0 { top } else { 1.0 },
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of whole numbers")]
mod tests {
    use super::*;

    fn ladder(metric: &str) -> DossierLadder {
        let at = |point: f64| Some(Span::new(point - 1.0, point, point + 1.0));
        let rung = |point: f64| DossierRung {
            title: "a step".to_owned(),
            arm: "rung-1".to_owned(),
            adds: (point != 0.0).then(|| at(point)).flatten(),
            note: None,
        };
        DossierLadder {
            arm: "box".to_owned(),
            metric: metric.to_owned(),
            unit: "count".to_owned(),
            base: at(100.0),
            env: at(125.0),
            total: at(25.0),
            rungs: vec![rung(30.0), rung(0.0), rung(-5.0)],
            sum: Some(25.0),
            sum_span: None,
            agrees: Some(true),
            together: Vec::new(),
        }
    }

    #[test]
    fn waterfall_bars_chain_and_end_at_total() {
        let ladder = ladder("command.wall.time");
        let drawn = Waterfall::new(&ladder);
        let bars: Vec<Option<Bar>> = drawn.steps.iter().map(|(_, bar)| *bar).collect();
        assert_eq!(bars, [Some((100.0, 130.0)), None, Some((125.0, 130.0))]);
        assert_eq!(
            (drawn.base, drawn.env),
            (Some((0.0, 100.0)), Some((0.0, 125.0)))
        );
        assert_eq!(drawn.top, 130.0);
    }

    #[test]
    fn rate_waterfall_draws_losses_from_left() {
        let ladder = ladder(RATE);
        let drawn = Waterfall::new(&ladder);
        assert_eq!((drawn.base, drawn.env), (None, None));
        assert_eq!(drawn.steps[0].1, Some((0.0, 30.0)));
        assert_eq!(drawn.top, 30.0);
    }

    #[test]
    fn step_with_interval_around_zero_is_unsure() {
        let of = |low: f64, high: f64| Adds::classify(&Span::new(low, 1.0, high));
        assert_eq!(of(0.5, 2.0), Adds::More);
        assert_eq!(of(-2.0, -0.5), Adds::Less);
        assert_eq!(of(-0.5, 2.0), Adds::Unsure);
    }
}
