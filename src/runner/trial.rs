//! One trial, inside its own process: open, phases, close, reopen, sweep; and the record of all that.

mod finish;
mod open;

use super::check::Versions;
use super::count;
use super::data::{self, growth, has_merges};
use super::facts::level_of;
use super::phase::{self, Ran};
use super::shared::{Failure, Population, Shared};
use super::spaces::Spaces;
use super::watch::Tick;
use crate::engine::abi::*;
use crate::engine::{Database, Engine, Work};
use crate::generator::{Keys, Values};
use crate::measure::placement::cpus_in_force;
use crate::measure::warning::warnings_of_noise;
use crate::measure::{Clock, DiskUse, NoiseProbe, Usage, Warning};
use crate::results::{EngineFacts, Outcome, PhaseRecord, Record, SCHEMA, Step, Trial};
use crate::workload::{Durability, Phase};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Sees ticks and steps as they happen.
pub type OnTick<'a> = &'a mut dyn FnMut(&Tick);

/// A trial on its way.
pub struct Running<'t> {
    trial: &'t Trial,
    engine: Engine,
    data: PathBuf,
    clock: Clock,
    keys: Keys,
    spaces: Spaces,
    values: Vec<Values>,
    versions: Option<Versions>,
    population: Population,
    insert_end: u64,
    merges: u64,
    counters: u64,
    database: Option<Database>,
    level: Durability,
    has_created: bool,
    facts: Option<EngineFacts>,
    steps: Vec<Step>,
    phases: Vec<PhaseRecord>,
    failure: Option<Failure>,
    faults: Vec<String>,
    started_at: String,
    noise: NoiseProbe,
    rss_before_open_bytes: Option<u64>,
}

/// Keeps what has been measured so far, in case the rest goes wrong.
pub type Keep<'a> = &'a dyn Fn(&Record) -> Result<(), String>;

/// Runs a trial in `data`, an empty folder of its own, and gives its record; `keep` is given what there is after each
/// phase. Only a trial that cannot even be set up (an unusable key format, say) is an `Err`.
pub fn run(
    trial: &Trial,
    engine: Engine,
    data: &Path,
    clock: Clock,
    on_tick: OnTick<'_>,
    keep: Keep<'_>,
) -> Result<Record, String> {
    let mut running = Running::new(trial, engine, data, clock)?;
    running.rss_before_open_bytes = Usage::now().rss_bytes;
    running.go(on_tick, keep)?;
    let mut record = running.record();
    let clock = clock.facts();
    record.warnings = warnings(&record);
    record.clock = Some(clock);
    Ok(record)
}

/// What a reader of the record has to know.
fn warnings(record: &Record) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = record.noise.as_ref().map(warnings_of_noise).unwrap_or_default();
    for phase in record.phases.iter().filter(|phase| phase.not_run.is_none()) {
        warnings.extend(Warning::of_harness_share(&phase.phase.name, phase.harness_share));
        warnings.extend(Warning::of_sample(&phase.phase.name, phase.ops));
    }
    warnings
}

impl<'t> Running<'t> {
    fn new(trial: &'t Trial, engine: Engine, data: &Path, clock: Clock) -> Result<Running<'t>, String> {
        let workload = &trial.workload;
        let counters = if has_merges(workload) { workload.keys } else { 0 };
        let (keys, insert_end) = data::keys(workload, growth(workload), counters)?;
        let values = data::values(workload)?;
        let spaces = Spaces::new(workload, engine.capabilities());
        let checked = !engine.stores_nothing();
        let versions = if checked { Versions::new(workload.keys, insert_end) } else { None };
        Ok(Running {
            trial,
            engine,
            data: data.to_path_buf(),
            clock,
            keys,
            spaces,
            values,
            versions,
            population: Population { dense: 0, whole: true, next_insert: 0 },
            insert_end,
            merges: 0,
            counters,
            database: None,
            level: workload.durability,
            has_created: false,
            facts: None,
            steps: Vec::new(),
            phases: Vec::new(),
            failure: None,
            faults: Vec::new(),
            started_at: crate::results::now_rfc3339(),
            noise: NoiseProbe::start(),
            rss_before_open_bytes: None,
        })
    }

    /// What there is so far.
    fn record(&self) -> Record {
        let outcome = match (&self.failure, self.faults.is_empty()) {
            (Some(failure), _) => Outcome::Failed { cause: failure.cause.into(), text: failure.text.clone() },
            (None, false) => Outcome::WrongAnswers { faults: self.faults.clone() },
            (None, true) => Outcome::Ok,
        };
        Record {
            schema: SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at.clone(),
            trial: self.trial.clone(),
            outcome,
            engine: self.facts.clone(),
            phases: self.phases.clone(),
            steps: self.steps.clone(),
            disk_after_close: if self.database.is_none() { DiskUse::of(&self.data) } else { None },
            rss_peak_bytes: Usage::now().rss_peak_bytes,
            rss_before_open_bytes: self.rss_before_open_bytes,
            memory_cap: None,
            cpus_in_force: cpus_in_force(),
            clock: None,
            noise: Some(self.noise.finish()),
            warnings: Vec::new(),
        }
    }

    /// Times `work` as a step.
    fn step<T>(&mut self, name: &str, before: Option<&str>, work: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.clock.now();
        let result = work(self);
        self.steps.push(Step {
            name: name.into(),
            before_phase: before.map(String::from),
            elapsed_ns: self.clock.to_ns(self.clock.now().saturating_sub(start)),
            note: None,
        });
        result
    }

    fn note_step(&mut self, note: &str) {
        if let Some(step) = self.steps.last_mut() {
            step.note = Some(note.into());
        }
    }

    fn close(&mut self, before: Option<&str>) -> bool {
        let Some(database) = self.database.take() else { return true };
        let closed = self.step("close", before, |_| database.close());
        match closed {
            Ok(()) => true,
            Err(error) => {
                self.fail("engine-error", format!("close: {error}"));
                false
            }
        }
    }

    fn fail(&mut self, cause: &'static str, text: String) {
        if self.failure.is_none() {
            self.failure = Some(Failure { cause, text });
        }
    }

    fn in_memory(&self) -> bool {
        let capabilities = self.database.as_ref().map(|database| database.in_force().capabilities);
        capabilities.unwrap_or(self.engine.capabilities()) & KV_IN_MEMORY != 0
    }

    fn go(&mut self, on_tick: OnTick<'_>, keep: Keep<'_>) -> Result<(), String> {
        let trial = self.trial;
        for (place, phase) in trial.workload.phases.iter().enumerate() {
            match self.prepare(phase) {
                Ok(()) => self.phase(place, phase, on_tick),
                Err(reason) => self.phases.push(not_run(phase, self.asked(phase), reason)),
            }
            keep(&self.record())?;
            if self.failure.is_some() {
                break;
            }
        }
        if self.phases.iter().all(|phase| phase.not_run.is_some()) && self.failure.is_none() {
            let reason = self.phases.iter().find_map(|phase| phase.not_run.clone());
            self.fail("refused", reason.unwrap_or_else(|| "no phase ran".into()));
        }
        if self.failure.is_none() {
            self.finish(on_tick);
        } else {
            self.close(None);
        }
        Ok(())
    }

    fn asked(&self, phase: &Phase) -> Durability {
        phase.durability.unwrap_or(self.trial.workload.durability)
    }

    /// The level to open for a phase: the one asked for, or a weaker one where that will do.
    fn wanted(&self, phase: &Phase) -> Durability {
        let asked = self.asked(phase);
        if !self.trial.workload.or_weaker || phase.durability.is_some() || asked == Durability::Default {
            return asked;
        }
        let strongest = (0..=KV_POWER).rev().find(|level| self.engine.levels() & (1 << level) != 0);
        asked.min(level_of(strongest.unwrap_or(KV_NONE)))
    }

    /// Brings the database into the state that a phase wants; an `Err` says why the phase is not run.
    fn prepare(&mut self, phase: &Phase) -> Result<(), String> {
        let wanted = self.wanted(phase);
        let name = Some(phase.name.as_str());
        if phase.settle_before && self.database.is_some() {
            self.settle(name);
        }
        let changes = self.level != wanted;
        if self.database.is_some() && (changes || phase.reopen_before || phase.drop_caches_before) {
            if self.in_memory() && !self.engine.stores_nothing() {
                return Err("it needs a reopen, which an engine in memory does not survive".into());
            }
            if !self.close(name) {
                return Err("the database could not be closed".into());
            }
        }
        if phase.drop_caches_before {
            let dropped = self.step("drop-caches", name, |_| crate::measure::disk::drop_caches());
            if let Err(error) = dropped {
                self.note_step(&error);
            }
        }
        if self.database.is_none() {
            let step = if self.has_created { "reopen" } else { "open" };
            self.open(step, wanted, name)?;
        }
        let capabilities = self.database.as_ref().map_or(0, |database| database.in_force().capabilities);
        match phase::lacks(phase, capabilities, &self.spaces) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    fn settle(&mut self, before: Option<&str>) {
        let settled = self.step("settle", before, |running| {
            running.database.as_ref().map(|database| database.maintain(Work::Settle))
        });
        match settled {
            Some(Ok(true)) | None => {}
            Some(Ok(false)) => self.note_step("the engine has no way to tell"),
            Some(Err(error)) => self.fail("engine-error", format!("settle: {error}")),
        }
        if let Some(last) = self.phases.last_mut() {
            last.disk_settled = DiskUse::of(&self.data);
        }
    }

    /// What the threads of a phase share.
    fn shared<'s>(&'s self, phase: &'s Phase, values: &'s Values, seed: u64) -> Shared<'s> {
        let slots = phase::slots(phase);
        let kinds = phase::kinds_of(phase);
        // Threads of an earlier phase may still look at their word; it is four bytes, and there are few phases.
        let stop: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let database = self.database.as_ref();
        Shared {
            phase,
            seed,
            hot_seed: self.trial.workload.seed,
            keys: &self.keys,
            spaces: &self.spaces,
            mark_bytes: self.spaces.mark_len() as u64,
            row_ops: self.spaces.row_ops(),
            values,
            versions: self.versions.as_ref(),
            population: self.population,
            fill_items: self.trial.workload.keys,
            insert_end: self.insert_end,
            counters_from: self.insert_end,
            clock: self.clock,
            capabilities: database.map_or(0, |database| database.in_force().capabilities),
            checked: !self.engine.stores_nothing(),
            writers: slots.iter().filter(|slot| slot.writer.is_some()).count() as u64,
            inserters: slots.iter().filter(|slot| slot.inserter.is_some()).count() as u64,
            deletes: kinds.iter().any(|kind| kind.deletes()),
            writes: kinds.iter().any(|kind| kind.writes()),
            ops_wanted: phase.ops,
            warm_until: AtomicU64::new(0),
            end_at: AtomicU64::new(0),
            stop,
            failure: Mutex::new(None),
            slots,
        }
    }

    fn phase(&mut self, place: usize, phase: &Phase, on_tick: OnTick<'_>) {
        // The fill puts the keys there for a workload that measures nothing else: engines that store nothing have none.
        if self.engine.stores_nothing() && self.population.dense == 0 {
            self.population.dense = self.trial.workload.keys;
        }
        let seed =
            crate::generator::mix64(self.trial.workload.seed ^ crate::generator::mix64(place as u64 + 1));
        let shared = self.shared(phase, &self.values[place], seed);
        let database = self.database.as_ref().expect("prepare opened it");
        let ran = phase::run(&shared, database, &self.data, on_tick);
        let after = shared.population_after();
        let level = level_of(database.in_force().level);
        drop(shared);
        match ran {
            Ok(Ran { mut record, failure, merges }) => {
                self.population = population(phase, &record, after, self.trial.workload.keys);
                record.durability_in_force = Some(level);
                record.durability_asked = self.asked(phase);
                record.keys_after = self.keys_after(phase);
                self.merges += merges;
                let faults = record.check.first_faults.iter();
                self.faults.extend(faults.map(|fault| format!("phase {}: {fault}", phase.name)));
                self.phases.push(record);
                if let Some(failure) = failure {
                    self.failure = Some(failure);
                } else if merges > 0 {
                    self.check_counters(phase);
                }
            }
            Err(failure) => {
                self.phases.push(not_run(phase, self.asked(phase), failure.text.clone()));
                self.failure = Some(failure);
            }
        }
    }

    fn keys_after(&self, phase: &Phase) -> Option<u64> {
        if self.engine.stores_nothing() || phase.mix.merge > 0.0 {
            return None;
        }
        match &self.versions {
            Some(table) if self.population.next_insert <= table.len() => Some(table.present_count()),
            _ => self.population.whole.then_some(self.population.dense),
        }
    }

    /// Counters carry no check header: their sum must be the number of merges.
    fn check_counters(&mut self, phase: &Phase) {
        if self.engine.stores_nothing() {
            return;
        }
        let database = self.database.as_ref().expect("the phase has run on it");
        let from = self.insert_end;
        let sum =
            count::sum(database, (&self.keys, &self.spaces), from..from + self.counters, self.clock.kind());
        match sum {
            Ok(sum) if sum == self.merges => {}
            Ok(sum) => self.faults.push(format!(
                "phase {}: the counters add up to {sum}, {} merges were acknowledged",
                phase.name, self.merges
            )),
            Err(text) => self.faults.push(format!("phase {}: {text}", phase.name)),
        }
    }
}

/// The keys there are after a phase.
fn population(phase: &Phase, record: &PhaseRecord, after: Population, keys: u64) -> Population {
    let puts = phase.mix.put > 0.0 || phase.writers > 0;
    if !puts || phase.existing.is_some() {
        return after;
    }
    let is_complete = phase.each_key && record.ended_by == "count";
    Population {
        dense: after.dense.max(keys),
        whole: after.whole && (is_complete || after.dense >= keys),
        next_insert: after.next_insert.max(keys),
    }
}

/// The record of a phase that was not run.
fn not_run(phase: &Phase, asked: Durability, reason: String) -> PhaseRecord {
    PhaseRecord::not_run(phase.clone(), asked, reason)
}
