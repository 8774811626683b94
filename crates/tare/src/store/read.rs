//! Reads lists of runs and whole runs from a store. `trials` reads single trials.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row};
use serde::de::DeserializeOwned;
use tare_model::{CommandCall, RunId, StoppedBy, Study};

use super::{
    ArmRecord, LaunchRecord, Remark, RunLine, SessionRecord, Store, StoreError, StoredRun,
    WorkloadEnd, classify,
};
use crate::plan::Plan;

/// Each run with the end of its last session and its total time; a session without an end counts up to the end of its
/// last trial.
const RUN_LINES: &str = "
SELECT run.id, run.study, run.started_unix_ns,
       (SELECT count(*) FROM trial WHERE trial.run = run.number),
       (SELECT session_end.stopped_by
          FROM session LEFT JOIN session_end USING (run, session)
         WHERE session.run = run.number ORDER BY session.session DESC LIMIT 1),
       (SELECT session_end.reason
          FROM session LEFT JOIN session_end USING (run, session)
         WHERE session.run = run.number ORDER BY session.session DESC LIMIT 1),
       (SELECT sum(coalesce(session_end.wall_ns,
                   (SELECT max(trial.started_unix_ns + trial.host_elapsed_ns)
                      FROM trial WHERE trial.run = session.run
                                   AND trial.session = session.session)
                   - session.started_unix_ns, 0))
          FROM session LEFT JOIN session_end USING (run, session)
         WHERE session.run = run.number),
       run.tare, run.plan_sha256, run.agent_sha256, run.agent_build, run.host
  FROM run";

/// The total time of a run.
fn wall_ns(row: &Row<'_>) -> rusqlite::Result<u64> {
    let wall_ns: i64 = row.get(6)?;
    // Negative only if the wall clock was set back during a session that was killed.
    Ok(u64::try_from(wall_ns).unwrap_or(0))
}

/// Parses the word in a column that says how a session ended.
fn end(word: Option<String>, column: usize) -> rusqlite::Result<Option<StoppedBy>> {
    let known = word.map(|word| {
        StoppedBy::from_name(&word)
            .ok_or_else(|| unreadable(column, format!("`{}`", word.escape_default())))
    });
    known.transpose()
}

/// An error about an invalid value in a column.
pub(super) fn unreadable(column: usize, problem: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, problem.into())
}

/// Parses the JSON in a column.
pub(super) fn parsed<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| unreadable(column, error.to_string()))
}

/// Parses the study in a column; refuses one too large to report, because a store may come from anywhere.
fn study_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Study> {
    let study: Study = parsed(row, column)?;
    if Plan::can_be_reported(&study) {
        return Ok(study);
    }
    let (n_arms, n_workloads) = (study.arms.len(), study.workloads.len());
    let problem = format!("a study of {n_arms} arms and {n_workloads} workloads is too large");
    Err(unreadable(column, problem))
}

fn run_id(text: String) -> rusqlite::Result<RunId> {
    RunId::new(text).map_err(|error| unreadable(0, error.to_string()))
}

impl Store {
    /// Every run, newest first.
    pub fn runs(&self) -> Result<Vec<RunLine>, StoreError> {
        self.rows(
            &format!("{RUN_LINES} ORDER BY run.number DESC"),
            [],
            |row| {
                let study = study_in(row, 1)?;
                let mut workloads: Vec<String> = Vec::new();
                for spec in &study.workloads {
                    if workloads.last().map(String::as_str) != Some(spec.id.as_str()) {
                        workloads.push(spec.id.to_string());
                    }
                }
                Ok(RunLine {
                    id: run_id(row.get(0)?)?,
                    command: study.workloads.first().and_then(|spec| {
                        let call = CommandCall::from_args(&spec.params).ok()?;
                        Some(call.argv)
                    }),
                    arms: study.arms.iter().map(|arm| arm.id.to_string()).collect(),
                    workloads,
                    before: study.arms.iter().find_map(|arm| arm.role.before.clone()),
                    study: study.id,
                    title: study.title,
                    started_unix_ns: row.get(2)?,
                    n_trials: row.get(3)?,
                    stopped_by: end(row.get(4)?, 4)?,
                    wall_ns: wall_ns(row)?,
                })
            },
        )
    }

    /// The runs of a study, newest first.
    pub fn runs_of(&self, study: &str) -> Result<Vec<RunId>, StoreError> {
        let all = self.rows(
            "SELECT id, study FROM run ORDER BY number DESC",
            [],
            |row| Ok((run_id(row.get(0)?)?, study_in(row, 1)?)),
        )?;
        let of_study = all.into_iter().filter(|(_, of)| of.id == study);
        Ok(of_study.map(|(run, _)| run).collect())
    }

    /// The names of all runs, newest first.
    fn names(&self) -> Result<Vec<RunId>, StoreError> {
        self.rows("SELECT id FROM run ORDER BY number DESC", [], |row| {
            run_id(row.get(0)?)
        })
    }

    /// Whether a run is being measured now, without taking its lock: it is the newest, has no end, and the store's
    /// lock is held. False if locks cannot be looked up.
    pub fn is_at_work(&self, run: &RunId) -> Result<bool, StoreError> {
        let newest = self.runs()?.into_iter().next();
        let is_open = newest.is_some_and(|line| line.id == *run && line.stopped_by.is_none());
        Ok(is_open && super::lock::is_held(&self.path))
    }

    /// The newest run that did not end as planned: interrupted, failed or killed.
    pub fn latest_unfinished(&self) -> Result<Option<RunId>, StoreError> {
        Ok(self
            .runs()?
            .into_iter()
            .find(|run| !run.stopped_by.is_some_and(StoppedBy::is_complete))
            .map(|run| run.id))
    }

    /// Resolves `text` to a run: its full name, the beginning of only one name, or `latest`.
    pub fn resolve(&self, text: &str) -> Result<RunId, StoreError> {
        let runs = self.names()?;
        if let Some(run) = runs.iter().find(|run| run.as_str() == text) {
            return Ok(run.clone());
        }
        if text == "latest" {
            let newest = runs.into_iter().next();
            return newest.ok_or_else(|| StoreError::Empty(self.path.clone()));
        }
        let fits: Vec<&RunId> = runs
            .iter()
            .filter(|run| !text.is_empty() && run.as_str().starts_with(text))
            .collect();
        match fits.as_slice() {
            [only] => Ok((*only).clone()),
            [] => Err(no_such_run(text, &runs)),
            several => Err(StoreError::Ambiguous {
                id: text.to_owned(),
                fits: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// A whole run, with all trials in memory. For large runs, see [`Self::each_record`].
    pub fn run(&self, run: &RunId) -> Result<StoredRun, StoreError> {
        let mut stored = self.run_without_records(run)?;
        self.each_record(run, |record| stored.records.push(record.clone()))?;
        Ok(stored)
    }

    /// A run without its trials: `records` is empty.
    pub fn run_without_records(&self, run: &RunId) -> Result<StoredRun, StoreError> {
        let number = self.number(run)?;
        let arms: Vec<ArmRecord> = self.rows(
            "SELECT arm, driver, available, reason, fix, facts FROM arm
              WHERE run = ?1 ORDER BY number",
            [number],
            |row| {
                let arm: String = row.get(0)?;
                Ok(ArmRecord {
                    arm: arm
                        .try_into()
                        .map_err(|error: tare_model::IdError| unreadable(0, error.to_string()))?,
                    driver: row.get(1)?,
                    available: row.get(2)?,
                    reason: row.get(3)?,
                    fix: row.get(4)?,
                    facts: parsed(row, 5)?,
                })
            },
        )?;
        let launches = self.rows(
            "SELECT arm, launch, started_unix_ns, facts FROM launch
              WHERE run = ?1 ORDER BY number",
            [number],
            |row| {
                Ok(LaunchRecord {
                    arm: row.get(0)?,
                    launch: row.get(1)?,
                    started_unix_ns: row.get(2)?,
                    facts: parsed(row, 3)?,
                })
            },
        )?;
        let workload_ends = self.rows(
            "SELECT workload_index, after_blocks FROM workload_end
              WHERE run = ?1 ORDER BY workload_index",
            [number],
            |row| {
                Ok(WorkloadEnd {
                    workload_index: row.get(0)?,
                    after_blocks: row.get(1)?,
                })
            },
        )?;
        let remarks = self.rows(
            "SELECT unix_ns, text FROM remark WHERE run = ?1 ORDER BY number",
            [number],
            |row| {
                Ok(Remark {
                    unix_ns: row.get(0)?,
                    text: row.get(1)?,
                })
            },
        )?;
        let sessions = self.sessions(number)?;
        self.read(|connection| {
            connection.query_row(
                &format!("{RUN_LINES} WHERE run.number = ?1"),
                [number],
                |row| {
                    let study = study_in(row, 1)?;
                    Ok(StoredRun {
                        id: run_id(row.get(0)?)?,
                        tare: row.get(7)?,
                        started_unix_ns: row.get(2)?,
                        plan_sha256: row.get(8)?,
                        agent_sha256: row.get(9)?,
                        agent_build: row.get(10)?,
                        host: parsed(row, 11)?,
                        arms: latest_of_each(&study, arms),
                        study,
                        launches,
                        records: Vec::new(),
                        n_trials: row.get(3)?,
                        workload_ends,
                        remarks,
                        sessions,
                        stopped_by: end(row.get(4)?, 4)?,
                        failure: row.get(5)?,
                        wall_ns: wall_ns(row)?,
                    })
                },
            )
        })
    }

    /// The sessions of a run, in order.
    fn sessions(&self, number: i64) -> Result<Vec<SessionRecord>, StoreError> {
        // Rows are in the order of `sequence`, so a session's first trial is found without reading the others.
        self.rows(
            "SELECT (SELECT block FROM trial
                      WHERE trial.run = session.run AND trial.session = session.session
                      ORDER BY sequence LIMIT 1),
                    session_end.stopped_by
               FROM session LEFT JOIN session_end USING (run, session)
              WHERE session.run = ?1 ORDER BY session.session",
            [number],
            |row| {
                Ok(SessionRecord {
                    first_block: row.get(0)?,
                    stopped_by: end(row.get(1)?, 1)?,
                })
            },
        )
    }

    pub(super) fn number(&self, run: &RunId) -> Result<i64, StoreError> {
        let number = self.read(|connection| {
            connection
                .query_row(
                    "SELECT number FROM run WHERE id = ?1",
                    [run.as_str()],
                    |row| row.get(0),
                )
                .optional()
        })?;
        match number {
            Some(number) => Ok(number),
            None => Err(no_such_run(run.as_str(), &self.names()?)),
        }
    }

    /// Converts each row of a query with `line`.
    fn rows<T>(
        &self,
        query: &str,
        of: impl rusqlite::Params,
        line: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(|connection| connection.prepare(query)?.query_map(of, line)?.collect())
    }

    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        query(&self.connection).map_err(|error| classify(&self.path, "read", &error))
    }
}

/// The last record of each arm, in the study's order.
fn latest_of_each(study: &tare_model::Study, records: Vec<ArmRecord>) -> Vec<ArmRecord> {
    let mut latest: BTreeMap<String, ArmRecord> = BTreeMap::new();
    for record in records {
        latest.insert(record.arm.to_string(), record);
    }
    study
        .arms
        .iter()
        .filter_map(|arm| latest.remove(arm.id.as_str()))
        .collect()
}

/// The error for an unknown run, with a similar name if one may have been meant.
fn no_such_run(text: &str, runs: &[RunId]) -> StoreError {
    let near = crate::suggest::nearest(text, runs.iter().map(RunId::as_str));
    StoreError::NoSuchRun {
        id: text.to_owned(),
        near: near.map(str::to_owned),
    }
}
