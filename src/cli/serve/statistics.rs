//! `--stats`: prints and records the ops of the server once a second.

use crate::cli::error::CliError;
use kvdyno_core::results::now_rfc3339;
use kvdyno_measure::monotonic_ns;
use kvdyno_serve::Shared;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Writes one line for each second and command.
pub(super) struct Statistics {
    file: BufWriter<File>,
    since_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Statistics {
    /// Creates `file`, or a new file in `kvdyno-results` if it is `None`.
    pub(super) fn new(file: &Option<PathBuf>) -> Result<Statistics, CliError> {
        let path = file.clone().unwrap_or_else(|| {
            let time: String = now_rfc3339().chars().map(|c| if c == ':' { '-' } else { c }).collect();
            PathBuf::from("kvdyno-results").join(format!("serve-{time}.csv"))
        });
        let failed = CliError::cannot("create", &path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(&failed)?;
        }
        let mut file = BufWriter::new(File::create_new(&path).map_err(&failed)?);
        let head = "time,interval_seconds,command,ops_per_second,p50_us,p99_us,p99_9_us,max_us";
        writeln!(file, "{head}").map_err(failed)?;
        println!("statistics: {}", path.display());
        Ok(Statistics { file, since_ns: monotonic_ns() })
    }

    /// Prints and records the ops since the last call, if a second has passed or the server is stopping.
    pub(super) fn tick(&mut self, server: &Shared) {
        let now_ns = monotonic_ns();
        let interval_ns = now_ns - self.since_ns;
        if interval_ns < SECOND_NS && !server.is_stopping() {
            return;
        }
        self.since_ns = now_ns;
        let seconds = interval_ns as f64 / SECOND_NS as f64;
        let time = now_rfc3339();
        for count in server.take_counts() {
            let name = if count.name.is_empty() { "unknown" } else { count.name };
            let us = |quantile: Option<u64>| {
                quantile.map_or("-".to_string(), |ns| format!("{:.1}", ns as f64 / 1000.0))
            };
            let rate = count.latency.count() as f64 / seconds;
            let figures = [
                us(count.latency.quantile_if_enough(1, 2)),
                us(count.latency.quantile_if_enough(99, 100)),
                us(count.latency.quantile_if_enough(999, 1000)),
                us(count.latency.max_ns()),
            ];
            println!(
                "{time}  {name:<12} {rate:>10.0} ops/s  p50 {} us  p99 {} us  p99.9 {} us  max {} us",
                figures[0], figures[1], figures[2], figures[3]
            );
            let cells = figures.map(|figure| if figure == "-" { String::new() } else { figure });
            let row = format!("{time},{seconds:.3},{name},{rate:.0},{}", cells.join(","));
            if writeln!(self.file, "{row}").and_then(|()| self.file.flush()).is_err() {
                eprintln!("warning: cannot write the statistics");
            }
        }
    }
}
