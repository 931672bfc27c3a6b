//! The rules of rounds, turns of keys, atomic groups and fills.

use super::{Checked, Subject};
use crate::workload::{Emulate, OpKind, Phase, Workload};

/// The maximum number of rounds of a workload; each leaves a record of each of its phases.
const MOST_ROUNDS: u32 = 10_000;

impl Workload {
    /// The phases of a round are consecutive, and more than one round needs such a phase.
    pub(super) fn sound_rounds(&self, this: Subject) -> Checked {
        let expected = format!("1 to {MOST_ROUNDS}");
        this.expect((1..=MOST_ROUNDS).contains(&self.rounds), "rounds", expected, self.rounds)?;
        let is_of_round = |phase: &Phase| phase.each_round;
        let Some(first) = self.phases.iter().position(is_of_round) else {
            let expected = "1, or each_round = true in the phases that repeat";
            return this.expect(self.rounds == 1, "rounds", expected, self.rounds);
        };
        let side_by_side = self.phases[first..].iter().take_while(|phase| phase.each_round).count();
        let strays = self.phases.iter().enumerate().skip(first + side_by_side);
        for (place, phase) in strays.filter(|(_, phase)| phase.each_round) {
            let subject = Subject { phase: Some((place, phase)) };
            let before = &self.phases[place - 1].name;
            let got = format!("`{before}` between them");
            subject.expect(false, "each_round", "consecutive phases in a round", got)?;
        }
        Ok(())
    }

    /// Without keys to fill, no phase can process each key, and the first writes must be inserts.
    pub(super) fn sound_fill(&self, this: Subject, phase: &Phase) -> Checked {
        let puts = (phase.mix.put > 0.0 || phase.writers > 0) && phase.existing.is_none();
        let fills = phase.each_key || puts || phase.mix.merge > 0.0;
        let name = &phase.name;
        let expected = format!("1 or more for phase `{name}`, which puts, merges or processes each key");
        this.expect(self.keys > 0 || !fills, "keys", expected, self.keys)
    }

    /// Whether rounds insert keys in turns; if so, each phase inserts one half of a turn.
    pub(in crate::workload) fn turns_are_phases(&self) -> bool {
        self.key.alternate > 0 && self.phases.iter().any(|phase| phase.each_round && inserts(phase))
    }

    /// A phase of a round inserts either the serial or the random half of a turn.
    pub(super) fn sound_turns(&self, subject: Subject, phase: &Phase) -> Checked {
        let turn = self.key.alternate;
        if turn == 0 || !phase.each_round || !inserts(phase) {
            return Ok(());
        }
        let expected =
            format!("{turn}, the value of key.alternate, so that each phase inserts one half of a turn");
        subject.expect(phase.ops == turn && !phase.each_key, "ops", expected, phase.ops)?;
        let expected = "0 with key.alternate, where a phase inserts one half of a turn";
        subject.expect(phase.seconds == 0.0, "seconds", expected, phase.seconds)
    }
}

/// Whether the phase writes new keys.
fn inserts(phase: &Phase) -> bool {
    phase.mix.has(|kind| kind.inserts(phase))
}

/// A phase that is one transaction has one session. Transactions do not support lists.
pub(super) fn sound_transaction(subject: Subject, phase: &Phase) -> Checked {
    if phase.transaction.is_none() {
        return Ok(());
    }
    let threads = phase.threads.saturating_add(phase.readers).saturating_add(phase.writers);
    subject.expect(threads == 1, "transaction", "1 thread for a transaction that spans a phase", threads)?;
    let has_lists = phase.mix.has(OpKind::is_of_lists);
    subject.expect(!has_lists, "transaction", "no lists in a transaction", "push or pop in the mix")
}

/// The ops of atomic groups, and the ops that can be emulated.
pub(super) fn sound_group_kinds(subject: Subject, phase: &Phase) -> Checked {
    let mix = &phase.mix;
    let is_joined = mix.has(|kind| kind.is_joined() && !kind.is_of_lists());
    let expected =
        "put, insert, update, delete, merge or insert_indexed in the mix, or writers, for atomic groups";
    subject.expect(!phase.atomic || is_joined || phase.writers > 0, "atomic", expected, "none")?;
    let emulates = phase.emulate.contains(&Emulate::Merge);
    subject.expect(!emulates || mix.merge > 0.0, "emulate", "merge in the mix to emulate it", "none")?;
    let (rows, least) = (phase.scan.rows_per_call, mix.scan);
    subject.expect(rows == 0 || least > 0.0, "scan.rows_per_call", "scan in the mix", "none")
}
