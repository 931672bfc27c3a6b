//! A workload in plain words, made from its fields: the data, each phase, the end, where it is from and what it mends.

mod phase;
mod words;

use super::{Durability, Member, Suite, Workload};
use crate::generator::Encoding;
use words::{counted, number, percent, size, wrapped};

impl Workload {
    /// What the workload does, as a text for people of lines of up to 100 characters.
    pub fn explain(&self) -> String {
        let mut text = wrapped("", &format!("{}: {}", self.name, or_dash(&self.about)));
        if let Some(base) = &self.variant_of {
            text += &wrapped("", &format!("A variant of {base}."));
        }
        if let Some(source) = &self.source {
            text += &wrapped("", &format!("From: {source}"));
        }
        text += "\nData\n";
        for line in [self.said_keys(), self.said_values(), self.said_indexes(), self.said_settings()] {
            text += &wrapped("  ", &line);
        }
        let mut is_round_told = false;
        for (place, phase) in self.phases.iter().enumerate() {
            if phase.each_round && self.rounds > 1 && !std::mem::replace(&mut is_round_told, true) {
                let names: Vec<&str> = self
                    .phases
                    .iter()
                    .filter(|phase| phase.each_round)
                    .map(|phase| phase.name.as_str())
                    .collect();
                let rounds = number(u64::from(self.rounds));
                text += "\n";
                text += &wrapped("", &format!("{rounds} rounds, each of: {}.", names.join(", then ")));
            }
            text += &format!("\n{}. {}\n", place + 1, phase.name);
            for (what, said) in phase::parts(self, place) {
                text += &wrapped("  ", &format!("{what}: {said}"));
            }
        }
        text += "\nAt the end\n";
        text += &wrapped("  ", &self.said_end());
        text += &wrapped("  ", &self.said_runs());
        if !self.mends.is_empty() {
            text += "\nWhat was wrong there and is not here\n";
            for mend in &self.mends {
                text += &wrapped("  - ", mend);
            }
        }
        text
    }

    fn said_keys(&self) -> String {
        let key = &self.key;
        let collections = counted(self.collections.count.into(), "collection", "collections");
        if self.collections.are_lists() {
            let elements = counted(self.keys, "element", "elements");
            let count = self.collections.count;
            return format!(
                "{elements} in {count} lists, native where the engine has lists, else by a number in the key."
            );
        }
        if let Some(file) = &key.file {
            let keys = counted(self.keys, "key", "keys");
            return format!("{keys} of {}, one behind the other in the file {file}.", size(&key.size));
        }
        let form = match key.encoding {
            Encoding::Binary => "a binary number, its highest byte first",
            Encoding::Decimal => "a number in decimal digits",
            Encoding::Hex => "a number in hexadecimal digits",
            Encoding::Random => "random bytes",
            Encoding::Hashed => "`user` and the digits of a hash, as YCSB makes them",
        };
        let count = match self.keys {
            0 => "No keys at first, phases insert them. Keys are".to_string(),
            count => counted(count, "key", "keys"),
        };
        let mut text = format!("{count} of {}, each {form}", size(&key.size));
        if key.scattered {
            text += "; neighbouring numbers get keys that are far apart";
        }
        if key.alternate > 0 {
            let turn = number(key.alternate);
            text += &format!(
                "; they come in turns: {turn} in ascending order, then {turn} at random over the range of all before, \
                 each once and never on one that is there"
            );
        }
        if key.spacing > 1 {
            let spacing = number(key.spacing);
            text += &format!(
                "; every {spacing}. number is written, so that there are gaps for keys that are absent"
            );
        }
        text += ".";
        if key.prefix_groups > 0 {
            let (groups, rows) = (number(key.prefix_groups), self.keys.div_ceil(key.prefix_groups).max(1));
            text += &format!(
                " They share {groups} prefixes of {}, {} to a prefix.",
                counted(key.prefix_size.into(), "byte", "bytes"),
                counted(rows, "key", "keys")
            );
        }
        if self.collections.has_fields() {
            let kind = self.collections.r#type.name();
            text += &format!(
                " They are the fields of {collections} of type {kind}, native where the engine has such, else by a name \
                 before each key."
            );
        }
        if self.keyspaces > 1 {
            let spaces = number(self.keyspaces.into());
            text += &format!(
                " They lie in {spaces} keyspaces in turn; an engine without such gets a mark before each key."
            );
        }
        text
    }

    fn said_values(&self) -> String {
        let share = self.value.compressed_share;
        let bytes = match share {
            1.0 => "noise, which does not compress".to_string(),
            share => format!("bytes that compress to {}", percent(share)),
        };
        format!(
            "Values of {}: the key's number and how often it was written, then {bytes}. No two are alike.",
            size(&self.value.size)
        )
    }

    fn said_indexes(&self) -> String {
        let said = |index: &super::Index| {
            let (length, from) = (counted(index.length.into(), "byte", "bytes"), index.from);
            let what = if index.clustering { ", with the whole row (clustering)" } else { "" };
            format!("by the {length} of its value from byte {from} on{what}")
        };
        match self.indexes.as_slice() {
            [] => String::new(),
            [one] => format!("Each row is indexed {}.", said(one)),
            all => {
                let all: Vec<String> = all.iter().map(said).collect();
                format!("Each row has {} indexes: {}.", all.len(), all.join("; "))
            }
        }
    }

    fn said_settings(&self) -> String {
        let weaker =
            if self.or_weaker { "; an engine that cannot promise that does what it can" } else { "" };
        let cache = match self.cache_bytes {
            Some(bytes) => format!("Its caches get {} bytes.", number(bytes)),
            None => "Its caches are as its authors have them.".to_string(),
        };
        let memory = self.memory_bytes.map_or_else(String::new, |bytes| {
            format!(" Each trial's process has {} bytes of memory, page cache included.", number(bytes))
        });
        let level = said_level(self.durability);
        format!("Each engine is asked for level {}: {level}{weaker}. {cache}{memory}", self.durability)
    }

    fn said_end(&self) -> String {
        let other_sizes = self.phases.iter().any(|phase| phase.value_size.is_some());
        let sweep = if other_sizes {
            "The database is closed; it is not swept, as phases write values of other sizes."
        } else {
            "The database is closed, opened, and read once more, in no figure of an op: each key must be there with its \
             last value, and no other. Engines that keep all in memory are read before they are closed."
        };
        format!("{sweep} Open, close and the steps between phases have times of their own.")
    }

    fn said_runs(&self) -> String {
        let runs = counted(self.runs.into(), "run", "runs");
        let budget = self.budget_seconds.map_or_else(String::new, |seconds| {
            format!(" On ten engines it measures for {seconds} seconds in all: times, and then keys, shrink to that.")
        });
        let seed = format!(
            "The first is that of seed {}, each further one has a seed of its own, the same for all engines.",
            self.seed
        );
        format!(
            "{runs} on each engine, each in a process of its own, the engines in random order. {seed}{budget}"
        )
    }
}

/// What an acknowledged write survives (docs/glossary.md).
fn said_level(level: Durability) -> &'static str {
    match level {
        Durability::None => "a write may be lost",
        Durability::Process => "a write that is acknowledged survives kill -9",
        Durability::Power => "a write that is acknowledged survives power loss",
        Durability::Default => "whatever its authors ship",
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

impl Suite {
    /// What the suite runs, and each of its workloads once; `members` are those of `Suite::members`.
    pub fn explain(&self, members: &[Member]) -> String {
        let mut text = wrapped("", &format!("{}: {}", self.name, or_dash(&self.about)));
        let has_own = self.parts.iter().all(|part| !part.engines.is_empty());
        let engines = match self.engines.as_slice() {
            [] if has_own => "those of its parts".to_string(),
            [] => "all that are compared".to_string(),
            names => names.join(", "),
        };
        text += &wrapped("", &format!("Engines, as far as they are here: {engines}."));
        if !self.layouts.is_empty() {
            text += &wrapped("", &format!("Layouts of its report: {}.", self.layouts.join(", ")));
        }
        text += "\nParts\n";
        for part in &self.parts {
            let mut said = part.workloads.join(", ");
            if let Some(variant) = &part.variant {
                said += &format!(", as variant `{variant}`");
            }
            if !part.set.is_empty() {
                said += &format!(", with {}", part.set.join(", "));
            }
            if !part.engines.is_empty() {
                said += &format!(", on {}", part.engines.join(", "));
            }
            text += &wrapped("  - ", &(said + "."));
        }
        text += "\nWorkloads\n";
        for Member { workload, .. } in members {
            let keys = match workload.keys {
                0 => "keys are inserted".to_string(),
                keys => counted(keys, "key", "keys"),
            };
            let (name, level) = (&workload.name, workload.durability);
            let runs = counted(workload.runs.into(), "run", "runs");
            text += &wrapped("  - ", &format!("{name}: {keys}, level {level}, {runs}."));
        }
        let mut told: Vec<&str> = Vec::new();
        for Member { workload, .. } in members {
            let base = workload.variant_of.as_deref().unwrap_or(&workload.name);
            if !told.contains(&base) {
                told.push(base);
                text += &format!("\n{}\n{}", "-".repeat(80), workload.explain());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
