//! A simulated server: one queue, first come first served, exact to the event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kvdyno_load::search::{Limits, Observation, Window, backlog_grows};

use crate::pace::{Clockwork, Pace};
use crate::random::Random;

/// Windows of a run.
pub const WINDOWS: usize = 20;
/// Time before the measurement begins, seconds.
const LEAD: f64 = 0.25;

/// How long services take at full pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    Constant,
    Exponential,
    /// A share of the services takes `times` as long as the others.
    Two {
        share: f64,
        times: f64,
    },
}

/// A server and the limit that it is to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Requests that are served at the same time.
    pub threads: usize,
    pub service: Service,
    /// The mean service time at full pace, seconds.
    pub mean: f64,
    pub pace: Pace,
    pub limits: Limits,
}

impl Server {
    /// The limit's longest response time, seconds.
    pub fn longest(&self) -> f64 {
        self.limits.list()[0].longest_ns().expect("the limit bounds response times") as f64 * 1e-9
    }

    /// The share of requests that may be over the limit.
    pub fn allowed(&self) -> f64 {
        1.0 - self.limits.list()[0].quantile().expect("the limit is a quantile")
    }

    fn draw(&self, random: &mut Random) -> f64 {
        match self.service {
            Service::Constant => self.mean,
            Service::Exponential => random.exponential(self.mean),
            Service::Two { share, times } => {
                let short = self.mean / (1.0 - share + share * times);
                if random.unit() < share { short * times } else { short }
            }
        }
    }

    /// A run with Poisson arrivals that begins `origin` seconds after the first run of the search did.
    pub fn run(&self, rate: f64, seconds: f64, origin: f64, seed: u64) -> Observation {
        let mut random = Random::new(seed, 1);
        let mut clockwork = Clockwork::new(self.pace, origin, Random::new(seed, 2));
        let longest = self.longest();
        let end = LEAD + seconds;
        let length = seconds / WINDOWS as f64;
        let mut windows = vec![Window { over: vec![0], ..Window::default() }; WINDOWS];
        let mut backlogs = [0_i64; WINDOWS + 1];
        let mut free = vec![0.0_f64; self.threads];
        let (mut arrival, mut max, mut answered) = (0.0_f64, 0.0_f64, 0_u64);
        loop {
            arrival += random.exponential(1.0 / rate);
            if arrival >= end {
                break;
            }
            let now = clockwork.work(arrival);
            let thread = usize::from(self.threads == 2 && free[1] < free[0]);
            let departure = free[thread].max(now) + self.draw(&mut random);
            free[thread] = departure;
            let departure = clockwork.time(departure);
            let window = |time: f64| (((time - LEAD) / length).max(0.0) as usize).min(WINDOWS);
            backlogs[window(arrival)] += 1;
            backlogs[window(departure)] -= 1;
            answered += u64::from((LEAD..end).contains(&departure));
            if arrival >= LEAD {
                let response = departure.min(end) - arrival;
                max = max.max(response);
                let window = &mut windows[window(arrival).min(WINDOWS - 1)];
                window.requests += 1;
                window.over[0] += u64::from(response > longest);
            }
        }
        clockwork.work(end);
        let mut total = 0;
        let backlogs: Vec<u64> = backlogs[..WINDOWS]
            .iter()
            .map(|change| {
                total += change;
                total as u64
            })
            .collect();
        let requests = windows.iter().map(|window| window.requests).sum();
        Observation {
            seconds,
            windows,
            max_ns: (max * 1e9) as u64,
            achieved: answered as f64 / seconds,
            backlog: backlogs[WINDOWS - 1],
            backlog_grows: backlog_grows(&backlogs, requests),
            stalled_at_end: clockwork.is_stalled(),
            debt_grows: None,
            sender_late: false,
        }
    }

    /// A closed loop of `depth` requests in flight: the rate that it reaches, and the share of requests over the limit.
    pub fn closed_loop(&self, depth: usize, seconds: f64, origin: f64, seed: u64) -> (f64, f64) {
        let mut random = Random::new(seed, 3);
        let mut clockwork = Clockwork::new(self.pace, origin, Random::new(seed, 4));
        // Times are at least 0, so their bits have the same order.
        let mut waiting: BinaryHeap<Reverse<u64>> = (0..depth).map(|_| Reverse(0)).collect();
        let mut free = vec![0.0_f64; self.threads];
        let (mut n, mut over) = (0_u64, 0_u64);
        while let Some(Reverse(arrival)) = waiting.pop() {
            let arrival = f64::from_bits(arrival);
            if arrival >= seconds {
                break;
            }
            let now = clockwork.work(arrival);
            let thread = usize::from(self.threads == 2 && free[1] < free[0]);
            let departure = free[thread].max(now) + self.draw(&mut random);
            free[thread] = departure;
            let departure = clockwork.time(departure);
            waiting.push(Reverse(departure.to_bits()));
            n += 1;
            over += u64::from(departure - arrival > self.longest());
        }
        (n as f64 / seconds, over as f64 / n as f64)
    }
}
