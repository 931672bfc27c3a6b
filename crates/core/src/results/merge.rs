//! Merges the slices of a campaign into one run. Records are copied byte by byte: nothing is added up or averaged.
//!
//! A block counts as measured by one machine. Records of a machine that did not finish a block are omitted if another machine
//! did. Two records of a trial from the same machine must be identical.

use super::campaign::{Campaign, MeasuredOn, Part, ReadCampaign, blocks};
use super::journal::{self, Entry};
use super::load::RECORD_LIMIT_BYTES;
use super::store::{self, RunFolder, StoreError, runs_below};
use super::{Parts, Run, Trial};
use kvdyno_measure::text::counted;
use kvdyno_measure::{disk, read_limited};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why slices cannot be merged.
#[derive(Debug, Error)]
pub enum MergeError {
    /// Results cannot be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A folder without runs.
    #[error("{} contains no results", .0.display())]
    NoResults(PathBuf),
    /// A run that is no part of a campaign.
    #[error("{} is no slice of a plan", .0.display())]
    NotPlanned(PathBuf),
    /// Folders without a slice of the plan.
    #[error("{} contains no slice of the plan", .0.display())]
    NoSlices(PathBuf),
    /// The folder of the result exists.
    #[error("{} already exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// The parts do not belong together: what differs.
    #[error("{0}")]
    Differ(String),
}

/// What was merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Runs that were read.
    pub runs: usize,
    /// Machines that measured the records.
    pub machines: usize,
    /// Records of the result.
    pub records: usize,
    /// Trials of the result that have no record.
    pub missing: usize,
    /// Trials of the campaign that are in no run and so not part of the result.
    pub unknown: usize,
    /// Records that were given twice, byte by byte the same.
    pub duplicates: usize,
    /// Records of unfinished blocks that another machine has measured again.
    pub superseded: usize,
    /// Remarks about runs, a sentence each.
    pub remarks: Vec<String>,
}

/// A record of a trial.
#[derive(Clone, Copy)]
struct Found<'a> {
    /// The place of its run among the sources.
    source: usize,
    /// Its line in the journal of the run.
    entry: &'a Entry,
}

/// The record of a trial that the result has.
struct Chosen<'a> {
    found: Found<'a>,
    /// The id of the machine that measured it.
    machine: &'a str,
}

/// A run to merge, and the machines that measured its trials.
struct Source {
    folder: RunFolder,
    part: Part,
}

/// Merges all runs in these folders and below them into the new folder `out`. With the plan, the result also has the trials that
/// no slice has begun.
pub fn merge(folders: &[PathBuf], plan: Option<&ReadCampaign>, out: &Path) -> Result<Merged, MergeError> {
    if fs::symlink_metadata(out).is_ok() && !is_empty_folder(out) {
        return Err(MergeError::Exists(out.to_path_buf()));
    }
    let mut merged = Merged::default();
    let sources = sources(folders, plan, &mut merged)?;
    check_same(&sources, plan)?;
    let mut trials = trials(&sources)?;
    if let Some(plan) = plan {
        trials = check_planned(trials, &plan.campaign)?;
    }
    merged.runs = sources.len();
    for source in &sources {
        let path = source.folder.path();
        merged
            .remarks
            .extend(source.folder.warnings().iter().map(|text| format!("{}: {text}", path.display())));
        if store::lock_idle(path).is_none() {
            merged.remarks.push(format!("{} is being written to; it may get more records", path.display()));
        }
    }
    let chosen = chosen(&sources, &trials, &mut merged)?;
    let run = run(&sources, trials, &chosen, &mut merged);
    write(out, &run, &sources, &chosen)?;
    Ok(merged)
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The runs in the folders, each once, in an order that does not depend on that of the folders. Of a folder with several runs, those
/// that are no slices are skipped, and with a plan those of other plans.
fn sources(
    folders: &[PathBuf],
    plan: Option<&ReadCampaign>,
    merged: &mut Merged,
) -> Result<Vec<Source>, MergeError> {
    let mut paths = Vec::new();
    for folder in folders {
        let below = runs_below(folder)?;
        if below.is_empty() {
            return Err(MergeError::NoResults(folder.clone()));
        }
        paths.extend(below.into_iter().map(|path| (path == *folder, path)));
    }
    let mut seen = HashSet::new();
    let mut parts = Parts::default();
    let mut sources = Vec::new();
    for (is_named, path) in paths {
        // The same folder may be reached by two paths.
        if !seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
            continue;
        }
        let mut folder = RunFolder::open(&path)?;
        folder.share(&mut parts);
        let Some(part) = folder.run().campaign.clone() else {
            if is_named {
                return Err(MergeError::NotPlanned(path));
            }
            merged.remarks.push(format!("{} is no slice of a plan and is skipped", path.display()));
            continue;
        };
        if !is_named && plan.is_some_and(|plan| plan.id != part.campaign) {
            merged.remarks.push(format!("{} is a slice of another plan and is skipped", path.display()));
            continue;
        }
        sources.push(Source { folder, part });
    }
    let first = |source: &Source| source.folder.run().plan.trials.iter().map(|trial| trial.order).min();
    sources.sort_by(|one, other| {
        let key = |source: &Source| (first(source), source.folder.run().id.clone());
        key(one).cmp(&key(other)).then_with(|| one.folder.path().cmp(other.folder.path()))
    });
    match sources.is_empty() {
        true => Err(MergeError::NoSlices(folders.first().cloned().unwrap_or_default())),
        false => Ok(sources),
    }
}

/// Refuses runs of different plans and of different versions of kvdyno.
fn check_same(sources: &[Source], plan: Option<&ReadCampaign>) -> Result<(), MergeError> {
    let Some(first) = sources.first() else { return Ok(()) };
    let version = |source: &Source| source.folder.run().tool_version.clone();
    let path = |source: &Source| source.folder.path().display().to_string();
    for other in sources {
        if other.part.campaign != first.part.campaign {
            return Err(MergeError::Differ(format!(
                "{} and {} are slices of different plans: {} and {}",
                path(first),
                path(other),
                first.part.campaign,
                other.part.campaign
            )));
        }
        if version(other) != version(first) {
            return Err(MergeError::Differ(format!(
                "{} was measured with kvdyno {}, and {} with kvdyno {}",
                path(first),
                version(first),
                path(other),
                version(other)
            )));
        }
    }
    match plan {
        Some(ReadCampaign { id, .. }) if *id != first.part.campaign => Err(MergeError::Differ(format!(
            "{} is a slice of the plan {}, but --plan names {id}",
            path(first),
            first.part.campaign
        ))),
        _ => Ok(()),
    }
}

/// The trials of all runs, each once, in the order of the plan.
fn trials(sources: &[Source]) -> Result<Vec<Trial>, MergeError> {
    let mut all: BTreeMap<(u32, &str), (&Trial, &Source)> = BTreeMap::new();
    for source in sources {
        for trial in &source.folder.run().plan.trials {
            let (known, first) = *all.entry((trial.order, &trial.id)).or_insert((trial, source));
            if known != trial {
                return Err(MergeError::Differ(format!(
                    "trial {} has different settings in {} and {}",
                    trial.id,
                    first.folder.path().display(),
                    source.folder.path().display()
                )));
            }
        }
    }
    let mut seen = HashMap::new();
    for (trial, source) in all.values() {
        if let Some(first) = seen.insert(&trial.id, source) {
            return Err(MergeError::Differ(format!(
                "trial {} is at different places of the plan in {} and {}",
                trial.id,
                first.folder.path().display(),
                source.folder.path().display()
            )));
        }
    }
    Ok(all.values().map(|(trial, _)| (*trial).clone()).collect())
}

/// All trials of the plan. Refuses runs that have others.
fn check_planned(found: Vec<Trial>, campaign: &Campaign) -> Result<Vec<Trial>, MergeError> {
    let planned: HashMap<&str, &Trial> =
        campaign.plan.trials.iter().map(|trial| (trial.id.as_str(), trial)).collect();
    match found.iter().find(|trial| planned.get(trial.id.as_str()) != Some(trial)) {
        Some(other) => Err(MergeError::Differ(format!("trial {} is not that of the plan", other.id))),
        None => Ok(campaign.plan.trials.clone()),
    }
}

/// The records of the result, by the ids of their trials.
fn chosen<'a>(
    sources: &'a [Source],
    trials: &[Trial],
    merged: &mut Merged,
) -> Result<HashMap<String, Chosen<'a>>, MergeError> {
    // For each trial, the record of each machine.
    let mut all: HashMap<&str, BTreeMap<&str, Found<'a>>> = HashMap::new();
    for (place, source) in sources.iter().enumerate() {
        let machines: HashMap<&str, &str> = source
            .part
            .machines
            .iter()
            .flat_map(|on| on.trials.iter().map(|trial| (trial.as_str(), on.id.as_str())))
            .collect();
        for (id, entry) in source.folder.done() {
            let whole = source.part.machines.iter().find(|on| on.trials.is_empty()).map(|on| on.id.as_str());
            let Some(machine) = machines.get(id.as_str()).copied().or(whole) else { continue };
            let of_trial = all.entry(id).or_default();
            match of_trial.get(machine) {
                None => {
                    of_trial.insert(machine, Found { source: place, entry });
                }
                Some(known) if (&known.entry.crc32, known.entry.bytes) == (&entry.crc32, entry.bytes) => {
                    merged.duplicates += usize::from(known.source != place);
                }
                Some(known) => {
                    return Err(MergeError::Differ(format!(
                        "trial {id} has two different records of one machine, in {} and {}",
                        sources[known.source].folder.path().display(),
                        source.folder.path().display()
                    )));
                }
            }
        }
    }
    let mut chosen = HashMap::new();
    for block in blocks(trials) {
        let ids: Vec<&str> = block.trials.iter().map(|at| trials[*at].id.as_str()).collect();
        let mut counts: BTreeMap<&'a str, usize> = BTreeMap::new();
        for of_trial in ids.iter().filter_map(|id| all.get(id)) {
            of_trial.keys().for_each(|machine| *counts.entry(machine).or_default() += 1);
        }
        let complete: Vec<&str> =
            counts.iter().filter(|(_, count)| **count == ids.len()).map(|(machine, _)| *machine).collect();
        if let [first, second, ..] = complete[..] {
            let folder = |machine: &str| {
                let place = ids.first().and_then(|id| all.get(id)).and_then(|of| of.get(machine));
                place.map_or(String::new(), |found| sources[found.source].folder.path().display().to_string())
            };
            return Err(MergeError::Differ(format!(
                "the trials of the block of {} were measured by two machines, in {} and {}",
                ids.first().copied().unwrap_or_default(),
                folder(first),
                folder(second)
            )));
        }
        // The machine that finished the block, or the one with the most records of it.
        let most = counts.iter().max_by_key(|(machine, count)| (**count, std::cmp::Reverse(**machine)));
        let Some(machine) = complete.first().copied().or(most.map(|(machine, _)| *machine)) else { continue };
        for id in ids {
            let Some(of_trial) = all.get(id) else { continue };
            merged.superseded += of_trial.len() - usize::from(of_trial.contains_key(machine));
            if let Some(found) = of_trial.get(machine) {
                chosen.insert(id.to_string(), Chosen { found: *found, machine });
            }
        }
    }
    Ok(chosen)
}

/// The run of the result. It does not depend on how the records are spread over the sources.
fn run(
    sources: &[Source],
    trials: Vec<Trial>,
    chosen: &HashMap<String, Chosen<'_>>,
    merged: &mut Merged,
) -> Run {
    let mut machines: Vec<MeasuredOn> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for trial in &trials {
        let Some(Chosen { machine: id, .. }) = chosen.get(&trial.id) else { continue };
        let place = *places.entry(id).or_insert_with(|| {
            let all = || sources.iter().flat_map(|source| &source.part.machines).filter(|on| on.id == *id);
            let mut warnings = Vec::new();
            all().flat_map(|on| &on.warnings).for_each(|warning| add(&mut warnings, warning));
            machines.extend(all().next().map(|on| MeasuredOn { warnings, trials: Vec::new(), ..on.clone() }));
            machines.len() - 1
        });
        machines[place].trials.push(trial.id.clone());
    }
    let first = sources[0].folder.run();
    let of_campaign = sources.iter().map(|source| source.part.trials).max().unwrap_or_default();
    merged.machines = machines.len();
    merged.records = chosen.len();
    merged.missing = trials.len() - chosen.len();
    merged.unknown = (of_campaign as usize).saturating_sub(trials.len());
    let mut run = Run {
        id: first.campaign.as_ref().map_or_else(|| first.id.clone(), |part| part.campaign.clone()),
        started_at: sources
            .iter()
            .map(|source| &source.folder.run().started_at)
            .min()
            .cloned()
            .unwrap_or_default(),
        ..first.clone()
    };
    run.plan.trials = trials;
    run.plan.estimate = None;
    (run.absent, run.proofs, run.unverified, run.warnings) = Default::default();
    for source in sources {
        let own = source.folder.run();
        own.absent.iter().for_each(|absent| add(&mut run.absent, absent));
        own.proofs.iter().for_each(|proof| add(&mut run.proofs, proof));
        own.unverified.iter().for_each(|engine| add(&mut run.unverified, engine));
    }
    for warning in machines.iter().flat_map(|on| &on.warnings) {
        // Each machine has its own figures in the same warning.
        if !run.warnings.iter().any(|known| known.id == warning.id) {
            run.warnings.push(warning.clone());
        }
    }
    if let Some(on) = machines.first() {
        (run.machine, run.clock) = (on.machine.clone(), on.clock.clone());
    }
    run.campaign = Some(Part { campaign: run.id.clone(), trials: of_campaign, slice: None, machines });
    run
}

fn add<Item: PartialEq + Clone>(all: &mut Vec<Item>, item: &Item) {
    if !all.contains(item) {
        all.push(item.clone());
    }
}

/// Writes the result. `run.json` is written last, so that after a crash the folder does not look like a run.
fn write(
    out: &Path,
    run: &Run,
    sources: &[Source],
    chosen: &HashMap<String, Chosen<'_>>,
) -> Result<(), MergeError> {
    let mut target = store::Target::create(out, run)?;
    for trial in &run.plan.trials {
        let Some(Chosen { found: Found { source, entry }, .. }) = chosen.get(&trial.id) else { continue };
        let path = sources[*source].folder.record_path(&trial.id);
        let bytes = read_limited(&path, RECORD_LIMIT_BYTES).map_err(|error| store::reading(&path, error))?;
        if bytes.len() as u64 != entry.bytes || journal::checksum(&bytes) != entry.crc32 {
            let reason = format!("{} changed while it was merged; merge again", path.display());
            return Err(MergeError::Differ(reason));
        }
        target.add(entry, &bytes, path.parent())?;
    }
    disk::sync_file_system(out).map_err(|error| store::writing(out, error))?;
    Ok(target.finish()?)
}

impl Merged {
    /// What a reader must know about the result: a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.remarks.clone();
        let count = |count: usize, one: &str, many: &str| counted(count as u64, one, many);
        if self.duplicates > 0 {
            let records = count(self.duplicates, "record was", "records were");
            notes.push(format!("{records} given twice, byte by byte the same"));
        }
        if self.superseded > 0 {
            let records = count(
                self.superseded,
                "record of an unfinished block is",
                "records of unfinished blocks are",
            );
            notes.push(format!("{records} not part of the result: another machine has measured the block"));
        }
        if self.missing > 0 {
            notes.push(format!("{} no record", count(self.missing, "trial has", "trials have")));
        }
        if self.unknown > 0 {
            let trials = count(self.unknown, "trial of the plan is", "trials of the plan are");
            notes.push(format!("{trials} in none of these folders"));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
