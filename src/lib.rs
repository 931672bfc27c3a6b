//! kvdyno: a dynamometer for key-value engines. The rooms, in the order of the map in ARCHITECTURE.md.

pub mod audit;
pub mod cli;
pub mod engine;
pub mod generator;
pub mod live;
pub mod measure;
pub mod report;
pub mod resp;
pub mod results;
pub mod runner;
pub mod workload;
