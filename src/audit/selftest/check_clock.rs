//! The clock: never backward, fine enough, cheap enough, and as fast as the system's.

use super::Finding;
use crate::measure::Clock;
use crate::measure::clock::monotonic_ns;
use std::time::Duration;

/// How long the two clocks are compared.
const WATCHED: Duration = Duration::from_millis(200);
/// How far apart their rates may be: far below what any measurement here resolves.
const MOST_DRIFT_PPM: f64 = 500.0;
/// A read that costs more is no clock for ops of some hundred nanoseconds.
const MOST_COST_NS: f64 = 2000.0;
const READS: u32 = 2_000_000;

pub(super) fn all() -> Vec<Finding> {
    let clock = Clock::calibrate();
    vec![rises(&clock), cost(&clock), across(&clock), drift(&clock)]
}

fn rises(clock: &Clock) -> Finding {
    let mut before = clock.now();
    let mut backward = 0;
    for _ in 0..READS {
        let now = clock.now();
        backward += u32::from(now < before);
        before = now;
    }
    Finding::new("clock rises", backward == 0, format!("{backward} of {READS} reads go back"))
}

fn cost(clock: &Clock) -> Finding {
    let facts = clock.facts();
    let measured = format!("{:.1} ns a read ({}; {})", facts.cost_ns, facts.kind, facts.source);
    Finding::new("clock cost", facts.cost_ns > 0.0 && facts.cost_ns <= MOST_COST_NS, measured)
}

fn across(clock: &Clock) -> Finding {
    let facts = clock.facts();
    let (passed, measured) = match (facts.hand_offs, facts.backward_steps) {
        (Some(hand_offs), Some(back)) => (back == 0, format!("{back} of {hand_offs} hand-offs go back")),
        _ => (true, "not possible here".to_string()),
    };
    Finding::new("clock across processors", passed, measured)
}

/// Ticks and nanoseconds of nearly one moment: the closest of some readings.
fn moment(clock: &Clock) -> (u64, u64) {
    let reading = || {
        let before_ns = monotonic_ns();
        let ticks = clock.now();
        let after_ns = monotonic_ns();
        (after_ns.saturating_sub(before_ns), ticks, before_ns + after_ns.saturating_sub(before_ns) / 2)
    };
    let (_, ticks, ns) = (0..300).map(|_| reading()).min().unwrap_or((0, clock.now(), monotonic_ns()));
    (ticks, ns)
}

fn drift(clock: &Clock) -> Finding {
    let (begin_ticks, begin_ns) = moment(clock);
    std::thread::sleep(WATCHED);
    let (end_ticks, end_ns) = moment(clock);
    let told_ns = clock.to_ns(end_ticks.wrapping_sub(begin_ticks));
    let right_ns = end_ns.saturating_sub(begin_ns).max(1);
    let drift_ppm = (told_ns as f64 / right_ns as f64 - 1.0) * 1e6;
    let measured = format!(
        "{drift_ppm:+.1} ppm against CLOCK_MONOTONIC over {} ms (within {MOST_DRIFT_PPM:.0})",
        right_ns / 1_000_000
    );
    Finding::new("clock rate", drift_ppm.abs() <= MOST_DRIFT_PPM, measured)
}
