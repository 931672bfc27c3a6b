//! The accounting passes of a run: before anything is timed, the sync calls of each engine at each of its levels are counted.

use super::error::CliError;
use kvdyno_core::engine::{Engine, Registry};
use kvdyno_core::results::audit::{Audit, Shape};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::{Durability, Run, Trial};
use kvdyno_core::runner::{level_number, level_of, target_level};
use kvdyno_core::workload::Phase;
use kvdyno_measure::signals;
use kvdyno_prove::syncs::{Pass, observe};
use std::path::Path;
use std::time::Duration;

/// Commits of each shape: enough to find an engine that syncs only now and then, and few enough for a slow disk.
const COMMITS: u64 = 20;

/// Makes a pass for each engine, options and level that the trials left to measure write with. `data` and `stall` are those of
/// the trials. An error: `data` cannot be used.
pub(super) fn passes(
    run: &Run,
    results: &RunFolder,
    registry: &Registry,
    data: &Path,
    stall: Duration,
) -> Result<Vec<Audit>, CliError> {
    let mut wanted: Vec<Pass> = Vec::new();
    let left = run.plan.trials.iter().filter(|trial| !trial.is_floor && !results.is_done(&trial.id));
    for trial in left {
        let Ok(engine) = registry.engine(&trial.engine) else { continue };
        // A server with options may be a user's: nothing is written to it that its run does not write.
        if engine.family() == "server" && !trial.options.is_empty() {
            continue;
        }
        for phase in &trial.workload.phases {
            if let Some((level, shape)) = level_of_phase(&engine, trial, phase).zip(Shape::of(phase)) {
                let pass = Pass {
                    engine: trial.engine.clone(),
                    plugin: engine.plugin_file().map(Path::to_path_buf),
                    level,
                    options: trial.options.clone(),
                    seed: trial.workload.seed,
                    commits: COMMITS,
                    shapes: vec![shape],
                    data: data.to_path_buf(),
                    run: run.id.clone(),
                };
                want(&mut wanted, pass);
            }
        }
    }
    let mut audits = Vec::new();
    for pass in wanted {
        if signals::interrupts() == 0 {
            audits.push(observe(&pass, stall).map_err(CliError::failed)?);
        }
    }
    Ok(audits)
}

/// Adds a pass, or its shapes to the pass of the same engine, options and level.
fn want(wanted: &mut Vec<Pass>, new: Pass) {
    let is_it = |pass: &&mut Pass| {
        (&pass.engine, &pass.options, pass.level) == (&new.engine, &new.options, new.level)
    };
    match wanted.iter_mut().find(is_it) {
        Some(pass) => {
            let missing: Vec<Shape> =
                new.shapes.into_iter().filter(|shape| !pass.shapes.contains(shape)).collect();
            pass.shapes.extend(missing);
        }
        None => wanted.push(new),
    }
}

/// The level that the driver will choose; `None` if it has none that suffices.
fn level_of_phase(engine: &Engine, trial: &Trial, phase: &Phase) -> Option<Durability> {
    let target = target_level(engine, &trial.workload, phase);
    if target == Durability::Default {
        return Some(target);
    }
    let mut sufficient = level_number(target)..=level_number(Durability::Power);
    sufficient.find(|level| engine.levels() & 1 << level != 0).map(level_of)
}
