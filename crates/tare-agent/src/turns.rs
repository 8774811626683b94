//! Interleaves a worker's slices with those of other arms: the worker's side.
//!
//! A worker holds the turn until it asks for the next one: anything that it does after its last slice (ending one
//! metric, preparing and calibrating the next) happens while no other slice runs. Over a page of memory it passes the
//! turn itself, with one wake-up; over the channel the host does, when it receives [`Reply::Waiting`]. A worker
//! without more slices stays idle until all are done, so that no report is written during another worker's slice.
//! Limits: does not know why another worker keeps its turn; after a timeout it reports which one.

use std::fs::File;

use tare_model::Failure;
#[cfg(target_os = "linux")]
use tare_model::turns::HERE;
use tare_model::turns::Turns;
use tare_model::wire::{Reply, Request, read_frame, write_frame};

use crate::meter::ProbeError;

#[cfg(target_os = "linux")]
mod page;

/// The way in which a worker gets its turn.
#[derive(Debug)]
enum TurnSource {
    /// From the previous worker, over a shared page.
    #[cfg(target_os = "linux")]
    Page(page::Page),
    /// From the host, over the worker's streams.
    Channel,
}

/// One worker's turns.
#[derive(Debug)]
pub struct TurnTaker {
    turns: Turns,
    trial: u64,
    way: TurnSource,
    input: File,
    output: File,
    /// The number of metrics begun or skipped.
    metric: u32,
    /// The current stage of the metric.
    stage: u32,
    /// Whether the worker has reported that it is ready, and the host that all are.
    has_begun: bool,
    is_holding: bool,
}

fn lost(what: &str) -> ProbeError {
    ProbeError::Failed(Failure::Lost(what.to_owned()))
}

impl TurnTaker {
    /// Returns the number of cycles after which every order of the arms was used once.
    pub fn n_rows(&self) -> usize {
        self.turns.rows.len()
    }

    /// Joins these turns; `input` and `output` are the worker's streams.
    ///
    /// # Errors
    /// The page cannot be used, or is not the host's.
    pub fn new(turns: Turns, trial: u64, input: File, output: File) -> Result<Self, ProbeError> {
        if !turns.is_sound() {
            return Err(ProbeError::Failed(Failure::Garbled(
                "a worker is missing in the order of the turns".to_owned(),
            )));
        }
        let way = match &turns.page {
            None => TurnSource::Channel,
            #[cfg(target_os = "linux")]
            Some(page) => {
                let page = page::Page::open(page)?;
                // Shows the host that this is its page.
                page.set_phase(turns.place, HERE);
                TurnSource::Page(page)
            }
            #[cfg(not(target_os = "linux"))]
            Some(_) => {
                return Err(ProbeError::Unavailable(tare_model::Reason::Unsupported(
                    "turns by a page of memory".to_owned(),
                )));
            }
        };
        Ok(Self {
            turns,
            trial,
            way,
            input,
            output,
            metric: 0,
            stage: 0,
            has_begun: false,
            is_holding: false,
        })
    }

    /// Whether the turn passes over a page of memory.
    pub fn is_by_page(&self) -> bool {
        !matches!(self.way, TurnSource::Channel)
    }

    /// Whether loops must check themselves.
    pub fn checks(&self) -> bool {
        self.turns.check
    }

    /// Returns the worker's only stage; `None` if it runs in all of them.
    pub fn stage(&self) -> Option<u32> {
        self.turns.stages.and_then(|stages| stages.own)
    }

    /// The number of the current stage among those of all metrics, from 1; 0 before the first.
    fn phase(&self) -> u32 {
        let per_metric = self.turns.stages.map_or(1, |stages| stages.count);
        (self.metric.checked_sub(1)).map_or(0, |before| before * per_metric + self.stage + 1)
    }

    /// Returns how many operations fill a slice, by the other workers if theirs are alike: what a slice costs once weighs
    /// the same in all arms then. Over the channel, its own.
    pub fn agreed(&self, own: u64) -> u64 {
        match &self.way {
            #[cfg(target_os = "linux")]
            TurnSource::Page(page) => page.agreed(self.metric, own),
            TurnSource::Channel => own,
        }
    }

    /// Skips the next metric, because it cannot be measured here.
    pub fn skip(&mut self) {
        self.metric += 1;
    }

    /// Enters the next metric and waits for its first turn.
    ///
    /// # Errors
    /// The others are gone, or one keeps its turn.
    pub fn enter(&mut self) -> Result<(), ProbeError> {
        self.metric += 1;
        self.stage = self.stage().unwrap_or(0);
        self.begin()?;
        self.take_next()
    }

    /// Enters the next stage of this metric, if the worker has one, and waits for its first turn. That is the one in
    /// which the stage's other worker prepares, and this one has nothing to do.
    ///
    /// # Errors
    /// As for [`TurnTaker::enter`].
    pub fn enter_stage(&mut self) -> Result<bool, ProbeError> {
        let count = self.turns.stages.map_or(1, |stages| stages.count);
        if self.stage().is_some() || self.stage + 1 >= count {
            return Ok(false);
        }
        self.stage += 1;
        self.take_next()?;
        Ok(true)
    }

    /// Passes the turn on, if this worker holds it, and waits for the next one.
    ///
    /// # Errors
    /// As for [`TurnTaker::enter`].
    pub fn take_next(&mut self) -> Result<(), ProbeError> {
        match &self.way {
            #[cfg(target_os = "linux")]
            TurnSource::Page(page) => {
                page.set_phase(self.turns.place, self.phase());
                if std::mem::take(&mut self.is_holding) {
                    page.pass_on(&self.turns);
                }
                page.wait(&self.turns)?;
            }
            TurnSource::Channel => self.ask_the_host()?,
        }
        self.is_holding = true;
        Ok(())
    }

    /// Takes no more turns. If the work `ended_well`, waits until all others are done too.
    pub fn finish(&mut self, ended_well: bool) {
        #[cfg(target_os = "linux")]
        if let TurnSource::Page(page) = &self.way
            && self.has_begun
        {
            page.set_phase(self.turns.place, tare_model::turns::DONE);
            if self.is_holding {
                page.pass_on(&self.turns);
            }
            if ended_well {
                page.wait_for_the_end(&self.turns);
            }
        }
        // Over the channel the host receives the report.
        let _ = ended_well;
        self.is_holding = false;
    }

    /// Reports once that this worker is ready, and waits until all arms are.
    fn begin(&mut self) -> Result<(), ProbeError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        if let TurnSource::Page(page) = &self.way {
            page.set_phase(self.turns.place, self.phase());
        }
        let trial = self.trial;
        write_frame(&mut self.output, &Reply::Ready { trial })
            .map_err(|_| lost("its agent does not listen any more"))?;
        match read_frame::<Request>(&mut self.input) {
            Ok(Request::Go { trial: about }) if about == trial => {}
            _ => return Err(lost("its agent ended before the worker was to go on")),
        }
        #[cfg(target_os = "linux")]
        if let TurnSource::Page(page) = &self.way {
            page.begin(&self.turns);
        }
        Ok(())
    }

    fn ask_the_host(&mut self) -> Result<(), ProbeError> {
        let (trial, phase) = (self.trial, self.phase());
        write_frame(&mut self.output, &Reply::Waiting { trial, phase })
            .map_err(|_| lost("its agent does not listen any more"))?;
        match read_frame::<Request>(&mut self.input) {
            Ok(Request::Turn { trial: about }) if about == trial => Ok(()),
            _ => Err(lost("its agent ended before the worker's turn")),
        }
    }
}
