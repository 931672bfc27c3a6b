//! The report with a row for each fault of a member: what it did to the service, and what became of the writes of its phase.

use super::csv::text;
use super::csv_long::{NAMES, names};
use super::escape::csv_cell;
use super::member_faults;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Disturbed, FaultRecord, Run};

/// A column of a fault: its name, which ends with the unit, and a function that returns the escaped cell.
type Column = (&'static str, fn(&FaultRecord) -> String);

/// The columns of a fault, in order. Their names are stable across versions.
const FAULT: &[Column] = &[
    ("kind", |fault| fault.kind.name().to_string()),
    ("target", |fault| csv_cell(&fault.target)),
    ("member", |fault| csv_cell(&fault.member)),
    ("at_ns", |fault| fault.at_ns.to_string()),
    ("until_ns", |fault| text(fault.until_ns)),
    ("without_service_ns", |fault| text(fault.without_service_ns)),
    ("without_service_at_ns", |fault| text(fault.without_service_at_ns)),
    ("thread_waited_ns", |fault| text(fault.thread_waited_ns)),
    ("ops_per_second_before", |fault| text(fault.rate_before)),
    ("recovered_after_ns", |fault| text(fault.recovered_after_ns)),
    ("sync_delay_ns", |fault| text(fault.sync_delay_ns)),
    ("delayed_syncs", |fault| text(fault.delayed_syncs)),
    // Columns that are added come after those that were there.
    ("without_service_times", |fault| text(fault.without_service_times)),
    ("without_service_sum_ns", |fault| text(fault.without_service_sum_ns)),
    ("without_service_at_end_ns", |fault| text(fault.without_service_at_end_ns)),
    // If the phase ended in such a time, the longest one and the sum are at least what is shown.
    ("without_service_is", |fault| {
        known(fault.without_service_times.map(|_| fault.without_service_at_end_ns.is_some()))
    }),
    ("thread_waited_is", |fault| known(fault.thread_waited_at_end)),
];

/// What a time is; empty: older records do not tell.
fn known(is_cut_off: Option<bool>) -> String {
    is_cut_off
        .map_or("", |is_so| if is_so { "at least: the phase ended first" } else { "measured" })
        .to_string()
}

/// A column of the phase, the same in the rows of all its faults.
type PhaseColumn = (&'static str, fn(&Disturbed) -> String);

const PHASE: &[PhaseColumn] = &[
    ("phase_failed_ops", |found| found.errors.iter().map(|error| error.count).sum::<u64>().to_string()),
    ("phase_acknowledged_writes", |found| found.acknowledged_writes.to_string()),
    ("phase_doubtful_writes", |found| found.doubtful_writes.to_string()),
    ("phase_read_back_keys", |found| text(found.read_back)),
    ("phase_lost_keys", |found| text(found.lost)),
    ("phase_stale_reads", |found| found.stale_reads.to_string()),
];

/// Renders the report. A run of a phase without faults has one row, so that no engine and no failure is missing.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let titles = FAULT.iter().map(|(name, _)| *name).chain(PHASE.iter().map(|(name, _)| *name));
    let mut lines = vec![[NAMES].into_iter().chain(titles).collect::<Vec<_>>().join(",")];
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(phase.cells()) {
            for figures in &cell.runs {
                let names = names(run, phase, cell, figures);
                let record = summary.records.iter().find(|record| record.trial.id == figures.trial);
                let found = record.and_then(|record| member_faults::of_record(record, &phase.name));
                let of_phase = |found: &Disturbed| PHASE.iter().map(|(_, cell)| cell(found)).collect();
                let own: Vec<String> = found.map_or_else(|| vec![String::new(); PHASE.len()], of_phase);
                let mut row = |fault: Vec<String>| {
                    let cells = [names.clone()].into_iter().chain(fault).chain(own.clone());
                    lines.push(cells.collect::<Vec<_>>().join(","));
                };
                let faults = found.map_or(&[][..], |found| &found.faults);
                faults.iter().for_each(|fault| row(FAULT.iter().map(|(_, cell)| cell(fault)).collect()));
                if faults.is_empty() {
                    row(vec![String::new(); FAULT.len()]);
                }
            }
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member_faults::tests::disturbed;
    use crate::tests::assert_golden;
    use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};

    #[test]
    fn each_fault_has_a_row_and_a_phase_without_faults_has_one() {
        let phases = [PhaseSketch::new("load", &["put"], 300), PhaseSketch::new("run", &["get", "put"], 200)];
        let sketch = Sketch { name: "small", phases: &phases, engines: &["lmdb"], runs: 2, ..Sketch::EMPTY };
        let (run, mut records) = drawn(&[sketch]);
        records[0].phases[1].disturbed = Some(disturbed());
        // The phase was cut short: nothing was read back.
        let cut = Disturbed { read_back: None, lost: None, ..disturbed() };
        records[1].phases[1].disturbed = Some(Disturbed { faults: Vec::new(), ..cut });
        let report = render(&Summary::new(&run, records), &run);
        let cells: Vec<usize> = report.lines().map(|line| line.split(',').count()).collect();
        assert!(cells.iter().all(|count| *count == cells[0]), "{report}");
        assert_eq!(report.lines().filter(|line| line.contains(",run,")).count(), 4, "{report}");
        assert_golden("report-csv-faults.txt", &report);
    }
}
