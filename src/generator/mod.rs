//! Numbers, keys and values from a seed; no clock, no I/O (but for a key file given to it).

mod spec;

pub use spec::{Distribution, Encoding, SizeSpec, SpecError};
