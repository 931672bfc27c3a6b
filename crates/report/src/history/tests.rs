//! Tests of histories.
