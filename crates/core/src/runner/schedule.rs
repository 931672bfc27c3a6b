//! The order in which the phases of a workload are run: the phases of a round in turn, repeated for each round.

use crate::workload::{Phase, Workload};

/// A phase's position in the workload, and the round in which it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Position of the phase, from 0.
    pub place: usize,
    /// Its round, from 1; none: the phase is run once.
    pub round: Option<u32>,
}

impl Turn {
    /// The seed of its streams. The first round has the same seed as a phase without rounds.
    pub fn seed(self, seed: u64) -> u64 {
        let round = u64::from(self.round.unwrap_or(1)) - 1;
        crate::generator::mix64(seed ^ crate::generator::mix64((round << 32) + self.place as u64 + 1))
    }

    /// Whether this is the last run of its phase.
    pub fn is_last(self, workload: &Workload) -> bool {
        self.round.is_none_or(|round| round == workload.rounds)
    }
}

/// All runs of phases of a workload, in order. Phases with `each_round` are consecutive.
pub fn schedule(workload: &Workload) -> impl Iterator<Item = Turn> {
    let phases = &workload.phases;
    let first = phases.iter().position(|phase| phase.each_round).unwrap_or(phases.len());
    let end = first + phases[first..].iter().take_while(|phase| phase.each_round).count();
    let once = |place| Turn { place, round: None };
    let in_round = move |round| (first..end).map(move |place| Turn { place, round: Some(round) });
    let rounds = (1..=workload.rounds).flat_map(in_round);
    (0..first).map(once).chain(rounds).chain((end..phases.len()).map(once))
}

/// The number of times a phase is run.
pub(super) fn times(workload: &Workload, phase: &Phase) -> u32 {
    if phase.each_round { workload.rounds } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn workload(each_round: &[bool], rounds: u32) -> Workload {
        let phase = |&each_round| Phase { each_round, ..Phase::default() };
        let phases = each_round.iter().map(phase).collect();
        Workload { rounds, phases, ..crate::workload::builtin("quick").unwrap() }
    }

    #[test]
    fn rounds_run_their_phases_in_turn() {
        let turns = |each_round: &[bool], rounds| -> Vec<_> {
            let workload = workload(each_round, rounds);
            schedule(&workload).map(|turn| (turn.place, turn.round)).collect()
        };
        let (one, two) = (Some(1), Some(2));
        assert_eq!(turns(&[false, false], 1), [(0, None), (1, None)]);
        assert_eq!(
            turns(&[false, true, true, false], 2),
            [(0, None), (1, one), (2, one), (1, two), (2, two), (3, None)]
        );
        assert_eq!(turns(&[true], 2), [(0, one), (0, two)]);
        assert_eq!(turns(&[], 1), []);
    }

    #[test]
    fn every_turn_has_its_own_seed_and_knows_whether_it_is_the_last() {
        let workload = workload(&[false, true, true], 500);
        let seeds: HashSet<u64> = schedule(&workload).map(|turn| turn.seed(1)).collect();
        assert_eq!(seeds.len(), 1001);
        let last: Vec<usize> =
            schedule(&workload).filter(|turn| turn.is_last(&workload)).map(|turn| turn.place).collect();
        assert_eq!(last, [0, 1, 2]);
        assert_eq!(workload.phases.iter().map(|phase| times(&workload, phase)).sum::<u32>(), 1001);
    }
}
