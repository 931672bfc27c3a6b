//! Tests across the module's files: golden numbers, probabilities, keys and values.

mod alternate;
mod key;
mod sample;
mod shape;
mod spec;
mod value;

use crate::generator::{Bound, Distribution};
use proptest::prelude::*;

/// Each distribution, and theta at and far over 1.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    Distribution::ROWS.into_iter().flat_map(|row| row.tested).copied().chain(["zipf:1", "zipf:2.5"])
}

/// Any distribution.
pub(crate) fn distribution() -> impl Strategy<Value = Distribution> {
    let parameter = |&(_, bound): &(&str, Bound)| match bound {
        Bound::Positive => 1e-9..=50.0_f64,
        Bound::Share => 1e-9..=1.0_f64,
        Bound::Percentile => 1e-6..=99.999_f64,
    };
    prop::sample::select(Distribution::ROWS.to_vec()).prop_flat_map(move |row| {
        let parameters: Vec<_> = row.parameters.iter().map(parameter).collect();
        parameters.prop_map(|values| Distribution::of(row.name, &values).unwrap())
    })
}
