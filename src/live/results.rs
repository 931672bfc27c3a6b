//! Results so far: what each engine has done in each phase, and its place among the others. It is no report: there are no
//! intervals yet, and the order may turn with the next trial.

use super::state::name;
use crate::report::plain_text;
use crate::results::statistics::median;
use crate::results::{Outcome, Record};

/// All phases that something is known of, in the order in which it came.
#[derive(Default)]
pub struct Results {
    /// At least one row each.
    pub phases: Vec<PhaseResults>,
}

/// A phase of a workload at a level in force.
pub struct PhaseResults {
    /// Plain text.
    pub workload: String,
    /// Plain text.
    pub phase: String,
    /// `process` ...
    pub level: String,
    /// One for each engine with its options.
    pub rows: Vec<Row>,
}

/// An engine in a phase.
pub struct Row {
    /// With its options; plain text.
    pub engine: String,
    /// Floors have no place.
    pub is_floor: bool,
    /// Ops per second of each run that counts.
    pub rates: Vec<f64>,
    /// 99th percentile of the last run, nanoseconds; none: sample too small.
    pub p99_ns: Option<u64>,
}

impl Row {
    /// The median of its runs.
    pub fn rate(&self) -> Option<f64> {
        median(&self.rates)
    }
}

impl PhaseResults {
    /// Its rows, the fastest first.
    pub fn ranked(&self) -> Vec<&Row> {
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
    /// Adds the phases of a trial that went well.
    pub fn take(&mut self, record: &Record) {
        if record.outcome != Outcome::Ok {
            return;
        }
        let trial = &record.trial;
        for phase in &trial.workload.phases {
            let Some(whole) = record.whole_phase(&phase.name).filter(|whole| whole.not_run.is_none()) else {
                continue;
            };
            let Some(level) = whole.durability_in_force.filter(|_| whole.elapsed_ns > 0) else { continue };
            let mut all = crate::measure::Histogram::empty();
            whole.kinds.iter().for_each(|kind| all.merge(&kind.service_ns));
            let row = self.row(&trial.workload.name, &phase.name, &level.to_string(), trial);
            row.rates.push(whole.ops as f64 * 1e9 / whole.elapsed_ns as f64);
            row.p99_ns = all.quantile_if_enough(99, 100);
        }
    }

    fn row(&mut self, workload: &str, phase: &str, level: &str, trial: &crate::results::Trial) -> &mut Row {
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

    /// The place that `rate` has among the other engines so far, and how many there are with this one; none: no other.
    pub fn place(
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
