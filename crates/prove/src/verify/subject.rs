//! The engine under verification: its databases, each in a separate folder, with a session and the oracle.

use super::act::{Act, Reply};
use super::caller::{Caller, Slots, StampFaults};
use super::failure::{CallError, Failure};
use super::fresh::{self, Fresh};
use super::model::Model;
use super::{Effort, LevelRow};
use crate::machine::MachineError;
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine, Request};
use kvdyno_core::generator::Random;
use kvdyno_measure::Clock;
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Ops of the largest call.
pub(super) const BATCH: usize = 64;
/// The largest value that most checks write.
pub(super) const VALUE_BYTES: usize = 64 << 10;
/// Maximum length of keys in most checks, even where the engine accepts longer ones.
const LONG_KEY_BYTES: usize = 1000;
/// The size of all keys where it is fixed.
const FIXED_KEY_BYTES: u32 = 16;
/// Budget for the engine's caches: small, so that a verification runs on any machine.
const CACHE_BYTES: u64 = 16 << 20;
const DISK_LIMIT_BYTES: u64 = 1 << 30;

/// What the checks need to know before they begin.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Effective capabilities at the weakest level.
    pub capabilities: u64,
    /// Longest key that checks use.
    pub key_bytes: usize,
    /// Largest value that the engine accepted.
    pub value_bytes: usize,
}

/// What all checks of one verification share.
pub(crate) struct Context<'a> {
    pub engine: &'a Engine,
    pub clock: Clock,
    pub effort: Effort,
    pub facts: Facts,
    root: PathBuf,
    fresh: Option<Fresh<'a>>,
    folders: Cell<u32>,
    pub notes: RefCell<Vec<String>>,
    pub levels: RefCell<Vec<LevelRow>>,
    pub faults: StampFaults,
    /// Options that are set in every database.
    pub settings: Vec<(String, String)>,
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub folder: PathBuf,
    pub create: bool,
    pub level: u32,
    pub keyspaces: u32,
    pub indexes: Vec<kv_index>,
    pub threads: u32,
    pub settings: Vec<(String, String)>,
    pub clock: Clock,
    pub ops: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub out_bytes: usize,
    pub faults: StampFaults,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        root: &Path,
        effort: Effort,
        clock: Clock,
        fresh: Option<Fresh<'a>>,
    ) -> Context<'a> {
        let facts = Facts {
            capabilities: engine.capabilities(),
            key_bytes: (engine.key_size_max() as usize).min(LONG_KEY_BYTES),
            value_bytes: VALUE_BYTES,
        };
        Context {
            engine,
            clock,
            effort,
            facts,
            root: root.to_path_buf(),
            fresh,
            folders: Cell::new(0),
            notes: RefCell::default(),
            levels: RefCell::default(),
            faults: StampFaults::default(),
            settings: Vec::new(),
        }
    }

    pub(crate) fn has(&self, capability: u64) -> bool {
        self.facts.capabilities & capability != 0
    }

    /// Adds an observation that is not a fault but worth knowing.
    pub(crate) fn note(&self, text: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// Creates a new empty folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, MachineError> {
        let number = self.folders.get();
        self.folders.set(number + 1);
        let folder = self.root.join(format!("database-{number}"));
        fs::create_dir(&folder).map_err(MachineError::file("create", &folder))?;
        Ok(folder)
    }

    /// Settings for a new database at the engine's weakest level, with one session and slots for 64 ops of common
    /// sizes.
    pub(crate) fn setup(&self) -> Result<Setup, MachineError> {
        Ok(self.setup_in(self.folder()?))
    }

    /// The same, in an existing folder.
    pub(crate) fn setup_in(&self, folder: PathBuf) -> Setup {
        Setup {
            folder,
            create: true,
            level: KV_NONE,
            keyspaces: 1,
            indexes: Vec::new(),
            threads: 1,
            settings: self.settings.clone(),
            clock: self.clock,
            ops: BATCH,
            key_bytes: self.facts.key_bytes + 1,
            value_bytes: 8 << 10,
            out_bytes: 16 << 10,
            faults: self.faults.clone(),
        }
    }

    /// Opens such a database.
    pub(super) fn subject(&self) -> Result<Subject<'a>, Failure> {
        Ok(self.open(self.setup()?)?)
    }

    pub(super) fn open(&self, setup: Setup) -> Result<Subject<'a>, CallError> {
        Subject::open(self.engine, setup, self.fresh)
    }

    /// The random source of one check.
    pub(crate) fn random(&self, stream: u64) -> Random {
        Random::stream(self.effort.seed, stream)
    }

    /// Keys for one check: as many as requested, all different, in no order, of the fixed size where there is one.
    pub(crate) fn key(&self, text: &str) -> Vec<u8> {
        if !self.has(KV_FIXED_KEY_SIZE) {
            return text.as_bytes().to_vec();
        }
        let mut key = text.as_bytes().to_vec();
        key.resize(FIXED_KEY_BYTES as usize, b'.');
        key
    }

    /// A timer that reports when a check has drawn enough ops.
    pub(super) fn budget(&self) -> Budget {
        Budget { begun: Instant::now(), seconds: self.effort.seconds }
    }
}

/// How long a check may keep drawing ops.
pub(super) struct Budget {
    begun: Instant,
    seconds: f64,
}

impl Budget {
    pub(super) fn is_spent(&self) -> bool {
        self.begun.elapsed().as_secs_f64() > self.seconds
    }
}

impl Setup {
    /// The request that is passed to the C boundary.
    pub(crate) fn request(&self, engine: &Engine) -> Request {
        let capabilities = engine.capabilities();
        let fixed = capabilities & KV_FIXED_KEY_SIZE != 0;
        Request {
            level: self.level,
            create: self.create,
            read_only: false,
            cache_bytes: Some(CACHE_BYTES),
            expected_rows: 10_000,
            disk_limit_bytes: DISK_LIMIT_BYTES,
            key_size_max: if fixed { FIXED_KEY_BYTES } else { self.key_bytes as u32 }
                .min(engine.key_size_max()),
            key_size_fixed: if fixed { FIXED_KEY_BYTES } else { 0 },
            value_size_max: self.value_bytes as u32,
            threads: self.threads,
            keyspaces: self.keyspaces,
            indexes: self.indexes.clone(),
            settings: self.settings.clone(),
            kinds: kinds(capabilities),
            op_flags: op_flags(capabilities),
            clock: self.clock.kind(),
        }
    }
}

/// One bit, `1 << kind`, for each kind of op that an engine with these capabilities supports.
fn kinds(capabilities: u64) -> u32 {
    let can = |any: u64| capabilities & any != 0;
    let mut kinds = 1 << KV_GET | 1 << KV_PUT;
    for (any, kind) in [
        (KV_CAN_DELETE, KV_DELETE),
        (KV_ORDERED | KV_CAN_PREFIX, KV_SCAN),
        (KV_MERGE_ADD | KV_MERGE_APPEND, KV_MERGE),
        (KV_CAN_LONG_TRANSACTION, KV_BEGIN),
        (KV_CAN_LONG_TRANSACTION, KV_COMMIT),
        (KV_CAN_LONG_TRANSACTION, KV_ABORT),
        (KV_CAN_HOLD, KV_DROP),
        (KV_LISTS, KV_PUSH),
        (KV_LISTS, KV_POP),
    ] {
        kinds |= if can(any) { 1 << kind } else { 0 };
    }
    kinds
}

/// All flags that an engine with these capabilities supports.
fn op_flags(capabilities: u64) -> u32 {
    let mut flags = KV_JOIN | KV_KEYS | KV_RESUME;
    for (capability, flag) in [
        (KV_TRANSACTION, KV_ATOMIC),
        (KV_CAN_NEW, KV_NEW),
        (KV_CAN_REVERSE, KV_REVERSE),
        (KV_CAN_PREFIX, KV_PREFIX),
        (KV_CAN_HOLD, KV_HOLD),
        (KV_CAN_TOUCH, KV_TOUCH),
        (KV_MERGE_APPEND, KV_APPEND),
    ] {
        flags |= if capabilities & capability != 0 { flag } else { 0 };
    }
    u32::from(flags)
}

/// An open database with one session.
pub(super) struct Subject<'a> {
    engine: &'a Engine,
    pub setup: Setup,
    fresh: Option<Fresh<'a>>,
    database: Option<Database>,
    caller: Option<Caller>,
    pub model: Model,
}

/// Opens only the database.
pub(crate) fn open_database(engine: &Engine, setup: &Setup) -> Result<Database, CallError> {
    Database::open(engine, &setup.folder, &setup.request(engine)).map_err(CallError::of("open"))
}

/// A session of a database with the slots of the setup.
pub(crate) fn open_caller(database: &Database, setup: &Setup) -> Result<Caller, CallError> {
    let Setup { clock, ops, key_bytes, value_bytes, out_bytes, .. } = *setup;
    let slots = Slots { ops, key_bytes, value_bytes, out_bytes };
    Caller::new(database, clock, slots, setup.faults.clone())
}

impl<'a> Subject<'a> {
    pub(super) fn open(
        engine: &'a Engine,
        setup: Setup,
        fresh: Option<Fresh<'a>>,
    ) -> Result<Subject<'a>, CallError> {
        let database = open_database(engine, &setup)?;
        let caller = open_caller(&database, &setup)?;
        let model = Model::new(database.effective().capabilities, setup.indexes.clone());
        Ok(Subject { engine, setup, fresh, database: Some(database), caller: Some(caller), model })
    }

    pub(super) fn database(&self) -> Result<&Database, Failure> {
        self.database.as_ref().ok_or(Failure::Check("the database is closed"))
    }

    pub(super) fn caller(&mut self) -> Result<&mut Caller, Failure> {
        self.caller.as_mut().ok_or(Failure::Check("the session has ended"))
    }

    pub(super) fn has(&self, capability: u64) -> bool {
        self.database.as_ref().is_some_and(|database| database.effective().capabilities & capability != 0)
    }

    /// Whether written data survives close and reopen.
    pub(super) fn is_kept(&self) -> bool {
        !self.has(KV_IN_MEMORY)
    }

    /// One call; returns the answers unchecked.
    pub(super) fn call(&mut self, acts: &[Act]) -> Result<Vec<Reply>, Failure> {
        self.caller()?.call(acts)
    }

    /// One call, checked against the oracle.
    pub(super) fn run(&mut self, acts: &[Act]) -> Result<Vec<Reply>, Failure> {
        let answers = self.call(acts)?;
        self.model.judge(acts, &answers)?;
        Ok(answers)
    }

    /// As many calls as the acts need, each of at most as many ops as there are slots; groups must be shorter.
    pub(super) fn run_all(&mut self, acts: &[Act]) -> Result<(), Failure> {
        let mut first = 0;
        while first < acts.len() {
            let mut end = super::act::group_end(acts, first);
            while end < acts.len() && super::act::group_end(acts, end) - first <= self.setup.ops {
                end = super::act::group_end(acts, end);
            }
            self.run(&acts[first..end])?;
            first = end;
        }
        Ok(())
    }

    /// One act; returns its answer.
    pub(super) fn one(&mut self, act: Act) -> Result<Reply, Failure> {
        let mut answers = self.call(std::slice::from_ref(&act))?;
        answers.pop().ok_or(Failure::Check("no answer"))
    }

    /// Compares the complete database with the oracle: every row by get and, if the engine supports scans, by scan;
    /// and `absent` keys in every keyspace.
    pub(super) fn compare(&mut self, absent: &[Vec<u8>]) -> Result<(), Failure> {
        let out_bytes = self.setup.out_bytes;
        let rows: Vec<_> = self.model.rows().map(|(space, key, _)| (space, key.to_vec())).collect();
        let spaces = 0..self.setup.keyspaces as u16;
        let missing = spaces.clone().flat_map(|space| absent.iter().map(move |key| (space, key.clone())));
        let missing = missing.filter(|(space, key)| self.model.get(*space, key).is_none());
        let gets: Vec<Act> =
            rows.into_iter().chain(missing).map(|(space, key)| Act::get(&key).within(space)).collect();
        self.run_all(&gets).map_err(|failure| failure.at("comparing all rows"))?;
        if !self.has(KV_ORDERED) {
            return Ok(());
        }
        for space in spaces {
            let all = Act::scan(&[]).within(space).room(out_bytes);
            self.scan_all(all).map_err(|failure| failure.at("scanning all rows"))?;
        }
        Ok(())
    }

    /// A scan, resumed until it is complete, each piece checked against the oracle; returns the rows.
    pub(super) fn scan_all(&mut self, act: Act) -> Result<Vec<super::act::Row>, Failure> {
        let mut rows = Vec::new();
        let mut next = act.clone();
        loop {
            let answer = self.run(std::slice::from_ref(&next))?.remove(0);
            rows.extend(answer.rows()?);
            if answer.status != KV_SHORT {
                return Ok(rows);
            }
            let Some((last, _)) = rows.last() else {
                return Err(Failure::Broken(format!(
                    "rule 8: no row fits in a buffer of {} bytes",
                    self.setup.out_bytes
                )));
            };
            let limit = act.limit.saturating_sub(if act.limit == u32::MAX { 0 } else { rows.len() as u32 });
            next = Act { key: last.clone(), limit, ..act.clone().with(KV_RESUME) };
        }
    }

    /// Ends the session and begins another.
    pub(super) fn renew_session(&mut self) -> Result<(), Failure> {
        self.end_session()?;
        self.caller = Some(open_caller(self.database()?, &self.setup)?);
        Ok(())
    }

    fn end_session(&mut self) -> Result<(), CallError> {
        self.caller.take().map_or(Ok(()), Caller::end)
    }

    pub(super) fn close(&mut self) -> Result<(), CallError> {
        self.end_session()?;
        let database = self.database.take();
        database.map_or(Ok(()), |database| database.close().map_err(CallError::of("close")))
    }

    /// Closes the database and reopens it: if it is persistent, first in a fresh process, which must find all rows of
    /// the oracle. If it is not, the oracle forgets the rows too.
    pub(super) fn reopen(&mut self) -> Result<(), Failure> {
        let is_kept = self.is_kept();
        self.close()?;
        self.setup.create = !is_kept;
        if !is_kept {
            self.model.clear();
        } else if let Some(fresh) = self.fresh {
            let file = self.setup.folder.with_extension("rows");
            fresh::write(&file, &self.setup, &self.model)?;
            let found = fresh(&file);
            fs::remove_file(&file).map_err(MachineError::file("remove", &file))?;
            found.map_err(|failure| failure.at("closed, then reopened in a fresh process"))?;
        }
        let database = open_database(self.engine, &self.setup)
            .map_err(|error| CallError { call: format!("second {}", error.call).into(), ..error })?;
        self.caller = Some(open_caller(&database, &self.setup)?);
        self.database = Some(database);
        Ok(())
    }
}
