//! The tables of costs per op: what the processor did, and what was read and written.

use super::describe::cell_name;
use super::figure::{self, Field, UNKNOWN, known};
use kvdyno_core::results::figures::{CostColumn, CostTable, FIGURES, Figure, Form};
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_measure::text::{Align, Table, plain_text};

/// The legend of the tables, for the end of a report.
pub(super) const LEGEND: &[&str] = &[
    "Cost per op: medians over runs; columns without a known figure are not shown. CPU calling: time of the threads that ran the ops, without the harness. CPU background: all other threads and processes of the engine. Both are - if the ops ran in threads of the engine's own runtime (Go), which runs background work in the same threads; their sum is CPU s/Mop in microseconds. CPU harness: generation, checks and sampling, in neither of them. cycles, instructions: of the complete process, harness included, with --count-cycles. waits, preempted: context switches because a thread waits, or because others need its CPU. faults: page faults; major ones read from storage. These figures include what the harness causes in the calling threads, which the floor shows.",
    "read calls, write calls: system calls of these kinds, with the bytes read and written by them; mapped files and io_uring need none. from storage, to storage: bytes below the page cache, of the device in the last column if only this database is on it (with the file system's own writes, and all that was dirty at the end), else of the process, which the kernel charges when a page becomes dirty. flushes: of the device's cache. r-amp, w-amp, s-amp: bytes from storage per byte returned by reads, to storage per byte passed to writes, and allocated on disk per byte of keys and values. calls/commit: system calls by kind per acknowledged commit, counted before the run: syncs and writes to files, and shared mappings of files, of which stores are not seen.",
];

/// The columns of figures in a table of costs.
fn figures(table: CostTable) -> Vec<Field> {
    let column = |figure: &'static Figure| figure.cost.filter(|column| column.table == table);
    let mut columns: Vec<(&Figure, CostColumn)> =
        FIGURES.iter().filter_map(|figure| Some((figure, column(figure)?))).collect();
    columns.sort_by_key(|(_, column)| column.place);
    let shown = |(figure, column): (&'static Figure, CostColumn)| -> Field {
        let cell = move |cell: &Cell| known(figure.of_cell(cell), |value| figure::text(column.form, value));
        (column.title, Align::Right, Box::new(cell))
    };
    columns.into_iter().map(shown).collect()
}

/// The tables of a phase, each with its title, without rows, columns and tables in which nothing is known.
pub(super) fn costs(phase: &PhaseSummary) -> Vec<(&'static str, Table)> {
    let table = |mut columns: Vec<Field>| {
        let is_known = |(_, _, text): &Field, cell: &Cell| text(cell) != UNKNOWN;
        let has_row = |cell: &&Cell| columns.iter().any(|column| is_known(column, cell));
        let rows: Vec<&Cell> = phase.floors.iter().chain(phase.cells()).filter(has_row).collect();
        columns.retain(|column| rows.iter().any(|cell| is_known(column, cell)));
        columns.insert(0, ("engine", Align::Left, Box::new(cell_name)));
        Table::of(&columns, rows)
    };
    let mut storage = figures(CostTable::Storage);
    storage.push(("counted at", Align::Left, Box::new(|cell: &Cell| known(source(cell), plain_text))));
    storage.push(("calls/commit", Align::Left, Box::new(calls)));
    let tables = [
        ("Cost per op: processor", table(figures(CostTable::Processor))),
        ("Cost per op: reads and writes", table(storage)),
    ];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

/// The observed system calls by kind; `-` if there are none.
fn calls(cell: &Cell) -> String {
    let call = |(name, count): (&String, &f64)| format!("{name} {}", figure::text(Form::Amount, *count));
    let calls: Vec<String> = cell.calls_per_commit.iter().map(call).collect();
    if calls.is_empty() { UNKNOWN.to_string() } else { plain_text(&calls.join(", ")) }
}

/// Where the bytes of storage were counted; none if they are unknown.
fn source(cell: &Cell) -> Option<&str> {
    let is_known = cell.cost.read_storage_bytes.is_some() || cell.cost.written_storage_bytes.is_some();
    is_known.then(|| cell.cost.storage_device.as_deref().unwrap_or("process"))
}

#[cfg(test)]
mod tests {
    use crate::FORMATS;
    use kvdyno_core::results::fixture::{records, run};
    use kvdyno_core::results::summary::Summary;
    use kvdyno_measure::{DeviceUse, Usage};

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
