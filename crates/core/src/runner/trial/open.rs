//! Opens the database of a trial: the request to the engine, and tests of properties that no capability declares.

use super::TrialRun;
use super::errors::NotRun;
use crate::engine::abi::*;
use crate::engine::{Arena, Database, PhaseProfile, Request, Shape, defects_of};
use crate::generator::Values;
use crate::results::StepKind;
use crate::runner::facts::{facts_of, level_number};
use crate::runner::phase;
use crate::runner::schedule::times;
use crate::runner::short;
use crate::workload::{Durability, OpKind, Phase};
use std::sync::atomic::AtomicU32;

/// The minimum limit of a database's size, bytes.
const LEAST_DISK_LIMIT: u64 = 256 << 20;

static NEVER: AtomicU32 = AtomicU32::new(0);

impl TrialRun<'_> {
    fn request(&self, level: Durability) -> Request {
        let workload = &self.trial.workload;
        let threads = workload.phases.iter().map(|phase| phase::roles(phase).len()).max().unwrap_or(1);
        let value_size_max = self.values.iter().map(Values::max_len).max().unwrap_or(8).max(8);
        let (key, value) = ((self.keys.max_len() + self.spaces.mark_len()) as u64, value_size_max as u64);
        let rows = self.most_rows() + self.counters;
        let row_bytes = key + value + self.spaces.index_bytes(key, value);
        let indexes = self.spaces.indexes().len();
        // Keys of index rows are longer than keys of rows.
        let fixed = self.keys.fixed_len().filter(|_| indexes == 0);
        let request = Request {
            level: level_number(level),
            create: !self.has_created,
            read_only: false,
            cache_bytes: workload.cache_bytes,
            expected_rows: (self.counted_end + self.counters) * (1 + indexes as u64),
            // A small database can grow to many times the size of its rows if readers keep old pages.
            disk_limit_bytes: rows.saturating_mul(row_bytes).saturating_mul(8).max(LEAST_DISK_LIMIT),
            key_size_max: (self.keys.max_len() + self.spaces.extra_len()) as u32,
            key_size_fixed: fixed.map_or(0, |size| (size + self.spaces.extra_len()) as u32),
            value_size_max: value_size_max as u32,
            threads: threads as u32,
            keyspaces: self.spaces.requested(),
            indexes: self.spaces.kept_indexes(),
            settings: self.joined.options(&self.trial.options),
            kinds: 0,
            op_flags: 0,
            clock: self.clock.kind(),
        };
        if self.trial.is_foreign() { self.foreign_request(request) } else { request }
    }

    /// The maximum number of rows. For inserts that end by time, the rate of a fast engine is assumed.
    fn most_rows(&self) -> u64 {
        const INSERTS_PER_SECOND: f64 = 500_000.0;
        let workload = &self.trial.workload;
        let inserts = |phase: &&Phase| {
            phase.mix.push > 0.0 || phase::slots(phase).iter().any(|slot| slot.inserter.is_some())
        };
        let seconds =
            |phase: &Phase| (phase.seconds + phase.warmup_seconds) * f64::from(times(workload, phase));
        let seconds: f64 = workload.phases.iter().filter(inserts).map(seconds).sum();
        let most = (self.counted_end * 4).max(workload.keys + (seconds * INSERTS_PER_SECOND) as u64);
        // The numbers of list elements have no limit.
        if self.lists.is_some() { most } else { self.insert_end.min(most) }
    }

    /// Opens or creates the database.
    pub(super) fn open(
        &mut self,
        name: StepKind,
        level: Durability,
        before: Option<&str>,
    ) -> Result<(), NotRun> {
        let refusal = self.spaces.refusal(&self.engine, &self.keys);
        if let Some(reason) = refusal.or_else(|| self.lacks_empty_values()) {
            return Err(NotRun::Lacks(reason));
        }
        if let Some((_, reason)) = self.not_opened.as_ref().filter(|(tried, _)| *tried == level) {
            return Err(NotRun::NotOpened(reason.clone()));
        }
        let request = self.request(level);
        let (engine, data) = (self.engine.clone(), self.data.clone());
        let opened = self.step(name, before, |_| Database::open(&engine, &data, &request));
        match opened {
            Ok(database) => {
                if let Some(limit) = database.effective().value_size_max()
                    && u64::from(request.value_size_max) > limit
                {
                    let reason = format!(
                        "values have up to {} bytes, but the engine supports at most {limit}",
                        request.value_size_max
                    );
                    // It exists now, and no later phase can use it either.
                    (self.has_created, self.not_opened) = (true, Some((level, reason.clone())));
                    let closed = database.close().map_err(|error| error.to_string());
                    return Err(NotRun::NotOpened(closed.err().unwrap_or(reason)));
                }
                self.effective = Some(database.effective().capabilities);
                if self.facts.is_none() {
                    self.facts = Some(facts_of(&self.engine, database.effective()));
                    let is_atomic = self.is_atomic(&database);
                    self.spaces.set_atomic(is_atomic);
                }
                if let Some(versions) = self.versions.as_mut().filter(|_| database.effective().may_be_stale())
                {
                    versions.remember_recent();
                }
                self.has_created = true;
                self.level = level;
                self.database = Some(database);
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                self.note_step(&text);
                // With a shortage, the engine does not refuse what the trial asks for.
                if let Some(failure) = short::of_open(&format!("{name}: {text}"), &self.data) {
                    // It already names the shortage.
                    self.failure.get_or_insert(failure);
                }
                self.not_opened = Some((level, text.clone()));
                Err(NotRun::NotOpened(text))
            }
        }
    }

    /// The reason why an engine without values of 0 bytes cannot run the workload; none: it can.
    fn lacks_empty_values(&self) -> Option<String> {
        if self.engine.capabilities() & KV_NO_EMPTY_VALUES == 0 || self.trial.is_foreign() {
            return None;
        }
        let index = self.spaces.writes_empty_values().then_some("index rows have no value");
        let value =
            self.values.iter().any(|values| values.min_len() == 0).then_some("values may have 0 bytes");
        index.or(value).map(|what| format!("{what}, but the engine supports only values of 1 byte or more"))
    }

    /// A known defect of the engine that would affect the phase.
    pub(super) fn defect(&self, phase: &Phase) -> Option<String> {
        let version = &self.facts.as_ref()?.version;
        let kinds: Vec<&str> = phase::kinds_of(phase).into_iter().map(OpKind::name).collect();
        let asked = PhaseProfile {
            kinds: &kinds,
            reverse: phase.scan.reverse,
            threads: phase::roles(phase).len(),
            keys: self.trial.workload.keys,
        };
        defects_of(&self.trial.engine).iter().find_map(|defect| defect.refusal(version, &asked))
    }

    /// Whether transactions can span all keyspaces. No capability declares this, so a group of deletes of missing keys in
    /// the first and the last keyspace is tried; engines without such transactions refuse it.
    fn is_atomic(&self, database: &Database) -> bool {
        let has = |bit: u64| database.effective().capabilities & bit != 0;
        if !has(KV_TRANSACTION) || !has(KV_CAN_DELETE) || !self.spaces.needs_trial(&self.trial.workload) {
            return has(KV_TRANSACTION);
        }
        let key_bytes = self.keys.max_len();
        let shape = Shape { ops: 2, key_bytes, value_bytes: 8, out_bytes: 8 };
        let Ok(mut session) = database.session(Arena::new(shape, self.clock.kind(), &NEVER)) else {
            return true;
        };
        let spaces = [0, self.spaces.total() as u16 - 1];
        for (at, space) in spaces.into_iter().enumerate() {
            let arena = session.arena();
            let length = self.keys.write(0, arena.key_mut(at));
            let op = arena.op_mut(at);
            (op.kind, op.keyspace, op.key_length) = (KV_DELETE, space, length as u32);
            op.flags = if at == 0 { KV_ATOMIC | KV_JOIN } else { KV_ATOMIC };
        }
        session.attempt(0, 2);
        let arena = session.arena();
        let is_refused = (0..2).all(|at| arena.op(at).status == KV_UNSUPPORTED);
        // Other errors of the session will show up in the phase.
        let _ = session.end();
        !is_refused
    }
}
