//! How many independent requests a series of windows is worth.
//!
//! Requests in a queue are not independent: one long service delays all requests after it. So the share over a limit varies
//! more between windows than a binomial would, and n requests are worth n / d independent ones, where d is the design effect
//! (Kish, Survey Sampling, 1965). The variance of the share is estimated by batch means (Schmeiser, Batch size effects in the
//! analysis of simulation output, 1982). Windows that are correlated with the next ones increase it, by the initial positive
//! sequence of their autocovariances (Geyer, Practical Markov chain Monte Carlo, 1992). An estimate from few windows is
//! itself uncertain; Student's t with one degree of freedom less than windows accounts for it.

/// Counts of a limit, as if its requests were independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The effective number of requests.
    pub n: f64,
    /// The effective number over the limit.
    pub over: f64,
    /// How many requests one effective request is: at least 1.
    pub effect: f64,
}

/// The sample of windows, each with its requests and how many of these are over the limit.
pub(crate) fn sample(windows: &[(u64, u64)]) -> Sample {
    let n = windows.iter().map(|(requests, _)| *requests as f64).sum::<f64>();
    let over = windows.iter().map(|(_, over)| *over as f64).sum::<f64>();
    let effect = design_effect(windows, n, over);
    Sample { n: n / effect, over: over / effect, effect }
}

/// The variance of the share over the limit, divided by that of independent requests; at least 1.
fn design_effect(windows: &[(u64, u64)], n: f64, over: f64) -> f64 {
    let count = windows.len() as f64;
    let share = over / n;
    if windows.len() < 2 || over == 0.0 || over == n {
        return 1.0;
    }
    // How far each window's number over the limit is from what its requests would have at the share of all.
    let rest: Vec<f64> =
        windows.iter().map(|(requests, over)| *over as f64 - share * *requests as f64).collect();
    let covariance =
        |lag: usize| rest.iter().zip(rest.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>() / (count - 1.0);
    let mut variance = covariance(0);
    for lag in 1..windows.len() / 4 {
        let next = covariance(lag);
        // Smaller ones are noise: the standard deviation of a correlation of independent windows.
        if next <= covariance(0) / count.sqrt() {
            break;
        }
        variance += 2.0 * next;
    }
    (variance * count / (n * share * (1.0 - share)) * student(count - 1.0)).max(1.0)
}

/// The square of the 99th percentile of Student's t, divided by that of the normal distribution. It is an expansion in
/// 1 / `freedom` (Abramowitz and Stegun, 26.7.5) that is within 1 % from nine degrees of freedom on.
fn student(freedom: f64) -> f64 {
    const Z: f64 = 2.326_347_874;
    let first = (Z.powi(3) + Z) / 4.0 / freedom;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0 / freedom.powi(2);
    ((Z + first + second) / Z).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_students_percentiles() {
        for (freedom, percentile) in [(9.0, 2.821), (19.0, 2.539), (29.0, 2.462)] {
            let wanted = (percentile / 2.326_f64).powi(2);
            assert!((student(freedom) / wanted - 1.0).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn equal_windows_are_worth_their_requests() {
        assert_eq!(sample(&[(1_000, 10); 20]), Sample { n: 20_000.0, over: 200.0, effect: 1.0 });
        assert_eq!(sample(&[(1_000, 0); 20]).effect, 1.0);
        assert_eq!(sample(&[(1_000, 10)]).effect, 1.0);
    }

    #[test]
    fn bursts_are_worth_less() {
        let mut windows = [(1_000, 0); 20];
        windows[3].1 = 100;
        windows[12].1 = 100;
        // Two bursts are about two events.
        let sample = sample(&windows);
        assert!((1.0..2.5).contains(&sample.over), "{sample:?}");
    }

    #[test]
    fn neighbours_that_resemble_each_other_are_worth_less() {
        let mut apart = [(1_000, 5); 20];
        let mut together = apart;
        for index in 0..6 {
            apart[index * 3 + 1].1 = 25;
            together[index + 4].1 = 25;
        }
        assert!(sample(&together).n < 0.5 * sample(&apart).n);
    }
}
