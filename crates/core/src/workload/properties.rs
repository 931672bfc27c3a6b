//! Property tests of workloads: written files parse back to the same workload, and nothing panics.

use super::file::WorkloadFile;
use super::*;
use crate::generator::tests::distribution;
use crate::generator::{Encoding, SizeSpec};
use proptest::prelude::*;
use std::collections::HashMap;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(0.1), 0.0..1.0f64, 0.0..1e18f64]
}

fn size() -> impl Strategy<Value = SizeSpec> {
    prop_oneof![
        (1u32..).prop_map(SizeSpec::Fixed),
        (1u32..100, 100u32..5000).prop_map(|(low, high)| SizeSpec::Uniform(low, high)),
        (1u32..100, 100u32..5000).prop_map(|(low, high)| SizeSpec::Zipf(low, high)),
        (1u32..1000, 1u32..100).prop_map(|(mean, spread)| SizeSpec::Normal(mean.into(), spread.into())),
        prop::collection::vec((1u32..1000, (1u32..9).prop_map(f64::from)), 1..4)
            .prop_map(SizeSpec::Histogram),
    ]
}

fn level() -> impl Strategy<Value = Durability> {
    prop::sample::select(vec![Durability::None, Durability::Process, Durability::Power, Durability::Default])
}

fn mix() -> impl Strategy<Value = Mix> {
    prop::collection::vec(number(), OpKind::COUNT).prop_map(|shares| {
        let fields = OpKind::ALL.map(OpKind::field).into_iter().zip(shares);
        serde_json::from_value(serde_json::json!(fields.collect::<HashMap<_, _>>())).unwrap()
    })
}

fn scan() -> impl Strategy<Value = Scan> {
    (any::<[u32; 3]>(), any::<[bool; 3]>()).prop_map(
        |([rows, index, rows_per_call], [uniform_rows, reverse, prefix])| Scan {
            rows,
            uniform_rows,
            reverse,
            prefix,
            index,
            rows_per_call,
        },
    )
}

fn index() -> impl Strategy<Value = Index> {
    (0u32..60, 0u32..60, any::<bool>()).prop_map(|(from, length, clustering)| Index {
        from,
        length,
        clustering,
    })
}

fn phase() -> impl Strategy<Value = Phase> {
    let own = (prop::option::of(number()), prop::option::of(level()), prop::option::of(size()));
    let transactions = vec![None, Some(Transaction::Whole), Some(Transaction::Aborted)];
    let draws = (distribution(), mix(), scan(), own, prop::sample::select(transactions));
    ("[a-z]{1,8}", draws, any::<[bool; 9]>(), any::<[u32; 6]>(), any::<u64>(), [number(), number(), number()])
        .prop_map(
            |(
                name,
                (distribution, mix, scan, (existing, durability, value_size), transaction),
                bools,
                counts,
                ops,
                numbers,
            )| Phase {
                name,
                mix,
                distribution,
                clustered: bools[0],
                grows: bools[1],
                miss: numbers[0],
                existing,
                threads: counts[0],
                readers: counts[1],
                writers: counts[2],
                ops,
                each_key: bools[2],
                each_round: bools[6],
                seconds: numbers[1],
                warmup_seconds: numbers[2],
                join: counts[3],
                atomic: bools[7],
                transaction,
                emulate: if bools[8] { vec![Emulate::Merge] } else { Vec::new() },
                multi_get_keys: counts[4],
                transaction_ops: counts[5],
                scan,
                settle_before: bools[3],
                reopen_before: bools[4],
                drop_caches_before: bools[5],
                durability,
                value_size,
            },
        )
}

fn key() -> impl Strategy<Value = KeySpec> {
    let encoding =
        vec![Encoding::Binary, Encoding::Decimal, Encoding::Hex, Encoding::Hashed, Encoding::Random];
    let numbers = (any::<[u64; 2]>(), any::<u64>(), any::<u32>());
    let file = prop::option::of("[ -~]{0,12}");
    (size(), prop::sample::select(encoding), any::<bool>(), numbers, file).prop_map(
        |(size, encoding, scattered, ([spacing, alternate], prefix_groups, prefix_size), file)| KeySpec {
            size,
            encoding,
            scattered,
            spacing,
            alternate,
            prefix_groups,
            prefix_size,
            file,
        },
    )
}

fn collections() -> impl Strategy<Value = Collections> {
    let types = vec![DataType::String, DataType::Hash, DataType::Sorted, DataType::List];
    (any::<u32>(), prop::sample::select(types)).prop_map(|(count, r#type)| Collections { count, r#type })
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let texts = ("[a-z]{1,8}", "\\PC{0,20}");
    let value = (size(), number()).prop_map(|(size, compressed_share)| ValueSpec { size, compressed_share });
    let bytes = prop::option::of(any::<u64>());
    let times = [prop::option::of(number()), prop::option::of(number())];
    let options = (times, bytes.clone(), bytes, level(), any::<bool>(), collections());
    let lists = (
        prop::collection::vec(index(), 0..4),
        prop::collection::vec("[a-z]{1,8}", 0..3),
        prop::collection::vec(phase(), 0..4),
    );
    (texts, any::<[u64; 2]>(), any::<[u32; 3]>(), key(), value, options, lists).prop_map(
        |(
            (name, about),
            [seed, keys],
            [runs, keyspaces, rounds],
            key,
            value,
            ([budget_seconds, load_seconds], cache_bytes, memory_bytes, durability, or_weaker, collections),
            (indexes, layouts, phases),
        )| Workload {
            name,
            source: (about.len() > 5).then(|| about.clone()),
            fixes: layouts.clone(),
            about,
            variant_of: None,
            layouts,
            seed,
            runs,
            budget_seconds,
            load_seconds,
            keys,
            keyspaces,
            collections,
            key,
            value,
            indexes,
            durability,
            or_weaker,
            cache_bytes,
            memory_bytes,
            rounds,
            faults: Vec::new(),
            phases,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back_equal(workload in any_workload()) {
        let text = workload.to_toml();
        let file = toml::from_str::<WorkloadFile>(&text);
        let file = file.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(file.into_workload("stem"), workload, "{}", text);
    }

    #[test]
    fn checking_never_panics(workload in any_workload()) {
        if let Err(error) = workload.check() {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn shrinking_keeps_a_sound_workload_sound(share in 0.001..200.0f64, trials in 1usize..500) {
        let mut quick = builtin("quick").unwrap();
        quick.shrink_to(share);
        prop_assert!(quick.check().is_ok());
        prop_assert!(builtin("quick").unwrap().seconds_per_trial(trials).unwrap() > 0.0);
    }

    #[test]
    fn a_damaged_file_is_an_error_of_one_line_or_a_workload(
        at in any::<prop::sample::Index>(), put in "\\PC{0,3}", cut in 0usize..9,
    ) {
        let mut signs: Vec<char> = builtin_text("quick").unwrap().chars().collect();
        let at = at.index(signs.len());
        let end = (at + cut).min(signs.len());
        signs.splice(at..end, put.chars());
        let text: String = signs.into_iter().collect();
        if let Err(error) = parse(&text, "w.toml") {
            prop_assert!(error.line.is_some() && !error.to_string().contains('\n'), "{}", error);
        }
    }
}
