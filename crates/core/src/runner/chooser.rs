//! Draws the op kinds of a phase in their shares.

use crate::generator::Random;
use crate::workload::{Mix, OpKind};

/// Draws the kind of the next unit. With one kind in the mix it draws nothing.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    kinds: Vec<(OpKind, u64)>,
}

impl Chooser {
    /// For the shares of a mix; none if no share is above zero.
    pub(super) fn new(mix: &Mix) -> Option<Chooser> {
        let total: f64 = mix.shares().map(|(_, share)| share).sum();
        let mut sum = 0.0;
        let mut kinds = Vec::new();
        for (kind, share) in mix.shares() {
            sum += share;
            kinds.push((kind, (sum / total * u64::MAX as f64) as u64));
        }
        kinds.last_mut()?.1 = u64::MAX;
        Some(Chooser { kinds })
    }

    /// The kinds of the mix.
    pub(super) fn kinds(&self) -> impl Iterator<Item = OpKind> + '_ {
        self.kinds.iter().map(|&(kind, _)| kind)
    }

    /// The only kind of the mix; none: it has several.
    #[inline(always)]
    pub(super) fn only_kind(&self) -> Option<OpKind> {
        match self.kinds[..] {
            [(kind, _)] => Some(kind),
            _ => None,
        }
    }

    /// The next kind.
    #[inline(always)]
    pub(super) fn next(&self, random: &mut Random) -> OpKind {
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
    fn kinds_come_in_their_shares() {
        let mix = Mix { get: 3.0, update: 1.0, ..Mix::default() };
        let chooser = Chooser::new(&mix).unwrap();
        let mut random = Random::seeded(7);
        let draws = 100_000;
        let gets = (0..draws).filter(|_| chooser.next(&mut random) == OpKind::Get).count();
        let share = gets as f64 / draws as f64;
        assert!((share - 0.75).abs() < 0.01, "seed 7: {share}");
        assert!(Chooser::new(&Mix::default()).is_none());
    }
}
