//! The part of a trial that one of several load generators (ranks) runs: its keys, its ops and its seeds.

use crate::generator::{Partition, mix64};
use crate::results::Trial;
use crate::workload::{OpKind, Phase, Workload};
use std::sync::Arc;

/// The part of `total` that a rank does.
fn share(total: u64, rank: u32, ranks: u32) -> u64 {
    let (rank, ranks) = (u64::from(rank), u64::from(ranks.max(1)));
    total / ranks + u64::from(rank < total % ranks)
}

/// A seed of a rank, at most 2^53 as all seeds.
fn seed_of(seed: u64, rank: u32) -> u64 {
    mix64(mix64(seed ^ 0x7261_6e6b).wrapping_add(u64::from(rank))) >> 11
}

/// The trial as a rank runs it: its share of keys and ops, its own stream of ops. Its keys are a part of the keys of the
/// whole, so the seed of keys stays.
pub fn of_rank(trial: &Trial, rank: u32) -> Trial {
    if trial.ranks <= 1 {
        return trial.clone();
    }
    let mut workload: Workload = (*trial.workload).clone();
    workload.keys = share(workload.keys, rank, trial.ranks);
    workload.phases.iter_mut().for_each(|phase| phase.ops = share(phase.ops, rank, trial.ranks));
    let seed = Some(seed_of(trial.ops_seed(), rank));
    Trial { workload: Arc::new(workload), seed, rank: Some(rank), ..trial.clone() }
}

/// The part of the keys of a rank's trial.
pub fn keys_part(trial: &Trial) -> Partition {
    match trial.rank {
        Some(rank) => Partition { index: u64::from(rank), count: u64::from(trial.ranks.max(1)) },
        None => Partition::WHOLE,
    }
}

/// The seed of the values of a rank's trial: no other rank writes an equal value, so that a mix-up is found.
pub fn value_seed(trial: &Trial) -> u64 {
    trial.rank.map_or(trial.workload.seed, |rank| seed_of(!trial.workload.seed, rank))
}

/// Why several ranks cannot run the workload; none: they can.
pub fn refusal(workload: &Workload, ranks: u32) -> Option<String> {
    let has =
        |kind: OpKind| workload.phases.iter().any(|phase| super::phase::kinds_of(phase).contains(&kind));
    let too_few = |count: u64| count < u64::from(ranks);
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
    } else if !workload.faults.is_empty() {
        "it has faults of members, which are for servers that a driver starts"
    } else if (workload.keys > 0 && too_few(workload.keys)) || workload.phases.iter().any(has_few_ops) {
        return Some(format!("it has fewer keys or ops than the {ranks} load generators"));
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

    fn trial(ranks: u32, name: &str) -> Trial {
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
            is_floor: false,
            ranks,
            nodes_option: None,
            rank: None,
        }
    }

    #[test]
    fn ranks_divide_keys_and_ops_and_have_their_own_seeds() {
        let whole = trial(3, "ycsb-b");
        let parts: Vec<Trial> = (0..3).map(|rank| of_rank(&whole, rank)).collect();
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
        assert_eq!(of_rank(&trial(1, "ycsb-b"), 0), trial(1, "ycsb-b"));
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
        fn shares_add_up_and_differ_by_at_most_one(total: u64, ranks in 1_u32..1000) {
            let shares: Vec<u64> = (0..ranks).map(|rank| share(total, rank, ranks)).collect();
            prop_assert_eq!(shares.iter().map(|share| u128::from(*share)).sum::<u128>(), u128::from(total));
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
