//! Response times against the rate of requests, up to and past the rate that an engine keeps.

use super::lines::{self, Axis, Line, Lines, Point};
use super::palette::Style;
use super::scale::Unit;
use super::{Chart, Scales};
use crate::plot::picture;
use kvdyno_measure::text::{counted, plain_text};

/// The response times of an engine at several rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateCurve {
    /// The engine's name.
    pub engine: String,
    /// Requests per second, and the response time, nanoseconds; none: the engine does not keep that rate. In ascending order.
    pub points: Vec<(f64, Option<f64>)>,
}

/// All curves in one SVG file; none: there is no point. `source`: where the figures are from.
pub fn rate_curves(
    workload: &str,
    figure: &'static str,
    curves: &[RateCurve],
    source: &str,
) -> Option<String> {
    let charts: [Chart; 1] = [rate_chart(workload, figure, curves)?];
    let title = plain_text(&format!("rates of {workload}"));
    picture(&charts, &title, &title, source)
}

/// The curves as a chart; none: there is no point.
pub(crate) fn rate_chart(workload: &str, figure: &'static str, curves: &[RateCurve]) -> Option<Chart> {
    let line = |(place, curve): (usize, &RateCurve)| {
        let point = |&(rate, ns): &(f64, Option<f64>)| Point {
            x: rate,
            y: ns,
            interval: None,
            is_marked: true,
            is_slow: false,
            stalls: String::new(),
        };
        Line {
            engine: curve.engine.clone(),
            style: Style::of(place),
            points: curve.points.iter().map(point).collect(),
            curve: Vec::new(),
            is_extra: false,
            tip: format!("{}: {}", curve.engine, counted(curve.points.len() as u64, "rate", "rates")),
        }
    };
    let known: Vec<&RateCurve> =
        curves.iter().filter(|curve| curve.points.iter().any(|(_, ns)| ns.is_some())).collect();
    lines::draw(
        &Lines {
            title: plain_text(&format!("{workload}: {figure} by requests per second")),
            about: "A line ends before the lowest rate that the engine does not keep.".to_string(),
            x: Axis { title: "requests per second", unit: Unit::Rate, is_log: true },
            y: Axis { title: figure, unit: Unit::Time, is_log: true },
            lines: known.iter().enumerate().map(|(place, curve)| line((place, curve))).collect(),
            of: known.len(),
            has_switch: false,
            bands: Vec::new(),
        },
        Scales::Own,
    )
}
