//! Tests of the room that span its files: golden numbers, masses, keys and values.

mod spec;
