//! The comparison of two or more arms that are measured in turns: a state machine without a clock and without an engine.
//!
//! A block measures every arm once, in an order that is drawn at random: AB or BA for two arms. The difference of two arms in a block
//! is the log of the value of one minus that of the other. If two arms do not differ, exchanging their places changes only the
//! sign of that difference, and the places are drawn. So, given the sizes of all differences, each sign is a fair coin, however the
//! machine behaved: with a load that hits some trials, a load that persists over blocks, or heavy tails. This is a randomisation test
//! (Fisher, The Design of Experiments, 1935). The test is Wilcoxon's signed-rank test with its exact distribution (Wilcoxon,
//! Individual comparisons by ranking methods, 1945), which a few far values hardly move. The interval is its inversion: the
//! ratios that it does not reject are those between two of the Walsh averages, and the estimate is their median (Hodges and
//! Lehmann, Estimates of location based on rank tests, 1963).
//!
//! A mirrored block runs its order again backwards: ABBA or BAAB, with the mean log of each arm's two values. Whatever drifts at a
//! constant rate within such a block cancels. But a burst of load spoils four trials in place of two, and each sign costs twice as
//! many trials, so differences are found later (`crates/change/tests/simulated/paired.rs`).
//!
//! The data are looked at several times. The allowed error is divided among all comparisons (metrics times arms) and all looks
//! (Bonferroni), so it holds for any dependence between them. Looks are at numbers of blocks that grow by a factor. One half of a
//! comparison's error is for these looks; the last look, when the budget is spent, has all that is left. Spending what is left at a
//! moment that nobody planned is allowed, because the clock does not depend on the signs (Lan and DeMets, Discrete sequential
//! boundaries for clinical trials, 1983).

mod comparison;
mod looks;
mod order;
mod signed_rank;
#[cfg(test)]
mod tests;

use comparison::Comparison;
pub use comparison::{Finding, Interval, Verdict};
use signed_rank::Ranks;

/// The most blocks of a comparison. The exact distribution of the test would take seconds with more.
pub const MOST_BLOCKS: usize = 1_000;

/// The least number of blocks after which a comparison with an error of `alpha`, over 0 and under 1, can have a verdict: it has one if
/// the time is over then, and all its blocks have the same sign.
pub fn least_blocks(arms: usize, metrics: usize, alpha: f64) -> usize {
    let comparisons = (metrics * arms.saturating_sub(1)).max(1);
    (1.0 - (alpha / comparisons as f64).log2()).ceil() as usize
}

/// How arms are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Determines the order of trials in each block.
    pub seed: u64,
    /// Whether each block runs its order again backwards: ABBA in place of AB.
    pub mirrored: bool,
    /// The probability that any verdict of all metrics and arms is false, or any interval misses its ratio: over 0 and under 1.
    pub alpha: f64,
    /// Arms that differ by at most this part are the same, over 0: 0.02 is a ratio from 1/1.02 to 1.02.
    pub margin: f64,
    /// A comparison without a verdict ends when its interval is this narrow: half of its width, as a part, over 0. `Same` is
    /// rarely shown if this is not clearly less than `margin`, because the interval must lie within the margin.
    pub until: f64,
    /// The most blocks, from 1 to `MOST_BLOCKS`.
    pub most_blocks: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            mirrored: false,
            alpha: 0.005,
            margin: 0.02,
            until: 0.01,
            most_blocks: MOST_BLOCKS,
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run these arms, one after the other, and `observe` what they showed. Arm 0 is the first one.
    Block(Vec<usize>),
    /// Every comparison has a verdict or a narrow interval, or the budget is spent.
    Done,
}

/// Why a comparison cannot begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PairedError {
    /// Nothing to compare.
    #[error("{0} arms cannot be compared: name at least two")]
    TooFewArms(usize),
    /// Nothing to compare by.
    #[error("arms cannot be compared without a metric: name at least one")]
    NoMetric,
    /// An option is out of its range.
    #[error("{name} is {value}: expected {expected}")]
    OutOfRange {
        /// The option.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Its range.
        expected: &'static str,
    },
}

/// Why a block was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ObserveError {
    /// The comparison has ended.
    #[error("the comparison has ended and takes no block")]
    Ended,
    /// Not as many trials as the block has places.
    #[error("the block has {actual} trials: expected {wanted}")]
    WrongTrials {
        /// Places of a block.
        wanted: usize,
        /// Trials that were given.
        actual: usize,
    },
    /// A trial does not have a value for each metric.
    #[error("trial {trial} of the block has values for {actual} metrics: expected {wanted}")]
    WrongMetrics {
        /// The place in the block, from 0.
        trial: usize,
        /// Metrics of the comparison.
        wanted: usize,
        /// Values of the trial.
        actual: usize,
    },
    /// A value has no logarithm.
    #[error(
        "metric {metric} of trial {trial} is {value}: ratios need values over 0; an unknown value is absent"
    )]
    NotPositive {
        /// The place in the block, from 0.
        trial: usize,
        /// The metric, from 0.
        metric: usize,
        /// The value.
        value: f64,
    },
}

/// A comparison of all arms with the first.
#[derive(Clone, Debug)]
pub struct Paired {
    arms: usize,
    metrics: usize,
    options: Options,
    blocks: usize,
    comparisons: Vec<Comparison>,
    ranks: Ranks,
    step: Step,
}

impl Paired {
    /// Begins a comparison of `arms` arms by `metrics` metrics (a metric is one figure of one phase).
    ///
    /// # Errors
    ///
    /// If there are fewer than two arms, no metric, or if an option is out of its range.
    pub fn new(arms: usize, metrics: usize, options: Options) -> Result<Paired, PairedError> {
        let out = |name, value, expected| Err(PairedError::OutOfRange { name, value, expected });
        let is_part = |value: f64| value.is_finite() && value > 0.0;
        if arms < 2 {
            return Err(PairedError::TooFewArms(arms));
        }
        if metrics == 0 {
            return Err(PairedError::NoMetric);
        }
        if !is_part(options.alpha) || options.alpha >= 1.0 {
            return out("alpha", options.alpha, "over 0 and under 1");
        }
        if !is_part(options.margin) {
            return out("margin", options.margin, "over 0");
        }
        if !is_part(options.until) {
            return out("until", options.until, "over 0");
        }
        if !(1..=MOST_BLOCKS).contains(&options.most_blocks) {
            return out("most_blocks", options.most_blocks as f64, "from 1 to 1000");
        }
        let alpha = options.alpha / (metrics * (arms - 1)) as f64;
        let comparisons = (0..metrics)
            .flat_map(|metric| (1..arms).map(move |arm| Comparison::new(metric, arm, alpha)))
            .collect();
        let step = Step::Block(order::order(arms, options.mirrored, options.seed, 0));
        Ok(Paired { arms, metrics, options, blocks: 0, comparisons, ranks: Ranks::default(), step })
    }

    /// What to do next. It stays the same until a block is taken.
    pub fn next(&self) -> &Step {
        &self.step
    }

    /// Takes the values of the block that `next` asked for: for each trial, in the order of its places, one value over 0 for each
    /// metric. A value that is not known, because the trial failed, is absent: the block then does not count for that metric and
    /// arm.
    ///
    /// # Errors
    ///
    /// If the comparison has ended, if a trial or a value is missing in the lists, or if a value is not over 0.
    pub fn observe(&mut self, trials: &[Vec<Option<f64>>]) -> Result<(), ObserveError> {
        let Step::Block(order) = &self.step else {
            return Err(ObserveError::Ended);
        };
        if trials.len() != order.len() {
            return Err(ObserveError::WrongTrials { wanted: order.len(), actual: trials.len() });
        }
        for (trial, values) in trials.iter().enumerate() {
            if values.len() != self.metrics {
                return Err(ObserveError::WrongMetrics { trial, wanted: self.metrics, actual: values.len() });
            }
            for (metric, value) in values.iter().enumerate() {
                if let Some(value) = value.filter(|value| !value.is_finite() || *value <= 0.0) {
                    return Err(ObserveError::NotPositive { trial, metric, value });
                }
            }
        }
        // The mean log of an arm's values.
        let mean = |arm: usize, metric: usize| {
            let places = order.iter().zip(trials).filter(|(place, _)| **place == arm);
            let logs: Option<Vec<f64>> = places.map(|(_, values)| values[metric].map(f64::ln)).collect();
            logs.map(|logs| logs.iter().sum::<f64>() / logs.len() as f64)
        };
        for comparison in &mut self.comparisons {
            let (base, other) = (mean(0, comparison.metric), mean(comparison.arm, comparison.metric));
            let difference = base.zip(other).map(|(base, other)| other - base);
            comparison.observe(difference, &self.options, &mut self.ranks);
        }
        self.blocks += 1;
        if self.comparisons.iter().all(|comparison| !comparison.is_open) {
            self.step = Step::Done;
        } else if self.blocks >= self.options.most_blocks {
            self.end();
        } else {
            let Options { mirrored, seed, .. } = self.options;
            self.step = Step::Block(order::order(self.arms, mirrored, seed, self.blocks as u64));
        }
        Ok(())
    }

    /// Ends the comparison, because the time that its caller has is spent: comparisons that are open are looked at for the last
    /// time. The moment must depend on the clock alone, and not on what was found; otherwise the error rate does not hold.
    pub fn end(&mut self) {
        if self.step == Step::Done {
            return;
        }
        self.comparisons.iter_mut().for_each(|comparison| comparison.end(&self.options, &mut self.ranks));
        self.step = Step::Done;
    }

    /// Blocks that were taken.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// What is known of each metric (outer order) and each arm but the first (inner order).
    pub fn findings(&self) -> Vec<Finding> {
        self.comparisons.iter().map(|comparison| comparison.finding(&self.options)).collect()
    }
}
