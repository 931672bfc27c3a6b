//! Flags that change a workload: the common fields, a scale factor, and any field by name.

use super::args;
use super::error::CliError;
use crate::text::{parse_bytes, parse_count, parse_seconds};
use crate::workload::{Axes, Changes, Durability, Overrides, parse_size, parse_threads};

/// Flags that change a workload.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Workload fields")]
pub struct Sizes {
    /// Number of keys, such as `200k`. With a list (`1M,5M,10M`), run the workload once for each number.
    #[arg(long, value_parser = count, value_delimiter = ',', value_name = "N")]
    keys: Vec<u64>,
    /// Size of a key in bytes, such as `16` or `uniform:8-64`.
    #[arg(long, value_name = "SIZE")]
    key_size: Option<String>,
    /// Size of a value in bytes, such as `100`, `1KiB` or `uniform:250-2500`.
    #[arg(long, value_name = "SIZE")]
    value_size: Option<String>,
    /// Number of threads, such as `4`, `cpus` or `cpus-1`.
    #[arg(short, long, value_name = "N")]
    threads: Option<String>,
    /// Duration of each measured phase, such as `10` (seconds) or `500ms`.
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    seconds: Option<f64>,
    /// Number of ops in each measured phase, such as `1M`.
    #[arg(long, value_parser = count, value_name = "N")]
    ops: Option<u64>,
    /// Multiply all key counts, op counts and durations of the workload by FACTOR, such as `0.1`, before other flags apply.
    #[arg(long, value_parser = factor, value_name = "FACTOR")]
    scale: Option<f64>,
    /// Minimum durability level: none, process, power or default. With a list, run the workload once at each level.
    #[arg(long, value_delimiter = ',', value_name = "LEVELS")]
    durability: Vec<String>,
    /// Cache budget of each engine, such as `64MiB`.
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    cache: Option<u64>,
    /// Seed of all random streams. Repetitions after the first derive their own seeds from it.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of repetitions of each cell.
    #[arg(short, long, value_name = "N")]
    runs: Option<u32>,
    /// Set any field of the workload, such as `read.seconds=3` or `key.encoding=hex`. Can be given more than once.
    #[arg(long, value_name = "PHASE.FIELD=VALUE")]
    set: Vec<String>,
}

fn count(text: &str) -> Result<u64, String> {
    parse_count(text)
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text)
}

fn seconds(text: &str) -> Result<f64, String> {
    parse_seconds(text)
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| "expected a factor from 0.000001 to 1000000, such as 0.1".to_string())
}

impl Sizes {
    /// The changes to each workload of a run, including a memory limit.
    pub fn changes(&self, memory: Option<u64>) -> Result<Changes, CliError> {
        let size = |flag: &str, text: &Option<String>| match text {
            Some(text) => {
                parse_size(text).map(Some).map_err(|error| CliError::usage(format!("{flag} {text}: {error}")))
            }
            None => Ok(None),
        };
        let threads = |text: &String| {
            parse_threads(text).map_err(|error| CliError::usage(format!("--threads {text}: {error}")))
        };
        let levels = self.durability.iter().map(|text| durability(text)).collect::<Result<_, _>>()?;
        Ok(Changes {
            scale: self.scale,
            axes: Axes { keys: self.keys.clone(), durability: levels },
            overrides: Overrides {
                keys: None,
                key_size: size("--key-size", &self.key_size)?,
                value_size: size("--value-size", &self.value_size)?,
                threads: self.threads.as_ref().map(threads).transpose()?,
                seconds: self.seconds,
                ops: self.ops,
                durability: None,
                cache: self.cache,
                memory,
                seed: self.seed,
                runs: self.runs,
                set: self.set.clone(),
            },
        })
    }
}

fn durability(text: &str) -> Result<Durability, CliError> {
    let unknown = |_| {
        let known = ["none", "process", "power", "default"];
        args::unknown("durability level", text, &known, "kvdyno run --help")
    };
    text.parse().map_err(unknown)
}
