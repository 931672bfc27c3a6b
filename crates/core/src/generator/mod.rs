//! Numbers, keys and values from a seed. No clock, no I/O (except a key file passed in).

mod alias;
mod alternate;
mod arrivals;
mod body;
mod distribution;
mod key;
mod pareto;
mod permutation;
mod portable;
mod random;
mod sample;
pub mod shape;
mod sizes;
mod spec;
mod value;
mod view;

#[cfg(test)]
pub(crate) mod tests;

pub use arrivals::{Arrivals, Course, Rate};
pub use distribution::{Bound, Distribution, Hot, Places, Row};
pub use key::{KeyFile, KeyList, KeyRules, Keys, LEAST_KEY_BYTES, MOST_KEY_BYTES, MOST_KEY_FILE_BYTES};
pub use pareto::{Pareto, ParetoShape};
pub use permutation::Permutation;
pub use random::{Random, mix64};
pub use sample::{Partition, Sampler};
pub use sizes::Sizes;
pub use spec::{Encoding, SizeSpec, SpecError};
pub use value::{ValueRules, Values};
pub use view::{Inserts, View};
