//! The flags for databases that outlive their trials: kept in a folder, and started on by later runs.

use super::error::CliError;
use crate::engine::{Engine, Registry, abi::KV_IN_MEMORY};
use crate::results::{Run, Trial};
use crate::runner::kept;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Databases that are kept or started on.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Kept databases")]
pub struct KeepArgs {
    /// Keep the database of each cell's first sound trial as DIR/ENGINE-WORKLOAD.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Start each trial on a copy of its engine's database in DIR, and leave the fills out; without --engines: on all
    /// that are there.
    #[arg(long, value_name = "DIR")]
    reuse: Option<PathBuf>,
}

fn is_in_memory(engine: &Engine) -> bool {
    engine.capabilities() & KV_IN_MEMORY != 0
}

impl KeepArgs {
    /// The engines of a run for which none is named: those with a kept database; none: it may be any.
    pub fn engines(&self) -> Result<Vec<String>, CliError> {
        let Some(folder) = &self.reuse else { return Ok(Vec::new()) };
        let all = kept::all(folder).map_err(CliError::usage)?;
        let names: BTreeSet<String> = all.into_iter().map(|kept| kept.state.engine).collect();
        if names.is_empty() {
            return Err(CliError::usage(format!("no kept database is in {}", folder.display()))
                .hint(format!("`kvdyno run WORKLOAD --keep {}` makes some", folder.display())));
        }
        Ok(names.into_iter().collect())
    }

    /// Whether an engine that was not named takes part: an engine in memory leaves nothing to keep.
    pub fn takes(&self, engine: &Engine) -> bool {
        self.keep.is_none() || !is_in_memory(engine)
    }

    /// Whether databases are kept or started on, so that all trials have the same rows.
    pub fn outlives_trials(&self) -> bool {
        self.keep.is_some() || self.reuse.is_some()
    }

    /// Writes into the trials of a plan that they start on kept databases.
    pub fn hold(&self, trials: &mut [Trial]) {
        trials.iter_mut().for_each(|trial| trial.reused = self.reuse.is_some());
    }

    /// Refuses what cannot be kept or started on, before anything is measured; else gives the kept database of each
    /// trial, by its id.
    pub fn check(&self, registry: &Registry, run: &Run) -> Result<BTreeMap<String, PathBuf>, CliError> {
        let mut start = BTreeMap::new();
        let all = match &self.reuse {
            Some(folder) => kept::all(folder).map_err(CliError::usage)?,
            None => Vec::new(),
        };
        for trial in &run.trials {
            if trial.reused != self.reuse.is_some() {
                let text = if trial.reused {
                    "this run starts on kept databases: say where they are with --reuse DIR"
                } else {
                    "this run fills its databases itself, and --reuse cannot change that: start a new one"
                };
                return Err(CliError::usage(text));
            }
            let Ok(engine) = registry.engine(&trial.engine) else { continue };
            if engine.stores_nothing() {
                continue;
            }
            if let Some(folder) = &self.keep {
                check_keep(folder, trial, &engine, &run.id)?;
            }
            if trial.reused {
                let kept = kept::choose(&all, trial).map_err(CliError::usage)?;
                start.insert(trial.id.clone(), kept.folder.clone());
            }
        }
        // Last, for it makes the folder.
        if let Some(folder) = &self.keep {
            crate::runner::check_place(folder).map_err(|text| {
                CliError::usage(format!("--keep: {text}")).hint("name a folder that can be written to")
            })?;
        }
        Ok(start)
    }

    /// Says what was kept, and of which cells nothing was.
    pub fn tell(&self, run: &Run) {
        let Some(folder) = &self.keep else { return };
        let cells: BTreeSet<String> =
            run.trials.iter().filter(|trial| !trial.is_floor).map(kept::name).collect();
        let (kept, lost): (Vec<&String>, Vec<&String>) =
            cells.iter().partition(|name| folder.join(name).is_dir());
        if !kept.is_empty() {
            let names: Vec<&str> = kept.iter().map(|name| name.as_str()).collect();
            eprintln!("kept in {}: {}", folder.display(), names.join(", "));
        }
        lost.iter()
            .for_each(|name| eprintln!("not kept: {name}, for no trial of it was sound, or none left files"));
    }
}

fn check_keep(folder: &Path, trial: &Trial, engine: &Engine, run: &str) -> Result<(), CliError> {
    if is_in_memory(engine) {
        return Err(CliError::usage(format!("{} is in memory: it leaves nothing to keep", trial.engine))
            .hint("name other engines with --engines"));
    }
    if let Some(reason) = kept::is_unfit(&trial.workload) {
        return Err(CliError::usage(format!("--keep: {reason}")));
    }
    let place = folder.join(kept::name(trial));
    if place.symlink_metadata().is_ok() && !crate::runner::is_of_run(&place, run) {
        return Err(CliError::usage(format!("--keep: {} is there already", place.display()))
            .hint("choose another folder, or remove it by hand"));
    }
    Ok(())
}
