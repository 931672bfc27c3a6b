//! The part of a trial that one of several load generators runs: its keys, its ops and its seeds.

use crate::generator::{Partition, mix64};
use crate::results::Trial;
use crate::workload::{OpKind, Phase, Until, Workload};
use std::sync::Arc;

/// The part of `total` that a load generator does.
fn share(total: u64, load_generator: u32, load_generators: u32) -> u64 {
    let (load_generator, load_generators) = (u64::from(load_generator), u64::from(load_generators.max(1)));
    total / load_generators + u64::from(load_generator < total % load_generators)
}

/// A seed of a load generator, at most 2^53 as all seeds.
fn seed_of(seed: u64, load_generator: u32) -> u64 {
    mix64(mix64(seed ^ 0x7261_6e6b).wrapping_add(u64::from(load_generator))) >> 11
}

/// The trial as a load generator runs it: its share of keys and ops, its own stream of ops. Its keys are a part of the keys of
/// the whole, so the seed of keys stays.
pub(super) fn of_load_generator(trial: &Trial, load_generator: u32) -> Trial {
    if trial.load_generators <= 1 {
        return trial.clone();
    }
    let mut workload: Workload = (*trial.workload).clone();
    workload.keys = share(workload.keys, load_generator, trial.load_generators);
    workload
        .phases
        .iter_mut()
        .for_each(|phase| phase.ops = share(phase.ops, load_generator, trial.load_generators));
    for phase in &mut workload.phases {
        phase.rate = phase.rate.take().map(|rate| rate.divided(trial.load_generators));
    }
    let seed = Some(seed_of(trial.ops_seed(), load_generator));
    Trial { workload: Arc::new(workload), seed, load_generator: Some(load_generator), ..trial.clone() }
}

/// The part of the keys of a load generator's trial.
pub(super) fn keys_part(trial: &Trial) -> Partition {
    match trial.load_generator {
        Some(load_generator) => {
            Partition { index: u64::from(load_generator), count: u64::from(trial.load_generators.max(1)) }
        }
        None => Partition::WHOLE,
    }
}

/// The seed of the values of a load generator's trial: no other load generator writes an equal value, so that a mix-up is
/// found.
pub(super) fn value_seed(trial: &Trial) -> u64 {
    trial
        .load_generator
        .map_or(trial.workload.seed, |load_generator| seed_of(!trial.workload.seed, load_generator))
}

/// Why several load generators cannot run the workload; none: they can.
pub fn refusal(workload: &Workload, load_generators: u32) -> Option<String> {
    let has =
        |kind: OpKind| workload.phases.iter().any(|phase| super::phase::kinds_of(phase).contains(&kind));
    let too_few = |count: u64| count < u64::from(load_generators);
    let has_few_ops = |phase: &Phase| phase.ops_limit().is_some_and(too_few);
    let reason = if has(OpKind::Scan) {
        "it scans, and between the keys of one load generator are those of the others"
    } else if workload.collections.are_lists() {
        "it has lists, which all load generators would change"
    } else if !workload.indexes.is_empty() {
        "it has secondary indexes, whose rows are read by scans"
    } else if workload.key.alternate > 0 {
        "its keys alternate between serial and random ones (key.alternate), which have no parts"
    } else if workload.phases.iter().any(|phase| phase.transaction.is_some()) {
        "a phase is one transaction"
    } else if workload.phases.iter().any(|phase| phase.until == Until::Steady) {
        "a phase ends when it is steady, which each of them would decide for itself"
    } else if !workload.faults.is_empty() {
        "it has faults of members, which are for servers that a driver starts"
    } else if (workload.keys > 0 && too_few(workload.keys)) || workload.phases.iter().any(has_few_ops) {
        return Some(format!("it has fewer keys or ops than the {load_generators} load generators"));
    } else {
        return None;
    };
    Some(reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;
    use proptest::prelude::*;

    fn trial(load_generators: u32, name: &str) -> Trial {
        Trial {
            id: "0000".into(),
            order: 0,
            repetition: 1,
            engine: "redis".into(),
            options: Vec::new(),
            workload: Arc::new(builtin(name).unwrap()),
            seed: None,
            placement: Default::default(),
            reused: false,
            paranoid: false,
            counts_cycles: false,
            counts_calls: false,
            is_floor: false,
            load_generators,
            nodes_option: None,
            load_generator: None,
            lengths: Default::default(),
        }
    }

    #[test]
    fn load_generators_divide_keys_and_ops_and_have_their_own_seeds() {
        let whole = trial(3, "ycsb-b");
        let parts: Vec<Trial> =
            (0..3).map(|load_generator| of_load_generator(&whole, load_generator)).collect();
        let sum = |of: &dyn Fn(&Trial) -> u64| parts.iter().map(of).sum::<u64>();
        assert_eq!(sum(&|trial| trial.workload.keys), whole.workload.keys);
        for place in 0..whole.workload.phases.len() {
            assert_eq!(sum(&|trial| trial.workload.phases[place].ops), whole.workload.phases[place].ops);
        }
        let distinct = |of: &dyn Fn(&Trial) -> u64| {
            let mut all: Vec<u64> = parts.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.len() == 3
        };
        assert!(distinct(&|trial| trial.ops_seed()) && distinct(&value_seed));
        assert!(parts.iter().all(|part| part.workload.seed == whole.workload.seed), "keys are of the whole");
        assert_eq!(of_load_generator(&trial(1, "ycsb-b"), 0), trial(1, "ycsb-b"));
    }

    #[test]
    fn workloads_without_parts_are_refused() {
        assert_eq!(refusal(&builtin("ycsb-b").unwrap(), 4), None);
        for (name, word) in [("ycsb-e", "scans"), ("kvdk-list", "lists"), ("indexed-insert", "scans")] {
            let reason = refusal(&builtin(name).unwrap(), 2).unwrap_or_else(|| panic!("{name}"));
            assert!(reason.contains(word), "{name}: {reason}");
        }
        let few = Workload { keys: 3, ..builtin("ycsb-b").unwrap() };
        assert!(refusal(&few, 4).is_some() && refusal(&few, 3).is_none());
    }

    proptest! {
        #[test]
        fn shares_add_up_and_differ_by_at_most_one(total: u64, load_generators in 1_u32..1000) {
            let shares: Vec<u64> = (0..load_generators).map(|load_generator| share(total, load_generator, load_generators)).collect();
            prop_assert_eq!(shares.iter().map(|share| u128::from(*share)).sum::<u128>(), u128::from(total));
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
