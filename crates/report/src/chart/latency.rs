//! The distribution of latencies: each engine's percentiles as a line, with logarithmic axes.

use super::lines::{self, Axis, Line, Lines, Point};
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, hidden_note, levels};
use super::{Chart, Scales};
use crate::describe::cell_name;
use crate::figure::{known, time};
use kvdyno_core::results::Record;
use kvdyno_core::results::summary::{Cell, PhaseSummary, quantile_over};
use kvdyno_measure::Histogram;

/// The percentiles drawn in each power of ten, as tenths of 1/(1-p).
const PLACES: [u64; 6] = [10, 15, 20, 30, 50, 70];
/// The number of powers of ten: up to seven nines.
const POWERS: u32 = 7;

/// A chart for each durability level of the phase.
pub(crate) fn latency(scene: &Scene, phase: &PhaseSummary, scales: Scales) -> Vec<Chart> {
    let draw = |(level, cells): (String, Vec<&Cell>)| {
        let line = |(place, cell): (usize, &&Cell)| Line {
            engine: cell_name(cell),
            style: scene.style(cell),
            points: points(&service_times(scene, phase, cell)),
            curve: Vec::new(),
            is_extra: place >= LINES_SHOWN,
            tip: tip(cell),
        };
        let drawn = Lines {
            title: format!("latency, level {level}"),
            about: format!(
                "Service times: the time that this percentage of the ops did not exceed, median over runs. A line ends \
                 where a run has too few ops. Response times: - (not in these records).{}",
                hidden_note(cells.len())
            ),
            x: Axis { title: "percentile, %", unit: Unit::Percentile, is_log: true },
            y: Axis { title: "service time", unit: Unit::Time, is_log: true },
            lines: cells.iter().take(LINES_KEPT).enumerate().map(line).collect(),
            of: cells.len(),
            has_switch: false,
            bands: Vec::new(),
        };
        lines::draw(&drawn, scales)
    };
    levels(phase).filter_map(draw).collect()
}

/// The service times of each of a cell's runs in a phase.
fn service_times(scene: &Scene, phase: &PhaseSummary, cell: &Cell) -> Vec<Histogram> {
    let of = |record: &Record| {
        let mut all = Histogram::empty();
        let kinds = record.rounds_of(&phase.name).flat_map(|found| &found.kinds);
        kinds.for_each(|kind| all.merge(&kind.service_ns));
        all
    };
    scene.counted(cell).map(|(_, record)| of(record)).collect()
}

/// The percentiles for which there are enough ops.
fn points(runs: &[Histogram]) -> Vec<Point> {
    let places = (0..POWERS).flat_map(|power| PLACES.iter().map(move |place| place * 10_u64.pow(power)));
    let point = |tenths: u64| {
        let (ns, _) = quantile_over(runs, tenths - 10, tenths)?;
        let power = tenths.ilog10() - 1;
        Some(Point {
            x: tenths as f64 / 10.0,
            y: Some(ns as f64),
            interval: None,
            is_marked: tenths == 20 || (power > 0 && tenths == 10_u64.pow(power + 1)),
            is_slow: false,
            stalls: String::new(),
        })
    };
    places.map_while(point).collect()
}

fn tip(cell: &Cell) -> String {
    let latency = &cell.latency;
    format!(
        "{}: p50 {}, p99 {}, p99.9 {}, max {}",
        cell_name(cell),
        known(latency.p50_ns, time),
        known(latency.p99_ns, time),
        known(latency.p999_ns, time),
        known(latency.max_ns, time)
    )
}
