//! kvdyno: a dynamometer for key-value engines. The rooms, in the order of the map in ARCHITECTURE.md.

pub mod measure;
pub mod generator;
pub mod engine;
pub mod workload;
pub mod results;
pub mod runner;
pub mod audit;
pub mod report;
pub mod cli;
