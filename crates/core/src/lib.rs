//! What measures: the generator of keys and values, the handles of engines, workloads, records, and the runner with the hot loop.

#![warn(unreachable_pub)]

pub mod engine;
pub mod generator;
pub mod results;
pub mod runner;
pub mod workload;
