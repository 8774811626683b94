//! Trials decoded on every processor while the next ones are read.
//!
//! Whoever reads the store fills batches with the trials' bytes, one after the other in one piece of memory; threads
//! decode them and compare the arms of a block that lie together; the reader puts the results together in the order
//! in which the trials came, so that a report does not depend on who was faster. Only a few batches are in memory at
//! once, and their memory goes round.
//! What it cannot see: the store.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use tare_model::RawOutput;
use tare_model::outcome::{Bytes, Exit};

use super::collect::Collector;
use super::counters::CounterRow;
use super::failures::Counted;
use super::input::TrialRef;
use super::kept::{Place, Taken};
use super::together::{Work, decoded};
use super::turns::Turns;
use crate::workload::{DecodeError, Workload};

/// Trials in a batch: about a millisecond's work, and less than a MiB.
const BATCH: usize = 256;
/// Batches under way for each thread.
const AHEAD: usize = 4;

/// One trial of a batch.
enum Row {
    /// It left nothing to decode.
    Counted(Box<Counted>),
    /// What it says is known.
    Known(Place, Box<Taken>),
    Bytes(Packed),
}

/// A trial whose bytes lie in its batch.
struct Packed {
    place: Place,
    workload: &'static dyn Workload,
    format: Range<usize>,
    stdout: Range<usize>,
    stderr: Range<usize>,
    exit: Exit,
    charged: CounterRow,
}

/// Trials that are decoded together.
#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

impl Batch {
    fn push(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// What came of a trial.
enum Says {
    Counted(Box<Counted>),
    Decoded(Place, Result<Taken, DecodeError>),
}

/// A decoded batch, and its memory to be filled again.
type Done = (Vec<Says>, Batch);

/// A batch to be decoded, with the way for what comes of it.
type Job = (Batch, SyncSender<Done>);

/// Takes what the source hands over.
pub(super) fn add_each<E>(
    collected: &mut Collector<'_>,
    source: impl FnOnce(&mut dyn FnMut(TrialRef<'_>)) -> Result<(), E>,
) -> Result<(), E> {
    let n_arms = collected.n_arms_to_settle();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (give, jobs) = sync_channel::<Job>(threads * AHEAD);
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut raw = empty();
                while let Some((mut batch, done)) = next(&jobs) {
                    let mut says = decode_all(&mut batch, &mut raw);
                    settle(&mut says, n_arms);
                    // Nobody listens only where the reader has given up.
                    let _ = done.send((says, batch));
                }
            });
        }
        let mut reader = Reader {
            collected,
            give,
            under_way: VecDeque::new(),
            most: threads * AHEAD,
            batch: Batch::default(),
            spare: Vec::new(),
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

fn empty() -> RawOutput {
    RawOutput {
        format: String::new(),
        stdout: Bytes::default(),
        stderr: Bytes::default(),
        exit: Exit::Code(0),
    }
}

/// Decodes what lies in a batch and empties it; `raw` is memory for one trial's output at a time.
fn decode_all(batch: &mut Batch, raw: &mut RawOutput) -> Vec<Says> {
    let Batch { rows, bytes } = batch;
    let says = rows.drain(..).map(|row| match row {
        Row::Counted(counted) => Says::Counted(counted),
        Row::Known(place, taken) => Says::Decoded(place, Ok(*taken)),
        Row::Bytes(packed) => {
            raw.format.clear();
            raw.format
                .push_str(&String::from_utf8_lossy(&bytes[packed.format]));
            for (to, from) in [
                (&mut raw.stdout.0, packed.stdout),
                (&mut raw.stderr.0, packed.stderr),
            ] {
                to.clear();
                to.extend_from_slice(&bytes[from]);
            }
            raw.exit = packed.exit;
            let says = decoded(packed.workload, raw);
            let place = packed.place;
            Says::Decoded(place, says.map(|it| it.taken(&place, &packed.charged)))
        }
    });
    let says = says.collect();
    bytes.clear();
    says
}

/// Compares the arms of each block whose trials lie together, where slices are not kept.
fn settle(says: &mut [Says], n_arms: Option<usize>) {
    let Some(n_arms) = n_arms else { return };
    let same = |left: &Says, right: &Says| match (left, right) {
        (Says::Decoded(left, _), Says::Decoded(right, _)) => {
            (left.key, left.block) == (right.key, right.block)
        }
        _ => false,
    };
    for of_block in says.chunk_by_mut(same) {
        let mut arms: Vec<Option<&mut Turns>> = (0..n_arms).map(|_| None).collect();
        if of_block.len() != n_arms {
            continue;
        }
        for says in of_block {
            if let Says::Decoded(place, Ok(taken)) = says {
                arms[place.arm] = Some(&mut taken.kept.turns);
            }
        }
        let arms: Option<Vec<&mut Turns>> = arms.into_iter().collect();
        let Some(mut arms) = arms else { continue };
        let settled = Turns::settled(&arms.iter().map(|turns| &**turns).collect::<Vec<_>>());
        for (turns, settled) in arms.iter_mut().zip(settled.into_iter().flatten()) {
            **turns = settled;
        }
    }
}

struct Reader<'c, 'a> {
    collected: &'c mut Collector<'a>,
    give: SyncSender<Job>,
    under_way: VecDeque<Receiver<Done>>,
    most: usize,
    batch: Batch,
    spare: Vec<Batch>,
}

impl Reader<'_, '_> {
    fn add(&mut self, data: TrialRef<'_>) {
        let row = match self.collected.place(data) {
            Err(counted) => Row::Counted(Box::new(counted)),
            Ok((place, Work::Known(decoded))) => {
                let taken = decoded.taken(&place, &data.charged());
                Row::Known(place, Box::new(taken))
            }
            Ok((place, Work::Bytes(workload, raw))) => Row::Bytes(Packed {
                place,
                workload,
                format: self.batch.push(raw.format.as_bytes()),
                stdout: self.batch.push(&raw.stdout.0),
                stderr: self.batch.push(&raw.stderr.0),
                exit: raw.exit,
                charged: data.charged(),
            }),
        };
        self.batch.rows.push(row);
        if self.batch.rows.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let empty = self.spare.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, empty);
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
        let Some((says, batch)) = oldest else { return };
        for says in says {
            match says {
                Says::Counted(counted) => self.collected.tally.count(*counted),
                Says::Decoded(place, says) => self.collected.take(&place, says),
            }
        }
        self.spare.push(batch);
    }

    fn finish(mut self) {
        self.hand_over();
        while !self.under_way.is_empty() {
            self.take_oldest();
        }
    }
}
