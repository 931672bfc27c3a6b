//! Reads some keys again after a phase. After a contended phase: keys for which it is unknown which of their latest
//! versions was applied last, so that the next phase begins with one known version of each key. After an aborted
//! transaction: the keys that it wrote, which must be as before. Not measured.

use super::{Companion, Stage};
use crate::engine::{Arena, Database, EngineError, Session, Shape};
use crate::results::{Cause, PhaseRecord};
use crate::runner::check::{State, Versions, Window, WrongAnswers};
use crate::runner::gets::{Found, OPS, gets};
use crate::runner::phase_data::Shared;
use crate::runner::shape::ARENA_BYTES;
use crate::runner::worker::Outcome;
use crate::workload::Transaction;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Maximum number of keys of an aborted transaction, or of a phase with faults, that are read; if there are more, they are sampled evenly.
const UNDONE: usize = 200_000;
/// How long members that failed may take to answer again.
const RECOVERING: Duration = Duration::from_secs(60);

/// A stop word that is never set: the phase may have been stopped by time, but this reading must finish.
static NEVER: AtomicU32 = AtomicU32::new(0);

/// Why keys could not be read again.
#[derive(Debug, thiserror::Error)]
enum RereadError {
    /// The session did not begin or end.
    #[error("{0}")]
    Session(#[from] EngineError),
    /// A call that reads.
    #[error("reading keys {when}: {text}")]
    Read { when: &'static str, text: String },
    /// The store does not answer again after members have failed.
    #[error("{error} ({} s after the faults had ended)", RECOVERING.as_secs())]
    NotRecovered { error: Box<RereadError> },
}

/// Why a key is not as it must be.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    /// It is not there.
    #[error("not found, expected {expected}")]
    Missing { expected: String },
    /// Its value was not written so.
    #[error("{0}")]
    Value(String),
    /// It has a version that it must not have.
    #[error("{seen}, expected {expected}")]
    Version { seen: String, expected: String },
}

/// The number of keys that were read, and what is wrong with them.
type Read = Result<(u64, WrongAnswers), RereadError>;

/// The keys of a phase that are read again.
pub(super) struct Rereads<'s> {
    shared: &'s Shared<'s>,
    database: &'s Database,
    /// The versions before the phase; none: nothing is compared with them.
    before: Option<Vec<u8>>,
    keys: u64,
    wrong: WrongAnswers,
    /// They are those of a phase with faults.
    is_read_back: bool,
}

impl<'s> Rereads<'s> {
    /// Nothing has been read yet.
    pub(super) fn new(shared: &'s Shared<'s>, database: &'s Database) -> Rereads<'s> {
        Rereads {
            shared,
            database,
            before: None,
            keys: 0,
            wrong: WrongAnswers::default(),
            is_read_back: false,
        }
    }

    /// Reads the keys that several threads wrote and whose last version is unknown, and checks that the keys of an aborted
    /// transaction are as before it, and that those of a phase with faults have what was acknowledged, unless the phase was cut
    /// short.
    fn read(&mut self) -> Read {
        let (shared, database, before) = (self.shared, self.database, self.before.take());
        let is_aborted = shared.phase.transaction == Some(Transaction::Aborted);
        let undone = before.as_ref().filter(|_| is_aborted).map(|before| undo(shared, before));
        if shared.failure.lock().is_ok_and(|failure| failure.is_some()) {
            return Ok(Default::default());
        }
        match (undone, before) {
            (Some(written), _) => check_undone(shared, database, &written),
            (None, Some(before)) => {
                let read = read_back(shared, database, &before);
                self.is_read_back = read.is_ok();
                read
            }
            (None, None) => close_open_keys(shared, database),
        }
    }
}

impl<'s> Companion<'s> for Rereads<'s> {
    fn begin(&mut self, _stage: &Stage<'s, '_>) {
        self.before = before(self.shared);
        if let (Some(versions), true) = (self.shared.versions, self.shared.epochs.is_some()) {
            versions.begin_contended();
        }
    }

    fn end(&mut self, _outcomes: &[Outcome]) {
        match self.read() {
            Ok(read) => (self.keys, self.wrong) = read,
            Err(error) => {
                let phase = &self.shared.phase.name;
                self.shared.fail(Cause::EngineError, format!("phase {phase}: {error}"));
            }
        }
    }

    fn record(self: Box<Self>, _outcomes: &[Outcome], record: &mut PhaseRecord) {
        if let Some(disturbed) = record.disturbed.as_mut().filter(|_| self.is_read_back) {
            (disturbed.read_back, disturbed.lost) = (Some(self.keys), Some(self.wrong.count));
        }
        record.check.values += self.keys;
        record.check.faults += self.wrong.count;
        record.check.first_faults.extend(self.wrong.first);
    }
}

/// Reads the open keys; returns their number and the faults. An `Err` is an error of the engine.
fn close_open_keys(shared: &Shared<'_>, database: &Database) -> Read {
    let Some(versions) = shared.versions.filter(|_| shared.epochs.is_some()) else {
        return Ok(Default::default());
    };
    let open: Vec<u64> = versions.open().collect();
    read_all(shared, versions, database, &open, "after the phase")
}

/// The versions of the keys before a phase that will be aborted, or has faults; none: it is neither, or they are unknown.
fn before(shared: &Shared<'_>) -> Option<Vec<u8>> {
    let is_aborted = shared.phase.transaction == Some(Transaction::Aborted);
    shared.versions.filter(|_| is_aborted || !shared.faults.is_empty()).map(Versions::bytes)
}

/// Reads the keys that a phase with faults has written, when all members run again; `before`: their versions before it. Returns their
/// number and the faults: an acknowledged write that is missing, or was replaced by an older one.
fn read_back(shared: &Shared<'_>, database: &Database, before: &[u8]) -> Read {
    let Some(versions) = shared.versions else { return Ok(Default::default()) };
    let (states, _) = before.as_chunks::<4>();
    let was = |item: u64| states.get(item as usize).map_or(0, |state| u32::from_le_bytes(*state));
    let is_written = |item: &u64| versions.started(*item).is_some_and(|state| state.bits() != was(*item));
    let written: Vec<u64> = (0..versions.len()).filter(is_written).collect();
    // Keys whose last version is unknown are all read, others up to a number.
    let is_open = |item: &u64| versions.started(*item) != versions.acked(*item);
    let (mut all, others): (Vec<u64>, Vec<u64>) = written.into_iter().partition(is_open);
    let step = others.len().div_ceil(UNDONE).max(1);
    all.extend(others.into_iter().step_by(step));
    read_all(shared, versions, database, &all, "after the faults")
}

/// Restores the versions to those of `before`; returns the keys that the phase wrote.
fn undo(shared: &Shared<'_>, before: &[u8]) -> Vec<u64> {
    let Some(versions) = shared.versions else { return Vec::new() };
    let sent: Vec<u32> =
        (0..versions.len()).filter_map(|item| versions.started(item)).map(State::bits).collect();
    versions.restore(before);
    let was = |item: &u64| versions.started(*item).map(State::bits);
    let written: Vec<u64> =
        (0..sent.len() as u64).filter(|item| was(item) != Some(sent[*item as usize])).collect();
    let step = written.len().div_ceil(UNDONE).max(1);
    written.into_iter().step_by(step).collect()
}

/// Reads `written`, the keys of an aborted transaction; returns their number and the faults.
fn check_undone(shared: &Shared<'_>, database: &Database, written: &[u64]) -> Read {
    let Some(versions) = shared.versions else { return Ok(Default::default()) };
    read_all(shared, versions, database, written, "after its transaction was aborted")
}

fn read_all(
    shared: &Shared<'_>,
    versions: &Versions,
    database: &Database,
    open: &[u64],
    when: &'static str,
) -> Read {
    let mut wrong = WrongAnswers::default();
    if open.is_empty() {
        return Ok((0, wrong));
    }
    let shape = Shape {
        ops: OPS,
        key_bytes: shared.keys.max_len() + shared.spaces.extra_len(),
        value_bytes: 8,
        out_bytes: shared.values.max_read_len().max(8),
    }
    .within(ARENA_BYTES, 1);
    // Members that failed may need a while until they answer.
    let mut session = again(shared, || {
        let mut arena = Arena::new(shape, shared.clock.kind(), &NEVER);
        arena.set_split(shared.spaces.split());
        Ok(database.session(arena)?)
    })?;
    for items in open.chunks(shape.ops) {
        again(shared, || read(shared, versions, &mut session, items, when, &mut wrong))?;
    }
    session.end()?;
    Ok((open.len() as u64, wrong))
}

/// Tries something until it succeeds, if members have failed, up to a time.
fn again<Done>(
    shared: &Shared<'_>,
    mut attempt: impl FnMut() -> Result<Done, RereadError>,
) -> Result<Done, RereadError> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if shared.faults.is_empty() => return Err(error),
            Err(error) if begun.elapsed() > RECOVERING => {
                return Err(RereadError::NotRecovered { error: Box::new(error) });
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
}

fn read(
    shared: &Shared<'_>,
    versions: &Versions,
    session: &mut Session,
    items: &[u64],
    when: &'static str,
    wrong: &mut WrongAnswers,
) -> Result<(), RereadError> {
    let write_key = |at: usize, key: &mut [u8]| shared.spaces.write_key(shared.keys, items[at], key);
    let found = gets(session, items.len(), write_key)
        .map_err(|error| RereadError::Read { when, text: error.to_string() })?;
    for ((at, found), &item) in found.into_iter().enumerate().zip(items) {
        let (Some(oldest), Some(newest)) = (versions.acked(item), versions.started(item)) else { continue };
        let window = Window { oldest, newest };
        let arena = session.arena();
        let value = match found {
            Found::Value => Some(arena.delivered(at)),
            Found::Nothing => None,
            Found::Larger => {
                let needed = arena.op(at).needed;
                wrong.add(|| {
                    format!("get of key {item}, {when}: the value has {needed} bytes, more than any written")
                });
                versions.close(item, newest);
                continue;
            }
        };
        let found = seen(shared, item, value, window);
        if let Err(reason) = &found {
            wrong.add(|| format!("get of key {item}, {when}: {reason}"));
        }
        // After a fault any state will do.
        let state = found.unwrap_or(newest);
        if let Some(recent) = shared.recent {
            recent.note(item, state, shared.clock.now());
        }
        versions.close(item, state);
    }
    Ok(())
}

/// The state of a key whose `value` was read (none: it is absent); an `Err` is a fault.
fn seen(shared: &Shared<'_>, item: u64, value: Option<&[u8]>, window: Window) -> Result<State, Wrong> {
    let Some(value) = value else {
        return match window.allows_absent(shared.deletes) || shared.evicts() {
            // A cache must not return an older version of a key after it has evicted it.
            true if shared.evicts() => Ok(window.newest),
            true if window.oldest == State::default() && !shared.deletes => Ok(window.oldest),
            true => Ok(window.newest.deleted()),
            false => Err(Wrong::Missing { expected: window.text() }),
        };
    };
    let version = shared.values.check(item, value).map_err(|fault| Wrong::Value(fault.to_string()))?;
    if !shared.allows(item, window, version, value) && !shared.is_doubtful(item, version) {
        return Err(Wrong::Version { seen: Shared::shown(version, value), expected: window.text() });
    }
    // A value too small to contain its version has the same bytes in every version of its length.
    let small = || shared.small_version(item, window, value.len()).unwrap_or(window.newest.version());
    Ok(State::of_version(version.map_or_else(small, |version| version as u32)))
}
