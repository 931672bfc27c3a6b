//! Plans the trials of a run (engines x workloads x repetitions) in randomised complete blocks. Each block has every cell
//! once, so that drift of the machine affects all engines alike.

use super::data::check_workload;
use super::schedule::{schedule, times};
use super::shape::{fit_groups, memory_estimate_bytes};
use crate::generator::{Random, Sizes, mix64};
use crate::results::{Estimate, Plan, Trial};
use crate::workload::Workload;
use kvdyno_measure::{Change, Placement, Warning};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The maximum number of trials of a run. All of them are in its plan, which each start reads.
const MOST_TRIALS: u64 = 100_000;

/// An engine to measure, with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// The name to type on the command line.
    pub engine: String,
    /// `name=value`.
    pub options: Vec<(String, String)>,
    /// The option among them with the number of nodes of the cluster that the engine starts; none: it is not set.
    pub nodes_option: Option<String>,
    /// Whether it stores nothing.
    pub is_floor: bool,
    /// Whether it keeps nothing in files.
    pub keeps_nothing: bool,
}

/// The option of an engine with the address of a running server.
pub const URL: &str = "url";

/// Whether these options name a running server.
pub fn has_url(options: &[(String, String)]) -> bool {
    options.iter().any(|(name, value)| name == URL && !value.is_empty())
}

impl Contestant {
    /// Whether it is a running server, which everybody reaches.
    pub fn has_url(&self) -> bool {
        has_url(&self.options)
    }

    /// Whether a trial needs space on the disk of the data folder.
    pub fn needs_disk(&self) -> bool {
        !self.keeps_nothing && !self.has_url()
    }
}

/// A workload, and the engines that it runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The workload, with all changes applied.
    pub workload: Workload,
    /// The engines, at least one.
    pub contestants: Vec<Contestant>,
    /// The number of load generators that run it together; 0 and 1: one.
    pub load_generators: u32,
}

/// The settings that all trials of a plan share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialSettings {
    /// The seeds that differ between repetitions.
    pub seeds: Seeds,
    /// The CPUs and the NUMA node of each trial.
    pub placement: Placement,
    /// Whether buffers end at guard pages.
    pub paranoid: bool,
    /// Whether cycles and instructions are counted.
    pub counts_cycles: bool,
    /// Whether system calls are counted.
    pub counts_calls: bool,
    /// Whether the trials start with copies of kept databases.
    pub reused: bool,
}

/// The seeds that differ from one repetition of a cell to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeds {
    /// Keys, values and ops.
    #[default]
    OfAll,
    /// The ops; keys and values stay the same, because the database is used by several trials.
    OfOps,
    /// Nothing: each repetition does the same.
    Same,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// A workload whose keys, values or distributions cannot be created.
    Workload {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// More trials than a run may have.
    Trials(u64),
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Workload { name, reason } => write!(out, "workload {name}: {reason}"),
            PlanError::Trials(count) => {
                write!(out, "this plan has {count} trials; the maximum is {MOST_TRIALS}")
            }
        }
    }
}

impl std::error::Error for PlanError {}

impl PlanError {
    fn of(workload: &Workload, error: &dyn std::error::Error) -> PlanError {
        PlanError::Workload { name: workload.name.clone(), reason: error.to_string() }
    }
}

/// Plans a run: shrinks each workload to its time budget, checks it, and puts the trials in order. Also returns a warning
/// for each workload that was shrunk.
pub fn plan(
    name: String,
    command: Vec<String>,
    mut entries: Vec<Entry>,
    settings: &TrialSettings,
) -> Result<(Plan, Vec<Warning>), PlanError> {
    let mut warnings = Vec::new();
    for Entry { workload, contestants, .. } in &mut entries {
        // A floor takes almost no time.
        let engines = contestants.iter().filter(|contestant| !contestant.is_floor).count().max(1);
        if let Some(share) = workload.seconds_per_trial(engines * workload.runs.max(1) as usize) {
            let before = (workload.keys, workload.phase_seconds());
            workload.shrink_to(share);
            let keys = Change { before: before.0, after: workload.keys };
            let seconds = Change { before: before.1, after: workload.phase_seconds() };
            warnings.extend(Warning::of_shrinking(&workload.name, keys, seconds));
        }
        let groups = fit_groups(workload);
        warnings.extend(Warning::of_groups(&workload.name, &groups));
        check_workload(workload).map_err(|error| PlanError::of(workload, &error))?;
    }
    let of = |entry: &Entry| u64::from(entry.workload.runs.max(1)) * entry.contestants.len() as u64;
    let count = entries.iter().map(of).sum();
    if count > MOST_TRIALS {
        return Err(PlanError::Trials(count));
    }
    let trials = trials(&entries, entries.first().map_or(1, |entry| entry.workload.seed), settings);
    let of = |entry: &Entry| time_estimate_seconds(&entry.workload) * of(entry) as f64;
    let on_disk = entries.iter().filter(|entry| entry.contestants.iter().any(Contestant::needs_disk));
    let estimate = Estimate {
        disk_bytes: on_disk.map(|entry| disk_estimate_bytes(&entry.workload)).max().unwrap_or(0),
        memory_bytes: entries.iter().map(|entry| memory_estimate_bytes(&entry.workload)).max().unwrap_or(0),
        seconds: entries.iter().map(of).sum(),
    };
    Ok((Plan { name, command, trials, reference: None, race: None, estimate: Some(estimate) }, warnings))
}

/// Checks the workloads of a plan that was loaded from a file. Those of [`plan`] are sound.
pub fn check_plan(plan: &Plan) -> Result<(), PlanError> {
    let mut checked: Vec<&Arc<Workload>> = Vec::new();
    for workload in plan.trials.iter().map(|trial| &trial.workload) {
        // Trials share their workloads, but one workload may have a copy for each repetition.
        if checked.last().is_some_and(|last| Arc::ptr_eq(last, workload)) || checked.contains(&workload) {
            continue;
        }
        workload.check().map_err(|error| PlanError::of(workload, &error))?;
        check_workload(workload).map_err(|error| PlanError::of(workload, &error))?;
        checked.push(workload);
    }
    Ok(())
}

/// The seed of a repetition, the same for all engines. The first uses the run's seed, so that one repetition with the seed
/// of a record repeats that record's trial. Seeds are at most 2^53, so that all JSON parsers preserve them.
pub(super) fn repetition_seed(seed: u64, repetition: u32) -> u64 {
    match repetition {
        0 | 1 => seed,
        _ => mix64(mix64(seed).wrapping_add(u64::from(repetition))) >> 11,
    }
}

/// The trials of a run in the order of execution; `seed` determines the order.
fn trials(entries: &[Entry], seed: u64, settings: &TrialSettings) -> Vec<Trial> {
    let runs = entries.iter().map(|entry| entry.workload.runs.max(1)).max().unwrap_or(1);
    let mut random = Random::seeded(mix64(seed));
    let mut trials = Vec::new();
    for repetition in 1..=runs {
        let of_ops = |workload: &Workload| repetition_seed(workload.seed, repetition);
        let of_rows = |workload: &Workload| match settings.seeds {
            Seeds::OfAll => of_ops(workload),
            Seeds::OfOps | Seeds::Same => workload.seed,
        };
        let repeated = |Entry { workload, .. }: &Entry| {
            Arc::new(Workload { seed: of_rows(workload), ..workload.clone() })
        };
        let workloads: Vec<_> = entries.iter().map(repeated).collect();
        let mut block: Vec<(&Contestant, &Entry, &Arc<Workload>)> = Vec::new();
        for (entry, workload) in entries.iter().zip(&workloads) {
            if repetition <= workload.runs.max(1) {
                block.extend(entry.contestants.iter().map(|contestant| (contestant, entry, workload)));
            }
        }
        for last in (1..block.len()).rev() {
            block.swap(last, random.below(last as u64 + 1) as usize);
        }
        for (contestant, entry, workload) in block {
            let order = trials.len() as u32;
            let engine = contestant.engine.replace(':', "-");
            trials.push(Trial {
                id: format!("{order:04}-{engine}-{}-{repetition}", workload.name),
                order,
                repetition,
                engine: contestant.engine.clone(),
                options: contestant.options.clone(),
                nodes_option: contestant.nodes_option.clone(),
                workload: Arc::clone(workload),
                seed: match settings.seeds {
                    Seeds::OfOps => Some(of_ops(&entry.workload)),
                    Seeds::OfAll | Seeds::Same => None,
                },
                placement: settings.placement.clone(),
                reused: settings.reused,
                paranoid: settings.paranoid,
                counts_cycles: settings.counts_cycles,
                counts_calls: settings.counts_calls,
                is_floor: contestant.is_floor,
                load_generators: entry.load_generators.max(1),
                load_generator: None,
                lengths: BTreeMap::new(),
            });
        }
    }
    trials
}

/// An estimate of the time in the phases of a trial of this workload, in seconds.
pub fn time_estimate_seconds(workload: &Workload) -> f64 {
    schedule(workload).map(|turn| workload.expected_seconds(&workload.phases[turn.place])).sum()
}

/// A rough estimate of the maximum disk space of a trial of this workload, in bytes: an engine with copy-on-write or
/// background merges needs up to four times its data, and some allocate a segment in advance.
pub fn disk_estimate_bytes(workload: &Workload) -> u64 {
    const IN_ADVANCE: u64 = 256 << 20;
    let mean = |size| Sizes::new(size).map_or(0.0, |sizes| sizes.mean());
    let (key, value) = (mean(&workload.key.size), mean(&workload.value.size));
    let overhead = 16.0 * (1 + workload.indexes.len()) as f64;
    let row = key + value + workload.index_bytes(key, value) + overhead;
    let inserts: f64 = workload
        .phases
        .iter()
        .filter(|phase| {
            phase.mix.insert + phase.mix.insert_indexed + phase.mix.push > 0.0 || phase.existing.is_some()
        })
        .map(|phase| {
            let inserts = phase.ops_limit().map_or(phase.seconds * 100_000.0, |ops| ops as f64);
            inserts * f64::from(times(workload, phase))
        })
        .sum();
    (((workload.keys as f64 + inserts) * row * 4.0) as u64).saturating_add(IN_ADVANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn contestant(engine: &str) -> Contestant {
        Contestant {
            engine: engine.into(),
            options: Vec::new(),
            nodes_option: None,
            is_floor: false,
            keeps_nothing: false,
        }
    }

    #[test]
    fn only_engines_that_keep_files_here_need_disk_space() {
        let workload = Workload { keys: 1 << 32, ..builtin("read-random").unwrap() };
        let estimate = |contestants: Vec<Contestant>| {
            let entry = Entry { workload: workload.clone(), contestants, load_generators: 1 };
            let (plan, _) = plan("test".into(), Vec::new(), vec![entry], &TrialSettings::default()).unwrap();
            plan.estimate.unwrap().disk_bytes
        };
        let null = || Contestant { is_floor: true, keeps_nothing: true, ..contestant("null") };
        let options = vec![("url".to_string(), "redis://127.0.0.1".to_string())];
        let elsewhere = Contestant { options, ..contestant("redis") };
        assert_eq!(estimate(vec![null(), elsewhere]), 0);
        assert_eq!(estimate(vec![null(), contestant("lmdb")]), disk_estimate_bytes(&workload));
    }

    #[test]
    fn every_block_has_every_cell_once_in_another_order() {
        let contestants: Vec<Contestant> = ["a", "b", "c", "d", "e"].map(contestant).to_vec();
        let workload = builtin("quick").unwrap();
        let runs = workload.runs as usize;
        let trials =
            trials(&[Entry { workload, contestants, load_generators: 1 }], 1, &TrialSettings::default());
        assert_eq!(trials.len(), 5 * runs);
        let mut orders = Vec::new();
        for block in trials.chunks(5) {
            assert!(block.iter().all(|trial| trial.repetition == block[0].repetition));
            let order: Vec<&str> = block.iter().map(|trial| trial.engine.as_str()).collect();
            let mut sorted = order.clone();
            sorted.sort();
            assert_eq!(sorted, ["a", "b", "c", "d", "e"]);
            orders.push(order);
        }
        orders.dedup();
        assert!(orders.len() > 1, "seed 1 gave the same order in every block");
        let mut ids: Vec<_> = trials.iter().map(|trial| &trial.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), trials.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let contestants = vec![contestant("null")];
        let entries = ["quick", "ycsb-a"].map(|name| Entry {
            workload: builtin(name).unwrap(),
            contestants: contestants.clone(),
            load_generators: 1,
        });
        let settings = TrialSettings::default();
        assert_eq!(trials(&entries, 5, &settings), trials(&entries, 5, &settings));
    }

    #[test]
    fn each_workload_has_its_own_engines_and_number_of_runs() {
        let entry = |name: &str, runs: u32, engines: &[&str]| {
            let workload = Workload { runs, ..builtin(name).unwrap() };
            Entry {
                workload,
                contestants: engines.iter().map(|engine| contestant(engine)).collect(),
                load_generators: 1,
            }
        };
        let entries = [entry("quick", 3, &["a", "b"]), entry("ycsb-a", 1, &["b", "c"])];
        let trials = trials(&entries, 1, &TrialSettings::default());
        let mut cells: Vec<(&str, &str, u32)> = trials
            .iter()
            .map(|trial| (trial.workload.name.as_str(), trial.engine.as_str(), trial.repetition))
            .collect();
        let first: Vec<u32> = cells[..4].iter().map(|cell| cell.2).collect();
        assert_eq!(first, [1; 4], "a block has every cell");
        cells.sort();
        let quick = [1, 2, 3].map(|run| ("quick", "a", run)).into_iter();
        let quick = quick.chain([1, 2, 3].map(|run| ("quick", "b", run)));
        let expected: Vec<_> = quick.chain([("ycsb-a", "b", 1), ("ycsb-a", "c", 1)]).collect();
        assert_eq!(cells, expected);
    }

    #[test]
    fn each_block_has_its_own_seed_for_all_its_engines() {
        let seed = 7;
        let contestants = vec![contestant("a"), contestant("b")];
        let workload = Workload { seed, runs: 40, ..builtin("quick").unwrap() };
        let entries = [Entry { workload, contestants, load_generators: 1 }];
        let of = |seeds| trials(&entries, seed, &TrialSettings { seeds, ..TrialSettings::default() });
        let all = of(Seeds::OfAll);
        let mut seeds: Vec<u64> = all.chunks(2).map(|block| block[0].workload.seed).collect();
        for (block, seed) in all.chunks(2).zip(&seeds) {
            assert!(block.iter().all(|trial| trial.workload.seed == *seed && trial.ops_seed() == *seed));
        }
        assert_eq!(seeds[0], seed, "the first repetition uses the run's seed");
        assert!(seeds.iter().all(|seed| *seed < 1 << 53), "all JSON parsers preserve them: {seeds:?}");
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 40, "seed {seed}");
        // With kept databases, rows stay the same, because reads are checked against the same values.
        let kept = of(Seeds::OfOps);
        for (trial, other) in kept.iter().zip(&all) {
            assert_eq!((trial.workload.seed, trial.ops_seed()), (seed, other.ops_seed()));
        }
        let same = of(Seeds::Same);
        assert!(same.iter().all(|trial| (trial.workload.seed, trial.ops_seed()) == (seed, seed)));
        assert_ne!(repetition_seed(2, 3), repetition_seed(3, 2));
    }
}
