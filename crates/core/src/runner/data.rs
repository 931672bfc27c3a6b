//! Creates the keys and values of a workload from its specs, and checks that this is possible.

use super::draw::MOST_UNIT_OPS;
use super::phase;
use super::schedule::schedule;
use crate::generator::{
    KeyRules, Keys, MOST_KEY_FILE_BYTES, Partition, Sampler, SizeSpec, SpecError, ValueRules, Values,
};
use crate::workload::{Phase, Workload};
use kvdyno_measure::Cannot;
use kvdyno_measure::read_limited;
use std::path::Path;
use std::sync::Arc;

/// Why the keys, values or ops of a workload cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The key file cannot be read.
    #[error("{0}")]
    File(#[from] Cannot),
    /// The keys or values cannot be created.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// A key that is twice in the key file.
    #[error("the key file contains the same key twice, at positions {first} and {second}")]
    Repeated {
        /// Where it is first.
        first: u64,
        /// Where it is again.
        second: u64,
    },
    /// The distribution of a phase cannot be created.
    #[error("phase {phase}: {error}")]
    Phase {
        /// The phase.
        phase: String,
        /// Why.
        error: SpecError,
    },
    /// A phase has too large groups: the phase.
    #[error("phase {0}: a group of more than {MOST_UNIT_OPS} ops")]
    Group(String),
}

fn key_rules(workload: &Workload, part: Partition) -> Result<KeyRules, Cannot> {
    let spec = &workload.key;
    let file = match &spec.file {
        Some(path) => {
            let path = Path::new(path);
            let bytes =
                read_limited(path, MOST_KEY_FILE_BYTES).map_err(Cannot::on("read the key file", path))?;
            Some(Arc::new(bytes) as crate::generator::KeyFile)
        }
        None => None,
    };
    Ok(KeyRules {
        range: workload.keys,
        size: spec.size.clone(),
        encoding: spec.encoding,
        // Keys of a file keep the order of the file.
        scattered: spec.scattered && spec.file.is_none(),
        spacing: spec.spacing,
        alternate: spec.alternate,
        part,
        prefix_groups: spec.prefix_groups,
        prefix_size: if spec.prefix_groups > 0 { spec.prefix_size } else { 0 },
        file,
    })
}

/// The end of the items that a workload may write, by puts or inserts, in all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The end for phases that end by a count: this many keys are required.
    pub counted: u64,
    /// The end including phases that end by time, for an engine faster than any.
    pub most: u64,
}

/// The growth by the inserts of a workload.
pub(super) fn growth(workload: &Workload) -> Growth {
    growth_after(workload, 0, 0)
}

/// The same without the first `skipped` phases, on a database whose inserts end at `from`.
pub(super) fn growth_after(workload: &Workload, skipped: usize, from: u64) -> Growth {
    let mut growth = Growth { counted: from, most: from };
    for turn in schedule(workload).filter(|turn| turn.place >= skipped) {
        let phase = &workload.phases[turn.place];
        let (counted, most) = inserts(workload, phase);
        growth.counted = growth.counted.saturating_add(counted);
        growth.most = growth.most.saturating_add(most);
        if (phase.mix.put > 0.0 || phase.writers > 0) && phase.existing.is_none() {
            // Inserts continue after the keys that puts may have written.
            growth = growth.at_least(workload.keys);
        }
    }
    growth.at_least(workload.keys)
}

impl Growth {
    fn at_least(self, keys: u64) -> Growth {
        Growth { counted: self.counted.max(keys), most: self.most.max(keys) }
    }
}

/// The inserts of one run of a phase: those by count, and the maximum.
fn inserts(workload: &Workload, phase: &Phase) -> (u64, u64) {
    /// An upper limit for inserts per thread and second.
    const INSERTS_PER_SECOND: f64 = 4e6;
    let slots = phase::slots(phase);
    let inserters = slots.iter().filter(|slot| slot.inserter.is_some()).count() as u64;
    if inserters == 0 {
        return (0, 0);
    }
    let in_time = |seconds: f64| (seconds * INSERTS_PER_SECOND * inserters as f64) as u64;
    let warm_up = in_time(phase.warmup_seconds);
    let by_count = if phase.each_key { Some(workload.keys) } else { phase.ops_limit() };
    let Some(by_count) = by_count else {
        return (0, warm_up.saturating_add(in_time(phase.seconds)));
    };
    // Threads differ by at most one insert, and the next phase continues after the thread with the most inserts.
    let by_count = by_count.saturating_add(inserters - 1);
    if let Some(seconds) = phase.seconds_limit() {
        return (0, warm_up.saturating_add(by_count.min(in_time(seconds))));
    }
    (by_count, warm_up.saturating_add(by_count))
}

/// Whether any phase has merges.
pub(super) fn has_merges(workload: &Workload) -> bool {
    workload.phases.iter().any(|phase| phase.mix.merge > 0.0)
}

/// Creates the keys; also returns the item at which inserts end: the maximum growth, or as many keys as the key format
/// allows, if that is enough for inserts by count. Counters follow after it.
pub(super) fn keys(workload: &Workload, growth: Growth, counters: u64) -> Result<(Keys, u64), DataError> {
    keys_of(workload, Partition::WHOLE, growth, counters)
}

/// The same for a part of the keys.
pub(super) fn keys_of(
    workload: &Workload,
    part: Partition,
    growth: Growth,
    counters: u64,
) -> Result<(Keys, u64), DataError> {
    let rules = key_rules(workload, part)?;
    let make = |end: u64| {
        let range = end.saturating_add(counters);
        Keys::new(&KeyRules { range, ..rules.clone() }, workload.seed)
    };
    if let Ok(keys) = make(growth.most) {
        return Ok((keys, growth.most));
    }
    let (mut fits, mut fails) = (growth.counted, growth.most);
    let mut best = (make(fits)?, fits);
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        match make(middle) {
            Ok(keys) => {
                best = (keys, middle);
                fits = middle;
            }
            Err(_) => fails = middle,
        }
    }
    Ok(best)
}

/// Creates the values of each phase; they share one table of noise.
pub(super) fn values(workload: &Workload) -> Result<Vec<Values>, DataError> {
    values_of(workload, workload.seed)
}

/// The same with another seed.
pub(super) fn values_of(workload: &Workload, seed: u64) -> Result<Vec<Values>, DataError> {
    let share = workload.value.compressed_share;
    let rules = ValueRules { size: workload.value.size.clone(), compressed_share: share };
    let base = Values::new(&rules, seed)?;
    let size_of = |phase: &Phase| phase.value_size.clone().unwrap_or_else(|| workload.value.size.clone());
    let mut each: Vec<(SizeSpec, Values)> = Vec::new();
    for size in workload.phases.iter().map(size_of) {
        if each.iter().all(|(other, _)| *other != size) {
            let values = base.resized(&size)?;
            each.push((size, values));
        }
    }
    // A phase may read what another one wrote.
    let of = |phase: &Phase| {
        let size = size_of(phase);
        let (own, others): (Vec<_>, Vec<_>) = each.iter().partition(|(other, _)| *other == size);
        own[0].1.clone().accepting(others.into_iter().map(|(_, values)| values.clone()))
    };
    Ok(workload.phases.iter().map(of).collect())
}

/// Refuses a workload whose keys, values or distributions cannot be created.
pub(super) fn check_workload(workload: &Workload) -> Result<(), DataError> {
    let counters = if has_merges(workload) { workload.keys } else { 0 };
    let (keys, _) = keys(workload, growth(workload), counters)?;
    if let Some((first, second)) = keys.repeated_in_file() {
        return Err(DataError::Repeated { first, second });
    }
    values(workload)?;
    for phase in &workload.phases {
        let failed = |error: SpecError| DataError::Phase { phase: phase.name.clone(), error };
        let part = Partition { index: 0, count: 1 };
        Sampler::new(&phase.distribution, workload.keys.max(1), workload.seed, part, phase.clustered)
            .map_err(failed)?;
        if phase.miss > 0.0 {
            keys.misses().map_err(failed)?;
        }
        {
            let row_ops = 1 + workload.indexes.len();
            let largest = phase::kinds_of(phase).into_iter().map(|kind| kind.ops(phase, row_ops)).max();
            if largest > Some(MOST_UNIT_OPS) {
                return Err(DataError::Group(phase.name.clone()));
            }
        }
    }
    Ok(())
}
