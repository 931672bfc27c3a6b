//! What the server sees of its commands: how many, and how long from the moment they were read to their replies.

use crate::measure::Histogram;
use crate::resp::commands;
use std::time::Duration;

/// Counts by command.
#[derive(Default)]
pub struct Counts {
    latencies: Vec<Option<Box<Histogram>>>,
}

/// One command's count.
#[derive(Debug)]
pub struct CommandCount {
    /// Its name; unknown ones together have an empty one.
    pub name: &'static str,
    /// From reading to reply, nanoseconds.
    pub latency: Histogram,
}

impl Counts {
    /// A command was answered; `command` as `commands::number_of` gives it, greater for an unknown one.
    pub fn note(&mut self, command: usize, latency: Duration) {
        let place = command.min(commands::LIST.len());
        if self.latencies.len() <= place {
            self.latencies.resize_with(place + 1, || None);
        }
        let histogram = self.latencies[place].get_or_insert_with(|| Box::new(Histogram::new()));
        histogram.record(latency.as_nanos() as u64);
    }

    /// Both together.
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

    /// Those that were given, in the order of the commands.
    pub fn list(self) -> Vec<CommandCount> {
        let named = self.latencies.into_iter().enumerate();
        let name = |place: usize| commands::LIST.get(place).map_or("", |command| command.name);
        named
            .filter_map(|(place, latency)| Some(CommandCount { name: name(place), latency: *latency? }))
            .collect()
    }
}
