//! The keys and values of a workload, made from its specs; and whether they can be made at all.

use super::draw::MOST_UNIT_OPS;
use super::phase;
use crate::generator::{KeyRules, Keys, Part, Sampler, ValueRules, Values};
use crate::workload::{Phase, Workload};
use std::sync::Arc;

fn key_rules(workload: &Workload) -> Result<KeyRules, String> {
    let spec = &workload.key;
    let file = match &spec.file {
        Some(path) => {
            let bytes =
                std::fs::read(path).map_err(|error| format!("cannot read the key file {path}: {error}"))?;
            Some(Arc::new(bytes) as crate::generator::KeyFile)
        }
        None => None,
    };
    Ok(KeyRules {
        range: workload.keys,
        size: spec.size.clone(),
        encoding: spec.encoding,
        // The order of a file's keys is the file's.
        scattered: spec.scattered && spec.file.is_none(),
        spacing: spec.spacing,
        prefix_groups: spec.prefix_groups,
        prefix_size: if spec.prefix_groups > 0 { spec.prefix_size } else { 0 },
        file,
    })
}

/// Items that a workload's inserts may need beyond its keys.
pub fn growth(workload: &Workload) -> u64 {
    /// No engine here inserts faster, per thread and second.
    const INSERTS_PER_SECOND: f64 = 4e6;
    let of = |phase: &Phase| {
        if phase::slots(phase).iter().all(|slot| slot.inserter.is_none()) {
            return 0.0;
        }
        if phase.each_key {
            return workload.keys as f64;
        }
        let by_time = (phase.seconds + phase.warmup_seconds)
            * INSERTS_PER_SECOND
            * f64::from(phase.threads + phase.writers).max(1.0);
        match (phase.ops, phase.seconds > 0.0) {
            (0, _) => by_time,
            (ops, true) => by_time.min(ops as f64),
            (ops, false) => ops as f64,
        }
    };
    workload.phases.iter().map(of).sum::<f64>() as u64
}

/// Whether any phase counts with merges.
pub fn has_merges(workload: &Workload) -> bool {
    workload.phases.iter().any(|phase| phase.mix.merge > 0.0)
}

/// The keys, and the item where inserts end: `growth` items behind the workload's keys, or as many as the key format
/// holds. Counters lie behind that.
pub fn keys(workload: &Workload, growth: u64, counters: u64) -> Result<(Keys, u64), String> {
    let rules = key_rules(workload)?;
    let make = |growth: u64| {
        let range = workload.keys + growth + counters;
        Keys::new(&KeyRules { range, ..rules.clone() }, workload.seed)
    };
    if let Ok(keys) = make(growth) {
        return Ok((keys, workload.keys + growth));
    }
    let mut best = (make(0).map_err(|error| error.to_string())?, workload.keys);
    let (mut fits, mut fails) = (0, growth);
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        match make(middle) {
            Ok(keys) => {
                best = (keys, workload.keys + middle);
                fits = middle;
            }
            Err(_) => fails = middle,
        }
    }
    Ok(best)
}

/// The values of each phase; they share one table of noise.
pub fn values(workload: &Workload) -> Result<Vec<Values>, String> {
    let share = workload.value.compressed_share;
    let rules = ValueRules { size: workload.value.size.clone(), compressed_share: share };
    let base = Values::new(&rules, workload.seed).map_err(|error| error.to_string())?;
    let of = |phase: &Phase| match &phase.value_size {
        Some(size) => base.resized(size).map_err(|error| error.to_string()),
        None => Ok(base.clone()),
    };
    workload.phases.iter().map(of).collect()
}

/// Refuses a workload whose keys, values or distributions cannot be made.
pub fn check_workload(workload: &Workload) -> Result<(), String> {
    let counters = if has_merges(workload) { workload.keys } else { 0 };
    let (keys, _) = keys(workload, growth(workload), counters)?;
    if let Some((first, second)) = keys.repeated_in_file() {
        return Err(format!("the key file has the same key twice, at places {first} and {second}"));
    }
    values(workload)?;
    for phase in &workload.phases {
        let failed = |error: crate::generator::SpecError| format!("phase {}: {error}", phase.name);
        let part = Part { index: 0, count: 1 };
        Sampler::new(&phase.distribution, workload.keys, workload.seed, part, phase.clustered)
            .map_err(failed)?;
        if phase.miss > 0.0 {
            keys.misses().map_err(failed)?;
        }
        {
            let row_ops = 1 + workload.indexes.len();
            let largest = phase::kinds_of(phase).into_iter().map(|kind| kind.ops(phase, row_ops)).max();
            if largest > Some(MOST_UNIT_OPS) {
                return Err(format!("phase {}: a group of more than {MOST_UNIT_OPS} ops", phase.name));
            }
        }
    }
    Ok(())
}
