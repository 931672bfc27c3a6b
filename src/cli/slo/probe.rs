//! The runs of a search: one engine at one rate, on a copy of the database that was loaded for it.

use crate::cli::error::{CliError, FAILED};
use crate::cli::kept::KeepArgs;
use crate::cli::plugins::executable;
use crate::cli::request::RunArgs;
use crate::cli::run::{exit_code, observed_run};
use crate::live::{Live, Show};
use kvdyno_core::engine::Registry;
use kvdyno_core::generator::{Course, Distribution, Rate};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::{Outcome, PhaseRecord, Record, observation, random_suffix};
use kvdyno_core::runner::{self, Ending, Entry, Runner, Seeds, TrialSettings};
use kvdyno_core::workload::{Durability, Mix, Phase};
use kvdyno_load::search::{Limits, Observation};
use kvdyno_measure::{Histogram, signals};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// The time at a rate that is not counted, seconds: the first writes to a copied database are slower than later ones.
const WARM_UP_SECONDS: f64 = 3.0;
/// The longest time in which a copied database is read before it is measured, seconds.
const WARM_SECONDS: f64 = 10.0;

/// What all runs of a search have in common.
pub(super) struct Probes<'a> {
    /// The arguments of a run.
    pub base: RunArgs,
    /// The engines.
    pub registry: &'a Registry,
    /// The settings of trials.
    pub settings: TrialSettings,
    /// The place of the measured phase, and its name.
    pub place: usize,
    pub phase: String,
    /// The new folder of the search.
    pub folder: PathBuf,
    /// The command.
    pub command: Vec<String>,
    /// The folders of plug-ins that the user named.
    pub plugins: &'a [PathBuf],
    /// The number of runs so far: each has arrivals and ops of its own.
    pub runs: Cell<u64>,
}

/// How the database of an engine is there at the start of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// As a copy of the one that was loaded first and is kept in this folder.
    Copied(PathBuf),
    /// It is loaded again, because the engine keeps nothing in files.
    Loaded,
}

/// The closed loop of an engine.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// Ops per second.
    pub ops_per_second: f64,
    /// The effective durability level; none: unknown.
    pub level: Option<Durability>,
}

/// Why an engine has no figures.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// What happened.
    pub text: String,
    /// The exit code for it.
    pub code: u8,
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
        let keeps_nothing = entry.contestants.iter().any(|one| one.keeps_nothing || one.is_floor);
        // Each has a folder of its own: an engine may be there with several settings.
        let folder = self.kept_folder().join(place.to_string());
        let kept = if keeps_nothing { Kept::Loaded } else { Kept::Copied(folder) };
        let keep = match &kept {
            Kept::Copied(folder) => KeepArgs { keep: Some(folder.clone()), ..KeepArgs::default() },
            Kept::Loaded => KeepArgs::default(),
        };
        let record = self.run(self.entry(entry, None, seconds), keep)?;
        let found = self.phase(&record).map(|phase| Closed {
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
        let keep = match kept {
            Kept::Copied(folder) => KeepArgs { reuse: Some(folder.clone()), ..KeepArgs::default() },
            Kept::Loaded => KeepArgs::default(),
        };
        let record = self.run(self.entry(entry, Some(rate), seconds), keep)?;
        Ok(self.phase(&record).map(|phase| seen(phase, limits, rate)))
    }

    /// Removes the databases that it has kept.
    pub(super) fn remove_kept(&self) {
        // The folder of the search is new, so nobody else has made it.
        let _ = std::fs::remove_dir_all(self.kept_folder());
    }

    fn kept_folder(&self) -> PathBuf {
        self.folder.join("kept")
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

    /// Runs a trial, as `kvdyno run` does, without progress and report.
    fn run(&self, entry: Entry, keep: KeepArgs) -> Result<Record, CliError> {
        let name = format!("slo-{}", entry.workload.name);
        let reused = keep.reuse.is_some();
        let settings = TrialSettings { seeds: Seeds::OfOps, reused, ..self.settings.clone() };
        let (mut plan, _) = runner::plan(name, self.command.clone(), vec![entry], &settings)?;
        let number = self.runs.get() + 1;
        self.runs.set(number);
        for trial in &mut plan.trials {
            trial.seed = Some(trial.workload.seed.wrapping_add(number));
        }
        let run = observed_run(&self.base, self.registry, plan, Vec::new())?;
        if number == 1 {
            run.warnings.iter().for_each(|warning| eprintln!("warning: {} {}", warning.text, warning.advice));
        }
        let reuse = keep.check(self.registry, &run)?;
        let others = std::iter::repeat_with(random_suffix).take(100);
        let mut results = RunFolder::create_distinct(&self.folder, run.clone(), others)?;
        let data = self.base.data.clone().unwrap_or_else(|| results.path().join("data"));
        let runner = Runner {
            executable: executable()?,
            plugins: self.registry.plugin_files(),
            keep: keep.keep,
            reuse,
            stall: Duration::from_secs(self.base.stall_seconds),
            environment: self.base.environment(self.plugins)?,
            audits: Vec::new(),
            company: None,
        };
        let mut live = Live::new(Show::Nothing, &run, &[]);
        let ended = runner::run(&run.plan, &runner, &mut results, &data, &mut live);
        if self.base.data.is_none() {
            let _ = std::fs::remove_dir(&data);
        }
        ended.map_err(CliError::failed)?;
        results.finished()?.pop().ok_or_else(interrupted)
    }

    /// The measured phase, or why there is none.
    fn phase<'r>(&self, record: &'r Record) -> Result<&'r PhaseRecord, Failure> {
        let failed =
            |text: String| Failure { text, code: exit_code(std::slice::from_ref(record), Ending::Complete) };
        match &record.outcome {
            Outcome::Ok => {}
            Outcome::Failed { text, .. } => return Err(failed(text.clone())),
            Outcome::WrongAnswers { faults } => {
                let first = faults.first().map_or("", String::as_str);
                return Err(failed(format!("wrong answers: {first}")));
            }
            Outcome::Crashed { signal, .. } => return Err(failed(format!("it crashed: {signal}"))),
        }
        let found = record.phases.iter().find(|phase| phase.phase.name == self.phase);
        let unrun =
            |why: &str| Failure { text: format!("phase {} was not run{why}", self.phase), code: FAILED };
        let phase = found.ok_or_else(|| unrun(""))?;
        phase.not_run.as_ref().map_or(Ok(phase), |why| Err(unrun(&format!(": {why}"))))
    }
}

/// The search was interrupted.
pub(super) fn interrupted() -> CliError {
    let mut error = CliError::failed("interrupted").hint("its runs so far are saved; start the search again");
    error.code = signals::stopped_code();
    error
}

/// What a phase at a rate shows.
fn seen(phase: &PhaseRecord, limits: &Limits, rate: f64) -> Seen {
    let response = phase.times(|kind| &kind.response_ns);
    let unfit = phase.arrivals.as_ref().and_then(|arrivals| arrivals.unfit(&response));
    let observation = observation(&[phase], limits);
    Seen { rate, part: None, observation, response, unfit: unfit.map(|unfit| unfit.to_string()) }
}
