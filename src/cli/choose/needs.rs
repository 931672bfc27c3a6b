//! What an application needs from an engine, which engines meet it, and the workload that measures those.

use super::size::{KEY_BYTES, RUNS, STATE_BYTES, Size};
use kvdyno_core::results::Safety;
use kvdyno_core::workload::Durability;
use kvdyno_measure::text::{counted, listed, share_text};
use kvdyno_prove::proven::Proven;
use std::fmt::Write;

/// Licences that allow distribution in closed programs, without conditions on them beyond notices.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "blessing",
    "ISC",
    "MIT",
    "OLDAP-2.8",
    "Unlicense",
    "Zlib",
];
/// The divisor of an engine's memory for its caches.
const CACHE_DIVISOR: u64 = 4;

/// Why an engine is ruled out whose level its certificate contradicts.
const LOSES: &str = "loses data in kvdyno's crash tests; --any-safety accepts that";

/// The languages or licences that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    /// All.
    Any,
    /// The permissive licences.
    Permissive,
    /// These, in any case of letters.
    Only(Vec<String>),
}

/// What an application needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Needs {
    /// Keys in order, for scans.
    pub ordered: bool,
    /// Several writes that all happen, or none.
    pub transactions: bool,
    /// Entries may be dropped when space is short.
    pub cache: bool,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Engines that do not keep what their level promises are accepted.
    pub any_safety: bool,
    /// The share of reads among the ops, 0 to 1.
    pub reads: f64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes of all keys and values.
    pub data_bytes: u64,
    /// Bytes of memory for the engine and the page cache; `None`: as much as the machine has.
    pub memory_bytes: Option<u64>,
    /// Threads that use the engine at the same time.
    pub threads: u32,
    /// Languages that the engine may be written in.
    pub languages: Accepted,
    /// Its licences.
    pub licences: Accepted,
}

/// The facts about an engine that needs are compared with.
#[derive(Clone, Debug)]
pub(super) struct Facts<'f> {
    /// The name.
    pub name: &'f str,
    /// What `verify` has proven; `None`: nothing.
    pub proven: Option<&'f Proven>,
    /// Whether it is a reference of this project and no library.
    pub is_reference: bool,
    /// The family, such as `lsm`.
    pub family: &'f str,
    /// The language that it is written in.
    pub language: &'f str,
    /// The licence, as an SPDX expression.
    pub licence: &'f str,
}

impl Facts<'_> {
    /// Whether `verify` has proven this capability or trait.
    pub(super) fn can(&self, ability: &str) -> bool {
        self.proven.is_some_and(|row| row.capabilities.iter().chain(&row.traits).any(|own| own == ability))
    }

    /// What is known about the safety of the verified version at its weakest level that survives what `asked` does.
    pub(super) fn safety(&self, asked: Durability) -> Safety {
        let version = self.proven.and_then(|row| row.version.as_deref());
        let own = |level: &&str| self.proven.is_some_and(|row| row.levels.iter().any(|own| own == level));
        let level =
            enough(asked).iter().copied().find(|level| own(&level)).and_then(|level| level.parse().ok());
        // Whoever needs nothing to survive loses nothing.
        let level = level.filter(|_| asked != Durability::None);
        Safety::certified(self.name, version, &[], level)
    }
}

/// A need, and whether an engine meets it.
pub(super) struct Rule {
    /// Why the engines that do not meet it were ruled out.
    pub reason: String,
    /// The flag that changes it; empty: none does, or the reason has it.
    pub flag: &'static str,
    test: Box<dyn Fn(&Facts<'_>) -> bool>,
    /// What is said of each engine that does not meet it; none: nothing.
    detail: Option<Box<dyn Fn(&Facts<'_>) -> String>>,
}

impl Rule {
    fn new(
        flag: &'static str,
        reason: impl Into<String>,
        test: impl Fn(&Facts<'_>) -> bool + 'static,
    ) -> Rule {
        Rule { reason: reason.into(), flag, test: Box::new(test), detail: None }
    }

    /// The name of an engine that does not meet it, with what is said of it.
    pub(super) fn named(&self, facts: &Facts<'_>) -> String {
        let detail = self.detail.as_ref().map(|detail| format!(" ({})", detail(facts)));
        facts.name.to_string() + &detail.unwrap_or_default()
    }

    /// Whether an engine meets it.
    pub(super) fn is_met(&self, facts: &Facts<'_>) -> bool {
        (self.test)(facts)
    }
}

/// The levels that survive what this one does, the weakest first.
fn enough(asked: Durability) -> &'static [&'static str] {
    match asked {
        Durability::Power => &["power"],
        Durability::Process => &["process", "power"],
        Durability::None | Durability::Default => &["none", "process", "power"],
    }
}

/// The alternatives of a licence expression: `MIT OR Apache-2.0` has two.
pub(super) fn alternatives(licence: &str) -> impl Iterator<Item = &str> {
    licence.split(" OR ").map(str::trim)
}

impl Accepted {
    fn accepts(&self, own: &str) -> bool {
        match self {
            Accepted::Any => true,
            Accepted::Permissive => PERMISSIVE.contains(&own),
            Accepted::Only(names) => names.iter().any(|name| name.eq_ignore_ascii_case(own)),
        }
    }

    fn words(&self) -> String {
        match self {
            Accepted::Any => "any".into(),
            Accepted::Permissive => "permissive".into(),
            Accepted::Only(names) => listed(names, "or"),
        }
    }
}

impl Needs {
    /// Whether the data do not fit into the memory.
    pub(super) fn exceeds_memory(&self) -> bool {
        self.memory_bytes.is_some_and(|memory| self.data_bytes > memory)
    }

    /// The rules, in the order in which they are applied: an engine is ruled out by the first that it does not meet.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut rules = vec![
            Rule::new("", "not verified; run `kvdyno prove --only rules NAME`", |facts| {
                facts.proven.is_some()
            }),
            Rule::new("", "a reference of kvdyno, and no library", |facts| !facts.is_reference),
            Rule::new("", "not embedded: it is a server", |facts| facts.family != "server"),
        ];
        if !self.cache {
            rules.push(Rule::new("--cache", "drops entries: it is a cache", |facts| !facts.can("evicts")));
        }
        if self.ordered {
            rules.push(Rule::new("--ordered", "no ordered scans", |facts| facts.can("ordered")));
        }
        if self.transactions {
            rules.push(Rule::new("--transactions", "no transactions", |facts| facts.can("transaction")));
        }
        let (asked, enough) = (self.durability, enough(self.durability));
        rules.push(Rule::new(
            "--durability",
            format!("does not reach durability level {}", enough[0]),
            |facts| {
                facts.proven.is_some_and(|row| row.levels.iter().any(|own| enough.contains(&own.as_str())))
            },
        ));
        if !self.any_safety {
            rules.push(Rule {
                detail: Some(Box::new(move |facts| match facts.safety(asked) {
                    Safety::Contradicted { reason, .. } => reason,
                    other => other.to_string(),
                })),
                ..Rule::new("", LOSES, move |facts| !facts.safety(asked).is_contradicted())
            });
        }
        if self.exceeds_memory() {
            rules.push(Rule::new("--memory", "keeps all data in memory, where they do not fit", |facts| {
                !facts.can("in-memory") && facts.family != "memory"
            }));
        }
        if self.threads > 1 {
            rules.push(Rule::new("--threads", "cannot be used by several threads", |facts| {
                !facts.can("single-thread")
            }));
        }
        let (languages, licences) = (self.languages.clone(), self.licences.clone());
        rules.push(Rule::new("--language", format!("not written in {}", languages.words()), move |facts| {
            languages.accepts(facts.language)
        }));
        rules.push(Rule::new(
            "--licence",
            format!("the licence is not {}", licences.words()),
            move |facts| alternatives(facts.licence).any(|one| licences.accepts(one)),
        ));
        rules
    }

    /// The measured phases: names, mixes, and their durations in seconds.
    fn phases(&self) -> Vec<(&'static str, String, f64)> {
        let shares = [("get", self.reads), ("update", 1.0 - self.reads)];
        let mix: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name} = {share:.4}"))
            .collect();
        let mut phases = vec![("use", mix.join(", "), 2.0)];
        if self.ordered {
            phases.push(("scan", "scan = 1".to_string(), 1.0));
        }
        if self.transactions {
            phases.push(("transactions", "transaction = 1".to_string(), 1.0));
        }
        phases
    }

    /// The durations of the measured phases of a trial, in seconds, if there is time for all.
    pub(super) fn phase_seconds(&self) -> Vec<f64> {
        self.phases().into_iter().map(|(_, _, seconds)| seconds).collect()
    }

    /// The workload as a TOML file.
    pub(super) fn workload(&self, size: &Size) -> String {
        let Needs { threads, .. } = *self;
        let level = match self.durability {
            Durability::Power => "power",
            Durability::Process => "process",
            Durability::None | Durability::Default => "none",
        };
        let mut text = format!(
            "# Written by `kvdyno choose`.\nabout = \"{} reads, values of {} B, {}, level {level}\"\n\
             runs = {RUNS}\nkeys = {}\ndurability = \"{level}\"\nload_seconds = {:.1}\n",
            share_text(self.reads),
            self.value_bytes,
            counted(threads.into(), "thread", "threads"),
            size.keys,
            size.load_seconds
        );
        // Writing to a String cannot fail.
        if let Some(limit) = size.memory_bytes {
            let _ = writeln!(
                text,
                "# {} MiB for the engine, and {STATE_BYTES} B for what kvdyno knows of each key.\nmemory_bytes = {}\ncache_bytes = {}",
                limit >> 20,
                limit + size.keys * STATE_BYTES,
                limit / CACHE_DIVISOR
            );
        }
        // In random order, a load of more than the memory takes hours.
        let order = if size.memory_bytes.is_some() { "sequential" } else { "permutation" };
        let join = if self.durability == Durability::Power { 1000 } else { 100 };
        let _ = write!(
            text,
            "\n[key]\nsize = {KEY_BYTES}\n\n[value]\nsize = {}\ncompressed_share = 0.5\n\n[[phase]]\nname = \"load\"\n\
             mix = {{ put = 1 }}\ndistribution = \"{order}\"\neach_key = true\njoin = {join}\n",
            self.value_bytes
        );
        for (name, mix, seconds) in self.phases() {
            let _ = write!(
                text,
                "\n[[phase]]\nname = \"{name}\"\nmix = {{ {mix} }}\ndistribution = \"zipf:0.99\"\nthreads = {threads}\n\
                 seconds = {:.3}\nsettle_before = true\n",
                seconds * size.pace
            );
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests;
