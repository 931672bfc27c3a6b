//! The series of a history: one figure of one engine over the commits, on machines and with settings that are the same.

use super::entry::{HistoryCell, HistoryEntry};
use kvdyno_core::results::comparison::{Better, Conditions, Verdict};
use kvdyno_core::results::figures::Figure;
use kvdyno_core::results::label::Labels;
use kvdyno_core::results::statistics::median;
use kvdyno_measure::text::{plain_text, short_text};
use std::collections::HashMap;

/// A change of the mean of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The place of the first value that has it, from 0.
    pub index: usize,
    /// The mean of the values before it, from the change before it.
    pub before: f64,
    /// The mean of the values from it to the next change.
    pub after: f64,
    /// The p value of the test.
    pub p: f64,
}

/// A commit.
#[derive(Debug)]
pub(super) struct Commit {
    pub id: String,
    /// When it was made, or else measured first.
    pub time: String,
    pub note: Option<String>,
    /// Its runs.
    pub runs: Vec<String>,
}

/// A value of a series.
#[derive(Debug)]
pub(super) struct Point {
    /// The place of its commit.
    pub commit: usize,
    /// The median over all runs of the commit.
    pub value: f64,
}

/// A figure of a cell over the commits.
#[derive(Debug)]
pub(super) struct Series {
    /// From 0.
    pub machine: usize,
    pub workload: String,
    /// The settings of its workload, from 0.
    pub settings: usize,
    /// The name of its phase.
    pub name: String,
    /// `quick / read`, or `quick #2 / read` with other settings of the workload.
    pub phase: String,
    /// The same without spaces: `quick/read`.
    pub path: String,
    pub engine: String,
    pub options: Vec<(String, String)>,
    pub level: String,
    pub figure: &'static Figure,
    pub points: Vec<Point>,
    /// The changes in it, or why it was not analysed.
    pub found: Result<Vec<Shift>, String>,
}

/// The series of all figures of a history, in the order of adding.
#[derive(Debug)]
pub struct History {
    pub(super) commits: Vec<Commit>,
    /// For each machine the conditions of its first run.
    pub(super) machines: Vec<Conditions>,
    pub(super) series: Vec<Series>,
    pub(super) labels: Labels,
    /// The versions of kvdyno that measured.
    pub(super) tools: Vec<String>,
}

/// What the values of a series have in common, and its place.
type Key<'a> = (usize, usize, &'a HistoryCell);

impl History {
    /// The series of these figures. Runs of machines that differ, and workloads whose settings differ, have series of their own, unless
    /// `is_joined`.
    pub fn new(entries: &[HistoryEntry], figures: &[&'static Figure], is_joined: bool) -> History {
        let mut history = History {
            commits: Vec::new(),
            machines: Vec::new(),
            series: Vec::new(),
            labels: Labels::new(cells_of(entries).map(|cell| (cell.engine.as_str(), &cell.options[..]))),
            tools: Vec::new(),
        };
        let mut kinds: HashMap<(usize, &str), Vec<&Conditions>> = HashMap::new();
        // The cells in order of appearance, with all values of each commit.
        let mut rows: Vec<(Key, Vec<(usize, &HistoryCell)>)> = Vec::new();
        let mut places: HashMap<(usize, usize, String), usize> = HashMap::new();
        for entry in entries {
            let commit = history.commit(entry);
            let machine = history.machine(entry, is_joined);
            if !history.tools.contains(&entry.tool_version) {
                history.tools.push(entry.tool_version.clone());
            }
            for cell in &entry.cells {
                let known = kinds.entry((machine, &cell.workload)).or_default();
                let is_same = |seen: &&Conditions| {
                    is_joined || seen.of_workload(&entry.conditions, &cell.workload).is_empty()
                };
                let settings = known.iter().position(is_same).unwrap_or_else(|| {
                    known.push(&entry.conditions);
                    known.len() - 1
                });
                let name =
                    format!("{:?}", (&cell.workload, &cell.phase, &cell.engine, &cell.options, &cell.level));
                let place = *places.entry((machine, settings, name)).or_insert_with(|| {
                    rows.push(((machine, settings, cell), Vec::new()));
                    rows.len() - 1
                });
                rows[place].1.push((commit, cell));
            }
        }
        rows.sort_by_key(|((machine, ..), _)| *machine);
        for (key, values) in &rows {
            history.series.extend(figures.iter().filter_map(|figure| series(*key, figure, values)));
        }
        history
    }

    /// Finds the changes of each series.
    pub fn find(&mut self, find: impl Fn(&[f64]) -> Result<Vec<Shift>, String>) {
        for series in &mut self.series {
            let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
            series.found = find(&values);
        }
    }

    /// The number of commits.
    pub fn commit_count(&self) -> usize {
        self.commits.len()
    }

    /// The number of machines that differ; one if they are joined.
    pub fn machine_count(&self) -> usize {
        self.machines.len()
    }

    /// The number of series, and of those with a change.
    pub(crate) fn series_counts(&self) -> (usize, usize) {
        let changed = self.series.iter().filter(|series| !series.shifts().is_empty());
        (self.series.len(), changed.count())
    }

    /// Only the series of a machine, from 1.
    pub fn keep_machine(&mut self, number: usize) {
        self.series.retain(|series| series.machine + 1 == number);
    }

    fn commit(&mut self, entry: &HistoryEntry) -> usize {
        let known = self.commits.iter().position(|commit| commit.id == entry.commit);
        let place = known.unwrap_or_else(|| {
            self.commits.push(Commit {
                id: entry.commit.clone(),
                time: entry.time.clone(),
                note: None,
                runs: Vec::new(),
            });
            self.commits.len() - 1
        });
        let commit = &mut self.commits[place];
        commit.runs.push(entry.run.clone());
        commit.note = commit.note.take().or_else(|| entry.note.clone());
        place
    }

    fn machine(&mut self, entry: &HistoryEntry, is_joined: bool) -> usize {
        let is_same = |seen: &Conditions| is_joined || seen.of_machines(&entry.conditions).is_empty();
        self.machines.iter().position(is_same).unwrap_or_else(|| {
            self.machines.push(entry.conditions.clone());
            self.machines.len() - 1
        })
    }

    /// The name of a series' engine in tables.
    pub(super) fn label(&self, series: &Series) -> String {
        self.labels.of(&series.engine, &series.options)
    }
}

fn cells_of(entries: &[HistoryEntry]) -> impl Iterator<Item = &HistoryCell> {
    entries.iter().flat_map(|entry| &entry.cells)
}

/// A figure of a cell: for each commit the median of all its values; none if the cell never has it.
fn series(
    (machine, settings, cell): Key,
    figure: &&'static Figure,
    values: &[(usize, &HistoryCell)],
) -> Option<Series> {
    let mut of_commit: Vec<(usize, Vec<f64>)> = Vec::new();
    for (commit, cell) in values {
        let Some(own) = cell.figures.get(figure.name) else { continue };
        match of_commit.iter_mut().find(|(known, _)| known == commit) {
            Some((_, all)) => all.extend(own),
            None => of_commit.push((*commit, own.clone())),
        }
    }
    // A later run of an old commit belongs to that commit's place.
    of_commit.sort_by_key(|(commit, _)| *commit);
    let point = |(commit, all): (usize, Vec<f64>)| Some(Point { commit, value: median(&all)? });
    let points: Vec<Point> = of_commit.into_iter().filter_map(point).collect();
    let number = if settings == 0 { String::new() } else { format!(" #{}", settings + 1) };
    (!points.is_empty()).then(|| Series {
        machine,
        workload: plain_text(&cell.workload),
        settings,
        name: plain_text(&cell.phase),
        phase: plain_text(&format!("{}{number} / {}", cell.workload, cell.phase)),
        path: format!("{}{}/{}", cell.workload, number.trim_start(), cell.phase),
        engine: cell.engine.clone(),
        options: cell.options.clone(),
        level: plain_text(&cell.level),
        figure,
        points,
        found: Ok(Vec::new()),
    })
}

impl Series {
    /// Its changes; none if it was not analysed.
    pub(super) fn shifts(&self) -> &[Shift] {
        self.found.as_deref().unwrap_or_default()
    }

    /// The places of the first commit that has a change, and of the one before it in the series.
    pub(super) fn ends(&self, shift: &Shift) -> Option<(usize, usize)> {
        Some((self.points.get(shift.index)?.commit, self.points.get(shift.index.checked_sub(1)?)?.commit))
    }

    /// The name of its figure on the command line.
    pub(super) fn figure_name(&self) -> &'static str {
        self.figure.compared.map_or(self.figure.name, |compared| compared.name)
    }

    /// `faster`, `slower`, `smaller`, `larger`.
    pub(super) fn word(&self, shift: &Shift) -> &'static str {
        let verdict = if self.is_worse(shift) { Verdict::Worse } else { Verdict::Better };
        self.figure.compared.map_or("changed", |compared| compared.word(verdict))
    }

    pub(super) fn is_worse(&self, shift: &Shift) -> bool {
        (shift.after < shift.before) == (self.figure.better == Better::Higher)
    }
}

impl Shift {
    /// The mean after it divided by that before it; none if that is 0.
    pub(super) fn ratio(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// A commit's id for tables: the first 12 digits of a hash, or else at most 24 characters.
pub(super) fn short(id: &str) -> String {
    let is_hash = id.len() > 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { id[..12].to_string() } else { short_text(id, 24) }
}
