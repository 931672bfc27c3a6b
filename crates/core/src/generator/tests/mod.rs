//! Tests across the module's files: golden numbers, probabilities, keys and values.

mod alternate;
mod key;
mod sample;
mod shape;
mod spec;
mod value;

/// One of each distribution.
pub(super) const ALL: &[&str] = &[
    "sequential",
    "uniform",
    "permutation",
    "zipf:0.5",
    "zipf:0.99",
    "zipf:1",
    "zipf:2.5",
    "ycsb-zipfian",
    "latest",
    "hotspot:0.2,0.8",
    "exponential",
];
