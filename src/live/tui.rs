//! The dashboard: a screen that a thread of the parent process draws four times a second from the state. The processes of
//! trials are not involved, so the dashboard does not change how they are measured.

mod panels;
mod screen;

use super::{Shared, locked};
use kvdyno_measure::{signals, start};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use screen::View;
use std::io::{self, IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval between redraws; a shorter one would take processor time from engines that use all processors.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Whether the dashboard controls the terminal.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// The dashboard on stderr. It is shown until it is stopped or dropped.
pub(super) struct Dashboard {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Takes control of the terminal. An `Err` contains the reason why that is not possible.
    pub(super) fn start(state: Shared) -> io::Result<Dashboard> {
        if !stderr().is_terminal() {
            return Err(io::Error::other("the dashboard is drawn on stderr, which is not a terminal"));
        }
        let failed = |error: io::Error| {
            give_back();
            io::Error::new(error.kind(), format!("the terminal cannot show the dashboard: {error}"))
        };
        IS_OURS.store(true, Ordering::Release);
        enable_raw_mode().map_err(failed)?;
        execute!(stderr(), EnterAlternateScreen, Hide).map_err(failed)?;
        let terminal = Terminal::new(CrosstermBackend::new(stderr())).map_err(failed)?;
        // Leave the alternate screen before a panic message is printed, so that the message is not lost.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            hook(info);
        }));
        let ends = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ends);
        let thread =
            start::thread_named("dashboard", move || show(terminal, &state, &has_ended)).map_err(failed)?;
        Ok(Dashboard { ends, thread: Some(thread) })
    }

    /// Stops the dashboard and restores the terminal.
    pub(super) fn stop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the hook has printed the message.
            let _ = thread.join();
        }
        give_back();
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.stop();
    }
}

fn give_back() {
    if IS_OURS.swap(false, Ordering::AcqRel) {
        // Errors cannot be reported if the terminal is gone.
        let _ = execute!(stderr(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

fn show(mut terminal: Terminal<CrosstermBackend<io::Stderr>>, state: &Shared, ends: &AtomicBool) {
    let mut view = View::of_environment();
    let mut drawn: Option<Instant> = None;
    while !ends.load(Ordering::Acquire) {
        view.stops = signals::interrupts();
        if drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            drawn = Some(Instant::now());
            // Ignore errors: if the terminal is gone, this process will be terminated with it.
            let _ = terminal.draw(|frame| screen::draw(frame, &locked(state), &view));
        }
        let wait = drawn.map_or(DRAW_EVERY, |drawn| DRAW_EVERY.saturating_sub(drawn.elapsed()));
        match event::poll(wait) {
            Ok(true) => {
                let event = event::read();
                if event.is_ok_and(|event| take(&event, &mut view)) {
                    drawn = None;
                }
            }
            Ok(false) => {}
            // Continue without a keyboard.
            Err(_) => std::thread::sleep(wait),
        }
    }
}

/// Handles a key. Returns true if the screen must be redrawn at once.
fn take(event: &Event, view: &mut View) -> bool {
    let Event::Key(key) = event else { return matches!(event, Event::Resize(..)) };
    if key.kind == KeyEventKind::Release {
        return false;
    }
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        // In raw mode Ctrl-C is not turned into a signal.
        KeyCode::Char('c') if with_control => signals::interrupt(),
        KeyCode::Char('q') => signals::interrupt(),
        KeyCode::Tab => view.shown = Some(view.shown.map_or(0, |shown| shown + 1)),
        KeyCode::Esc => view.shown = None,
        _ => return false,
    }
    view.stops = signals::interrupts();
    true
}
