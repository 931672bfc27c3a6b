//! Formats shares and sizes for sentences.

use crate::generator::{ParetoShape, SizeSpec};
use kvdyno_measure::text::{counted, grouped, listed};

/// `50 %`, `0.1 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// A Pareto distribution in words.
pub(super) fn pareto(shape: ParetoShape) -> String {
    format!("from a generalized Pareto distribution with k {} and sigma {}", shape.k, shape.sigma)
}

/// Sizes in words.
pub(super) fn size(size: &SizeSpec) -> String {
    let bytes = |bytes: u32| counted(bytes.into(), "byte", "bytes");
    match size {
        SizeSpec::Fixed(size) => bytes(*size),
        SizeSpec::Uniform(least, most) => {
            format!("{} to {}, all sizes equally likely", grouped((*least).into()), bytes(*most))
        }
        SizeSpec::Zipf(least, most) => {
            format!("{} to {}, small sizes more likely", grouped((*least).into()), bytes(*most))
        }
        SizeSpec::Normal(mean, deviation) => format!("about {mean} bytes (standard deviation {deviation})"),
        SizeSpec::Pareto(shape, least, most) => {
            format!("{} to {}, {}", grouped((*least).into()), bytes(*most), pareto(*shape))
        }
        SizeSpec::Histogram(bars) => {
            let all: f64 = bars.iter().map(|(_, weight)| weight).sum();
            let bar = |(size, weight): &(u32, f64)| format!("{} ({})", bytes(*size), percent(weight / all));
            listed(&bars.iter().map(bar).collect::<Vec<_>>(), "and")
        }
    }
}
