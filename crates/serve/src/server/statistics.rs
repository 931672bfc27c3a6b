//! Statistics of commands: how many, and the time from reading them to their replies.

use crate::commands;
use kvdyno_measure::Histogram;
use std::time::Duration;

/// Counts by command.
#[derive(Default)]
pub struct Counts {
    latencies: Vec<Option<Box<Histogram>>>,
}

/// One command's count.
#[derive(Debug)]
pub struct CommandCount {
    /// Its name; empty for all unknown commands together.
    pub name: &'static str,
    /// Time from reading to reply, nanoseconds.
    pub latency: Histogram,
}

impl Counts {
    /// Adds an answered command; `command` as returned by `commands::number_of`, greater for an unknown one.
    pub fn note(&mut self, command: usize, latency: Duration) {
        let place = command.min(commands::LIST.len());
        if self.latencies.len() <= place {
            self.latencies.resize_with(place + 1, || None);
        }
        let histogram = self.latencies[place].get_or_insert_with(|| Box::new(Histogram::new()));
        histogram.record(latency.as_nanos() as u64);
    }

    /// Adds the counts of both.
    pub fn with(mut self, other: Counts) -> Counts {
        if self.latencies.len() < other.latencies.len() {
            self.latencies.resize_with(other.latencies.len(), || None);
        }
        for (mine, theirs) in self.latencies.iter_mut().zip(other.latencies) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.merge(&theirs),
                (None, theirs) => *mine = theirs,
                _ => {}
            }
        }
        self
    }

    /// The commands that were used, in the order of the list.
    pub fn list(self) -> Vec<CommandCount> {
        let named = self.latencies.into_iter().enumerate();
        let name = |place: usize| commands::LIST.get(place).map_or("", |command| command.name);
        named
            .filter_map(|(place, latency)| Some(CommandCount { name: name(place), latency: *latency? }))
            .collect()
    }
}
