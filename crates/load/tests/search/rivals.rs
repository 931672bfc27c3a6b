//! The rules of other tools, as their sources state them, on the same servers. Each counts the response time's quantile of the
//! limit, also where the tool itself has another one.

use crate::server::Server;

/// What a rule has found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The rate that it prints; absent if it gives up.
    pub rate: Option<f64>,
    /// Runs that it made.
    pub runs: usize,
    /// How long these measured, seconds.
    pub seconds: f64,
}

/// A rule of another tool.
pub type Rule = fn(&Server, u64) -> Found;

/// The rules with their names.
pub const RULES: [(&str, Rule); 4] = [
    ("mutilate", mutilate),
    ("findmax with response times", findmax),
    ("findmax with service times", findmax_of_service),
    ("fio", fio),
];

/// One window of a run at a rate: the share over the limit, and the rate that was reached.
struct Runs<'a> {
    server: &'a Server,
    seed: u64,
    runs: usize,
    seconds: f64,
}

impl Runs<'_> {
    fn new(server: &Server, seed: u64) -> Runs<'_> {
        Runs { server, seed, runs: 0, seconds: 0.0 }
    }

    fn next(&mut self, seconds: f64) -> (u64, f64) {
        let origin = self.seconds;
        self.runs += 1;
        self.seconds += seconds;
        (self.seed.wrapping_mul(1_000).wrapping_add(self.runs as u64), origin)
    }

    fn open(&mut self, rate: f64, seconds: f64) -> (f64, f64) {
        let (seed, origin) = self.next(seconds);
        let observation = self.server.run(rate, seconds, origin, seed);
        let over: u64 = observation.windows.iter().map(|window| window.over[0]).sum();
        (over as f64 / observation.requests() as f64, observation.achieved)
    }

    fn closed(&mut self, depth: usize, seconds: f64) -> (f64, f64) {
        let (seed, origin) = self.next(seconds);
        self.server.closed_loop(depth, seconds, origin, seed)
    }

    fn found(self, rate: Option<f64>) -> Found {
        Found { rate, runs: self.runs, seconds: self.seconds }
    }
}

/// mutilate `--search` (mutilate.cc:480, commit d65c6ef): the closed loop's peak, bisection to 2 % with one sample of 5 s per
/// rate, then down by 2 % until a sample meets the limit.
fn mutilate(server: &Server, seed: u64) -> Found {
    const SECONDS: f64 = 5.0;
    let mut runs = Runs::new(server, seed);
    let (peak, over) = runs.closed(16, SECONDS);
    if over <= server.allowed() {
        return runs.found(Some(peak));
    }
    let (mut low, mut high, mut rate) = (1.0, peak, peak);
    let mut is_met = false;
    while high > low * 1.02 && rate > peak * 0.1 {
        rate = (low + high) / 2.0;
        is_met = runs.open(rate, SECONDS).0 <= server.allowed();
        if is_met {
            low = rate;
        } else {
            high = rate;
        }
    }
    while !is_met && rate > peak * 0.1 {
        rate *= 0.98;
        is_met = runs.open(rate, SECONDS).0 <= server.allowed();
    }
    runs.found(is_met.then_some(rate))
}

/// NoSQLBench findmax (commit 4a5e567): base + step * 2^k while at least 80 % of the target and 90 % of the best rate are reached
/// and the quantile is under the limit; then the last good rate is the base and the steps begin again. Windows begin at 10 s
/// and become 1.33 times as long. The mean of two runs is printed. Its first step is 1 % of the closed loop. Windows end at 60 s
/// here, and at 300 s in the tool, which makes its results here a little less exact.
fn findmax(server: &Server, seed: u64) -> Found {
    let mut runs = Runs::new(server, seed);
    let step = runs.closed(16, 5.0).0 / 100.0;
    let mut rates = Vec::new();
    for _ in 0..2 {
        let (mut base, mut best, mut k, mut seconds) = (0.0, 0.0_f64, 0, 10.0_f64);
        loop {
            let target = base + step * f64::from(1 << k);
            let (over, achieved) = runs.open(target, seconds);
            if achieved >= 0.8 * target && achieved >= 0.9 * best && over <= server.allowed() {
                best = best.max(achieved);
                k += 1;
            } else if k == 0 {
                break;
            } else {
                base += step * f64::from(1 << (k - 1));
                k = 0;
                seconds = (seconds * 1.33).min(60.0);
            }
        }
        rates.push(base);
    }
    let mean = (rates[0] + rates[1]) / 2.0;
    runs.found((mean > 0.0).then_some(mean))
}

/// findmax as it is: it takes service times. Those of all servers here keep the limit.
fn findmax_of_service(server: &Server, seed: u64) -> Found {
    let limits = "p99<1000s".parse().expect("a limit");
    findmax(&Server { limits, ..server.clone() }, seed)
}

/// fio `latency_target` (io_u.c:1605, commit f534438): the depth of a closed loop doubles until a window fails, then it is
/// bisected. The rate of a final window is printed.
fn fio(server: &Server, seed: u64) -> Found {
    const SECONDS: f64 = 5.0;
    let mut runs = Runs::new(server, seed);
    let (mut low, mut high, mut depth) = (0, 0, 1);
    while depth <= 1_024 {
        if runs.closed(depth, SECONDS).1 <= server.allowed() {
            low = depth;
            depth = if high == 0 { depth * 2 } else { (depth + high) / 2 };
        } else {
            high = depth;
            depth = (low + depth) / 2;
        }
        if depth == low || depth == 0 {
            break;
        }
    }
    if low == 0 {
        return runs.found(None);
    }
    let rate = runs.closed(low, SECONDS).0;
    runs.found(Some(rate))
}
