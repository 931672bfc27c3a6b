//! The board: the progress of a running trial, in memory that its process shares with its parent (docs/live.md has the
//! layout). Reading it costs the trial nothing: threads store their counters there in any case.

use super::phase_data::{Count, Slot};
use super::schedule::Turn;
use crate::results::StepKind;
use crate::workload::Workload;
use kvdyno_measure::Counters;
use std::fmt;
use std::sync::Arc;

/// "kvdyno" and the version of the layout, 1.
const MAGIC: u64 = 0x6b76_6479_6e6f_0001;
/// Words of line 0.
const CHANGES: usize = 1;
const DOING: usize = 2;
const PLACE: usize = 3;
const ROUND: usize = 4;
const THREADS: usize = 5;
/// The activities of a trial, with their codes.
const DOINGS: [(u64, Doing); 9] = [
    (0, Doing::Start),
    (1, Doing::Phase),
    (2, Doing::Step(StepKind::Open)),
    (3, Doing::Step(StepKind::Close)),
    (4, Doing::Step(StepKind::Reopen)),
    (5, Doing::Step(StepKind::Settle)),
    (6, Doing::Step(StepKind::DropCaches)),
    (8, Doing::Step(StepKind::Sweep)),
    (9, Doing::Step(StepKind::Survey)),
];
/// No position.
const NONE: u64 = u64::MAX;

/// The memory and its layout.
#[derive(Clone)]
pub(super) struct Board(Arc<Counters>);

/// The activity of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// It has not begun.
    #[default]
    Start,
    /// A phase.
    Phase,
    /// A step between two phases, or after the last.
    Step(StepKind),
    /// Its process is to exit; only the parent knows.
    Exit,
}

impl fmt::Display for Doing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Doing::Start => "start",
            Doing::Phase => "phase",
            Doing::Step(step) => step.name(),
            Doing::Exit => "exit",
        })
    }
}

/// The state of a trial at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Increases with each phase and each step, and while the trial waits for other load generators.
    pub changes: u64,
    /// What it was doing.
    pub doing: Doing,
    /// The phase's position in the workload; none: no phase is running.
    pub place: Option<usize>,
    /// The phase's round, from 1; none: it is run once.
    pub round: Option<u32>,
    /// Ops of each thread since the phase began, warm-up included.
    pub threads: Vec<u64>,
}

impl Snapshot {
    /// Ops of all threads.
    pub fn ops(&self) -> u64 {
        self.threads.iter().fold(0, |sum, ops| sum.wrapping_add(*ops))
    }
}

impl Board {
    /// A board that is not shared.
    pub(super) fn alone() -> Board {
        Board::marked(Counters::alone(1))
    }

    /// A board for trials of this workload, shared with the process that is started next; none: not possible.
    pub(super) fn shared(workload: &Workload) -> Option<Board> {
        let threads = workload.phases.iter().map(|phase| super::phase::roles(phase).len()).max();
        Counters::shared(1 + threads.unwrap_or(0).max(1)).ok().map(Board::marked)
    }

    /// The board of the parent process, or a new one if that is not available.
    pub(super) fn inherited(descriptor: Option<i32>) -> Board {
        let counters = descriptor.and_then(|descriptor| Counters::inherited(descriptor).ok());
        counters
            .filter(|counters| counters.get(0, 0) == MAGIC)
            .map_or_else(Board::alone, |counters| Board(Arc::new(counters)))
    }

    fn marked(counters: Counters) -> Board {
        counters.set(0, 0, MAGIC);
        counters.set(0, PLACE, NONE);
        Board(Arc::new(counters))
    }

    /// The descriptor by which the process that is started next finds it.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.0.descriptor()
    }

    /// Begins a phase: its threads count on the board from now on. Without a turn it is a phase of the sweep.
    pub(super) fn begin(&self, turn: Option<Turn>, slots: &mut [Slot]) {
        self.set(DOING, 0);
        for (thread, slot) in slots.iter_mut().enumerate() {
            // A phase of the sweep may have more threads than the workload; the others are not shown.
            if thread + 1 < self.0.lines() {
                self.0.set(thread + 1, 0, 0);
                slot.ops = Count::on(&self.0, thread + 1);
            }
        }
        self.set(THREADS, slots.len().min(self.0.lines() - 1) as u64);
        self.set(PLACE, turn.map_or(NONE, |turn| turn.place as u64));
        self.set(ROUND, turn.and_then(|turn| turn.round).map_or(0, u64::from));
        self.change(if turn.is_some() { Doing::Phase } else { Doing::Step(StepKind::Sweep) });
    }

    /// Begins a step.
    pub(super) fn step(&self, step: StepKind) {
        self.set(THREADS, 0);
        self.set(PLACE, NONE);
        self.change(Doing::Step(step));
    }

    /// Shows progress that is not an op: the trial waits for other load generators, or surveys a database.
    pub(super) fn wait(&self) {
        self.set(CHANGES, self.0.get(0, CHANGES).wrapping_add(1));
    }

    fn change(&self, doing: Doing) {
        let code = DOINGS.iter().find(|(_, known)| *known == doing).map_or(0, |(code, _)| *code);
        self.set(DOING, code);
        self.set(CHANGES, self.0.get(0, CHANGES).wrapping_add(1));
    }

    fn set(&self, word: usize, value: u64) {
        self.0.set(0, word, value);
    }

    /// The current state. A faulty engine may have overwritten the memory, so all values are checked.
    pub(super) fn snapshot(&self) -> Snapshot {
        let word = |word: usize| self.0.get(0, word);
        let known = DOINGS.iter().find(|(code, _)| *code == word(DOING));
        let doing = known.map_or(Doing::Start, |(_, doing)| *doing);
        let is_phase = doing == Doing::Phase;
        let threads = (word(THREADS) as usize).min(self.0.lines() - 1);
        Snapshot {
            changes: word(CHANGES),
            doing,
            place: usize::try_from(word(PLACE)).ok().filter(|_| is_phase && word(PLACE) != NONE),
            round: u32::try_from(word(ROUND)).ok().filter(|round| *round > 0),
            threads: (0..threads).map(|thread| self.0.get(thread + 1, 0)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase;
    use super::*;
    use crate::workload::{Mix, Phase, builtin};
    use std::sync::atomic::Ordering;

    fn slots(threads: u32) -> Vec<Slot> {
        phase::slots(&Phase { threads, mix: Mix { get: 1.0, ..Mix::default() }, ..Phase::default() })
    }

    #[test]
    fn a_snapshot_shows_the_phase_its_round_and_the_count_of_each_thread() {
        let board = Board::shared(&builtin("quick").unwrap()).unwrap();
        assert_eq!((board.snapshot().doing, board.snapshot().place), (Doing::Start, None));
        board.step(StepKind::Open);
        assert_eq!(board.snapshot().doing, Doing::Step(StepKind::Open));
        let before = board.snapshot().changes;
        let mut slots = slots(2);
        board.begin(Some(Turn { place: 3, round: Some(7) }), &mut slots);
        slots[0].ops.store(5, Ordering::Relaxed);
        slots[1].ops.store(6, Ordering::Relaxed);
        let snapshot = board.snapshot();
        assert_eq!((snapshot.doing, snapshot.place, snapshot.round), (Doing::Phase, Some(3), Some(7)));
        assert_eq!((snapshot.threads.clone(), snapshot.ops()), (vec![5, 6], 11));
        assert!(snapshot.changes > before);
        board.begin(None, &mut slots);
        assert_eq!(
            (board.snapshot().doing, board.snapshot().place, board.snapshot().ops()),
            (Doing::Step(StepKind::Sweep), None, 0)
        );
    }

    #[test]
    fn threads_beyond_the_board_still_count() {
        let board = Board::alone();
        let mut slots = slots(3);
        board.begin(Some(Turn { place: 0, round: None }), &mut slots);
        slots[2].ops.store(9, Ordering::Relaxed);
        assert_eq!(slots[2].ops.load(Ordering::Relaxed), 9);
        assert!(board.snapshot().threads.is_empty());
    }

    #[test]
    fn invalid_values_on_the_board_are_harmless() {
        let counters = Counters::alone(2);
        (0..16).for_each(|word| counters.set(0, word, u64::MAX));
        counters.set(1, 0, u64::MAX);
        let snapshot = Board(Arc::new(counters)).snapshot();
        assert_eq!(
            (snapshot.doing, snapshot.place, snapshot.round, snapshot.threads.len()),
            (Doing::Start, None, None, 1)
        );
        assert_eq!(Board::inherited(Some(1 << 20)).snapshot(), Board::alone().snapshot());
    }
}
