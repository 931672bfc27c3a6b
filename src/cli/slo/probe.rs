//! The runs of a search: one engine at one rate, on a copy of the database that was loaded for it.

use crate::cli::error::CliError;
use crate::cli::kept::KeepArgs;
use crate::cli::trials::{Failure, Kept, Trials, phase};
use kvdyno_core::generator::{Course, Distribution, Rate};
use kvdyno_core::results::{PhaseRecord, Record, observation};
use kvdyno_core::runner::Entry;
use kvdyno_core::workload::{Durability, Mix, Phase};
use kvdyno_load::search::{Limits, Observation};
use kvdyno_measure::Histogram;
use std::cell::Cell;

/// The time at a rate that is not counted, seconds: the first writes to a copied database are slower than later ones.
const WARM_UP_SECONDS: f64 = 3.0;
/// The longest time in which a copied database is read before it is measured, seconds.
const WARM_SECONDS: f64 = 10.0;

/// What all runs of a search have in common.
pub(super) struct Probes<'a> {
    /// Its trials.
    pub trials: Trials<'a>,
    /// The place of the measured phase, and its name.
    pub place: usize,
    pub phase: String,
    /// The number of runs so far: each has arrivals and ops of its own.
    pub runs: Cell<u64>,
}

/// The closed loop of an engine.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// Ops per second.
    pub ops_per_second: f64,
    /// The effective durability level; none: unknown.
    pub level: Option<Durability>,
}

/// What was seen at a rate.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Requests per second.
    pub rate: f64,
    /// The part of the rate that holds; none: a run of the search.
    pub part: Option<f64>,
    /// For the search.
    pub observation: Observation,
    /// Response times, nanoseconds.
    pub response: Histogram,
    /// Why these are not those of the engine at this rate; none: they are.
    pub unfit: Option<String>,
}

impl Seen {
    /// A percentile of the response time, nanoseconds; none: it is not known.
    pub(super) fn response(&self, part: u64, of: u64) -> Option<u64> {
        self.response.quantile_if_enough(part, of).filter(|_| self.unfit.is_none())
    }
}

impl Probes<'_> {
    /// Loads the database of an engine, keeps it, and runs a closed loop for so many seconds. Returns its ops per second, or why it
    /// failed.
    pub(super) fn load(
        &self,
        entry: &Entry,
        place: usize,
        seconds: f64,
    ) -> Result<(Kept, Result<Closed, Failure>), CliError> {
        let kept = Kept::of(entry, &self.trials.folder, place);
        let record = self.run(self.entry(entry, None, seconds), kept.first())?;
        let found = phase(&record, &self.phase).map(|phase| Closed {
            ops_per_second: phase.ops_per_second().unwrap_or(0.0),
            level: phase.durability_effective,
        });
        Ok((kept, found))
    }

    /// Runs an engine at a rate for so many seconds, and returns what was seen, or why it failed.
    pub(super) fn at_rate(
        &self,
        entry: &Entry,
        kept: &Kept,
        limits: &Limits,
        rate: f64,
        seconds: f64,
    ) -> Result<Result<Seen, Failure>, CliError> {
        let record = self.run(self.entry(entry, Some(rate), seconds), kept.later())?;
        Ok(phase(&record, &self.phase).map(|phase| seen(phase, limits, rate)))
    }

    /// The entry with the measured phase at a rate; none: in a closed loop.
    fn entry(&self, entry: &Entry, rate: Option<f64>, seconds: f64) -> Entry {
        let mut entry = entry.clone();
        entry.workload.runs = 1;
        entry.workload.budget_seconds = None;
        let phase = &mut entry.workload.phases[self.place];
        let phase_threads = phase.threads;
        phase.rate = rate.map(|rate| Rate { is_poisson: true, course: Course::Constant(rate) });
        (phase.seconds, phase.ops, phase.each_key) = (seconds, 0, false);
        phase.warmup_seconds = phase.warmup_seconds.max(WARM_UP_SECONDS);
        // A copy is not in the page cache, and an engine that was just opened has empty caches: users see neither.
        if self.place > 0 && entry.workload.collections.count == 0 {
            let warm = Phase {
                name: "warm".into(),
                mix: Mix { get: 1.0, ..Mix::default() },
                distribution: Distribution::Sequential,
                each_key: true,
                seconds: WARM_SECONDS,
                threads: phase_threads,
                ..Phase::default()
            };
            entry.workload.phases.insert(self.place, warm);
        }
        entry
    }

    fn run(&self, entry: Entry, keep: KeepArgs) -> Result<Record, CliError> {
        self.runs.set(self.runs.get() + 1);
        self.trials.run(entry, keep, self.runs.get())
    }
}

/// What a phase at a rate shows.
fn seen(phase: &PhaseRecord, limits: &Limits, rate: f64) -> Seen {
    let response = phase.times(|kind| &kind.response_ns);
    let unfit = phase.arrivals.as_ref().and_then(|arrivals| arrivals.unfit(&response));
    let observation = observation(&[phase], limits);
    Seen { rate, part: None, observation, response, unfit: unfit.map(|unfit| unfit.to_string()) }
}
