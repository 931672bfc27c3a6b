//! Whether a count differs between two groups of runs, as one of system calls does that no other program on the machine changes.
//!
//! It rose if each of the later runs has more than each of the earlier ones. If nothing has changed, all orders of the runs are
//! equally likely, so of `n` and `m` runs this happens with a probability of n! m! / (n + m)!, whatever the distribution of the count
//! (the one-sided rank-sum test of Wilcoxon, Individual comparisons by ranking methods, 1945, at its extreme): 1 in 184,756 for 10
//! and 10. A count that is equal in all earlier runs is so compared exactly, and another with the range that it has.
//!
//! The later runs are judged as they come: one that does not exceed all earlier ones decides, so that without a change one run is
//! often enough.

#[cfg(test)]
mod tests;

/// What the runs so far show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More runs are needed.
    Open,
    /// It neither rose nor fell.
    Same,
    /// It rose.
    Rose,
    /// It fell.
    Fell,
}

/// Judges the counts of later runs, of which there are `most` in the end, by those of earlier ones. Without an earlier run, or
/// with none to come, nothing is known to have changed.
pub fn judge(earlier: &[f64], later: &[f64], most: usize) -> Verdict {
    if earlier.is_empty() || most == 0 {
        return Verdict::Same;
    }
    let most_earlier = earlier.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least_earlier = earlier.iter().copied().fold(f64::INFINITY, f64::min);
    let is_complete = later.len() >= most;
    let rises = later.iter().all(|count| *count > most_earlier);
    let falls = later.iter().all(|count| *count < least_earlier);
    match (rises, falls) {
        (false, false) => Verdict::Same,
        _ if !is_complete => Verdict::Open,
        (true, _) => Verdict::Rose,
        (false, true) => Verdict::Fell,
    }
}

/// The probability that a count that has not changed is said to have risen.
pub fn false_alarms(earlier: usize, later: usize) -> f64 {
    // n! m! / (n + m)!, as a product of ratios.
    (1..=later).map(|place| place as f64 / (earlier + place) as f64).product()
}
