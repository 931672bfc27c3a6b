//! kvdyno, a benchmark for key-value engines. Each module is a room of the code map in ARCHITECTURE.md.

// These replace std's macros, which panic if stdout or stderr cannot be written (full disk, closed pipe).
macro_rules! print {
    ($($text:tt)*) => { $crate::measure::output::print(format_args!($($text)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}
macro_rules! eprint {
    ($($text:tt)*) => { $crate::measure::output::talk(format_args!($($text)*)) };
}
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($text:tt)*) => { eprint!("{}\n", format_args!($($text)*)) };
}

mod audit;
mod cli;
mod engine;
mod generator;
mod live;
mod measure;
mod ranks;
mod report;
mod resp;
mod results;
mod runner;
mod text;
mod workload;

/// The command.
pub use cli::main;

// For tests, benches and fuzz targets only.
pub use audit::proven::proven;
pub use engine::{
    Arena, Database, Engine, Registry, Request, Shape, abi, capability_names, catalogue, plugin_folders,
};
pub use generator::{
    Distribution, KeyRules, Keys, Partition, Permutation, Random, Sampler, SizeSpec, ValueRules, Values,
};
pub use measure::{Clock, raise_open_files, volume::enter_own_namespace};
pub use resp::{Limits, Parser, Step};
pub use results::blocks::{Blocks, Table, Throughput};
pub use results::certificate::{Certificate, CertifiedLevel, certified_levels, certified_toml};
pub use results::comparison::{Better, Rows, Verdict};
pub use results::statistics::{interval_of_median, median};
pub use results::{Outcome, PhaseRecord, Trial, parse_record, parse_run, sane_record};
pub use runner::run_trial;
pub use workload::{Changes, Durability, Mix, Phase, Workload, builtin, is_suite, parse, parse_suite};
