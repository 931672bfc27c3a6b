//! Units of timing: a unit is one op, or the ops of a group, of one kind.

use crate::generator::Random;
use crate::workload::{Mix, Phase};

/// The kinds of op of a workload; each is a row of a phase's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// One get.
    Get,
    /// Joined gets.
    MultiGet,
    /// A put, or joined ones.
    Put,
    /// Puts of new keys.
    Insert,
    /// Puts of existing keys.
    Update,
    /// Deletes.
    Delete,
    /// A scan, with its resumptions.
    Scan,
    /// A counter's increment, or joined ones.
    Merge,
    /// A get and a put of one key.
    ReadModifyWrite,
    /// Updates that are applied atomically.
    Transaction,
    /// Puts of new keys, each with its index rows.
    InsertIndexed,
    /// Pushes at the right ends of lists.
    Push,
    /// A pop at the left end of a list; emulated by a get and a delete.
    Pop,
}

/// The number of kinds.
pub const KINDS: usize = 13;

impl Kind {
    /// All of them, in the order of `Mix`.
    pub const ALL: [Kind; KINDS] = [
        Kind::Get,
        Kind::MultiGet,
        Kind::Put,
        Kind::Insert,
        Kind::Update,
        Kind::Delete,
        Kind::Scan,
        Kind::Merge,
        Kind::ReadModifyWrite,
        Kind::Transaction,
        Kind::InsertIndexed,
        Kind::Push,
        Kind::Pop,
    ];

    /// The name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::MultiGet => "multi-get",
            Kind::Put => "put",
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::Scan => "scan",
            Kind::Merge => "merge",
            Kind::ReadModifyWrite => "read-modify-write",
            Kind::Transaction => "transaction",
            Kind::InsertIndexed => "insert-indexed",
            Kind::Push => "push",
            Kind::Pop => "pop",
        }
    }

    /// Its share in a mix.
    pub fn share(self, mix: &Mix) -> f64 {
        match self {
            Kind::Get => mix.get,
            Kind::MultiGet => mix.multi_get,
            Kind::Put => mix.put,
            Kind::Insert => mix.insert,
            Kind::Update => mix.update,
            Kind::Delete => mix.delete,
            Kind::Scan => mix.scan,
            Kind::Merge => mix.merge,
            Kind::ReadModifyWrite => mix.read_modify_write,
            Kind::Transaction => mix.transaction,
            Kind::InsertIndexed => mix.insert_indexed,
            Kind::Push => mix.push,
            Kind::Pop => mix.pop,
        }
    }

    /// Whether it changes keys, counters or lists.
    pub fn writes(self) -> bool {
        !matches!(self, Kind::Get | Kind::MultiGet | Kind::Scan)
    }

    /// Whether a unit is a group of `Phase::join` writes.
    pub fn is_joined(self) -> bool {
        self.writes() && !matches!(self, Kind::ReadModifyWrite | Kind::Transaction)
    }

    /// Whether it can remove keys.
    pub fn deletes(self) -> bool {
        self == Kind::Delete
    }

    /// The number of ops of one unit; `row_ops`: the number of ops that write one row with its index rows.
    pub fn ops(self, phase: &Phase, row_ops: usize) -> usize {
        let ops = match self {
            Kind::Get | Kind::Scan => 1,
            Kind::MultiGet => phase.multi_get_keys,
            Kind::Put | Kind::Insert | Kind::Update | Kind::Delete | Kind::Merge | Kind::Push => phase.join,
            Kind::ReadModifyWrite | Kind::Pop => 2,
            Kind::Transaction => phase.transaction_ops,
            Kind::InsertIndexed => return phase.join.max(1) as usize * row_ops,
        };
        ops.max(1) as usize
    }

    /// The number of counted ops of a unit of `ops` ops: a read-modify-write, a transaction, a pop or a row with its index rows
    /// counts as one op; joined ops count separately.
    #[inline(always)]
    pub fn counted_ops(self, ops: usize, row_ops: usize) -> u64 {
        match self {
            Kind::ReadModifyWrite | Kind::Transaction | Kind::Pop => 1,
            Kind::InsertIndexed => (ops / row_ops) as u64,
            _ => ops as u64,
        }
    }

    /// The number of ops of a unit that is cut to count at most `left`, which is over 0.
    pub fn cut(self, ops: usize, row_ops: usize, left: u64) -> usize {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        match self {
            Kind::ReadModifyWrite | Kind::Transaction | Kind::Pop => ops,
            Kind::InsertIndexed => ops.min(left.saturating_mul(row_ops)),
            _ => ops.min(left),
        }
    }
}

/// Draws the kind of the next unit. With a single kind in the mix it does not use the random stream.
#[derive(Clone, Debug)]
pub struct Chooser {
    kinds: Vec<(Kind, u64)>,
}

impl Chooser {
    /// For the shares of a mix; none if no share is above zero.
    pub fn new(mix: &Mix) -> Option<Chooser> {
        let total: f64 = Kind::ALL.iter().map(|kind| kind.share(mix)).sum();
        let mut sum = 0.0;
        let mut kinds = Vec::new();
        for kind in Kind::ALL {
            let share = kind.share(mix);
            if share > 0.0 {
                sum += share;
                kinds.push((kind, (sum / total * u64::MAX as f64) as u64));
            }
        }
        kinds.last_mut()?.1 = u64::MAX;
        Some(Chooser { kinds })
    }

    /// The kinds of the mix.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.kinds.iter().map(|&(kind, _)| kind)
    }

    /// The next kind.
    #[inline(always)]
    pub fn next(&self, random: &mut Random) -> Kind {
        if self.kinds.len() == 1 {
            return self.kinds[0].0;
        }
        let draw = random.next_u64();
        for &(kind, below) in &self.kinds {
            if draw <= below {
                return kind;
            }
        }
        self.kinds[self.kinds.len() - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_drawn_in_their_shares() {
        let mix = Mix { get: 3.0, update: 1.0, ..Mix::default() };
        let chooser = Chooser::new(&mix).unwrap();
        let mut random = Random::seeded(7);
        let draws = 100_000;
        let gets = (0..draws).filter(|_| chooser.next(&mut random) == Kind::Get).count();
        let share = gets as f64 / draws as f64;
        assert!((share - 0.75).abs() < 0.01, "seed 7: {share}");
        assert!(Chooser::new(&Mix::default()).is_none());
    }
}
