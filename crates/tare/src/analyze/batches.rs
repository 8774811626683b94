//! Trials decoded on every processor while the next ones are read.
//!
//! Whoever reads the store fills batches; threads decode them, in place, and drop the bytes; the reader puts the
//! results together in the order in which the trials came, so that a report does not depend on who was faster.
//! Only a few batches are in memory at once.
//! What it cannot see: the store.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use tare_model::Outcome;

use super::collect::Collector;
use super::input::TrialData;
use super::kept::Decoded;
use super::together::decoded;
use crate::workload::DecodeError;

/// Trials in a batch: a millisecond's work, and less than a MiB.
const BATCH: usize = 256;
/// Batches under way for each thread.
const AHEAD: usize = 4;

/// A trial without its bytes, and what they said.
type Done = (TrialData, Option<Result<Decoded, DecodeError>>);

/// Batches to be decoded, each with the way for what comes of it.
type Job = (Vec<TrialData>, SyncSender<Vec<Done>>);

/// Takes what the source hands over.
pub(super) fn add_each<E>(
    collected: &mut Collector<'_>,
    source: impl FnOnce(&mut dyn FnMut(TrialData)) -> Result<(), E>,
) -> Result<(), E> {
    let find = collected.find();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (give, jobs) = sync_channel::<Job>(threads * AHEAD);
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((batch, done)) = next(&jobs) {
                    let decoded = batch.into_iter().map(|mut data| {
                        let says = decoded(find, &data);
                        if let Outcome::Completed(raw) = &mut data.outcome {
                            raw.stdout.0 = Vec::new();
                            raw.stderr.0 = Vec::new();
                        }
                        (data, says)
                    });
                    // Nobody listens only where the reader has given up.
                    let _ = done.send(decoded.collect());
                }
            });
        }
        let mut reader = Reader {
            collected,
            give,
            under_way: VecDeque::new(),
            most: threads * AHEAD,
            batch: Vec::with_capacity(BATCH),
        };
        let read = source(&mut |data| reader.add(data));
        reader.finish();
        read
    })
}

/// The next batch to decode; `None` when there are no more.
fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.recv().ok()
}

struct Reader<'c, 'a> {
    collected: &'c mut Collector<'a>,
    give: SyncSender<Job>,
    under_way: VecDeque<Receiver<Vec<Done>>>,
    most: usize,
    batch: Vec<TrialData>,
}

impl Reader<'_, '_> {
    fn add(&mut self, data: TrialData) {
        self.batch.push(data);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let (done, come) = sync_channel(1);
        // The threads live as long as this end does.
        if self.give.send((batch, done)).is_ok() {
            self.under_way.push_back(come);
        }
        if self.under_way.len() >= self.most {
            self.take_oldest();
        }
    }

    fn take_oldest(&mut self) {
        let oldest = self.under_way.pop_front().and_then(|come| come.recv().ok());
        for (data, says) in oldest.into_iter().flatten() {
            self.collected.take(&data, says);
        }
    }

    fn finish(mut self) {
        self.hand_over();
        while !self.under_way.is_empty() {
            self.take_oldest();
        }
    }
}
