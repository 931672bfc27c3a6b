//! When requests arrive: the texts that users type for a rate (`20k`, `poisson:20k`, `ramp:1k-100k`), and the moments themselves.
//!
//! A moment is where the integral of the rate reaches a level. Levels are 1, 2, 3, ... if arrivals are evenly spaced, and sums of
//! exponential gaps of mean 1 if they are a Poisson process (Cinlar, Introduction to Stochastic Processes, 1975, on
//! non-homogeneous ones by a change of time). Moments are computed in floating point from the start of each piece of the rate, so
//! that the rounding of one gap to nanoseconds is carried into the next.

use super::portable::ln;
use super::random::Random;
use super::spec::{SpecError, misshapen, split, unknown};
use kvdyno_measure::text::{count_text, parse_count, parse_seconds};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The highest rate, requests per second: one per nanosecond.
const MOST_RATE: f64 = 1e9;
/// The longest period, seconds.
const MOST_PERIOD: f64 = 1e6;
/// The most steps.
const MOST_STEPS: usize = 1000;
/// Straight pieces of one period of a sine; the rate is off by at most 0.12 % of the amplitude.
const SINE_PIECES: u32 = 64;
/// The forms of a rate, in the order in which users see them; each may follow `poisson:`.
const FORMS: [&str; 5] =
    ["N", "steps:N,N,...", "ramp:FROM-TO", "bursts:LOW,HIGH,PERIOD,SHARE", "sine:MEAN,AMPLITUDE,PERIOD"];

/// Requests per second over the time of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RateText", into = "String")]
pub struct Rate {
    /// Arrivals are a Poisson process; otherwise they are evenly spaced.
    pub is_poisson: bool,
    /// The rate over time.
    pub course: Course,
}

/// How a rate goes over the time of a phase, requests per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// `20k`
    Constant(f64),
    /// `steps:1k,2k,4k`: each for an equal part of the phase.
    Steps(Vec<f64>),
    /// `ramp:1k-100k`: from one to the other over the phase.
    Ramp(f64, f64),
    /// `bursts:1k,20k,10s,0.2`: of each period of 10 s, the last fifth has the high rate.
    Bursts {
        /// The rate between bursts.
        low: f64,
        /// The rate of a burst.
        high: f64,
        /// From a burst to the next, seconds.
        period: f64,
        /// The share of the period that is a burst, 0 to 1.
        share: f64,
    },
    /// `sine:10k,5k,60s`: begins at the mean and rises.
    Sine {
        /// The mean rate.
        mean: f64,
        /// How far the rate goes above and below it.
        amplitude: f64,
        /// Length of a cycle, seconds.
        period: f64,
    },
}

/// In files a rate is a number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum RateText {
    Number(f64),
    Text(String),
}

impl TryFrom<RateText> for Rate {
    type Error = SpecError;

    fn try_from(text: RateText) -> Result<Rate, SpecError> {
        match text {
            RateText::Number(rate) => Rate { is_poisson: false, course: Course::Constant(rate) }.checked(),
            RateText::Text(text) => text.parse(),
        }
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.to_string()
    }
}

impl FromStr for Rate {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Rate, SpecError> {
        let text = text.trim();
        let (is_poisson, course) = match text.strip_prefix("poisson:") {
            Some(course) => (true, course.trim()),
            None => (false, text),
        };
        let (name, parameters) = split(course);
        let form = |place: usize, example: &str| misshapen(text, FORMS[place], example);
        let parts = || parameters.map_or_else(Vec::new, |parts| parts.split(',').map(str::trim).collect());
        let course = match name {
            "steps" => {
                let steps: Option<Vec<f64>> = parts().into_iter().map(rate).collect();
                Course::Steps(steps.filter(|all| !all.is_empty()).ok_or_else(|| form(1, "steps:1k,2k,4k"))?)
            }
            "ramp" => {
                let ends = parameters.and_then(|ends| ends.split_once('-'));
                let ends = ends.and_then(|(from, to)| Some((rate(from)?, rate(to)?)));
                let (from, to) = ends.ok_or_else(|| form(2, "ramp:1k-100k"))?;
                Course::Ramp(from, to)
            }
            "bursts" => {
                let [low, high, period, share] = parts()[..] else {
                    return Err(form(3, "bursts:1k,20k,10s,0.2"));
                };
                let read = || Some((rate(low)?, rate(high)?, parse_seconds(period).ok()?, part(share)?));
                let (low, high, period, share) = read().ok_or_else(|| form(3, "bursts:1k,20k,10s,0.2"))?;
                Course::Bursts { low, high, period, share }
            }
            "sine" => {
                let [mean, amplitude, period] = parts()[..] else {
                    return Err(form(4, "sine:10k,5k,60s"));
                };
                let read = || Some((rate(mean)?, rate(amplitude)?, parse_seconds(period).ok()?));
                let (mean, amplitude, period) = read().ok_or_else(|| form(4, "sine:10k,5k,60s"))?;
                Course::Sine { mean, amplitude, period }
            }
            "poisson" => return Err(misshapen(text, "poisson:RATE", "poisson:20k")),
            _ if name.starts_with(|first: char| first.is_alphabetic()) => {
                return Err(unknown("rate", name, &FORMS.map(|form| split(form).0)[1..]));
            }
            _ => Course::Constant(
                rate(course)
                    .ok_or_else(|| SpecError(format!("expected a rate such as 20k, got `{text}`")))?,
            ),
        };
        Rate { is_poisson, course }.checked()
    }
}

/// Requests per second: a count with its unit, or any number.
fn rate(text: &str) -> Option<f64> {
    let text = text.trim();
    parse_count(text).ok().map(|count| count as f64).or_else(|| text.parse().ok())
}

/// A share: `0.2` or `20%`.
fn part(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}

impl Rate {
    /// The rate, if it can be kept by a clock of nanoseconds; otherwise an error that says what is wrong.
    fn checked(self) -> Result<Rate, SpecError> {
        let wrong = |what: &str| Err(SpecError(format!("rate `{self}`: {what}")));
        let is_rate = |rate: f64| rate > 0.0 && rate <= MOST_RATE;
        let is_period = |period: f64| period > 0.0 && period <= MOST_PERIOD;
        const RATE: &str = "expected more than 0 and at most 1,000,000,000 requests per second";
        match &self.course {
            Course::Constant(rate) if !is_rate(*rate) => wrong(RATE),
            Course::Steps(steps) if steps.iter().any(|step| !is_rate(*step)) => wrong(RATE),
            Course::Steps(steps) if steps.len() > MOST_STEPS => wrong("expected at most 1000 steps"),
            Course::Steps(steps) if steps.windows(2).any(|pair| pair[0] >= pair[1]) => {
                wrong("each step must be higher than the one before")
            }
            Course::Ramp(from, to) if !is_rate(*from) || !is_rate(*to) => wrong(RATE),
            Course::Bursts { low, high, .. } if !(*low >= 0.0 && low < high && is_rate(*high)) => {
                wrong("HIGH must be over LOW, and LOW at least 0")
            }
            Course::Bursts { share, .. } if !(*share > 0.0 && *share < 1.0) => {
                wrong("SHARE must be over 0 and under 1")
            }
            Course::Sine { mean, amplitude, .. }
                if !(is_rate(*mean)
                    && *amplitude > 0.0
                    && amplitude <= mean
                    && mean + amplitude <= MOST_RATE) =>
            {
                wrong("AMPLITUDE must be over 0 and at most MEAN")
            }
            Course::Bursts { period, .. } | Course::Sine { period, .. } if !is_period(*period) => {
                wrong("PERIOD must be over 0 and at most 1,000,000 seconds")
            }
            _ => Ok(self),
        }
    }

    /// Whether the rate depends on the length of the phase.
    pub fn needs_length(&self) -> bool {
        matches!(self.course, Course::Steps(_) | Course::Ramp(..))
    }

    /// The rate of one of `count` sources that have it together.
    pub fn divided(&self, count: u32) -> Rate {
        let by = |rate: f64| rate / f64::from(count.max(1));
        let course = match &self.course {
            Course::Constant(rate) => Course::Constant(by(*rate)),
            Course::Steps(steps) => Course::Steps(steps.iter().map(|step| by(*step)).collect()),
            Course::Ramp(from, to) => Course::Ramp(by(*from), by(*to)),
            Course::Bursts { low, high, period, share } => {
                Course::Bursts { low: by(*low), high: by(*high), period: *period, share: *share }
            }
            Course::Sine { mean, amplitude, period } => {
                Course::Sine { mean: by(*mean), amplitude: by(*amplitude), period: *period }
            }
        };
        Rate { is_poisson: self.is_poisson, course }
    }

    /// The highest rate that it has, requests per second.
    pub fn highest(&self) -> f64 {
        match &self.course {
            Course::Constant(rate) => *rate,
            Course::Steps(steps) => steps.iter().copied().fold(0.0, f64::max),
            Course::Ramp(from, to) => from.max(*to),
            Course::Bursts { high, .. } => *high,
            Course::Sine { mean, amplitude, .. } => mean + amplitude,
        }
    }

    /// The rate over time of a phase with this length after its warm-up, seconds. During the warm-up the rate is that of its end.
    fn pieces(&self, warm_up: f64, seconds: Option<f64>) -> Pieces {
        let flat = |rate: f64, seconds: f64| Piece::new(seconds, rate, rate);
        let forever = |rate: f64| flat(rate, f64::INFINITY);
        let length = seconds.unwrap_or(0.0);
        let (mut all, cycle) = match &self.course {
            Course::Constant(rate) => (vec![forever(*rate)], 0),
            Course::Steps(steps) => {
                let each = length / steps.len().max(1) as f64;
                let all: Vec<Piece> = steps.iter().map(|step| flat(*step, each)).collect();
                (all, 0)
            }
            Course::Ramp(from, to) => (vec![Piece::new(length, *from, *to)], 0),
            Course::Bursts { low, high, period, share } => {
                (vec![flat(*low, period * (1.0 - share)), flat(*high, period * share)], 2)
            }
            Course::Sine { mean, amplitude, period } => {
                let at = |place: u32| (mean + amplitude * sine_of(place)).max(0.0);
                let piece = |place| Piece::new(period / f64::from(SINE_PIECES), at(place), at(place + 1));
                ((0..SINE_PIECES).map(piece).collect(), SINE_PIECES as usize)
            }
        };
        let first = all.first().map_or(0.0, |piece| piece.from);
        if cycle == 0 {
            let last = all.last().map_or(0.0, |piece| piece.to) * 1e9;
            all.push(forever(last));
        }
        if warm_up > 0.0 {
            all.insert(0, flat(first * 1e9, warm_up));
        }
        let cycle_from = (cycle > 0).then(|| all.len() - cycle);
        Pieces { all, cycle_from }
    }
}

/// The sine of `place` parts of a cycle of [`SINE_PIECES`], by its series, so that every machine gets the same bits.
fn sine_of(place: u32) -> f64 {
    let place = place % SINE_PIECES;
    let half = SINE_PIECES / 2;
    let (sign, place) = if place >= half { (-1.0, place - half) } else { (1.0, place) };
    let x = std::f64::consts::PI * f64::from(place.min(half - place)) / f64::from(half);
    let (mut term, mut sum) = (x, x);
    for k in 1..10 {
        term *= -x * x / f64::from(2 * k * (2 * k + 1));
        sum += term;
    }
    sign * sum
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |rate: &f64| match *rate {
            rate if rate >= 1.0 && rate.fract() == 0.0 && rate <= MOST_RATE => count_text(rate as u64),
            rate => rate.to_string(),
        };
        if self.is_poisson {
            out.write_str("poisson:")?;
        }
        match &self.course {
            Course::Constant(rate) => out.write_str(&text(rate)),
            Course::Steps(steps) => {
                write!(out, "steps:{}", steps.iter().map(text).collect::<Vec<_>>().join(","))
            }
            Course::Ramp(from, to) => write!(out, "ramp:{}-{}", text(from), text(to)),
            Course::Bursts { low, high, period, share } => {
                write!(out, "bursts:{},{},{period}s,{share}", text(low), text(high))
            }
            Course::Sine { mean, amplitude, period } => {
                write!(out, "sine:{},{},{period}s", text(mean), text(amplitude))
            }
        }
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Requests per second: a number (k = 1000, M = 1,000,000), `steps:N,N,...` (each for an equal part of the \
                phase), `ramp:FROM-TO`, `bursts:LOW,HIGH,PERIOD,SHARE` or `sine:MEAN,AMPLITUDE,PERIOD`, evenly spaced; \
                `poisson:` before any of these makes them a Poisson process.",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": "^(poisson:)?([0-9].*|steps:.+|ramp:.+-.+|bursts:.+,.+,.+,.+|sine:.+,.+,.+)$"}
            ],
            "examples": [20000, "poisson:20k", "steps:1k,2k,4k", "ramp:1k-100k", "bursts:1k,20k,10s,0.2", "sine:10k,5k,60s"]
        })
    }
}

/// A time in which the rate goes evenly from one value to another, in nanoseconds and requests per nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    ns: f64,
    from: f64,
    to: f64,
}

impl Piece {
    /// Seconds and requests per second.
    fn new(seconds: f64, from: f64, to: f64) -> Piece {
        Piece { ns: seconds * 1e9, from: from / 1e9, to: to / 1e9 }
    }

    fn slope(&self) -> f64 {
        if self.from == self.to { 0.0 } else { (self.to - self.from) / self.ns }
    }

    /// Requests from `begin` to `end`, both nanoseconds from the start of the piece.
    fn requests(&self, begin: f64, end: f64) -> f64 {
        (end - begin) * (self.from + self.slope() * (begin + end) / 2.0)
    }
}

/// The rate over time.
#[derive(Clone, Debug, PartialEq)]
struct Pieces {
    all: Vec<Piece>,
    /// The pieces from here on are repeated; none: the last one does not end.
    cycle_from: Option<usize>,
}

impl Pieces {
    fn after(&self, place: usize) -> usize {
        if place + 1 < self.all.len() { place + 1 } else { self.cycle_from.unwrap_or(place) }
    }

    /// Requests from the start to `ns`.
    fn requests(&self, ns: f64) -> f64 {
        let once = self.cycle_from.unwrap_or(self.all.len());
        let (mut left, mut sum) = (ns, 0.0);
        let take = |piece: &Piece, left: &mut f64, sum: &mut f64| {
            *sum += piece.requests(0.0, left.min(piece.ns));
            *left = (*left - piece.ns).max(0.0);
        };
        self.all[..once].iter().for_each(|piece| take(piece, &mut left, &mut sum));
        let cycle = &self.all[once..];
        let length: f64 = cycle.iter().map(|piece| piece.ns).sum();
        if length > 0.0 {
            let cycles = (left / length).floor();
            sum += cycles * cycle.iter().map(|piece| piece.requests(0.0, piece.ns)).sum::<f64>();
            left -= cycles * length;
            cycle.iter().for_each(|piece| take(piece, &mut left, &mut sum));
        }
        sum
    }
}

/// The moments at which requests arrive, in order. All that have the same seed and stream are equal.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pieces: Pieces,
    /// None: evenly spaced.
    random: Option<Random>,
    /// Requests until the next arrival, if it is not a whole gap.
    first: f64,
    place: usize,
    /// Where the piece begins, and the last arrival in it, nanoseconds.
    base: f64,
    offset: f64,
}

impl Arrivals {
    /// The arrivals of a phase with this length after its warm-up, seconds, from the start of its warm-up.
    pub fn new(rate: &Rate, warm_up: f64, seconds: Option<f64>, seed: u64) -> Arrivals {
        Arrivals::of_stream(rate, warm_up, seconds, seed, 0, 1)
    }

    /// Those of one of `streams` streams that have the rate together. Evenly spaced ones alternate.
    pub fn of_stream(
        rate: &Rate,
        warm_up: f64,
        seconds: Option<f64>,
        seed: u64,
        stream: u32,
        streams: u32,
    ) -> Arrivals {
        let pieces = rate.divided(streams).pieces(warm_up, seconds);
        let random = rate.is_poisson.then(|| Random::stream(seed, stream.into()));
        let first = f64::from(stream + 1) / f64::from(streams.max(1));
        Arrivals { pieces, random, first, place: 0, base: 0.0, offset: 0.0 }
    }

    /// The next moment, nanoseconds from the start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        let mut left = match &mut self.random {
            // 1 - u is in (0, 1].
            Some(random) => -ln(1.0 - random.unit()),
            None => std::mem::replace(&mut self.first, 1.0),
        };
        loop {
            let piece = self.pieces.all[self.place];
            let here =
                if piece.ns.is_infinite() { f64::INFINITY } else { piece.requests(self.offset, piece.ns) };
            if left <= here {
                let slope = piece.slope();
                let rate = piece.from + slope * self.offset;
                // The root of slope/2 x^2 + rate x = left, in a form that also holds for slope 0.
                self.offset += match slope {
                    0.0 => left / rate,
                    _ => 2.0 * left / (rate + (rate * rate + 2.0 * slope * left).max(0.0).sqrt()),
                };
                return (self.base + self.offset) as u64;
            }
            left -= here;
            self.base += piece.ns;
            (self.place, self.offset) = (self.pieces.after(self.place), 0.0);
        }
    }

    /// The requests that the rate gives until `ns`, in the mean.
    pub fn expected(&self, ns: u64) -> f64 {
        self.pieces.requests(ns as f64)
    }

    /// Whether they are a Poisson process.
    pub fn are_poisson(&self) -> bool {
        self.random.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn within(arrivals: &mut Arrivals, ns: u64) -> Vec<u64> {
        std::iter::repeat_with(|| arrivals.next_ns()).take_while(|at| *at < ns).collect()
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in [
            "20k",
            "1",
            "0.5",
            "1500",
            "poisson:300k",
            "steps:1k,2k,4k",
            "poisson:steps:1,2",
            "ramp:1k-100k",
            "ramp:100k-1k",
            "bursts:1k,20k,10s,0.2",
            "poisson:bursts:0,5,0.5s,0.1",
            "sine:10k,5k,60s",
        ] {
            let read = rate(text);
            assert_eq!(rate(&read.to_string()), read, "{text}");
        }
        assert_eq!(rate("bursts:1k,20k,500ms,20%").to_string(), "bursts:1k,20k,0.5s,0.2");
        assert_eq!(rate(" poisson:20_000 ").to_string(), "poisson:20k");
    }

    #[test]
    fn what_is_no_rate_is_refused_in_one_line() {
        for (text, wanted) in [
            ("0", "more than 0"),
            ("-5", "more than 0"),
            ("nan", "unknown rate"),
            ("2G", "at most 1,000,000,000"),
            ("inf", "unknown rate"),
            ("poisson", "poisson:RATE"),
            ("poisson:0", "more than 0"),
            ("steps:", "steps:1k,2k,4k"),
            ("steps:4k,2k", "higher than the one before"),
            ("steps:1k,1k", "higher than"),
            ("ramp:1k", "ramp:1k-100k"),
            ("ramp:0-5", "more than 0"),
            ("bursts:5,1,1s,0.5", "HIGH must be over LOW"),
            ("bursts:1,2,1s,1", "SHARE"),
            ("bursts:1,2,0s,0.5", "PERIOD"),
            ("sine:1k,2k,1s", "AMPLITUDE"),
            ("sine:1k,2k", "sine:10k,5k,60s"),
            ("possion:5", "unknown rate `possion`"),
            ("", "expected a rate such as 20k"),
            ("5x", "expected a rate such as 20k"),
        ] {
            let error = text.parse::<Rate>().expect_err(text).to_string();
            assert!(error.contains(wanted) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn evenly_spaced_arrivals_do_not_drift() {
        // A gap of 333,333.33 ns: rounded gaps would lose one arrival in a million.
        let mut arrivals = Arrivals::new(&rate("3k"), 0.0, None, 1);
        let last = (0..3_000_000).map(|_| arrivals.next_ns()).last().unwrap();
        assert!(last.abs_diff(1_000_000_000_000) < 1_000, "after 1000 s: {last}");
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_at_every_rate() {
        for text in ["poisson:1k", "poisson:300k", "poisson:600k", "poisson:5M"] {
            let wanted = rate(text).highest();
            let seconds = 1e6 / wanted;
            let found =
                within(&mut Arrivals::new(&rate(text), 0.0, None, 7), (seconds * 1e9) as u64).len() as f64;
            // Five deviations of a count of a million.
            assert!((found / 1e6 - 1.0).abs() < 0.005, "{text}, seed 7: {found}");
        }
    }

    #[test]
    fn each_course_gives_the_requests_of_its_integral() {
        for (text, seconds, wanted) in [
            ("steps:100k,200k,300k", 3.0, [100_000.0, 300_000.0, 600_000.0]),
            ("ramp:0.001-600k", 3.0, [100_000.0, 400_000.0, 900_000.0]),
            ("bursts:100k,300k,1s,0.5", 3.0, [200_000.0, 400_000.0, 600_000.0]),
            ("sine:100k,100k,2s", 3.0, [163_600.0, 200_000.0, 363_600.0]),
        ] {
            for poisson in ["", "poisson:"] {
                let rate = rate(&format!("{poisson}{text}"));
                let mut arrivals = Arrivals::new(&rate, 0.5, Some(seconds), 3);
                let all = within(&mut arrivals, 3_500_000_000);
                assert!(all.is_sorted(), "{rate}");
                let warm_up = arrivals.expected(500_000_000);
                for (second, wanted) in (1_u64..).zip(wanted) {
                    let end = 500_000_000 + second * 1_000_000_000;
                    let found = all.iter().filter(|at| (500_000_000..end).contains(*at)).count() as f64;
                    let expected = arrivals.expected(end) - warm_up;
                    assert!(
                        (expected / wanted - 1.0).abs() < 0.002,
                        "{rate}, {second} s: {expected} of {wanted}"
                    );
                    let most = if poisson.is_empty() { 2.0 } else { 5.0 * wanted.sqrt() };
                    assert!(
                        (found - expected).abs() <= most,
                        "{rate}, seed 3, {second} s: {found} of {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn streams_have_the_rate_together_and_differ() {
        let count = |text: &str| {
            let of = |stream| {
                within(&mut Arrivals::of_stream(&rate(text), 0.0, None, 5, stream, 4), 1_000_000_000)
            };
            let all: Vec<Vec<u64>> = (0..4).map(of).collect();
            assert!(all[0] != all[1], "{text}");
            all.concat().len() as f64
        };
        assert_eq!(count("100k"), 99_999.0, "the last one is at the end");
        assert!((count("poisson:100k") / 1e5 - 1.0).abs() < 0.02, "seed 5");
    }

    #[test]
    fn the_same_seed_has_the_same_moments() {
        let of = |seed| within(&mut Arrivals::new(&rate("poisson:1M"), 0.0, None, seed), 1_000_000);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let mut fixed = Arrivals::new(&rate("poisson:sine:1M,500k,1ms"), 0.0, None, 42);
        let moments: Vec<u64> = (0..1000).map(|_| fixed.next_ns()).collect();
        assert_eq!((moments[0], moments[9], moments[999]), (1_679, 13_583, 1_015_932));
    }
}
