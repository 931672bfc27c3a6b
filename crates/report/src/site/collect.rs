//! The data that a site keeps of each run: the figures of its cells, but no records.

use super::picks::{Picks, picks};
use crate::describe::{command, machine, phase_settings, trials};
use crate::figure::of_cell;
use crate::history::{History, history_page};
use crate::html;
use crate::layout::Page;
use kvdyno_core::results::certificate::Certificate;
use kvdyno_core::results::figures::{FIGURES, Figure};
use kvdyno_core::results::label::full_name;
use kvdyno_core::results::statistics::{Interval, Rank};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_core::results::{Kind, Run, Safety};
use kvdyno_measure::text::{counted, plain_text};
use std::collections::HashMap;

/// The folder with the pages of the runs.
pub(super) const RUNS: &str = "runs";
/// The folder with the pages of the histories.
pub(super) const HISTORIES: &str = "histories";

/// The runs of a site. Figures of two runs are in the same column only if the machine, the phase's settings and the
/// effective durability level are the same.
#[derive(Debug, Default)]
pub struct Site {
    pub(super) runs: Vec<SiteRun>,
    pub(super) columns: Vec<Column>,
    pub(super) machines: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// What is shown about the workloads that stand for a kind of program.
    pub(super) picks: Vec<Picks>,
    /// What was certified, by engine.
    pub(super) certificates: Vec<Certificate>,
    /// Skipped folders and files, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
    /// The histories of commits.
    pub(super) histories: Vec<SiteHistory>,
    run_names: Names,
    engine_names: Names,
    history_names: Names,
}

/// A history of commits.
#[derive(Debug)]
pub(super) struct SiteHistory {
    pub name: String,
    pub file: String,
    /// What is in it, in words.
    pub extent: String,
}

/// A run of the site.
#[derive(Debug)]
pub(super) struct SiteRun {
    pub id: String,
    pub file: String,
    pub started_at: String,
    pub tool_version: String,
    pub machine: usize,
    pub command: String,
    pub workloads: Vec<String>,
    pub trials: String,
}

/// A phase with its settings.
#[derive(Debug)]
pub(super) struct Column {
    /// `quick / read`.
    pub name: String,
    /// `quick / read`, with a number if the same name occurs with other settings.
    pub title: String,
    pub workload: String,
    /// The settings in words.
    pub settings: String,
    /// All settings that must be equal for figures to belong to the same phase.
    identity: String,
}

/// An effective durability level; weaker levels sort first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level {
    strength: u8,
    pub name: String,
}

/// An engine in one phase of one run.
#[derive(Debug)]
pub(super) struct Entry {
    pub run: usize,
    pub column: usize,
    /// The engine with its requested options.
    pub engine: String,
    pub version: String,
    pub level: Option<Level>,
    pub rank: Option<Rank>,
    pub safety: Safety,
    pub ops_per_second: Option<f64>,
    pub interval: Option<Interval>,
    pub counted_runs: u32,
    /// The texts of [`in_history`].
    pub figures: Vec<String>,
    /// Short notes for the reader.
    pub notes: String,
}

impl Site {
    /// Adds a run and returns its page. Add runs from the oldest to the newest.
    pub fn add(&mut self, summary: &Summary, run: &Run) -> Page {
        let machine = place_of(&mut self.machines, machine(run));
        let mut workloads: Vec<String> = Vec::new();
        for phase in &summary.phases {
            place_of(&mut workloads, plain_text(&phase.workload));
        }
        let file = format!("{}.html", self.run_names.of(&run.id));
        self.runs.push(SiteRun {
            id: plain_text(&run.id),
            file: file.clone(),
            started_at: plain_text(&run.started_at),
            tool_version: plain_text(&run.tool_version),
            machine,
            command: command(run),
            workloads,
            trials: trials(run, summary),
        });
        for phase in &summary.phases {
            let column = self.column(phase);
            let ranked = phase.groups.iter().flat_map(|group| &group.cells);
            for cell in ranked.chain(&phase.unranked) {
                let entry = entry(self.runs.len() - 1, column, cell, summary);
                self.engine_names.of(&entry.engine);
                self.entries.push(entry);
            }
        }
        self.keep_picks(picks(summary, self.runs.len() - 1));
        Page { folder: Some(RUNS.to_string()), file, text: html::render(summary, run) }
    }

    /// Adds a history of commits, by the name of its folder, and returns its page.
    pub fn add_history(&mut self, folder: &str, history: &History) -> Page {
        let name = plain_text(folder);
        let places = self.histories.iter().filter(|other| other.name == name).count();
        let file = format!("{}.html", self.history_names.of(&format!("{folder}{}", "_".repeat(places))));
        let (series, changed) = history.series_counts();
        let extent = format!(
            "{}, {changed} of {} changed",
            counted(history.commit_count() as u64, "commit", "commits"),
            counted(series as u64, "series", "series")
        );
        self.histories.push(SiteHistory { name, file: file.clone(), extent });
        Page { folder: Some(HISTORIES.to_string()), file, text: history_page(history) }
    }

    /// Adds a folder that could not be read to the skipped ones.
    pub fn leave_out(&mut self, folder: &str, why: &str) {
        self.skipped.push((plain_text(folder), plain_text(why)));
    }

    /// The number of runs.
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The engines, sorted by name.
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = self.entries.iter().map(|entry| entry.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        engines
    }

    /// The file name of an engine's page, in the engines' folder.
    pub(super) fn engine_file(&self, engine: &str) -> String {
        format!("{}.html", self.engine_names.known(engine).unwrap_or("_"))
    }

    fn column(&mut self, phase: &PhaseSummary) -> usize {
        let identity = identity(phase);
        if let Some(known) = self.columns.iter().position(|column| column.identity == identity) {
            return known;
        }
        let name = plain_text(&format!("{} / {}", phase.workload, phase.name));
        let others = self.columns.iter().filter(|column| column.name == name).count();
        let title = if others == 0 { name.clone() } else { format!("{name} #{}", others + 1) };
        let settings = phase_settings(phase);
        self.columns.push(Column { name, title, workload: plain_text(&phase.workload), settings, identity });
        self.columns.len() - 1
    }
}

/// The index of a text in the list, to which it is added if necessary.
fn place_of(known: &mut Vec<String>, text: String) -> usize {
    known.iter().position(|other| *other == text).unwrap_or_else(|| {
        known.push(text);
        known.len() - 1
    })
}

/// All settings of a phase except the requested durability level: figures are distinguished by their effective level.
fn identity(phase: &PhaseSummary) -> String {
    format!(
        "{:?}",
        (
            (&phase.workload, &phase.name, phase.rounds, &phase.settings),
            (phase.keys, phase.keyspaces, &phase.collections, &phase.key, &phase.value, &phase.indexes),
        )
    )
}

/// The figures in the history of an engine, each with its title.
pub(super) fn in_history() -> impl Iterator<Item = (&'static Figure, &'static str)> {
    FIGURES.iter().filter(|figure| figure.in_history).filter_map(|figure| Some((figure, figure.ranked?)))
}

fn entry(run: usize, column: usize, cell: &Cell, summary: &Summary) -> Entry {
    let facts = summary.engines.iter().find(|facts| facts.name == cell.engine);
    let class = cell.class_words.iter().cloned();
    let notes = class.chain(cell.notes.iter().map(|note| note.mark.clone()));
    Entry {
        run,
        column,
        engine: plain_text(&full_name(&cell.engine, &cell.options)),
        version: facts.map_or_else(|| "-".to_string(), |facts| plain_text(&facts.version)),
        level: cell
            .durability_effective
            .map(|level| Level { strength: level as u8, name: level.to_string() }),
        rank: cell.rank.filter(|_| cell.class.kind != Kind::Reference),
        safety: cell.safety.clone(),
        ops_per_second: cell.ops_per_second,
        interval: cell.ops_per_second_interval,
        counted_runs: cell.counted_runs,
        figures: in_history().map(|(figure, _)| of_cell(figure, cell)).collect(),
        notes: plain_text(&notes.collect::<Vec<_>>().join(", ")),
    }
}

/// Unique file names for arbitrary names: lower-case letters, digits, `-` and `_`.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashMap<String, String>,
}

/// The maximum length of a name, without the number that makes it unique.
const LONGEST: usize = 80;

impl Names {
    /// The file name for a name, the same on each call, without folder and extension.
    pub(super) fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.given.get(name) {
            return known.clone();
        }
        let safe = |letter: char| match letter {
            'a'..='z' | '0'..='9' | '-' | '_' => letter,
            'A'..='Z' => letter.to_ascii_lowercase(),
            _ => '_',
        };
        let base: String = name.chars().take(LONGEST).map(safe).collect();
        let base = if base.is_empty() { "_".to_string() } else { base };
        let is_free = |candidate: &String| !self.given.values().any(|taken| taken == candidate);
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let file = [base.clone()].into_iter().chain(numbered).find(is_free).unwrap_or(base);
        self.given.insert(name.to_string(), file.clone());
        file
    }

    /// The file name that was assigned to this name, if any.
    fn known(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }
}
