//! Whether one version differs from another (`paired`; by counts: `counts`), where in a history of versions a value changed (`series`),
//! and which version changed it (`bisect`). It works on numbers alone: it has no clock, and knows no engine, no workload and no record.

pub mod bisect;
pub mod counts;
pub mod paired;
pub mod series;
pub mod student;
