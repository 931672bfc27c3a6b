//! The cost of progress displays for the measured process: the null engine with the dashboard, with events as JSON, and with
//! nothing, in turns, each started as a user starts it.

use crate::Row;
use crate::fidelity::resolved;
use std::process::{Command, Stdio};

/// The displays: the name of the row, and the flags.
const WAYS: [(&str, &str); 3] = [
    ("the dashboard", "--tui --metrics 0"),
    ("lines as JSON", "--json-progress"),
    ("nothing again, for comparison", "--quiet"),
];

/// The maximum loss of throughput.
const GOAL_PERCENT: f64 = 1.0;

/// Ops per second of the null engine in its own run, on its own terminal.
fn ops_per_second(threads: usize, ops: u64, flags: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = format!(
        "run read-random --engines null --keys 1M --threads {threads} --runs 1 --set read.seconds=0 \
         --set read.ops={ops} --results {} {flags}",
        folder.path().display()
    );
    let script = format!("stty cols 120 rows 40; exec '{}' {words}", env!("CARGO_BIN_EXE_kvdyno"));
    let ended = Command::new("script")
        .args(["-q", "-e", "-c", &script, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .expect("`script` of util-linux is installed");
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{words}\n{told}");
    let report = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
        .args(["report", "--format", "json"])
        .arg(folder.path())
        .output()
        .expect("it was started before");
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("a report is JSON");
    let read = &report["records"][0]["phases"][1];
    let figure = |name: &str| read[name].as_f64().expect("the phase was run");
    figure("ops") * 1e9 / figure("elapsed_ns")
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let (ops, rounds) = if is_small { (20_000, 1) } else { (60_000_000, 15) };
    let mut rows = Vec::new();
    for threads in [1, cpus] {
        let mut lost: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
        for _ in 0..rounds {
            let measure = |flags: &str| ops_per_second(threads, ops * threads as u64, flags);
            let alone = measure("--quiet");
            for (lost, (_, flags)) in lost.iter_mut().zip(WAYS) {
                lost.push((1.0 - measure(flags) / alone) * 100.0);
            }
        }
        for (lost, (name, _)) in lost.iter().zip(WAYS) {
            let name = format!("{name}, {threads} thread(s) of null, throughput lost");
            rows.push(resolved(name, "%", lost, GOAL_PERCENT));
        }
    }
    rows
}
