//! Ops per second against database size, for workloads with several key counts or with a database that grows from round
//! to round.

use super::lines::{self, Axis, Line, Lines, Point};
use super::palette::Style;
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, hidden_note};
use super::{Chart, Scales};
use crate::describe::{cell_name, level_words, threads_of_variant};
use kvdyno_core::results::statistics::{Interval, interval_of_median, median};
use kvdyno_core::results::summary::{Cell, Group, PhaseSummary};
use kvdyno_measure::text::plain_text;
use std::collections::BTreeMap;

/// The minimum number of sizes for a line.
const FEWEST: usize = 2;
/// The maximum number of points with markers and whiskers; more would hide the line.
const MARKED: usize = 24;

/// Ops per second at a number of keys.
struct Size {
    keys: u64,
    ops_per_second: Option<f64>,
    interval: Option<Interval>,
}

/// An engine with its style and its figures at each size.
struct Engine {
    name: String,
    style: Style,
    sizes: Vec<Size>,
}

/// A phase at one durability level, over all sizes of its workload.
struct Table {
    title: String,
    x: &'static str,
    engines: Vec<Engine>,
}

/// A chart for each phase and durability level of workloads with several sizes.
pub(crate) fn sizes(scene: &Scene, scales: Scales) -> Vec<Chart> {
    let mut tables: Vec<Table> = Vec::new();
    for phase in &scene.summary.phases {
        for group in &phase.groups {
            for cell in &group.cells {
                let (x, sizes) = match phase.rounds {
                    Some(_) => ("keys in the database after the round", by_round(scene, phase, cell)),
                    None if phase.variant_of.is_some() => ("keys in the workload", vec![whole(phase, cell)]),
                    None => continue,
                };
                let title = title(scene, phase, group);
                let known = tables.iter().position(|table| table.title == title);
                let place = known.unwrap_or_else(|| {
                    tables.push(Table { title, x, engines: Vec::new() });
                    tables.len() - 1
                });
                add(scene, &mut tables[place], cell, sizes);
            }
        }
    }
    tables.into_iter().filter_map(|table| draw(table, scales)).collect()
}

fn whole(phase: &PhaseSummary, cell: &Cell) -> Size {
    Size { keys: phase.keys, ops_per_second: cell.ops_per_second, interval: cell.ops_per_second_interval }
}

/// The median over runs for each key count at the end of a round; empty if the key counts are unknown.
fn by_round(scene: &Scene, phase: &PhaseSummary, cell: &Cell) -> Vec<Size> {
    let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (_, record) in scene.counted(cell) {
        for round in record.rounds_of(&phase.name).filter(|round| round.elapsed_ns > 0) {
            if let Some(keys) = round.keys_after {
                rates.entry(keys).or_default().push(round.ops as f64 * 1e9 / round.elapsed_ns as f64);
            }
        }
    }
    let size = |(keys, rates): (u64, Vec<f64>)| Size {
        keys,
        ops_per_second: median(&rates),
        interval: interval_of_median(&rates),
    };
    rates.into_iter().map(size).collect()
}

/// The common settings of a chart's cells. They include the requested level, because an engine may be there with two.
fn title(scene: &Scene, phase: &PhaseSummary, group: &Group) -> String {
    let base = phase.variant_of.as_deref().unwrap_or(&phase.workload);
    let level = level_words(&group.name(), group.durability_effective, phase.durability_requested);
    let threads = threads_of_variant(phase, scene.summary);
    plain_text(&format!("{base} / {}: ops/s by size, {level}{threads}", phase.name))
}

fn add(scene: &Scene, table: &mut Table, cell: &Cell, sizes: Vec<Size>) {
    let name = cell_name(cell);
    match table.engines.iter_mut().find(|engine| engine.name == name) {
        Some(engine) => engine.sizes.extend(sizes),
        None => table.engines.push(Engine { name, style: scene.style(cell), sizes }),
    }
}

fn draw(mut table: Table, scales: Scales) -> Option<Chart> {
    table.engines.retain(|engine| !engine.sizes.is_empty());
    let mut all: Vec<u64> =
        table.engines.iter().flat_map(|engine| engine.sizes.iter().map(|size| size.keys)).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() < FEWEST {
        return None;
    }
    let of = table.engines.len();
    let line = |(place, mut engine): (usize, Engine)| {
        engine.sizes.sort_by_key(|size| size.keys);
        let every = engine.sizes.len().div_ceil(MARKED).max(1);
        let point = |(at, size): (usize, &Size)| Point {
            x: size.keys as f64,
            y: size.ops_per_second,
            interval: size.interval.filter(|_| every == 1),
            is_marked: at % every == 0,
            is_slow: false,
            stalls: String::new(),
        };
        Line {
            tip: format!("{}: ops/s at {} sizes", engine.name, engine.sizes.len()),
            points: engine.sizes.iter().enumerate().map(point).collect(),
            engine: engine.name,
            style: engine.style,
            curve: Vec::new(),
            is_extra: place >= LINES_SHOWN,
        }
    };
    let lines = Lines {
        title: table.title,
        about: format!("Medians with their intervals.{}", hidden_note(of)),
        x: Axis { title: table.x, unit: Unit::Count, is_log: true },
        y: Axis { title: "ops/s", unit: Unit::Rate, is_log: false },
        lines: table.engines.into_iter().take(LINES_KEPT).enumerate().map(line).collect(),
        of,
        has_switch: true,
        bands: Vec::new(),
    };
    lines::draw(&lines, scales)
}
