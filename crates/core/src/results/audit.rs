//! What an accounting pass has observed: the sync calls behind acknowledged commits, and what they say about a durability
//! level that a driver claims (docs/durability.md).

#[cfg(test)]
mod tests;

use super::certificate::certified;
use super::crash::Measured;
use crate::workload::{Durability, OpKind, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{Display, VariantArray};

/// Calls after which an observation is incomplete: their names in [`Section::calls`], and what is not seen.
const BLIND: [(&str, &str); 4] = [
    ("io_uring", "io_uring is in use, and what is done there is not seen"),
    ("io_submit", "io_submit is in use, and what is done there is not seen"),
    (
        "hidden call",
        "the process cannot be observed because its files in /proc cannot be read; root can read them",
    ),
    ("32-bit call", "it makes 32-bit system calls, and what they do is not seen"),
];
/// The name of a shared mapping of a file, whose stores are not seen.
const MAPPING: &str = "shared mapping";
const RANGE_FLUSH: &str = "sync_file_range";

/// The shape of the commits of a section; in the order in which they are run and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One put, by one thread.
    Put,
    /// A joined group of puts, by one thread.
    Group,
    /// A transaction of puts, by one thread.
    Transaction,
    /// One put, by one of two threads at the same time.
    Threads,
}

impl Shape {
    /// The shape of a phase's commits, for single puts by any number of threads above one that of two; `None` if it writes
    /// nothing.
    pub fn of(phase: &Phase) -> Option<Shape> {
        let writes = phase.mix.has(OpKind::writes) || phase.writers > 0;
        let is_transaction = phase.atomic || phase.mix.has(|kind| kind == OpKind::Transaction);
        let writers = phase.writers + if phase.mix.has(OpKind::writes) { phase.threads } else { 0 };
        writes.then_some(match (is_transaction, phase.join) {
            (true, _) => Shape::Transaction,
            (false, 2..) => Shape::Group,
            (false, _) if writers > 1 => Shape::Threads,
            (false, _) => Shape::Put,
        })
    }

    /// The commits in a sentence.
    pub fn plural(self) -> &'static str {
        match self {
            Shape::Put => "puts",
            Shape::Group => "groups",
            Shape::Transaction => "transactions",
            Shape::Threads => "puts of two threads",
        }
    }
}

/// Commits of one shape, and the calls that were seen from the first call of the driver to the last acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// Their shape.
    pub shape: Shape,
    /// Acknowledged commits.
    pub commits: u64,
    /// Calls that return when what was written is on stable storage.
    pub syncs: u64,
    /// Commits for which no such call began between the call of the driver and the acknowledgement.
    pub without_sync: u64,
    /// Commits for which no write to a file began between the call of the driver and the acknowledgement.
    pub without_write: u64,
    /// Calls by kind.
    pub calls: BTreeMap<String, u64>,
}

impl Section {
    /// Syncs per acknowledged commit; `None` without commits.
    pub fn syncs_per_commit(&self) -> Option<f64> {
        (self.commits > 0).then(|| self.syncs as f64 / self.commits as f64)
    }

    /// Calls by kind per acknowledged commit; empty without commits.
    pub fn calls_per_commit(&self) -> BTreeMap<String, f64> {
        let each = |(name, count): (&String, &u64)| (name.clone(), *count as f64 / self.commits as f64);
        self.calls.iter().filter(|_| self.commits > 0).map(each).collect()
    }
}

/// The accounting pass of one engine at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// The engine.
    pub engine: String,
    /// The version that its driver reports; `None` if it was not opened.
    pub version: Option<String>,
    /// Options that were set, `name=value`.
    pub options: Vec<(String, String)>,
    /// The level that the driver claims.
    pub level: Durability,
    /// The seed of the values.
    pub seed: u64,
    /// Puts of a group or transaction.
    pub group: u32,
    /// What was observed.
    pub sections: Vec<Section>,
    /// Calls by kind before the first section, from the start of the process: what it has mapped and opened.
    pub before: BTreeMap<String, u64>,
    /// Why nothing was observed, or not everything, and what to do; `None` if the pass is complete.
    pub unseen: Option<String>,
}

/// What an accounting pass says about the commits of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// Sync calls per acknowledged commit of the phase's shape; `None` if that was not observed.
    pub syncs_per_commit: Option<f64>,
    /// System calls by kind per acknowledged commit of that shape: syncs, writes to files, shared mappings of files, and
    /// rings, whose contents are not seen. Empty: nothing was observed, or an older version observed it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls_per_commit: BTreeMap<String, f64>,
    /// The verdict on the level, from all shapes.
    pub verdict: AuditVerdict,
    /// Its reason; `None` if the calls agree with the claim.
    pub reason: Option<String>,
    /// What a certificate of this version says about the level; `None` without one, or with other options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certified: Option<Certified>,
}

/// What a certificate says about a level (docs/durability.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certified {
    /// The measured durability class.
    #[schemars(with = "String")]
    pub class: Measured,
    /// Crashes that the level must survive, before which something was acknowledged; in records of older versions of all kinds.
    pub crashes: u64,
    /// Those of them after which acknowledged data was not as it was.
    pub losses: u64,
    /// Whether the certificate contradicts the level.
    pub is_contradicted: bool,
}

impl Observed {
    /// Why the level is contradicted; `None` if it is not.
    pub fn contradiction(&self) -> Option<&str> {
        let is_contradicted = self.verdict == AuditVerdict::Contradicted;
        is_contradicted.then(|| self.reason.as_deref().unwrap_or_default())
    }
}

/// What the observation says about the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum AuditVerdict {
    /// The calls are those of the claimed level.
    Agrees,
    /// Every commit was synced, although the claimed level does not require it.
    #[strum(serialize = "stronger than claimed")]
    Stronger,
    /// A commit was acknowledged before the calls that the level requires.
    Contradicted,
    /// The observation decides nothing.
    #[strum(serialize = "not observed")]
    NotObserved,
}

impl Audit {
    /// The section of a shape.
    pub fn section(&self, shape: Shape) -> Option<&Section> {
        self.sections.iter().find(|section| section.shape == shape)
    }

    /// What the pass says about a phase with commits of this shape.
    pub fn observed(&self, shape: Shape) -> Observed {
        let (verdict, reason) = self.verdict();
        let syncs_per_commit = self.section(shape).and_then(Section::syncs_per_commit);
        let calls_per_commit = self.section(shape).map(Section::calls_per_commit).unwrap_or_default();
        let version = self.version.as_deref().filter(|_| self.options.is_empty());
        let certified = version.and_then(|version| certified(&self.engine, version, self.level)).cloned();
        Observed { syncs_per_commit, calls_per_commit, verdict, reason, certified }
    }

    /// The verdict, with its reason unless the observation agrees with the claim.
    pub fn verdict(&self) -> (AuditVerdict, Option<String>) {
        use AuditVerdict::{Agrees, Contradicted, NotObserved, Stronger};
        if let Some(broken) = self.broken() {
            return match self.blindness() {
                Some(reason) => (NotObserved, Some(reason)),
                None => (Contradicted, Some(broken)),
            };
        }
        if let Some(reason) = &self.unseen {
            return (NotObserved, Some(reason.clone()));
        }
        let is_synced = |section: &Section| section.commits > 0 && section.without_sync == 0;
        if self.level < Durability::Power && !self.sections.is_empty() && self.sections.iter().all(is_synced)
        {
            return (Stronger, Some("a sync began in every commit, before its acknowledgement".into()));
        }
        (Agrees, None)
    }

    /// The commits that were acknowledged without the calls that the level requires.
    fn broken(&self) -> Option<String> {
        let lacking = |section: &Section| match self.level {
            Durability::Power => section.without_sync,
            Durability::Process => section.without_write,
            Durability::None | Durability::Default => 0,
        };
        let section = self.sections.iter().find(|section| lacking(section) > 0)?;
        let call = if self.level == Durability::Power { "sync" } else { "write" };
        let ranges = section.calls.get(RANGE_FLUSH).filter(|_| self.level == Durability::Power);
        let ranges = ranges.map_or(String::new(), |count| {
            format!(
                "; {count} calls of {RANGE_FLUSH}, which flushes neither metadata nor the device's cache, are no syncs"
            )
        });
        Some(format!(
            "{} of {} {} were acknowledged before any {call} began{ranges}",
            lacking(section),
            section.commits,
            section.shape.plural()
        ))
    }

    /// Why missing calls prove nothing.
    fn blindness(&self) -> Option<String> {
        let has_called = |name: &str| {
            self.before.contains_key(name)
                || self.sections.iter().any(|section| section.calls.contains_key(name))
        };
        let blind = BLIND.iter().find(|(name, _)| has_called(name)).map(|(_, reason)| reason.to_string());
        let is_mapped = self.level == Durability::Process && has_called(MAPPING);
        let mapped = || {
            is_mapped.then(|| {
                "it writes to files through shared mappings, and what is stored there is not seen".into()
            })
        };
        blind.or_else(mapped)
    }
}
