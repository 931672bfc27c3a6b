//! How well the load generators of a run ran at the same time.

use super::block::Block;
use super::describe::phase_name;
use super::figure::{known, rate, time};
use kvdyno_core::results::load_generators::{LoadGeneratorRecord, shared_share};
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::summary::{PhaseSummary, Summary};
use kvdyno_core::results::{PhaseRecord, Record};
use kvdyno_measure::text::{Align, Column, Table, share_text};

/// How to read the table.
const LEGEND: &str = "Each figure is the worst of all runs. starts, ends: how far apart the first threads of the load generators \
    started and their last threads ended, on the common clock. shared: the part of a phase in which all of them ran; a phase \
    that loads keys ends with the slowest. clock error: how far the start of a load generator may be off, half the time of a \
    question to load generator 0 and its answer. slowest, fastest: ops/s of the load generators, medians over runs.";
/// A phase that all load generators shared less than this is marked.
const LEAST_SHARED: f64 = 0.95;

/// The table and its legend; empty if there was one load generator.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    let number = |title: &str| Column { title: title.to_string(), align: Align::Right };
    let text = |title: &str| Column { title: title.to_string(), align: Align::Left };
    let titles = ["load generators", "starts", "ends", "shared", "clock error", "slowest", "fastest"];
    let mut table =
        Table::new([text("phase"), text("engine")].into_iter().chain(titles.map(number)).collect());
    let mut is_marked = false;
    for phase in summary.phases.iter().filter(|phase| phase.load_generators > 1) {
        for (engine, options) in engines(summary, phase) {
            let runs = runs(summary, phase, (engine, options));
            if runs.is_empty() {
                continue;
            }
            let worst = |of: &dyn Fn(&[LoadGeneratorRecord]) -> Option<u64>| {
                runs.iter().filter_map(|run| of(run)).max()
            };
            let shared = runs.iter().filter_map(|run| shared_share(run)).min_by(f64::total_cmp);
            let is_short = shared.is_some_and(|share| share < LEAST_SHARED) && !phase.settings.each_key;
            is_marked |= is_short;
            let rates = rates(&runs);
            table.push(vec![
                phase_name(phase),
                summary.labels.of(engine, options),
                phase.load_generators.to_string(),
                known(worst(&|run| spread(run, |load_generator| load_generator.start_ns)), time),
                known(worst(&|run| spread(run, |load_generator| load_generator.end_ns)), time),
                format!("{}{}", known(shared, share_text), if is_short { " *" } else { "" }),
                known(
                    worst(&|run| run.iter().map(|load_generator| load_generator.clock_error_ns).max()),
                    time,
                ),
                known(rates.iter().copied().min_by(f64::total_cmp), rate),
                known(rates.iter().copied().max_by(f64::total_cmp), rate),
            ]);
        }
    }
    if table.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![LEGEND.to_string()];
    if is_marked {
        let least = share_text(LEAST_SHARED);
        lines.push(format!(
            "* The load generators shared less than {least} of the phase: its rate is lower than what they did together. Use \
             --seconds, longer phases or equal machines."
        ));
    }
    vec![Block::Part("Load generators".to_string()), Block::Table(table), Block::Lines(lines)]
}

type Named<'s> = (&'s str, &'s [(String, String)]);

/// The engines of a phase, in the order of their records.
fn engines<'s>(summary: &'s Summary, phase: &PhaseSummary) -> Vec<Named<'s>> {
    let mut all: Vec<Named> = Vec::new();
    for record in of_workload(summary, phase) {
        let name: Named = (&record.trial.engine, &record.trial.options);
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn of_workload<'s>(summary: &'s Summary, phase: &PhaseSummary) -> impl Iterator<Item = &'s Record> {
    let workload = phase.workload.clone();
    summary.records.iter().filter(move |record| record.trial.workload.name == workload)
}

/// What the load generators did in each complete run of the phase.
fn runs<'s>(
    summary: &'s Summary,
    phase: &PhaseSummary,
    (engine, options): Named,
) -> Vec<&'s [LoadGeneratorRecord]> {
    let own = of_workload(summary, phase)
        .filter(|record| record.trial.engine == engine && record.trial.options == *options)
        .flat_map(|record| &record.phases);
    let is_it = |found: &&PhaseRecord| {
        found.phase.name == phase.name && found.not_run.is_none() && !found.load_generators.is_empty()
    };
    own.filter(is_it).map(|found| &found.load_generators[..]).collect()
}

fn spread(run: &[LoadGeneratorRecord], of: fn(&LoadGeneratorRecord) -> i64) -> Option<u64> {
    let (least, most) = (run.iter().map(of).min()?, run.iter().map(of).max()?);
    u64::try_from(most.saturating_sub(least)).ok()
}

/// The rate of each load generator, the median over runs.
fn rates(runs: &[&[LoadGeneratorRecord]]) -> Vec<f64> {
    let most = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let of_load_generator = |place: usize| {
        let rates = runs.iter().filter_map(|run| {
            let load_generator = run.get(place)?;
            let ns = load_generator.end_ns.checked_sub(load_generator.start_ns).filter(|ns| *ns > 0)?;
            Some(load_generator.ops as f64 * 1e9 / ns as f64)
        });
        median(&rates.collect::<Vec<_>>())
    };
    (0..most).filter_map(of_load_generator).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;

    #[test]
    fn the_table_has_the_worst_run_and_marks_a_short_common_window() {
        let (mut run, mut records) = (fixture::run(), fixture::records());
        run.plan.trials.iter_mut().for_each(|trial| trial.load_generators = 2);
        for record in &mut records {
            record.trial.load_generators = 2;
            let late = i64::from(record.trial.repetition) * 1_000;
            for phase in &mut record.phases {
                let load_generator = |load_generator: u32, end_ns: i64| LoadGeneratorRecord {
                    load_generator,
                    ops: 1_000,
                    start_ns: i64::from(load_generator) * late,
                    end_ns,
                    clock_offset_ns: -5,
                    clock_error_ns: 7_000,
                };
                let end_ns = if phase.phase.each_key { 1_000_000_000 } else { 500_000_000 };
                phase.load_generators = vec![load_generator(0, 1_000_000_000), load_generator(1, end_ns)];
            }
        }
        let summary = Summary::new(&run, records);
        assert!(summary.phases.iter().all(|phase| phase.load_generators == 2));
        let text = crate::text::blocks(blocks(&summary));
        let of = |phase: &str| {
            let row = |line: &&str| line.contains(&format!("/ {phase} ")) && line.contains("lmdb");
            text.lines().find(row).unwrap_or_else(|| panic!("{phase}: {text}"))
        };
        assert!(
            of("fill").contains("3.00us") && of("fill").contains("100 %") && !of("fill").contains('*'),
            "{text}"
        );
        assert!(of("read").contains("50 % *") && of("read").contains("7.00us"), "{text}");
        assert!(text.contains("* The load generators shared less than 95 %"), "{text}");
        assert!(blocks(&Summary::new(&fixture::run(), fixture::records())).is_empty());
    }
}
