//! The machines of a campaign, compared by the engine that runs in every block, so that an odd machine is found.

use super::statistics::{Interval, median};
use super::summary::{Cell, PhaseSummary};
use super::{Part, Run};
use kvdyno_measure::text::{bytes_text, counted, listed};
use kvdyno_measure::{Machine, Warning};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

/// A machine is odd if its reference runs at a rate that differs by more than this share from the median of the machines.
pub(super) const ODD_SHARE: f64 = 0.05;

/// The probability that at least one machine of a campaign is called odd by chance, if all are equal.
const FAMILY_ERROR: f64 = 0.05;

/// The minimum number of machines: if two differ, nothing shows which of them is odd.
const FEWEST_MACHINES: usize = 3;

/// The minimum degrees of freedom of the noise within machines.
const FEWEST_DEGREES: usize = 3;

/// A machine of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineSummary {
    /// From 1, in the order of the first trials.
    pub number: u32,
    /// The same for all slices that it measured.
    pub id: String,
    /// The machine.
    pub machine: Machine,
    /// Trials that it measured.
    pub trials: u32,
    /// How the reference ran there; none: the machines cannot be compared.
    pub reference: Option<Deviation>,
}

/// The rate of the reference on a machine, compared with the other machines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// The reference engine; that of most phases.
    pub engine: String,
    /// Its rate as a multiple of the median of all machines, the mean over phases.
    pub ratio: f64,
    /// The interval of that ratio; its level applies to all machines together. None: too few blocks.
    pub interval: Option<Interval>,
    /// Whether the machine is odd: the ratio is not explained by noise, and differs by more than [`ODD_SHARE`] from 1.
    pub is_odd: bool,
}

/// The machines of a run; empty if one machine measured all.
pub(super) fn machines(run: &Run, phases: &[PhaseSummary]) -> Vec<MachineSummary> {
    let Some(Part { machines, .. }) = run.campaign.as_ref().filter(|part| part.machines.len() > 1) else {
        return Vec::new();
    };
    let (engine, samples) = samples(run, phases);
    let found = deviations(&samples, machines.len());
    let numbered = (1..).zip(machines).zip(found);
    numbered
        .map(|((number, on), deviation)| MachineSummary {
            number,
            id: on.id.clone(),
            machine: on.machine.clone(),
            trials: on.trials.len() as u32,
            reference: deviation.map(|(ratio, interval, is_odd)| Deviation {
                engine: engine.clone(),
                ratio,
                interval,
                is_odd,
            }),
        })
        .collect()
}

/// A run of the reference: its block, its phase, its machine (from 0) and the log of its rate.
struct Sample {
    block: (String, u32),
    phase: usize,
    machine: usize,
    log: f64,
}

/// The runs of the reference in all phases, and its name. In a phase in which it has no figures, a floor takes its place.
fn samples(run: &Run, phases: &[PhaseSummary]) -> (String, Vec<Sample>) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut samples = Vec::new();
    for (place, phase) in phases.iter().enumerate() {
        let is_reference = |cell: &&Cell| Some(&cell.engine) == run.plan.reference.as_ref();
        let mut ranked = phase.groups.iter().flat_map(|group| &group.cells);
        let Some(cell) = ranked.find(is_reference).or(phase.floors.first()) else { continue };
        *names.entry(&cell.engine).or_default() += 1;
        for run in &cell.runs {
            let (Some(machine), Some(rate)) = (run.machine, run.ops_per_second) else { continue };
            if rate > 0.0 {
                samples.push(Sample {
                    block: (phase.workload.clone(), run.repetition),
                    phase: place,
                    machine: machine as usize - 1,
                    log: rate.ln(),
                });
            }
        }
    }
    let name = names.iter().max_by_key(|(_, count)| **count).map_or("", |(name, _)| name);
    (name.to_string(), samples)
}

/// For each machine: the rate of the reference as a multiple of the median of the machines, the interval of it, and whether the
/// machine is odd.
fn deviations(samples: &[Sample], machines: usize) -> Vec<Option<(f64, Option<Interval>, bool)>> {
    // The effect of each phase is removed: the median over machines of the medians of each machine.
    let mut of_phase: BTreeMap<usize, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    for sample in samples {
        of_phase.entry(sample.phase).or_default().entry(sample.machine).or_default().push(sample.log);
    }
    let middle = |of_machine: &BTreeMap<usize, Vec<f64>>| {
        median(&of_machine.values().filter_map(|logs| median(logs)).collect::<Vec<f64>>())
    };
    let middles: BTreeMap<usize, f64> = of_phase
        .iter()
        // All machines must have it, or its median would be that of other machines than the others' are.
        .filter(|(_, of_machine)| of_machine.len() == machines)
        .filter_map(|(phase, of_machine)| Some((*phase, middle(of_machine)?)))
        .collect();
    // The phases of a block are one trial, and share its noise.
    let mut blocks: BTreeMap<(&str, u32), (usize, Vec<f64>)> = BTreeMap::new();
    for sample in samples {
        let Some(middle) = middles.get(&sample.phase) else { continue };
        let key = (sample.block.0.as_str(), sample.block.1);
        blocks.entry(key).or_insert((sample.machine, Vec::new())).1.push(sample.log - middle);
    }
    let mut of_machine: Vec<Vec<f64>> = vec![Vec::new(); machines];
    for (machine, logs) in blocks.values() {
        of_machine[*machine].extend(mean(logs));
    }
    let means: Vec<Option<f64>> = of_machine.iter().map(|logs| mean(logs)).collect();
    let known: Vec<f64> = means.iter().flatten().copied().collect();
    let Some(center) = median(&known) else { return vec![None; machines] };
    let runs: usize = of_machine.iter().map(Vec::len).sum();
    let degrees = runs - known.len();
    let squares: f64 = of_machine
        .iter()
        .zip(&means)
        .flat_map(|(logs, mean)| logs.iter().map(|log| (log - mean.unwrap_or_default()).powi(2)))
        .sum();
    let student = (degrees >= FEWEST_DEGREES && known.len() >= FEWEST_MACHINES)
        .then(|| StudentsT::new(0.0, 1.0, degrees as f64).ok())
        .flatten();
    let reach = |own: usize| {
        let quantile = student?.inverse_cdf(1.0 - FAMILY_ERROR / 2.0 / known.len() as f64);
        // The median of the machines varies by about half of pi as much as their mean.
        let parts = 1.0 / own as f64 + std::f64::consts::FRAC_PI_2 / runs as f64;
        Some(quantile * (squares / degrees as f64 * parts).sqrt())
    };
    of_machine
        .iter()
        .zip(&means)
        .map(|(logs, mean)| {
            let value = (*mean)? - center;
            let reach = reach(logs.len());
            let interval = reach.map(|reach| Interval {
                low: (value - reach).exp(),
                high: (value + reach).exp(),
                level: 1.0 - FAMILY_ERROR,
            });
            let is_odd = reach.is_some_and(|reach| {
                value.abs() > reach && (value > ODD_SHARE.ln_1p() || value < (-ODD_SHARE).ln_1p())
            });
            Some((value.exp(), interval, is_odd))
        })
        .collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    super::variance::mean(values)
}

/// Warnings about machines that are odd or differ.
pub(super) fn warnings(machines: &[MachineSummary]) -> Vec<Warning> {
    let odd = |of: &MachineSummary| {
        let found = of.reference.as_ref().filter(|reference| reference.is_odd)?;
        let interval = found
            .interval
            .map_or(String::new(), |interval| format!(" ({:.2}..{:.2})", interval.low, interval.high));
        Some(format!(
            "machine {} ({}) ran {} at {:.2}x{interval} the rate of the median machine",
            of.number, of.id, found.engine, found.ratio
        ))
    };
    let odd: Vec<String> = machines.iter().filter_map(odd).collect();
    let different = differences(machines);
    Warning::of_odd_machines(&odd).into_iter().chain(Warning::of_different_machines(&different)).collect()
}

/// The name of a fact about a machine, and how it is read.
type Fact<'a> = (&'static str, &'a dyn Fn(&Machine) -> String);

/// What differs between the machines, with the number of machines that have each value: `kernel 6.1 (3 machines) and 6.2 (1
/// machine)`.
fn differences(machines: &[MachineSummary]) -> Vec<String> {
    let unknown = || "unknown".to_string();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let facts: [Fact<'_>; 8] = [
        ("processor", &|machine| text(&machine.cpu_model)),
        ("CPUs", &|machine| machine.cpus_allowed.map_or_else(unknown, |cpus| cpus.to_string())),
        // Machines of one kind report some pages more or less.
        ("memory", &|machine| {
            machine.memory_bytes.map_or_else(unknown, |bytes| bytes_text(bytes >> 26 << 26))
        }),
        ("kernel", &|machine| text(&machine.kernel)),
        ("system", &|machine| text(&machine.os)),
        ("governor", &|machine| text(&machine.governor)),
        ("file system", &|machine| {
            machine.file_system.as_ref().map_or_else(unknown, |system| system.kind.clone())
        }),
        ("build", &|machine| machine.tool_build.clone()),
    ];
    let mut found = Vec::new();
    for (name, of) in facts {
        let mut values: Vec<(String, u64)> = Vec::new();
        for value in machines.iter().map(|summary| of(&summary.machine)) {
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, count)) => *count += 1,
                None => values.push((value, 1)),
            }
        }
        if values.len() > 1 {
            let each = |(value, count): &(String, u64)| {
                format!("{value} ({})", counted(*count, "machine", "machines"))
            };
            found.push(format!("{name} {}", listed(&values.iter().map(each).collect::<Vec<_>>(), "and")));
        }
    }
    found
}

/// Simulates campaigns and returns for each machine whether it is called odd: the rates of a reference, one series for each
/// machine, one rate for each block. For `benches/statistics`.
pub fn odd_machines(rates: &[Vec<f64>]) -> Vec<bool> {
    let mut samples = Vec::new();
    for (machine, rates) in rates.iter().enumerate() {
        for rate in rates {
            let block = (String::new(), samples.len() as u32);
            samples.push(Sample { block, phase: 0, machine, log: rate.ln() });
        }
    }
    deviations(&samples, rates.len())
        .iter()
        .map(|found| found.as_ref().is_some_and(|found| found.2))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_is_odd_and_noise_is_not() {
        let steady =
            |rate: f64| (0..5).map(|at| rate * (1.0 + 0.01 * f64::from(at % 3))).collect::<Vec<f64>>();
        let found = odd_machines(&[steady(100.0), steady(101.0), steady(80.0), steady(99.0)]);
        assert_eq!(found, [false, false, true, false]);
        // Two machines that differ: nothing shows which one is odd.
        assert_eq!(odd_machines(&[steady(100.0), steady(80.0)]), [false, false]);
        // One block on each machine: noise cannot be distinguished from machines.
        assert_eq!(odd_machines(&[vec![100.0], vec![100.0], vec![50.0]]), [false, false, false]);
        // 3 % is not odd, however certain it is.
        assert_eq!(odd_machines(&[vec![100.0; 9], vec![100.0; 9], vec![97.0; 9]]), [false, false, false]);
    }

    #[test]
    fn differences_name_each_value_and_count_its_machines() {
        let of = |number: u32, kernel: &str| MachineSummary {
            number,
            id: format!("{number:08x}"),
            machine: Machine { kernel: Some(kernel.to_string()), ..Machine::default() },
            trials: 1,
            reference: None,
        };
        let all = [of(1, "6.1"), of(2, "6.2"), of(3, "6.1")];
        let found = warnings(&all);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "The machines differ: kernel 6.1 (2 machines) and 6.2 (1 machine).");
        assert!(warnings(&all[..1]).is_empty());
    }
}
