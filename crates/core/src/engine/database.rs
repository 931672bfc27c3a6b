//! An open database and its sessions: the calls through the driver's table.

use super::abi::*;
use super::answers::CallOutcome;
use super::drive::{Breaches, Way};
use super::stamps::Span;
use super::{Arena, Engine, EngineError, capability_names, harmless, level_name};
use kvdyno_driver::{ordered_ticks, ticks};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What to open.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `KV_NONE` ... `KV_DEFAULT`.
    pub level: u32,
    /// Whether the folder is empty and a new database must be created.
    pub create: bool,
    /// Whether nothing will be written; engines that can then open the database only for reading.
    pub read_only: bool,
    /// Budget for the engine's caches, bytes; `None`: the engine's default.
    pub cache_bytes: Option<u64>,
    /// Rows that will be stored.
    pub expected_rows: u64,
    /// Expected maximum size of the database, bytes; 0: unknown.
    pub disk_limit_bytes: u64,
    /// Largest key, bytes.
    pub key_size_max: u32,
    /// The fixed size of every key; 0: sizes differ.
    pub key_size_fixed: u32,
    /// Largest value, bytes.
    pub value_size_max: u32,
    /// Concurrent sessions.
    pub threads: u32,
    /// Keyspaces, at least 1; includes those of index rows.
    pub keyspaces: u32,
    /// Indexes that the engine maintains itself.
    pub indexes: Vec<kv_index>,
    /// Options as `name=value`.
    pub settings: Vec<(String, String)>,
    /// One bit, `1 << kind`, for each kind of op that will be used.
    pub kinds: u32,
    /// Flags that ops will use.
    pub op_flags: u32,
    /// The clock that ticks come from.
    pub clock: u32,
}

/// The effective settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// `KV_NONE`, `KV_PROCESS` or `KV_POWER`.
    pub level: u32,
    /// `KV_...` bits.
    pub capabilities: u64,
    /// Cache size in bytes; `None` if the engine has no such setting.
    pub cache_bytes: Option<u64>,
    /// The library's version.
    pub version: String,
    /// `None` if unknown.
    pub compression: Option<String>,
    /// `name=value` of every effective option.
    pub settings: Vec<(String, String)>,
}

/// Work that is not an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Work {
    /// Write out buffered data.
    Flush = KV_FLUSH,
    /// Full compaction.
    Compact = KV_COMPACT,
    /// Wait for background work.
    Settle = KV_SETTLE,
}

/// Bytes to show of a text without a terminator.
const SHOWN_BYTES: usize = 48;

/// The raw handle, closed when the last owner is dropped.
pub(super) struct Handle {
    pub(super) table: &'static kv_driver,
    raw: *mut kv_database,
    /// What late turns did, which may come at any time.
    pub(super) breaches: Arc<Breaches>,
}

impl Handle {
    /// Closes the database; must be the last call. There is no `Drop`.
    fn close(&self) -> Result<(), EngineError> {
        let call = self.table.close.expect("the registry refuses tables that lack an entry");
        let mut error = [0u8; KV_TEXT];
        // SAFETY: the database is open, and nothing runs after this.
        let status = unsafe { call(self.raw, error.as_mut_ptr()) };
        outcome(status, &error).and_then(|()| self.breaches.take())
    }
}

// SAFETY: a database may be used by several threads (rule 9).
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// An open database.
pub struct Database {
    handle: Arc<Handle>,
    effective: Effective,
}

/// The beginning of a text that does not end in its field.
struct Endless(String);

/// A driver's text in a field of a given size; `Err` if it has no terminator.
fn whole_text(field: &[u8]) -> Result<String, Endless> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match field.iter().position(|&byte| byte == 0) {
        Some(end) => Ok(text(&field[..end])),
        None => Err(Endless(text(&field[..field.len().min(SHOWN_BYTES)]))),
    }
}

/// An error text; one without a terminator is truncated, with a note.
fn field_text(field: &[u8]) -> String {
    let cut = |Endless(text)| {
        format!("{text}... (truncated: the driver's text does not end within {} bytes)", field.len())
    };
    whole_text(field).unwrap_or_else(cut)
}

/// A text in the driver's report of effective settings.
fn said(field: &[u8], what: &str) -> Result<String, EngineError> {
    whole_text(field).map_err(|Endless(text)| EngineError {
        status: KV_ERROR,
        text: format!("rule 10: the driver's {what} does not end within {} bytes: {text}...", field.len()),
    })
}

/// A field that contains one line of text.
fn line_text(field: &[u8]) -> String {
    harmless(&field_text(field))
}

fn outcome(status: u32, error: &[u8; KV_TEXT]) -> Result<(), EngineError> {
    if status == KV_OK { Ok(()) } else { Err(EngineError { status, text: line_text(error) }) }
}

fn c_text(text: &str, what: &str) -> Result<CString, EngineError> {
    CString::new(text)
        .map_err(|_| EngineError { status: KV_ERROR, text: format!("{what} contains a NUL byte") })
}

fn owned_pair((name, value): (&str, &str)) -> (String, String) {
    (harmless(name), harmless(value))
}

impl Effective {
    fn read(opened: &kv_opened) -> Result<Effective, EngineError> {
        if opened.level > KV_POWER {
            let text = format!("rule 10: the driver reports the unknown effective level {}", opened.level);
            return Err(EngineError { status: KV_ERROR, text });
        }
        let settings = said(&opened.settings, "list of options")?;
        let pairs = settings.lines().filter_map(|line| line.split_once('=')).map(owned_pair);
        let compression = harmless(&said(&opened.compression, "compression")?);
        Ok(Effective {
            level: opened.level,
            capabilities: opened.capabilities,
            cache_bytes: (opened.cache_bytes != u64::MAX).then_some(opened.cache_bytes),
            version: harmless(&said(&opened.version, "version")?),
            compression: (!compression.is_empty()).then_some(compression),
            settings: pairs.collect(),
        })
    }

    /// Whether reads may return older values than acknowledged ones, unless they are asked for with `KV_STRONG` (rule 10).
    pub fn may_be_stale(&self) -> bool {
        self.settings.iter().any(|(name, value)| name == "stale_reads" && value == "possible")
    }

    /// The largest value in bytes, where the engine has a limit (rule 10).
    pub fn value_size_max(&self) -> Option<u64> {
        let (_, value) = self.settings.iter().find(|(name, _)| name == "value_size_max")?;
        value.parse().ok()
    }

    /// Rules 10 and 11: the effective settings must be declared by the table.
    fn check_declared(self, engine: &Engine, has_options: bool) -> Result<Effective, EngineError> {
        let broken = |text: String| Err(EngineError { status: KV_ERROR, text });
        if engine.levels() & 1 << self.level == 0 {
            let name = level_name(self.level);
            return broken(format!(
                "rule 10: the effective level is `{name}`, which the table does not declare"
            ));
        }
        // An engine's capabilities, and where its data is, may depend on options.
        let added = self.capabilities & !engine.capabilities() & !KV_IN_MEMORY;
        if added != 0 && !has_options {
            let names = capability_names(added).join(", ");
            return broken(format!(
                "rule 11: open adds capabilities that the table does not declare: {names}"
            ));
        }
        Ok(self)
    }
}

impl Database {
    /// Opens or creates a database in `folder`, which must exist and be used by nothing else.
    pub fn open(engine: &Engine, folder: &Path, request: &Request) -> Result<Database, EngineError> {
        let path = folder.to_str().ok_or_else(|| EngineError {
            status: KV_ERROR,
            text: "the data folder's name is not UTF-8; choose another folder with --data".into(),
        })?;
        let path = c_text(path, "the data folder's name")?;
        let mut texts = Vec::with_capacity(request.settings.len());
        for (name, value) in &request.settings {
            texts.push((c_text(name, "an option's name")?, c_text(value, "an option's value")?));
        }
        let settings: Vec<kv_setting> = texts
            .iter()
            .map(|(name, value)| kv_setting { name: name.as_ptr(), value: value.as_ptr() })
            .collect();
        let config = kv_config {
            abi: KV_ABI,
            size: size_of::<kv_config>() as u32,
            path: path.as_ptr(),
            level: request.level,
            flags: if request.create { KV_CREATE } else { 0 }
                | if request.read_only { KV_READ_ONLY } else { 0 },
            cache_bytes: request.cache_bytes.unwrap_or(0),
            expected_rows: request.expected_rows,
            disk_limit_bytes: request.disk_limit_bytes,
            key_size_max: request.key_size_max,
            key_size_fixed: request.key_size_fixed,
            value_size_max: request.value_size_max,
            threads: request.threads,
            keyspaces: request.keyspaces.max(1),
            index_count: request.indexes.len() as u32,
            indexes: if request.indexes.is_empty() { std::ptr::null() } else { request.indexes.as_ptr() },
            settings: settings.as_ptr(),
            setting_count: settings.len() as u32,
            kinds: request.kinds,
            op_flags: request.op_flags,
            clock: request.clock,
        };
        // SAFETY: all zeroes is a valid kv_opened.
        let mut opened: Box<kv_opened> = Box::new(unsafe { std::mem::zeroed() });
        opened.size = size_of::<kv_opened>() as u32;
        let mut raw = null_mut();
        let table = engine.table()?;
        let open = table.open.expect("the registry refuses tables that lack an entry");
        // SAFETY: all structs live until open returns, as rule 10 requires.
        let status = unsafe { open(&config, &mut *opened, &mut raw) };
        outcome(status, &opened.error)?;
        if raw.is_null() {
            return Err(EngineError {
                status: KV_ERROR,
                text: "open succeeded but returned no database".into(),
            });
        }
        let handle = Arc::new(Handle { table, raw, breaches: Arc::default() });
        match Effective::read(&opened)
            .and_then(|effective| effective.check_declared(engine, !request.settings.is_empty()))
        {
            Ok(effective) => Ok(Database { handle, effective }),
            Err(error) => {
                // The result of this close does not matter any more.
                let _ = handle.close();
                Err(error)
            }
        }
    }

    /// The effective settings.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Opens a session for one thread, with its memory. Its reads are strong (rule 10).
    pub fn session(&self, mut arena: Arena) -> Result<Session, EngineError> {
        arena.set_strong(self.effective.may_be_stale());
        let handle = Arc::clone(&self.handle);
        let call = handle.table.session.expect("the registry refuses tables that lack an entry");
        let mut raw = null_mut();
        let mut error = [0u8; KV_TEXT];
        // SAFETY: the database is open, and the arena lives as long as the session, which owns it.
        let status = unsafe { call(handle.raw, &arena.raw(), &mut raw, error.as_mut_ptr()) };
        outcome(status, &error)?;
        Ok(Session { raw, arena, handle, way: Way::Call, capabilities: self.effective.capabilities })
    }

    /// Flush, compact or settle; `false` if the engine does not support it.
    pub fn maintain(&self, work: Work) -> Result<bool, EngineError> {
        let call = self.handle.table.maintain.expect("the registry refuses tables that lack an entry");
        let mut error = [0u8; KV_TEXT];
        // SAFETY: the database is open.
        let status = unsafe { call(self.handle.raw, work as u32, error.as_mut_ptr()) };
        if status == KV_UNSUPPORTED { Ok(false) } else { outcome(status, &error).map(|()| true) }
    }

    /// The engine's internal statistics, name and value; empty if it reports none. A line that is not `name=value` is
    /// returned with an empty value.
    pub fn stats(&self) -> Result<Vec<(String, String)>, EngineError> {
        let call = self.handle.table.stats.expect("the registry refuses tables that lack an entry");
        let mut out = vec![0u8; 64 * 1024];
        // SAFETY: the database is open and `out` has the given size.
        let status = unsafe { call(self.handle.raw, out.as_mut_ptr(), out.len() as u64) };
        let text = match status {
            KV_OK | KV_SHORT => said(&out, "list of stats")?,
            KV_UNSUPPORTED => String::new(),
            status => return Err(EngineError { status, text: format!("stats returned status {status}") }),
        };
        Ok(text.lines().map(|line| line.split_once('=').unwrap_or((line, ""))).map(owned_pair).collect())
    }

    /// Closes it; all sessions must have ended.
    pub fn close(self) -> Result<(), EngineError> {
        let handle = Arc::try_unwrap(self.handle).map_err(|_| EngineError {
            status: KV_ERROR,
            text: "cannot close the database: a session is still open".into(),
        })?;
        handle.close()
    }
}

/// One thread's connection to a database.
pub struct Session {
    pub(super) raw: *mut kv_session,
    arena: Arena,
    pub(super) handle: Arc<Handle>,
    pub(super) way: Way,
    /// The effective capabilities.
    capabilities: u64,
}

// SAFETY: a session is used by one thread at a time (rule 9), which `&mut self` ensures.
unsafe impl Send for Session {}

/// The result of a call of execute.
pub struct Executed {
    /// Number of ops, from the first one sent, that have a status.
    pub done: usize,
    /// The first failure: the op and its text.
    pub error: Option<(usize, String)>,
    /// Whether the failure is that the driver broke a rule of driver.h: none of its answers count, so `done` is 0 and
    /// the ops have KV_ERROR.
    pub is_breach: bool,
    /// Whether the driver reported the failure without a text.
    pub is_mute: bool,
    /// The call as seen from outside.
    pub span: Span,
}

impl Session {
    /// Lets the store answer reads with older values, if it does that.
    pub fn accept_stale_reads(&mut self) {
        self.arena.set_strong(false);
    }

    /// The session's memory.
    #[inline(always)]
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// Runs `count` ops of the arena from op `first` on, all of which the engine must support: a status that is not
    /// an answer of the op's kind is an error, with or without a text, and impossible stamps break a rule. Ops past
    /// `done` were not run because of the stop word, the deadline or an error.
    #[inline(always)]
    pub fn execute(&mut self, first: usize, count: usize) -> Executed {
        self.run(first, count, true)
    }

    /// Like `execute`, for callers who check each status and stamp themselves: only a text is an error, and a broken
    /// rule.
    #[inline(always)]
    pub fn attempt(&mut self, first: usize, count: usize) -> Executed {
        self.run(first, count, false)
    }

    #[inline(always)]
    fn run(&mut self, first: usize, count: usize, is_strict: bool) -> Executed {
        self.arena.prepare_batch(first, count);
        let clock = self.arena.batch().clock;
        let batch: *mut kv_batch = self.arena.batch_mut();
        // What the core has left unfinished is not the driver's time.
        let entered = ordered_ticks(clock);
        let status = self.call(batch);
        let span = Span { entered, left: ticks(clock) };
        let status = match status {
            Ok(status) => status,
            Err(text) => return self.gone(first, count, span, text),
        };
        if self.arena.is_guarded() {
            self.arena.take_guarded(first, count);
        }
        if status == KV_OK
            && self.arena.batch().error[0] == 0
            && self.arena.is_plain(first, count)
            && (!is_strict || self.arena.are_stamps_plain(first, count, span))
        {
            return Executed { done: count, error: None, is_breach: false, is_mute: false, span };
        }
        self.examine(first, count, status, span, is_strict)
    }

    /// For a call that the driver's loop did not run.
    #[cold]
    fn gone(&mut self, first: usize, count: usize, span: Span, text: &str) -> Executed {
        self.arena.void(first, count);
        Executed {
            done: 0,
            error: Some((first, format!("rule 12: {text}"))),
            is_breach: true,
            is_mute: false,
            span,
        }
    }

    /// For a call that needs a closer check.
    #[inline(never)]
    fn examine(&mut self, first: usize, count: usize, status: u32, span: Span, is_strict: bool) -> Executed {
        let batch = self.arena.batch();
        let done = batch.done.load(Ordering::Acquire) as usize;
        let has_failed = status != KV_OK || batch.error[0] != 0;
        let said = has_failed.then(|| {
            let text = line_text(&batch.error);
            if text.is_empty() { format!("execute returned status {status} without a text") } else { text }
        });
        let error_op = first + (batch.error_op as usize).min(count.saturating_sub(1));
        let ran = CallOutcome { first, count, done, has_failed };
        let of_stamps = || {
            let is_held = is_strict && !has_failed;
            is_held.then(|| self.arena.stamp_breach(first, done, span)).flatten()
        };
        if let Some((at, text)) = self.arena.breach(ran).or_else(of_stamps) {
            self.arena.void(first, count);
            let said = said.map_or_else(String::new, |said| format!("; the driver reports: {said}"));
            return Executed {
                done: 0,
                error: Some((at, format!("{text}{said}"))),
                is_breach: true,
                is_mute: false,
                span,
            };
        }
        let error = match said {
            Some(text) => Some((error_op, text)),
            None if is_strict => self.arena.refused(ran, self.capabilities),
            None => None,
        };
        let is_mute = has_failed && self.arena.batch().error[0] == 0;
        Executed { done, error, is_breach: false, is_mute, span }
    }

    /// Ends the session and returns its memory.
    pub fn end(self) -> Result<Arena, EngineError> {
        let call = self.handle.table.session_end.expect("the registry refuses tables that lack an entry");
        let mut error = [0u8; KV_TEXT];
        // SAFETY: the session is open and ended once, because `self` is consumed.
        let status = unsafe { call(self.raw, error.as_mut_ptr()) };
        outcome(status, &error).map(|()| self.arena)
    }
}
