//! Flags that keep databases after their trials and reuse them in later runs.

use super::error::CliError;
use crate::engine::{Engine, Registry, abi::KV_IN_MEMORY};
use crate::results::{Plan, Run, Trial};
use crate::runner::kept;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Flags for kept databases.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Kept databases")]
pub struct KeepArgs {
    /// Keep the database of the first successful trial of each cell in DIR/ENGINE-WORKLOAD.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Start each trial on a copy of its engine's database in DIR and skip the fill phases. Without --engines, run all
    /// engines that have a database in DIR.
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
}

fn is_in_memory(engine: &Engine) -> bool {
    engine.capabilities() & KV_IN_MEMORY != 0
}

impl KeepArgs {
    /// The engines with a kept database, for a run that names no engines. Empty without --reuse.
    pub fn engines(&self) -> Result<Vec<String>, CliError> {
        let Some(folder) = &self.reuse else { return Ok(Vec::new()) };
        let all = kept::all(folder).map_err(CliError::usage)?;
        let names: BTreeSet<String> = all.into_iter().map(|kept| kept.state.engine).collect();
        if names.is_empty() {
            return Err(CliError::usage(format!("no kept databases in {}", folder.display()))
                .hint(format!("create some with `kvdyno run WORKLOAD --keep {}`", folder.display())));
        }
        Ok(names.into_iter().collect())
    }

    /// Whether a run that names no engines includes this one. In-memory engines have nothing to keep.
    pub fn includes(&self, engine: &Engine) -> bool {
        self.keep.is_none() || !is_in_memory(engine)
    }

    /// Whether databases are kept or reused. Then all trials have the same rows.
    pub fn outlives_trials(&self) -> bool {
        self.keep.is_some() || self.reuse.is_some()
    }

    /// Refuses databases that cannot be kept or reused, before anything is measured. Returns the kept database of each
    /// trial, by the ID of the trial.
    pub fn check(&self, registry: &Registry, run: &Run) -> Result<BTreeMap<String, PathBuf>, CliError> {
        let mut start = BTreeMap::new();
        let all = match &self.reuse {
            Some(folder) => kept::all(folder).map_err(CliError::usage)?,
            None => Vec::new(),
        };
        for trial in &run.plan.trials {
            if trial.reused != self.reuse.is_some() {
                let text = if trial.reused {
                    "this run starts on kept databases: name their folder with --reuse DIR"
                } else {
                    "this run fills its own databases and cannot be resumed with --reuse: start a new run"
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
        Ok(start)
    }

    /// Prints which databases were kept, and for which cells none was.
    pub fn report(&self, plan: &Plan) {
        let Some(folder) = &self.keep else { return };
        let cells: BTreeSet<String> =
            plan.trials.iter().filter(|trial| !trial.is_floor).map(kept::name).collect();
        let (kept, missing): (Vec<&String>, Vec<&String>) =
            cells.iter().partition(|name| folder.join(name).is_dir());
        if !kept.is_empty() {
            let names: Vec<&str> = kept.iter().map(|name| name.as_str()).collect();
            eprintln!("kept in {}: {}", folder.display(), names.join(", "));
        }
        missing
            .iter()
            .for_each(|name| eprintln!("not kept: {name}: no trial was successful, or none left files"));
    }
}

fn check_keep(folder: &Path, trial: &Trial, engine: &Engine, run: &str) -> Result<(), CliError> {
    if is_in_memory(engine) {
        return Err(CliError::usage(format!(
            "{} is an in-memory engine: it has no database to keep",
            trial.engine
        ))
        .hint("choose other engines with --engines"));
    }
    if let Some(reason) = kept::is_unfit(&trial.workload) {
        return Err(CliError::usage(format!("--keep: {reason}")));
    }
    let place = folder.join(kept::name(trial));
    if place.symlink_metadata().is_ok() && !crate::runner::is_of_run(&place, run) {
        return Err(CliError::usage(format!("--keep: {} already exists", place.display()))
            .hint("choose another folder, or remove it"));
    }
    Ok(())
}
