//! The order in which the phases of a workload are run: those of a round in turn, as many times as there are rounds.

use crate::workload::{Phase, Workload};

/// A phase's place in the workload, and the round that it is run in, from 1; none: it is run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Place of the phase, from 0.
    pub place: usize,
    /// Its round.
    pub round: Option<u32>,
}

impl Turn {
    /// The seed of its streams. The first round has that of a phase without rounds.
    pub fn seed(self, seed: u64) -> u64 {
        let round = u64::from(self.round.unwrap_or(1)) - 1;
        crate::generator::mix64(seed ^ crate::generator::mix64((round << 32) + self.place as u64 + 1))
    }

    /// Whether its phase is not run again after it.
    pub fn is_last(self, workload: &Workload) -> bool {
        self.round.is_none_or(|round| round == workload.rounds)
    }
}

/// All phases of a workload as they are run. Those that say `each_round` stand side by side.
pub fn schedule(workload: &Workload) -> impl Iterator<Item = Turn> {
    let phases = &workload.phases;
    let first = phases.iter().position(|phase| phase.each_round).unwrap_or(phases.len());
    let end = first + phases[first..].iter().take_while(|phase| phase.each_round).count();
    let once = |place| Turn { place, round: None };
    let in_round = move |round| (first..end).map(move |place| Turn { place, round: Some(round) });
    let rounds = (1..=workload.rounds).flat_map(in_round);
    (0..first).map(once).chain(rounds).chain((end..phases.len()).map(once))
}

/// How often a phase is run.
pub fn times(workload: &Workload, phase: &Phase) -> u32 {
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
    fn every_turn_has_a_seed_of_its_own_and_knows_whether_it_is_the_last() {
        let workload = workload(&[false, true, true], 500);
        let seeds: HashSet<u64> = schedule(&workload).map(|turn| turn.seed(1)).collect();
        assert_eq!(seeds.len(), 1001);
        let last: Vec<usize> =
            schedule(&workload).filter(|turn| turn.is_last(&workload)).map(|turn| turn.place).collect();
        assert_eq!(last, [0, 1, 2]);
        assert_eq!(workload.phases.iter().map(|phase| times(&workload, phase)).sum::<u32>(), 1001);
    }
}
