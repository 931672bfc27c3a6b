//! The table of servers: one row for each combination of store, pipeline, number of clients, level and load generator.

use super::{WORKLOAD, applies_to, is_of_servers, rows, shape, store};
use crate::cli::error::CliError;
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Run, Trial};
use kvdyno_measure::text::{self, Align};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Level, clients, pipeline, index of the store, load generator. Rows are sorted by this key.
type Place = (u8, usize, u32, usize, &'static str);

/// Rates of SET and GET, one for each run.
#[derive(Default)]
struct Rates {
    set: Vec<f64>,
    get: Vec<f64>,
}

const LOADS: [&str; 2] = ["driver", "redis-benchmark"];
/// The columns persist and fsync of each level, in ascending order, as in KVBench's table.
const LEVELS: [(&str, &str, &str); 3] =
    [("none", "no", "no"), ("process", "yes", "no"), ("power", "yes", "yes")];
const TITLES: [(&str, Align); 8] = [
    ("store", Align::Left),
    ("pipeline", Align::Right),
    ("clients", Align::Right),
    ("persist", Align::Left),
    ("fsync", Align::Left),
    ("load", Align::Left),
    ("SET/s", Align::Right),
    ("GET/s", Align::Right),
];

/// The table as text and as CSV.
pub(crate) struct Table {
    /// The table with its legend.
    pub text: String,
    csv: String,
}

/// The table of a run. `None` if no server was measured.
pub(crate) fn table(run: &Run, summary: &Summary, folder: &Path) -> Option<Table> {
    if !applies_to(&run.plan) {
        return None;
    }
    let (stores, all) = gathered(run, summary, folder);
    if all.is_empty() {
        return None;
    }
    let lines: Vec<[String; 8]> = all.iter().map(|(place, rates)| line(&stores, place, rates)).collect();
    let titles = TITLES.map(|(title, _)| title).join(",").to_lowercase().replace("/s", "_per_second");
    let csv: Vec<String> = lines.iter().map(|line| line.join(",") + "\n").collect();
    let text = text(&lines, all.keys().any(|place| place.4 == LOADS[1]));
    Some(Table { text, csv: format!("{titles}\n{}", csv.concat()) })
}

impl Table {
    /// Writes the table into the run's folder.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), CliError> {
        for (ending, content) in [("txt", &self.text), ("csv", &self.csv)] {
            let file = folder.join(format!("{WORKLOAD}.{ending}"));
            std::fs::write(&file, content).map_err(CliError::cannot("write", &file))?;
        }
        Ok(())
    }
}

/// The stores (baselines first) and the rates of each row.
fn gathered(run: &Run, summary: &Summary, folder: &Path) -> (Vec<String>, BTreeMap<Place, Rates>) {
    let of_servers = run.plan.trials.iter().filter(|trial| is_of_servers(&trial.workload) && !trial.is_floor);
    let served = |trial: &Trial| trial.options.iter().any(|(name, _)| name == "serve");
    let stores: BTreeSet<(bool, String)> =
        of_servers.map(|trial| (served(trial), store(&trial.engine, &trial.options))).collect();
    let stores: Vec<String> = stores.into_iter().map(|(_, store)| store).collect();
    let mut all: BTreeMap<Place, Rates> = BTreeMap::new();
    let mut add =
        |store: String, level: &str, (pipeline, clients): (u32, usize), load, command: &str, rate| {
            let Some(level) = LEVELS.iter().position(|(name, ..)| *name == level) else { return };
            let Some(place) = stores.iter().position(|known| *known == store) else { return };
            let rates = all.entry((level as u8, clients, pipeline, place, load)).or_default();
            if command == "set" { rates.set.push(rate) } else { rates.get.push(rate) }
        };
    for phase in summary.phases.iter().filter(|phase| ["set", "get"].contains(&phase.name.as_str())) {
        let cells = phase.groups.iter().flat_map(|group| &group.cells).chain(&phase.unranked);
        for cell in cells {
            let is_it =
                |trial: &&Trial| trial.workload.name == phase.workload && is_of_servers(&trial.workload);
            let planned = run.plan.trials.iter().find(is_it);
            let (Some(shape), Some(level)) =
                (planned.and_then(|trial| shape(&trial.workload)), cell.durability_effective)
            else {
                continue;
            };
            for rate in cell.runs.iter().filter_map(|run| run.ops_per_second) {
                let store = store(&cell.engine, &cell.options);
                add(store, &level.to_string(), shape, LOADS[0], &phase.name, rate);
            }
        }
    }
    for row in rows(folder) {
        let shape = (row.pipeline, row.clients);
        add(row.store, &row.level, shape, LOADS[1], &row.command.to_lowercase(), row.ops_per_second);
    }
    (stores, all)
}

fn line(stores: &[String], (level, clients, pipeline, store, load): &Place, rates: &Rates) -> [String; 8] {
    let (_, persist, fsync) = LEVELS[*level as usize];
    let rate = |rates: &[f64]| median(rates).map_or("-".to_string(), |rate| format!("{rate:.0}"));
    [
        stores[*store].clone(),
        pipeline.to_string(),
        clients.to_string(),
        persist.to_string(),
        fsync.to_string(),
        load.to_string(),
        rate(&rates.set),
        rate(&rates.get),
    ]
}

fn text(lines: &[[String; 8]], has_both: bool) -> String {
    let mut table = text::Table::with_titles(&TITLES);
    lines.iter().for_each(|line| table.push(line.to_vec()));
    let mut text = format!("Servers\n-------\n\n{}", table.text());
    text += "\nMedians of the runs. persist and fsync show the effective durability level: none, process or power. Every get is a hit.\n\
             Rates are by the wall clock; those of the driver include the time in which it checks values.\n\
             The driver checks each value; redis-benchmark checks none. Clients and server run on the same machine.\n";
    if !has_both {
        text += "redis-benchmark has no rows: it measures servers of the Redis protocol only, and it may be missing in PATH\n\
                 (apt-get install redis-tools) or not have finished.\n";
    }
    text
}
