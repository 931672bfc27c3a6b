//! What engines do when the data are larger than memory: their rates and what they read from storage, at several ratios of data to
//! memory.

use super::block::Block;
use super::describe::{cell_name, level_words, threads_of_variant};
use super::figure::{UNKNOWN, known, rate, three_digits, time};
use kvdyno_core::results::summary::{Cell, Summary};
use kvdyno_measure::text::{Align, Column, Table, plain_text};

/// The title of the part.
pub(super) const TITLE: &str = "Data against memory";
/// How to read the tables.
const LEGEND: &str = "Columns are ratios: the size of all keys and values as a multiple of the memory that a trial may use for \
    them, page cache included, which is its cap without kvdyno's own part. Figures are medians over runs. blocks read/op: 4 KiB \
    blocks that came from storage, per op; they are the misses of the engine's caches and of the page cache together. major \
    faults/op: page faults that read from storage, as engines with mapped files have. An engine that compresses has less to keep \
    than its ratio says.";
/// The bytes of a block in the tables.
const BLOCK_BYTES: f64 = 4096.0;

/// A phase at one effective level, at all its ratios.
pub(super) struct Sweep<'a> {
    /// The workload and the phase.
    pub name: String,
    /// The common settings.
    pub settings: String,
    /// The ratios, ascending.
    pub ratios: Vec<f64>,
    /// The engines, the fastest at the smallest ratio first, with a cell for each ratio; none: it has no figures.
    pub engines: Vec<(String, Vec<Option<&'a Cell>>)>,
}

/// What the cells of a sweep have in common.
#[derive(PartialEq)]
struct Key<'a> {
    base: &'a str,
    phase: &'a str,
    settings: String,
}

/// The ratio as it is shown and compared: whole bytes make it a little different from the requested one.
pub(super) fn rounded(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

/// Blocks read from storage per op.
pub(super) fn blocks_read(cell: &Cell) -> Option<f64> {
    Some(cell.cost.read_storage_bytes? / BLOCK_BYTES)
}

/// The sweeps of a run: phases of workloads that were run at several ratios.
pub(super) fn sweeps(summary: &Summary) -> Vec<Sweep<'_>> {
    let mut found: Vec<(Key, Vec<(f64, &Cell)>)> = Vec::new();
    for phase in &summary.phases {
        let (Some(base), Some(ratio)) = (&phase.variant_of, phase.data_to_memory) else { continue };
        for group in &phase.groups {
            let key = Key {
                base,
                phase: &phase.name,
                settings: level_words(&group.name(), group.durability_effective, phase.durability_requested)
                    + &threads_of_variant(phase, summary),
            };
            let cells = group.cells.iter().map(|cell| (rounded(ratio), cell));
            match found.iter_mut().find(|(seen, _)| *seen == key) {
                Some((_, all)) => all.extend(cells),
                None => found.push((key, cells.collect())),
            }
        }
    }
    found.iter().filter_map(|(key, cells)| sweep(key, cells)).collect()
}

fn sweep<'a>(key: &Key, cells: &[(f64, &'a Cell)]) -> Option<Sweep<'a>> {
    let mut ratios: Vec<f64> = cells.iter().map(|(ratio, _)| *ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.dedup();
    if ratios.len() < 2 {
        return None;
    }
    let mut engines: Vec<(String, Vec<Option<&Cell>>)> = Vec::new();
    for &(ratio, cell) in cells {
        let place = ratios.iter().position(|known| *known == ratio)?;
        let name = cell_name(cell);
        let row = engines.iter().position(|(seen, _)| *seen == name).unwrap_or_else(|| {
            engines.push((name, vec![None; ratios.len()]));
            engines.len() - 1
        });
        // Two variants that differ in something else are no sweep.
        if engines[row].1[place].replace(cell).is_some() {
            return None;
        }
    }
    let first = |row: &[Option<&Cell>]| row.iter().flatten().find_map(|cell| cell.ops_per_second);
    engines.sort_by(|one, other| first(&other.1).unwrap_or(0.0).total_cmp(&first(&one.1).unwrap_or(0.0)));
    Some(Sweep {
        name: plain_text(&format!("{} / {}", key.base, key.phase)),
        settings: plain_text(&key.settings),
        ratios,
        engines,
    })
}

/// The tables for a report; empty if there is only one ratio.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    let sweeps = sweeps(summary);
    if sweeps.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Part(TITLE.to_string())];
    for sweep in &sweeps {
        blocks.push(Block::Section(format!("{}, {}", sweep.name, sweep.settings)));
        blocks.push(Block::Table(table(sweep)));
    }
    blocks.push(Block::Lines(vec![LEGEND.to_string()]));
    blocks
}

/// A line of an engine: its name, and its text of a cell.
type Line = (&'static str, fn(&Cell) -> String);

fn table(sweep: &Sweep) -> Table {
    let column = |title: String, align| Column { title, align };
    let words = ["engine", "figure"].map(|title| column(title.to_string(), Align::Left));
    let ratios = sweep.ratios.iter().map(|ratio| column(ratio.to_string(), Align::Right));
    let mut table = Table::new(words.into_iter().chain(ratios).collect());
    let lines: [Line; 4] = [
        ("ops/s", |cell| known(cell.ops_per_second, rate)),
        ("p99", |cell| match &cell.arrived {
            Some(arrived) => known(arrived.response.p99_ns, time),
            None => known(cell.latency.p99_ns, time),
        }),
        ("blocks read/op", |cell| known(blocks_read(cell), three_digits)),
        ("major faults/op", |cell| known(cell.cost.major_faults, three_digits)),
    ];
    for (engine, cells) in &sweep.engines {
        for (place, (name, text)) in lines.iter().enumerate() {
            let engine = if place == 0 { engine.clone() } else { String::new() };
            let figures = cells.iter().map(|cell| cell.map_or_else(|| UNKNOWN.to_string(), text));
            table.push([engine, name.to_string()].into_iter().chain(figures).collect());
        }
    }
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
    use kvdyno_core::results::{Run, Trial};
    use kvdyno_measure::Usage;
    use std::sync::Arc;

    /// A run at ratios of 0.5, 1 and 4, in which engine `a` is as fast at all of them, and `b` takes 1.5 times as long.
    pub(crate) fn swept() -> (Run, Summary) {
        let phases = [PhaseSketch::new("read", &["get"], 20_000)];
        let sketch = |name: &'static str| Sketch {
            name,
            variant_of: Some("big"),
            phases: &phases,
            engines: &["a", "b"],
            runs: 5,
            keys: 1_000_000,
            cost_ns: 20_000,
            ..Sketch::EMPTY
        };
        let (mut run, mut records) = drawn(&["big-m0.5", "big-m1", "big-m4"].map(sketch));
        let cap = |trial: &mut Trial| {
            let ratio: f64 = trial.workload.name.rsplit('m').next().unwrap().parse().unwrap();
            let workload = Arc::make_mut(&mut trial.workload);
            let left = workload.data_bytes() / ratio;
            workload.memory_bytes = Some(left as u64 + (16 << 20) + 16_000_000);
            ratio
        };
        run.plan.trials.iter_mut().for_each(|trial| {
            cap(trial);
        });
        for record in &mut records {
            let ratio = cap(&mut record.trial);
            let phase = &mut record.phases[0];
            // Half a block per op beyond what fits.
            let bytes = (phase.ops as f64 * 2048.0 * (ratio - 0.5)) as u64;
            phase.usage.read_storage_bytes = Some(bytes);
            phase.usage.major_faults = (record.trial.engine == "a").then_some(phase.ops);
            phase.watcher =
                Some(Usage { read_storage_bytes: Some(0), major_faults: Some(0), ..Usage::default() });
        }
        let summary = Summary::new(&run, records);
        (run, summary)
    }

    #[test]
    fn ratios_are_columns_and_each_engine_has_its_rate_and_its_reads() {
        let (_, summary) = swept();
        let [sweep] = &sweeps(&summary)[..] else { panic!("one sweep") };
        assert_eq!(sweep.ratios, [0.5, 1.0, 4.0]);
        assert_eq!((sweep.name.as_str(), sweep.settings.as_str()), ("big / read", "level process"));
        let text = crate::text::blocks(blocks(&summary));
        let line = |start: &str| {
            let found = text.lines().filter(|line| line.trim_start().starts_with(start));
            let words = found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            words.filter(|line| !line.contains(':')).collect::<Vec<_>>()
        };
        assert_eq!(line("engine"), ["engine figure 0.5 1 4"]);
        assert_eq!(line("blocks read/op"), ["blocks read/op 0.00 0.250 1.75"; 2]);
        assert_eq!(line("major faults/op"), ["major faults/op 1.00 1.00 1.00", "major faults/op - - -"]);
    }

    #[test]
    fn a_run_with_one_ratio_has_no_table() {
        let (mut run, summary) = swept();
        run.plan.trials.retain(|trial| trial.workload.name == "big-m1");
        let records: Vec<_> =
            summary.records.iter().filter(|record| record.trial.workload.name == "big-m1").cloned().collect();
        assert_eq!(records.len(), 10);
        assert!(blocks(&Summary::new(&run, records)).is_empty());
    }
}
