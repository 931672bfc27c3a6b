//! What is known about the safety of an engine at a durability level: from the certificates that the executable has, and from the
//! sync calls that a run has observed.

use super::certificate::{CertifiedLevel, certified_at};
use crate::workload::Durability;
use kvdyno_measure::text::counted;
use serde::Serialize;
use std::fmt;

/// The safety of one version of an engine, with its options, at an effective level; from the best to the worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Safety {
    /// The level promises nothing that a crash may break.
    NothingToProve,
    /// A certificate has crashes that the level must survive, and none of them lost anything; rare losses are still possible.
    NoLossSeen {
        /// Their number: at `process` of kills, at `power` of kills and power cuts.
        crashes: u64,
        /// Whether a crash while the database was created has left one that can neither be opened nor be created again.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        has_broken_creation: bool,
    },
    /// No certificate decides it.
    NotTested {
        /// Why the certificates that there are do not; `None`: there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The engine does not keep what the level promises.
    Contradicted {
        /// What was seen.
        reason: String,
        /// The page of the certificate, from the root of the repository; `None`: the run itself has seen it.
        #[serde(skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
}

impl Safety {
    /// What the certificates say of an engine in this version, with these options, at this effective level; `None`: unknown.
    pub fn certified(
        engine: &str,
        version: Option<&str>,
        options: &[(String, String)],
        level: Option<Durability>,
    ) -> Safety {
        let level = match level {
            Some(level @ (Durability::Process | Durability::Power)) => level,
            Some(Durability::None | Durability::Default) | None => return Safety::NothingToProve,
        };
        let own = certified_at(engine, level).find(|row| Some(row.version.as_str()) == version);
        let newest = certified_at(engine, level).next_back();
        let Some(row) = own.or(newest) else { return Safety::NotTested { reason: None } };
        if !options.is_empty() {
            return Safety::NotTested { reason: Some("its certificate is for default options".to_string()) };
        }
        let found = Safety::of_row(row);
        match own {
            Some(_) => found,
            None => {
                let reason = format!("not tested in this version; version {}: {found}", row.version);
                Safety::NotTested { reason: Some(reason) }
            }
        }
    }

    fn of_row(row: &CertifiedLevel) -> Safety {
        match &row.contradiction {
            Some(reason) => Safety::Contradicted { reason: reason.clone(), page: Some(row.page()) },
            None if row.must_survive > 0 => Safety::NoLossSeen {
                crashes: row.must_survive,
                has_broken_creation: row.has_broken_creation(),
            },
            None if row.level == Durability::Power => {
                Safety::NotTested { reason: Some("not tested with power cuts".to_string()) }
            }
            None => Safety::NotTested { reason: None },
        }
    }

    /// The same, unless the sync calls of the run contradict the level: `contradiction` is what they show.
    pub(super) fn unless_seen(self, contradiction: Option<&str>) -> Safety {
        match contradiction {
            Some(reason) => Safety::Contradicted { reason: reason.to_string(), page: None },
            None => self,
        }
    }

    /// Whether the engine does not keep what the level promises.
    pub fn is_contradicted(&self) -> bool {
        matches!(self, Safety::Contradicted { .. })
    }

    /// Its mark beside a name, one character; none: there is nothing to prove.
    pub fn mark(&self) -> Option<char> {
        match self {
            Safety::NothingToProve => None,
            Safety::NoLossSeen { .. } => Some('+'),
            Safety::NotTested { .. } => Some('?'),
            Safety::Contradicted { .. } => Some('X'),
        }
    }

    /// The cell of a table.
    pub fn short(&self) -> &'static str {
        match self {
            Safety::NothingToProve => "-",
            Safety::NoLossSeen { .. } => "no loss seen",
            Safety::NotTested { .. } => "not tested",
            Safety::Contradicted { .. } => "CONTRADICTED",
        }
    }
}

impl fmt::Display for Safety {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Safety::NoLossSeen { crashes, has_broken_creation } => {
                let creation = if *has_broken_creation { "; creation is not atomic" } else { "" };
                write!(out, "no loss seen ({}){creation}", counted(*crashes, "crash", "crashes"))
            }
            Safety::Contradicted { reason, .. } => write!(out, "contradicted: {reason}"),
            Safety::NothingToProve => out.write_str("-"),
            Safety::NotTested { reason: Some(reason) } => out.write_str(reason),
            Safety::NotTested { reason: None } => out.write_str("not tested"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certified row.
    fn row(engine: &str, level: Durability) -> &'static CertifiedLevel {
        certified_at(engine, level).next_back().unwrap_or_else(|| panic!("no certificate of {engine}"))
    }

    fn at(engine: &str, version: &str, level: Durability) -> Safety {
        Safety::certified(engine, Some(version), &[], Some(level))
    }

    #[test]
    fn a_certificate_is_of_one_version_and_of_default_options() {
        let row = row("badger", Durability::Process);
        let own = at("badger", &row.version, Durability::Process);
        let Safety::Contradicted { reason, page: Some(page) } = &own else { panic!("{own:?}") };
        assert!(reason.contains("kills left lost or wrong data"), "{reason}");
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        assert!(file.is_file(), "{page}");
        let other = at("badger", "v0.0.0", Durability::Process);
        let expected = format!("not tested in this version; version {}: contradicted: {reason}", row.version);
        assert_eq!((other.to_string(), other.mark()), (expected, Some('?')));
        let options = [("sync".to_string(), "true".to_string())];
        let changed = Safety::certified("badger", Some(&row.version), &options, Some(Durability::Process));
        assert_eq!(changed.to_string(), "its certificate is for default options");
    }

    #[test]
    fn the_crashes_of_a_level_are_those_that_it_must_survive() {
        let of = |level: Durability| at("lmdb", &row("lmdb", level).version, level);
        let (Safety::NoLossSeen { crashes: kills, .. }, Safety::NoLossSeen { crashes: all, .. }) =
            (of(Durability::Process), of(Durability::Power))
        else {
            panic!("{} {}", of(Durability::Process), of(Durability::Power))
        };
        // Power cuts say nothing about `process`.
        assert!(0 < kills && kills < all, "{kills} {all}");
        let text = format!("no loss seen ({kills} crashes); creation is not atomic");
        assert_eq!(of(Durability::Process).to_string(), text);
    }

    #[test]
    fn what_tests_beyond_a_certificate_have_contradicted_has_no_plus_and_a_broken_creation_is_told() {
        let found = at("sled", &row("sled", Durability::Process).version, Durability::Process);
        let Safety::Contradicted { reason, page: Some(page) } = &found else { panic!("{found:?}") };
        assert_eq!(reason, "2 of 2400 kills left lost or wrong data");
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        let text = std::fs::read_to_string(file).expect("the page");
        assert!(text.contains("2 of 2400 kills"), "{page}");
        let creation = at("redb", &row("redb", Durability::Power).version, Durability::Power);
        assert!(creation.to_string().ends_with("; creation is not atomic"), "{creation}");
    }

    #[test]
    fn a_certificate_of_power_without_a_power_cut_proves_nothing() {
        let known = row("lmdb", Durability::Power);
        let uncut = CertifiedLevel { must_survive: 0, ..known.clone() };
        let found = Safety::of_row(&uncut);
        assert_eq!((found.to_string().as_str(), found.mark()), ("not tested with power cuts", Some('?')));
        assert!(matches!(Safety::of_row(known), Safety::NoLossSeen { .. }));
    }

    #[test]
    fn what_has_no_certificate_is_not_tested_and_a_level_that_promises_nothing_needs_none() {
        for level in [Durability::Process, Durability::Power] {
            assert_eq!(at("no-such-engine", "1", level), Safety::NotTested { reason: None });
        }
        for level in [Some(Durability::None), Some(Durability::Default), None] {
            let found = Safety::certified("badger", Some("v4.9.6"), &[], level);
            assert_eq!((found.to_string(), found.mark()), ("-".to_string(), None));
        }
    }

    #[test]
    fn what_a_run_has_seen_is_graver_than_what_a_certificate_says() {
        let own = at("lmdb", &row("lmdb", Durability::Power).version, Durability::Power);
        assert_eq!(own.clone().unless_seen(None), own);
        let seen = own.unless_seen(Some("20 of 20 puts were acknowledged before any sync began"));
        assert!(seen.is_contradicted() && seen.mark() == Some('X'), "{seen:?}");
        let no_loss = Safety::NoLossSeen { crashes: 1, has_broken_creation: false };
        let order = [Safety::NothingToProve, no_loss, Safety::NotTested { reason: None }];
        assert!(order.is_sorted() && order.iter().all(|better| *better < seen));
    }
}
