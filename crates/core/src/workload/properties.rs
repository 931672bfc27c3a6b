//! Property tests of workloads: written files parse back to the same workload, and nothing panics.

use super::file::WorkloadFile;
use super::*;
use crate::generator::tests::distribution;
use crate::generator::{Distribution, Encoding, ParetoShape, Rate, SizeSpec};
use proptest::prelude::*;
use std::collections::HashMap;

/// Any value of a type, for the fields of tables.
pub(super) trait Any: Sized + std::fmt::Debug {
    fn any() -> BoxedStrategy<Self>;
}

macro_rules! any {
    ($($type:ty => $strategy:expr;)*) => {
        $(impl Any for $type {
            fn any() -> BoxedStrategy<$type> {
                $strategy.boxed()
            }
        })*
    };
}

any! {
    bool => any::<bool>();
    u32 => any::<u32>();
    u64 => any::<u64>();
    f64 => number();
    String => "[ -~]{0,12}";
    SizeSpec => size();
    Distribution => distribution();
    Encoding => {
        use Encoding::*;
        prop::sample::select(vec![Binary, Decimal, Hex, Hashed, Random])
    };
    DataType => prop::sample::select(vec![DataType::String, DataType::Hash, DataType::Sorted, DataType::List]);
    Durability => {
        use Durability::*;
        prop::sample::select(vec![None, Process, Power, Default])
    };
    Transaction => prop::sample::select(vec![Transaction::Whole, Transaction::Aborted]);
    Emulate => Just(Emulate::Merge);
    Mix => mix();
    Rate => prop::sample::select(vec!["20k", "0.5", "poisson:3", "steps:1k,2k", "ramp:5-1M", "poisson:sine:10,2.5,3s"])
        .prop_map(|text| text.parse().unwrap());
    Until => prop::sample::select(vec![Until::Limit, Until::Steady]);
    ParetoShape => (0.0..=10.0f64, 0.001..=1e9f64).prop_map(|(k, sigma)| ParetoShape { k, sigma });
    Arriving => prop::sample::select(vec![Arriving::Shared, Arriving::Own]);
    WhenLate => prop::sample::select(vec![WhenLate::Queue, WhenLate::Drop(0.25)]);
}

impl<T: Any + Clone + 'static> Any for Option<T> {
    fn any() -> BoxedStrategy<Option<T>> {
        prop::option::of(T::any()).boxed()
    }
}

impl<T: Any + Clone + 'static> Any for Vec<T> {
    fn any() -> BoxedStrategy<Vec<T>> {
        prop::collection::vec(T::any(), 0..4).boxed()
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(0.1), 0.0..1.0f64, 0.0..1e18f64]
}

fn size() -> impl Strategy<Value = SizeSpec> {
    prop_oneof![
        (1u32..).prop_map(SizeSpec::Fixed),
        (1u32..100, 100u32..5000).prop_map(|(low, high)| SizeSpec::Uniform(low, high)),
        (1u32..100, 100u32..5000).prop_map(|(low, high)| SizeSpec::Zipf(low, high)),
        (ParetoShape::any(), 1u32..100, 100u32..5000)
            .prop_map(|(shape, low, high)| SizeSpec::Pareto(shape, low, high)),
        (1u32..1000, 1u32..100).prop_map(|(mean, spread)| SizeSpec::Normal(mean.into(), spread.into())),
        prop::collection::vec((1u32..1000, (1u32..9).prop_map(f64::from)), 1..4)
            .prop_map(SizeSpec::Histogram),
    ]
}

fn mix() -> impl Strategy<Value = Mix> {
    prop::collection::vec(number(), OpKind::COUNT).prop_map(|shares| {
        let fields = OpKind::ALL.map(OpKind::field).into_iter().zip(shares);
        serde_json::from_value(serde_json::json!(fields.collect::<HashMap<_, _>>())).unwrap()
    })
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let texts = ("[a-z]{1,8}", "\\PC{0,20}");
    let bytes = Option::<u64>::any();
    let times = [Option::<f64>::any(), Option::<f64>::any()];
    let options = (times, bytes.clone(), bytes, Durability::any(), any::<[bool; 2]>(), Collections::any());
    let lists = (Vec::<Index>::any(), prop::collection::vec("[a-z]{1,8}", 0..3), Vec::<Phase>::any());
    (texts, any::<[u64; 2]>(), any::<[u32; 3]>(), (KeySpec::any(), ValueSpec::any()), options, lists)
        .prop_map(
            |(
                (name, about),
                [seed, keys],
                [runs, keyspaces, rounds],
                (key, value),
                (
                    [budget_seconds, load_seconds],
                    cache_bytes,
                    memory_bytes,
                    durability,
                    [or_weaker, sweep_once],
                    collections,
                ),
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
                sweep_once,
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
