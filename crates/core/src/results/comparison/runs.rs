//! Compares two runs: obstacles to a comparison, and the rows of all common figures.

use super::{Better, Comparison, Conditions, FEWEST_RUNS, Rows, Verdict};
use crate::results::Run;
use crate::results::figures::Figure;
use crate::results::statistics::{geometric_mean, median};
use crate::results::summary::{Cell, PhaseSummary, RunFigures, RunState, Summary, is_mutant};
use serde::Serialize;
use std::collections::BTreeSet;

/// A figure of an engine in a phase, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// The phase's name.
    pub phase: String,
    /// The effective durability level; that of the first run if they differ.
    pub level: String,
    /// The requested engine.
    pub engine: String,
    /// The requested options.
    pub options: Vec<(String, String)>,
    /// The figure.
    pub figure: &'static Figure,
    /// Its median in the first run; none if some counted runs do not have it.
    pub base_median: Option<f64>,
    /// Its median in the second run.
    pub new_median: Option<f64>,
    /// Counted runs of the cell that are compared: if the lengths differ, those of the planned length.
    pub base_runs: usize,
    /// The same in the second run.
    pub new_runs: usize,
    /// The comparison; none: too few runs have the figure, or a value is 0 and has no ratio.
    pub compared: Option<Comparison>,
    /// The verdict without a ratio, if the figure is always 0 in one or both of the runs.
    pub of_zero: Option<Verdict>,
}

/// A comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// The first run's id.
    pub base: String,
    /// The second run's id.
    pub new: String,
    /// Why their figures are not comparable; empty: they are comparable.
    pub differences: Vec<String>,
    /// Remarks for the reader that do not prevent a comparison.
    pub remarks: Vec<String>,
    /// Cells that only one of the runs has.
    pub unmatched: Vec<String>,
    /// How many of these are missing in the second run.
    #[serde(skip)]
    pub missing: usize,
    /// Cells with failed runs in the second run and none in the first.
    pub failures: Vec<String>,
    /// Notes on cells of either run: phase, engine, and the marks.
    pub notes: Vec<String>,
    /// Cells most of whose runs were disturbed.
    pub disturbed: usize,
    /// All rows, phase by phase and figure by figure.
    pub rows: Vec<Row>,
}

/// One of two runs that are compared.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its figures.
    pub summary: &'a Summary,
}

impl RunComparison {
    /// Compares the second run with the first in these figures.
    pub fn new(base: Side<'_>, new: Side<'_>, figures: &[&'static Figure]) -> RunComparison {
        let mut comparison = RunComparison {
            base: base.run.id.clone(),
            new: new.run.id.clone(),
            differences: Vec::new(),
            remarks: Vec::new(),
            unmatched: Vec::new(),
            missing: 0,
            failures: Vec::new(),
            notes: Vec::new(),
            disturbed: 0,
            rows: Vec::new(),
        };
        let (before, after) = (Conditions::of(base.run), Conditions::of(new.run));
        comparison.differences.extend(before.of_machines(&after));
        comparison.differences.extend(before.of_settings(&after));
        if base.run.tool_version != new.run.tool_version {
            let (old, new) = (&base.run.tool_version, &new.run.tool_version);
            comparison
                .remarks
                .push(format!("measured with kvdyno {old} and {new}: see CHANGELOG.md for what changed"));
        }
        comparison.remarks.extend(races(base.run, new.run));
        comparison.remarks.extend(versions(base.summary, new.summary));
        if seeds(base.run) != seeds(new.run) {
            comparison.remarks.push("the runs used different seeds (--seed, --same-ops)".to_string());
        }
        let clock_ns =
            [base.run, new.run].iter().filter_map(|run| run.clock.smallest_step_ns).fold(0.0, f64::max);
        let mut compared = Rows::default();
        for phase in &base.summary.phases {
            let same =
                |other: &&PhaseSummary| (&other.workload, &other.name) == (&phase.workload, &phase.name);
            let Some(other) = new.summary.phases.iter().find(same) else { continue };
            comparison.add_phase(&mut compared, phase, other, figures, clock_ns);
        }
        (comparison.unmatched, comparison.missing) = unmatched(base.summary, new.summary);
        for (row, found) in comparison.rows.iter_mut().zip(compared.finish()) {
            row.compared = found;
        }
        if !comparison.rows.iter().any(|row| row.base_median.is_some() && row.new_median.is_some()) {
            comparison.differences.push("the two runs have no figures of an engine in common".to_string());
        }
        comparison
    }

    fn add_phase(
        &mut self,
        compared: &mut Rows,
        base: &PhaseSummary,
        new: &PhaseSummary,
        figures: &[&'static Figure],
        clock_ns: f64,
    ) {
        let mut pairs: Vec<(&Cell, &Cell)> = Vec::new();
        for cell in cells(base).filter(|cell| cell.counted_runs > 0) {
            let Some(other) = counterpart(cell, new) else { continue };
            if let (Some(level), Some(other_level)) = (cell.durability_effective, other.durability_effective)
                && level != other_level
            {
                self.differences.push(format!(
                    "{}: effective level {level}, but {other_level} in the second run",
                    cell_text(base, cell)
                ));
            }
            let (failed, failed_now) = (failed_runs(cell), failed_runs(other));
            if failed == 0 && failed_now > 0 {
                let why = other.notes.first().and_then(|note| note.detail.clone()).unwrap_or_default();
                let text =
                    format!("{}: {failed_now} of {} runs failed", cell_text(base, cell), other.runs.len());
                self.failures.push(if why.is_empty() { text } else { format!("{text} ({why})") });
            }
            self.add_notes(base, cell, "base");
            self.add_notes(base, other, "new");
            pairs.push((cell, other));
        }
        let runs: Vec<(Vec<&RunFigures>, Vec<&RunFigures>)> =
            pairs.iter().map(|(base, new)| runs_of_a_length(base, new)).collect();
        for figure in figures {
            let values = |runs: &[&RunFigures]| -> Vec<f64> {
                let each: Option<Vec<f64>> = runs.iter().map(|run| figure.of_run(run)).collect();
                each.unwrap_or_default()
            };
            let samples: Vec<(Vec<f64>, Vec<f64>)> =
                runs.iter().map(|(base, new)| (values(base), values(new))).collect();
            compared.add(&samples, figure.better, |value| figure.step(value, clock_ns));
            for (((cell, _), (old, new)), runs) in pairs.iter().zip(&samples).zip(&runs) {
                self.rows.push(Row {
                    workload: base.workload.clone(),
                    phase: base.name.clone(),
                    level: level_text(cell),
                    engine: cell.engine.clone(),
                    options: cell.options.clone(),
                    figure,
                    base_median: median(old),
                    new_median: median(new),
                    base_runs: runs.0.len(),
                    new_runs: runs.1.len(),
                    compared: None,
                    of_zero: of_zero(old, new, figure.better),
                });
            }
        }
    }

    fn add_notes(&mut self, phase: &PhaseSummary, cell: &Cell, which: &str) {
        self.disturbed += usize::from(cell.is_disturbed());
        let marks: Vec<&str> = cell.notes.iter().map(|note| note.mark.as_str()).collect();
        if !marks.is_empty() {
            self.notes.push(format!("{}, {which}: {}", cell_text(phase, cell), marks.join(", ")));
        }
    }

    /// The geometric mean of the ratios of some rows, and the number of rows with a ratio.
    pub fn mean_ratio<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<(f64, usize)> {
        let ratios: Vec<f64> = rows.filter_map(|row| Some(row.compared.as_ref()?.ratio)).collect();
        Some((geometric_mean(&ratios)?, ratios.len()))
    }
}

impl Row {
    /// The loss as a share: 0.05 is 5 % more time for an op, or 5 % more bytes. `ratio` is the second run's figure divided by
    /// the first's.
    pub fn loss(&self, ratio: f64) -> f64 {
        match self.figure.better {
            Better::Higher => 1.0 / ratio - 1.0,
            Better::Lower => ratio - 1.0,
        }
    }

    /// Whether it is significantly worse, and by more than `share`.
    pub fn is_regression(&self, share: f64) -> bool {
        let is_worse = |row: &Comparison| row.verdict == Verdict::Worse && self.loss(row.ratio) > share;
        self.compared.as_ref().map_or(self.of_zero == Some(Verdict::Worse), is_worse)
    }

    /// Whether a loss of more than `share` is neither found nor ruled out by the interval, or the row cannot be compared.
    pub fn is_inconclusive(&self, share: f64) -> bool {
        let is_open = |row: &Comparison| {
            let worst = self.loss(row.interval.low).max(self.loss(row.interval.high));
            worst > share && !self.is_regression(share)
        };
        let is_measured = self.base_median.is_some() || self.new_median.is_some();
        self.compared.as_ref().map_or(is_measured && self.of_zero.is_none(), is_open)
    }

    /// The verdict; none: the row cannot be compared.
    pub fn verdict(&self) -> Option<Verdict> {
        self.compared.as_ref().map(|row| row.verdict).or(self.of_zero)
    }
}

/// The verdict if all values of one side are 0; none: there are ratios, or too few values.
fn of_zero(base: &[f64], new: &[f64], better: Better) -> Option<Verdict> {
    if base.len().min(new.len()) < FEWEST_RUNS {
        return None;
    }
    let is_zero = |values: &[f64]| values.iter().all(|value| *value == 0.0);
    let is_more = |values: &[f64]| values.iter().all(|value| *value > 0.0);
    match (is_zero(base), is_zero(new)) {
        (true, true) => Some(Verdict::Open),
        (true, false) if is_more(new) && better == Better::Lower => Some(Verdict::Worse),
        (false, true) if is_more(base) && better == Better::Lower => Some(Verdict::Better),
        _ => None,
    }
}

/// Cells of engines, including those without figures, but not the floor.
fn cells(phase: &PhaseSummary) -> impl Iterator<Item = &Cell> {
    phase.cells().filter(|cell| !is_mutant(&cell.engine))
}

fn is_same(left: &Cell, right: &Cell) -> bool {
    left.engine == right.engine && left.options == right.options
}

/// The same cell in the other run: the one at the same level, or else the one with the most runs.
fn counterpart<'a>(cell: &Cell, phase: &'a PhaseSummary) -> Option<&'a Cell> {
    let same = || cells(phase).filter(|other| is_same(cell, other));
    let at_level = same().find(|other| other.durability_effective == cell.durability_effective);
    at_level.or_else(|| same().max_by_key(|other| other.counted_runs))
}

/// The counted runs of two cells that can be compared: all if both have the same lengths, otherwise those of the planned length. A
/// race makes phases longer, and a longer phase may have warmer caches or more merges.
fn runs_of_a_length<'c>(base: &'c Cell, new: &'c Cell) -> (Vec<&'c RunFigures>, Vec<&'c RunFigures>) {
    let counted = |cell: &'c Cell| -> Vec<&'c RunFigures> {
        cell.runs.iter().filter(|run| run.state.counts()).collect()
    };
    let (mut base, mut new) = (counted(base), counted(new));
    let are_planned = |runs: &[&RunFigures]| runs.iter().all(|run| run.length == 1.0);
    let is_same =
        base.len() == new.len() && base.iter().zip(&new).all(|(one, other)| one.length == other.length);
    let are_all_planned = are_planned(&base) && are_planned(&new);
    if !is_same && !are_all_planned {
        base.retain(|run| run.length == 1.0);
        new.retain(|run| run.length == 1.0);
    }
    (base, new)
}

fn failed_runs(cell: &Cell) -> usize {
    let is_failed =
        |run: &&RunFigures| matches!(run.state, RunState::Failed { .. } | RunState::FailedLater { .. });
    cell.runs.iter().filter(is_failed).count()
}

fn level_text(cell: &Cell) -> String {
    cell.durability_effective.map_or_else(|| "-".to_string(), |level| level.to_string())
}

fn cell_text(phase: &PhaseSummary, cell: &Cell) -> String {
    let options: Vec<String> = cell.options.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{} / {}: {}{}", phase.workload, phase.name, cell.engine, options.concat())
}

/// The cells of only one run, and how many of them are the first run's.
fn unmatched(base: &Summary, new: &Summary) -> (Vec<String>, usize) {
    let planned = |summary: &Summary| -> BTreeSet<String> {
        summary.phases.iter().flat_map(|phase| cells(phase).map(|cell| cell_text(phase, cell))).collect()
    };
    let (base, new) = (planned(base), planned(new));
    let only = |name: &String, which: &str| format!("{name} (only in the {which} run)");
    let mut texts: Vec<String> = base.difference(&new).map(|name| only(name, "first")).collect();
    let missing = texts.len();
    texts.extend(new.difference(&base).map(|name| only(name, "second")));
    (texts, missing)
}

/// The seeds of a run's trials.
fn seeds(run: &Run) -> BTreeSet<(u32, u64)> {
    run.plan
        .trials
        .iter()
        .map(|trial| (trial.repetition, trial.seed.unwrap_or(trial.workload.seed)))
        .collect()
}

/// Which of the runs were races, in which engines do not all have the same runs; none: neither of them.
fn races(base: &Run, new: &Run) -> Option<String> {
    let is_race = |run: &Run| run.plan.race.as_ref().is_some_and(|race| !race.looks.is_empty());
    let which = match (is_race(base), is_race(new)) {
        (true, true) => "both runs were races",
        (true, false) => "the base run was a race",
        (false, true) => "the new run was a race",
        (false, false) => return None,
    };
    Some(format!(
        "{which}: engines left phases that they could not win, and phases were longer for the others, so of cells with other \
         lengths only the runs as planned are compared (--fixed: all runs are as planned)"
    ))
}

/// Engines whose version or effective settings changed, which is usually the purpose of the comparison.
fn versions(base: &Summary, new: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    for facts in &base.engines {
        let same_name = || new.engines.iter().filter(|other| other.name == facts.name);
        if same_name().any(|other| other == facts) {
            continue;
        }
        if let Some(other) = same_name().next() {
            let what = if facts.version == other.version {
                format!("{}: effective settings differ", facts.name)
            } else {
                format!("{}: version {} and {}", facts.name, facts.version, other.version)
            };
            remarks.push(what);
        }
    }
    remarks.sort();
    remarks.dedup();
    remarks
}

#[cfg(test)]
mod tests;
