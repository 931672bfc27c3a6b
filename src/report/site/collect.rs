//! What a site keeps of each run: the figures of its cells, and no record.

use super::names::Names;
use crate::report::describe::{command, full_engine_name, machine, phase_settings, trials};
use crate::report::escape::plain_text;
use crate::report::html;
use crate::report::layout::Page;
use crate::results::Run;
use crate::results::statistics::{Interval, Rank};
use crate::results::summary::{Cell, PhaseSummary, Summary};

/// The folder of the runs' pages.
pub(super) const RUNS: &str = "runs";

/// Runs gathered for a site. Figures of two runs stand in one column only if the machine, the phase's settings and the
/// level in force are the same.
#[derive(Debug, Default)]
pub struct Site {
    pub(super) runs: Vec<SiteRun>,
    pub(super) columns: Vec<Column>,
    pub(super) machines: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// Folders that are not in it, and why.
    pub(super) left_out: Vec<(String, String)>,
    run_names: Names,
    engine_names: Names,
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
    /// `quick / read`, with a number where the same name has other settings.
    pub title: String,
    pub workload: String,
    /// In words.
    pub settings: String,
    /// Exactly: what must be equal for figures to be of the same phase.
    identity: String,
}

/// A durability level in force; weaker ones come first.
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
    /// With the options asked for.
    pub engine: String,
    pub version: String,
    pub level: Option<Level>,
    pub rank: Option<Rank>,
    pub ops_per_second: Option<f64>,
    pub interval: Option<Interval>,
    pub counted_runs: u32,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub cpu: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub disk_bytes: Option<u64>,
    /// What a reader must know, short.
    pub notes: String,
}

impl Site {
    /// Adds a run, and gives its page. Runs are to be added from the oldest to the newest.
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
        Page { folder: Some(RUNS.to_string()), file, text: html::render(summary, run) }
    }

    /// Notes a folder that could not be read.
    pub fn leave_out(&mut self, folder: &str, why: &str) {
        self.left_out.push((plain_text(folder), plain_text(why)));
    }

    /// Runs that it has.
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The engines, in order of their names.
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = self.entries.iter().map(|entry| entry.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        engines
    }

    /// The file of an engine's page, in the folder of engines.
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

/// The place of a text among those that are known, where it is added if it is not.
fn place_of(known: &mut Vec<String>, text: String) -> usize {
    known.iter().position(|other| *other == text).unwrap_or_else(|| {
        known.push(text);
        known.len() - 1
    })
}

/// All that decides what a phase does, but for its level: that in force tells figures apart.
fn identity(phase: &PhaseSummary) -> String {
    format!(
        "{:?}",
        (
            (&phase.workload, &phase.name, phase.rounds, &phase.settings),
            (phase.keys, phase.keyspaces, &phase.collections, &phase.key, &phase.value, &phase.indexes),
        )
    )
}

fn entry(run: usize, column: usize, cell: &Cell, summary: &Summary) -> Entry {
    let facts = summary.engines.iter().find(|facts| facts.name == cell.engine);
    let class = cell.class.iter().cloned();
    let notes = class.chain(cell.notes.iter().map(|note| note.mark.clone()));
    Entry {
        run,
        column,
        engine: plain_text(&full_engine_name(&cell.engine, &cell.options)),
        version: facts.map_or_else(|| "-".to_string(), |facts| plain_text(&facts.version)),
        level: cell.durability_in_force.map(|level| Level { strength: level as u8, name: level.to_string() }),
        rank: cell.rank,
        ops_per_second: cell.ops_per_second,
        interval: cell.ops_per_second_interval,
        counted_runs: cell.counted_runs,
        p50_ns: cell.latency.p50_ns,
        p99_ns: cell.latency.p99_ns,
        cpu: cell.cpu_seconds_per_million_ops,
        rss_bytes: cell.rss_bytes,
        disk_bytes: cell.disk_allocated_bytes,
        notes: plain_text(&notes.collect::<Vec<_>>().join(", ")),
    }
}
