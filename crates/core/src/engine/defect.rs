//! Known defects of engines, as declared in their engine.toml: each for one version, so that newer versions are run.

use serde::{Deserialize, Serialize};

/// How a defect is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefectOutcome {
    /// The driver uses the engine in a way that avoids it.
    Avoided,
    /// A phase that triggers it is not run.
    Refused,
}

/// A known defect of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defect {
    /// The variant of the engine that has it; none: all variants.
    #[serde(default)]
    pub variant: Option<String>,
    /// The version of the library that has it, as open reports it.
    pub version: String,
    /// What goes wrong, in a sentence.
    pub what: String,
    /// How to reproduce it: a test, or a command.
    pub reproduction: String,
    /// How it is handled.
    pub outcome: DefectOutcome,
    /// The phases that trigger it, for a refused one.
    #[serde(default)]
    pub meets: Meets,
}

/// Phases that trigger a defect: those that meet all of these conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meets {
    /// They run all of these kinds of ops.
    pub kinds: Vec<String>,
    /// Their scans are in descending order.
    pub reverse: bool,
    /// They have at least this many threads.
    pub threads: usize,
    /// Their database has at least this many keys.
    pub keys: u64,
}

/// The properties of a phase that matter for defects.
pub struct PhaseProfile<'p> {
    /// The kinds of ops that it runs.
    pub kinds: &'p [&'p str],
    /// Whether its scans are in descending order.
    pub reverse: bool,
    /// Its number of threads.
    pub threads: usize,
    /// Number of keys in its database.
    pub keys: u64,
}

impl Defect {
    /// Whether the engine of this name has it.
    pub fn is_of(&self, name: &str) -> bool {
        self.variant.as_ref().is_none_or(|variant| variant == name)
    }

    /// Why a phase is not run on this version of the engine; `None` if it does not trigger the defect.
    pub fn refusal(&self, version: &str, phase: &PhaseProfile<'_>) -> Option<String> {
        let is_met = self.outcome == DefectOutcome::Refused
            && self.version == version
            && self.meets.kinds.iter().all(|kind| phase.kinds.contains(&kind.as_str()))
            && (phase.reverse || !self.meets.reverse)
            && phase.threads >= self.meets.threads
            && phase.keys >= self.meets.keys;
        is_met.then(|| format!("known defect of version {version}: {}", self.what))
    }

    /// What goes wrong in this version unless the driver avoids it, if it does.
    pub fn avoided_in(&self, version: &str) -> Option<&str> {
        (self.outcome == DefectOutcome::Avoided && self.version == version).then_some(&self.what)
    }

    /// A line for users.
    pub fn text(&self) -> String {
        let outcome = match self.outcome {
            DefectOutcome::Avoided => "the driver avoids it",
            DefectOutcome::Refused => "phases that trigger it are not run",
        };
        format!("{}: {} ({outcome}; {})", self.version, self.what, self.reproduction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_refused_where_all_is_met_on_the_version_that_has_the_defect() {
        let defect: Defect = toml::from_str(
            "version = \"1.2\"\nwhat = \"rows get lost\"\nreproduction = \"a test\"\noutcome = \"refused\"\n\
             meets = { kinds = [\"scan\", \"delete\"], reverse = true, threads = 2, keys = 100 }\n",
        )
        .unwrap();
        let kinds = ["get", "scan", "delete"];
        let all = || PhaseProfile { kinds: &kinds, reverse: true, threads: 2, keys: 100 };
        let reason = defect.refusal("1.2", &all()).unwrap();
        assert_eq!(reason, "known defect of version 1.2: rows get lost");
        assert_eq!(defect.refusal("1.3", &all()), None);
        assert_eq!(defect.refusal("1.2", &PhaseProfile { kinds: &kinds[..2], ..all() }), None);
        assert_eq!(defect.refusal("1.2", &PhaseProfile { reverse: false, ..all() }), None);
        assert_eq!(defect.refusal("1.2", &PhaseProfile { threads: 1, ..all() }), None);
        assert_eq!(defect.refusal("1.2", &PhaseProfile { keys: 99, ..all() }), None);
        let avoided = Defect { outcome: DefectOutcome::Avoided, ..defect };
        assert_eq!(avoided.refusal("1.2", &all()), None);
        assert!(avoided.text().contains("the driver avoids it"));
        assert_eq!((avoided.avoided_in("1.2"), avoided.avoided_in("1.3")), (Some("rows get lost"), None));
        assert!(avoided.is_of("any"));
        let of_hash = Defect { variant: Some("hash".to_string()), ..avoided };
        assert!(of_hash.is_of("hash") && !of_hash.is_of("tree"));
    }
}
