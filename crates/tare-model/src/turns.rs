//! Alternation: how prepared workers of several arms pass a processor to each other in slices.
//!
//! Noise on a shared machine lasts longer than a trial. Work that can be sliced is therefore done in slices of
//! milliseconds by one worker per arm, alternately, so that the slices of a cycle see the same machine and can be
//! compared pair by pair. If the arms share a kernel, the turn passes from worker to worker through a page of memory;
//! otherwise the host passes it over the channel.

use serde::{Deserialize, Serialize};

/// Maximum number of alternating workers.
pub const MOST_PLACES: usize = 64;

/// Length of the page, bytes.
pub const PAGE_BYTES: usize = 4096;

/// Offset of the number by which the workers recognize their page: 8 bytes, in the machine's byte order.
pub const PAGE_KEY: usize = 0;

/// Offset of the workers' progress: a word of 4 bytes per place.
pub const PAGE_PHASES: usize = 64;

/// The word of a worker that has found the page and is not prepared yet.
pub const HERE: u32 = u32::MAX - 1;

/// The word of a worker that has no more slices.
pub const DONE: u32 = u32::MAX;

/// How a worker alternates with those of other arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The worker's place, from 0.
    pub place: u32,
    /// Order of the places in each cycle; cycle `c` has row `c % rows.len()`. Every row has every place once.
    pub rows: Vec<Vec<u32>>,
    /// The stages of each metric; `None` if all workers run in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// The page that passes the turn; `None` if the channel does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<TurnPage>,
    /// Whether the loops verify themselves by doubling; once per launch is enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
    /// How long a worker waits for its turn before it gives up, nanoseconds.
    pub patience_ns: u64,
}

/// The stages of each metric: how often its slices are run, each time with the workers of other arms.
///
/// How fast a call is depends on the number of interleaved workers. So every arm is compared with the baseline in a stage of
/// its own, in which no other worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Number of stages.
    pub count: u32,
    /// The worker's only stage, from 0; `None` if it runs in all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<u32>,
}

/// A page of memory shared by the workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPage {
    /// Path at which the worker finds it.
    pub path: String,
    /// The number in it at [`PAGE_KEY`].
    pub key: u64,
}

/// How the slices of a report were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sliced {
    /// Target length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Whether the turn passed through a page of memory; otherwise over the channel.
    pub by_page: bool,
    /// The processor that the worker was pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The worker's only stage ([`Stages`]); `None` if its slices are those of all stages, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
}

/// Returns the number of the slice after `last` and its place, which is one in the earliest phase. `phases` has the
/// phase of each place ([`DONE`] for those that have no more slices). When all have left the phase of the last slice,
/// a new cycle begins. `None` if all are done.
///
/// Number `n` is slice `n % k` of cycle `n / k` with `k` places.
pub fn next_turn(
    rows: &[Vec<u32>],
    phases: &[u32],
    last: Option<u32>,
    last_phase: u32,
) -> Option<(u32, u32)> {
    let places = u32::try_from(phases.len()).ok()?;
    let phase = phases
        .iter()
        .copied()
        .filter(|phase| *phase != DONE)
        .min()?;
    let mut number = match last {
        None => 0,
        Some(last) if phase == last_phase => last.wrapping_add(1),
        Some(last) => (last / places).wrapping_add(1).wrapping_mul(places),
    };
    // Every place comes up within two cycles.
    for _ in 0..2 * places {
        let row = &rows[(number / places) as usize % rows.len()];
        let place = row[(number % places) as usize];
        if phases[place as usize] == phase {
            return Some((number, place));
        }
        number = number.wrapping_add(1);
    }
    None
}

impl Turns {
    /// Whether the orders are valid for their number of places.
    pub fn is_sound(&self) -> bool {
        let places = self.rows.first().map_or(0, Vec::len);
        let is_order = |row: &Vec<u32>| {
            let mut sorted = row.clone();
            sorted.sort_unstable();
            sorted.into_iter().map(|place| place as usize).eq(0..places)
        };
        (1..=MOST_PLACES).contains(&places)
            && (self.place as usize) < places
            && self.rows.iter().all(is_order)
            && self
                .stages
                .is_none_or(|stages| stages.own.unwrap_or(0) < stages.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<u32>> {
        vec![vec![0, 1, 2], vec![2, 1, 0]]
    }

    #[test]
    fn every_cycle_follows_its_row() {
        let phases = [1, 1, 1];
        let mut last = None;
        let mut places = Vec::new();
        for _ in 0..7 {
            let (number, place) = next_turn(&rows(), &phases, last, 1).unwrap();
            places.push(place);
            last = Some(number);
        }
        assert_eq!(places, [0, 1, 2, 2, 1, 0, 0]);
    }

    #[test]
    fn leader_waits_and_all_start_a_cycle_together() {
        // Place 0 has reached phase 2; 1 and 2 still have their slices of phase 1.
        assert_eq!(next_turn(&rows(), &[2, 1, 1], Some(0), 1), Some((1, 1)));
        assert_eq!(next_turn(&rows(), &[2, 2, 1], Some(1), 1), Some((2, 2)));
        // The last place has caught up: number 3 begins the next cycle, whatever was there.
        assert_eq!(next_turn(&rows(), &[2, 2, 2], Some(2), 1), Some((3, 2)));
        assert_eq!(next_turn(&rows(), &[2, 2, 2], Some(4), 1), Some((6, 0)));
    }

    #[test]
    fn who_is_done_is_passed_over() {
        assert_eq!(next_turn(&rows(), &[1, DONE, 1], Some(0), 1), Some((2, 2)));
        assert_eq!(
            next_turn(&rows(), &[DONE, DONE, 1], Some(2), 1),
            Some((3, 2))
        );
        assert_eq!(next_turn(&rows(), &[DONE; 3], Some(2), 1), None);
    }

    #[test]
    fn turn_orders_with_missing_members_are_unsound() {
        let turns = |rows: Vec<Vec<u32>>| Turns {
            place: 0,
            rows,
            stages: None,
            page: None,
            check: false,
            patience_ns: 1,
        };
        assert!(turns(rows()).is_sound());
        let in_stage = |count, own| Turns {
            stages: Some(Stages { count, own }),
            ..turns(rows())
        };
        assert!(in_stage(2, None).is_sound() && in_stage(2, Some(1)).is_sound());
        assert!(!in_stage(2, Some(2)).is_sound() && !in_stage(0, None).is_sound());
        for bad in [vec![], vec![vec![0, 0]], vec![vec![0, 1], vec![0]]] {
            assert!(!turns(bad.clone()).is_sound(), "{bad:?}");
        }
    }
}
