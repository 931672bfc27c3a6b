//! redis-benchmark as an external load generator. For workloads that measure servers, each trial is repeated with
//! redis-benchmark if it is installed, and one table shows the results of kvdyno's driver next to those of redis-benchmark.

mod measure;
mod table;

pub(super) use measure::{RedisBenchmarkTask, measure};
pub(super) use table::table;

use kvdyno_core::results::Plan;
use kvdyno_core::workload::Workload;
use std::path::Path;

/// The workload whose trials, including its variants, are repeated with redis-benchmark.
const WORKLOAD: &str = "kvbench-server";
/// The file in the run's folder with the results of redis-benchmark.
const FILE: &str = "redis-benchmark.csv";
const HEAD: &str = "trial,store,level_in_force,pipeline,clients,repetition,command,ops_per_second,mean_ms,min_ms,p50_ms,p95_ms,\
                    p99_ms,max_ms";
const COLUMNS: usize = 14;

/// Whether a workload measures servers.
pub(super) fn is_of_servers(workload: &Workload) -> bool {
    workload.variant_of.as_deref().unwrap_or(&workload.name) == WORKLOAD
}

/// Whether a plan has trials that measure servers.
fn applies_to(plan: &Plan) -> bool {
    plan.trials.iter().any(|trial| is_of_servers(&trial.workload))
}

/// The store of a server: the engine that `kvdyno serve` serves, or the server program.
fn store(engine: &str, options: &[(String, String)]) -> String {
    let option = |key: &str| options.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    option("serve").or(option("server")).unwrap_or_else(|| engine.to_string())
}

/// The number of requests in a pipeline and the number of clients.
fn shape(workload: &Workload) -> Option<(u32, usize)> {
    let set = workload.phases.iter().find(|phase| phase.name == "set")?;
    Some((set.join, set.threads as usize))
}

/// One row of the results file.
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

/// The rows measured so far. A truncated last line, as a crash leaves it, is ignored.
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
    fn complete_rows_are_read_and_truncated_ones_are_ignored() {
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
    fn the_store_of_a_server_is_its_engine() {
        let options = |name: &str, value: &str| vec![(name.to_string(), value.to_string())];
        assert_eq!(store("redis", &options("serve", "pebble")), "pebble");
        assert_eq!(store("redis", &options("server", "valkey-server")), "valkey-server");
        assert_eq!(store("redis", &[]), "redis");
    }
}
