//! The current state of a run.

use super::left::{At, Shown, Stages, Times, Typical, stage};
use super::results::Results;
use kvdyno_core::results::label::{Labels, full_name};
use kvdyno_core::results::summary::cause;
use kvdyno_core::results::{Cause, Outcome, Record, Run, StepKind, Trial};
use kvdyno_core::runner::{Doing, Snapshot, Tick, schedule};
use kvdyno_measure::text::{plain_text, time_text};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The maximum number of rows kept of a trial, one per second: more than the widest terminal has columns.
const ROWS: usize = 1_000;
/// The window of the current rate.
const WINDOW: Duration = Duration::from_millis(1_000);

/// A run.
pub(super) struct State {
    /// The id of the run; plain text.
    pub run: String,
    /// The start of this session.
    pub began: Instant,
    /// The planned trials.
    pub trials: Vec<Planned>,
    /// The current trial.
    pub now: Option<Now>,
    /// The results of the other trials.
    pub results: Results,
    /// Messages to print after the dashboard; plain text.
    pub messages: Vec<String>,
    times: Times,
    shown: Cell<Shown>,
    /// Returns the current time.
    pub(super) clock: Box<dyn Fn() -> Instant + Send>,
}

/// A planned trial. All texts are plain.
pub(super) struct Planned {
    /// The engine with its options.
    pub engine: String,
    /// Its name in tables.
    pub label: String,
    /// The workload.
    pub workload: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// Its number in the plan; those of trials that are skipped are missing.
    order: u32,
    /// Whether its engine stores nothing.
    pub(super) is_floor: bool,
    /// The state of the trial.
    pub fate: Fate,
    /// The duration estimated from the plan.
    planned: Stages,
    /// The length of each turn as a multiple of that in the first trials.
    lengths: Vec<f64>,
}

impl Planned {
    fn is_cell_of(&self, other: &Planned) -> bool {
        (&self.workload, &self.engine) == (&other.workload, &other.engine)
    }
}

/// The state of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not started.
    Waiting,
    /// Running.
    Running,
    /// Successful.
    Ok,
    /// Failed or crashed.
    Failed,
    /// Ended with wrong answers.
    Wrong,
}

/// A turn of the current trial: a phase, or a round of it.
pub(super) struct Turn {
    /// The phase; plain text.
    pub phase: String,
    /// The name as in the records.
    raw: String,
    /// The index of the phase in the workload.
    place: usize,
    /// The round, from 1; `None` for a phase without rounds.
    pub round: Option<u32>,
    /// The number of ops after which the phase ends; `None` if it does not end by count.
    wanted_ops: Option<u64>,
    /// The seconds after which the phase ends, including warm-up; `None` if it does not end by time.
    wanted_seconds: Option<f64>,
    /// The maximum seconds of a phase that loads keys; `None` if it has no such maximum.
    load_limit: Option<f64>,
}

#[cfg(test)]
impl Turn {
    /// The number of ops after which the phase ends.
    pub(super) fn wanted(&self) -> Option<u64> {
        self.wanted_ops
    }
}

/// The current trial.
pub(super) struct Now {
    /// The index in the plan.
    pub place: usize,
    /// The id of the trial; plain text.
    pub id: String,
    /// The phases and rounds in the order in which they run.
    pub turns: Vec<Turn>,
    /// The index of the current turn; `None` in a step.
    pub turn: Option<usize>,
    /// The index of the current or last turn.
    pub last_turn: Option<usize>,
    /// What the trial is doing.
    pub doing: Doing,
    /// The number of ops since the phase began.
    pub ops: u64,
    /// The number of threads of the phase.
    pub threads: usize,
    /// The share of the phase that is done, 0 to 1; `None` if unknown.
    pub phase_share: Option<f64>,
    /// The current ops per second: over the last second by looks, or of the last tick.
    pub rate: Option<f64>,
    /// The last tick.
    pub tick: Option<Tick>,
    /// The ticks so far, one per second.
    pub rows: VecDeque<Row>,
    /// Service times of the phase so far: the lower bound of a bucket in nanoseconds, and its count.
    pub service_ns: BTreeMap<u64, u64>,
    stage_began: Instant,
    so_far: Stages,
    changes: u64,
    looks: VecDeque<(Instant, u64)>,
}

/// A second of the current trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Ops per second.
    pub ops_per_second: Option<f64>,
    /// The 99th percentile in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Allocated on disk, bytes.
    pub disk_bytes: Option<u64>,
    /// CPU seconds per second: the number of busy processors.
    pub cpus: Option<f64>,
    /// Bytes written to storage per second.
    pub written_per_second: Option<f64>,
}

/// The engine with its options; plain text.
pub(super) fn name(trial: &Trial) -> String {
    plain_text(&full_name(&trial.engine, &trial.options))
}

impl State {
    /// The state before the first trial.
    pub(super) fn new(run: &Run) -> State {
        let trials = &run.plan.trials;
        let labels = Labels::new(trials.iter().map(|trial| (trial.engine.as_str(), &trial.options[..])));
        let planned = |trial: &Trial| Planned {
            engine: name(trial),
            label: labels.of(&trial.engine, &trial.options),
            workload: plain_text(&trial.workload.name),
            repetition: trial.repetition,
            order: trial.order,
            is_floor: trial.is_floor,
            fate: Fate::Waiting,
            planned: Stages::planned(trial),
            lengths: schedule(&trial.workload)
                .map(|turn| trial.length(&trial.workload.phases[turn.place].name))
                .collect(),
        };
        State {
            run: plain_text(&run.id),
            began: Instant::now(),
            trials: trials.iter().map(planned).collect(),
            now: None,
            results: Results::default(),
            messages: Vec::new(),
            times: Times::default(),
            shown: Cell::default(),
            clock: Box::new(Instant::now),
        }
    }

    /// The plan has changed: some of the trials that wait are shorter, longer or skipped.
    pub(super) fn replan(&mut self, run: &Run) {
        let fates: HashMap<u32, Fate> =
            self.trials.iter().map(|planned| (planned.order, planned.fate)).collect();
        self.trials = State::new(run).trials;
        for planned in &mut self.trials {
            planned.fate = fates.get(&planned.order).copied().unwrap_or(Fate::Waiting);
        }
    }

    /// Adds a record from an earlier session.
    pub(super) fn earlier(&mut self, record: &Record) {
        self.results.take(record);
        let place = self.trials.binary_search_by_key(&record.trial.order, |planned| planned.order);
        if let Some(planned) = place.ok().and_then(|place| self.trials.get_mut(place)) {
            planned.fate = fate(&record.outcome);
            self.times.take(record, &planned.workload, &planned.engine, None);
        }
    }

    /// A trial begins.
    pub(super) fn trial_begins(&mut self, trial: &Trial, place: usize) {
        let workload = &trial.workload;
        let turn = |turn: kvdyno_core::runner::Turn| {
            let phase = &workload.phases[turn.place];
            let wanted_ops = if phase.each_key { Some(workload.keys) } else { phase.ops_limit() };
            Turn {
                phase: plain_text(&phase.name),
                raw: phase.name.clone(),
                place: turn.place,
                round: turn.round,
                wanted_ops,
                wanted_seconds: phase.seconds_limit().map(|seconds| phase.warmup_seconds + seconds),
                load_limit: workload.load_limit(phase).map(|seconds| phase.warmup_seconds + seconds),
            }
        };
        if let Some(planned) = self.trials.get_mut(place) {
            planned.fate = Fate::Running;
        }
        let began = (self.clock)();
        self.now = Some(Now {
            place,
            id: plain_text(&trial.id),
            turns: schedule(workload).map(turn).collect(),
            turn: None,
            last_turn: None,
            doing: Doing::Start,
            ops: 0,
            threads: 0,
            phase_share: None,
            rate: None,
            tick: None,
            rows: VecDeque::new(),
            service_ns: BTreeMap::new(),
            stage_began: began,
            so_far: Stages::default(),
            changes: 0,
            looks: VecDeque::new(),
        });
    }

    /// Adds the report of the trial's process, once per second.
    pub(super) fn tick(&mut self, tick: &Tick) {
        if let Some(now) = &mut self.now {
            now.tick(tick, (self.clock)());
        }
    }

    /// Adds an observation of the trial between two ticks.
    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) {
        if let Some(now) = &mut self.now {
            now.snapshot(snapshot, (self.clock)());
        }
    }

    /// The time since the current trial began, in seconds; `None` between trials.
    pub(super) fn trial_seconds(&self) -> Option<f64> {
        self.now.as_ref().map(|now| now.so_far((self.clock)()).total())
    }

    /// A trial has ended. Returns a message if it was not successful.
    pub(super) fn trial_ended(&mut self, record: &Record) -> Option<String> {
        if let Some(now) = self.now.take()
            && let Some(planned) = self.trials.get_mut(now.place)
        {
            planned.fate = fate(&record.outcome);
            let stages = Some(now.so_far((self.clock)()));
            self.times.take(record, &planned.workload, &planned.engine, stages);
        }
        self.results.take(record);
        let trial = &record.trial;
        let text = outcome_text(&record.outcome)?;
        Some(plain_text(&format!("{} {} run {}: {text}", name(trial), trial.workload.name, trial.repetition)))
    }

    /// The number of trials in these states.
    pub(super) fn count(&self, fates: &[Fate]) -> usize {
        self.trials.iter().filter(|planned| fates.contains(&planned.fate)).count()
    }

    /// The number of trials that have ended.
    pub(super) fn done(&self) -> usize {
        self.count(&[Fate::Ok, Fate::Failed, Fate::Wrong])
    }

    /// The seconds left to display: the estimate, which counts down smoothly, and never below what the current stage needs.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let at = (self.clock)();
        let (estimate, least) = self.estimate(at);
        if self.done() == self.trials.len() {
            return Some(0.0);
        }
        let mut shown = self.shown.get();
        let seconds = shown.follow(at, estimate, least);
        self.shown.set(shown);
        Some(seconds)
    }

    /// The estimated seconds left of the run, and of the current stage.
    pub(super) fn estimate<'s>(&'s self, at: Instant) -> (f64, f64) {
        let mut typical: HashMap<&str, Typical> = HashMap::new();
        let mut expected = |planned: &'s Planned| {
            let workload = planned.workload.as_str();
            let typical = typical.entry(workload).or_insert_with(|| self.times.typical(workload));
            let seen = self.has_seen(planned);
            let stages = self.times.expected(&planned.workload, &planned.engine, &planned.planned, typical);
            if seen { stages.with_lengths(&planned.lengths) } else { stages }
        };
        let running = self.now.as_ref().and_then(|now| {
            let planned = self.trials.get(now.place)?;
            let progress = now.at(at);
            let (here, left) = expected(planned).left(&progress);
            Some((planned, here, left, progress.so_far.total() + left))
        });
        let of_one = |waiting: &'s Planned| match running {
            // The first trial of an engine is used to estimate its others.
            Some((planned, _, _, total)) if waiting.is_cell_of(planned) && !self.has_seen(waiting) => total,
            _ => expected(waiting).total(),
        };
        let waiting = self.trials.iter().filter(|planned| planned.fate == Fate::Waiting);
        let later = waiting.map(of_one).sum::<f64>();
        running.map_or((later, 0.0), |(_, here, left, _)| (later + left, here))
    }

    fn has_seen(&self, planned: &Planned) -> bool {
        self.times.has_seen(&planned.workload, &planned.engine)
    }

    /// The share of the run that is done, 0 to 1, by trials and by the turns of the current trial.
    pub(super) fn share(&self) -> f64 {
        let this = self.now.as_ref().map_or(0.0, Now::share);
        ((self.done() as f64 + this) / self.trials.len().max(1) as f64).min(1.0)
    }

    /// The current engine, workload and repetition, for progress lines.
    pub(super) fn trial_text(&self) -> String {
        let planned = self.now.as_ref().and_then(|now| self.trials.get(now.place));
        planned.map_or_else(String::new, |trial| {
            format!("{} {} run {}", trial.engine, trial.workload, trial.repetition)
        })
    }

    /// The rank of the trial's current rate in its phase, and the number of engines.
    pub(super) fn place(&self) -> Option<(usize, usize)> {
        let now = self.now.as_ref()?;
        let (planned, tick, rate) = (self.trials.get(now.place)?, now.tick_now()?, now.rate?);
        let turn = now.turns.get(now.turn?)?;
        if planned.is_floor {
            return None;
        }
        self.results.place(&planned.workload, &turn.phase, &tick.level.to_string(), &planned.engine, rate)
    }
}

impl Now {
    fn tick(&mut self, tick: &Tick, at: Instant) {
        let is_it = |turn: &Turn| turn.raw == tick.phase && turn.round == tick.round;
        let turn = self.turns.iter().position(is_it);
        if turn != self.turn || turn.is_none() {
            self.begin(turn, if turn.is_some() { Doing::Phase } else { Doing::Step(StepKind::Sweep) }, at);
        }
        let seconds = tick.interval_ns as f64 / 1e9;
        let per_second =
            |count: Option<u64>| count.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds);
        if self.rows.len() == ROWS {
            self.rows.pop_front();
        }
        if turn.is_some() {
            self.rows.push_back(Row {
                ops_per_second: tick.ops_per_second,
                p99_ns: tick.p99_ns,
                rss_bytes: tick.rss_bytes,
                disk_bytes: tick.disk_bytes,
                cpus: per_second(tick.cpu_ns).map(|ns| ns / 1e9),
                written_per_second: per_second(tick.written_bytes),
            });
        }
        for (ns, count) in &tick.service_ns {
            *self.service_ns.entry(*ns).or_default() += count;
        }
        if self.looks.len() < 2 {
            self.rate = tick.ops_per_second;
        }
        self.ops = tick.ops;
        self.phase_share = tick.done_share.or(self.phase_share);
        self.tick = Some(tick.clone());
    }

    fn snapshot(&mut self, snapshot: &Snapshot, at: Instant) {
        let is_it = |turn: &Turn| Some(turn.place) == snapshot.place && turn.round == snapshot.round;
        let turn = snapshot.place.and_then(|_| self.turns.iter().position(is_it));
        if snapshot.changes != self.changes {
            self.changes = snapshot.changes;
            if turn != self.turn || turn.is_none() {
                self.begin(turn, snapshot.doing, at);
            }
            self.looks.clear();
        }
        self.doing = snapshot.doing;
        self.threads = snapshot.threads.len();
        if snapshot.threads.is_empty() {
            self.rate = None;
            return;
        }
        self.ops = snapshot.ops();
        while self.looks.len() > 1 && at.duration_since(self.looks[1].0) >= WINDOW {
            self.looks.pop_front();
        }
        if let Some((then, ops)) = self.looks.front() {
            let seconds = at.duration_since(*then).as_secs_f64();
            let more = self.ops.checked_sub(*ops).filter(|_| seconds > 0.0);
            self.rate = more.map(|more| more as f64 / seconds).or(self.rate);
        }
        self.looks.push_back((at, self.ops));
        let Some(turn) = turn.and_then(|turn| self.turns.get(turn)) else { return };
        let by_count = turn.wanted_ops.map(|wanted| self.ops as f64 / wanted as f64);
        let by_time = turn.wanted_seconds.map(|wanted| self.in_stage(at) / wanted);
        let share = by_count
            .into_iter()
            .chain(by_time)
            .fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))));
        self.phase_share = share.map(|share| share.min(1.0));
    }

    fn begin(&mut self, turn: Option<usize>, doing: Doing, at: Instant) {
        let seconds = self.in_stage(at);
        self.so_far.add(self.stage(), seconds);
        (self.turn, self.doing, self.stage_began) = (turn, doing, at);
        (self.ops, self.rate, self.phase_share) = (0, None, None);
        self.looks.clear();
        if turn.is_some() {
            self.last_turn = turn;
            self.service_ns.clear();
        }
    }

    /// The index of the current stage.
    fn stage(&self) -> usize {
        stage(self.turn, self.last_turn)
    }

    /// The seconds since the current phase or step began.
    fn in_stage(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.stage_began).as_secs_f64()
    }

    /// The durations of the stages until now.
    fn so_far(&self, at: Instant) -> Stages {
        let mut stages = self.so_far.clone();
        stages.add(self.stage(), self.in_stage(at));
        stages
    }

    /// The progress of the trial.
    fn at(&self, at: Instant) -> At {
        let turn = self.turn.and_then(|turn| self.turns.get(turn));
        At {
            so_far: self.so_far(at),
            stage: self.stage(),
            share: self.phase_share,
            limit: turn.and_then(|turn| turn.wanted_seconds.or(turn.load_limit)),
        }
    }

    /// The share of the trial that is done, 0 to 1, with equal weight for each phase.
    fn share(&self) -> f64 {
        let turns = self.turns.len().max(1) as f64;
        match self.turn {
            Some(turn) => (turn as f64 + self.phase_share.unwrap_or(0.5)) / turns,
            // Steps are between phases.
            None => self.last_turn.map_or(0.0, |turn| (turn as f64 + 1.0) / turns),
        }
    }

    /// `read`, `serial, round 2`, or the step.
    pub(super) fn phase_text(&self) -> String {
        let Some(turn) = self.turn.and_then(|turn| self.turns.get(turn)) else {
            return self.doing.to_string();
        };
        let round = turn.round.map_or_else(String::new, |round| format!(", round {round}"));
        turn.phase.clone() + &round
    }

    /// The last tick of the current phase, if there was one.
    pub(super) fn tick_now(&self) -> Option<&Tick> {
        let turn = self.turns.get(self.turn?)?;
        self.tick.as_ref().filter(|tick| tick.phase == turn.raw && tick.round == turn.round)
    }

    /// The 99th percentile of the last second of this phase.
    pub(super) fn p99_text(&self) -> String {
        let tick = self.tick_now();
        tick.and_then(|tick| tick.p99_ns).map_or("-".into(), |ns| time_text(ns as f64))
    }
}

fn fate(outcome: &Outcome) -> Fate {
    match outcome {
        Outcome::Ok => Fate::Ok,
        Outcome::WrongAnswers { .. } => Fate::Wrong,
        Outcome::Failed { .. } | Outcome::Crashed { .. } => Fate::Failed,
    }
}

/// The message for a trial that was not successful.
pub(super) fn outcome_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::WrongAnswers { faults } => {
            Some(format!("wrong answers: {}", faults.first().map_or("", String::as_str)))
        }
        // The trial that was too slow or hung had a message.
        Outcome::Failed { cause: Cause::Skipped, .. } => None,
        Outcome::Failed { cause, text } if cause.skips_other_runs() => {
            Some(format!("{cause}: {text}; its other runs are skipped"))
        }
        Outcome::Failed { cause, text } => Some(format!("{cause}: {text}")),
        Outcome::Crashed { .. } => cause(outcome),
    }
}

/// `1.23 M ops/s`.
pub(super) fn rate_text(ops_per_second: Option<f64>) -> String {
    match ops_per_second {
        Some(rate) if rate >= 1e6 => format!("{:.2} M ops/s", rate / 1e6),
        Some(rate) if rate >= 1e3 => format!("{:.1} k ops/s", rate / 1e3),
        Some(rate) => format!("{rate:.0} ops/s"),
        None => "- ops/s".into(),
    }
}

/// `3 min 20 s`; `-` if unknown.
pub(super) fn seconds_text(seconds: Option<f64>) -> String {
    match seconds.map(|seconds| seconds as u64) {
        Some(seconds) if seconds >= 3_600 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        Some(seconds) if seconds >= 60 => format!("{} min {} s", seconds / 60, seconds % 60),
        Some(seconds) => format!("{seconds} s"),
        None => "-".into(),
    }
}
