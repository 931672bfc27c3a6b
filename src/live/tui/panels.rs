//! The parts of the screen: series, service times, resources, plan, results.

use super::screen::View;
use crate::live::results::PhaseResults;
use crate::live::state::{Fate, Row, State, rate_text};
use kvdyno_measure::text::{bytes_text, time_text};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar};

/// The maximum length of a bar in the results, in columns.
const MOST_BAR: usize = 60;

/// Ops per second and p99, with a column for each second.
pub(super) fn series(frame: &mut Frame, area: Rect, state: &State, view: &View) {
    let [above, below] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
    let rates = column(state, |row| row.ops_per_second);
    let title = format!("one column per second: max {}", rate_text(most(&rates)));
    chart(frame, above, &rates, title, view);
    let p99 = column(state, |row| row.p99_ns.map(|ns| ns as f64));
    let title = format!("p99: max {}", most(&p99).map_or("-".into(), time_text));
    chart(frame, below, &p99, title, view);
}

fn column(state: &State, of: fn(&Row) -> Option<f64>) -> Vec<Option<f64>> {
    state.now.as_ref().map_or_else(Vec::new, |now| now.rows.iter().map(of).collect())
}

fn most(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

fn chart(frame: &mut Frame, area: Rect, values: &[Option<f64>], title: String, view: &View) {
    let block = view.panel(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    bars(frame, inside, values, view);
}

/// Draws the last values, as many as there is room for, on a scale from 0 to the largest.
fn bars(frame: &mut Frame, area: Rect, values: &[Option<f64>], view: &View) {
    const STEPS: f64 = 10_000.0;
    let last = &values[values.len().saturating_sub(area.width as usize)..];
    let most = most(last).filter(|most| *most > 0.0).unwrap_or(1.0);
    let bar = |value: &Option<f64>| SparklineBar::from(value.map(|value| (value / most * STEPS) as u64));
    let chart = Sparkline::default()
        .data(last.iter().map(bar).collect::<Vec<_>>())
        .max(STEPS as u64)
        .bar_set(view.bars())
        .absent_value_symbol(" ")
        .style(view.ink());
    frame.render_widget(chart, area);
}

/// The distribution of service times in the phase.
pub(super) fn times(frame: &mut Frame, area: Rect, state: &State, view: &View) {
    let now = state.now.as_ref();
    let turn = now.and_then(|now| now.turns.get(now.last_turn?));
    let block = view.panel(format!("service times, {}", turn.map_or("-", |turn| &turn.phase)));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let Some(now) = now else { return };
    if now.service_ns.is_empty() {
        frame.render_widget(Line::from("   updated once per second"), inside);
        return;
    }
    let buckets: Vec<(u64, u64)> = now.service_ns.iter().map(|(ns, count)| (*ns, *count)).collect();
    let rows = fitting(&buckets, inside.height as usize);
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let room = (inside.width as usize).saturating_sub(18);
    let lines: Vec<Line> = rows
        .iter()
        .map(|(ns, count)| {
            let full = (*count as f64 / most as f64 * room as f64).ceil() as usize;
            let bar = view.bars().full.repeat(full.min(room));
            let share = *count as f64 / all.max(1) as f64 * 100.0;
            Line::from(format!("{:>8} {bar:room$} {}", time_text(*ns as f64), share_text(share)))
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inside);
}

/// `12.3 %`, or `<0.1 %` for a smaller share above zero.
fn share_text(percent: f64) -> String {
    if percent > 0.0 && percent < 0.1 { "<0.1 %".into() } else { format!("{percent:.1} %") }
}

/// The minimum share of all times that is shown in separate buckets; the few slower ones may share the last row.
const SEEN: f64 = 0.999;

/// Merges buckets until they fit into `rows`, with the slowest ones in the last row.
pub(super) fn fitting(buckets: &[(u64, u64)], rows: usize) -> Vec<(u64, u64)> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    // Initially four buckets for each doubling.
    for join in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        let mut joined: Vec<(u64, u64, u64)> = Vec::new();
        for (ns, count) in buckets {
            let shift = (*ns).max(4).ilog2() - 2;
            let group = (u64::from(shift) * 4 + (ns >> shift)) / join;
            match joined.last_mut() {
                Some((own, _, sum)) if *own == group => *sum = sum.saturating_add(*count),
                _ => joined.push((group, *ns, *count)),
            }
        }
        let mut joined: Vec<(u64, u64)> = joined.into_iter().map(|(_, ns, count)| (ns, count)).collect();
        if joined.len() > rows && rows > 1 {
            let slow: u64 = joined[rows - 1..].iter().map(|(_, count)| count).sum();
            if slow as f64 > (1.0 - SEEN) * all as f64 {
                continue;
            }
            joined.truncate(rows);
            joined[rows - 1].1 = slow;
        }
        if joined.len() <= rows {
            return joined;
        }
    }
    Vec::new()
}

/// The name, the values over time, and the formatter of a value.
type Resource<'r> = (&'r str, Vec<Option<f64>>, &'r dyn Fn(f64) -> String);

/// Memory, processors and disk.
pub(super) fn resources(frame: &mut Frame, area: Rect, state: &State, view: &View) {
    let block = view.panel("resources of the trial".into());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let bytes = |value: f64| bytes_text(value as u64);
    let per_second = |value: f64| format!("{}/s", bytes_text(value as u64));
    let rows: [Resource<'_>; 4] = [
        ("RSS", column(state, |row| row.rss_bytes.map(|bytes| bytes as f64)), &bytes),
        ("CPUs", column(state, |row| row.cpus), &|value| format!("{value:.2} busy")),
        ("disk", column(state, |row| row.disk_bytes.map(|bytes| bytes as f64)), &bytes),
        ("written", column(state, |row| row.written_per_second), &per_second),
    ];
    for (line, (name, values, text)) in inside.rows().zip(rows) {
        let last = values.last().copied().flatten();
        let label = format!("{name:7} {:>11} ", last.map_or("-".into(), text));
        let [left, right] =
            Layout::horizontal([Constraint::Length(label.len() as u16), Constraint::Fill(1)]).areas(line);
        frame.render_widget(Line::from(label), left);
        bars(frame, right, &values, view);
    }
}

/// The numbers of trials by state, and the next trials.
pub(super) fn plan(frame: &mut Frame, area: Rect, state: &State, view: &View) {
    let block = view.panel(format!("plan: {} trials", state.trials.len()));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let count = |fate: Fate| state.count(&[fate]);
    let mut lines = vec![format!(
        "{} ok, {} failed, {} wrong, {} waiting",
        count(Fate::Ok),
        count(Fate::Failed),
        count(Fate::Wrong),
        count(Fate::Waiting)
    )];
    let waiting = state.trials.iter().filter(|planned| planned.fate == Fate::Waiting);
    let next = waiting
        .map(|planned| format!("next   {} {} run {}", planned.engine, planned.workload, planned.repetition));
    lines.extend(next.take((inside.height as usize).saturating_sub(2)));
    lines.extend(state.messages.last().cloned());
    // The message is always visible.
    if lines.len() > inside.height as usize {
        lines.drain(inside.height as usize - 1..lines.len() - 1);
    }
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), inside);
}

/// The engines in a phase, the fastest first.
pub(super) fn results(
    frame: &mut Frame,
    area: Rect,
    phase: Option<&PhaseResults>,
    state: &State,
    view: &View,
) {
    let title = phase.map_or("results so far: none yet".into(), |phase| {
        format!("results so far: {} / {}, level {}", phase.workload, phase.phase, phase.level)
    });
    let block = view.panel(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let Some(phase) = phase else { return };
    let running =
        state.now.as_ref().and_then(|now| state.trials.get(now.place)).map(|planned| &planned.engine);
    let rows = phase.ranked();
    let label = |engine: &str| {
        let planned = state.trials.iter().find(|planned| planned.engine == engine);
        planned.map_or(engine, |planned| &planned.label).to_string()
    };
    let width = rows.iter().map(|row| label(&row.engine).len()).max().unwrap_or(0).max(6);
    let most = rows.iter().filter_map(|row| row.rate()).fold(0.0, f64::max);
    let head = format!("{:>4}  {:width$} {:>14} {:>9} {:>5}", "rank", "engine", "ops/s", "p99", "runs");
    let room = (inside.width as usize).saturating_sub(head.len() + 2).min(MOST_BAR);
    let mut lines = vec![Line::from(head)];
    let places = rows.iter().filter(|row| !row.is_floor).count();
    for (place, row) in rows.iter().enumerate() {
        let rank = if row.is_floor || places < 2 { "-".into() } else { (place + 1).to_string() };
        let mark = if Some(&row.engine) == running { '>' } else { ' ' };
        let engine = label(&row.engine);
        let p99 = row.p99_ns.map_or("-".into(), |ns| time_text(ns as f64));
        let full = row.rate().filter(|_| most > 0.0).map_or(0, |rate| (rate / most * room as f64) as usize);
        lines.push(Line::from(format!(
            "{mark}{rank:>3}  {engine:width$} {:>14} {p99:>9} {:>5}  {}",
            rate_text(row.rate()),
            row.rates.len(),
            view.bars().full.repeat(full)
        )));
    }
    frame.render_widget(Paragraph::new(lines), inside);
}
