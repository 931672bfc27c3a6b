//! The clock: never goes backward, has a fine resolution, is cheap to read, and runs at the rate of the system clock.

use super::Finding;
use kvdyno_measure::Clock;
use kvdyno_measure::clock::monotonic_ns;
use std::time::Duration;

/// How long the two clocks are compared.
const WATCHED: Duration = Duration::from_millis(200);
/// Maximum difference of the two rates: far below the resolution of any measurement here.
const MOST_DRIFT_PPM: f64 = 500.0;
/// A clock that costs more per read cannot time ops of a few hundred nanoseconds.
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
    Finding::new("clock rises", backward == 0, format!("{backward} of {READS} reads go backward"))
}

fn cost(clock: &Clock) -> Finding {
    let facts = clock.facts();
    let measured = format!("{:.1} ns per read ({}; {})", facts.cost_ns, facts.kind, facts.source);
    Finding::new("clock cost", facts.cost_ns > 0.0 && facts.cost_ns <= MOST_COST_NS, measured)
}

fn across(clock: &Clock) -> Finding {
    let facts = clock.facts();
    let (passed, measured) = match (facts.hand_offs, facts.backward_steps) {
        (Some(hand_offs), Some(back)) => (back == 0, format!("{back} of {hand_offs} hand-offs go backward")),
        _ => (true, "not possible on this machine".to_string()),
    };
    Finding::new("clock across processors", passed, measured)
}

/// Ticks and nanoseconds at nearly the same moment: the closest pair of several readings.
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
    let clock_ns = clock.to_ns(end_ticks.wrapping_sub(begin_ticks));
    let system_ns = end_ns.saturating_sub(begin_ns).max(1);
    let drift_ppm = (clock_ns as f64 / system_ns as f64 - 1.0) * 1e6;
    let measured = format!(
        "{drift_ppm:+.1} ppm against CLOCK_MONOTONIC over {} ms (at most {MOST_DRIFT_PPM:.0})",
        system_ns / 1_000_000
    );
    Finding::new("clock rate", drift_ppm.abs() <= MOST_DRIFT_PPM, measured)
}
