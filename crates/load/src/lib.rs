//! What a load on an engine shows: the highest rate that keeps a limit (`search`), and whether a series of figures is steady
//! (`steady`). It works on numbers alone: it has no clock, and knows no engine, no workload and no record.

pub mod search;
pub mod steady;
