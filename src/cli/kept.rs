//! Flags that keep databases after their trials and reuse them in later runs.

use super::error::CliError;
use kvdyno_core::engine::abi::{KV_IN_MEMORY, KV_ORDERED};
use kvdyno_core::engine::{Engine, Registry, file_of};
use kvdyno_core::results::{Plan, Run, Trial};
use kvdyno_core::runner::{foreign, kept};
use kvdyno_report::CommandLine;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Flags for kept databases.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Kept databases")]
pub(super) struct KeepArgs {
    /// Keep the database of the first successful trial of each cell in DIR/ENGINE-WORKLOAD.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Start each trial on a copy of its engine's database in DIR and skip the fill phases. Without --engines, run all
    /// engines that have a database in DIR.
    #[arg(long, value_name = "DIR")]
    pub reuse: Option<PathBuf>,
    /// The database given with --reuse was created by another program. Only reads run, on a copy, with keys found in it; its values
    /// are not checked, and it is ranked separately. Requires --engines.
    #[arg(long, requires = "reuse", conflicts_with_all = ["keep", "plan", "race"])]
    pub foreign: bool,
}

fn is_in_memory(engine: &Engine) -> bool {
    engine.capabilities() & KV_IN_MEMORY != 0
}

impl KeepArgs {
    /// The engines with a kept database, for a run that names no engines. Empty without --reuse.
    pub(super) fn engines(&self) -> Result<Vec<String>, CliError> {
        let Some(folder) = &self.reuse else { return Ok(Vec::new()) };
        if self.foreign {
            return Err(CliError::usage(
                "--foreign needs an engine: kvdyno does not guess whose database it is",
            )
            .hint("name the engine whose database is in the folder: --engines rocksdb"));
        }
        let all = kept::all(folder).map_err(CliError::usage)?;
        let names: BTreeSet<String> = all.into_iter().map(|kept| kept.state.engine).collect();
        if names.is_empty() {
            return Err(CliError::usage(format!("no kept databases in {}", folder.display())).hint(format!(
                "create some with `{}`; for a database that another program made, add --foreign",
                CommandLine::of("run WORKLOAD --keep").with_path(folder)
            )));
        }
        Ok(names.into_iter().collect())
    }

    /// Whether a run that names no engines includes this one. In-memory engines have nothing to keep.
    pub(super) fn includes(&self, engine: &Engine) -> bool {
        self.keep.is_none() || !is_in_memory(engine)
    }

    /// Whether databases are kept or reused. Then all trials have the same rows.
    pub(super) fn outlives_trials(&self) -> bool {
        self.keep.is_some() || self.reuse.is_some()
    }

    /// Refuses databases that cannot be kept or reused, before anything is measured. Returns the kept database of each
    /// trial, by the ID of the trial.
    pub(super) fn check(
        &self,
        registry: &Registry,
        run: &Run,
    ) -> Result<BTreeMap<String, PathBuf>, CliError> {
        let mut start = BTreeMap::new();
        if let Some(place) = self.reuse.as_ref().filter(|_| self.foreign) {
            check_foreign(place)?;
        }
        let all = match &self.reuse {
            Some(_) if self.foreign => Vec::new(),
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
            if trial.is_foreign() != self.foreign {
                let text = match self.foreign {
                    true => "this run starts on databases that kvdyno has made: omit --foreign",
                    false => "this run reads the database of another program: repeat its --foreign",
                };
                return Err(CliError::usage(text));
            }
            let Ok(engine) = registry.engine(&trial.engine) else { continue };
            if let Some(place) = self.reuse.as_ref().filter(|_| self.foreign) {
                fits_foreign(place, trial, &engine)?;
                start.insert(trial.id.clone(), place.clone());
                continue;
            }
            if engine.stores_nothing() {
                continue;
            }
            if let Some(folder) = &self.keep {
                check_keep(folder, trial, &engine, &run.id)?;
            }
            if trial.reused {
                let kept = kept::choose(&all, trial).map_err(|text| match all.is_empty() {
                    true => {
                        CliError::usage(text).hint("for a database that another program made, add --foreign")
                    }
                    false => CliError::usage(text),
                })?;
                start.insert(trial.id.clone(), kept.folder.clone());
            }
        }
        Ok(start)
    }

    /// Prints which databases were kept, and for which cells none was.
    pub(super) fn report(&self, plan: &Plan) {
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

/// Refuses a place where there is no database of another program.
fn check_foreign(place: &Path) -> Result<(), CliError> {
    let shown = place.display();
    let is_own = kept::all(place).is_ok_and(|all| !all.is_empty());
    if is_own {
        return Err(CliError::usage(format!("--foreign: the databases in {shown} were kept by kvdyno"))
            .hint("omit --foreign: their values are checked"));
    }
    let found = std::fs::metadata(place).and_then(|found| {
        let is_empty = found.is_dir() && std::fs::read_dir(place)?.next().is_none();
        Ok((found.is_dir() || found.is_file(), is_empty))
    });
    let text = match found {
        Ok((true, false)) => return Ok(()),
        Ok((true, true)) => format!("--reuse: {shown} is empty"),
        // A copy of a device would be all of it, and one of a pipe would have no end.
        Ok((false, _)) => format!("--reuse: {shown} is neither a folder nor a file"),
        Err(error) => format!("--reuse: cannot read {shown}: {error}"),
    };
    Err(CliError::usage(text))
}

/// Refuses an engine that cannot open a copy of the place, and a workload that does more than read it.
fn fits_foreign(place: &Path, trial: &Trial, engine: &Engine) -> Result<(), CliError> {
    let name = &trial.engine;
    if engine.stores_nothing() || is_in_memory(engine) || engine.family() == "server" {
        return Err(CliError::usage(format!("--foreign: {name} does not keep its database in a folder"))
            .hint("choose other engines with --engines"));
    }
    if place.is_file() && file_of(name).is_none() {
        return Err(CliError::usage(format!("--foreign: {name} does not keep its database in one file"))
            .hint("name the folder of the database"));
    }
    if let Some(reason) = foreign::is_unfit(&trial.workload) {
        return Err(CliError::usage(format!("--foreign: {reason}")).hint(
            "workloads that only read after their fills are read-random, read-seq, scan-short and ycsb-c",
        ));
    }
    if engine.capabilities() & KV_ORDERED == 0 && trial.workload.key.file.is_none() {
        return Err(CliError::usage(format!("--foreign: {name} cannot list the keys of its database"))
            .hint("name a file of keys: --set key.file=FILE --key-size BYTES --keys COUNT"));
    }
    Ok(())
}

/// Refuses to write below the database of another program.
pub(super) fn check_outside(kept: &KeepArgs, flag: &str, folder: &Path) -> Result<(), CliError> {
    let Some(place) = kept.reuse.as_ref().filter(|_| kept.foreign) else { return Ok(()) };
    // The folder may not exist yet, but one above it does.
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let real = |path: &Path| path.ancestors().find_map(|above| above.canonicalize().ok());
    let is_inside =
        real(&whole).zip(place.canonicalize().ok()).is_some_and(|(at, place)| at.starts_with(place));
    if !is_inside {
        return Ok(());
    }
    let text = format!(
        "{flag}: {} is inside the database of another program, {}",
        folder.display(),
        place.display()
    );
    Err(CliError::usage(text)
        .hint(format!("name another folder with {flag} DIR: nothing is written into the database")))
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
    if place.symlink_metadata().is_ok() && !kvdyno_core::runner::is_of_run(&place, run) {
        return Err(CliError::usage(format!("--keep: {} already exists", place.display()))
            .hint("choose another folder, or remove it"));
    }
    Ok(())
}
