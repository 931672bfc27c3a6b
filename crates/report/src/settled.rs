//! The table of settled rates: what a phase of writes leaves to be done in the background is a debt, and here its time counts.

use super::describe::cell_name;
use super::figure::{bytes, known, rate};
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_core::results::{PhaseRecord, Record, StepKind};
use kvdyno_measure::text::{Align, Table, time_text};

/// The legend of the table, for the end of a report.
pub(super) const LEGEND: &str = "Settled rate: of phases that write and are followed by a wait for background work (`settle_before` of the next phase). settle: the time of that wait. settled ops/s: the ops by the time of the phase and the wait together, so that flushes and compactions that were left for later count. Medians over runs. debt: bytes that compactions would have to rewrite at the end of the phase, as the engine estimates it; - if it does not tell. An engine that does not report its background work has no settled rate.";

/// The statistic of engines with that estimate.
const DEBT: &str = "pending_compaction_bytes";

/// The table of a phase with its title; none if nothing is known.
pub(super) fn table(phase: &PhaseSummary, records: &[Record]) -> Option<(String, Table)> {
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("ops/s", Align::Right),
        ("settle", Align::Right),
        ("settled ops/s", Align::Right),
        ("debt", Align::Right),
    ]);
    for cell in phase.cells().filter(|cell| cell.counted_runs > 0) {
        let runs = runs(cell, phase, records);
        if runs.iter().all(|run| run.settle_seconds.is_none() && run.debt_bytes.is_none()) {
            continue;
        }
        let middle = |of: &dyn Fn(&Settled) -> Option<f64>| {
            let all: Option<Vec<f64>> = runs.iter().map(of).collect();
            median(&all?)
        };
        table.push(vec![
            cell_name(cell),
            known(cell.ops_per_second, rate),
            known(middle(&|run| run.settle_seconds), |seconds| time_text(seconds * 1e9)),
            known(middle(&|run| Some(run.ops / (run.seconds + run.settle_seconds?))), rate),
            known(middle(&|run| run.debt_bytes).map(|debt| debt as u64), bytes),
        ]);
    }
    (!table.is_empty()).then(|| ("Settled rate".to_string(), table))
}

/// Whether any phase has the table.
pub(super) fn has_any(summary: &Summary) -> bool {
    summary.phases.iter().any(|phase| table(phase, &summary.records).is_some())
}

/// A run of a phase, and what followed.
struct Settled {
    ops: f64,
    seconds: f64,
    /// None: the engine does not report its background work, or no wait followed.
    settle_seconds: Option<f64>,
    /// None: the engine does not tell it.
    debt_bytes: Option<f64>,
}

fn runs(cell: &Cell, phase: &PhaseSummary, records: &[Record]) -> Vec<Settled> {
    let counted = cell.runs.iter().filter(|run| run.state.counts());
    let record = |trial: &str| records.iter().find(|record| record.trial.id == trial);
    counted.filter_map(|run| settled(record(run.trial.as_str())?, &phase.name)).collect()
}

fn settled(record: &Record, name: &str) -> Option<Settled> {
    let mut found = record.phases.iter().filter(|phase| phase.phase.name == name);
    let (run, None) = (found.next()?, found.next()) else { return None };
    if run.logical_bytes_written == 0 || run.elapsed_ns == 0 {
        return None;
    }
    Some(Settled {
        ops: run.ops as f64,
        seconds: run.elapsed_ns as f64 / 1e9,
        settle_seconds: settle_seconds(record, run),
        debt_bytes: debt_bytes(run),
    })
}

/// The wait that directly followed the phase.
fn settle_seconds(record: &Record, run: &PhaseRecord) -> Option<f64> {
    let phases = &record.trial.workload.phases;
    let place = phases.iter().position(|phase| phase.name == run.phase.name)?;
    let next = phases.get(place + 1).filter(|next| next.settle_before)?;
    let is_it = |name: StepKind, before: &Option<String>| {
        name == StepKind::Settle && before.as_ref() == Some(&next.name)
    };
    let step = record.steps.iter().find(|step| is_it(step.name, &step.before_phase))?;
    step.note.is_none().then_some(step.elapsed_ns as f64 / 1e9)
}

fn debt_bytes(run: &PhaseRecord) -> Option<f64> {
    let (_, bytes) = run.engine_stats.iter().find(|(name, _)| name == DEBT)?;
    bytes.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;
    use kvdyno_core::results::{Run, Step};
    use std::sync::Arc;

    /// The fixture, in which each phase of `lmdb` but the first is preceded by a wait as long as the phase before it.
    fn waited(note: Option<&str>) -> (Run, Vec<Record>) {
        let (run, mut records) = (fixture::run(), fixture::records());
        for record in &mut records {
            Arc::make_mut(&mut record.trial.workload)
                .phases
                .iter_mut()
                .for_each(|phase| phase.settle_before = true);
            record.steps.retain(|step| step.name != StepKind::Settle);
            if record.trial.engine != "lmdb" {
                continue;
            }
            for place in 1..record.phases.len() {
                let step = Step {
                    name: StepKind::Settle,
                    before_phase: Some(record.phases[place].phase.name.clone()),
                    elapsed_ns: record.phases[place - 1].elapsed_ns,
                    note: note.map(String::from),
                    keys: None,
                };
                record.steps.push(step);
            }
            record.phases[0].logical_bytes_written = 1;
        }
        (run, records)
    }

    #[test]
    fn a_wait_as_long_as_the_phase_halves_the_rate() {
        let (run, records) = waited(None);
        let summary = Summary::new(&run, records);
        let phase = &summary.phases[0];
        let cell = phase.cells().find(|cell| cell.engine == "lmdb" && cell.counted_runs > 0).unwrap();
        let all = runs(cell, phase, &summary.records);
        assert!(!all.is_empty());
        for one in &all {
            assert_eq!(one.settle_seconds, Some(one.seconds));
        }
        let (_, table) = table(phase, &summary.records).unwrap();
        let text = table.text();
        let halved = median(&all.iter().map(|one| one.ops / one.seconds / 2.0).collect::<Vec<_>>()).unwrap();
        assert!(text.contains(&rate(halved)), "{text}");
        assert!(has_any(&summary));
    }

    #[test]
    fn an_engine_that_does_not_report_its_background_work_has_no_settled_rate() {
        let (run, records) = waited(Some("the engine does not report background work"));
        let summary = Summary::new(&run, records);
        assert!(!has_any(&summary));
    }

    #[test]
    fn the_debt_is_that_of_the_engine() {
        let (run, mut records) = waited(Some("unknown"));
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            record.phases[0].engine_stats = vec![(DEBT.into(), "3145728".into())];
        }
        let summary = Summary::new(&run, records);
        let (_, table) = table(&summary.phases[0], &summary.records).unwrap();
        assert!(table.text().contains("3MiB"), "{}", table.text());
    }
}
