//! Tests across the module's files: golden numbers, probabilities, keys and values.

mod alternate;
mod key;
mod sample;
mod shape;
mod spec;
mod value;

use crate::generator::{Bound, Distribution};
use proptest::prelude::*;

/// Each distribution, theta at and far over 1, a hot set that moves often, and weights that underflow.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    let more =
        ["zipf:1", "zipf:2.5", "moving-hotspot:0.2,0.9,7", "hot-ranges:10000,1e300,50,1e-300,1e-9,1e-9"];
    Distribution::ROWS.into_iter().flat_map(|row| row.tested).copied().chain(more)
}

/// Any distribution.
pub(crate) fn distribution() -> impl Strategy<Value = Distribution> {
    let parameter = |&(_, bound): &(&str, Bound)| match bound {
        Bound::Positive => (1e-9..=50.0_f64).boxed(),
        Bound::Share => (1e-9..=1.0_f64).boxed(),
        Bound::Percentile => (1e-6..=99.999_f64).boxed(),
        Bound::Whole(most) => (1..=most).prop_map(|whole| whole as f64).boxed(),
    };
    prop::sample::select(Distribution::ROWS.to_vec()).prop_flat_map(move |row| {
        let parameters: Vec<_> = row.parameters.iter().map(parameter).collect();
        parameters.prop_map(|values| Distribution::of(row.name, &values).unwrap())
    })
}
