//! Servers of eight classes, with parameters and limits that a seed draws.

use crate::pace::Pace;
use crate::random::Random;
use crate::server::{Server, Service};

/// Kinds of servers, in the order of the table.
pub const CLASSES: [&str; 8] =
    ["M/D/1", "M/M/1", "M/D/2", "drift", "two service times", "stalls", "two modes", "noisy neighbour"];

/// How long a search is taken to last when a server drifts, seconds of measurement.
pub const DRIFT_SECONDS: f64 = 120.0;

/// A server of a class, an index of `CLASSES`. Its mean service time is 5 to 50 us, or 20 to 100 us if it stalls or switches. Its
/// limit is from 1.1 times the quantile of an idle server up to 100 service times.
pub fn server(class: usize, random: &mut Random) -> Server {
    let mean = if class < 5 { random.spread(5e-6, 5e-5) } else { random.spread(2e-5, 1e-4) };
    let name = if random.unit() < 0.5 { "p99" } else { "p99.9" };
    let allowed = if name == "p99" { 0.01_f64 } else { 0.001 };
    let mut threads = 1;
    let mut service = Service::Constant;
    let mut pace = Pace::Even;
    // The quantile of response times of an idle server, in service times.
    let mut idle = 1.0;
    match CLASSES[class] {
        "M/M/1" => {
            service = Service::Exponential;
            idle = -allowed.ln();
        }
        "M/D/2" => threads = 2,
        "drift" => pace = Pace::Drift { end: 0.95, seconds: DRIFT_SECONDS },
        "two service times" => {
            let times = random.spread(2.0, 20.0);
            let share = random.spread(0.01, 0.2);
            service = Service::Two { share, times };
            idle = times / (1.0 - share + share * times);
        }
        "stalls" => {
            // As much stalled time as the limit allows some of the requests.
            let period = random.spread(0.5, 5.0);
            pace = Pace::Stalls { period, length: period * allowed * random.between(0.1, 0.7) };
        }
        "two modes" => {
            let slower = random.between(0.4, 0.9);
            pace = Pace::Switches {
                fast: random.spread(0.05, 0.5),
                slow: random.spread(0.05, 0.5),
                pace: slower,
            };
            idle = 1.0 / slower;
        }
        "noisy neighbour" => {
            let slower = random.between(0.3, 0.9);
            pace = Pace::Switches {
                fast: random.spread(0.2, 1.0),
                slow: random.spread(0.005, 0.05),
                pace: slower,
            };
            idle = 1.0 / slower;
        }
        _ => {}
    }
    let longest = random.spread(1.1 * idle, 100.0_f64.max(1.2 * idle)) * mean;
    let limits = format!("{name}<={}ns", (longest * 1e9).round()).parse().expect("a limit");
    Server { threads, service, mean, pace, limits }
}
