//! The probabilities of each place of the first bad version.

use super::Compare;

#[derive(Clone, Debug)]
pub(super) struct Belief {
    /// At 0: that no version is bad. At others: that this version is the first bad one.
    probability: Vec<f64>,
}

impl Belief {
    /// That no version is bad is as probable as that one is.
    pub fn new(last: usize) -> Belief {
        let mut probability = vec![0.5 / last as f64; last + 1];
        probability[0] = 0.5;
        Belief { probability }
    }

    /// Whether the newer version of a comparison is worse if `first` is the first bad version.
    fn is_bad(compare: Compare, first: usize) -> bool {
        (compare.base + 1..=compare.version).contains(&first)
    }

    /// Takes an outcome that is wrong with a probability of `error`.
    pub fn learn(&mut self, compare: Compare, bad: bool, error: f64) {
        for (first, probability) in self.probability.iter_mut().enumerate() {
            *probability *= if Belief::is_bad(compare, first) == bad { 1.0 - error } else { error };
        }
        let sum: f64 = self.probability.iter().sum();
        self.probability.iter_mut().for_each(|probability| *probability /= sum);
    }

    /// Takes a version out. That it is the first bad one is then the same as that the next one is. Without the first version, the second
    /// is good by definition; without the last one, nobody can see that it is bad.
    pub fn skip(&mut self, version: usize) {
        let last = self.probability.len() - 1;
        let gone = self.probability.remove(version.max(1));
        let heir = if version == 0 || version == last { 0 } else { version };
        self.probability[heir] += gone;
    }

    /// That no version is bad.
    pub fn none(&self) -> f64 {
        self.probability[0]
    }

    /// That the newer version of a comparison is worse.
    pub fn bad(&self, compare: Compare) -> f64 {
        self.probability[compare.base + 1..=compare.version].iter().sum()
    }

    /// The likeliest first bad version, and its probability.
    pub fn likeliest(&self) -> (usize, f64) {
        let versions = self.probability.iter().copied().enumerate().skip(1);
        versions.max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are two versions at least")
    }

    /// The likeliest of the shortest ranges of versions with an error of at most `error`, and its probability; all versions if no
    /// range has.
    pub fn range(&self, error: f64) -> (usize, usize, f64) {
        let last = self.probability.len() - 1;
        let sum = |first: usize, last: usize| self.probability[first..=last].iter().sum::<f64>();
        for length in 1..=last {
            let ranges = (1..=last + 1 - length).map(|first| (first, first + length - 1));
            let best = ranges
                .map(|(first, last)| (first, last, sum(first, last)))
                .max_by(|a, b| a.2.total_cmp(&b.2).then(b.0.cmp(&a.0)))
                .expect("a range of each length fits");
            if 1.0 - best.2 <= error {
                return best;
            }
        }
        (1, last, sum(1, last))
    }
}
