//! Histories of many commits: what is kept of a run, the series of each figure, and how they and their changes are shown.
//!
//! A history is a file to which a line is appended for each run of a commit. Where its series change is found by the caller, who
//! has the statistics.

mod content;
mod entry;
mod otava;
mod page;
mod series;
#[cfg(test)]
mod tests;

pub use content::{history_csv, history_text};
pub use entry::{HistoryCell, HistoryEntry, HistoryFile, OddCell};
pub use otava::{otava_config, otava_csv, repeated};
pub use page::history_page;
pub use series::{History, Shift};
