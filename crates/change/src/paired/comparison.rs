//! One metric of one arm against the first arm.

use super::Options;
use super::looks::Looks;
use super::signed_rank::{self, Ranks};

/// What is shown of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value is higher than that of the first arm. It may still be within the margin: the interval says by how much.
    Higher,
    /// The value is lower than that of the first arm. It may still be within the margin.
    Lower,
    /// No difference was shown, and the ratio is within the margin.
    Same,
    /// Neither was shown.
    Unknown,
}

/// The ratios that the data do not reject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lowest ratio.
    pub low: f64,
    /// The highest ratio.
    pub high: f64,
}

/// What is known of one metric of one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The metric, from 0.
    pub metric: usize,
    /// The arm, from 1.
    pub arm: usize,
    /// Blocks that count.
    pub blocks: usize,
    /// Blocks that do not count, because a value of one of the two arms is absent.
    pub missing: usize,
    /// The value of the arm divided by that of the first arm, inside of `interval`. Absent before the first block that counts.
    pub ratio: Option<f64>,
    /// The interval of all looks so far. Together with the intervals of all other metrics and arms it has the error `alpha`.
    /// Absent before the first look.
    pub interval: Option<Interval>,
    /// What the interval shows.
    pub verdict: Verdict,
    /// Whether more blocks are wanted, or were wanted when the budget was spent.
    pub is_open: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub metric: usize,
    pub arm: usize,
    /// Logs of ratios.
    differences: Vec<f64>,
    missing: usize,
    looks: Looks,
    /// Logs of the lowest and highest ratio.
    interval: Option<(f64, f64)>,
    pub is_open: bool,
}

impl Comparison {
    pub fn new(metric: usize, arm: usize, alpha: f64) -> Comparison {
        let looks = Looks::new(alpha);
        Comparison { metric, arm, differences: Vec::new(), missing: 0, looks, interval: None, is_open: true }
    }

    /// Takes the difference of a block, and looks if a look is due.
    pub fn observe(&mut self, difference: Option<f64>, options: &Options, ranks: &mut Ranks) {
        let Some(difference) = difference else {
            self.missing += 1;
            return;
        };
        self.differences.push(difference);
        if let Some(alpha) = self.looks.due(self.differences.len()) {
            self.look(alpha, options, ranks);
        }
    }

    /// Looks for the last time.
    pub fn end(&mut self, options: &Options, ranks: &mut Ranks) {
        if self.is_open {
            self.look(self.looks.rest(), options, ranks);
        }
    }

    /// All intervals hold together, so what they have in common holds. If they have nothing in common, one of them is false, or the
    /// arms do not differ by one ratio: what is known is then what the last one says, and it is open again.
    fn look(&mut self, alpha: f64, options: &Options, ranks: &mut Ranks) {
        let Some((low, high)) = signed_rank::interval(&self.differences, alpha, ranks) else {
            return;
        };
        let common = self.interval.map_or((low, high), |(before, after)| (before.max(low), after.min(high)));
        let (low, high) = if common.0 <= common.1 { common } else { (low, high) };
        self.interval = Some((low, high));
        let is_narrow = (high - low) / 2.0 <= options.until.ln_1p();
        self.is_open = !is_narrow && self.verdict(options) == Verdict::Unknown;
    }

    fn verdict(&self, options: &Options) -> Verdict {
        let margin = options.margin.ln_1p();
        match self.interval {
            Some((low, _)) if low > 0.0 => Verdict::Higher,
            Some((_, high)) if high < 0.0 => Verdict::Lower,
            Some((low, high)) if -margin <= low && high <= margin => Verdict::Same,
            _ => Verdict::Unknown,
        }
    }

    pub fn finding(&self, options: &Options) -> Finding {
        // An interval of several looks may lie beside the estimate from all blocks.
        let inside = |center: f64| self.interval.map_or(center, |(low, high)| center.clamp(low, high));
        Finding {
            metric: self.metric,
            arm: self.arm,
            blocks: self.differences.len(),
            missing: self.missing,
            ratio: signed_rank::center(&self.differences).map(inside).map(f64::exp),
            interval: self.interval.map(|(low, high)| Interval { low: low.exp(), high: high.exp() }),
            verdict: self.verdict(options),
            is_open: self.is_open,
        }
    }
}
