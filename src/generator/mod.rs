//! Numbers, keys and values from a seed; no clock, no I/O (but for a key file given to it).

mod alias;
mod exponential;
mod hotspot;
mod latest;
mod permutation;
mod portable;
mod random;
mod sample;
mod sequence;
mod spec;
mod uniform;
mod ycsb;
mod zipf;

#[cfg(test)]
mod tests;

pub use permutation::Permutation;
pub use random::{Random, mix64};
pub use sample::{Part, Sampler};
pub use spec::{
    DISTRIBUTIONS, Distribution, Encoding, SIZES, SizeSpec, SizeText, SpecError, nearest, parse_bytes,
    unknown,
};
