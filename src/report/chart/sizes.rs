//! Ops per second against the size of the database, where a run has a workload with several numbers of keys.

use super::lines::{self, Axis, Line, Lines, Point};
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, left_out};
use super::{Chart, Scales};
use crate::report::describe::cell_name;
use crate::report::escape::plain_text;
use crate::results::summary::{Cell, PhaseSummary};

/// The fewest sizes that make a line.
const FEWEST: usize = 2;

/// A phase at one level, over all sizes of its workload: each engine's cells with their numbers of keys.
struct Table<'a> {
    title: String,
    engines: Vec<(String, Vec<(u64, &'a Cell)>)>,
}

/// A chart for each phase and level of workloads with several sizes; none where the run has none.
pub(crate) fn sizes(scene: &Scene, scales: Scales) -> Vec<Chart> {
    let mut tables: Vec<Table> = Vec::new();
    for phase in scene.summary.phases.iter().filter(|phase| phase.variant_of.is_some()) {
        for group in &phase.groups {
            for cell in &group.cells {
                let title = title(phase, &group.durability_in_force.to_string());
                let known = tables.iter().position(|table| table.title == title);
                let place = known.unwrap_or_else(|| {
                    tables.push(Table { title, engines: Vec::new() });
                    tables.len() - 1
                });
                add(&mut tables[place], phase.keys, cell);
            }
        }
    }
    tables.iter().filter_map(|table| draw(scene, table, scales)).collect()
}

/// What the cells of a chart have in common; the level asked for too, for one engine may be there with two.
fn title(phase: &PhaseSummary, level: &str) -> String {
    let base = phase.variant_of.as_deref().unwrap_or(&phase.workload);
    let asked = phase.durability_asked.to_string();
    let asked = if asked == level { String::new() } else { format!(" ({asked} asked for)") };
    plain_text(&format!("{base} / {}: ops/s by size, level {level}{asked}", phase.name))
}

fn add<'a>(table: &mut Table<'a>, keys: u64, cell: &'a Cell) {
    let name = cell_name(cell);
    match table.engines.iter_mut().find(|(engine, _)| *engine == name) {
        Some((_, sizes)) => sizes.push((keys, cell)),
        None => table.engines.push((name, vec![(keys, cell)])),
    }
}

/// An engine, and its cells by their numbers of keys.
type Sizes<'c> = (String, Vec<(u64, &'c Cell)>);

fn draw(scene: &Scene, table: &Table, scales: Scales) -> Option<Chart> {
    let mut all: Vec<u64> =
        table.engines.iter().flat_map(|(_, sizes)| sizes.iter().map(|(keys, _)| *keys)).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() < FEWEST {
        return None;
    }
    let line = |(place, (engine, sizes)): (usize, &Sizes<'_>)| {
        let mut sizes = sizes.clone();
        sizes.sort_by_key(|(keys, _)| *keys);
        let point = |(keys, cell): &(u64, &Cell)| Point {
            x: *keys as f64,
            y: cell.ops_per_second,
            interval: cell.ops_per_second_interval,
            is_marked: true,
            is_stall: false,
        };
        Some(Line {
            engine: engine.clone(),
            style: scene.style(sizes.first()?.1),
            points: sizes.iter().map(point).collect(),
            is_extra: place >= LINES_SHOWN,
            tip: format!("{engine}: ops/s at {} sizes", sizes.len()),
        })
    };
    let lines = Lines {
        title: table.title.clone(),
        about: format!("Medians with their intervals.{}", left_out(table.engines.len())),
        x: Axis { title: "keys in the workload", unit: Unit::Count, is_log: true },
        y: Axis { title: "ops/s", unit: Unit::Rate, is_log: false },
        lines: table.engines.iter().take(LINES_KEPT).enumerate().filter_map(line).collect(),
        of: table.engines.len(),
    };
    lines::draw(&lines, scales)
}
