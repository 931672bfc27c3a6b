//! How fast a server works at each moment. Work is counted in seconds at full pace.

use crate::random::Random;

/// How the pace changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// It does not.
    Even,
    /// It is 0 for `length` seconds at the end of each `period` seconds.
    Stalls { period: f64, length: f64 },
    /// It falls from 1 to `end` in `seconds` of measurement, then stays.
    Drift { end: f64, seconds: f64 },
    /// It is `pace` for times with mean `slow` seconds, and 1 between them for times with mean `fast` seconds.
    Switches { fast: f64, slow: f64, pace: f64 },
}

/// A time in which the pace is the same.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: f64,
    end: f64,
    pace: f64,
    /// Work done before `start`, seconds.
    work: f64,
}

/// The work that can be done up to each time of a run, and the reverse.
#[derive(Debug)]
pub struct Clockwork {
    pace: Pace,
    random: Random,
    /// Where the run begins on the time line of drift and stalls.
    origin: f64,
    segments: Vec<Segment>,
    /// The segment of the last arrival.
    at: usize,
}

impl Clockwork {
    pub fn new(pace: Pace, origin: f64, random: Random) -> Clockwork {
        let mut clockwork = Clockwork { pace, random, origin, segments: Vec::new(), at: 0 };
        let first = match pace {
            Pace::Switches { fast, slow, .. } => clockwork.random.unit() * (fast + slow) < slow,
            _ => false,
        };
        clockwork.push(first);
        clockwork
    }

    /// Adds the next segment; `slow` is the state of a server that switches.
    fn push(&mut self, slow: bool) {
        let (start, work) = self
            .segments
            .last()
            .map_or((0.0, 0.0), |last| (last.end, last.work + (last.end - last.start) * last.pace));
        let (length, pace) = match self.pace {
            Pace::Even => (f64::INFINITY, 1.0),
            Pace::Stalls { period, length } => {
                let phase = (self.origin + start) % period;
                // At least a nanosecond, so that rounding makes no endless sequence of empty segments.
                let is_up = phase < period - length;
                let (length, pace) =
                    if is_up { (period - length - phase, 1.0) } else { (period - phase, 0.0) };
                (length.max(1e-9), pace)
            }
            Pace::Drift { end, seconds } => {
                let passed = ((self.origin + start) / seconds).min(1.0);
                (0.05, 1.0 - (1.0 - end) * passed)
            }
            Pace::Switches { slow: mean, pace, .. } if slow => (self.random.exponential(mean), pace),
            Pace::Switches { fast, .. } => (self.random.exponential(fast), 1.0),
        };
        self.segments.push(Segment { start, end: start + length, pace, work });
    }

    fn segment(&mut self, index: usize) -> Segment {
        while self.segments.len() <= index {
            let slow = match (self.pace, self.segments.last()) {
                (Pace::Switches { .. }, Some(last)) => last.pace == 1.0,
                _ => false,
            };
            self.push(slow);
        }
        self.segments[index]
    }

    /// The work done up to `time`. Times must not fall.
    pub fn work(&mut self, time: f64) -> f64 {
        while self.segment(self.at).end <= time {
            self.at += 1;
        }
        let segment = self.segments[self.at];
        segment.work + (time - segment.start) * segment.pace
    }

    /// The time at which `work` is done, which is not before the last time of `work`.
    pub fn time(&mut self, work: f64) -> f64 {
        let mut index = self.at;
        loop {
            let segment = self.segment(index);
            let time = segment.start + (work - segment.work) / segment.pace;
            if segment.pace > 0.0 && time <= segment.end {
                return time;
            }
            index += 1;
        }
    }

    /// Whether the pace is 0 at the last time of `work`.
    pub fn is_stalled(&self) -> bool {
        self.segments[self.at].pace == 0.0
    }
}
