//! What an application needs from an engine, which engines meet it, and the workload that measures those.

use super::size::{RATE_SECONDS, RUNS, Size, WARM_UP_SECONDS};
use kvdyno_core::engine::{Expiry, Processes, Properties, Space, Storage};
use kvdyno_core::generator::Rate;
use kvdyno_core::results::Safety;
use kvdyno_core::workload::{CACHE_DIVISOR, Durability, HARNESS_BYTES, STATE_BYTES};
use kvdyno_load::search::Limits;
use kvdyno_measure::text::{bytes_text, counted, listed, share_text};
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
    /// Entries expire by themselves, each after its own time.
    pub expiry: bool,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes of all keys and values.
    pub data_bytes: u64,
    /// Bytes of memory for the engine and the page cache; `None`: as much as the machine has.
    pub memory_bytes: Option<u64>,
    /// Threads that use the engine at the same time.
    pub threads: u32,
    /// The language that calls the engine; `None`: any.
    pub caller: Option<String>,
    /// The database is one file.
    pub one_file: bool,
    /// The processes that open the database at the same time.
    pub processes: Processes,
    /// Space of deleted data is given back to the file system, at least when the application calls for it.
    pub gives_space_back: bool,
    /// The oldest release that is accepted, as a date; `None`: any.
    pub released_since: Option<String>,
    /// Languages that the engine may be written in.
    pub languages: Accepted,
    /// Its licences.
    pub licences: Accepted,
    /// When requests arrive; `None`: each thread sends the next one when the last has ended.
    pub rate: Option<Rate>,
    /// The limits that response times must keep at this rate; `None`: the lowest ones are the best.
    pub limits: Option<Limits>,
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
    /// What cannot be measured; what is unknown meets no need.
    pub properties: &'f Properties,
    /// The capabilities that options give that are set.
    pub given: &'f [String],
}

impl Facts<'_> {
    /// Whether `prove` has found this capability or trait, or an option that is set gives it.
    pub(super) fn can(&self, ability: &str) -> bool {
        let is_proven = |row: &Proven| row.capabilities.iter().chain(&row.traits).any(|own| own == ability);
        self.proven.is_some_and(is_proven) || self.given.iter().any(|own| own == ability)
    }

    /// What is known about the safety of the verified version at its weakest level that survives what `asked` does.
    pub(super) fn safety(&self, asked: Durability) -> Safety {
        let version = self.proven.and_then(|row| row.version.as_deref());
        let own = |level: &&str| self.proven.is_some_and(|row| row.levels.iter().any(|own| own == level));
        let level = enough(asked).iter().copied().find(own).and_then(|level| level.parse().ok());
        // Whoever needs nothing to survive loses nothing.
        let level = level.filter(|_| asked != Durability::None);
        Safety::certified(self.name, version, &[], level)
    }
}

/// What is said of an engine that does not meet a need.
type Detail = Box<dyn Fn(&Facts<'_>) -> String>;

/// A need, and whether an engine meets it.
pub(super) struct Rule {
    /// Why the engines that do not meet it were ruled out.
    pub reason: String,
    /// The flag that changes it; empty: none does, or the reason has it.
    pub flag: &'static str,
    test: Box<dyn Fn(&Facts<'_>) -> bool>,
    /// What is said of each engine that does not meet it; none: nothing.
    detail: Option<Detail>,
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
        if let Some(caller) = self.caller.clone() {
            rules.push(Rule::new(
                "--callable-from",
                format!("cannot be called from {caller}"),
                move |facts| facts.properties.callable_from.contains(&caller),
            ));
        }
        if self.ordered {
            rules.push(Rule::new("--ordered", "no ordered scans", |facts| facts.can("ordered")));
        }
        if self.transactions {
            rules.push(Rule::new("--transactions", "no transactions", |facts| facts.can("transaction")));
        }
        if self.expiry {
            rules.push(Rule::new("--expiry", "entries do not expire", |facts| {
                facts.can("time-to-live") || facts.properties.expiry >= Some(Expiry::ForAll)
            }));
        }
        let (key_bytes, value_bytes) = (self.key_bytes, self.value_bytes);
        rules.push(Rule::new("--key-size", format!("keys of {key_bytes} B are too large"), move |facts| {
            facts.properties.largest_key.is_none_or(|largest| key_bytes <= largest)
        }));
        rules.push(Rule::new(
            "--value-size",
            format!("values of {value_bytes} B are too large"),
            move |facts| facts.properties.largest_value.is_none_or(|largest| value_bytes <= largest),
        ));
        if self.one_file {
            rules.push(Rule::new("--one-file", "not one file", |facts| {
                facts.properties.storage == Some(Storage::File)
            }));
        }
        if self.processes > Processes::One {
            let needed = self.processes;
            let reason =
                format!("not known to be open to {}", needed.words().replace("several", "several processes"));
            rules.push(Rule::new("--processes", reason, move |facts| {
                facts.properties.processes >= Some(needed)
            }));
        }
        if self.gives_space_back {
            rules.push(Rule::new(
                "--gives-space-back",
                "not known to give space of deleted data back",
                |facts| facts.properties.space >= Some(Space::OnCall),
            ));
        }
        if let Some(since) = self.released_since.clone() {
            let reason = format!("not known to be released since {since}");
            rules.push(Rule::new("--released-since", reason, move |facts| {
                facts.properties.release.as_ref().is_some_and(|release| release.date >= since)
            }));
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

    /// The needed capabilities that options may give.
    pub(super) fn capabilities(&self) -> Vec<&'static str> {
        let needed =
            [(self.ordered, "ordered"), (self.transactions, "transaction"), (self.expiry, "time-to-live")];
        needed.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, name)| name).collect()
    }

    /// The needs as names and answers, for the report; those that accept everything are skipped.
    pub(super) fn answers(&self) -> Vec<(String, String)> {
        let yes = |is_needed: bool| is_needed.then(|| "yes".to_string());
        let accepted = |accepted: &Accepted| (*accepted != Accepted::Any).then(|| accepted.words());
        let survived = match self.durability {
            Durability::Power => "a power loss",
            Durability::Process => "a crash of the program",
            Durability::None | Durability::Default => "nothing",
        };
        let all = [
            ("called from", self.caller.clone()),
            ("confirmed writes survive", Some(survived.to_string())),
            ("transactions", yes(self.transactions)),
            ("keys in order", yes(self.ordered)),
            ("entries expire", yes(self.expiry)),
            ("may drop entries", yes(self.cache)),
            ("data", Some(bytes_text(self.data_bytes))),
            ("memory", self.memory_bytes.map(bytes_text)),
            ("key", Some(bytes_text(self.key_bytes))),
            ("value", Some(bytes_text(self.value_bytes))),
            ("reads", Some(share_text(self.reads))),
            ("threads", Some(self.threads.to_string())),
            ("one file", yes(self.one_file)),
            ("processes", (self.processes > Processes::One).then(|| self.processes.words().to_string())),
            ("gives space back", yes(self.gives_space_back)),
            ("released since", self.released_since.clone()),
            ("written in", accepted(&self.languages)),
            ("licences", accepted(&self.licences)),
            ("requests", self.rate.as_ref().map(|rate| format!("{rate} a second"))),
            ("limits", self.limits.as_ref().map(ToString::to_string)),
        ];
        all.into_iter().filter_map(|(name, answer)| Some((name.to_string(), answer?))).collect()
    }

    /// What of the needs the measurement does not show, a sentence each. `options` are those that are set: engines and options.
    pub(super) fn not_shown(&self, size: &Size, options: &[(String, String)]) -> Vec<String> {
        let mut lines = match &self.rate {
            None => vec![
                "response times of requests that do not wait for each other: it recommends by ops/s. \
                 `--rate 20k --slo 'p99<1ms'` asks for the engines that keep a limit at your rate"
                    .to_string(),
            ],
            Some(rate) if self.phases().len() > 1 => vec![format!(
                "requests of several kinds together: each phase sends all of them ({rate} requests/s) of its own kind"
            )],
            Some(_) => Vec::new(),
        };
        if !size.notes.is_empty() {
            lines.push(format!(
                "latencies, such as p99, with {} of data: those in the report are of the measured size",
                bytes_text(self.data_bytes)
            ));
        }
        if self.expiry {
            lines.push(
                "expiry: no entry of the workload expires, so its cost is not measured; `kvdyno engines NAME` says whether \
                 entries expire each after its own time or all after the same"
                    .to_string(),
            );
        }
        if self.processes > Processes::One {
            lines.push("several processes: one process uses the database while it is measured".to_string());
        }
        lines.extend(options.iter().map(|(engine, option)| {
            format!(
                "checks of {engine} with {option}: it has what you need only with this option, which your program must set, too; \
                 `kvdyno prove` has checked {engine} without it"
            )
        }));
        lines
    }

    /// The measured phases: names, mixes, and their durations in seconds.
    fn phases(&self) -> Vec<(&'static str, String, f64)> {
        let shares = [("get", self.reads), ("update", 1.0 - self.reads)];
        let mix: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name} = {share:.4}"))
            .collect();
        let seconds = |closed: f64| match self.rate {
            Some(_) => self.shortest_phase().max(RATE_SECONDS),
            None => closed,
        };
        let mut phases = vec![("use", mix.join(", "), seconds(2.0))];
        if self.ordered {
            phases.push(("scan", "scan = 1".to_string(), seconds(1.0)));
        }
        if self.transactions {
            phases.push(("transactions", "transaction = 1".to_string(), seconds(1.0)));
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
                "# {} MiB for the engine, {} MiB for kvdyno, and {STATE_BYTES} B for what it knows of each key.\nmemory_bytes = {}\ncache_bytes = {}",
                limit >> 20,
                HARNESS_BYTES >> 20,
                limit + HARNESS_BYTES + size.keys * STATE_BYTES,
                limit / CACHE_DIVISOR
            );
        }
        // In random order, a load of more than the memory takes hours.
        let order = if size.memory_bytes.is_some() { "sequential" } else { "permutation" };
        // A load is not compared, so larger commits cost nothing but save time where each is synced.
        let is_slow = self.durability == Durability::Power || size.memory_bytes.is_some();
        let join = if is_slow { 1000 } else { 100 };
        let _ = write!(
            text,
            "\n[key]\nsize = {}\n\n[value]\nsize = {}\ncompressed_share = 0.5\n\n[[phase]]\nname = \"load\"\n\
             mix = {{ put = 1 }}\ndistribution = \"{order}\"\neach_key = true\njoin = {join}\n",
            self.key_bytes, self.value_bytes
        );
        for (name, mix, seconds) in self.phases() {
            let _ = write!(
                text,
                "\n[[phase]]\nname = \"{name}\"\nmix = {{ {mix} }}\ndistribution = \"zipf:0.99\"\nthreads = {threads}\n\
                 seconds = {:.3}\nsettle_before = true\n",
                seconds * size.pace
            );
            if let Some(rate) = &self.rate {
                let _ = writeln!(text, "rate = \"{rate}\"\nwarmup_seconds = {WARM_UP_SECONDS}");
            }
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests;
