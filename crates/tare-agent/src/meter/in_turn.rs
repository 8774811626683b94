//! The meter where turns are taken with the workers of other arms: rounds, and the turns of programs.
//!
//! What it cannot see: how the turn passes; that is `turns`.

use std::time::Instant;

use tare_model::{Sliced, whole_part, whole_place};

use super::{COUNTED, FEWEST, FEWEST_SLICES, Meter, ProbeError};
use crate::binding::Binding;
use crate::turns::TurnTaker;

/// Taking turns with the workers of other arms.
pub(super) struct Alternation {
    pub(super) turns: TurnTaker,
    slice_ns: u64,
    /// Whether a stretch of work was begun of which nothing is recorded yet.
    pub(super) is_open: bool,
    /// To one processor for all workers.
    bound: Option<Binding>,
}

/// How many slices there are where the time is for so many: every order of the arms as often as any other, unless that
/// took more than twice the time.
fn whole_rounds(slices: usize, rows: usize) -> usize {
    let slices = slices.max(FEWEST_SLICES);
    let whole = slices.next_multiple_of(rows.max(1));
    if whole <= 2 * slices { whole } else { slices }
}

/// The rounds of one stretch of timed work: in a trial of its own until its share of the time is used, in slices
/// one to a turn.
#[derive(Debug)]
pub struct Rounds {
    pub(super) share_ns: f64,
    done: usize,
    /// How many there are, where that is fixed: the same in every arm.
    fixed: Option<usize>,
    pub(super) begin: Instant,
    /// When the round that is under way began.
    under_way: Option<Instant>,
}

impl Rounds {
    /// Whether another round follows, of which the values are to be kept; where turns are taken, waits for the
    /// next one.
    ///
    /// # Errors
    /// The other arms are gone.
    pub fn another(&mut self, meter: &mut Meter) -> Result<bool, ProbeError> {
        if let Some(begin) = self.under_way.take() {
            meter.timed += begin.elapsed();
        }
        let goes_on = match self.fixed {
            Some(count) => self.done < count,
            None => self.done < FEWEST || (self.begin.elapsed().as_nanos() as f64) < self.share_ns,
        };
        if goes_on {
            if let Some(alternation) = &mut meter.alternation {
                alternation.turns.take_next()?;
            }
            self.under_way = Some(Instant::now());
        }
        self.done += 1;
        Ok(goes_on)
    }
}

impl Meter {
    /// Takes turns with the workers of other arms, slices of `slice_ns`, `bound` to one processor
    /// with them. To be set before the probe is run.
    pub fn set_turns(&mut self, turns: TurnTaker, slice_ns: u64, bound: Option<Binding>) {
        self.alternation = Some(Alternation {
            turns,
            slice_ns,
            is_open: false,
            bound,
        });
    }

    /// What a slice aims at, nanoseconds, where turns are taken.
    pub fn slice_ns(&self) -> Option<u64> {
        self.alternation.as_ref().map(|turns| turns.slice_ns)
    }

    /// How the slices were taken, for the report; to be asked before [`Meter::finish`].
    pub fn sliced(&self) -> Option<Sliced> {
        self.alternation.as_ref().map(|alternation| Sliced {
            slice_ns: alternation.slice_ns,
            by_page: alternation.turns.is_by_page(),
            cpu: alternation.bound.as_ref().map(Binding::cpu),
        })
    }

    /// Takes no more turns; see [`TurnTaker::finish`].
    pub fn finish_turns(&mut self, ended_well: bool) {
        if let Some(alternation) = &mut self.alternation {
            alternation.turns.finish(ended_well);
        }
    }

    /// Prepares something large before the first stretch of timed work: on any processor, beside the workers of other
    /// arms. Nothing that it starts may live on.
    ///
    /// # Errors
    /// The processor on which turns are taken has gone meanwhile.
    pub fn prepare<T>(&self, work: impl FnOnce() -> T) -> Result<T, ProbeError> {
        let bound = self.alternation.as_ref().and_then(|it| it.bound.as_ref());
        match bound {
            None => Ok(work()),
            Some(bound) => bound
                .loosened(work)
                .map_err(|error| ProbeError::system("bind to one processor", &error)),
        }
    }

    /// Begins a stretch of timed work, which has `share` of the trial's time, 0 to 1. Where turns are taken, waits
    /// for the first one, which is for preparing: calibration belongs after this.
    ///
    /// # Errors
    /// The other arms are gone.
    pub fn rounds(&mut self, share: f64) -> Result<Rounds, ProbeError> {
        let share_ns = self.target_ns as f64 * share;
        let fixed = match &mut self.alternation {
            None => None,
            Some(alternation) => {
                alternation.turns.enter()?;
                alternation.is_open = true;
                let slices = whole_place((share_ns / alternation.slice_ns as f64).ceil());
                Some(whole_rounds(slices, alternation.turns.n_rows()))
            }
        };
        Ok(Rounds {
            share_ns,
            done: 0,
            fixed,
            begin: Instant::now(),
            under_way: None,
        })
    }

    /// Waits for the first turn of work that goes by its own clock, in slices that aim at `slice_ns`; whether turns
    /// are taken at all.
    ///
    /// # Errors
    /// The other arms are gone.
    pub fn first_turn(&mut self, slice_ns: u64) -> Result<bool, ProbeError> {
        let Some(alternation) = &mut self.alternation else {
            return Ok(false);
        };
        alternation.slice_ns = slice_ns;
        alternation.turns.enter()?;
        Ok(true)
    }

    /// Passes the turn on and waits for the next one; whether turns are taken at all.
    ///
    /// # Errors
    /// The other arms are gone.
    pub fn next_turn(&mut self) -> Result<bool, ProbeError> {
        let Some(alternation) = &mut self.alternation else {
            return Ok(false);
        };
        alternation.turns.take_next()?;
        Ok(true)
    }

    /// How many operations of `operation_ns` fill what is counted of a slice; 1 where no turns are taken.
    pub(super) fn per_slice(&self, operation_ns: f64) -> u64 {
        self.slice_ns().map_or(1, |slice_ns| {
            whole_part(slice_ns as f64 * COUNTED / operation_ns.max(1.0)).max(1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_fill_whole_rounds_of_orders() {
        let found = [(20, 1), (20, 6), (20, 4), (3, 6), (21, 4), (8, 60)];
        let found = found.map(|(slices, rows)| whole_rounds(slices, rows));
        assert_eq!(found, [20, 24, 20, 12, 24, 8]);
    }
}
