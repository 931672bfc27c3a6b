//! Figures that arms are compared by, and where they are in the record of a trial.

use crate::cli::trials::phase;
use kvdyno_change::paired::Verdict;
use kvdyno_core::results::{PhaseRecord, Record};
use kvdyno_measure::Histogram;
use kvdyno_measure::text::{bytes_text, grouped, time_text};

/// A figure of a phase that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Metric {
    /// The phase.
    pub phase: String,
    /// The figure.
    pub figure: Figure,
}

/// What is compared of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(in crate::cli) enum Figure {
    /// Ops per second.
    Rate,
    /// The p99 of response times at a rate, else of service times.
    P99,
    /// Allocated bytes of the database at the end of the phase.
    Size,
}

impl Figure {
    /// Its name in tables.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            Figure::Rate => "ops/s",
            Figure::P99 => "p99",
            Figure::Size => "size",
        }
    }

    /// Whether a higher value is worse.
    pub(in crate::cli) fn is_worse_if_higher(self) -> bool {
        match self {
            Figure::Rate => false,
            Figure::P99 | Figure::Size => true,
        }
    }

    /// Whether a verdict says that the arm is worse than the first.
    pub(in crate::cli) fn is_worse(self, verdict: Verdict) -> bool {
        match self.is_worse_if_higher() {
            true => verdict == Verdict::Higher,
            false => verdict == Verdict::Lower,
        }
    }

    /// A value with its unit; `-` if it is unknown.
    pub(in crate::cli) fn shown(self, value: Option<f64>) -> String {
        match (value, self) {
            (None, _) => "-".to_string(),
            (Some(rate), Figure::Rate) => grouped(rate.round() as u64),
            (Some(ns), Figure::P99) => time_text(ns),
            (Some(bytes), Figure::Size) => bytes_text(bytes as u64),
        }
    }
}

/// How much worse a figure is at a ratio, as a part: 0.05 is 5 % fewer ops/s, or a p99 that is 5 % longer. Negative: it is better.
pub(in crate::cli) fn figure_change(figure: Figure, ratio: f64) -> f64 {
    if figure.is_worse_if_higher() { ratio - 1.0 } else { 1.0 - ratio }
}

impl Metric {
    /// Its value in a trial; none: it is unknown, or the trial failed.
    pub(super) fn value(&self, record: &Record) -> Option<f64> {
        let found = phase(record, &self.phase).ok()?;
        let value = match self.figure {
            Figure::Rate => found.ops_per_second(),
            Figure::P99 => p99(found),
            Figure::Size => found.disk_end.map(|used| used.allocated_bytes as f64),
        };
        value.filter(|value| *value > 0.0)
    }
}

/// The p99 of response times where requests arrive at a rate, else of service times, nanoseconds; none: too few are known, or they
/// are not those of the engine at the rate.
fn p99(found: &PhaseRecord) -> Option<f64> {
    let times = match &found.arrivals {
        Some(arrivals) => {
            let response = found.times(|kind| &kind.response_ns);
            if arrivals.unfit(&response).is_some() {
                return None;
            }
            response
        }
        None => {
            let mut all = Histogram::empty();
            found.kinds.iter().for_each(|kind| all.merge(&kind.service_ns));
            all
        }
    };
    times.quantile_if_enough(99, 100).map(|ns| ns as f64)
}
