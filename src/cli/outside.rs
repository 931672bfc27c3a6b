//! Load from outside: a suite of servers is measured once more by redis-benchmark, where it is, and both stand in a table.

mod measure;
mod table;

pub use measure::{OutsideArgs, measure, run_one};
pub use table::table;

use crate::results::Run;
use crate::workload::Workload;
use std::path::Path;

/// The workload whose trials are measured so; its variants too.
const WORKLOAD: &str = "kvbench-server";
/// What was measured, in the run's folder.
const FILE: &str = "redis-benchmark.csv";
const HEAD: &str = "trial,store,level_in_force,pipeline,clients,repetition,command,ops_per_second,mean_ms,min_ms,p50_ms,p95_ms,\
                    p99_ms,max_ms";
const COLUMNS: usize = 14;

/// Whether a workload is one of servers.
fn is_of_servers(workload: &Workload) -> bool {
    workload.variant_of.as_deref().unwrap_or(&workload.name) == WORKLOAD
}

/// Whether a run has trials of servers.
pub fn concerns(run: &Run) -> bool {
    run.trials.iter().any(|trial| is_of_servers(&trial.workload))
}

/// What stands behind a server: the engine of one of ours, else the program.
fn store(engine: &str, options: &[(String, String)]) -> String {
    let of = |wanted: &str| options.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    of("serve").or(of("server")).unwrap_or_else(|| engine.to_string())
}

/// Requests of a pipeline, and clients.
fn shape(workload: &Workload) -> Option<(u32, usize)> {
    let set = workload.phases.iter().find(|phase| phase.name == "set")?;
    Some((set.join, set.threads as usize))
}

/// A row of what was measured.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    trial: String,
    store: String,
    level: String,
    pipeline: u32,
    clients: usize,
    command: String,
    ops_per_second: f64,
}

/// The rows of a run so far. A line that was cut off when the machine stopped is none.
fn rows(folder: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [trial, store, level, pipeline, clients, _, command, rate, ..] = cells[..] else { return None };
        Some(Row {
            trial: trial.into(),
            store: store.into(),
            level: level.into(),
            pipeline: pipeline.parse().ok()?,
            clients: clients.parse().ok()?,
            command: command.into(),
            ops_per_second: rate.parse().ok().filter(|_| cells.len() == COLUMNS)?,
        })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_rows_are_read_and_torn_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        assert!(rows(folder.path()).is_empty());
        let line = "0001-x,pebble,process,16,50,2,SET,1234.5,0.1,0.1,0.1,0.1,0.1,0.1";
        let text = format!("{HEAD}\n{line}\n0002-x,pebble,process,16,50,2,SET,12");
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let found = rows(folder.path());
        assert_eq!(found.len(), 1);
        let row = &found[0];
        assert_eq!(
            (row.store.as_str(), row.pipeline, row.clients, row.ops_per_second),
            ("pebble", 16, 50, 1234.5)
        );
        assert_eq!(HEAD.split(',').count(), COLUMNS);
    }

    #[test]
    fn what_stands_behind_a_server_is_its_engine() {
        let options = |name: &str, value: &str| vec![(name.to_string(), value.to_string())];
        assert_eq!(store("redis", &options("serve", "pebble")), "pebble");
        assert_eq!(store("redis", &options("server", "valkey-server")), "valkey-server");
        assert_eq!(store("redis", &[]), "redis");
    }
}
