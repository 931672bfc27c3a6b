//! Runs one trial in its own process: open, phases, close, reopen, sweep; and creates its record.

mod common_database;
mod errors;
mod finish;
mod foreign;
mod fresh;
mod kept;
mod open;

pub use errors::TrialError;
pub(super) use fresh::{ClosedState, Elsewhere, HandedOver, run_end};

use super::board::Board;
use super::check::Versions;
use super::companions::{self, OnTick, Others, Outside};
use super::data;
use super::epochs::Epochs;
use super::facts::{level_of, target_level};
use super::judge::Bound;
use super::kept::fills;
use super::lists::Lists;
use super::means::Means;
use super::pacer::Arriver;
use super::part;
use super::phase::{self, PhaseRun};
use super::phase_data::{Failure, Population, Shared};
use super::schedule::{Turn, schedule};
use super::short;
use super::spaces::Spaces;
use crate::engine::abi::*;
use crate::engine::{Database, Engine, Work};
use crate::generator::{Keys, Values};
use crate::results::{
    Cause, EndedBy, EngineFacts, ForeignData, Outcome, PhaseRecord, Record, SCHEMA, Step, StepKind, Trial,
};
use crate::workload::{Durability, Phase, Transaction, Workload};
use common_database::Joined;
use errors::NotRun;
use kept::Start;
use kvdyno_cluster::Member;
use kvdyno_measure::placement::effective_cpus;
use kvdyno_measure::text::grouped;
use kvdyno_measure::{Clock, DiskUse, NoiseProbe, Usage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// With more rounds than this, phases do not record rows per second: the rounds form the series.
const MOST_ROUNDS_IN_SECONDS: u32 = 16;
/// The minimum time between two writes of the unfinished record during rounds.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// A running trial.
pub(super) struct TrialRun<'t> {
    trial: &'t Trial,
    engine: Engine,
    data: PathBuf,
    clock: Clock,
    /// The cost of reading the clock.
    clock_cost_ns: f64,
    keys: Keys,
    spaces: Spaces,
    values: Vec<Values>,
    versions: Option<Versions>,
    lists: Option<Lists>,
    population: Population,
    /// The end of inserts in phases that end by a count.
    counted_end: u64,
    insert_end: u64,
    merges: u64,
    counters: u64,
    database: Option<Database>,
    /// The capabilities of the database that was opened last; none: none was.
    effective: Option<u64>,
    level: Durability,
    has_created: bool,
    /// The level at which the database could not be opened, and why: a server that does not answer is not asked again for each
    /// phase.
    not_opened: Option<(Durability, String)>,
    facts: Option<EngineFacts>,
    steps: Vec<Step>,
    phases: Vec<PhaseRecord>,
    failure: Option<Failure>,
    wrong: Vec<String>,
    started_at: String,
    noise: NoiseProbe,
    rss_before_open_bytes: Option<u64>,
    board: Board,
    elsewhere: Option<&'t Elsewhere<'t>>,
    member: Option<Member>,
    /// What faults need; none: the workload has none.
    means: Option<Mutex<Means>>,
    joined: Joined,
    /// What the survey of a foreign database has found; none: there was none.
    foreign: Option<ForeignData>,
}

/// Saves the unfinished record, in case the rest of the trial fails.
pub(super) type Keep<'a> = &'a dyn Fn(&Record) -> io::Result<()>;

/// Runs a trial in the empty folder `data` and returns its record; `keep` receives the unfinished record after each phase.
/// The result is an `Err` only if the trial cannot be set up, for example because the key format is unusable.
pub fn run(
    trial: &Trial,
    engine: Engine,
    data: &Path,
    clock: Clock,
    on_tick: OnTick<'_>,
    keep: Keep<'_>,
) -> Result<Record, TrialError> {
    let folders = Folders { data, start: None, leave: None };
    run_in(trial, engine, folders, Around::alone(clock, Board::alone()), on_tick, keep)
}

/// The folders of a trial.
pub(super) struct Folders<'f> {
    /// The folder for the engine: empty, or a copy of the database in `start`.
    pub data: &'f Path,
    /// The kept database that the trial starts with.
    pub start: Option<&'f Path>,
    /// The folder for the state of the database, to keep it.
    pub leave: Option<&'f Path>,
}

/// What a trial has outside its database.
pub(super) struct Around<'a> {
    /// The clock of its times.
    pub clock: Clock,
    /// Where it shows its progress.
    pub board: Board,
    /// Its place among the load generators that run together; none: it is alone.
    pub member: Option<Member>,
    /// The means of its faults; none: it has no faults.
    pub means: Option<Means>,
    /// How its end is run in a fresh process; none: in this one.
    pub elsewhere: Option<&'a Elsewhere<'a>>,
}

impl Around<'_> {
    /// A trial that is alone and ends in this process.
    pub(super) fn alone(clock: Clock, board: Board) -> Self {
        Around { clock, board, member: None, means: None, elsewhere: None }
    }
}

/// Like [`run`], but can start with or leave a kept database, show its progress on a shared board, run its phases together
/// with other load generators, and run its end in a fresh process.
pub(super) fn run_in(
    trial: &Trial,
    engine: Engine,
    folders: Folders<'_>,
    around: Around<'_>,
    on_tick: OnTick<'_>,
    keep: Keep<'_>,
) -> Result<Record, TrialError> {
    let Around { clock, board, member, means, elsewhere } = around;
    let mut run = TrialRun::new(trial, engine, &folders, clock)?;
    run.board = board;
    run.member = member;
    run.means = means.map(Mutex::new);
    run.elsewhere = elsewhere;
    run.rss_before_open_bytes = Usage::now().rss_bytes;
    run.run_phases(on_tick, keep)?;
    if let Some(Err(error)) = folders.leave.map(|folder| run.leave(folder)) {
        run.fail(Cause::Io, error.to_string());
    }
    if let Some(member) = &run.member {
        match &run.failure {
            Some(failure) => member.failed(&failure.text),
            None => member.leave(),
        }
    }
    let mut record = run.record();
    let clock = clock.facts();
    if record.is_of_client_alone() || run.joined.is_host {
        record.forget_others();
    }
    record.warnings = finish::warnings(&record);
    record.clock = Some(clock);
    Ok(record)
}

impl<'t> TrialRun<'t> {
    fn new(
        trial: &'t Trial,
        engine: Engine,
        folders: &Folders<'_>,
        clock: Clock,
    ) -> Result<TrialRun<'t>, TrialError> {
        let workload = &trial.workload;
        let start = Start::of(trial, &engine, folders.start)?;
        let (mut keys, insert_end) =
            data::keys_of(workload, part::keys_part(trial), start.growth, start.counters)
                .map_err(|error| TrialError::Data(error.to_string()))?;
        let values = data::values_of(workload, part::value_seed(trial))
            .map_err(|error| TrialError::Data(error.to_string()))?;
        if !values.iter().all(Values::has_index) {
            keys.sort_file();
        }
        let spaces = Spaces::new(workload, engine.capabilities());
        let lists = workload.collections.are_lists().then(|| Lists::new(workload.collections.count));
        let checked = !engine.stores_nothing() && lists.is_none();
        let versions = if checked { start.versions(folders.start, workload, insert_end)? } else { None };
        Ok(TrialRun {
            trial,
            engine,
            data: folders.data.to_path_buf(),
            clock,
            clock_cost_ns: clock.cost_ns(),
            keys,
            spaces,
            values,
            versions,
            lists,
            population: start.population,
            counted_end: start.growth.counted,
            insert_end,
            merges: start.merges,
            counters: start.counters,
            database: None,
            effective: None,
            level: workload.durability,
            has_created: start.has_database(),
            not_opened: None,
            facts: None,
            steps: Vec::new(),
            phases: Vec::new(),
            failure: None,
            wrong: Vec::new(),
            started_at: crate::results::now_rfc3339(),
            noise: NoiseProbe::start(),
            rss_before_open_bytes: None,
            board: Board::alone(),
            elsewhere: None,
            member: None,
            means: None,
            joined: Joined::default(),
            foreign: None,
        })
    }

    /// The record so far.
    fn record(&self) -> Record {
        let outcome = match (&self.failure, self.wrong.is_empty()) {
            (Some(failure), _) => Outcome::Failed { cause: failure.cause, text: failure.text.clone() },
            (None, false) => Outcome::WrongAnswers { faults: self.wrong.clone() },
            (None, true) => Outcome::Ok,
        };
        Record {
            schema: SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at.clone(),
            trial: self.trial.clone(),
            outcome,
            engine: self.facts.clone().map(Arc::new),
            phases: self.phases.clone(),
            steps: self.steps.clone(),
            disk_after_close: if self.database.is_none() { DiskUse::of(&self.data) } else { None },
            rss_peak_bytes: self.rss_peak_bytes(),
            rss_before_open_bytes: self.rss_before_open_bytes,
            foreign: self.foreign,
            memory_cap: None,
            effective_cpus: effective_cpus(),
            clock: None,
            noise: Some(self.noise_so_far()),
            warnings: Vec::new(),
        }
    }

    /// Times `work` as a step.
    fn step<T>(&mut self, name: StepKind, before: Option<&str>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.board.step(name);
        let start = self.clock.now();
        let result = work(self);
        self.steps.push(Step {
            name,
            before_phase: before.map(String::from),
            elapsed_ns: self.clock.to_ns(self.clock.now().saturating_sub(start)),
            note: None,
            keys: None,
        });
        result
    }

    fn note_step(&mut self, note: &str) {
        if let Some(step) = self.steps.last_mut() {
            step.note = Some(note.into());
        }
    }

    /// Records the number of restored keys in the step of a reopen, or of the open of a kept database.
    fn note_keys(&mut self) {
        let keys = self.restored_keys();
        if let Some(step) = self.steps.last_mut() {
            step.keys = keys;
        }
    }

    fn restored_keys(&self) -> Option<u64> {
        // With counters the number of keys is unknown.
        let restores = self.has_run() || self.trial.reused;
        if restores && self.merges == 0 { self.keys_now() } else { None }
    }

    /// Whether a phase has been run, so that an open restores keys.
    fn has_run(&self) -> bool {
        self.phases.iter().any(|phase| phase.not_run.is_none())
    }

    fn close(&mut self, before: Option<&str>) -> bool {
        let Some(database) = self.database.take() else { return true };
        let closed = self.step(StepKind::Close, before, |_| database.close());
        match closed {
            Ok(()) => true,
            Err(error) => {
                self.fail(Cause::EngineError, format!("close: {error}"));
                false
            }
        }
    }

    fn fail(&mut self, cause: Cause, text: String) {
        self.fail_with(Failure { cause, text });
    }

    fn fail_with(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(short::failure(failure, &self.data));
        }
    }

    /// Whether the database is in memory only, as it said when it was opened last: an option or a level may make it so.
    fn in_memory(&self) -> bool {
        self.effective.unwrap_or(self.engine.capabilities()) & KV_IN_MEMORY != 0
    }

    fn run_phases(&mut self, on_tick: OnTick<'_>, keep: Keep<'_>) -> Result<(), TrialError> {
        let trial = self.trial;
        let skipped = if trial.reused { fills(&trial.workload) } else { 0 };
        let mut kept = Instant::now();
        for turn in schedule(&trial.workload) {
            let phase = &trial.workload.phases[turn.place];
            let prepared = if turn.place < skipped { Err(NotRun::Reused) } else { self.prepare(phase) };
            match prepared {
                Ok(()) => self.phase(turn, on_tick),
                Err(reason) => self.not_run(turn, reason.to_string()),
            }
            // The complete record is written each time, which is too slow after each of many short rounds.
            if turn.is_last(&trial.workload) || kept.elapsed() >= KEEP_EVERY {
                keep(&self.record())?;
                kept = Instant::now();
            }
            if self.failure.is_some() {
                break;
            }
        }
        if self.phases.iter().all(|phase| phase.not_run.is_some()) && self.failure.is_none() {
            // A skipped load is not the reason for the other phases.
            let reasons = || self.phases.iter().filter_map(|phase| phase.not_run.clone());
            let reused = NotRun::Reused.to_string();
            let reason = reasons().find(|reason| *reason != reused).or_else(|| reasons().next());
            self.fail(Cause::Refused, reason.unwrap_or_else(|| "no phase ran".into()));
        }
        if self.failure.is_none() {
            self.finish_together(on_tick);
        } else {
            self.close(None);
        }
        Ok(())
    }

    /// The requested level of a phase.
    fn requested_level(&self, phase: &Phase) -> Durability {
        phase.durability.unwrap_or(self.trial.workload.durability)
    }

    /// Prepares the database for a phase; an `Err` is the reason why the phase is not run.
    fn prepare(&mut self, phase: &Phase) -> Result<(), NotRun> {
        let level = target_level(&self.engine, &self.trial.workload, phase);
        let name = Some(phase.name.as_str());
        if phase.settle_before && self.database.is_some() {
            self.settle(name);
        }
        let changes = self.level != level;
        // As the open database says. Other programs use the page cache too, so it is dropped only for what is in it.
        let has_files = !self.in_memory() && !self.engine.stores_nothing();
        if self.database.is_some() && (changes || phase.reopen_before || phase.drop_caches_before) {
            if self.in_memory() && !self.engine.stores_nothing() {
                return Err(NotRun::LosesData);
            }
            if !self.close(name) {
                return Err(NotRun::NotClosed);
            }
        }
        if phase.drop_caches_before && has_files {
            let dropped = self.step(StepKind::DropCaches, name, |_| kvdyno_measure::disk::drop_caches());
            if let Err(error) = dropped {
                self.note_step(&error.to_string());
            }
        }
        self.survey(level, name)?;
        if self.database.is_none() {
            let step = if self.facts.is_some() { StepKind::Reopen } else { StepKind::Open };
            let is_first = self.facts.is_none();
            self.before_open(is_first)?;
            self.open(step, level, name)?;
            self.after_open(is_first)?;
            self.meet_members()?;
            self.note_keys();
        }
        let capabilities = self.database.as_ref().map_or(0, |database| database.effective().capabilities);
        let lack = phase::lacks(phase, capabilities, &self.spaces)
            .or_else(|| phase::lacks_keys(phase, capabilities, self.trial.workload.keys));
        lack.or_else(|| self.defect(phase)).map_or(Ok(()), |reason| Err(NotRun::Lacks(reason)))
    }

    /// Learns which members the store has; refuses one whose members cannot fail as the workload wants.
    fn meet_members(&mut self) -> Result<(), NotRun> {
        // An engine that stores nothing shows what the harness could do without faults.
        if self.engine.stores_nothing() {
            return Ok(());
        }
        companions::meet(&self.trial.workload, self.means.as_ref()).map_err(|reason| {
            self.fail(Cause::Refused, reason.to_string());
            NotRun::Members(reason)
        })
    }

    fn settle(&mut self, before: Option<&str>) {
        let settled = self.step(StepKind::Settle, before, |run| {
            run.database.as_ref().map(|database| database.maintain(Work::Settle))
        });
        match settled {
            Some(Ok(true)) | None => {}
            Some(Ok(false)) => self.note_step("the engine does not report background work"),
            Some(Err(error)) => self.fail(Cause::EngineError, format!("settle: {error}")),
        }
        if let Some(last) = self.phases.last_mut() {
            last.disk_settled = DiskUse::of(&self.data);
        }
    }

    /// The shared data of the threads of a phase.
    fn shared<'s>(
        &'s self,
        phase: &'s Phase,
        round: Option<u32>,
        values: &'s Values,
        seed: u64,
    ) -> Shared<'s> {
        let slots = phase::slots(phase);
        let kinds = phase::kinds_of(phase);
        // Threads of an earlier phase may still read their stop word; it has four bytes, and there are few phases.
        let stop: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let database = self.database.as_ref();
        Shared {
            phase,
            round,
            seed,
            hot_seed: self.trial.ops_seed(),
            keys: &self.keys,
            spaces: &self.spaces,
            mark_bytes: self.spaces.mark_len() as u64,
            row_ops: self.spaces.row_ops(),
            values,
            versions: self.versions.as_ref(),
            recent: self.versions.as_ref().and_then(Versions::recent),
            accepts_stale: false,
            epochs: (self.versions.is_some() && phase::is_contended(phase)).then(|| Epochs::new(slots.len())),
            lists: self.lists.as_ref(),
            population: self.population,
            fill_items: self.trial.workload.keys,
            insert_end: self.insert_end,
            counters_from: self.insert_end,
            clock: self.clock,
            bound: Bound::of(self.engine.is_driven(), self.clock, self.clock_cost_ns),
            capabilities: database.map_or(0, |database| database.effective().capabilities),
            level: level_of(database.map_or(KV_NONE, |database| database.effective().level)),
            checked: !self.engine.stores_nothing(),
            is_guarded: self.trial.paranoid,
            writers: slots.iter().filter(|slot| slot.writer.is_some()).count() as u64,
            inserters: slots.iter().filter(|slot| slot.inserter.is_some()).count() as u64,
            deletes: kinds.iter().any(|kind| kind.deletes()),
            writes: kinds.iter().any(|kind| kind.writes()),
            seconds: self.trial.workload.load_limit(phase).or(phase.seconds_limit()),
            warm_until: AtomicU64::new(0),
            counted_from: OnceLock::new(),
            arriver: Arriver::of(phase, seed),
            stop,
            is_steady: AtomicBool::new(false),
            failure: Mutex::new(None),
            slots,
            faults: if self.engine.stores_nothing() {
                Vec::new()
            } else {
                self.trial.workload.faults_of(phase)
            },
        }
    }

    fn phase(&mut self, turn: Turn, on_tick: OnTick<'_>) {
        let workload = &self.trial.workload;
        let phase = &workload.phases[turn.place];
        // An engine that stores nothing counts as filled, so that phases can draw keys, unless the phase itself inserts
        // them.
        let inserts = || phase::slots(phase).iter().any(|slot| slot.inserter.is_some());
        if self.engine.stores_nothing() && self.population.dense == 0 && (self.trial.reused || !inserts()) {
            self.population.dense = self.trial.workload.keys;
        }
        let seed = turn.seed(self.trial.ops_seed());
        let mut shared = self.shared(phase, turn.round, &self.values[turn.place], seed);
        self.board.begin(Some(turn), &mut shared.slots);
        let database = self.database.as_ref().expect("prepare opened it");
        // What is read to compute what is written must be exact.
        shared.accepts_stale = database.effective().may_be_stale()
            && shared.lists.is_none()
            && !phase::merges_by_get(phase, shared.capabilities);
        let others = self.member.as_ref().map(|member| Others { member, board: &self.board });
        let outside = Outside { data: &self.data, others, means: self.means.as_ref() };
        let finished = phase::run(&shared, database, outside, on_tick);
        let after = shared.population_after();
        let level = level_of(database.effective().level);
        drop(shared);
        match finished {
            Ok(PhaseRun { mut record, failure, merges }) => {
                self.population = population(phase, &record, after, workload.keys);
                if workload.rounds > MOST_ROUNDS_IN_SECONDS && turn.round.is_some() {
                    record.series.clear();
                }
                record.durability_effective = Some(level);
                record.durability_requested = self.requested_level(phase);
                record.keys_after = self.keys_after(phase);
                if phase.transaction != Some(Transaction::Aborted) {
                    self.merges += merges;
                }
                let round = turn.round.map_or_else(String::new, |round| format!(", round {round}"));
                let faults = record.check.first_faults.iter();
                self.wrong.extend(faults.map(|fault| format!("phase {}{round}: {fault}", phase.name)));
                let failure = failure.or_else(|| too_slow(workload, &mut record));
                self.phases.push(record);
                if let Some(failure) = failure {
                    self.fail_with(failure);
                } else if self.merges > 0 && phase.mix.merge > 0.0 && turn.is_last(workload) {
                    self.check_counters(&format!("phase {}", phase.name));
                }
            }
            Err(failure) => {
                self.not_run(turn, failure.text.clone());
                self.fail_with(failure);
            }
        }
    }

    /// The record of a phase that was not run.
    fn not_run(&mut self, turn: Turn, reason: String) {
        let phase = &self.trial.workload.phases[turn.place];
        let mut record = PhaseRecord::not_run(phase.clone(), self.requested_level(phase), reason);
        record.round = turn.round;
        self.phases.push(record);
    }

    fn keys_after(&self, phase: &Phase) -> Option<u64> {
        if phase.mix.merge > 0.0 { None } else { self.keys_now() }
    }

    /// The number of keys, or of elements of lists, in the database; none: unknown.
    fn keys_now(&self) -> Option<u64> {
        if self.engine.stores_nothing() || self.engine.capabilities() & KV_EVICTS != 0 {
            return None;
        }
        if let Some(foreign) = &self.foreign {
            return foreign.rows;
        }
        if let Some(lists) = &self.lists {
            return Some(lists.left());
        }
        if self.population.is_without_holes() {
            return Some(self.population.dense);
        }
        match &self.versions {
            Some(table) if self.population.next_insert <= table.len() => Some(table.present_count()),
            _ => self.population.whole.then_some(self.population.dense),
        }
    }
}

/// The failure of a fill that did not end in time. Its figures are those of an incomplete fill, so the record says that.
fn too_slow(workload: &Workload, record: &mut PhaseRecord) -> Option<Failure> {
    let limit = workload.load_limit(&record.phase).filter(|_| record.ended_by == EndedBy::Time)?;
    let loaded = format!("loaded {} of {} keys in {limit} s", grouped(record.ops), grouped(workload.keys));
    record.ended_by = EndedBy::Failure;
    record.not_run = Some(format!("cut short: {loaded}"));
    Some(Failure { cause: Cause::TooSlow, text: format!("{loaded}; --load-seconds raises the limit") })
}

/// The population after a phase.
fn population(phase: &Phase, record: &PhaseRecord, after: Population, keys: u64) -> Population {
    let puts = phase.mix.put > 0.0 || phase.writers > 0;
    if !puts || phase.existing.is_some() || phase.transaction == Some(Transaction::Aborted) {
        return after;
    }
    let is_complete = phase.each_key && record.ended_by == EndedBy::Count;
    Population {
        dense: after.dense.max(keys),
        whole: after.whole && (is_complete || after.dense >= keys),
        next_insert: after.next_insert.max(keys),
    }
}
