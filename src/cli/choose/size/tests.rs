//! Tests of the sizes: they keep the time, and the ratio of data to memory.

use super::super::needs::tests::needs;
use super::*;
use proptest::prelude::*;

/// The most seconds of a run of this size: each load takes all of its time.
fn most_seconds(needs: &Needs, size: &Size, engines: usize) -> f64 {
    let from_disk = size.memory_bytes.is_some();
    let (load, rest) = seconds_of(size.keys, needs.row_bytes(), from_disk);
    let phases: f64 = needs.phase_seconds().iter().map(|seconds| seconds * size.pace).sum();
    let warm_up = needs.warm_up_seconds(needs.phase_seconds().len());
    let trial = rest - LOAD_RESERVE * load + size.load_seconds + phases + warm_up;
    let floor = if needs.rate.is_some() { phases + warm_up } else { 0.0 };
    (trial * engines as f64 + floor) * f64::from(RUNS)
}

#[test]
fn data_larger_than_memory_keep_their_ratio_to_it() {
    let larger = Needs { data_bytes: 40 << 30, memory_bytes: Some(10 << 30), ..needs() };
    let size = larger.size(1440, 8, &Cap::Possible).expect("a day is enough");
    let ratio = (size.keys * 116) as f64 / size.memory_bytes.unwrap() as f64;
    assert!((3.99..=4.01).contains(&ratio), "{ratio}");
    assert!(
        size.notes[0].contains("with 256 MiB of memory, instead of 40 GiB with 10 GiB"),
        "{:?}",
        size.notes
    );
    let huge = Needs { data_bytes: 1 << 50, ..larger.clone() };
    let size = huge.size(1440, 8, &Cap::Possible).expect("a day is enough");
    assert!(
        size.notes[1].contains("4.0 times the memory, the largest ratio that is measured"),
        "{:?}",
        size.notes
    );
    let fits = Needs { data_bytes: 10 << 20, memory_bytes: Some(1 << 30), ..needs() };
    let size = fits.size(4, 2, &Cap::Possible).expect("it is little");
    assert!(
        size.memory_bytes.is_none() && size.notes.is_empty() && size.keys == (10 << 20) / 116,
        "{size:?}"
    );
}

#[test]
fn a_time_too_short_for_data_larger_than_memory_says_what_would_do() {
    let larger = Needs { data_bytes: 200_000_000_000, memory_bytes: Some(16 << 30), ..needs() };
    let short = larger.size(4, 8, &Cap::Possible).expect_err("it takes longer");
    assert!(short.exceeds_memory && short.minutes > 4, "{short:?}");
    assert!(larger.size(short.minutes, 8, &Cap::Possible).is_ok(), "{short:?}");
    assert!(larger.size(short.minutes - 1, 8, &Cap::Possible).is_err(), "{short:?}");
}

#[test]
fn where_memory_cannot_be_limited_the_data_fit_into_it() {
    let larger = Needs { data_bytes: 200_000_000_000, memory_bytes: Some(16 << 30), ..needs() };
    let size = larger.size(4, 8, &Cap::Impossible("no controller".into())).expect("it fits");
    assert!(size.memory_bytes.is_none(), "{size:?}");
    assert!(
        size.notes.iter().any(|note| note.contains("cannot be limited here (no controller)")),
        "{:?}",
        size.notes
    );
}

#[test]
fn a_phase_at_a_rate_has_the_requests_that_its_limits_need() {
    let of = |rate: &str, limits: Option<&str>| {
        let limits = limits.map(|limits| limits.parse().unwrap());
        Needs { rate: Some(rate.parse().unwrap()), limits, ..needs() }
    };
    let found = |rate, limits| {
        let needs = of(rate, limits);
        (needs.shortest_phase(), needs.why_long())
    };
    assert_eq!(needs().shortest_phase(), PHASE_SECONDS_MIN);
    assert_eq!(found("poisson:20k", Some("p99<1ms")), (1.0, None));
    let near = |(seconds, _): &(f64, Option<String>), wanted: f64| (seconds / wanted - 1.0).abs() < 0.001;
    // 1,200 for a p99.
    let slow = found("poisson:100", None);
    assert!(near(&slow, 12.0), "{slow:?}");
    let words = "response times need 1,200 requests in each phase of a run, which take 12 s at poisson:100";
    assert_eq!(slow.1.as_deref(), Some(words));
    // Twice 46,050 in five runs.
    let tail = found("poisson:1k", Some("p99<1ms,p99.99<1s"));
    assert!(near(&tail, 18.42), "{tail:?}");
    let words =
        "p99<1ms,p99.99<1s needs 18,420 requests in each phase of a run, which take 19 s at poisson:1k";
    assert_eq!(tail.1.as_deref(), Some(words));
    let bursts = found("bursts:1k,20k,10s,0.2", None);
    assert!(
        near(&bursts, 10.0) && bursts.1.as_ref().is_some_and(|why| why.contains("a whole period of 10 s"))
    );
    let mean = found("steps:100,300", None);
    assert!(near(&mean, 6.0), "{mean:?}");
    let short = of("poisson:100", None).size(4, 8, &Cap::Possible).expect_err("it takes longer");
    assert!(of("poisson:100", None).size(short.minutes, 8, &Cap::Possible).is_ok(), "{short:?}");
}

proptest! {
    #[test]
    fn a_run_takes_at_most_a_fifth_longer_than_the_minutes(
        (ordered, transactions, power) in any::<(bool, bool, bool)>(),
        value_bytes in 0..=1_u64 << 20,
        data_bytes in 1..=1_u64 << 50,
        memory_bytes in proptest::option::of((32_u64 << 20)..1 << 50),
        minutes in 1..=1440_u64,
        engines in 1..60_usize,
        rate in proptest::option::of(1..1_000_000_u32),
    ) {
        use kvdyno_core::workload::Durability;
        let durability = if power { Durability::Power } else { Durability::Process };
        let needs = Needs { ordered, transactions, durability, value_bytes, data_bytes, memory_bytes, ..needs() };
        let rate = rate.map(|rate| format!("poisson:{rate}").parse().unwrap());
        let needs = Needs { limits: rate.as_ref().map(|_| "p99.9<1ms".parse().unwrap()), rate, ..needs };
        let (minutes, size) = match needs.size(minutes, engines, &Cap::Possible) {
            Ok(size) => (minutes, size),
            Err(TooShort { minutes: enough, .. }) => {
                prop_assert!(enough > minutes, "{enough} minutes would do, and {minutes} do not");
                (enough, needs.size(enough, engines, &Cap::Possible).expect("they are enough"))
            }
        };
        let most = most_seconds(&needs, &size, engines);
        prop_assert!(most <= minutes as f64 * 72.0, "{most} s of {minutes} min: {size:?}");
        prop_assert!(size.pace > 0.0 && size.pace <= 1.0, "{size:?}");
        if needs.rate.is_some() {
            let shortest = needs.phase_seconds().into_iter().fold(f64::INFINITY, f64::min) * size.pace;
            prop_assert!(shortest * 1.000_001 >= needs.shortest_phase(), "{shortest} s: {size:?}");
        }
    }
}
