//! A history as text and as CSV.

use super::series::{Commit, History, Series, Shift, short};
use crate::block::Block;
use crate::describe;
use crate::escape::csv_cell;
use crate::figure::{known, ratio, text};
use kvdyno_core::results::comparison::Better;
use kvdyno_measure::text::{Align, Table, counted, listed, plain_text};

/// For a terminal: the changes, and with `is_full` all series too.
pub fn history_text(history: &History, is_full: bool) -> String {
    let mut blocks = vec![Block::Title("kvdyno history".to_string()), Block::Facts(facts(history))];
    for machine in 0..history.machines.len() {
        let own: Vec<&Series> = history.series.iter().filter(|series| series.machine == machine).collect();
        if own.is_empty() {
            continue;
        }
        blocks.push(Block::Part(part(history, machine, "Changes")));
        for change in changes(&own) {
            blocks.push(Block::Section(change.title(history)));
            blocks.push(Block::Table(change.table(history)));
        }
        blocks.push(Block::Lines(summary(&own, is_full)));
        if is_full {
            blocks.push(Block::Part(part(history, machine, "All series")));
            blocks.push(Block::Table(all(history, &own)));
        }
    }
    blocks.push(Block::Part("How to read the tables".to_string()));
    blocks.push(Block::Lines(legend()));
    crate::text::blocks(blocks)
}

/// `Changes`, or `Changes on machine 2` if there are several.
pub(super) fn part(history: &History, machine: usize, title: &str) -> String {
    if history.machines.len() > 1 { format!("{title} on machine {}", machine + 1) } else { title.to_string() }
}

/// What is in the history.
pub(super) fn facts(history: &History) -> Vec<(&'static str, String)> {
    let runs = history.commits.iter().map(|commit| commit.runs.len() as u64).sum();
    let ends = match (history.commits.first(), history.commits.last()) {
        (Some(first), Some(last)) if history.commits.len() > 1 => {
            format!(", from {} to {}", short(&first.id), short(&last.id))
        }
        _ => String::new(),
    };
    let commits = counted(history.commits.len() as u64, "commit", "commits");
    let mut facts =
        vec![("history", plain_text(&format!("{commits}{ends}, in {}", counted(runs, "run", "runs"))))];
    for (place, conditions) in history.machines.iter().enumerate() {
        let number = if history.machines.len() > 1 { format!("{}: ", place + 1) } else { String::new() };
        facts.push(("machine", format!("{number}{}", describe::machine_of(&conditions.machine))));
    }
    let tools: Vec<String> = history.tools.iter().map(|tool| plain_text(tool)).collect();
    let remark = if tools.len() > 1 { ": see CHANGELOG.md for what changed" } else { "" };
    facts.push(("kvdyno", format!("{}{remark}", listed(&tools, "and"))));
    facts
}

/// What changed between two commits.
pub(super) struct Change<'a> {
    /// The place of the first commit that has it.
    pub first: usize,
    /// The place of the commit before it.
    pub before: usize,
    /// The figures that changed.
    pub rows: Vec<(&'a Series, &'a Shift)>,
}

/// The changes, the newest first.
pub(super) fn changes<'a>(series: &[&'a Series]) -> Vec<Change<'a>> {
    let mut found: Vec<Change> = Vec::new();
    for own in series {
        for shift in own.shifts() {
            let Some((first, before)) = own.ends(shift) else { continue };
            match found.iter_mut().find(|seen| (seen.first, seen.before) == (first, before)) {
                Some(seen) => seen.rows.push((own, shift)),
                None => found.push(Change { first, before, rows: vec![(own, shift)] }),
            }
        }
    }
    found.sort_by_key(|change| std::cmp::Reverse((change.first, change.before)));
    found
}

impl Change<'_> {
    /// `3f2a91b (2026-11-20, note), after 1c88d0e`.
    pub(super) fn title(&self, history: &History) -> String {
        let Commit { id, time, note, .. } = &history.commits[self.first];
        let day = time.split('T').next().unwrap_or_default();
        let note = note.as_ref().map_or_else(String::new, |note| format!(", {note}"));
        let before = short(&history.commits[self.before].id);
        plain_text(&format!("First in {} ({day}{note}), the commit after {before}", short(id)))
    }

    pub(super) fn table(&self, history: &History) -> Table {
        let mut table = Table::with_titles(&[
            ("phase", Align::Left),
            ("engine", Align::Left),
            ("level", Align::Left),
            ("figure", Align::Left),
            ("before", Align::Right),
            ("after", Align::Right),
            ("ratio", Align::Right),
            ("change", Align::Left),
            ("p", Align::Right),
        ]);
        for (series, shift) in &self.rows {
            let value = |value| text(series.figure.form, value);
            table.push(vec![
                series.phase.clone(),
                history.label(series),
                series.level.clone(),
                series.figure_name().to_string(),
                value(shift.before),
                value(shift.after),
                known(shift.ratio(), ratio),
                series.word(shift).to_string(),
                p_text(shift.p),
            ]);
        }
        table
    }
}

/// `0.0004`, `3e-12`.
pub(super) fn p_text(p: f64) -> String {
    match p {
        p if p >= 0.0001 => format!("{p:.4}"),
        p if p < 1e-15 => "<1e-15".to_string(),
        p => format!("{p:.0e}"),
    }
}

/// How many series changed, did not, or are too short.
fn summary(series: &[&Series], is_full: bool) -> Vec<String> {
    let changed = series.iter().filter(|series| !series.shifts().is_empty()).count();
    let unknown: Vec<&String> = series.iter().filter_map(|series| series.found.as_ref().err()).collect();
    let same = series.len() - changed - unknown.len();
    let mut lines = vec![format!(
        "{changed} of {} changed; {same} without a change.",
        counted(series.len() as u64, "series", "series")
    )];
    let mut reasons: Vec<(&String, u64)> = Vec::new();
    for reason in unknown {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    lines.extend(reasons.iter().map(|(reason, count)| {
        plain_text(&format!("{} not analysed: {reason}.", counted(*count, "series was", "series were")))
    }));
    lines.extend((!is_full).then(|| "--full lists all series with their last values.".to_string()));
    lines
}

/// A row for each series.
pub(super) fn all(history: &History, series: &[&Series]) -> Table {
    let mut table = Table::with_titles(&[
        ("phase", Align::Left),
        ("engine", Align::Left),
        ("level", Align::Left),
        ("figure", Align::Left),
        ("commits", Align::Right),
        ("last", Align::Right),
        ("last commit", Align::Left),
        ("changes", Align::Right),
    ]);
    for series in series {
        let last = series.points.last();
        table.push(vec![
            series.phase.clone(),
            history.label(series),
            series.level.clone(),
            series.figure_name().to_string(),
            series.points.len().to_string(),
            known(last, |point| text(series.figure.form, point.value)),
            known(last, |point| short(&history.commits[point.commit].id)),
            known(series.found.as_ref().ok(), |shifts| shifts.len().to_string()),
        ]);
    }
    table
}

pub(super) fn legend() -> Vec<String> {
    [
        "A value is the median over all runs of a commit. before, after: the means of the values between this change and its \
         neighbours, without spikes. ratio: after divided by before. A single value that is far from both its sides is a spike, and no \
         change; so is the last value until the next commit confirms it.",
        "p: Student's t-test of the two sides. It does not account for the choice of the place: a few of 100 series that never changed \
         have a change. Figures that changed at the same commit confirm each other; kvdyno ab compares two commits.",
        "Runs of other machines, of workloads with other settings (#2) and at other durability levels are other series.",
    ]
    .map(String::from)
    .to_vec()
}

const CSV: &str = "machine,workload,settings,phase,engine,options,level,figure,unit,better,commits,last_commit,last_value,change,ratio,\
                   mean_before,mean_after,first_commit,commit_before,p";

/// A row for each change, and for each series without one.
pub fn history_csv(history: &History) -> String {
    let mut text = format!("{CSV}\n");
    for series in &history.series {
        let none = std::iter::once(None);
        let shifts: Vec<Option<&Shift>> = match series.shifts() {
            [] => none.collect(),
            some => some.iter().map(Some).collect(),
        };
        for shift in shifts {
            text += &(row(history, series, shift).join(",") + "\n");
        }
    }
    text
}

fn row(history: &History, series: &Series, shift: Option<&Shift>) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let commit = |place: usize| csv_cell(&plain_text(&history.commits[place].id));
    let ends = shift.and_then(|shift| series.ends(shift));
    let last = series.points.last();
    let options: Vec<String> = series.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let better = if series.figure.better == Better::Higher { "higher" } else { "lower" };
    vec![
        (series.machine + 1).to_string(),
        csv_cell(&series.workload),
        (series.settings + 1).to_string(),
        csv_cell(&series.name),
        csv_cell(&plain_text(&series.engine)),
        csv_cell(&plain_text(&options.join(" "))),
        csv_cell(&series.level),
        series.figure.name.to_string(),
        series.figure.unit.to_string(),
        better.to_string(),
        series.points.len().to_string(),
        last.map_or_else(String::new, |point| commit(point.commit)),
        number(last.map(|point| point.value)),
        shift.map_or_else(String::new, |shift| series.word(shift).to_string()),
        number(shift.and_then(Shift::ratio)),
        number(shift.map(|shift| shift.before)),
        number(shift.map(|shift| shift.after)),
        ends.map_or_else(String::new, |(first, _)| commit(first)),
        ends.map_or_else(String::new, |(_, before)| commit(before)),
        number(shift.map(|shift| shift.p)),
    ]
}
