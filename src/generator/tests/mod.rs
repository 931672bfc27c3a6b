//! Tests of the room that span its files: golden numbers, masses, keys and values.

mod alternate;
mod key;
mod sample;
mod shape;
mod spec;
mod value;
