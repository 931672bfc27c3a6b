//! Tests of the report on one screen.
