//! Conversions are exact and the clock goes forward. No test depends on the speed of the machine.

use super::{Clock, Kind, PLAUSIBLE_NS_PER_TICK, monotonic_ns};

#[test]
fn a_tick_of_the_monotonic_clock_is_a_nanosecond() {
    let clock = Clock::monotonic();
    assert_eq!(clock.kind(), 0);
    for ns in [0, 1, 999, 3_600_000_000_000, u64::MAX] {
        assert_eq!((clock.to_ns(ns), clock.from_ns(ns)), (ns, ns));
    }
}

#[test]
fn ticks_convert_without_overflow_and_within_a_millionth() {
    for ns_per_tick in [0.25, 0.385_189, 1.0, 40.0, 41.666_667] {
        let clock = Clock::counter_at(ns_per_tick).unwrap();
        assert_eq!(clock.kind(), 1);
        for ticks in [0, 1, 1000, 2_600_000_000, 9_360_000_000_000, 1 << 58] {
            let wanted = ticks as f64 * ns_per_tick;
            let actual = clock.to_ns(ticks) as f64;
            assert!(
                (actual - wanted).abs() <= 1.0 + wanted * 1e-6,
                "{ticks} ticks of {ns_per_tick} ns: {actual}"
            );
            let back = clock.from_ns(clock.to_ns(ticks)) as f64;
            let slack = 2.0 + 1.0 / ns_per_tick + ticks as f64 * 1e-6;
            assert!(
                (back - ticks as f64).abs() <= slack,
                "{ticks} ticks of {ns_per_tick} ns converted back to {back}"
            );
        }
    }
}

#[test]
fn refuses_implausible_rates() {
    for ns_per_tick in [0.0, -1.0, 1e9, f64::NAN, f64::INFINITY] {
        assert_eq!(Clock::counter_at(ns_per_tick), None, "{ns_per_tick}");
    }
}

#[test]
fn goes_forward_and_agrees_with_the_monotonic_clock() {
    let clock = Clock::calibrate();
    // Each tick is between two reads of the other clock, however late a busy machine makes them.
    let tick = || (monotonic_ns(), clock.now(), monotonic_ns());
    let (first, begin, after_first) = tick();
    let mut before = begin;
    for _ in 0..10_000 {
        let now = clock.now();
        assert!(now >= before, "from {before} to {now}");
        before = now;
    }
    let (before_last, end, last) = tick();
    let (elapsed_ns, least_ns, most_ns) = (clock.to_ns(end - begin), before_last - after_first, last - first);
    // 1 %: its rate was measured, and the steps of both clocks.
    assert!(
        elapsed_ns + 1_000 >= least_ns - least_ns / 100 && elapsed_ns <= most_ns + most_ns / 100 + 1_000,
        "{elapsed_ns} ns, but {least_ns} to {most_ns} ns passed"
    );
}

#[test]
fn the_counter_is_used_only_at_a_plausible_rate() {
    let clock = Clock::calibrate();
    let facts = clock.facts();
    match clock.kind {
        Kind::Counter => assert_eq!(facts.kind, "counter"),
        Kind::Monotonic => assert_eq!((facts.kind.as_str(), facts.ns_per_tick), ("monotonic", 1.0)),
    }
    assert!(PLAUSIBLE_NS_PER_TICK.contains(&facts.ns_per_tick), "{facts:?}");
    assert!(facts.cost_ns > 0.0 && facts.smallest_step_ns.is_none_or(|step_ns| step_ns > 0.0), "{facts:?}");
    assert!(!facts.source.is_empty(), "{facts:?}");
    assert_eq!(facts.hand_offs.is_some(), facts.backward_steps.is_some(), "{facts:?}");
    assert_eq!(facts.backward_steps.unwrap_or(0), 0, "{facts:?}");
}

#[test]
fn facts_are_stored_and_come_back() {
    let facts = Clock::monotonic().facts();
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<super::ClockFacts>(&text).unwrap(), facts, "{text}");
}
