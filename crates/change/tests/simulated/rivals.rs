//! Rules of other tools on the same machines: each says whether the second arm is faster or slower.

use kvdyno_change::student;

use crate::machine::Machine;

/// The verdict of a rule: the sign of the difference it claims, or 0.
pub type Rule = fn(&mut Machine, f64) -> i32;

/// Rules by name.
pub const RULES: [(&str, Rule); 3] = [
    ("10 runs of A, then 10 of B, Mann-Whitney at 5 % (benchstat)", mann_whitney),
    ("alternating, t-test at 5 % after every block, 10 min", peeking),
    ("10 runs of A, then 10 of B, means differ by 5 %", threshold),
];

fn sign(value: f64) -> i32 {
    if value > 0.0 { 1 } else { -1 }
}

/// The rates of 10 trials of the first arm, and then of 10 of the second.
fn sequential(machine: &mut Machine, difference: f64) -> (Vec<f64>, Vec<f64>) {
    let mut trials = |log_rate: f64| (0..10).map(|_| machine.trial(log_rate, 1)[0]).collect();
    (trials(0.0), trials(difference))
}

fn mann_whitney(machine: &mut Machine, difference: f64) -> i32 {
    let (first, second) = sequential(machine, difference);
    let above = second.iter().flat_map(|b| first.iter().map(move |a| usize::from(b > a))).sum::<usize>();
    // Printed tables: with 10 and 10, U of at most 23 is significant at 5 %, two-sided.
    if above.min(100 - above) <= 23 { sign(above as f64 - 50.0) } else { 0 }
}

fn threshold(machine: &mut Machine, difference: f64) -> i32 {
    let (first, second) = sequential(machine, difference);
    let ratio = second.iter().sum::<f64>() / first.iter().sum::<f64>();
    if (ratio - 1.0).abs() > 0.05 { sign(ratio - 1.0) } else { 0 }
}

fn peeking(machine: &mut Machine, difference: f64) -> i32 {
    let mut differences = Vec::new();
    while machine.now < 600.0 {
        let rates = [0.0, difference, difference, 0.0].map(|log_rate| machine.trial(log_rate, 1)[0]);
        differences.push((rates[1] + rates[2] - rates[0] - rates[3]) / 2.0);
        let n = differences.len();
        if n < 3 {
            continue;
        }
        let mean = differences.iter().sum::<f64>() / n as f64;
        let variance = differences.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        if student::two_sided(mean / (variance / n as f64).sqrt(), n - 1) < 0.05 {
            return sign(mean);
        }
    }
    0
}
