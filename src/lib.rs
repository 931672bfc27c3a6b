//! kvdyno, a benchmark for key-value engines: its command line and live progress. ARCHITECTURE.md has the map
//! of all crates.

#![warn(unreachable_pub)]

// Its `println` and others replace std's, which panic if stdout or stderr cannot be written.
#[macro_use]
extern crate kvdyno_measure;

mod cli;
mod live;

/// The command.
pub use cli::main;

// For tests, benches and fuzz targets only.
pub use kvdyno_core::engine::{
    Arena, Database, Engine, Registry, Request, Shape, abi, capability_names, catalogue, plugin_folders,
    required_engines,
};
pub use kvdyno_core::generator::{
    Distribution, KeyRules, Keys, Partition, Permutation, Random, Rate, Sampler, SizeSpec, ValueRules, Values,
};
pub use kvdyno_core::results::blocks::{Measured, Row, Table, Throughput, error_of_look, together};
pub use kvdyno_core::results::certificate::{
    Certificate, CertifiedLevel, Crashes as CertifiedTest, Level as TestedLevel, certified_levels,
    certified_toml,
};
pub use kvdyno_core::results::comparison::{Better, Rows, Verdict};
pub use kvdyno_core::results::statistics::{interval_of_median, median};
pub use kvdyno_core::results::{
    Arrivals, Outcome, PhaseRecord, Trial, odd_machines, parse_record, parse_run, sane_record,
};
pub use kvdyno_core::runner::run_trial;
pub use kvdyno_core::workload::{
    Changes, Durability, Mix, Phase, Workload, builtin, is_suite, parse, parse_suite,
};
pub use kvdyno_measure::{Clock, raise_open_files, volume::enter_own_namespace};
pub use kvdyno_prove::proven::proven;
pub use kvdyno_report::certificate_markdown;
pub use kvdyno_serve::{Limits, Parser, Step};
