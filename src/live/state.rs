//! What is known of a run at this moment.

use super::left::{At, Expected, Times};
use super::results::Results;
use crate::measure::units::time_text;
use crate::report::plain_text;
use crate::results::{Outcome, Record, Run, StepKind, Trial};
use crate::runner::{Doing, Snapshot, Tick, schedule};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Rows per second that are kept of a trial: more than the widest terminal has columns.
const ROWS: usize = 1_000;
/// What the current rate is the mean over.
const WINDOW: Duration = Duration::from_millis(1_000);

/// A run.
pub struct State {
    /// Its id; plain text.
    pub run: String,
    /// When this session of it began.
    pub began: Instant,
    /// The plan.
    pub trials: Vec<Planned>,
    /// The trial that runs.
    pub now: Option<Now>,
    /// What the others have given.
    pub results: Results,
    /// What has to be told when there is room for it again; plain text.
    pub messages: Vec<String>,
    times: Times,
}

/// A trial of the plan. All texts are plain.
pub struct Planned {
    /// With its options.
    pub engine: String,
    /// The workload.
    pub workload: String,
    /// From 1.
    pub repetition: u32,
    /// Whether its engine stores nothing.
    pub(super) is_floor: bool,
    /// What became of it.
    pub fate: Fate,
    /// What the plan says that it takes.
    expected: Expected,
}

impl Planned {
    fn is_cell_of(&self, other: &Planned) -> bool {
        (&self.workload, &self.engine) == (&other.workload, &other.engine)
    }
}

/// What became of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has not begun.
    Waiting,
    /// It runs.
    Running,
    /// It went well.
    Ok,
    /// It failed or crashed.
    Failed,
    /// It gave wrong answers.
    Wrong,
}

/// A turn of the trial that runs.
pub struct Turn {
    /// The phase; plain text.
    pub phase: String,
    /// The name as the records have it.
    raw: String,
    /// Its place in the workload.
    place: usize,
    /// Its round, from 1; none: it is run once.
    pub round: Option<u32>,
    /// Ops that it ends with; none: not by count.
    wanted_ops: Option<u64>,
    /// Seconds that it ends after, warm-up included; none: not by time.
    wanted_seconds: Option<f64>,
}

/// The trial that runs.
pub struct Now {
    /// Its place in the plan, from 0.
    pub place: usize,
    /// Its id; plain text.
    pub id: String,
    began: Instant,
    /// Its phases in the order that they are run in.
    pub turns: Vec<Turn>,
    /// Which of them; none: it is in a step.
    pub turn: Option<usize>,
    /// The one that runs, or the last that has.
    pub last_turn: Option<usize>,
    /// `phase`, or the step that it is in.
    pub doing: Doing,
    /// Ops since the phase began.
    pub ops: u64,
    /// Threads of the phase.
    pub threads: usize,
    /// Share of the phase that is done, 0 to 1; none: unknown.
    pub phase_share: Option<f64>,
    /// Ops per second now: of the last second by looks, else of the last tick.
    pub rate: Option<f64>,
    /// The last tick.
    pub tick: Option<Tick>,
    /// The ticks before it, one a second.
    pub rows: VecDeque<Row>,
    /// Service times of the phase so far: least value of a bucket, nanoseconds, and count.
    pub service_ns: BTreeMap<u64, u64>,
    phase_began: Instant,
    in_steps: Duration,
    changes: u64,
    looks: VecDeque<(Instant, u64)>,
}

/// A second of the trial that runs.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Ops per second.
    pub ops_per_second: Option<f64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Allocated on disk, bytes.
    pub disk_bytes: Option<u64>,
    /// CPU time per second, in seconds: processors that were busy.
    pub cpus: Option<f64>,
    /// Bytes written to storage per second.
    pub written_per_second: Option<f64>,
}

/// The engine with its options; plain text.
pub fn name(trial: &Trial) -> String {
    let options: Vec<String> = trial.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let options = if options.is_empty() { String::new() } else { format!(" ({})", options.join(", ")) };
    plain_text(&(trial.engine.clone() + &options))
}

impl State {
    /// Nothing has begun.
    pub fn new(run: &Run) -> State {
        let planned = |trial: &Trial| Planned {
            engine: name(trial),
            workload: plain_text(&trial.workload.name),
            repetition: trial.repetition,
            is_floor: trial.is_floor,
            fate: Fate::Waiting,
            expected: Expected::planned(trial),
        };
        State {
            run: plain_text(&run.id),
            began: Instant::now(),
            trials: run.trials.iter().map(planned).collect(),
            now: None,
            results: Results::default(),
            messages: Vec::new(),
            times: Times::default(),
        }
    }

    /// A record from before this session.
    pub fn earlier(&mut self, record: &Record) {
        self.results.take(record);
        if let Some(planned) = self.trials.get_mut(record.trial.order as usize) {
            planned.fate = fate(&record.outcome);
            self.times.take(record, &planned.workload, &planned.engine, None);
        }
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, trial: &Trial, place: usize) {
        let workload = &trial.workload;
        let turn = |turn: crate::runner::Turn| {
            let phase = &workload.phases[turn.place];
            let wanted = if phase.each_key { workload.keys } else { phase.ops };
            Turn {
                phase: plain_text(&phase.name),
                raw: phase.name.clone(),
                place: turn.place,
                round: turn.round,
                wanted_ops: (wanted > 0).then_some(wanted),
                wanted_seconds: (phase.seconds > 0.0).then_some(phase.warmup_seconds + phase.seconds),
            }
        };
        if let Some(planned) = self.trials.get_mut(place) {
            planned.fate = Fate::Running;
        }
        self.now = Some(Now {
            place,
            id: plain_text(&trial.id),
            began: Instant::now(),
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
            phase_began: Instant::now(),
            in_steps: Duration::ZERO,
            changes: 0,
            looks: VecDeque::new(),
        });
    }

    /// What the trial's process tells once a second.
    pub fn tick(&mut self, tick: &Tick) {
        if let Some(now) = &mut self.now {
            now.tick(tick);
        }
    }

    /// What is seen of it in between.
    pub fn snapshot(&mut self, snapshot: &Snapshot) {
        if let Some(now) = &mut self.now {
            now.snapshot(snapshot, Instant::now());
        }
    }

    /// A trial has ended; what is to be told of it, if it did not end well.
    pub fn trial_ended(&mut self, record: &Record) -> Option<String> {
        if let Some(now) = self.now.take()
            && let Some(planned) = self.trials.get_mut(now.place)
        {
            planned.fate = fate(&record.outcome);
            let seconds = Some(now.began.elapsed().as_secs_f64());
            self.times.take(record, &planned.workload, &planned.engine, seconds);
        }
        self.results.take(record);
        let trial = &record.trial;
        let text = outcome_text(&record.outcome)?;
        Some(plain_text(&format!(
            "{} {} run {}: {text}",
            trial.engine, trial.workload.name, trial.repetition
        )))
    }

    /// How many trials have ended so.
    pub fn count(&self, fates: &[Fate]) -> usize {
        self.trials.iter().filter(|planned| fates.contains(&planned.fate)).count()
    }

    /// Trials that have ended.
    pub fn done(&self) -> usize {
        self.count(&[Fate::Ok, Fate::Failed, Fate::Wrong])
    }

    /// Seconds left: for each trial what the last of its engine took, or what the plan says of one that was not seen yet; for
    /// the one that runs by its own progress too.
    pub fn seconds_left(&self) -> Option<f64> {
        let running = self.now.as_ref().and_then(|now| {
            let planned = self.trials.get(now.place)?;
            let left = self.expected(planned).left(&now.at(Instant::now()));
            Some((planned, left, now.began.elapsed().as_secs_f64() + left))
        });
        let of_one = |waiting: &Planned| match running {
            // Its first trial tells of the others already.
            Some((planned, _, whole)) if waiting.is_cell_of(planned) && !self.has_seen(waiting) => whole,
            _ => self.expected(waiting).total(),
        };
        let waiting = self.trials.iter().filter(|planned| planned.fate == Fate::Waiting);
        Some(waiting.map(of_one).sum::<f64>() + running.map_or(0.0, |(_, left, _)| left))
    }

    fn has_seen(&self, planned: &Planned) -> bool {
        self.times.of(&planned.workload, &planned.engine).is_some()
    }

    fn expected<'s>(&'s self, planned: &'s Planned) -> &'s Expected {
        self.times.of(&planned.workload, &planned.engine).unwrap_or(&planned.expected)
    }

    /// The share of the run that is done, 0 to 1: trials, and the turns of the one that runs.
    pub fn share(&self) -> f64 {
        let this = self.now.as_ref().map_or(0.0, Now::share);
        ((self.done() as f64 + this) / self.trials.len().max(1) as f64).min(1.0)
    }

    /// The engine that runs, its workload and repetition, as it stands in lines.
    pub fn trial_text(&self) -> String {
        let planned = self.now.as_ref().and_then(|now| self.trials.get(now.place));
        planned.map_or_else(String::new, |trial| {
            format!("{} {} run {}", trial.engine, trial.workload, trial.repetition)
        })
    }

    /// The place of the trial's current rate among the other engines in its phase: place, and of how many.
    pub fn place(&self) -> Option<(usize, usize)> {
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
    fn tick(&mut self, tick: &Tick) {
        let is_it = |turn: &Turn| turn.raw == tick.phase && turn.round == tick.round;
        let turn = self.turns.iter().position(is_it);
        if turn != self.turn || turn.is_none() {
            self.begin(turn, if turn.is_some() { Doing::Phase } else { Doing::Step(StepKind::Sweep) });
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
                self.begin(turn, snapshot.doing);
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
        let by_time = turn.wanted_seconds.map(|wanted| self.phase_began.elapsed().as_secs_f64() / wanted);
        let share = by_count
            .into_iter()
            .chain(by_time)
            .fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))));
        self.phase_share = share.map(|share| share.min(1.0));
    }

    fn begin(&mut self, turn: Option<usize>, doing: Doing) {
        if self.turn.is_none() {
            self.in_steps += self.phase_began.elapsed();
        }
        (self.turn, self.doing, self.phase_began) = (turn, doing, Instant::now());
        (self.ops, self.rate, self.phase_share) = (0, None, None);
        self.looks.clear();
        if turn.is_some() {
            self.last_turn = turn;
            self.service_ns.clear();
        }
    }

    /// As if it had begun so much earlier, and the phase with it.
    #[cfg(test)]
    pub fn began_earlier_by(&mut self, span: Duration) {
        self.began = self.began.checked_sub(span).expect("the machine runs for longer than that");
        self.phase_began = self.began;
    }

    /// Where it is.
    fn at(&self, now: Instant) -> At {
        let here = now.saturating_duration_since(self.phase_began).as_secs_f64();
        let before = self.in_steps.as_secs_f64();
        At {
            turn: self.turn,
            begun: self.last_turn.map_or(0, |turn| turn + 1),
            here,
            in_steps: if self.turn.is_none() { before + here } else { before },
            share: self.phase_share,
        }
    }

    /// Share of the trial that is done, 0 to 1, its phases taken for equally long.
    fn share(&self) -> f64 {
        let turns = self.turns.len().max(1) as f64;
        match self.turn {
            Some(turn) => (turn as f64 + self.phase_share.unwrap_or(0.5)) / turns,
            // Steps lie between the phases.
            None => self.last_turn.map_or(0.0, |turn| (turn as f64 + 1.0) / turns),
        }
    }

    /// `read`, `serial, round 2`, or the step.
    pub fn phase_text(&self) -> String {
        let Some(turn) = self.turn.and_then(|turn| self.turns.get(turn)) else {
            return self.doing.to_string();
        };
        let round = turn.round.map_or_else(String::new, |round| format!(", round {round}"));
        turn.phase.clone() + &round
    }

    /// The last tick of the phase that runs; none: there was none yet.
    pub fn tick_now(&self) -> Option<&Tick> {
        let turn = self.turns.get(self.turn?)?;
        self.tick.as_ref().filter(|tick| tick.phase == turn.raw && tick.round == turn.round)
    }

    /// The 99th percentile of the last second of this phase.
    pub fn p99_text(&self) -> String {
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

/// What is to be said of a trial that did not go well.
pub fn outcome_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::WrongAnswers { faults } => {
            Some(format!("wrong answers: {}", faults.first().map_or("", String::as_str)))
        }
        Outcome::Failed { cause, text } => Some(format!("{cause}: {text}")),
        Outcome::Crashed { signal, .. } => Some(format!("crashed: {signal}")),
    }
}

/// `1.23 M ops/s`.
pub fn rate_text(ops_per_second: Option<f64>) -> String {
    match ops_per_second {
        Some(rate) if rate >= 1e6 => format!("{:.2} M ops/s", rate / 1e6),
        Some(rate) if rate >= 1e3 => format!("{:.1} k ops/s", rate / 1e3),
        Some(rate) => format!("{rate:.0} ops/s"),
        None => "- ops/s".into(),
    }
}

/// `3 min 20 s`; `-` for what is not known.
pub fn seconds_text(seconds: Option<f64>) -> String {
    match seconds.map(|seconds| seconds as u64) {
        Some(seconds) if seconds >= 3_600 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        Some(seconds) if seconds >= 60 => format!("{} min {} s", seconds / 60, seconds % 60),
        Some(seconds) => format!("{seconds} s"),
        None => "-".into(),
    }
}
