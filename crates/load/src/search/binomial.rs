//! The binomial rule: what n requests, some of them over a limit, show of a quantile.
//!
//! It is the rule of early stopping in MLPerf's inference rules (inference_rules.adoc, "Early stopping criterion"): if `over`
//! of `n` requests are over the limit, quantile q is within it with confidence c if a binomial of n draws, each over the
//! limit with probability 1 - q, has at most `over` of them with a probability of at most 1 - c.

/// What an observation shows of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The limit is kept, with the wanted confidence.
    Kept,
    /// The limit is broken, with the wanted confidence.
    Broken,
    /// Neither is shown.
    Unclear,
}

/// What `n` independent requests show of quantile `quantile` (0 to 1) with confidence `confidence` (0 to 1) if `over` of them
/// are over the limit. Counts may be fractions, because effective ones are.
pub fn verdict(n: f64, over: f64, quantile: f64, confidence: f64) -> Verdict {
    if n <= 0.0 || over > n {
        return Verdict::Unclear;
    }
    if at_most(n, over, 1.0 - quantile) <= 1.0 - confidence {
        Verdict::Kept
    } else if at_least(n, over, 1.0 - quantile) <= 1.0 - confidence {
        Verdict::Broken
    } else {
        Verdict::Unclear
    }
}

/// The smallest n with `quantile`^n <= 1 - `confidence`: as many requests are needed if none is over the limit.
pub fn needed(quantile: f64, confidence: f64) -> u64 {
    ((1.0 - confidence).ln() / quantile.ln()).ceil() as u64
}

/// The largest number over the limit with which `n` requests show that it is kept. Absent if none is few enough.
pub fn most_over(n: f64, quantile: f64, confidence: f64) -> Option<f64> {
    let kept = |over: f64| verdict(n, over, quantile, confidence) == Verdict::Kept;
    if !kept(0.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, n * (1.0 - quantile));
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if kept(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// P(Binomial(n, p) <= k).
fn at_most(n: f64, k: f64, p: f64) -> f64 {
    if k >= n { 1.0 } else { beta(p, k + 1.0, n - k, false) }
}

/// P(Binomial(n, p) >= k).
fn at_least(n: f64, k: f64, p: f64) -> f64 {
    if k <= 0.0 { 1.0 } else { beta(p, k, n - k + 1.0, true) }
}

/// The regularized incomplete beta function I_x(a, b), or 1 - I_x(a, b) if not `lower`; each with small relative errors where
/// it is small. By its continued fraction and Lentz's method (Numerical Recipes, section 6.4).
fn beta(x: f64, a: f64, b: f64, lower: bool) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    let (value, is_lower) = if x < (a + 1.0) / (a + b + 2.0) {
        (front * fraction(x, a, b) / a, true)
    } else {
        (front * fraction(1.0 - x, b, a) / b, false)
    };
    if is_lower == lower { value } else { 1.0 - value }
}

/// The continued fraction of the incomplete beta function.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    // Keeps denominators from 0.
    const TINY: f64 = 1e-300;
    let safe = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    // It converges in a multiple of sqrt(max(a, b)) steps; 100,000 are enough for 10^9 requests.
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / safe(1.0 + even * d);
        c = safe(1.0 + even / c);
        product *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / safe(1.0 + odd * d);
        c = safe(1.0 + odd / c);
        product *= d * c;
        if (d * c - 1.0).abs() < 1e-12 {
            break;
        }
    }
    product
}

/// The logarithm of the gamma function for x >= 0.5, by Lanczos's approximation with g = 7 and nine terms.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let mut sum = TERMS[0];
    for (index, term) in TERMS.iter().enumerate().skip(1) {
        sum += term / (x + index as f64);
    }
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Binomial(n, p) <= k), by its sum.
    fn sum(n: u64, k: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(n as i32);
        let mut total = term;
        for i in 0..k {
            term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
            total += term;
        }
        total
    }

    #[test]
    fn agrees_with_the_sum_of_the_binomial() {
        for (n, p) in [(10_u64, 0.5), (459, 0.01), (1_000, 0.01), (5_000, 0.001), (600, 0.1)] {
            for k in 0..n.min(80) {
                let exact = sum(n, k, p);
                assert!((at_most(n as f64, k as f64, p) - exact).abs() < 1e-9, "n {n}, p {p}, k {k}");
                let exact = 1.0 - exact;
                assert!((at_least(n as f64, k as f64 + 1.0, p) - exact).abs() < 1e-9, "n {n}, p {p}, k {k}");
            }
        }
    }

    #[test]
    fn has_the_numbers_of_mlperf() {
        assert_eq!(needed(0.99, 0.99), 459);
        assert_eq!(verdict(459.0, 0.0, 0.99, 0.99), Verdict::Kept);
        assert_eq!(verdict(458.0, 0.0, 0.99, 0.99), Verdict::Unclear);
        // One over the limit needs 662 requests.
        assert_eq!(verdict(662.0, 1.0, 0.99, 0.99), Verdict::Kept);
        assert_eq!(verdict(661.0, 1.0, 0.99, 0.99), Verdict::Unclear);
    }

    #[test]
    fn has_three_answers() {
        assert_eq!(verdict(10_000.0, 50.0, 0.99, 0.99), Verdict::Kept);
        assert_eq!(verdict(10_000.0, 100.0, 0.99, 0.99), Verdict::Unclear);
        assert_eq!(verdict(10_000.0, 150.0, 0.99, 0.99), Verdict::Broken);
        assert_eq!(verdict(0.0, 0.0, 0.99, 0.99), Verdict::Unclear);
        assert_eq!(verdict(10.0, 10.0, 0.99, 0.99), Verdict::Broken);
    }

    #[test]
    fn stays_exact_with_many_requests() {
        // The normal approximation is good here: 2.326 deviations for a confidence of 99 %.
        let most = most_over(1e8, 0.99, 0.99).expect("enough requests");
        let normal = 1e6 - 2.326 * (1e8_f64 * 0.01 * 0.99).sqrt();
        assert!((most - normal).abs() < 10.0, "{most} against {normal}");
        assert_eq!(most_over(458.0, 0.99, 0.99), None);
    }
}
