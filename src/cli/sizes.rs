//! What commands take to change a workload: the usual fields, a scale, and any field by name.

use super::args;
use super::error::CliError;
use crate::workload::{
    Axes, Changes, Durability, Overrides, parse_bytes, parse_count, parse_seconds, parse_size, parse_threads,
};

/// The usual fields of a workload.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Fields of the workload")]
pub struct Sizes {
    /// Keys: `200k`; of a list, `1M,5M,10M`, the workload is run with each.
    #[arg(long, value_parser = count, value_delimiter = ',', value_name = "KEYS")]
    keys: Vec<u64>,
    /// Bytes of a key: `16`, `uniform:8-64`.
    #[arg(long)]
    key_size: Option<String>,
    /// Bytes of a value: `100`, `uniform:250-2500`, `1KiB`.
    #[arg(long)]
    value_size: Option<String>,
    /// Threads: `4`, `cpus`, `cpus-1`.
    #[arg(short, long)]
    threads: Option<String>,
    /// Seconds of each measured phase: `10`, `500ms`.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Ops of each measured phase: `1M`.
    #[arg(long, value_parser = count)]
    ops: Option<u64>,
    /// All keys, ops and seconds that are written times this, before the rest is set: `0.1`.
    #[arg(long, value_parser = factor, value_name = "FACTOR")]
    scale: Option<f64>,
    /// The least durability level: none, process, power or default; of a list the workload is run at each.
    #[arg(long, value_delimiter = ',', value_name = "LEVELS")]
    durability: Vec<String>,
    /// Cache budget of each engine: `64MiB`.
    #[arg(long, value_parser = bytes)]
    cache: Option<u64>,
    /// The seed of every stream; repetitions behind the first have seeds of their own, made from it.
    #[arg(long)]
    seed: Option<u64>,
    /// Repetitions of each cell.
    #[arg(short, long)]
    runs: Option<u32>,
    /// Set any field of the workload: `read.seconds=3`, `key.encoding=hex`; may be given more than once.
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
    /// What they and a cap of memory change in every workload of a run.
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
