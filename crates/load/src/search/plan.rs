//! The decisions of the search: which rate comes next, and for how long.

use super::binomial::{self, Verdict};
use super::fit::{Crossing, Point, crossing};
use super::limit::Limit;
use super::observation::Unsustained;
use super::sample::Sample;
use super::{Answer, Outcome, Probe, Purpose, Reason, Search, Step};

/// Confirmations of a search, at most.
const CONFIRMATIONS: usize = 3;
/// The part of the allowed error that each of them has. Most searches need one.
const ERRORS: [f64; CONFIRMATIONS] = [0.6, 0.2, 0.2];
/// Probes whose sender was too late before the search gives up.
const LATE: usize = 3;
/// From this slope on, a limit depends so much on the rate that a few per cent less keep it.
const STEEP: f64 = 5.0;
/// How much longer than usual a probe near the limit may be.
const LONGER: f64 = 3.0;
/// How much longer than usual a confirmation may be.
const LONGEST: f64 = 4.0;

/// Where the search stands between a rate that seems to keep the limits and one that does not.
struct Bracket {
    /// The highest rate below `high` that seems to keep the limits.
    low: Option<f64>,
    /// The lowest rate that seems to break a limit.
    high: Option<f64>,
}

/// Where the limit that is met first is met, and what a run near it is worth.
struct Edge {
    crossing: Crossing,
    limit: Limit,
    /// Requests for each effective one.
    effect: f64,
}

impl Search {
    /// The confidence that the next confirmation needs.
    pub(super) fn confidence(&self) -> f64 {
        let next = self.confirmations().count().min(CONFIRMATIONS - 1);
        1.0 - (1.0 - self.options.confidence) * ERRORS[next]
    }

    /// What to do next.
    pub(super) fn plan(&mut self) -> Step {
        if let Some(last) = self.log.last()
            && last.purpose == Purpose::Confirm
            && last.judgement.verdict == Verdict::Kept
        {
            return self.confirmed(last.rate);
        }
        if self.late().count() >= LATE {
            let rate = self.late().fold(f64::INFINITY, f64::min);
            return self.no_answer(Reason::SenderLate { rate });
        }
        if self.log.len() >= self.options.probes || self.confirmations().count() >= CONFIRMATIONS {
            return self.unconfirmed();
        }
        if let Some((rate, seconds)) = self.queue.pop()
            && rate < self.ceiling()
        {
            return self.probe(rate, seconds, Purpose::Narrow);
        }
        let bracket = self.bracket();
        // After the first confirmation only lower rates may follow.
        if self.confirmations().next().is_some() || self.left() == 0 {
            return self.confirm(&bracket);
        }
        match (bracket.low, bracket.high) {
            (None, None) => {
                // Most limits are met below the closed loop's rate.
                let rate = (0.8 * self.closed_loop).max(self.lowest()).min(self.ceiling());
                self.probe(rate, self.options.probe_seconds, Purpose::Bracket)
            }
            (Some(low), None) => self.rise(low, &bracket),
            (None, Some(high)) => self.fall(high),
            (Some(low), Some(high)) => self.narrow(low, high, &bracket),
        }
    }

    /// Probes that may still be spent before the confirmations.
    fn left(&self) -> usize {
        (self.options.probes - CONFIRMATIONS.min(self.options.probes / 2)).saturating_sub(self.log.len())
    }

    fn confirmations(&self) -> impl Iterator<Item = &Probe> {
        self.log.iter().filter(|probe| probe.purpose == Purpose::Confirm)
    }

    /// Probes whose sender was not late.
    fn usable(&self) -> impl Iterator<Item = &Probe> {
        self.log.iter().filter(|probe| !probe.observation.sender_late)
    }

    /// Rates at which the sender was late.
    fn late(&self) -> impl Iterator<Item = f64> {
        self.log.iter().filter(|probe| probe.observation.sender_late).map(|probe| probe.rate)
    }

    /// The lowest rate to try: the option's, or the one at which the longest probe has just enough requests.
    fn lowest(&self) -> f64 {
        let wanted = self.options.lowest_rate.unwrap_or(self.closed_loop / 1_000.0);
        wanted.max(self.requests() as f64 / self.options.longest_seconds)
    }

    /// The fewest requests of a probe: twice as many as are needed if none is over the limit.
    fn requests(&self) -> u64 {
        2 * self.limits.needed()
    }

    /// The highest rate to try: the option's, or one between the rates at which the sender was late and in time.
    fn ceiling(&self) -> f64 {
        let highest = self.options.highest_rate.unwrap_or(4.0 * self.closed_loop);
        let Some(late) = self.late().reduce(f64::min) else {
            return highest;
        };
        let in_time = self.usable().map(|probe| probe.rate).filter(|rate| *rate < late).reduce(f64::max);
        highest.min(in_time.map_or(0.8 * late, |rate| (late * rate).sqrt()))
    }

    /// Whether no rate that is much higher may be tried.
    fn is_highest(&self, rate: f64) -> bool {
        rate * (1.0 + 1.5 * self.options.width) >= self.ceiling()
    }

    fn bracket(&self) -> Bracket {
        let high = self.usable().filter(|probe| self.is_over(probe)).map(|probe| probe.rate).reduce(f64::min);
        let low = self
            .usable()
            .filter(|probe| !self.is_over(probe) && high.is_none_or(|high| probe.rate < high))
            .map(|probe| probe.rate)
            .reduce(f64::max);
        Bracket { low, high }
    }

    /// Whether a probe seems to break a limit.
    fn is_over(&self, probe: &Probe) -> bool {
        let judgement = &probe.judgement;
        judgement.unsustained.is_some() || self.excess(probe) > 0.0
    }

    /// The excess of the limit that a probe is furthest over, or closest to.
    fn excess(&self, probe: &Probe) -> f64 {
        let excesses = self.limits.list().iter().enumerate().map(|(index, limit)| {
            match (limit.quantile(), probe.judgement.samples[index]) {
                (Some(quantile), Some(sample)) => point(probe, &sample, 1.0 - quantile).excess,
                _ if probe.judgement.verdicts[index] == Verdict::Broken => f64::INFINITY,
                _ => f64::NEG_INFINITY,
            }
        });
        excesses.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Where the limits are met, as far as sustained rates show it.
    fn edge(&self) -> Option<Edge> {
        let limits = self.limits.list().iter().enumerate();
        let edges = limits.filter_map(|(index, limit)| {
            let allowed = 1.0 - limit.quantile()?;
            let mut sustained: Vec<(Point, f64)> = Vec::new();
            let mut age = 0.0;
            for probe in self.log.iter().rev() {
                let is_sustained = !probe.observation.sender_late && probe.judgement.unsustained.is_none();
                if let (true, Some(sample)) = (is_sustained, probe.judgement.samples[index]) {
                    sustained.push((Point { age, ..point(probe, &sample, allowed) }, sample.effect));
                }
                age += probe.seconds;
            }
            let points: Vec<Point> = sustained.iter().map(|(point, _)| *point).collect();
            let crossing = crossing(&points)?;
            let (_, effect) =
                sustained.iter().min_by(|(a, _), (b, _)| a.excess.abs().total_cmp(&b.excess.abs()))?;
            Some(Edge { crossing, limit: *limit, effect: *effect })
        });
        edges.min_by(|a, b| a.crossing.x.total_cmp(&b.crossing.x))
    }

    /// A higher rate, because none has broken a limit.
    fn rise(&mut self, low: f64, bracket: &Bracket) -> Step {
        if self.is_highest(low) {
            return self.confirm(bracket);
        }
        // Steps become larger, because a closed loop with few threads can be far under the capacity.
        let factor = if self.log.len() < 3 { 1.25 } else { 1.6 };
        let rate = (low * factor).min(self.ceiling());
        self.probe(rate, self.options.probe_seconds, Purpose::Bracket)
    }

    /// A lower rate, because none has kept the limits.
    fn fall(&mut self, high: f64) -> Step {
        let lowest = self.lowest();
        if high <= lowest {
            let limits = self.limits.clone();
            let below = self.edge().map(|edge| edge.crossing.x.exp());
            return self.no_answer(match below.filter(|rate| *rate >= high / 10.0) {
                Some(rate) => {
                    let needed = self.requests();
                    Reason::TooFewRequests { limits, needed, rate, seconds: needed as f64 / rate }
                }
                None => Reason::BrokenAtLowest { limits, rate: high },
            });
        }
        let Some(probe) = self.usable().find(|probe| probe.rate == high) else {
            return self.unconfirmed();
        };
        let rate = match (probe.judgement.unsustained, self.edge()) {
            (Some(Unsustained::BacklogGrows | Unsustained::NotAchieved), _) => {
                (0.9 * probe.observation.achieved).min(0.8 * high)
            }
            (Some(Unsustained::DebtGrows), _) => 0.7 * high,
            // A little further than the line says, because the curve is steeper at higher rates.
            (None, Some(edge)) => (edge.crossing.x.exp() * 0.9).clamp(high / 10.0, 0.9 * high),
            // Two rates have the same share over the limit, so less load may not help.
            (None, None) if self.usable().count() > 1 => lowest,
            // Only one rate was measured: further down the more requests were over the limit.
            (None, None) => high * (-self.excess(probe) / 6.0).exp().clamp(0.3, 0.8),
        };
        self.probe(rate.max(lowest), self.options.probe_seconds, Purpose::Bracket)
    }

    /// Rates between `low` and `high`, or a confirmation if they are close enough.
    fn narrow(&mut self, low: f64, high: f64, bracket: &Bracket) -> Step {
        let width = self.options.width;
        let usual = self.options.probe_seconds;
        let edge = self.edge();
        let line = edge.as_ref().map(|edge| edge.crossing);
        let certain = edge.filter(|edge| edge.crossing.deviation < width);
        if certain.is_none() && high / low > 1.0 + width {
            // The line is too uncertain, or there is none. It still helps as long as the bracket is wide.
            let line = line.filter(|line| line.deviation < (high / low).ln() / 4.0).map(|line| line.x.exp());
            let margin = (high / low).powf(0.15);
            let rate = line.unwrap_or((low * high).sqrt()).clamp(low * margin, high / margin);
            let rate = if self.capacity() > low * margin { rate.min(self.capacity()) } else { rate };
            return self.probe(rate, usual, Purpose::Narrow);
        }
        if self.left() < 2 {
            return self.confirm(bracket);
        }
        let (center, apart, pair) = match certain {
            Some(Edge { crossing, .. }) if crossing.deviation < width / 4.0 => return self.confirm(bracket),
            Some(Edge { crossing, limit, effect }) => {
                // Far enough apart that the shares differ by more than a factor of three, and closer than the curve allows.
                let apart = (0.6 / crossing.slope).clamp(width / 4.0, 0.1);
                let at = crossing.x.exp();
                let wanted = effect / (allowed(&limit) * at * (crossing.slope * width / 4.0).powi(2));
                (at, apart, wanted.clamp(usual, LONGER * usual))
            }
            None => ((low * high).sqrt(), width / 2.0, LONGER * usual),
        };
        let apart = if self.draw() { apart } else { -apart };
        self.queue = vec![(center * (-apart).exp(), pair)];
        self.probe(center * apart.exp(), pair, Purpose::Narrow)
    }

    /// The lowest rate that an overloaded server has answered, requests per second.
    fn capacity(&self) -> f64 {
        self.usable()
            .filter(|probe| probe.judgement.unsustained == Some(Unsustained::BacklogGrows))
            .map(|probe| probe.observation.achieved)
            .fold(f64::INFINITY, f64::min)
    }

    /// A confirmation of a rate that should pass it.
    fn confirm(&mut self, bracket: &Bracket) -> Step {
        // By how many deviations of chance a confirmation is on the safe side: the later it is, the safer.
        const SAFE: [f64; CONFIRMATIONS] = [0.3, 0.6, 1.2];
        let width = self.options.width;
        let failed = self.confirmations().count();
        let usual = self.options.confirm_seconds;
        let Some(low) = bracket.low else {
            return self.unconfirmed();
        };
        let (mut rate, mut seconds) = (low, usual);
        if let (Some(Edge { crossing, limit, effect }), Some(_)) = (self.edge(), bracket.high) {
            let allowed = allowed(&limit);
            let at = crossing.x.exp();
            let wanted = effect / (allowed * at * (crossing.slope * width / 8.0).powi(2));
            seconds = wanted.clamp(usual, LONGEST * usual);
            let n = seconds * at / effect;
            // The excess of the most requests over the limit that still pass, and what chance adds to it.
            let most = binomial::most_over(n, 1.0 - allowed, self.confidence()).unwrap_or(0.0) + 0.5;
            let passes = (most / (n * allowed)).ln();
            let chance = (1.0 / most + (crossing.slope * crossing.deviation).powi(2)).sqrt();
            let margin = (SAFE[failed.min(CONFIRMATIONS - 1)] * chance - passes) / crossing.slope;
            rate = (crossing.x - margin.clamp(width / 10.0, 0.7)).exp();
            // An uncertain line is no reason to go far below a rate that has kept the limits.
            if failed == 0 && self.kept(low) {
                rate = rate.max(low * (1.0 - width / 4.0));
            }
        }
        // A rate that failed is not tried again, nor one close to it, nor one far below it if the limit depends much on rates.
        if let Some(last) = self.confirmations().map(|probe| probe.rate).reduce(f64::min) {
            rate = rate.min(last * (1.0 - width / 2.0));
            if self.edge().is_none_or(|edge| edge.crossing.slope > STEEP) {
                rate = rate.max(last * (1.0 - 1.5 * width * failed as f64));
            }
        }
        self.probe(rate.max(self.lowest()).min(self.ceiling()), seconds, Purpose::Confirm)
    }

    /// Whether a probe at exactly this rate has kept the limits.
    fn kept(&self, rate: f64) -> bool {
        self.usable().any(|probe| probe.rate == rate && probe.judgement.verdict == Verdict::Kept)
    }

    /// A probe that is long enough for the requests that the limits need.
    fn probe(&self, rate: f64, seconds: f64, purpose: Purpose) -> Step {
        Step::Probe { rate, seconds: seconds.max(self.requests() as f64 / rate), purpose }
    }

    fn confirmed(&self, rate: f64) -> Step {
        let confirmation = self.log.len() - 1;
        let broke = self
            .usable()
            .filter(|probe| probe.rate > rate && probe.judgement.verdict == Verdict::Broken)
            .map(|probe| probe.rate)
            .reduce(f64::min);
        let outcome = if self.is_highest(rate) && self.bracket().high.is_none() {
            Outcome::AtLeast { rate, confirmation }
        } else {
            Outcome::Holds { rate, broke, confirmation }
        };
        Step::Done(Answer { outcome, log: self.log.clone() })
    }

    fn unconfirmed(&self) -> Step {
        let tried = self.confirmations().map(|probe| probe.rate).reduce(f64::max);
        let rate = tried.unwrap_or_else(|| self.log.iter().map(|probe| probe.rate).fold(0.0, f64::max));
        self.no_answer(Reason::Unconfirmed { limits: self.limits.clone(), rate })
    }

    fn no_answer(&self, reason: Reason) -> Step {
        Step::Done(Answer { outcome: Outcome::NoAnswer(reason), log: self.log.clone() })
    }

    /// A bit that the seed and the number of probes determine, by the finalizer of splitmix64.
    fn draw(&self) -> bool {
        let mut bits =
            self.options.seed.wrapping_add((self.log.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) & 1 == 1
    }
}

/// The share of requests that may be over a limit.
fn allowed(limit: &Limit) -> f64 {
    1.0 - limit.quantile().unwrap_or(0.0)
}

fn point(probe: &Probe, sample: &Sample, allowed: f64) -> Point {
    Point::new(probe.rate, sample.n, sample.over, allowed)
}
