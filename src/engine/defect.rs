//! Known defects of engines, as their engine.toml declares them: each of one version, so that a newer one is tried.

use serde::{Deserialize, Serialize};

/// What is done about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefectOutcome {
    /// The driver uses the engine so that nothing meets it.
    Avoided,
    /// A phase that meets it is not run.
    Refused,
}

/// A known defect of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defect {
    /// The version of the library that has it, as open reports it.
    pub version: String,
    /// What goes wrong, a sentence.
    pub what: String,
    /// How it is seen: a test, or a command.
    pub reproduction: String,
    /// What is done about it.
    pub outcome: DefectOutcome,
    /// The phases that meet it; for a refused one.
    #[serde(default)]
    pub meets: Meets,
}

/// Phases that meet a defect: those of which all of this is true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meets {
    /// They run all of these kinds.
    pub kinds: Vec<String>,
    /// Their scans go downward.
    pub reverse: bool,
    /// They have as many threads or more.
    pub threads: usize,
    /// Their database has as many keys or more.
    pub keys: u64,
}

/// A phase, as far as a defect asks.
pub struct Asked<'p> {
    /// The kinds that it runs.
    pub kinds: &'p [&'p str],
    /// Whether its scans go downward.
    pub reverse: bool,
    /// Its threads.
    pub threads: usize,
    /// Keys of its database.
    pub keys: u64,
}

impl Defect {
    /// Why a phase is not run on this version of the engine; none: it does not meet the defect.
    pub fn refusal(&self, version: &str, phase: &Asked<'_>) -> Option<String> {
        let is_met = self.outcome == DefectOutcome::Refused
            && self.version == version
            && self.meets.kinds.iter().all(|kind| phase.kinds.contains(&kind.as_str()))
            && (phase.reverse || !self.meets.reverse)
            && phase.threads >= self.meets.threads
            && phase.keys >= self.meets.keys;
        is_met.then(|| format!("known defect of version {version}: {}", self.what))
    }

    /// A line for people.
    pub fn text(&self) -> String {
        let outcome = match self.outcome {
            DefectOutcome::Avoided => "the driver avoids it",
            DefectOutcome::Refused => "phases that meet it are not run",
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
        let all = || Asked { kinds: &kinds, reverse: true, threads: 2, keys: 100 };
        let reason = defect.refusal("1.2", &all()).unwrap();
        assert_eq!(reason, "known defect of version 1.2: rows get lost");
        assert_eq!(defect.refusal("1.3", &all()), None);
        assert_eq!(defect.refusal("1.2", &Asked { kinds: &kinds[..2], ..all() }), None);
        assert_eq!(defect.refusal("1.2", &Asked { reverse: false, ..all() }), None);
        assert_eq!(defect.refusal("1.2", &Asked { threads: 1, ..all() }), None);
        assert_eq!(defect.refusal("1.2", &Asked { keys: 99, ..all() }), None);
        let avoided = Defect { outcome: DefectOutcome::Avoided, ..defect };
        assert_eq!(avoided.refusal("1.2", &all()), None);
        assert!(avoided.text().contains("the driver avoids it"));
    }
}
