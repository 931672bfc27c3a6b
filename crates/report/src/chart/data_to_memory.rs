//! Ops per second, and what is read from storage, against the ratio of data to memory.

use super::lines::{self, Axis, Line, Lines, Point};
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, hidden_note};
use super::{Chart, Scales};
use crate::data_to_memory::{Sweep, blocks_read, sweeps};
use kvdyno_core::results::statistics::Interval;
use kvdyno_core::results::summary::Cell;
use kvdyno_measure::text::counted;

/// What is drawn: the end of the title, the axis, its unit, whether its scale is logarithmic, and the figure with its interval.
struct Drawn {
    what: &'static str,
    axis: &'static str,
    unit: Unit,
    is_log: bool,
    figure: fn(&Cell) -> (Option<f64>, Option<Interval>),
}

const DRAWN: [Drawn; 2] = [
    Drawn {
        what: "ops/s by data to memory",
        axis: "ops/s",
        unit: Unit::Rate,
        is_log: true,
        figure: |cell| (cell.ops_per_second, cell.ops_per_second_interval),
    },
    Drawn {
        what: "blocks read by data to memory",
        axis: "4 KiB blocks from storage per op",
        unit: Unit::Plain,
        is_log: false,
        figure: |cell| (blocks_read(cell), None),
    },
];

/// Two charts for each phase and durability level of workloads with several ratios.
pub(crate) fn data_to_memory(scene: &Scene, scales: Scales) -> Vec<Chart> {
    let sweeps = sweeps(scene.summary);
    let charts = |sweep| DRAWN.iter().filter_map(move |drawn| chart(scene, scales, sweep, drawn));
    sweeps.iter().flat_map(charts).collect()
}

fn chart(scene: &Scene, scales: Scales, sweep: &Sweep, drawn: &Drawn) -> Option<Chart> {
    let of = sweep.engines.len();
    let line = |(place, (name, cells)): (usize, &(String, Vec<Option<&Cell>>))| {
        let point = |(ratio, cell): (&f64, &Option<&Cell>)| {
            let (y, interval) = cell.map_or((None, None), drawn.figure);
            Point { x: *ratio, y, interval, is_marked: true, is_slow: false, stalls: String::new() }
        };
        let measured = cells.iter().flatten();
        Some(Line {
            tip: format!(
                "{name}: {} at {}",
                drawn.axis,
                counted(measured.clone().count() as u64, "ratio", "ratios")
            ),
            points: sweep.ratios.iter().zip(cells).map(point).collect(),
            curve: Vec::new(),
            style: scene.style(measured.clone().next()?),
            engine: name.clone(),
            is_extra: place >= LINES_SHOWN,
        })
    };
    let lines = Lines {
        title: format!("{}: {}, {}", sweep.name, drawn.what, sweep.settings),
        about: format!(
            "Medians{}.{}",
            if drawn.is_log { " with their intervals" } else { "" },
            hidden_note(of)
        ),
        x: Axis { title: "data as a multiple of memory", unit: Unit::Plain, is_log: true },
        y: Axis { title: drawn.axis, unit: drawn.unit, is_log: drawn.is_log },
        lines: sweep.engines.iter().take(LINES_KEPT).enumerate().filter_map(line).collect(),
        of,
        has_switch: true,
        bands: Vec::new(),
    };
    lines::draw(&lines, scales)
}
