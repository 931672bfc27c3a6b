//! The table that says whether the figures of a phase were steady.

use super::describe::cell_name;
use super::figure::{UNKNOWN, rate};
use kvdyno_core::results::Record;
use kvdyno_core::results::steady::{WHOLE_ROW_NS, verdict_of_rows};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_load::steady::{Interval, Verdict};
use kvdyno_measure::SeriesRow;
use kvdyno_measure::text::{Align, Table};

/// The legend of the table, for the end of a report.
pub(super) const LEGEND: &str = "Steady state: of phases of 15 seconds or more, by change points of ops/s, p99 (of response times, where requests arrive at a rate) and bytes written per op, second by second; the worst of the three counts. steady: no figure changes any more; with a period: except for a cycle that repeats, such as that of compactions. warming, slowing: a figure still becomes better or worse at the end, or did so too recently. too short: the seconds are too few for their noise. from: where the steady part begins, the latest of all runs. ops/s if longer: where the mean of a run ten times longer is expected, with 95 %, over all runs.";

/// The least number of whole seconds of a phase.
const FEWEST: usize = 15;

/// The table of a phase with its title; none if no run is long enough.
pub(super) fn table(phase: &PhaseSummary, records: &[Record]) -> Option<(String, Table)> {
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("verdict", Align::Left),
        ("from", Align::Right),
        ("ops/s if longer", Align::Left),
    ]);
    for cell in phase.cells().filter(|cell| cell.counted_runs > 0) {
        let runs = seconds(cell, phase, records);
        let verdicts: Vec<Verdict> = runs.iter().map(|rows| verdict_of_rows(rows)).collect();
        if !verdicts.is_empty() {
            table.push(row(cell, &verdicts));
        }
    }
    (!table.is_empty()).then(|| ("Steady state".to_string(), table))
}

/// The whole seconds of the runs of a cell that are long enough.
fn seconds(cell: &Cell, phase: &PhaseSummary, records: &[Record]) -> Vec<Vec<SeriesRow>> {
    let counted = cell.runs.iter().filter(|run| run.state.counts());
    let record = |trial: &str| records.iter().find(|record| record.trial.id == trial);
    let rows = |record: &Record| -> Vec<SeriesRow> {
        let all = record.rounds_of(&phase.name).flat_map(|round| &round.series);
        all.filter(|row| row.interval_ns >= WHOLE_ROW_NS).cloned().collect()
    };
    let all = counted.filter_map(|run| record(run.trial.as_str())).map(rows);
    all.filter(|rows| rows.len() >= FEWEST).collect()
}

fn row(cell: &Cell, verdicts: &[Verdict]) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for verdict in verdicts {
        let words = verdict.to_string();
        match counts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => counts.push((words, 1)),
        }
    }
    let words: Vec<String> = match counts.as_slice() {
        [(words, _)] => vec![words.clone()],
        several => several.iter().map(|(words, count)| format!("{words} ({count})")).collect(),
    };
    let of = |verdict: &Verdict| -> Option<(f64, Option<Interval>)> {
        match verdict {
            Verdict::Steady { from_seconds, means }
            | Verdict::SteadyWithPeriod { from_seconds, means, .. } => {
                Some((*from_seconds, means.first().copied().flatten()))
            }
            _ => None,
        }
    };
    let steady: Option<Vec<(f64, Option<Interval>)>> = verdicts.iter().map(of).collect();
    let from = steady.as_ref().map(|all| all.iter().map(|(from, _)| *from).fold(0.0, f64::max));
    let intervals: Option<Vec<Interval>> =
        steady.and_then(|all| all.into_iter().map(|(_, interval)| interval).collect());
    let longer = intervals.map(|all| {
        let low = all.iter().map(|interval| interval.low).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(|interval| interval.high).fold(0.0, f64::max);
        format!("{}..{}", rate(low), rate(high))
    });
    vec![
        cell_name(cell),
        words.join(", "),
        from.map_or_else(|| UNKNOWN.to_string(), |from| format!("{from:.0} s")),
        longer.unwrap_or_else(|| UNKNOWN.to_string()),
    ]
}

/// Whether any phase has the table.
pub(super) fn has_any(summary: &Summary) -> bool {
    let is_long = |phase: &PhaseSummary, cell: &Cell| !seconds(cell, phase, &summary.records).is_empty();
    summary.phases.iter().any(|phase| phase.cells().any(|cell| is_long(phase, cell)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;

    /// The fixture with a measured phase of 60 seconds, whose rate at each second is given as a part of the whole.
    fn with_rates(rate: fn(u64) -> f64) -> String {
        let mut records = fixture::records();
        for record in &mut records {
            let name = record.phases.last().map(|phase| phase.phase.name.clone());
            for phase in record.phases.iter_mut().filter(|phase| Some(&phase.phase.name) == name.as_ref()) {
                let row = |second: u64| SeriesRow {
                    at_ns: (second + 1) * 1_000_000_000,
                    interval_ns: 1_000_000_000,
                    ops: (1e5 * rate(second) * (1.0 + (second * 7 % 5) as f64 / 500.0)) as u64,
                    ..SeriesRow::default()
                };
                phase.series = (0..60).map(row).collect();
            }
        }
        let summary = Summary::new(&fixture::run(), records);
        assert!(has_any(&summary));
        let tables = summary.phases.iter().filter_map(|phase| table(phase, &summary.records));
        tables.map(|(_, table)| table.text()).collect()
    }

    #[test]
    fn a_flat_phase_is_steady_and_one_that_slows_is_not() {
        let flat = with_rates(|_| 1.0);
        assert!(flat.contains("steady") && !flat.contains("slowing"), "{flat}");
        assert!(flat.contains("100k..") || flat.contains("99."), "the interval of its rate: {flat}");
        let slowing = with_rates(|second| 1.0 - second as f64 / 100.0);
        assert!(slowing.contains("slowing") && !slowing.contains("steady"), "{slowing}");
        let warming = with_rates(|second| 0.3 + second as f64 / 100.0);
        assert!(warming.contains("warming") && !warming.contains("steady"), "{warming}");
    }

    #[test]
    fn short_phases_have_no_table() {
        let summary = Summary::new(&fixture::run(), fixture::records());
        assert!(!has_any(&summary));
    }
}
