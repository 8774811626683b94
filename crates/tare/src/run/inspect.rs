//! Inspects the commands of a session before its first block: which can be stopped midway and interleaved?
//!
//! Every arm runs the command once while its processes are observed; the baseline runs it once more with repeated
//! stops. The result is a remark; these runs are not trials and are not stored.
//! Limits: a command that behaves differently in a later run goes unnoticed.

use tare_model::command::InSlices;
use tare_model::{CommandCall, Outcome, RawOutput, Recipe, Trial};

use super::RunError;
use super::session::{Break, Session};
use crate::cx::Event;
use crate::store::Remark;
use crate::workload::{command_output, stoppable};

impl Session<'_> {
    /// Inspects every command that its workload allows to be stopped.
    pub(super) fn inspect_commands(&mut self, block: u32) -> Result<(), Break> {
        for workload in 0..self.recipes.len() {
            if self.turns.may_be_stopped[workload] && self.turns.are_taken {
                self.inspect(workload, block)?;
            }
        }
        Ok(())
    }

    fn inspect(&mut self, workload: usize, block: u32) -> Result<(), Break> {
        let Recipe::Probe(probe) = &self.recipes[workload] else {
            return Ok(());
        };
        let call = CommandCall::from_args(&probe.args).map_err(|problem| {
            Break::Failed(RunError::Param {
                workload: self.study().workloads[workload].id.to_string(),
                source: crate::workload::ParamError {
                    param: "argv".to_owned(),
                    problem,
                    hint: None,
                },
            })
        })?;
        let found = self.in_slices(workload, block, &call)?;
        let id = self.study().workloads[workload].id.to_string();
        match found {
            Some(Ok(slices)) => {
                let call = CommandCall {
                    in_slices: Some(slices),
                    ..call
                };
                self.recipes[workload] = Recipe::Probe(call.to_probe());
                Ok(())
            }
            Some(Err((arm, why))) => {
                let why = format!("in `{arm}` it {why}");
                Ok(self.say(Remark::of_whole_trials(Some(&id), &why))?)
            }
            // Its trials will show what is wrong with it.
            None => Ok(()),
        }
    }

    /// Returns how the command can be sliced, or the arm and reason why not; `None` if it does not run.
    #[allow(clippy::type_complexity, reason = "an answer for one caller")]
    fn in_slices(
        &mut self,
        workload: usize,
        block: u32,
        call: &CommandCall,
    ) -> Result<Option<Result<InSlices, (String, String)>>, Break> {
        if call.pick.is_some() {
            let why = "measures itself, by a clock that does not stop with it";
            let baseline = self.study().baseline.to_string();
            return Ok(Some(Err((baseline, why.to_owned()))));
        }
        let mut trials = self.plan.block(block);
        trials.retain(|trial| trial.workload_index as usize == workload);
        let mut usable: Vec<Trial> = self.usable(&trials).cloned().collect();
        // In the study's order, so that of several reasons the baseline's is reported.
        usable.sort_by_key(|trial| self.testbed.place_of(&trial.cell.arm));
        let observed = CommandCall {
            observe: true,
            ..call.clone()
        };
        let mut common: Option<InSlices> = None;
        let mut reports = Vec::new();
        let mut whole = None;
        for trial in &usable {
            let Some(raw) = self.looked(trial, &observed)? else {
                return Ok(None);
            };
            match stoppable::judged(&raw) {
                Ok(own) => {
                    common = Some(common.map_or(own, |common| InSlices {
                        ns: common.ns.min(own.ns),
                        one_processor: common.one_processor && own.one_processor,
                    }));
                }
                Err(why) => return Ok(Some(Err((trial.cell.arm.to_string(), why)))),
            }
            let report = command_output::report(&raw).ok();
            if trial.cell.arm == self.study().baseline {
                whole.clone_from(&report);
            }
            reports.extend(report);
            if let Err(why) = stoppable::on_as_many_processors(&reports) {
                return Ok(Some(Err((trial.cell.arm.to_string(), why))));
            }
        }
        let (Some(slices), Some(whole)) = (common, whole) else {
            return Ok(None);
        };
        let baseline = self.study().baseline.clone();
        let Some(trial) = usable.iter().find(|trial| trial.cell.arm == baseline) else {
            return Ok(None);
        };
        let paused = CommandCall {
            in_slices: Some(slices),
            ..call.clone()
        };
        let Some(raw) = self.looked(trial, &paused)? else {
            return Ok(None);
        };
        Ok(match command_output::report(&raw) {
            Ok(report) => Some(
                stoppable::confirmed(&report, &whole)
                    .map(|()| slices)
                    .map_err(|why| (baseline.to_string(), why)),
            ),
            Err(_) => None,
        })
    }

    /// Runs the command once in a trial's arm; `None` if it left no output or failed.
    fn looked(&mut self, trial: &Trial, call: &CommandCall) -> Result<Option<RawOutput>, Break> {
        if self.cx.cancel.is_requested() {
            return Err(Break::Cancelled);
        }
        let workload = trial.workload_index as usize;
        let arm = &trial.cell.arm;
        let of_trial = self.testbed.place_of(arm);
        let Some(index) = of_trial.filter(|_| self.missing_tool(arm, workload).is_none()) else {
            return Ok(None);
        };
        self.cx.observer.event(&Event::Starting {
            arm: arm.to_string(),
            what: "looking at the command in",
        });
        let measured = self.dispatcher.measure(
            trial,
            &Recipe::Probe(call.to_probe()),
            &mut self.testbed.arms[index],
            None,
        )?;
        self.after(trial, index, &measured)?;
        Ok(match measured.outcome {
            Outcome::Completed(raw) if command_output::report(&raw).is_ok() => Some(raw),
            _ => None,
        })
    }
}
