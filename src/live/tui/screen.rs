//! The layout of the screen, its header and its key bindings.

use super::panels;
use crate::live::lines::rank;
use crate::live::results::PhaseResults;
use crate::live::state::{State, rate_text, seconds_text};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::bar;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph};

/// The minimum numbers of columns and rows.
const LEAST: (u16, u16) = (60, 18);

/// The settings of the view.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The index of the results to show; `None` for those of the current phase.
    pub shown: Option<usize>,
    /// How often the user has requested a stop.
    pub stops: u32,
    /// Whether the terminal shows only ASCII.
    pub ascii: bool,
    /// Whether colours are off.
    pub plain: bool,
}

/// Bars in ASCII.
const ASCII_BARS: bar::Set = bar::Set {
    full: "#",
    seven_eighths: "|",
    three_quarters: "|",
    five_eighths: ":",
    half: ":",
    three_eighths: ".",
    one_quarter: ".",
    one_eighth: "_",
    empty: " ",
};

impl View {
    /// The view for the environment: the locale's encoding, and `NO_COLOR`.
    pub(super) fn of_environment() -> View {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let locale = locale.to_lowercase();
        View {
            ascii: !locale.contains("utf-8") && !locale.contains("utf8"),
            plain: set("NO_COLOR").is_some(),
            ..View::default()
        }
    }

    /// The symbols of bars.
    pub(super) fn bars(&self) -> bar::Set<'static> {
        if self.ascii { ASCII_BARS } else { bar::NINE_LEVELS }
    }

    /// The style of charts.
    pub(super) fn ink(&self) -> Style {
        if self.plain { Style::new() } else { Style::new().fg(Color::Cyan) }
    }

    /// A panel of the screen, with a title line.
    pub(super) fn panel(&self, title: String) -> Block<'static> {
        let line = if self.ascii { "-" } else { ratatui::symbols::line::HORIZONTAL };
        let set = ratatui::symbols::border::Set { horizontal_top: line, ..ratatui::symbols::border::PLAIN };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Block::new().borders(Borders::TOP).border_set(set).title(Line::styled(format!(" {title} "), bold))
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame, state: &State, view: &View) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "The terminal has {} x {} cells; the dashboard needs {} x {}. The run continues. Press q to stop it.",
            area.width, area.height, LEAST.0, LEAST.1
        );
        frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), area);
        return;
    }
    let [head, upper, lower, results, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Fill(4),
        Constraint::Length(6),
        Constraint::Fill(3),
        Constraint::Length(1),
    ])
    .areas(area);
    let [series, times] = halves(upper, 3, 2);
    let [resources, plan] = halves(lower, 1, 1);
    draw_head(frame, head, state);
    panels::series(frame, series, state, view);
    panels::times(frame, times, state, view);
    panels::resources(frame, resources, state, view);
    panels::plan(frame, plan, state, view);
    panels::results(frame, results, shown(state, view), state, view);
    frame.render_widget(Paragraph::new(keys(view)), foot);
}

/// Two areas side by side with a gap between them.
fn halves(area: Rect, left: u16, right: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Fill(left), Constraint::Fill(right)]).spacing(2).areas(area)
}

fn draw_head(frame: &mut Frame, area: Rect, state: &State) {
    let [title, bar, trial] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let elapsed = seconds_text(Some(state.began.elapsed().as_secs_f64()));
    let left = seconds_text(state.seconds_left());
    let times = format!("{elapsed}, {left} left");
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(format!("kvdyno  {}", state.run), bold), title);
    let width = (times.len() as u16 + 2).min(title.width);
    let right = Rect { x: title.right() - width, width, ..title };
    frame.render_widget(Line::from(format!("  {times}")), right);
    let text =
        format!(" {:>3.0} %  {} of {} trials", state.share() * 100.0, state.done(), state.trials.len());
    let room = (bar.width as usize).saturating_sub(text.len() + 2);
    let full = (state.share() * room as f64) as usize;
    frame.render_widget(Line::from(format!("[{}{}]{text}", "=".repeat(full), " ".repeat(room - full))), bar);
    frame.render_widget(Line::from(trial_text(state)), trial);
}

/// `redb quick run 1, read (2 of 6): 1.23 M ops/s, p99 633 ns, rank 2 of 5 so far`.
fn trial_text(state: &State) -> String {
    let Some(now) = &state.now else { return "between trials".into() };
    let place = now.turn.map_or_else(String::new, |turn| format!(" ({} of {})", turn + 1, now.turns.len()));
    let text = format!("{}, {}{place}", state.trial_text(), now.phase_text());
    if now.turn.is_none() && now.rate.is_none() {
        return text;
    }
    let rank = rank(state).map_or_else(String::new, |rank| format!(", {rank}"));
    let share = now.phase_share.map_or_else(String::new, |share| format!(" {:.0} %", share * 100.0));
    format!("{text}{share}: {}, p99 {}{rank}", rate_text(now.rate), now.p99_text())
}

/// The results to show in the panel.
fn shown<'s>(state: &'s State, view: &View) -> Option<&'s PhaseResults> {
    let phases = &state.results.phases;
    if let Some(shown) = view.shown {
        return phases.get(shown % phases.len().max(1));
    }
    let now = state.now.as_ref();
    let workload = now.and_then(|now| state.trials.get(now.place)).map(|planned| &planned.workload);
    let phase = now.and_then(|now| now.turns.get(now.last_turn?)).map(|turn| &turn.phase);
    let level = now.and_then(|now| now.tick.as_ref()).map(|tick| tick.level.to_string());
    let of_phase = |own: &&PhaseResults| Some(&own.workload) == workload && Some(&own.phase) == phase;
    let of_level = |own: &&PhaseResults| Some(&own.level) == level.as_ref();
    let exact = phases.iter().filter(of_phase).find(of_level);
    exact.or_else(|| phases.iter().find(of_phase)).or_else(|| phases.last())
}

fn keys(view: &View) -> &'static str {
    match view.stops {
        0 => "q: stop after this trial   Tab: results of next phase   Esc: current phase",
        1 => "STOPPING after this trial   q: stop now and discard this trial",
        _ => "STOPPING now",
    }
}

#[cfg(test)]
mod tests;
