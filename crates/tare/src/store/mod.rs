//! Stores every run, trial by trial, in one SQLite file whose rows are never changed.
//!
//! Why SQLite: one file, no server, readable by common tools, and a write that has returned survives `kill -9`
//! (write-ahead log with `synchronous=NORMAL`: the log is in the system's hands when `append` returns; only a power
//! failure can lose the last trials). Raw output is stored unchanged, and nothing derived from it is stored, so that
//! a better decoder can be used later.
//!
//! A run starts once and may be resumed; each start is a session with its own end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use serde::Serialize;
use tare_model::{Outcome, RunId};

use crate::cx::files;
use crate::plan::Plan;

mod delete;
mod error;
mod extract;
mod lock;
mod read;
mod reading;
mod record;
mod schema;
mod trials;

pub use error::StoreError;
pub use record::{
    ArmRecord, LaunchRecord, PEER, Remark, RunLine, RunStart, SessionEnd, SessionRecord, StoredRun,
    TrialRecord, WorkloadEnd,
};

pub use trials::{Part, Parts, Reader};

use error::{classify, of_file};
use lock::RunLock;

/// How long another process may hold the file before it counts as locked.
const PATIENCE: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Whether the store is the file at its path, not in memory.
    is_file: bool,
    /// Whether other connections may read the file at the same time, without a lock.
    has_readers: bool,
    /// The run that is being written, with its session and lock.
    writing: Option<Writing>,
}

#[derive(Debug)]
struct Writing {
    run: RunId,
    number: i64,
    session: u32,
    _lock: RunLock,
}

impl Store {
    /// Opens the store at `path`; creates the file and its folder if they are missing, and migrates an older format.
    /// Refuses, without touching it, a newer or damaged store and a file of another program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            files::create_folder(folder)
                .map_err(|error| of_file(path, "make the folder of", &error.source))?;
        }
        refuse_folder(path)?;
        // SQLite would create the file with default permissions and follow a symbolic link.
        files::open_anybodys(path, true).map_err(|error| of_file(path, "open", &error.source))?;
        let mut connection =
            Connection::open(path).map_err(|error| classify(path, "open", &error))?;
        Self::set_up(&mut connection, path).map_err(|error| error.with_path(path))?;
        Ok(Self::over(connection, path))
    }

    /// Opens the store for reading. Changes neither the file nor its folder, so a store on a read-only disk can be
    /// read too. A missing file reads as an empty store.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        refuse_folder(path)?;
        let length = match std::fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(of_file(path, "open", &error)),
        };
        let open = || {
            let opened = if length == 0 {
                empty()
            } else {
                reading::open(path)
                    .and_then(|connection| Self::set_up_to_read(connection, path, length))
            };
            opened.map_err(|error| error.with_path(path))
        };
        let connection = reading::steadily(open)?;
        let store = Self::over(connection, path);
        Ok(Self {
            has_readers: store.is_file,
            ..store
        })
    }

    fn over(connection: Connection, path: &Path) -> Self {
        let is_file = connection.path().is_some_and(|path| !path.is_empty());
        Self {
            connection,
            path: path.to_owned(),
            is_file,
            has_readers: false,
            writing: None,
        }
    }

    fn set_up_to_read(
        mut connection: Connection,
        path: &Path,
        length: u64,
    ) -> Result<Connection, SetUp> {
        reading::bound(&mut connection, length)?;
        let found = known_version(&connection, path)?;
        if found == 0 {
            return empty();
        }
        schema::read_as_newest(&connection, found)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    fn set_up(connection: &mut Connection, path: &Path) -> Result<(), SetUp> {
        connection.busy_timeout(PATIENCE)?;
        // The file may come from elsewhere until a run is written.
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        reading::bound(connection, length)?;
        known_version(connection, path)?;
        // The log's index is memory shared by its readers, which two machines cannot share.
        let wanted = if files::is_of_other_machines(path) {
            "DELETE"
        } else {
            "WAL"
        };
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", wanted, |row| row.get(0))?;
        // Some file systems do not support the shared index; the old journal mode needs full syncing.
        let synchronous = if mode.eq_ignore_ascii_case("wal") {
            "NORMAL"
        } else {
            "FULL"
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(connection, schema::STEPS)?;
        Ok(())
    }

    /// The store's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a run: locks the store for this process and stores the study and the plan's hash.
    pub fn begin(&mut self, start: &RunStart, plan: &Plan) -> Result<(), StoreError> {
        let lock = self.taken()?;
        let study = json(plan.study());
        let host = json(&start.host);
        let connection = &mut self.connection;
        let written = (|| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute(
                "INSERT INTO run (id, tare, started_unix_ns, study, plan_sha256, agent_sha256,
                                  agent_build, host)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    start.id.as_str(),
                    env!("CARGO_PKG_VERSION"),
                    start.started_unix_ns,
                    study,
                    plan.sha256(),
                    start.agent_sha256,
                    start.agent_build,
                    host
                ],
            )?;
            let number = transaction.last_insert_rowid();
            insert_session(&transaction, number, 1, start.started_unix_ns)?;
            transaction.commit()?;
            Ok(number)
        })();
        let number = written.map_err(|error| match error {
            error if is_there(&error) => StoreError::RunExists(start.id.to_string()),
            error => classify(&self.path, "write to", &error),
        })?;
        self.writing = Some(Writing {
            run: start.id.clone(),
            number,
            session: 1,
            _lock: lock,
        });
        Ok(())
    }

    /// Resumes a run: locks the store for this process and begins a new session.
    pub fn resume(&mut self, run: &RunId, started_unix_ns: i64) -> Result<(), StoreError> {
        let lock = self.taken()?;
        let number = self.number(run)?;
        let written = (|| {
            let last: u32 = self.connection.query_row(
                "SELECT coalesce(max(session), 0) FROM session WHERE run = ?1",
                [number],
                |row| row.get(0),
            )?;
            insert_session(&self.connection, number, last + 1, started_unix_ns)?;
            Ok(last + 1)
        })();
        let session = written.map_err(|error| classify(&self.path, "write to", &error))?;
        self.writing = Some(Writing {
            run: run.clone(),
            number,
            session,
            _lock: lock,
        });
        Ok(())
    }

    /// Locks the store for this process, for the duration of a run.
    fn taken(&mut self) -> Result<RunLock, StoreError> {
        let lock = RunLock::take(&self.path)?;
        reading::unbound(&mut self.connection)
            .map_err(|error| classify(&self.path, "open", &error))?;
        Ok(lock)
    }

    /// Stores trials that belong together: all of them or, after `kill -9`, none.
    pub fn append_all(&mut self, records: &[TrialRecord]) -> Result<(), StoreError> {
        if let [record] = records {
            return self.append(record);
        }
        let run = |store: &Self, statement: &str| {
            let done = store.connection.execute_batch(statement);
            done.map_err(|error| classify(&store.path, "write to", &error))
        };
        run(self, "BEGIN")?;
        let written = records.iter().try_for_each(|record| self.append(record));
        let ended = run(
            self,
            if written.is_ok() {
                "COMMIT"
            } else {
                "ROLLBACK"
            },
        );
        written.and(ended)
    }

    /// Stores a trial of the run that is being written. When this returns, `kill -9` cannot undo it.
    pub fn append(&mut self, record: &TrialRecord) -> Result<(), StoreError> {
        let writing = self.writing();
        let (kind, detail, raw) = match &record.outcome {
            Outcome::Completed(raw) => ("completed", None, Some(raw)),
            Outcome::Unavailable(reason) => ("unavailable", Some(json(reason)), None),
            Outcome::Failed(failure) => ("failed", Some(json(failure)), None),
        };
        let trial = &record.trial;
        let written = self
            .connection
            .prepare_cached(
                "INSERT INTO trial (run, sequence, session, block, position, launch, workload_index,
                                    cell, started_unix_ns, host_elapsed_ns, kind, detail,
                                    format, stdout, stderr, exit, charged)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    writing.number,
                    trial.sequence,
                    writing.session,
                    trial.block,
                    trial.position,
                    trial.launch,
                    trial.workload_index,
                    json(&trial.cell),
                    record.started_unix_ns,
                    integer(record.host_elapsed_ns),
                    kind,
                    detail,
                    raw.map(|raw| raw.format.as_str()),
                    raw.map(|raw| raw.stdout.0.as_slice()),
                    raw.map(|raw| raw.stderr.0.as_slice()),
                    raw.map(|raw| json(&raw.exit)),
                    (!record.charged.is_empty()).then(|| json(&record.charged)),
                ])
            });
        match written {
            Ok(_) => Ok(()),
            Err(error) if is_there(&error) => Err(StoreError::TrialExists {
                run: writing.run.to_string(),
                sequence: trial.sequence,
            }),
            Err(error) => Err(classify(&self.path, "write to", &error)),
        }
    }

    /// Stores the record of an arm of the run that is being written.
    pub fn arm(&mut self, record: &ArmRecord) -> Result<(), StoreError> {
        self.insert(
            "INSERT INTO arm (run, arm, driver, available, reason, fix, facts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                self.writing().number,
                record.arm.as_str(),
                record.driver,
                record.available,
                record.reason,
                record.fix,
                json(&record.facts)
            ],
        )
    }

    /// Stores a start of an arm.
    pub fn launch(&mut self, record: &LaunchRecord) -> Result<(), StoreError> {
        self.insert(
            "INSERT INTO launch (run, arm, launch, started_unix_ns, facts)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                self.writing().number,
                record.arm,
                record.launch,
                record.started_unix_ns,
                json(&record.facts)
            ],
        )
    }

    /// Stores that a workload is no longer measured.
    pub fn end_workload(&mut self, end: WorkloadEnd) -> Result<(), StoreError> {
        self.insert(
            "INSERT INTO workload_end (run, workload_index, after_blocks) VALUES (?1, ?2, ?3)",
            params![self.writing().number, end.workload_index, end.after_blocks],
        )
    }

    /// Stores a remark.
    pub fn remark(&mut self, remark: &Remark) -> Result<(), StoreError> {
        self.insert(
            "INSERT INTO remark (run, unix_ns, text) VALUES (?1, ?2, ?3)",
            params![self.writing().number, remark.unix_ns, remark.text],
        )
    }

    /// Ends the session of the run that is being written and releases the store, even if the end could not be stored.
    pub fn finish(&mut self, end: &SessionEnd) -> Result<(), StoreError> {
        let writing = self.writing();
        let written = self.insert(
            "INSERT INTO session_end (run, session, ended_unix_ns, wall_ns, stopped_by, reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                writing.number,
                writing.session,
                end.ended_unix_ns,
                integer(end.wall_ns),
                end.stopped_by.name(),
                end.reason
            ],
        );
        self.writing = None;
        written
    }

    fn writing(&self) -> &Writing {
        self.writing
            .as_ref()
            .expect("a run is written between `begin` or `resume` and `finish` only")
    }

    fn insert(&self, statement: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        self.connection
            .execute(statement, values)
            .map(|_| ())
            .map_err(|error| classify(&self.path, "write to", &error))
    }
}

/// Whether a row was refused because there is one of its name or number.
fn is_there(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
    let code = error.sqlite_error().map(|error| error.extended_code);
    // Other constraints, as a trigger that somebody added, have their own message.
    matches!(
        code,
        Some(SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE)
    )
}

fn refuse_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Err(StoreError::Io {
            action: "open",
            path: path.to_owned(),
            problem: "it is a folder".to_owned(),
        });
    }
    Ok(())
}

/// The format version of an open store, 0 for an empty file; refuses a newer one and another program's file.
fn known_version(connection: &Connection, path: &Path) -> Result<u32, SetUp> {
    // The schema of a foreign file must not call functions.
    connection.pragma_update(None, "trusted_schema", false)?;
    // A consistent snapshot: another process may be creating the store.
    let snapshot = connection.unchecked_transaction()?;
    let found = schema::version(&snapshot)?;
    let application: i32 = snapshot.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let n_objects: i64 =
        snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_empty = found == 0 && application == 0 && n_objects == 0;
    if application != schema::APPLICATION_ID && !is_empty {
        return Err(SetUp::Refused(StoreError::NotAStore(path.to_owned())));
    }
    let known = schema::known_version();
    if found > known {
        return Err(SetUp::Refused(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        }));
    }
    if let Some(what) = schema::foreign(&snapshot, found)? {
        return Err(SetUp::Refused(StoreError::Foreign {
            path: path.to_owned(),
            what,
        }));
    }
    Ok(found)
}

/// A store without a run, in memory.
fn empty() -> Result<Connection, SetUp> {
    let mut connection = Connection::open_in_memory()?;
    schema::migrate(&mut connection, schema::STEPS)?;
    Ok(connection)
}

enum SetUp {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for SetUp {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl SetUp {
    fn with_path(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => classify(path, "open", &error),
            Self::Refused(error) => error,
        }
    }
}

fn insert_session(
    connection: &Connection,
    run: i64,
    session: u32,
    started_unix_ns: i64,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO session (run, session, tare, started_unix_ns) VALUES (?1, ?2, ?3, ?4)",
        params![run, session, env!("CARGO_PKG_VERSION"), started_unix_ns],
    )?;
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("the vocabulary has only string keys and writes to memory cannot fail")
}

/// SQLite's integers are signed; 2⁶³ ns are 292 years.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
