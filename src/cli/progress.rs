//! Progress on stderr: a bar on a terminal, a line a second elsewhere.

use crate::measure::units::{bytes_text, time_text};
use crate::results::{Outcome, Record, Run, Trial};
use crate::runner::{Observer, Tick, schedule};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows how far a run is.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    began: Instant,
    trial: String,
    turns: Vec<(String, Option<u32>)>,
    place: usize,
    count: usize,
    done: usize,
    measured: Duration,
    trial_began: Instant,
    last_line: Option<Instant>,
}

const PARTS: u64 = 1000;
/// Lines elsewhere than on a terminal come at most this often.
const LINE_EVERY: Duration = Duration::from_millis(950);

impl Progress {
    /// For this run.
    pub fn new(quiet: bool, run: &Run) -> Progress {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && on_terminal).then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(run.trials.len() as u64 * PARTS),
                ProgressDrawTarget::stderr_with_hz(8),
            );
            let style = ProgressStyle::with_template("[{bar:30}] {percent:>3} % {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar
        });
        Progress {
            bar,
            lines: !quiet && !on_terminal,
            began: Instant::now(),
            trial: String::new(),
            turns: Vec::new(),
            place: 0,
            count: run.trials.len(),
            done: 0,
            measured: Duration::ZERO,
            trial_began: Instant::now(),
            last_line: None,
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Time left, from the mean of the trials so far.
    fn left(&self) -> String {
        if self.done == 0 {
            return "-".into();
        }
        let trials_left = (self.count - self.place) as f64 - 1.0;
        let mean = self.measured.as_secs_f64() / self.done as f64;
        let this = (mean - self.trial_began.elapsed().as_secs_f64()).max(0.0);
        let seconds = (mean * trials_left + this) as u64;
        if seconds >= 60 {
            format!("{} min {} s", seconds / 60, seconds % 60)
        } else {
            format!("{seconds} s")
        }
    }

    fn share(&self, tick: &Tick) -> u64 {
        let turns = self.turns.len().max(1) as f64;
        let is_now = |(name, round): &(String, Option<u32>)| *name == tick.phase && *round == tick.round;
        let turn = self.turns.iter().position(is_now).unwrap_or(self.turns.len());
        let share = (turn as f64 + tick.done_share.unwrap_or(0.5)) / turns;
        self.place as u64 * PARTS + (share.min(1.0) * PARTS as f64) as u64
    }
}

/// `serial`, or `serial, round 2`.
fn phase(tick: &Tick) -> String {
    let round = tick.round.map_or_else(String::new, |round| format!(", round {round}"));
    tick.phase.clone() + &round
}

fn rate(ops_per_second: Option<f64>) -> String {
    match ops_per_second {
        Some(rate) if rate >= 1e6 => format!("{:.2} M ops/s", rate / 1e6),
        Some(rate) if rate >= 1e3 => format!("{:.1} k ops/s", rate / 1e3),
        Some(rate) => format!("{rate:.0} ops/s"),
        None => "- ops/s".into(),
    }
}

impl Observer for Progress {
    fn trial_begins(&mut self, trial: &Trial, place: usize, count: usize) {
        self.trial = format!("{} {} run {}", trial.engine, trial.workload.name, trial.repetition);
        let name = |place: usize| trial.workload.phases[place].name.clone();
        self.turns = schedule(&trial.workload).map(|turn| (name(turn.place), turn.round)).collect();
        (self.place, self.count, self.trial_began) = (place, count, Instant::now());
        if let Some(bar) = &self.bar {
            bar.set_position(place as u64 * PARTS);
            bar.set_message(format!("{}, {} left", self.trial, self.left()));
        }
    }

    fn tick(&mut self, tick: &Tick) {
        let p99 = tick.p99_ns.map_or("-".into(), |ns| time_text(ns as f64));
        if let Some(bar) = &self.bar {
            bar.set_position(self.share(tick));
            let (rate, left) = (rate(tick.ops_per_second), self.left());
            bar.set_message(format!("{} {}: {rate}, p99 {p99}, {left} left", self.trial, phase(tick)));
        } else if self.lines && self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            let at = self.began.elapsed().as_secs_f64();
            let rss = tick.rss_bytes.map_or("-".into(), bytes_text);
            let disk = tick.disk_bytes.map_or("-".into(), bytes_text);
            eprintln!(
                "{at:7.1} s  {:>3}/{}  {} {}: {}, p99 {p99}, rss {rss}, disk {disk}, {} left",
                self.place + 1,
                self.count,
                self.trial,
                phase(tick),
                rate(tick.ops_per_second),
                self.left()
            );
        }
    }

    fn trial_ended(&mut self, record: &Record) {
        self.done += 1;
        self.measured += self.trial_began.elapsed();
        let text = match &record.outcome {
            Outcome::Ok => return,
            Outcome::WrongAnswers { faults } => {
                format!("wrong answers: {}", faults.first().map_or("", String::as_str))
            }
            Outcome::Failed { cause, text } => format!("{cause}: {text}"),
            Outcome::Crashed { signal, .. } => format!("crashed: {signal}"),
        };
        let line = format!("{}: {text}", self.trial);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}
