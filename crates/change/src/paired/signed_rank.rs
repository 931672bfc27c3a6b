//! Wilcoxon's signed-rank test, inverted: which differences it does not reject.

/// The rank, from 1, of the Walsh average that is the lower end of an interval of `n` differences with an error of at most
/// `alpha`, both ends together; the upper end has the same rank from above. Absent if no interval has so small an error.
///
/// It is the greatest c with 2 P(W < c) <= alpha. The distribution of W, the sum of those of the ranks 1 to n whose sign is
/// positive, is exact: each rank is in the sum or not.
fn rank(n: usize, alpha: f64) -> Option<usize> {
    let most = n * (n + 1) / 4;
    let mut probability = vec![0.0; most + 1];
    probability[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=most.min(rank * (rank + 1) / 2)).rev() {
            let without = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = (probability[sum] + without) / 2.0;
        }
    }
    let mut tail = 0.0;
    let rank = probability.iter().take_while(|part| {
        tail += **part;
        2.0 * tail <= alpha
    });
    Some(rank.count()).filter(|rank| *rank > 0)
}

/// The last rank that was asked for: all metrics of a block ask for the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks(Option<(usize, f64, Option<usize>)>);

impl Ranks {
    fn get(&mut self, n: usize, alpha: f64) -> Option<usize> {
        match self.0 {
            Some((known, error, rank)) if (known, error) == (n, alpha) => rank,
            _ => {
                let rank = rank(n, alpha);
                self.0 = Some((n, alpha, rank));
                rank
            }
        }
    }
}

/// The means of all pairs of values, each value with itself too.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let pairs = values.iter().enumerate();
    pairs.flat_map(|(index, a)| values[index..].iter().map(move |b| (a + b) / 2.0)).collect()
}

fn nth(averages: &mut [f64], index: usize) -> f64 {
    *averages.select_nth_unstable_by(index, f64::total_cmp).1
}

/// The estimate of Hodges and Lehmann: the median of the Walsh averages. Absent if there is no value.
pub(super) fn center(values: &[f64]) -> Option<f64> {
    let mut averages = walsh_averages(values);
    let count = averages.len();
    if count == 0 {
        return None;
    }
    Some((nth(&mut averages, (count - 1) / 2) + nth(&mut averages, count / 2)) / 2.0)
}

/// The interval of the centre of a symmetric distribution, with an error of at most `alpha`.
pub(super) fn interval(values: &[f64], alpha: f64, ranks: &mut Ranks) -> Option<(f64, f64)> {
    let rank = ranks.get(values.len(), alpha)?;
    let mut averages = walsh_averages(values);
    let count = averages.len();
    Some((nth(&mut averages, rank - 1), nth(&mut averages, count - rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(W < c) by trying all signs.
    fn tail(n: usize, c: usize) -> f64 {
        let sums = (0..1_u32 << n).map(|signs| (1..=n).filter(|rank| signs >> (rank - 1) & 1 == 1).sum());
        sums.filter(|sum: &usize| *sum < c).count() as f64 / f64::from(1_u32 << n)
    }

    #[test]
    fn ranks_are_those_of_all_signs() {
        for n in 1..=12 {
            for alpha in [0.2, 0.05, 0.01, 0.001] {
                let found = rank(n, alpha).unwrap_or(0);
                assert!(2.0 * tail(n, found) <= alpha, "{n} {alpha} {found}");
                assert!(2.0 * tail(n, found + 1) > alpha, "{n} {alpha} {found}");
            }
        }
    }

    /// Tables of the test have these as the greatest W that is significant (two-sided 5 % and 1 %).
    #[test]
    fn ranks_are_those_of_printed_tables() {
        for (n, at_5, at_1) in
            [(8, 3, 0), (10, 8, 3), (15, 25, 15), (20, 52, 37), (25, 89, 68), (50, 434, 373)]
        {
            assert_eq!(rank(n, 0.05), Some(at_5 + 1), "{n}");
            assert_eq!(rank(n, 0.01), Some(at_1 + 1), "{n}");
        }
        assert_eq!(rank(5, 0.05), None);
    }

    #[test]
    fn intervals_lie_between_walsh_averages() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(center(&values), Some(3.5));
        // Six equal signs have 2/64.
        let mut ranks = Ranks::default();
        assert_eq!(interval(&values, 0.04, &mut ranks), Some((1.0, 6.0)));
        assert_eq!(interval(&values, 0.03, &mut ranks), None);
        assert_eq!(interval(&values[..5], 0.03, &mut ranks), None);
        assert_eq!(interval(&values, 0.04, &mut ranks), Some((1.0, 6.0)));
        assert_eq!(center(&[]), None);
        assert_eq!(center(&[1.0, 2.0]), Some(1.5));
    }
}
