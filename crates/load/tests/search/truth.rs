//! The rate at which a server's limit is met: by formula where there is one, else by a long simulation.

use crate::pace::Pace;
use crate::server::{Server, Service};

/// The share of requests over the limit at a rate, `origin` seconds after the search began. By simulation it has `seconds`.
fn share_over(server: &Server, rate: f64, origin: f64, seconds: f64) -> f64 {
    let longest = server.longest();
    let pace = match server.pace {
        Pace::Even => Some(1.0),
        Pace::Drift { end, seconds } => Some(1.0 - (1.0 - end) * (origin / seconds).min(1.0)),
        _ => None,
    };
    match (server.threads, server.service, pace) {
        (1, Service::Exponential, Some(pace)) => (-(pace / server.mean - rate) * longest).exp().min(1.0),
        (1, Service::Constant, Some(pace)) => {
            constant(rate * server.mean / pace, longest * pace / server.mean)
        }
        _ => {
            // The slow changes of a pace need time, and the rest needs requests.
            let seconds = if pace.is_some() { 1.5e7 / rate } else { seconds };
            let observation = server.run(rate, seconds, 0.0, 0x7275_7468);
            let over: u64 = observation.windows.iter().map(|window| window.over[0]).sum();
            over as f64 / observation.requests() as f64
        }
    }
}

/// P(response > `longest`) of M/D/1 with services of length 1 at a load. The distribution F of waiting times obeys
/// F'(t) = load (F(t) - F(t - 1)), F(0) = 1 - load (Takacs); here by steps of 1/400 with the trapezoid rule.
fn constant(load: f64, longest: f64) -> f64 {
    const STEPS: usize = 400;
    if longest < 1.0 || load >= 1.0 {
        return 1.0;
    }
    let half = load / STEPS as f64 / 2.0;
    let steps = (longest - 1.0) * STEPS as f64;
    let mut f = vec![1.0 - load];
    while f.len() < steps as usize + 2 {
        let last = f.len() - 1;
        let before = |index: usize| if index >= STEPS { f[index - STEPS] } else { 0.0 };
        // The jump of F(t - 1) at t = 1 belongs to the interval after it.
        let left = before(last);
        let right = if last + 1 == STEPS { 0.0 } else { before(last + 1) };
        f.push((f[last] * (1.0 + half) - half * (left + right)) / (1.0 - half));
    }
    let at = steps as usize;
    1.0 - f[at] - (f[at + 1] - f[at]) * steps.fract()
}

/// The rate at which the share over the limit is the allowed one, and by how many per cent the share rises per per cent of rate
/// there. Absent if it is more even at a thousandth of the capacity.
pub fn truth(server: &Server, origin: f64, seconds: f64) -> Option<(f64, f64)> {
    let capacity = server.threads as f64 / server.mean;
    let excess = |rate: f64| (share_over(server, rate, origin, seconds) / server.allowed()).ln();
    let (mut low, mut high) = (capacity * 1e-3, capacity * 1.02);
    let (mut below, mut above) = (excess(low), 5.0_f64);
    if below > 0.0 {
        return None;
    }
    // Bisection, then a line between both once they are close.
    for round in 0..30 {
        if above - below < 0.25 || high / low < 1.001 {
            break;
        }
        let fraction = if round > 2 && below > -2.0 && above < 2.0 { -below / (above - below) } else { 0.5 };
        let rate = low + (high - low) * fraction.clamp(0.1, 0.9);
        let here = excess(rate);
        if here > 0.0 {
            (high, above) = (rate, here);
        } else {
            (low, below) = (rate, here);
        }
    }
    let below = below.max(-20.0);
    let slope = (above - below) / (high / low).ln();
    Some((low * (-below / slope).exp(), slope))
}

#[test]
fn formulas_agree_with_long_simulations() {
    let limits = "p99<1ms".parse().expect("a limit");
    let even = Server { threads: 1, service: Service::Constant, mean: 1e-4, pace: Pace::Even, limits };
    for (service, load) in [(Service::Constant, 0.7), (Service::Constant, 0.8), (Service::Exponential, 0.5)] {
        let server = Server { service, ..even.clone() };
        let rate = load / server.mean;
        let formula = share_over(&server, rate, 0.0, 0.0);
        // Two threads at half the rate each are no formula; one thread with stalls of no length is simulated.
        let simulated = Server { pace: Pace::Stalls { period: 1.0, length: 0.0 }, ..server };
        let simulation = share_over(&simulated, rate, 0.0, 4_000.0);
        assert!((formula / simulation).ln().abs() < 0.05, "{service:?} {load}: {formula} {simulation}");
    }
}
