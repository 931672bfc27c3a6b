//! A session of SQLite: one connection and its prepared statements.

#![allow(unsafe_code, reason = "calls of the engine's C interface")]

use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};
use rusqlite::{Connection, ErrorCode, Result as Outcome, Statement};
use std::ops::Bound;

/// The number of attempts on a busy database; each waits for the busy timeout.
const TRIES: u32 = 12;

/// The statements of one keyspace; those of scans are prepared on first use.
struct Statements {
    table: String,
    get: Statement<'static>,
    put: Statement<'static>,
    put_new: Statement<'static>,
    delete: Statement<'static>,
    scans: [Option<Statement<'static>>; 18],
}

/// A session. Its statements borrow its connection, which is in a separate box.
pub struct SqliteSession {
    keyspaces: Vec<Statements>,
    /// Begin to read, begin to write, commit, roll back.
    control: Vec<Statement<'static>>,
    connection: *mut Connection,
}

impl SqliteSession {
    pub(crate) fn new(connection: Connection, keyspaces: usize) -> Result<SqliteSession, Error> {
        let connection = Box::into_raw(Box::new(connection));
        let mut session = SqliteSession { keyspaces: Vec::new(), control: Vec::new(), connection };
        for sql in ["BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"] {
            session.control.push(session.connection().prepare(sql)?);
        }
        for number in 0..keyspaces {
            let table = format!("k{number}");
            let prepare = |sql: String| session.connection().prepare(&sql);
            session.keyspaces.push(Statements {
                get: prepare(format!("SELECT value FROM {table} WHERE key = ?1"))?,
                put: prepare(format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2)"))?,
                put_new: prepare(format!("INSERT OR IGNORE INTO {table} VALUES (?1, ?2)"))?,
                delete: prepare(format!("DELETE FROM {table} WHERE key = ?1"))?,
                scans: [const { None }; 18],
                table,
            });
        }
        Ok(session)
    }

    fn connection(&self) -> &'static Connection {
        // SAFETY: the box lives until `drop` below, which first drops everything that borrows it.
        unsafe { &*self.connection }
    }

    fn apply(&mut self, op: &mut Op<'_>) -> Outcome<Status> {
        let connection = self.connection();
        let Some(statements) = self.keyspaces.get_mut(op.keyspace()) else { return Ok(Status::Unsupported) };
        let (statement, none) = match op.kind() {
            KV_GET => return get(&mut statements.get, op),
            KV_SCAN => return scan(statements, connection, op),
            KV_PUT if op.is_new() => (&mut statements.put_new, Status::Exists),
            KV_PUT => (&mut statements.put, Status::Ok),
            KV_DELETE => (&mut statements.delete, Status::NotFound),
            _ => return Ok(Status::Unsupported),
        };
        statement.raw_bind_parameter(1, op.key())?;
        if op.kind() == KV_PUT {
            statement.raw_bind_parameter(2, op.value())?;
        }
        let changed = statement.raw_execute()?;
        Ok(if changed == 0 { none } else { Status::Ok })
    }

    /// A single op: SQLite makes it a transaction.
    fn one(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let (status, retries) = patient(|| self.apply(op))?;
        op.add_retries(retries);
        Ok(status)
    }

    fn control(&mut self, which: usize) -> Result<u32, Error> {
        Ok(patient(|| self.control[which].raw_execute())?.1)
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        self.keyspaces.clear();
        self.control.clear();
        // SAFETY: made by Box::into_raw in `new`; the statements that borrowed it are dropped.
        drop(unsafe { Box::from_raw(self.connection) });
    }
}

fn get(statement: &mut Statement<'_>, op: &mut Op<'_>) -> Outcome<Status> {
    statement.raw_bind_parameter(1, op.key())?;
    let mut rows = statement.raw_query();
    Ok(match rows.next()? {
        Some(row) => op.deliver(row.get_ref(0)?.as_blob()?),
        None => Status::NotFound,
    })
}

fn scan(statements: &mut Statements, connection: &'static Connection, op: &mut Op<'_>) -> Outcome<Status> {
    let range = op.range();
    let (lower, upper) = range.bounds();
    let (low, low_sql, low_key) = condition(lower, ["key >= ?1", "key > ?1"]);
    let (high, high_sql, high_key) = condition(upper, ["key <= ?2", "key < ?2"]);
    let slot = &mut statements.scans[low * 6 + high * 2 + usize::from(op.is_reverse())];
    let statement = match slot {
        Some(statement) => statement,
        None => {
            let order = if op.is_reverse() { "DESC" } else { "ASC" };
            slot.insert(connection.prepare(&format!(
                "SELECT key, value FROM {} WHERE {low_sql} AND {high_sql} ORDER BY key {order}",
                statements.table
            ))?)
        }
    };
    for (number, key) in [(1, low_key), (2, high_key)] {
        if let Some(key) = key {
            statement.raw_bind_parameter(number, key)?;
        }
    }
    let mut rows = statement.raw_query();
    let mut writer = op.rows();
    while let Some(row) = rows.next()? {
        if !writer.push(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?) {
            break;
        }
    }
    Ok(writer.status())
}

/// A bound's number, its condition in SQL, and its key.
fn condition<'k>(bound: Bound<&'k [u8]>, sql: [&'static str; 2]) -> (usize, &'static str, Option<&'k [u8]>) {
    match bound {
        Bound::Included(key) => (0, sql[0], Some(key)),
        Bound::Excluded(key) => (1, sql[1], Some(key)),
        Bound::Unbounded => (2, "TRUE", None),
    }
}

/// Retries `work` while the database is busy: its result, and the number of failed attempts.
fn patient<T>(mut work: impl FnMut() -> Outcome<T>) -> Result<(T, u32), Error> {
    for retries in 0..TRIES {
        match work() {
            Ok(outcome) => return Ok((outcome, retries)),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy) => (),
                Some(ErrorCode::DiskFull) => return Err(Error::with(Status::Full, error)),
                Some(ErrorCode::TooBig) => return Err(Error::with(Status::TooLarge, error)),
                _ => return Err(error.into()),
            },
        }
    }
    Err(Error::with(
        Status::Conflict,
        "another writer kept the database busy; increase the option busy-timeout-ms",
    ))
}

impl Session for SqliteSession {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        if !ops.iter().all(|op| matches!(op.kind(), KV_GET | KV_PUT | KV_DELETE | KV_SCAN)) {
            return Err(Error::unsupported("this op in a transaction"));
        }
        let reads = ops.iter().all(|op| matches!(op.kind(), KV_GET | KV_SCAN));
        let retries = self.control(usize::from(!reads))?;
        let mut outcome = each(ops, |op| Ok(patient(|| self.apply(op))?.0));
        if matches!(outcome, Ok(Vote::Commit)) {
            outcome = self.control(2).map(|_| Vote::Commit);
        }
        if !matches!(outcome, Ok(Vote::Commit)) && !self.connection().is_autocommit() {
            self.control(3)?;
        }
        ops[0].add_retries(retries);
        outcome.map(|_| true)
    }
}
