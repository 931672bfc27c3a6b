//! Tests of the rules, and of the workloads made of needs.

use super::*;
use crate::cli::choose::size::Cap;
use kvdyno_core::engine::catalogue;
use kvdyno_core::workload;
use kvdyno_prove::proven::proven;
use proptest::prelude::*;

pub(in super::super) fn needs() -> Needs {
    Needs {
        ordered: false,
        transactions: false,
        cache: false,
        durability: Durability::Process,
        any_safety: true,
        reads: 0.8,
        expiry: false,
        key_bytes: 16,
        value_bytes: 100,
        data_bytes: 1 << 30,
        memory_bytes: None,
        threads: 2,
        caller: None,
        one_file: false,
        processes: Processes::One,
        gives_space_back: false,
        released_since: None,
        languages: Accepted::Any,
        licences: Accepted::Any,
    }
}

/// The names of the catalogue's engines that meet all needs, as proven for this project.
fn fitting(needs: &Needs) -> Vec<&'static str> {
    let rules = needs.rules();
    let fits = |known: &&kvdyno_core::engine::Known| {
        let facts = Facts {
            name: &known.name,
            proven: proven(&known.name),
            is_reference: known.upstream == "this project",
            family: &known.family,
            language: &known.language,
            licence: &known.licence,
            properties: &known.properties,
            given: &[],
        };
        rules.iter().all(|rule| rule.is_met(&facts))
    };
    catalogue().iter().filter(fits).map(|known| known.name.as_str()).collect()
}

#[test]
fn each_need_rules_out_the_engines_that_do_not_meet_it() {
    let all = fitting(&needs());
    for name in ["redb", "lmdb", "rocksdb", "badger", "pogreb"] {
        assert!(all.contains(&name), "{name} in {all:?}");
    }
    assert!(
        !all.contains(&"memory-btree") && !all.contains(&"redis") && !all.contains(&"quick-cache"),
        "{all:?}"
    );
    let cases: [(Needs, &str, &str); 16] = [
        (Needs { any_safety: false, ..needs() }, "redb", "badger"),
        (Needs { any_safety: false, durability: Durability::Power, ..needs() }, "bbolt", "tkrzw-hash"),
        (Needs { ordered: true, ..needs() }, "redb", "pogreb"),
        (Needs { transactions: true, ..needs() }, "redb", "pogreb"),
        (Needs { durability: Durability::Power, ..needs() }, "redb", "sled"),
        (Needs { languages: Accepted::Only(vec!["Rust".into()]), ..needs() }, "redb", "lmdb"),
        (Needs { licences: Accepted::Permissive, ..needs() }, "rocksdb", "kyotocabinet"),
        (Needs { memory_bytes: Some(1 << 29), ..needs() }, "lmdb", "buntdb"),
        (Needs { caller: Some("Go".into()), ..needs() }, "lmdb", "redb"),
        (Needs { expiry: true, ..needs() }, "badger", "bbolt"),
        (Needs { key_bytes: 512, ..needs() }, "redb", "lmdb"),
        (Needs { one_file: true, ..needs() }, "redb", "rocksdb"),
        (Needs { processes: Processes::Several, ..needs() }, "lmdb", "redb"),
        (Needs { gives_space_back: true, ..needs() }, "rocksdb", "lmdb"),
        (Needs { released_since: Some("2024-01-01".into()), ..needs() }, "redb", "bolt"),
        (Needs { cache: true, durability: Durability::None, ..needs() }, "quick-cache", "redis"),
    ];
    for (needs, fits, does_not) in cases {
        let found = fitting(&needs);
        assert!(found.contains(&fits) && !found.contains(&does_not), "{needs:?}: {found:?}");
    }
}

#[test]
fn a_licence_with_alternatives_is_accepted_by_any_of_them() {
    let accepts = |accepted: &Accepted, licence| alternatives(licence).any(|one| accepted.accepts(one));
    let apache = Accepted::Only(vec!["apache-2.0".into()]);
    assert!(accepts(&apache, "GPL-2.0-only OR Apache-2.0") && accepts(&apache, "Apache-2.0"));
    assert!(!accepts(&apache, "MIT") && !accepts(&Accepted::Permissive, "AGPL-3.0-only OR GPL-2.0-only"));
    assert!(accepts(&Accepted::Permissive, "MIT OR Apache-2.0"));
    assert!(!accepts(&Accepted::Permissive, "BSD-3-Clause (1.8), GPL-2.0 (2.0)"));
}

#[test]
fn every_answer_says_that_a_p99_has_no_option_and_where_it_is() {
    let size = needs().size(100_000, 8, &Cap::Possible).expect("there is time for all");
    let lines = needs().not_shown(&size, &[]);
    assert!(
        lines[0].starts_with("`choose` has no option for a p99 limit; ")
            && lines[0].contains("`kvdyno report --full`"),
        "{lines:?}"
    );
}

proptest! {
    #[test]
    fn every_workload_is_valid_and_has_a_phase_for_each_need(
        (ordered, transactions, cache) in any::<(bool, bool, bool)>(),
        level in 0..3_usize,
        reads in 0..=100_u32,
        value_bytes in 0..=1_u64 << 20,
        data_bytes in 1..=1_u64 << 50,
        memory_bytes in proptest::option::of((32_u64 << 20)..1 << 50),
        threads in 1..=1024_u32,
    ) {
        let durability = [Durability::None, Durability::Process, Durability::Power][level];
        let reads = f64::from(reads) / 100.0;
        let needs = Needs {
            ordered, transactions, cache, durability, reads, value_bytes, data_bytes, memory_bytes, threads, ..needs()
        };
        let size = needs.size(100_000, 8, &Cap::Possible).expect("there is time for all");
        let text = needs.workload(&size);
        let parsed = workload::parse(&text, "choose").map_err(|error| TestCaseError::fail(format!("{error:?}\n{text}")))?;
        let names: Vec<&str> = parsed.phases.iter().map(|phase| phase.name.as_str()).collect();
        prop_assert_eq!(names.contains(&"scan"), ordered);
        prop_assert_eq!(names.contains(&"transactions"), transactions);
        prop_assert_eq!(&names[..2], ["load", "use"]);
        prop_assert!(parsed.keys >= 100 && parsed.durability == durability);
        prop_assert_eq!(parsed.memory_bytes, size.memory_bytes.map(|limit| limit + (16 << 20) + 16 * parsed.keys));
        prop_assert!(parsed.keys * (16 + value_bytes) <= (1 << 30) + (2_u64 << 30), "{} keys", parsed.keys);
    }
}
