//! The tables of costs per op: what the processor did, and what was read and written.

use super::describe::cell_name;
use super::figure::{UNKNOWN, bytes, known, rate, three_digits, time};
use super::ranking::cells;
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_measure::text::{Align, Field, Table, plain_text};

/// The columns of the table of the processor.
const PROCESSOR: &[Field<Cell>] = &[
    ("engine", Align::Left, cell_name),
    ("CPU calling", Align::Right, |cell| known(cell.cost.calling_cpu_ns, cpu)),
    ("CPU background", Align::Right, |cell| known(cell.cost.background_cpu_ns, cpu)),
    ("CPU harness", Align::Right, |cell| known(cell.cost.harness_cpu_ns, cpu)),
    ("cycles", Align::Right, |cell| known(cell.cost.cycles, count)),
    ("instructions", Align::Right, |cell| known(cell.cost.instructions, count)),
    ("waits", Align::Right, |cell| known(cell.cost.voluntary_switches, count)),
    ("preempted", Align::Right, |cell| known(cell.cost.involuntary_switches, count)),
    ("minor faults", Align::Right, |cell| known(cell.cost.minor_faults, count)),
    ("major faults", Align::Right, |cell| known(cell.cost.major_faults, count)),
];

/// The columns of the table of reads and writes.
const STORAGE: &[Field<Cell>] = &[
    ("engine", Align::Left, cell_name),
    ("read calls", Align::Right, |cell| known(cell.cost.read_calls, count)),
    ("write calls", Align::Right, |cell| known(cell.cost.write_calls, count)),
    ("syncs/commit", Align::Right, |cell| known(cell.syncs_per_commit, three_digits)),
    ("read", Align::Right, |cell| known(cell.cost.read_call_bytes, size)),
    ("written", Align::Right, |cell| known(cell.cost.written_call_bytes, size)),
    ("from storage", Align::Right, |cell| known(cell.cost.read_storage_bytes, size)),
    ("to storage", Align::Right, |cell| known(cell.cost.written_storage_bytes, size)),
    ("flushes", Align::Right, |cell| known(cell.cost.flushes, count)),
    ("r-amp", Align::Right, |cell| known(cell.cost.read_amplification, count)),
    ("w-amp", Align::Right, |cell| known(cell.write_amplification, count)),
    ("s-amp", Align::Right, |cell| known(cell.space_amplification, three_digits)),
    ("counted at", Align::Left, |cell| known(source(cell), plain_text)),
    ("calls/commit", Align::Left, calls),
];

/// The legend of the tables, for the end of a report.
pub(super) const LEGEND: &[&str] = &[
    "Cost per op: medians over runs; columns without a known figure are not shown. CPU calling: time of the threads that ran the ops, without the harness. CPU background: all other threads and processes of the engine. Both are - if the ops ran in threads of the engine's own runtime (Go), which runs background work in the same threads; their sum is CPU s/Mop in microseconds. CPU harness: generation, checks and sampling, in neither of them. cycles, instructions: of the complete process, harness included, with --count-cycles. waits, preempted: context switches because a thread waits, or because others need its CPU. faults: page faults; major ones read from storage. These figures include what the harness causes in the calling threads, which the floor shows.",
    "read calls, write calls: system calls of these kinds, with the bytes read and written by them; mapped files and io_uring need none. from storage, to storage: bytes below the page cache, of the device in the last column if only this database is on it (with the file system's own writes, and all that was dirty at the end), else of the process, which the kernel charges when a page becomes dirty. flushes: of the device's cache. r-amp, w-amp, s-amp: bytes from storage per byte returned by reads, to storage per byte passed to writes, and allocated on disk per byte of keys and values. calls/commit: system calls by kind per acknowledged commit, counted before the run: syncs and writes to files, and shared mappings of files, of which stores are not seen.",
];

/// The tables of a phase, each with its title, without rows, columns and tables in which nothing is known.
pub(super) fn costs(phase: &PhaseSummary) -> Vec<(&'static str, Table)> {
    let table = |fields: &[Field<Cell>]| {
        let is_known = |(_, _, text): &Field<Cell>, cell: &Cell| text(cell) != UNKNOWN;
        let has_row = |cell: &&Cell| fields[1..].iter().any(|field| is_known(field, cell));
        let rows: Vec<&Cell> = phase.floors.iter().chain(cells(phase)).filter(has_row).collect();
        let has_column = |field: &&Field<Cell>| rows.iter().any(|cell| is_known(field, cell));
        let columns: Vec<Field<Cell>> = fields.iter().filter(has_column).copied().collect();
        Table::of(&columns, rows)
    };
    let tables =
        [("Cost per op: processor", table(PROCESSOR)), ("Cost per op: reads and writes", table(STORAGE))];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

/// The observed system calls by kind; `-` if there are none.
fn calls(cell: &Cell) -> String {
    let call = |(name, count): (&String, &f64)| format!("{name} {}", self::count(*count));
    let calls: Vec<String> = cell.calls_per_commit.iter().map(call).collect();
    if calls.is_empty() { UNKNOWN.to_string() } else { plain_text(&calls.join(", ")) }
}

/// Where the bytes of storage were counted; none if they are unknown.
fn source(cell: &Cell) -> Option<&str> {
    let is_known = cell.cost.read_storage_bytes.is_some() || cell.cost.written_storage_bytes.is_some();
    is_known.then(|| cell.cost.storage_device.as_deref().unwrap_or("process"))
}

/// A small amount that is not 0 must not look like 0.
fn unless_tiny(value: f64, unit: &str, format: impl Fn(f64) -> String) -> String {
    if value > 0.0 && value < 0.0005 { format!("<0.001{unit}") } else { format(value) }
}

fn count(value: f64) -> String {
    unless_tiny(value, "", rate)
}

fn cpu(ns: f64) -> String {
    unless_tiny(ns, "ns", |ns| match ns < 999.5 {
        true => format!("{}ns", three_digits(ns)),
        false => time(ns.round() as u64),
    })
}

fn size(value: f64) -> String {
    unless_tiny(value, "B", |value| match value < 1023.5 {
        true => format!("{}B", three_digits(value)),
        false => bytes(value.round() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::fixture::{records, run};
    use kvdyno_core::results::summary::Summary;
    use kvdyno_measure::{DeviceUse, Usage};

    #[test]
    fn figures_fit_narrow_columns_and_what_is_little_is_not_zero() {
        for (value, text) in [(0.0, "0.00"), (0.0001, "<0.001"), (0.25, "0.250"), (12_345.0, "12.3k")] {
            assert_eq!(count(value), text);
        }
        for (value, text) in [(0.0, "0.00ns"), (0.000_2, "<0.001ns"), (52.25, "52.2ns"), (2_804.0, "2.80us")]
        {
            assert_eq!(cpu(value), text);
        }
        for (value, text) in [(0.0, "0.00B"), (16.0, "16.0B"), (1_023.6, "1KiB"), (4_096.0, "4KiB")] {
            assert_eq!(size(value), text);
        }
    }

    #[test]
    fn an_engine_with_a_known_cost_has_a_row_with_its_source_and_the_unknown_is_a_dash() {
        let mut records = records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            let phase = &mut record.phases[0];
            phase.usage.write_calls = Some(phase.ops * 2 + 7);
            phase.usage.written_call_bytes = Some(phase.ops * 4_096);
            phase.watcher =
                Some(Usage { write_calls: Some(7), written_call_bytes: Some(0), ..Usage::default() });
            phase.device = Some(DeviceUse {
                device: "loop0".into(),
                read_bytes: 0,
                written_bytes: phase.ops * 512,
                flushes: None,
            });
        }
        let text = (FORMATS[0].render)(&Summary::new(&run(), records), &run());
        let place = text.find("Cost per op: reads and writes").unwrap();
        let row = |name: &str| {
            let table = text[place..].lines().skip(2).take_while(|line| !line.is_empty());
            let row = table.clone().find(|line| line.starts_with(name));
            row.map(|row| row.split_whitespace().map(str::to_string).collect::<Vec<_>>())
        };
        let lmdb = row("lmdb").unwrap();
        // Columns in which nothing is known are not shown: read calls, bytes read, syncs, flushes and amplification of reads.
        let wanted = ["2.00", "4KiB", "0.00B", "512B", "4.41"];
        assert_eq!(lmdb[lmdb.len() - 7..lmdb.len() - 2], wanted, "{lmdb:?}");
        assert_eq!(lmdb.last().unwrap(), "loop0");
        assert_eq!(row("fjall").unwrap().last().unwrap(), "process");
        // Nothing is known of it.
        assert_eq!(row("null"), None);
    }
}
