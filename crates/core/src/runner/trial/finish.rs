//! The end of a trial: close, reopen in a fresh process, and the sweep.

use super::{OnTick, TrialRun};
use crate::engine::{Database, abi::KV_ORDERED};
use crate::generator::Sizes;
use crate::results::{Cause, CheckLevel, EndedBy, PhaseRecord, Record, Step, StepKind};
use crate::runner::companions::Outside;
use crate::runner::sweep::{self, Extent};
use crate::runner::{count, lists, phase};
use crate::workload::{Phase, Transaction};
use kvdyno_measure::noise::run_delay_share_of;
use kvdyno_measure::warning::warnings_of_noise;
use kvdyno_measure::{DiskUse, Noise, Usage, Warning};

/// The warnings of a record. The rounds of a phase have one warning in common.
pub(super) fn warnings(record: &Record) -> Vec<Warning> {
    let ran: Vec<&PhaseRecord> = record.phases.iter().filter(|phase| phase.not_run.is_none()).collect();
    let mut warnings = warnings_of_noise(&record.noise.unwrap_or_default());
    let is_undropped = |step: &&Step| step.name == StepKind::DropCaches && step.note.is_some();
    if let Some(step) = record.steps.iter().find(is_undropped) {
        let phase = step.before_phase.as_deref().unwrap_or("-");
        warnings.extend(Warning::of_caches(phase, step.note.as_deref()));
    }
    warnings.extend(Warning::of_guard_pages(record.trial.paranoid));
    let stateless =
        ran.iter().find(|phase| phase.check.level == CheckLevel::Stateless && phase.check.values > 0);
    warnings.extend(stateless.and_then(|phase| Warning::of_checks(&phase.phase.name, true)));
    let (least, most) = sizes_of(record, &ran);
    warnings.extend(Warning::of_small_values(least, most));
    for phase in ran.iter().filter(|phase| phase.round.is_none_or(|round| round == 1)) {
        let name = &phase.phase.name;
        let rounds = || ran.iter().filter(|other| other.phase.name == *name);
        let time: f64 = rounds().map(|other| other.elapsed_ns as f64).sum();
        let own: f64 = rounds().map(|other| other.elapsed_ns as f64 * other.harness_share).sum();
        let share = if phase.round.is_none() { phase.harness_share } else { own / time.max(1.0) };
        // A null engine measures the harness, so all of its time is the harness's.
        // Its calls are so short that cold caches take a part of them, and it is not compared.
        if !record.trial.is_floor {
            warnings.extend(Warning::of_harness_share(name, share));
            let beyond = rounds().find_map(|other| other.call_times.as_ref()?.beyond.as_deref());
            warnings.extend(Warning::of_call_times(name, beyond));
        }
        warnings.extend(Warning::of_sample(name, rounds().map(|other| other.ops).sum()));
        warnings.extend(Warning::of_series(name, &phase.series).filter(|_| phase.round.is_none()));
        // An engine that stores nothing needs no more memory for anything.
        let adds_none = record.trial.is_floor
            || keys_before(&ran, phase).is_some_and(|before| phase.keys_after == Some(before));
        let growth = Warning::of_growth(name, &phase.series);
        warnings.extend(growth.filter(|_| phase.round.is_none() && adds_none));
        let early = rounds().find(|other| other.ended_by == EndedBy::Keys);
        warnings.extend(early.map(|_| Warning::of_missing_keys(name)));
    }
    warnings
}

/// The smallest and the largest value of the phases whose reads were checked; bytes.
fn sizes_of(record: &Record, ran: &[&PhaseRecord]) -> (usize, usize) {
    let own = &record.trial.workload.value.size;
    let checked = ran.iter().filter(|phase| phase.check.level != CheckLevel::None);
    let sizes = checked.filter_map(|phase| Sizes::new(phase.phase.value_size.as_ref().unwrap_or(own)).ok());
    sizes.fold((usize::MAX, 0), |(least, most), sizes| {
        (least.min(sizes.min() as usize), most.max(sizes.max() as usize))
    })
}

/// The number of keys before a phase: after the one before it.
fn keys_before(ran: &[&PhaseRecord], phase: &PhaseRecord) -> Option<u64> {
    let place = ran.iter().position(|other| std::ptr::eq(*other, phase))?;
    ran[place.checked_sub(1)?].keys_after
}

impl TrialRun<'_> {
    /// The noise of the trial so far; the run delay comes from its phases, which measure it best.
    pub(super) fn noise_so_far(&self) -> Noise {
        let mut noise = self.noise.finish();
        let usages = self.phases.iter().filter(|phase| phase.ops > 0).map(|phase| &phase.usage);
        let waits = usages.map(|usage| Some((usage.run_delay_ns?, usage.cpu_ns()?)));
        let known: Vec<(u64, u64)> = waits.collect::<Option<_>>().unwrap_or_default();
        if !known.is_empty() {
            noise.run_delay_share = run_delay_share_of(&known);
        }
        noise
    }

    /// The maximum so far: a server that the engine had started may have ended already.
    pub(super) fn rss_peak_bytes(&self) -> Option<u64> {
        let phases = self.phases.iter().filter_map(|phase| phase.usage.rss_peak_bytes);
        phases.chain(Usage::now().rss_peak_bytes).max()
    }

    /// Close, reopen, sweep, close. Engines that store rows are reopened in a fresh process.
    pub(super) fn finish(&mut self, on_tick: OnTick<'_>) {
        let stores = !self.engine.stores_nothing();
        let has_rows = self.lists.is_some() || self.population.dense > 0 || self.has_undone();
        let extent = if stores && has_rows { self.extent() } else { Extent::Nothing };
        if self.in_memory() {
            self.sweep_rows(extent, on_tick);
            self.close(None);
            return;
        }
        if !self.close(None) {
            return;
        }
        // Nothing was written, and nothing can be compared.
        if self.trial.is_foreign() {
            return;
        }
        if stores && self.population.dense > 0 {
            self.check_folder();
        }
        match self.elsewhere {
            Some(elsewhere) if stores => self.finish_elsewhere(elsewhere, extent),
            _ => {
                if self.reopen() {
                    self.sweep_and_close(extent, on_tick);
                }
            }
        }
    }

    /// How much the sweep of a database with rows reads. A database that is kept is swept completely, and so is one that may
    /// have rows of an aborted transaction, which are at none of the keys that a sample is of.
    fn extent(&self) -> Extent {
        let is_kept = self.elsewhere.is_some_and(|elsewhere| elsewhere.is_kept);
        let is_later = self.trial.repetition > 1;
        let is_sampled = self.trial.workload.sweep_once && is_later && !is_kept && !self.has_undone();
        if is_sampled { Extent::Sample } else { Extent::All }
    }

    /// Reopens the closed database; returns false on failure.
    pub(super) fn reopen(&mut self) -> bool {
        if let Err(error) = self.open(StepKind::Reopen, self.level, None) {
            self.fail(Cause::EngineError, format!("reopen at the end: {error}"));
            return false;
        }
        self.note_keys();
        true
    }

    /// Sweeps the reopened database, and closes it.
    pub(super) fn sweep_and_close(&mut self, extent: Extent, on_tick: OnTick<'_>) {
        self.sweep_rows(extent, on_tick);
        if self.merges > 0 {
            self.check_counters("after the reopen at the end");
        }
        self.close_after_sweep();
    }

    /// Lists are always swept completely.
    fn sweep_rows(&mut self, extent: Extent, on_tick: OnTick<'_>) {
        match extent {
            Extent::Nothing => {}
            Extent::Sample | Extent::All if self.lists.is_some() => self.sweep_lists(),
            Extent::Sample | Extent::All => self.sweep(extent, on_tick),
        }
    }

    /// Checks that an engine that stores rows has files. A server that was started by others has them elsewhere.
    fn check_folder(&mut self) {
        let is_elsewhere = self.record().is_of_client_alone();
        if !is_elsewhere && DiskUse::of(&self.data).is_some_and(|disk| disk.apparent_bytes == 0) {
            let text = "after the close the database's folder is empty, but the engine does not declare that it keeps \
                        its data in memory";
            self.wrong.push(text.into());
        }
    }

    /// Closes the database without a step: nothing was written since the first close, so this one is too fast to count.
    fn close_after_sweep(&mut self) {
        self.board.step(StepKind::Close);
        if let Some(Err(error)) = self.database.take().map(Database::close) {
            self.fail(Cause::EngineError, format!("close after the sweep: {error}"));
        }
    }

    /// Whether a phase was aborted, so that an empty database must be swept too.
    fn has_undone(&self) -> bool {
        let undone = Some(Transaction::Aborted);
        self.phases.iter().any(|ran| ran.phase.transaction == undone && ran.not_run.is_none())
    }

    /// Sweeps the remaining elements of lists.
    fn sweep_lists(&mut self) {
        self.board.step(StepKind::Sweep);
        let start = self.clock.now();
        let base = Phase::default();
        let shared = self.shared(&base, None, &self.values[0], self.trial.workload.seed);
        let database = self.database.as_ref().expect("it was opened for the sweep");
        let found = lists::sweep(&shared, database);
        drop(shared);
        let note = match found {
            Ok((faults, note)) => {
                let faults = faults.first.into_iter();
                self.wrong.extend(faults.map(|fault| format!("sweep of the lists at the end: {fault}")));
                note
            }
            Err(text) => {
                self.fail(Cause::EngineError, format!("sweep of the lists: {text}"));
                None
            }
        };
        self.end_sweep(start, note);
    }

    fn end_sweep(&mut self, start: u64, note: Option<String>) {
        self.steps.push(Step {
            name: StepKind::Sweep,
            before_phase: None,
            elapsed_ns: self.clock.to_ns(self.clock.now().saturating_sub(start)),
            note,
            keys: None,
        });
    }

    fn sweep(&mut self, extent: Extent, on_tick: OnTick<'_>) {
        let capabilities = self.database.as_ref().map_or(0, |database| database.effective().capabilities);
        // A scan would find the keys of other load generators too.
        let capabilities =
            if self.trial.load_generator.is_some() { capabilities & !KV_ORDERED } else { capabilities };
        let start = self.clock.now();
        let mut lost = sweep::Lost::default();
        for phase in sweep::phases(self.population.dense, capabilities, &self.spaces, extent) {
            let mut shared = self.shared(&phase, None, &self.values[0], self.trial.workload.seed);
            self.board.begin(None, &mut shared.slots);
            let database = self.database.as_ref().expect("it was opened for the sweep");
            let outside = Outside { data: &self.data, others: None, means: None };
            let ran = phase::run(&shared, database, outside, on_tick);
            drop(shared);
            match ran {
                Ok(ran) => {
                    lost.add(&ran.record.kinds);
                    let faults = ran.record.check.first_faults.iter();
                    self.wrong.extend(faults.map(|fault| format!("{} at the end: {fault}", phase.name)));
                    if let Some(failure) = ran.failure {
                        self.fail_with(failure);
                    }
                }
                Err(failure) => self.fail_with(failure),
            }
        }
        if self.failure.is_none() {
            self.index_gets(extent);
        }
        let notes = [sweep::note(self.population.dense, capabilities, extent), lost.note()];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        self.end_sweep(start, (!notes.is_empty()).then(|| notes.join("; ")));
    }

    /// Checks the index rows of an engine whose indexes cannot be scanned.
    fn index_gets(&mut self, extent: Extent) {
        let base = Phase::default();
        let shared = self.shared(&base, None, &self.values[0], self.trial.workload.seed);
        let database = self.database.as_ref().expect("it was opened for the sweep");
        let found = sweep::index_gets(&shared, database, extent);
        drop(shared);
        match found {
            Ok(faults) => {
                let faults = faults.first.into_iter();
                self.wrong.extend(faults.map(|fault| format!("sweep by get at the end: {fault}")));
            }
            Err(text) => self.fail(Cause::EngineError, format!("sweep: {text}")),
        }
    }

    /// Checks that the sum of all counters is the number of merges: counters have no header. `when` is for messages.
    pub(super) fn check_counters(&mut self, when: &str) {
        if self.engine.stores_nothing() {
            return;
        }
        let Some(database) = &self.database else { return };
        let items = self.insert_end..self.insert_end + self.counters;
        match count::sum(database, &self.keys, &self.spaces, items, self.clock.kind()) {
            Ok(sum) if sum == self.merges => {}
            Ok(sum) => self.wrong.push(format!(
                "{when}: the sum of the counters is {sum}, but {} merges were acknowledged",
                self.merges
            )),
            Err(text) => self.wrong.push(format!("{when}: {text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn warnings_cover_phases_and_steps() {
        let mut record = fixture::records().into_iter().find(|record| record.trial.engine == "lmdb").unwrap();
        let ids = |record: &Record| -> Vec<String> {
            warnings(record).into_iter().map(|warning| warning.id).collect()
        };
        // The record has a step drop-caches with the note `not permitted`.
        assert_eq!(ids(&record), ["caches-not-dropped"]);
        record.phases[1].phase.value_size = Some("uniform:0-100".parse().unwrap());
        assert_eq!(ids(&record), ["caches-not-dropped", "small-values"]);
        record.phases[1].phase.value_size = None;
        record.phases[1].check.level = CheckLevel::Stateless;
        record.phases[2].ended_by = EndedBy::Keys;
        record.phases[2].harness_share = 0.5;
        record.noise = Some(Noise { steal_share: Some(0.5), ..Noise::default() });
        assert_eq!(
            ids(&record),
            ["steal", "caches-not-dropped", "checks-reduced", "harness-share", "not-whole"]
        );
    }
}
