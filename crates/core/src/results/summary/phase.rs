//! Summarizes a phase over all engines: the floor, a ranked group for each effective level, and unranked cells.

use super::cell::{Cell, ClassInWords, Name, RunFigures, cell, figures, state_of};
use super::note::{Note, contradicted_by_crashes, left_out, several_versions, stranger, unverified};
use super::order::Comparison;
use super::pace::{PaceChange, wait_changes, wait_words};
use super::{Found, by_workload, is_mutant};
use crate::results::blocks::Throughput;
use crate::results::label::full_name;
use crate::results::statistics::{Interval, interval_of_median, median};
use crate::results::{ForeignData, Kind, PhaseRecord, Run, Safety, Trial};
use crate::workload::{Collections, Durability, Index, KeySpec, OpKind, Phase, ValueSpec, Workload};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A phase over all engines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// The workload's name.
    pub workload: String,
    /// The phase's name.
    pub name: String,
    /// The workload that its workload is a variant of; none: it is not a variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant_of: Option<String>,
    /// Number of rounds that the figures cover; none: the phase is run once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Its settings, from the first trial that ran it.
    pub settings: Phase,
    /// The database of another program that its cells read; none: the rows are kvdyno's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignData>,
    /// Keys of the workload.
    pub keys: u64,
    /// The size of the data as a multiple of the memory that a trial may use for them; none: its memory is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_to_memory: Option<f64>,
    /// Keyspaces that they are spread over.
    pub keyspaces: u32,
    /// Collections that they are fields of, or lists.
    pub collections: Collections,
    /// The format of keys.
    pub key: KeySpec,
    /// The format of values.
    pub value: ValueSpec,
    /// The indexes of the rows.
    pub indexes: Vec<Index>,
    /// The number of load generators that ran it together, each with these threads.
    #[serde(skip_serializing_if = "is_one")]
    #[serde(rename = "ranks")]
    pub load_generators: u32,
    /// The requested durability level.
    #[serde(rename = "durability_asked")]
    pub durability_requested: Durability,
    /// The null engines: the cost of the harness alone.
    pub floors: Vec<Cell>,
    /// The ranked cells, a group for each effective level, the weakest level first.
    pub groups: Vec<Group>,
    /// Unranked cells: nothing was measured, or the engine has a planted bug.
    pub unranked: Vec<Cell>,
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// The cells of one kind at one effective level: ranked cells first, in descending order of what their orders compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The effective level.
    #[serde(rename = "durability_in_force")]
    pub durability_effective: Durability,
    /// What its engines are.
    #[serde(skip_serializing_if = "Kind::is_embedded")]
    pub kind: Kind,
    /// The cells; those with some failed runs have figures but no rank.
    pub cells: Vec<Cell>,
}

/// All phases of all workloads of the run, see [`by_workload`]. Ratios refer to `baseline`, or to each table's leader.
pub(super) fn summarize(run: &Run, records: &Found, baseline: Option<&str>) -> Vec<PhaseSummary> {
    let mut phases: Vec<PhaseSummary> = Vec::new();
    for Trial { workload, load_generators, .. } in by_workload(run) {
        for phase in &workload.phases {
            let known = phases.iter().any(|seen| seen.workload == workload.name && seen.name == phase.name);
            if !known {
                phases.push(summarize_phase(run, records, workload, phase, (*load_generators).max(1)));
            }
        }
    }
    let looks = run.plan.race.as_ref().map_or(1, |race| race.looks_after.len());
    rank_all(&mut phases, baseline, looks);
    phases
}

/// Ranks the cells of all tables, which are read together. `looks`: how often the run looks at them.
fn rank_all(phases: &mut [PhaseSummary], baseline: Option<&str>, looks: usize) {
    let mut found: Vec<Comparison> = Vec::new();
    for phase in phases.iter_mut() {
        let mut groups = std::mem::take(&mut phase.groups);
        let throughput = |cell: &Cell| phase.throughput(cell);
        found.extend(groups.iter_mut().map(|group| Comparison::sorted(&mut group.cells, throughput)));
        phase.groups = groups;
    }
    Comparison::read_together(&mut found, looks);
    let groups = phases.iter_mut().flat_map(|phase| &mut phase.groups);
    groups.zip(&found).for_each(|(group, compared)| compared.rank(&mut group.cells, baseline));
}

/// The settings that the cells of a phase are checked against: those of the first trial that ran it, or the planned ones.
struct Reference<'a> {
    workload: &'a Workload,
    phase: &'a Phase,
    foreign: Option<ForeignData>,
}

fn reference<'a>(records: &'a Found, workload: &'a Workload, phase: &'a Phase) -> Reference<'a> {
    let of_workload = records.records.iter().filter(|record| record.trial.workload.name == workload.name);
    let ran = of_workload.filter_map(|record| {
        let found = record.phases.iter().find(|found| found.phase.name == phase.name && found.ops > 0)?;
        Some(Reference { workload: &record.trial.workload, phase: &found.phase, foreign: record.foreign })
    });
    ran.into_iter().next().unwrap_or(Reference { workload, phase, foreign: None })
}

fn summarize_phase(
    run: &Run,
    records: &Found,
    workload: &Workload,
    phase: &Phase,
    load_generators: u32,
) -> PhaseSummary {
    let reference = reference(records, workload, phase);
    let mut summary = PhaseSummary {
        workload: workload.name.clone(),
        name: phase.name.clone(),
        variant_of: workload.variant_of.clone(),
        rounds: phase.each_round.then_some(workload.rounds),
        settings: reference.phase.clone(),
        foreign: reference.foreign,
        keys: reference.workload.keys,
        data_to_memory: reference.workload.data_to_memory(),
        keyspaces: reference.workload.keyspaces,
        collections: reference.workload.collections,
        key: reference.workload.key.clone(),
        value: reference.workload.value.clone(),
        indexes: reference.workload.indexes.clone(),
        load_generators,
        durability_requested: phase.durability.unwrap_or(workload.durability),
        floors: Vec::new(),
        groups: Vec::new(),
        unranked: Vec::new(),
    };
    let floors: HashSet<&str> =
        run.plan.trials.iter().filter(|trial| trial.is_floor).map(|trial| trial.engine.as_str()).collect();
    for cell in cells(run, records, &reference) {
        match (cell.durability_effective, cell.counted_runs) {
            _ if floors.contains(cell.engine.as_str()) => summary.floors.push(cell),
            _ if is_mutant(&cell.engine) => summary.unranked.push(cell),
            (Some(level), 1..) => group_of(&mut summary.groups, level, cell.class.kind).cells.push(cell),
            _ => summary.unranked.push(cell),
        }
    }
    summary.groups.sort_by_key(|group| (group.kind, group.durability_effective));
    summary
}

impl PhaseSummary {
    /// All cells except the floors, the ranked ones first.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.groups.iter().flat_map(|group| &group.cells).chain(&self.unranked)
    }

    /// How the throughput of an engine as if the harness took no time is to be read: it is exact if the engine does nothing while
    /// the harness works, because one thread only reads, or writes and the engine has no others that work.
    pub fn throughput(&self, cell: &Cell) -> Throughput {
        let phase = &self.settings;
        let threads = u64::from(phase.threads) + u64::from(phase.readers) + u64::from(phase.writers);
        let threads = threads * u64::from(self.load_generators);
        let writes = phase.writers > 0 || phase.mix.kinds().any(OpKind::writes);
        match cell.arrived.is_none() && threads <= 1 && (!writes || cell.works_only_when_called()) {
            true => Throughput::Exact,
            false => Throughput::UpperBound,
        }
    }
}

impl Group {
    /// The name of the group: `process`, or `none, caches`.
    pub fn name(&self) -> String {
        let level = self.durability_effective;
        self.kind.plural().map_or_else(|| level.to_string(), |kind| format!("{level}, {kind}"))
    }
}

fn group_of(groups: &mut Vec<Group>, level: Durability, kind: Kind) -> &mut Group {
    let is_it = |group: &Group| (group.durability_effective, group.kind) == (level, kind);
    let place = groups.iter().position(is_it).unwrap_or_else(|| {
        groups.push(Group { durability_effective: level, kind, cells: Vec::new() });
        groups.len() - 1
    });
    &mut groups[place]
}

/// The cells of a phase in the order of the plan; a cell whose runs had different effective levels is split by level.
fn cells(run: &Run, records: &Found, reference: &Reference) -> Vec<Cell> {
    let has_phase = |trial: &&Trial| {
        let same = |planned: &Phase| planned.name == reference.phase.name;
        trial.workload.name == reference.workload.name && trial.workload.phases.iter().any(same)
    };
    let planned: Vec<&Trial> = run.plan.trials.iter().filter(has_phase).collect();
    let requested = reference.phase.durability.unwrap_or(reference.workload.durability);
    let mut names: Vec<Name> = Vec::new();
    for trial in &planned {
        let known = names.iter().any(|name| name.engine == trial.engine && name.options == trial.options);
        if !known {
            names.push(Name {
                engine: &trial.engine,
                options: &trial.options,
                labels: &records.labels,
                nodes_option: trial.nodes_option.as_deref(),
                durability_requested: requested,
            });
        }
    }
    let mut cells = Vec::new();
    for name in names {
        let own = |trial: &&&Trial| trial.engine == name.engine && trial.options == name.options;
        let mut trials: Vec<&Trial> = planned.iter().filter(own).copied().collect();
        trials.sort_by_key(|trial| trial.repetition);
        cells.extend(cells_of(name, &trials, records, reference));
    }
    cells
}

/// A planned run of a cell, with the record of its phase if it counts.
struct PlannedRun<'a> {
    figures: RunFigures,
    counted: Option<Cow<'a, PhaseRecord>>,
    settings_differ: bool,
    class: ClassInWords,
    servers: Option<u32>,
    version: Option<String>,
    stranger: Option<Note>,
}

fn cells_of(name: Name, trials: &[&Trial], records: &Found, reference: &Reference) -> Vec<Cell> {
    // The rows of another program have other sizes than the workload's.
    let is_foreign = trials.iter().any(|trial| trial.is_foreign());
    let live_bytes = live_bytes_per_key(reference.workload).filter(|_| !is_foreign);
    let planned_run = |trial: &&Trial| {
        let record = records.record(&trial.id);
        let (state, counted) = state_of(record, &reference.phase.name);
        let other_keys = record.is_some_and(|record| {
            let rows = |foreign: Option<ForeignData>| foreign.map(|found| (found.rows, found.drawn));
            record.trial.workload.keys != reference.workload.keys
                || rows(record.foreign) != rows(reference.foreign)
        });
        let machine = records.machine(&trial.id);
        let pace_change = counted.as_deref().and_then(|phase| records.usual_paces.change(machine, phase));
        let own = figures(&trial.id, trial.repetition, state, counted.as_deref(), live_bytes);
        let length = trial.length(&reference.phase.name);
        PlannedRun {
            figures: RunFigures {
                length,
                machine,
                // A null engine is not compared, and cold caches take a part of its short calls.
                unaccounted: own.unaccounted.filter(|_| !trial.is_floor),
                disturbed: pace_change
                    .iter()
                    .filter(|change| change.is_disturbing())
                    .map(PaceChange::words)
                    .collect(),
                pace_change,
                ..own
            },
            settings_differ: counted.as_ref().is_some_and(|counted| {
                other_keys || *with_length(&counted.phase, length, reference) != *reference.phase
            }),
            counted,
            class: record.map_or_else(Default::default, |record| ClassInWords {
                class: record.class(),
                words: record.class_words(),
            }),
            servers: record.and_then(|record| record.setting("servers")?.parse().ok()),
            version: record.and_then(|record| Some(record.engine.as_ref()?.version.clone())),
            stranger: record.and_then(|record| stranger(records.run, records.clock(&trial.id), record)),
        }
    };
    let mut runs: Vec<PlannedRun> = trials.iter().map(planned_run).collect();
    let changes = wait_changes(runs.iter().map(|run| run.counted.as_deref()));
    for (run, change) in runs.iter_mut().zip(changes) {
        run.figures.wait_change = change;
        run.figures.disturbed.extend(change.and_then(wait_words));
    }
    let levels =
        runs.iter().filter_map(|run| run.counted.as_ref()).map(|counted| counted.durability_effective);
    let levels: BTreeSet<Option<Durability>> = levels.collect();
    let first = levels.first().copied().flatten();
    let levels = if levels.is_empty() { BTreeSet::from([None]) } else { levels };
    let cell_at = |level: &Option<Durability>| {
        // Runs that do not count have no level; they are added to the first.
        let level_of =
            |run: &&PlannedRun| run.counted.as_ref().map_or(first, |counted| counted.durability_effective);
        let here: Vec<&PlannedRun> = runs.iter().filter(|run| level_of(run) == *level).collect();
        let counted: Vec<&PhaseRecord> = here.iter().filter_map(|run| run.counted.as_deref()).collect();
        let settings_differ = here.iter().any(|run| run.settings_differ);
        let class = here.iter().map(|run| &run.class).find(|class| class.words.is_some());
        let class = class.cloned().unwrap_or_default();
        let figures = here.iter().map(|run| run.figures.clone()).collect();
        let mut cell = cell(name, figures, &counted, settings_differ, class);
        if let Some(race) = records.run.plan.race.as_ref().filter(|_| here.len() == runs.len()) {
            let engine = full_name(name.engine, name.options);
            cell.left_out = race.blocks().saturating_sub(runs.len() as u32);
            cell.beaten = race.beaten(&reference.phase.name, &engine).is_some();
            cell.notes.extend(left_out(race, &reference.phase.name, &engine, &cell));
        }
        cell.servers = here.iter().find_map(|run| run.servers);
        if let Some(interval) = interval_over_machines(&cell) {
            cell.ops_per_second_interval = interval;
        }
        for note in here.iter().filter_map(|run| run.stranger.as_ref()) {
            if !cell.notes.contains(note) {
                cell.notes.push(note.clone());
            }
        }
        cell.notes.extend(unverified(records.run, &cell.engine));
        let versions: BTreeSet<&String> = here.iter().filter_map(|run| run.version.as_ref()).collect();
        let version = versions.first().filter(|_| versions.len() == 1).map(|version| version.as_str());
        let certified = Safety::certified(&cell.engine, version, &cell.options, *level);
        cell.notes.splice(..0, contradicted_by_crashes(&certified));
        cell.safety = certified.unless_seen(cell.runs.iter().find_map(RunFigures::contradiction));
        if versions.len() > 1 {
            cell.settings_differ = true;
            cell.notes.push(several_versions(&versions.into_iter().collect::<Vec<_>>()));
        }
        cell
    };
    levels.iter().map(cell_at).collect()
}

/// The settings of a phase without those that its length changes.
fn with_length<'p>(phase: &'p Phase, length: f64, reference: &Reference) -> Cow<'p, Phase> {
    match length == 1.0 {
        true => Cow::Borrowed(phase),
        false => {
            let Phase { seconds, ops, .. } = *reference.phase;
            Cow::Owned(Phase { seconds, ops, ..phase.clone() })
        }
    }
}

/// The interval of the median rate of a cell that several machines measured: that of the machines' medians, because runs of one
/// machine are more alike than runs of several. None: one machine.
fn interval_over_machines(cell: &Cell) -> Option<Option<Interval>> {
    let mut of_machine: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (machine, run) in cell.runs.iter().filter_map(|run| Some((run.machine?, run))) {
        of_machine.entry(machine).or_default().extend(run.ops_per_second);
    }
    if of_machine.is_empty() {
        return None;
    }
    let medians: Vec<f64> = of_machine.values().filter_map(|rates| median(rates)).collect();
    // The median of the runs may be outside if the machines have different numbers of them.
    let middle = cell.ops_per_second?;
    Some(interval_of_median(&medians).map(|found| Interval {
        low: found.low.min(middle),
        high: found.high.max(middle),
        ..found
    }))
}

/// The bytes of a key, its value and its index rows; none if sizes vary or a phase sets its own.
fn live_bytes_per_key(workload: &Workload) -> Option<f64> {
    let own_size = workload.phases.iter().any(|phase| phase.value_size.is_some());
    // Only fixed sizes are written as plain numbers.
    let key: f64 = workload.key.size.to_string().parse().ok()?;
    let value: f64 = workload.value.size.to_string().parse().ok()?;
    (!own_size).then(|| key + value + workload.index_bytes(key, value))
}
