//! Whether a count differs between two groups of runs, as one of system calls does that no other program on the machine changes.
//!
//! It rose if each of the later runs exceeds the greatest of the earlier ones by more than the range of these. So a count that is equal
//! in all earlier runs is compared exactly. If nothing has changed, all orders of the runs are equally likely, and of `n` and `m` runs
//! all later ones exceed all earlier ones with a probability of n! m! / (n + m)!, whatever the distribution of the count (the
//! one-sided rank-sum test of Wilcoxon, Individual comparisons by ranking methods, 1945, at its extreme): 1 in 184,756 for 10 and 10.
//! The range above the greatest is for what does change: counts of work that a clock starts rise on a machine that is busier than in
//! all earlier runs.
//!
//! The later runs are judged as they come: one within these limits decides, so that without a change one run is often enough.

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
    let range = most_earlier - least_earlier;
    let rises = later.iter().all(|count| *count > most_earlier + range);
    let falls = later.iter().all(|count| *count < least_earlier - range);
    match (rises, falls) {
        (false, false) => Verdict::Same,
        _ if !is_complete => Verdict::Open,
        (true, _) => Verdict::Rose,
        (false, true) => Verdict::Fell,
    }
}

/// The probability that a count that has not changed is said to have risen, at most.
pub fn false_alarms(earlier: usize, later: usize) -> f64 {
    // n! m! / (n + m)!, as a product of ratios.
    (1..=later).map(|place| place as f64 / (earlier + place) as f64).product()
}
