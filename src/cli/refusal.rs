//! Engines named on the command line that could run none of the measured phases.

use super::args;
use crate::engine::{Engine, Registry, level_name};
use crate::results::{Cause, Outcome, Record, Run};
use crate::runner::level_number;
use crate::workload::{Durability, Workload};

/// A message for each engine that the command line names and that was refused in every phase except fills: the reason and
/// a hint.
pub fn refusals(run: &Run, records: &[Record], registry: &Registry) -> Vec<String> {
    let mut names: Vec<String> = super::named_engines(&run.command);
    names.iter_mut().for_each(|name| *name = args::named(name).0.to_string());
    names.sort();
    names.dedup();
    let of = |name: &String| {
        let own: Vec<&Record> = records.iter().filter(|record| record.trial.engine == *name).collect();
        let reasons: Option<Vec<String>> = own.iter().map(|record| reason(record)).collect();
        let reason = reasons?.into_iter().next()?;
        let hint = hint(name, own.iter().map(|record| &*record.trial.workload), registry);
        Some(format!("{name} was refused in every phase: {reason}\nhint: {hint}"))
    };
    names.iter().filter_map(of).collect()
}

/// Why a trial measured nothing. `None` if it measured something or failed for another reason.
fn reason(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Failed { cause, text } if *cause == Cause::Refused => Some(text.clone()),
        Outcome::Ok => {
            let measured = record.phases.iter().filter(|phase| !phase.phase.is_fill());
            let reasons: Option<Vec<&String>> = measured.map(|phase| phase.not_run.as_ref()).collect();
            reasons?.first().map(|reason| reason.to_string())
        }
        _ => None,
    }
}

fn hint<'w>(name: &str, mut workloads: impl Iterator<Item = &'w Workload>, registry: &Registry) -> String {
    let by_level = |engine: Engine| workloads.find_map(|workload| level_hint(&engine, workload));
    registry.engine(name).ok().and_then(by_level).unwrap_or_else(|| {
        format!("`kvdyno engines {name}` shows its capabilities; choose other engines or another workload")
    })
}

/// Which level to request if an engine cannot reach the requested one.
fn level_hint(engine: &Engine, workload: &Workload) -> Option<String> {
    let strongest =
        (0..=crate::engine::abi::KV_POWER).rev().find(|level| engine.levels() & (1 << level) != 0)?;
    let requested = |phase: &crate::workload::Phase| phase.durability.unwrap_or(workload.durability);
    let is_too_strong = |level: Durability| level != Durability::Default && level_number(level) > strongest;
    let phase = workload.phases.iter().find(|phase| is_too_strong(requested(phase)))?;
    let level = level_name(strongest);
    Some(match phase.durability {
        Some(_) => format!("try --set {}.durability={level}, the strongest level of this engine", phase.name),
        None => format!("try --durability {level}, the strongest level of this engine"),
    })
}
