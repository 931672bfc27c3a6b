//! Results so far: the rates of each engine in each phase, and its rank. This is not a report: there are no intervals yet,
//! and the order may change with the next trial.

use super::state::name;
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::{Outcome, Record};
use kvdyno_measure::text::plain_text;

/// All phases with results, in the order of their first result.
#[derive(Default)]
pub(super) struct Results {
    /// The phases, with at least one row each.
    pub phases: Vec<PhaseResults>,
}

/// A phase of a workload at an effective durability level.
pub(super) struct PhaseResults {
    /// The workload; plain text.
    pub workload: String,
    /// The phase; plain text.
    pub phase: String,
    /// The level, such as `process`.
    pub level: String,
    /// A row for each engine with its options.
    pub rows: Vec<Row>,
}

/// An engine in a phase.
pub(super) struct Row {
    /// The engine with its options; plain text.
    pub engine: String,
    /// Whether the engine is a floor; floors have no rank.
    pub is_floor: bool,
    /// Ops per second of each counted run.
    pub rates: Vec<f64>,
    /// The 99th percentile of the last run in nanoseconds; `None` if the sample is too small.
    pub p99_ns: Option<u64>,
}

impl Row {
    /// The median rate over the runs.
    pub(super) fn rate(&self) -> Option<f64> {
        median(&self.rates)
    }
}

impl PhaseResults {
    /// The rows, the fastest first.
    pub(super) fn ranked(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|left, right| {
            let rate = |row: &Row| row.rate().unwrap_or(0.0);
            (left.is_floor, rate(right))
                .partial_cmp(&(right.is_floor, rate(left)))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        rows
    }
}

impl Results {
    /// Adds the phases of a successful trial.
    pub(super) fn take(&mut self, record: &Record) {
        if record.outcome != Outcome::Ok {
            return;
        }
        let trial = &record.trial;
        for phase in &trial.workload.phases {
            let Some(whole) = record.whole_phase(&phase.name).filter(|whole| whole.not_run.is_none()) else {
                continue;
            };
            let Some(level) = whole.durability_effective.filter(|_| whole.elapsed_ns > 0) else { continue };
            let mut all = kvdyno_measure::Histogram::empty();
            whole.kinds.iter().for_each(|kind| all.merge(&kind.service_ns));
            let row = self.row(&trial.workload.name, &phase.name, &level.to_string(), trial);
            row.rates.push(whole.ops as f64 * 1e9 / whole.elapsed_ns as f64);
            row.p99_ns = all.quantile_if_enough(99, 100);
        }
    }

    fn row(
        &mut self,
        workload: &str,
        phase: &str,
        level: &str,
        trial: &kvdyno_core::results::Trial,
    ) -> &mut Row {
        let (workload, phase) = (plain_text(workload), plain_text(phase));
        let is_it =
            |own: &PhaseResults| (&own.workload, &own.phase, &own.level[..]) == (&workload, &phase, level);
        let at = self.phases.iter().position(is_it).unwrap_or_else(|| {
            self.phases.push(PhaseResults { workload, phase, level: level.to_string(), rows: Vec::new() });
            self.phases.len() - 1
        });
        let (rows, engine) = (&mut self.phases[at].rows, name(trial));
        let at = rows.iter().position(|row| row.engine == engine).unwrap_or_else(|| {
            rows.push(Row { engine, is_floor: trial.is_floor, rates: Vec::new(), p99_ns: None });
            rows.len() - 1
        });
        &mut rows[at]
    }

    /// The rank of `rate` among the other engines so far, and the number of engines including this one; `None` if there is no
    /// other engine.
    pub(super) fn place(
        &self,
        workload: &str,
        phase: &str,
        level: &str,
        engine: &str,
        rate: f64,
    ) -> Option<(usize, usize)> {
        let is_it = |own: &&PhaseResults| {
            (&own.workload[..], &own.phase[..], &own.level[..]) == (workload, phase, level)
        };
        let rows = &self.phases.iter().find(is_it)?.rows;
        let others: Vec<f64> =
            rows.iter().filter(|row| row.engine != engine && !row.is_floor).filter_map(Row::rate).collect();
        let ahead = others.iter().filter(|other| **other > rate).count();
        (!others.is_empty()).then_some((ahead + 1, others.len() + 1))
    }
}
