//! Interleaves the meter's work with the workers of other arms: rounds for probes, turns for programs.

use std::time::Instant;

use tare_model::{Sliced, whole_part, whole_place};

use super::{COUNTED, FEWEST, FEWEST_SLICES, Meter, ProbeError};
use crate::binding::Binding;
use crate::turns::TurnTaker;

/// The state of an interleaved trial.
pub(super) struct Alternation {
    pub(super) turns: TurnTaker,
    slice_ns: u64,
    /// Whether a stretch of work has begun for which nothing is recorded yet.
    pub(super) is_open: bool,
    /// The CPU shared by all workers, if pinned.
    bound: Option<Binding>,
}

/// Rounds the number of slices up so that every order of the arms occurs equally often, unless that takes more than
/// twice the time.
fn whole_rounds(slices: usize, rows: usize) -> usize {
    let slices = slices.max(FEWEST_SLICES);
    let whole = slices.next_multiple_of(rows.max(1));
    if whole <= 2 * slices { whole } else { slices }
}

/// The rounds of one stretch of timed work: until its share of the time is used, or, in an interleaved trial, one
/// slice per turn.
#[derive(Debug)]
pub struct Rounds {
    pub(super) share_ns: f64,
    done: usize,
    /// The number of rounds of a stage in an interleaved trial: the same in every arm.
    fixed: Option<usize>,
    pub(super) begin: Instant,
    /// Start of the current round.
    under_way: Option<Instant>,
}

impl Rounds {
    /// Returns whether another round follows whose values count; in an interleaved trial, waits for its turn.
    ///
    /// # Errors
    /// The other arms are gone.
    pub fn another(&mut self, meter: &mut Meter) -> Result<bool, ProbeError> {
        if let Some(begin) = self.under_way.take() {
            meter.timed += begin.elapsed();
        }
        if let (Some(count), Some(alternation)) = (self.fixed, &mut meter.alternation)
            && self.done == count
            && alternation.turns.enter_stage()?
        {
            self.done = 0;
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
    /// Interleaves this trial with the workers of other arms, in slices of `slice_ns`, with all of them `bound` to
    /// one CPU. To be called before the probe runs.
    pub fn set_turns(&mut self, turns: TurnTaker, slice_ns: u64, bound: Option<Binding>) {
        self.alternation = Some(Alternation {
            turns,
            slice_ns,
            is_open: false,
            bound,
        });
    }

    /// Returns the target length of a slice, nanoseconds, in an interleaved trial.
    pub fn slice_ns(&self) -> Option<u64> {
        self.alternation.as_ref().map(|turns| turns.slice_ns)
    }

    /// Describes the interleaving for the report; to be called before [`Meter::finish`].
    pub fn sliced(&self) -> Option<Sliced> {
        self.alternation.as_ref().map(|alternation| Sliced {
            slice_ns: alternation.slice_ns,
            by_page: alternation.turns.is_by_page(),
            cpu: alternation.bound.as_ref().map(Binding::cpu),
            stage: alternation.turns.stage(),
        })
    }

    /// Takes no more turns; see [`TurnTaker::finish`].
    pub fn finish_turns(&mut self, ended_well: bool) {
        if let Some(alternation) = &mut self.alternation {
            alternation.turns.finish(ended_well);
        }
    }

    /// Prepares something large before the first stretch of timed work, on any CPU, while the workers of other arms
    /// run. Nothing that it starts may live on.
    ///
    /// # Errors
    /// The shared CPU has gone meanwhile.
    pub fn prepare<T>(&self, work: impl FnOnce() -> T) -> Result<T, ProbeError> {
        let bound = self.alternation.as_ref().and_then(|it| it.bound.as_ref());
        match bound {
            None => Ok(work()),
            Some(bound) => bound
                .loosened(work)
                .map_err(|error| ProbeError::system("bind to one processor", &error)),
        }
    }

    /// Begins a stretch of timed work with `share` of the trial's time, 0 to 1. In an interleaved trial, waits for
    /// the first turn, which is for preparation: calibration belongs after this.
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

    /// Waits for the first turn of work that times itself, in slices that aim at `slice_ns`; returns whether the
    /// trial is interleaved.
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

    /// Passes the turn on and waits for the next one; returns whether the trial is interleaved.
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

    /// Returns how many operations of `operation_ns` fill the counted part of a slice, alike in all arms; 1 without
    /// interleaving.
    #[inline(never)]
    pub(super) fn per_slice(&self, operation_ns: f64) -> u64 {
        self.slice_ns().map_or(1, |slice_ns| {
            let own = whole_part(slice_ns as f64 * COUNTED / operation_ns.max(1.0)).max(1);
            self.agreed(own)
        })
    }

    /// See [`TurnTaker::agreed`]; `own` without interleaving.
    #[inline(never)] // Once, and not once per probe.
    pub(super) fn agreed(&self, own: u64) -> u64 {
        let alternation = self.alternation.as_ref();
        alternation.map_or(own, |alternation| alternation.turns.agreed(own))
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
