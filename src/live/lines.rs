//! Progress for people: a bar on a terminal, a line per trial elsewhere, or a line per second if requested.

use super::state::{State, rate_text, seconds_text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kvdyno_core::results::{Cause, Outcome, Record};
use kvdyno_measure::text::bytes_text;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The resolution of the bar per trial.
const PARTS: f64 = 1000.0;
/// The minimum interval between lines.
const LINE_EVERY: Duration = Duration::from_millis(950);

fn length(trials: usize) -> u64 {
    (trials as f64 * PARTS) as u64
}

/// A progress bar at the bottom of the terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar for a number of trials; `None` if stderr is not a terminal.
    pub(super) fn new(trials: usize) -> Option<Bar> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(length(trials)), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("[{bar:20}] {percent:>3} % {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Some(Bar(bar))
    }

    /// The run has another number of trials.
    pub(super) fn replan(&self, trials: usize) {
        self.0.set_length(length(trials));
    }

    /// Redraws the bar.
    pub(super) fn show(&self, state: &State) {
        self.0.set_position((state.share() * state.trials.len() as f64 * PARTS) as u64);
        self.0.set_message(text(state));
    }

    /// Prints a line above the bar.
    pub(super) fn print(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// `12 s left: redb quick run 1 read: 1.23 M ops/s, p99 633 ns, rank 2 of 5 so far`. The time left is first, because a narrow
/// terminal cuts the end.
pub(super) fn text(state: &State) -> String {
    let left = seconds_text(state.seconds_left());
    let Some(now) = &state.now else { return format!("{left} left") };
    let rank = rank(state).map_or_else(String::new, |rank| format!(", {rank}"));
    let (trial, phase, rate) = (state.trial_text(), now.phase_text(), rate_text(now.rate));
    format!("{left} left: {trial} {phase}: {rate}, p99 {}{rank}", now.p99_text())
}

/// `rank 2 of 5 so far`.
pub(super) fn rank(state: &State) -> Option<String> {
    state.place().map(|(place, of)| format!("rank {place} of {of} so far"))
}

/// Progress in lines.
pub(super) struct Lines {
    /// Whether there is a line per second; otherwise there is one per trial.
    is_per_second: bool,
    last: Option<Instant>,
}

impl Lines {
    /// A line per second.
    pub(super) fn per_second() -> Lines {
        Lines { is_per_second: true, last: None }
    }

    /// A line per trial.
    pub(super) fn per_trial() -> Lines {
        Lines { is_per_second: false, last: None }
    }

    /// Prints a line, at most one per second.
    pub(super) fn show(&mut self, state: &State) {
        if !self.is_per_second || self.last.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        eprintln!("{}", line(state));
    }

    /// Prints the line of a trial that has ended, or only its failure if there is a line per second.
    pub(super) fn ended(
        &self,
        state: &State,
        ended: Option<Ended>,
        record: &Record,
        failure: Option<String>,
    ) {
        match (ended, failure) {
            (Some(ended), failure) if !self.is_per_second => {
                eprintln!("{}", ended.line(state, record, failure));
            }
            (_, Some(failure)) => eprintln!("{failure}"),
            (_, None) => {}
        }
    }
}

/// A trial that is about to end.
pub(super) struct Ended {
    place: usize,
    trial: String,
    seconds: f64,
}

impl Ended {
    /// The current trial.
    pub(super) fn of(state: &State) -> Option<Ended> {
        let now = state.now.as_ref()?;
        Some(Ended { place: now.place, trial: state.trial_text(), seconds: state.trial_seconds()? })
    }

    /// `12.3 s    4/85  redb quick run 1: 2.1 s, 3 min 20 s left`.
    pub(super) fn line(&self, state: &State, record: &Record, failure: Option<String>) -> String {
        let at = state.began.elapsed().as_secs_f64();
        let is_skipped = matches!(&record.outcome, Outcome::Failed { cause: Cause::Skipped, .. });
        let took = if is_skipped { "skipped".to_string() } else { format!("{:.1} s", self.seconds) };
        // A failure names the trial.
        let text = failure.unwrap_or_else(|| format!("{}: {took}", self.trial));
        let left = seconds_text(state.seconds_left());
        format!("{at:7.1} s  {:>3}/{}  {text}, {left} left", self.place + 1, state.trials.len())
    }
}

fn line(state: &State) -> String {
    let Some((now, tick)) = state.now.as_ref().and_then(|now| Some((now, now.tick.as_ref()?))) else {
        return String::new();
    };
    let at = state.began.elapsed().as_secs_f64();
    let bytes = |bytes: Option<u64>| bytes.map_or("-".into(), bytes_text);
    let rank = rank(state).map_or_else(String::new, |rank| format!("{rank}, "));
    format!(
        "{at:7.1} s  {:>3}/{}  {} {}: {}, p99 {}, rss {}, disk {}, {rank}{} left",
        now.place + 1,
        state.trials.len(),
        state.trial_text(),
        now.phase_text(),
        rate_text(tick.ops_per_second),
        now.p99_text(),
        bytes(tick.rss_bytes),
        bytes(tick.disk_bytes),
        seconds_text(state.seconds_left())
    )
}
