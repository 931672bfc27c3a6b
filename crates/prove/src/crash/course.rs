//! How rounds went until their crashes: what a table of verdicts leaves out, and what they prove depends on.

use super::Cell;
use super::board::Stage;
use kvdyno_measure::text::listed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a round went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The file system of its database, where its cell has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Keys of each thread; absent in results of older versions, which always had 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// Threads that wrote, if they were others than usual in the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Whether the process was killed within a commit of its first thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_commit: bool,
    /// Options that were set for this round, `name=value`: those of a large one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// Rows in the database after the crash; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Whether time was over before the moment that was drawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_time: bool,
    /// The second crash, if a process went on after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// The crash of a process that went on after another crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// What the process did.
    pub stage: Stage,
    /// Commits that it had acknowledged.
    pub commits: u64,
}

impl Course {
    /// What was special about the round: `on tmpfs, with memtable=8388608`; `None` if nothing was.
    pub fn setting(&self) -> Option<String> {
        let option = |(name, value): &(String, String)| format!("{name}={value}");
        let options: Vec<String> = self.options.iter().map(option).collect();
        let with = (!options.is_empty()).then(|| format!("with {}", listed(&options, "and")));
        let parts: Vec<String> = self.place.iter().map(|place| format!("on {place}")).chain(with).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Cell {
    /// Acknowledged commits at the crash: the upper median, and most.
    pub fn commits(&self) -> Option<(u64, u64)> {
        self.time(|round| Some(round.acked))
    }

    /// Rows after the crash: the upper median, and most.
    pub fn rows(&self) -> Option<(u64, u64)> {
        self.time(|round| round.course.rows)
    }

    /// What processes did when they were crashed first, with the number of rounds.
    pub fn stages(&self) -> BTreeMap<Stage, usize> {
        let mut stages = BTreeMap::new();
        for round in &self.rounds {
            *stages.entry(round.stage).or_insert(0) += 1;
        }
        stages
    }

    /// Rounds in which a process went on after the crash and was crashed, too.
    pub fn went_on(&self) -> usize {
        self.rounds.iter().filter(|round| round.course.again.is_some()).count()
    }

    /// Rounds whose process was crashed because time was over.
    pub fn by_time(&self) -> usize {
        self.rounds.iter().filter(|round| round.course.is_by_time).count()
    }

    /// The file systems of the databases, with the number of rounds; empty where a cell has one.
    pub fn places(&self) -> BTreeMap<&str, usize> {
        let mut places = BTreeMap::new();
        for place in self.rounds.iter().filter_map(|round| round.course.place.as_deref()) {
            *places.entry(place).or_insert(0) += 1;
        }
        places
    }
}
