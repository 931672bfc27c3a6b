//! Progress of a run: a bar, lines, JSON events, a dashboard, and metrics for Prometheus. All of them show one state, which
//! is updated by the ticks, looks and records of trials. The process of a trial does not depend on any of them.

#![cfg_attr(not(feature = "tui"), allow(dead_code, reason = "only the dashboard uses these items"))]

mod json;
mod left;
mod lines;
mod metrics;
mod results;
mod state;
#[cfg(feature = "tui")]
mod tui;

pub(crate) use metrics::{Server, address};

use kvdyno_core::results::{Record, Run, Trial};
use kvdyno_core::runner::{Observer, Snapshot, Tick};
use kvdyno_measure::signals;
use kvdyno_measure::text::plain_text;
use state::State;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of progress on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Only failures.
    Nothing,
    /// A bar, or a line per trial if stderr is not a terminal.
    Progress,
    /// A line per second.
    Plain,
    /// JSON events, one per line.
    Json,
    /// The dashboard.
    Dashboard,
}

/// Whether this build has the dashboard.
pub(crate) const HAS_DASHBOARD: bool = cfg!(feature = "tui");

/// The progress display of a run.
pub(crate) struct Live {
    state: Shared,
    face: Face,
    /// The number of requests to stop that were answered.
    answered: u32,
}

type Shared = Arc<Mutex<State>>;

/// The locked state, even if a thread has panicked while it held the lock.
fn locked(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Face {
    Nothing,
    Bar(lines::Bar),
    Lines(lines::Lines),
    Json(json::Events),
    #[cfg(feature = "tui")]
    Dashboard(tui::Dashboard),
}

impl Live {
    /// The display of a run with its earlier records. The dashboard is not shown until [`Live::take_terminal`].
    pub(crate) fn new(show: Show, run: &Run, earlier: &[Record]) -> Live {
        let mut first = State::new(run);
        earlier.iter().for_each(|record| first.earlier(record));
        let state = Arc::new(Mutex::new(first));
        let face = match show {
            Show::Nothing | Show::Dashboard => Face::Nothing,
            Show::Json => Face::Json(json::Events::begin(run)),
            Show::Progress => match lines::Bar::new(run.plan.trials.len()) {
                Some(bar) => Face::Bar(bar),
                None => Face::Lines(lines::Lines::per_trial()),
            },
            Show::Plain => Face::Lines(lines::Lines::per_second()),
        };
        Live { state, face, answered: 0 }
    }

    /// Starts the dashboard. An `Err` contains the reason why it cannot be shown.
    #[cfg(feature = "tui")]
    pub(crate) fn take_terminal(&mut self) -> io::Result<()> {
        self.face = Face::Dashboard(tui::Dashboard::start(Arc::clone(&self.state))?);
        Ok(())
    }

    /// Returns an error, because this build has no dashboard.
    #[cfg(not(feature = "tui"))]
    pub fn take_terminal(&mut self) -> io::Result<()> {
        Err(io::Error::other("this build has no dashboard: build kvdyno with the feature `tui`"))
    }

    /// Serves metrics to Prometheus at an address until the returned server is dropped.
    pub(crate) fn serve(&self, address: std::net::SocketAddr) -> io::Result<Server> {
        Server::start(address, Arc::clone(&self.state))
    }

    /// Shows a message that does not belong to a trial.
    pub(crate) fn message(&mut self, text: &str) {
        match &mut self.face {
            Face::Json(events) => events.message(text),
            Face::Bar(bar) => bar.print(&plain_text(text)),
            #[cfg(feature = "tui")]
            Face::Dashboard(_) => locked(&self.state).messages.push(plain_text(text)),
            Face::Nothing | Face::Lines(_) => eprintln!("{}", plain_text(text)),
        }
    }

    /// Shows the trials of a plan that has changed.
    pub(crate) fn replan(&mut self, run: &Run) {
        locked(&self.state).replan(run);
        if let Face::Bar(bar) = &self.face {
            bar.replan(run.plan.trials.len());
        }
    }

    /// Tells what a request to stop does, once for each. The dashboard shows it by itself.
    fn answer(&mut self) {
        let interrupts = signals::interrupts();
        if let Some(text) = answer(interrupts, self.answered).filter(|_| !self.is_dashboard()) {
            self.message(text);
        }
        self.answered = interrupts;
    }

    /// Whether the dashboard is shown.
    fn is_dashboard(&self) -> bool {
        #[cfg(feature = "tui")]
        return matches!(self.face, Face::Dashboard(_));
        #[cfg(not(feature = "tui"))]
        false
    }

    /// Ends the display: restores the terminal and prints messages that were not shown yet. Writes the last JSON event.
    pub(crate) fn finish(mut self, is_complete: bool, results: &str) {
        match &mut self.face {
            Face::Bar(bar) => bar.clear(),
            Face::Json(events) => events.run_ended(&locked(&self.state), is_complete, results),
            #[cfg(feature = "tui")]
            Face::Dashboard(dashboard) => {
                dashboard.stop();
                locked(&self.state).messages.iter().for_each(|line| eprintln!("{line}"));
            }
            Face::Nothing | Face::Lines(_) => {}
        }
    }
}

/// What a request to stop does, if there are more of them than were answered.
fn answer(interrupts: u32, answered: u32) -> Option<&'static str> {
    match interrupts {
        _ if interrupts <= answered => None,
        1 => Some("stopping after this trial; Ctrl-C again discards this trial and stops now"),
        _ => Some("stopping now"),
    }
}

impl Observer for Live {
    fn trial_begins(&mut self, trial: &Trial, place: usize, _: usize) {
        let mut state = locked(&self.state);
        state.trial_begins(trial, place);
        match &mut self.face {
            Face::Bar(bar) => bar.show(&state),
            Face::Json(events) => events.trial_begins(&state, trial),
            _ => {}
        }
    }

    fn tick(&mut self, tick: &Tick) {
        self.answer();
        let mut state = locked(&self.state);
        state.tick(tick);
        match &mut self.face {
            Face::Bar(bar) => bar.show(&state),
            Face::Lines(lines) => lines.show(&state),
            Face::Json(events) => events.tick(&state, tick),
            _ => {}
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.answer();
        let mut state = locked(&self.state);
        state.snapshot(snapshot);
        if let Face::Bar(bar) = &mut self.face {
            bar.show(&state);
        }
    }

    fn trial_ended(&mut self, record: &Record) {
        self.answer();
        let mut state = locked(&self.state);
        let ended = lines::Ended::of(&state);
        let line = state.trial_ended(record);
        match (&mut self.face, line) {
            (Face::Lines(lines), line) => lines.ended(&state, ended, record, line),
            (Face::Json(events), _) => events.trial_ended(&state, record),
            (Face::Bar(bar), Some(line)) => bar.print(&line),
            #[cfg(feature = "tui")]
            (Face::Dashboard(_), Some(line)) => state.messages.push(line),
            (_, Some(line)) => eprintln!("{line}"),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests;
