//! Reads and decodes a run's trials on every CPU, part by part.
//!
//! The thread that reads a part decodes its trials as they arrive, compares the arms of a block that are adjacent,
//! and merges the results with those of the parts before it, in the order of the parts. So a report does not depend
//! on which thread was faster: it equals that of reading the trials one after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tare_model::trial::CellKey;

use super::collect::Collector;
use super::input::TrialRef;
use super::kept_trial::GroupKey;
use super::placing::{Placing, Says};
use super::turns::Turns;

/// Adds the trials of all parts; each thread reads with the reader that it opened.
///
/// # Errors
/// The first error of a thread; what was added until then stays.
pub(super) fn add_parts<P: Sync, R, E: Send>(
    collected: &mut Collector<'_>,
    parts: &[P],
    open: impl Fn() -> Result<R, E> + Sync,
    read: impl Fn(&mut R, &P, &mut dyn FnMut(TrialRef<'_>)) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (placing, n_arms) = (collected.placing.clone(), collected.n_arms_to_settle());
    let (taken, together) = (AtomicUsize::new(0), Mutex::new(Together::new(collected)));
    let help = || {
        let mut reader = open()?;
        loop {
            let place = taken.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(place) else {
                return Ok(());
            };
            let mut done = Part::default();
            let read = read(&mut reader, part, &mut |data| done.add(&placing, data));
            if let Err(error) = read {
                // No thread starts another part.
                taken.store(parts.len(), Ordering::Relaxed);
                return Err(error);
            }
            settle(&mut done.says, n_arms);
            let mut together = together.lock().unwrap_or_else(PoisonError::into_inner);
            together.add(place, done);
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(parts.len()))
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, help).ok())
            .collect();
        let own = help();
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.fold(own, Result::and)
    })
}

/// The decoded trials of a part, in order.
#[derive(Default)]
struct Part {
    /// Its works, each with the cell of its first trial.
    begun: Vec<(GroupKey, CellKey)>,
    says: Vec<Says>,
}

impl Part {
    fn add(&mut self, placing: &Placing<'_>, data: TrialRef<'_>) {
        let says = placing.read(data);
        if let Says::OfWork { place, .. } = &says
            && !self.begun.iter().any(|(key, _)| *key == place.key)
        {
            self.begun.push((place.key, data.trial.cell.clone()));
        }
        self.says.push(says);
    }
}

/// Merges parts in order, up to the first missing one.
struct Together<'c, 'a> {
    collected: &'c mut Collector<'a>,
    next: usize,
    waiting: BTreeMap<usize, Part>,
}

impl<'c, 'a> Together<'c, 'a> {
    fn new(collected: &'c mut Collector<'a>) -> Self {
        Self {
            collected,
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    fn add(&mut self, place: usize, part: Part) {
        self.waiting.insert(place, part);
        while let Some(part) = self.waiting.remove(&self.next) {
            self.next += 1;
            for (key, cell) in &part.begun {
                self.collected.begin(*key, cell);
            }
            for says in part.says {
                self.collected.take(says);
            }
        }
    }
}

/// Compares the arms of each block whose trials are adjacent, if slices are not kept. A block at an end of the part
/// may have more trials in the next one, unless every arm is present.
fn settle(says: &mut [Says], n_arms: Option<usize>) {
    let Some(n_arms) = n_arms else { return };
    let same = |left: &Says, right: &Says| match (left, right) {
        (Says::OfWork { place: left, .. }, Says::OfWork { place: right, .. }) => {
            (left.key, left.block) == (right.key, right.block)
        }
        _ => false,
    };
    let n_says = says.len();
    let mut begin = 0;
    for of_block in says.chunk_by_mut(same) {
        let end = begin + of_block.len();
        let is_within = begin > 0 && end < n_says;
        begin = end;
        if !is_within && of_block.len() != n_arms {
            continue;
        }
        let mut arms: Vec<Option<&mut Turns>> = (0..n_arms).map(|_| None).collect();
        for says in of_block {
            if let Says::OfWork {
                place,
                taken: Ok(taken),
            } = says
            {
                arms[place.arm] = Some(&mut taken.kept.turns);
            }
        }
        Turns::settle(arms);
    }
}
