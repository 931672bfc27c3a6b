//! Runs a search on a simulated server, and counts how far printed rates are from the true ones.

use kvdyno_load::search::{Answer, Options, Outcome, Purpose, Search, Step};
use kvdyno_measure::start::thread_in;

use crate::fleet;
use crate::random::Random;
use crate::rivals::Found;
use crate::server::Server;
use crate::truth::truth;

/// A server whose true rate is known.
#[derive(Clone, Debug)]
pub struct Known {
    pub class: usize,
    pub seed: u64,
    pub server: Server,
    /// The rate at which the limit is met when the search begins, requests per second.
    pub rate: f64,
    /// By how many per cent the share over the limit rises if the rate rises by one per cent.
    pub slope: f64,
}

/// `count` servers of each class in `classes`; those that cannot keep their limit at any rate are drawn again.
pub fn known(classes: &[usize], count: usize, seed: u64, seconds: f64) -> Vec<Known> {
    let draw = |class: usize, index: usize| {
        let mut random = Random::new(seed, (class * 1_000 + index) as u64);
        loop {
            let server = fleet::server(class, &mut random);
            if let Some((rate, slope)) = truth(&server, 0.0, seconds) {
                let seed = seed.wrapping_mul(100_000).wrapping_add((class * 1_000 + index) as u64);
                return Known { class, seed, server, rate, slope };
            }
        }
    };
    let jobs: Vec<(usize, usize)> =
        classes.iter().flat_map(|class| (0..count).map(move |index| (*class, index))).collect();
    parallel(&jobs, |(class, index)| draw(*class, *index))
}

/// What `work` makes of each item, in their order, on two threads.
pub fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let half = |first: usize| items.iter().skip(first).step_by(2).map(&work).collect::<Vec<R>>();
    let (even, odd) = std::thread::scope(|scope| {
        let other = thread_in(scope, || half(1)).expect("a thread can be started");
        (half(0), other.join().expect("the work does not panic"))
    });
    let mut odd = odd.into_iter();
    even.into_iter().flat_map(|item| std::iter::once(item).chain(odd.next())).collect()
}

/// Searches on a server.
pub fn search(server: &Server, options: &Options, seed: u64) -> Answer {
    let mut random = Random::new(seed, 9);
    // A closed loop can be slower than the server, for lack of threads, or faster, for lack of stalls.
    let closed_loop = server.threads as f64 / server.mean * random.between(0.8, 1.15);
    let options = Options { seed, ..options.clone() };
    let mut search = Search::new(server.limits.clone(), closed_loop, options);
    let (mut origin, mut run) = (0.0, 0);
    loop {
        match search.next().clone() {
            Step::Probe { rate, seconds, .. } => {
                run += 1;
                let observation = server.run(rate, seconds, origin, seed.wrapping_mul(100).wrapping_add(run));
                origin += seconds;
                search.observe(observation).expect("the search asked for it");
            }
            Step::Done(answer) => return answer,
        }
    }
}

/// The printed rate, and the number and length of its runs.
pub fn found(answer: &Answer) -> Found {
    let rate = match answer.outcome {
        Outcome::Holds { rate, .. } => Some(rate),
        Outcome::AtLeast { .. } | Outcome::NoAnswer(_) => None,
    };
    Found { rate, runs: answer.log.len(), seconds: answer.log.iter().map(|probe| probe.seconds).sum() }
}

/// Whether the only confirmation that was kept is the one that is reported, and it is the last probe.
pub fn reports_its_confirmation(answer: &Answer) -> bool {
    let Outcome::Holds { rate, confirmation, .. } = answer.outcome else {
        return true;
    };
    let probe = &answer.log[confirmation];
    probe.purpose == Purpose::Confirm && probe.rate == rate && confirmation + 1 == answer.log.len()
}

/// Counts of printed rates.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub count: usize,
    /// Within 3 % of the true rate.
    pub close: usize,
    /// Over it by more than 3 %.
    pub over: usize,
    /// Over it by more than nothing.
    pub any_over: usize,
    /// Without a rate.
    pub none: usize,
    /// The most runs of a search.
    pub most_runs: usize,
    pub runs: usize,
    pub seconds: f64,
    /// Printed rates divided by true ones.
    pub ratios: Vec<f64>,
}

impl Score {
    pub fn add(&mut self, known: &Known, found: &Found) {
        self.count += 1;
        self.runs += found.runs;
        self.seconds += found.seconds;
        self.most_runs = self.most_runs.max(found.runs);
        let Some(rate) = found.rate else {
            self.none += 1;
            return;
        };
        // A drifting server's true rate is the one at the end of the search, when the confirmation runs.
        let wanted = match fleet::CLASSES[known.class] {
            "drift" => truth(&known.server, found.seconds, 0.0).map_or(known.rate, |(rate, _)| rate),
            _ => known.rate,
        };
        let ratio = rate / wanted;
        self.ratios.push(ratio);
        self.close += usize::from((0.97..=1.03).contains(&ratio));
        self.over += usize::from(ratio > 1.03);
        self.any_over += usize::from(ratio > 1.0);
    }

    /// One line of the table.
    pub fn line(&self, name: &str) -> String {
        let percent = |count: usize| 100.0 * count as f64 / self.count as f64;
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let quantile =
            |q: f64| ratios.get(((ratios.len() as f64 - 1.0).max(0.0) * q) as usize).unwrap_or(&f64::NAN);
        format!(
            "{name:<34} {:>4} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>5.3} {:>5.3} {:>5.3} {:>5.1} {:>4} {:>6.0}",
            self.count,
            percent(self.close),
            percent(self.over),
            percent(self.any_over),
            percent(self.none),
            quantile(0.05),
            quantile(0.5),
            quantile(0.95),
            self.runs as f64 / self.count as f64,
            self.most_runs,
            self.seconds / self.count as f64,
        )
    }
}

/// The head of the table.
pub const HEAD: &str = "                                      n  in3%  over3   over   none    p5    p50   p95   runs most seconds";
