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
        rate: None,
        limits: None,
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
fn an_answer_by_throughput_says_how_response_times_decide_and_one_at_a_rate_what_it_mixes() {
    let lines = |needs: &Needs| {
        let size = needs.size(100_000, 8, &Cap::Possible).expect("there is time for all");
        needs.not_shown(&size, &[])
    };
    let closed = lines(&needs());
    assert!(closed[0].contains("--rate 20k --slo 'p99<1ms'"), "{closed:?}");
    let rate = Some("poisson:20k".parse().unwrap());
    let one = lines(&Needs { rate: rate.clone(), ..needs() });
    assert!(!one.iter().any(|line| line.contains("--rate") || line.contains("each phase")), "{one:?}");
    let several = lines(&Needs { rate, ordered: true, ..needs() });
    assert!(several[0].contains("each phase sends all of them (poisson:20k requests/s)"), "{several:?}");
}

#[test]
fn measured_phases_have_the_rate_and_a_load_has_none() {
    let asked = Needs {
        ordered: true,
        transactions: true,
        rate: Some("steps:1k,2k".parse().unwrap()),
        limits: Some("p99<1ms".parse().unwrap()),
        ..needs()
    };
    let size = asked.size(60, 8, &Cap::Possible).expect("there is time for all");
    let parsed = workload::parse(&asked.workload(&size), "choose").expect("it is valid");
    let rates: Vec<Option<String>> =
        parsed.phases.iter().map(|phase| phase.rate.as_ref().map(ToString::to_string)).collect();
    let rate = Some("steps:1k,2k".to_string());
    assert_eq!(rates, [None, rate.clone(), rate.clone(), rate]);
    assert!(parsed.phases[1..].iter().all(|phase| phase.warmup_seconds > 0.0 && phase.seconds >= 1.0));
    let answers = asked.answers();
    for wanted in [("requests", "steps:1k,2k a second"), ("limits", "p99<1ms")] {
        let is_there = answers.iter().any(|(name, answer)| (name.as_str(), answer.as_str()) == wanted);
        assert!(is_there, "{wanted:?} in {answers:?}");
    }
    assert!(!needs().answers().iter().any(|(name, _)| name == "requests" || name == "limits"));
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
