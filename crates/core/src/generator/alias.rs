//! Draws from a list of weights in constant time (the alias method of Walker 1977, with Vose's 1991 construction).

/// Places with probabilities proportional to their weights.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    slots: Vec<Slot>,
}

/// A place keeps its own share of its slot; the rest belongs to one other place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The place's own share, in 2^-64.
    own: u64,
    other: u32,
}

impl Alias {
    /// A table of `weights`: at least one, each finite and over 0.
    pub(super) fn new(weights: &[f64]) -> Alias {
        let total: f64 = weights.iter().sum();
        let scale = weights.len() as f64 / total;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut slots: Vec<Slot> =
            (0..weights.len() as u32).map(|other| Slot { own: u64::MAX, other }).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&place| shares[place] < 1.0);
        while let (Some(&taker), Some(giver)) = (poor.last(), rich.pop()) {
            poor.pop();
            // 2^64 as a float; the cast saturates.
            slots[taker] =
                Slot { own: (shares[taker] * 18_446_744_073_709_551_616.0) as u64, other: giver as u32 };
            shares[giver] -= 1.0 - shares[taker];
            if shares[giver] < 1.0 { poor.push(giver) } else { rich.push(giver) }
        }
        Alias { slots }
    }

    /// The place selected by 64 random bits.
    #[inline]
    pub(super) fn pick(&self, bits: u64) -> usize {
        let product = u128::from(bits) * self.slots.len() as u128;
        let place = (product >> 64) as usize;
        let slot = self.slots[place];
        if (product as u64) < slot.own { place } else { slot.other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1.0, 7.0, 0.5, 1.5, 100.0, 3.25];
        let alias = Alias::new(&weights);
        let mut random = Random::seeded(5);
        let mut counts = [0_u32; 6];
        for _ in 0..1_000_000 {
            counts[alias.pick(random.next_u64())] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let wanted = 1e6 * weight / 113.25;
            assert!((f64::from(*count) - wanted).abs() < 5.0 * wanted.sqrt(), "seed 5: {counts:?}");
        }
        assert_eq!(Alias::new(&[3.0]).pick(u64::MAX), 0);
    }
}
