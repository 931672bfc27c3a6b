//! Ops per second against the number of threads, with the fitted law as a curve.

use super::lines::{self, Axis, Line, Lines, Point};
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, hidden_note};
use super::{Chart, Scales};
use crate::scaling::{Scaled, sweeps};
use kvdyno_measure::text::counted;

/// The number of pieces of a curve.
const PIECES: u32 = 48;

/// A chart for each phase and durability level of workloads with several numbers of threads.
pub(crate) fn scaling(scene: &Scene, scales: Scales) -> Vec<Chart> {
    let chart = |sweep: &crate::scaling::Sweep| {
        let of = sweep.engines.len();
        let lines = Lines {
            title: format!("{}: ops/s by {}, {}", sweep.name, sweep.axis.name(), sweep.settings),
            about: format!(
                "Points are medians with their intervals; a curve is the Universal Scalability Law, drawn where it fits. \
                 Straight pieces: no law fits.{}",
                hidden_note(of)
            ),
            x: Axis { title: sweep.axis.name(), unit: Unit::Count, is_log: false },
            y: Axis { title: "ops/s", unit: Unit::Rate, is_log: false },
            lines: sweep
                .engines
                .iter()
                .take(LINES_KEPT)
                .enumerate()
                .map(|(place, engine)| line(scene, place, engine))
                .collect(),
            of,
            has_switch: true,
            bands: Vec::new(),
        };
        lines::draw(&lines, scales)
    };
    sweeps(scene.summary).iter().filter_map(chart).collect()
}

fn line(scene: &Scene, place: usize, engine: &Scaled) -> Line {
    let point = |(count, cell): &(u32, &kvdyno_core::results::summary::Cell)| Point {
        x: f64::from(*count),
        y: cell.ops_per_second,
        interval: cell.ops_per_second_interval,
        is_marked: true,
        is_slow: false,
        stalls: String::new(),
    };
    let ends = engine.cells.first().zip(engine.cells.last());
    let curve = engine.law.as_ref().ok().zip(ends).map(|(law, ((low, _), (high, _)))| {
        let (low, high) = (f64::from(*low), f64::from(*high));
        let x = |piece: u32| low + (high - low) * f64::from(piece) / f64::from(PIECES);
        (0..=PIECES).map(|piece| (x(piece), law.rate(x(piece)))).collect()
    });
    let (name, counts) = (engine.name.clone(), engine.cells.len() as u64);
    Line {
        tip: format!("{name}: ops/s at {}", counted(counts, "point", "points")),
        points: engine.cells.iter().map(point).collect(),
        curve: curve.unwrap_or_default(),
        style: scene.style(engine.cells[0].1),
        engine: name,
        is_extra: place >= LINES_SHOWN,
    }
}
