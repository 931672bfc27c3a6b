//! Describes a workload in plain words, from its fields: the data, each phase, the end, its source, and the problems of
//! the source that it fixes.

mod phase;
mod words;

use super::{Durability, Member, Suite, Workload};
use crate::generator::Encoding;
use kvdyno_measure::text::{counted, grouped, ordinal, wrapped};
use words::{percent, size};

/// The maximum length of a line, in characters.
const WIDTH: usize = 100;

impl Workload {
    /// A description of the workload, in lines of up to 100 characters.
    pub fn explain(&self) -> String {
        let mut text = paragraph("", &format!("{}: {}", self.name, or_dash(&self.about)));
        if let Some(base) = &self.variant_of {
            text += &paragraph("", &format!("A variant of {base}."));
        }
        if let Some(source) = &self.source {
            text += &paragraph("", &format!("From: {source}"));
        }
        text += "\nData\n";
        for line in
            [self.text_of_keys(), self.text_of_values(), self.text_of_indexes(), self.text_of_settings()]
        {
            text += &paragraph("  ", &line);
        }
        let mut rounds_shown = false;
        for (place, phase) in self.phases.iter().enumerate() {
            if phase.each_round && self.rounds > 1 && !std::mem::replace(&mut rounds_shown, true) {
                let names: Vec<&str> = self
                    .phases
                    .iter()
                    .filter(|phase| phase.each_round)
                    .map(|phase| phase.name.as_str())
                    .collect();
                let rounds = grouped(u64::from(self.rounds));
                text += "\n";
                text += &paragraph("", &format!("{rounds} rounds; each runs {}.", names.join(", then ")));
            }
            text += &format!("\n{}. {}\n", place + 1, phase.name);
            for (what, described) in phase::parts(self, place) {
                text += &paragraph("  ", &format!("{what}: {described}"));
            }
        }
        text += "\nAt the end\n";
        text += &paragraph("  ", &self.text_of_end());
        text += &paragraph("  ", &self.text_of_runs());
        if !self.fixes.is_empty() {
            text += "\nProblems of the original that are fixed here\n";
            for fix in &self.fixes {
                text += &paragraph("  - ", fix);
            }
        }
        text
    }

    fn text_of_keys(&self) -> String {
        let key = &self.key;
        let collections = counted(self.collections.count.into(), "collection", "collections");
        if self.collections.are_lists() {
            let elements = counted(self.keys, "element", "elements");
            let count = self.collections.count;
            return format!(
                "{elements} in {count} lists; if the engine has no lists, each element is a row with a number in its key."
            );
        }
        if let Some(file) = &key.file {
            let keys = counted(self.keys, "key", "keys");
            return format!("{keys} of {}, read one after another from the file {file}.", size(&key.size));
        }
        let form = match key.encoding {
            Encoding::Binary => "a big-endian binary number",
            Encoding::Decimal => "a number in decimal digits",
            Encoding::Hex => "a number in hexadecimal digits",
            Encoding::Random => "random bytes",
            Encoding::Hashed => "`user` and the digits of a hash, as in YCSB",
        };
        let count = match self.keys {
            0 => "No keys at first; the phases insert them. Keys are".to_string(),
            count => counted(count, "key", "keys"),
        };
        let mut text = format!("{count} of {}, each {form}", size(&key.size));
        if key.scattered {
            text += "; consecutive numbers become keys that are far apart";
        }
        if key.alternate > 0 {
            let turn = grouped(key.alternate);
            text += &format!(
                "; they are inserted in turns: {turn} in ascending order, then {turn} at random over the range of all \
                 earlier keys, each once and never an existing key"
            );
        }
        if key.spacing > 1 {
            let nth = ordinal(key.spacing);
            text += &format!("; only every {nth} number is written, and misses read the numbers in between");
        }
        text += ".";
        if key.prefix_groups > 0 {
            let (groups, rows) = (grouped(key.prefix_groups), self.keys.div_ceil(key.prefix_groups).max(1));
            text += &format!(
                " They share {groups} prefixes of {}, with {} for each prefix.",
                counted(key.prefix_size.into(), "byte", "bytes"),
                counted(rows, "key", "keys")
            );
        }
        if self.collections.has_fields() {
            let kind = self.collections.r#type.name();
            text += &format!(
                " They are the fields of {collections} of type {kind}; if the engine has none, a name in front of each \
                 key replaces them."
            );
        }
        if self.keyspaces > 1 {
            let spaces = grouped(self.keyspaces.into());
            text += &format!(
                " They are spread over {spaces} keyspaces in turn; if the engine has none, a prefix of each key \
                 replaces them."
            );
        }
        text
    }

    fn text_of_values(&self) -> String {
        let share = self.value.compressed_share;
        let bytes = match share {
            1.0 => "noise, which does not compress".to_string(),
            share => format!("bytes that compress to {}", percent(share)),
        };
        format!(
            "Values of {}: the key's number and its version, then {bytes}. No two values are equal.",
            size(&self.value.size)
        )
    }

    fn text_of_indexes(&self) -> String {
        let described = |index: &super::Index| {
            let (length, from) = (counted(index.length.into(), "byte", "bytes"), index.from);
            let what = if index.clustering { ", with the complete row (clustering)" } else { "" };
            format!("by the {length} of its value from byte {from} on{what}")
        };
        match self.indexes.as_slice() {
            [] => String::new(),
            [one] => format!("Each row is indexed {}.", described(one)),
            all => {
                let all: Vec<String> = all.iter().map(described).collect();
                format!("Each row has {} indexes: {}.", all.len(), all.join("; "))
            }
        }
    }

    fn text_of_settings(&self) -> String {
        let weaker =
            if self.or_weaker { "; an engine that cannot reach it runs at its strongest level" } else { "" };
        let cache = match self.cache_bytes {
            Some(bytes) => format!("Its caches have {} bytes.", grouped(bytes)),
            None => "Its caches have their default sizes.".to_string(),
        };
        let memory = self.memory_bytes.map_or_else(String::new, |bytes| {
            format!(" Each trial's process may use {} bytes of memory, page cache included.", grouped(bytes))
        });
        let level = text_of_level(self.durability);
        format!("Each engine runs at durability level {}: {level}{weaker}. {cache}{memory}", self.durability)
    }

    fn text_of_end(&self) -> String {
        let other_sizes = self.phases.iter().any(|phase| phase.value_size.is_some());
        let sweep = if other_sizes {
            "The database is closed; it is not verified again, because phases write values of other sizes."
        } else if self.sweep_once {
            "The database is closed, opened and read again (the sweep). In the first run of each engine, every key is read: it \
             must have its last value, and there must be no other key. In later runs, 1 % of the keys are read, chosen at \
             random, and at least 1,000. Engines that keep everything in memory are read before they are closed."
        } else {
            "The database is closed, opened and read completely (the sweep): each key must have its last value, and there \
             must be no other key. Engines that keep everything in memory are read before they are closed."
        };
        format!("{sweep} Opening, closing, the sweep and the steps between phases are timed separately.")
    }

    fn text_of_runs(&self) -> String {
        let runs = counted(self.runs.into(), "run", "runs");
        let budget = self.budget_seconds.map_or_else(String::new, |seconds| {
            format!(
                " A run of 16 engines takes {seconds} seconds, from opening to closing; durations, and then keys, shrink to \
                 fit."
            )
        });
        let load = self.load_seconds.map_or_else(String::new, |seconds| {
            format!(
                " An engine that has not loaded all keys after {seconds} seconds is too slow, and its later runs are \
                 skipped."
            )
        });
        let seed = format!(
            "The first run uses seed {}; each later run has its own seed, the same for all engines.",
            self.seed
        );
        format!(
            "{runs} of each engine, each in its own process, with the engines in random order. {seed}{budget}{load}"
        )
    }
}

/// What an acknowledged write survives (docs/glossary.md).
fn text_of_level(level: Durability) -> &'static str {
    match level {
        Durability::None => "a write may be lost",
        Durability::Process => "an acknowledged write survives kill -9",
        Durability::Power => "an acknowledged write survives power loss",
        Durability::Default => "the default of its authors",
    }
}

/// A paragraph whose first line begins with `head`; empty if the text is.
fn paragraph(head: &str, text: &str) -> String {
    let margin = if head.is_empty() { "" } else { "    " };
    if text.is_empty() { String::new() } else { wrapped(head, margin, text, WIDTH) }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

impl Suite {
    /// A description of the suite and of each of its workloads; `members` are those of `Suite::members`.
    pub fn explain(&self, members: &[Member]) -> String {
        let mut text = paragraph("", &format!("{}: {}", self.name, or_dash(&self.about)));
        let has_own = self.parts.iter().all(|part| !part.engines.is_empty());
        let engines = match self.engines.as_slice() {
            [] if has_own => "those of its parts".to_string(),
            [] => "one of each kind".to_string(),
            names => names.join(", "),
        };
        text += &paragraph("", &format!("Engines, if available: {engines}."));
        if !self.layouts.is_empty() {
            text += &paragraph("", &format!("Report layouts: {}.", self.layouts.join(", ")));
        }
        text += "\nParts\n";
        for part in &self.parts {
            let mut described = part.workloads.join(", ");
            if let Some(variant) = &part.variant {
                described += &format!(", as variant `{variant}`");
            }
            if !part.set.is_empty() {
                described += &format!(", with {}", part.set.join(", "));
            }
            if !part.engines.is_empty() {
                described += &format!(", on {}", part.engines.join(", "));
            }
            text += &paragraph("  - ", &(described + "."));
        }
        text += "\nWorkloads\n";
        for Member { workload, .. } in members {
            let keys = match workload.keys {
                0 => "keys inserted by its phases".to_string(),
                keys => counted(keys, "key", "keys"),
            };
            let (name, level) = (&workload.name, workload.durability);
            let runs = counted(workload.runs.into(), "run", "runs");
            text += &paragraph("  - ", &format!("{name}: {keys}, level {level}, {runs}."));
        }
        let mut shown: Vec<&str> = Vec::new();
        for Member { workload, .. } in members {
            let base = workload.variant_of.as_deref().unwrap_or(&workload.name);
            if !shown.contains(&base) {
                shown.push(base);
                text += &format!("\n{}\n{}", "-".repeat(80), workload.explain());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
