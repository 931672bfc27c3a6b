//! Student's t distribution.

/// The probability that Student's t with `freedom` degrees of freedom (at least 1) is further from 0 than `t`: the p value of a
/// two-sided test. Its relative error is small also where it is small.
///
/// By the finite series for whole degrees of freedom (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and
/// 26.7.4). Continued without end, each series gives 1; so its rest is the probability beyond t.
pub fn two_sided(t: f64, freedom: usize) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    let nu = freedom as f64;
    let sine = t.abs() / (nu + square).sqrt();
    let cosine_2 = nu / (nu + square);
    let is_odd = freedom % 2 == 1;
    let (front, terms) = match is_odd {
        true => (sine * cosine_2.sqrt() * std::f64::consts::FRAC_2_PI, (freedom - 1) / 2),
        false => (sine, freedom / 2),
    };
    let next = |step: usize| {
        let twice = 2.0 * step as f64;
        cosine_2 * if is_odd { twice / (twice + 1.0) } else { (twice - 1.0) / twice }
    };
    let (mut term, mut head) = (1.0, 0.0);
    for step in 0..terms {
        head += term;
        term *= next(step + 1);
    }
    if square < 1.0 {
        let angle = if is_odd { (t.abs() / nu.sqrt()).atan() * std::f64::consts::FRAC_2_PI } else { 0.0 };
        return 1.0 - angle - front * head;
    }
    let (mut step, mut tail) = (terms, 0.0);
    while term > tail * 1e-17 {
        tail += term;
        step += 1;
        term *= next(step);
    }
    front * tail
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of printed tables: two-sided 5 %, 1 % and 0.1 %.
    #[test]
    fn has_the_percentiles_of_printed_tables() {
        let rows = [
            (1, 12.706_204_74, 63.656_741_16, 636.619_249_4),
            (2, 4.302_652_73, 9.924_843_20, 31.599_054_58),
            (3, 3.182_446_31, 5.840_909_31, 12.923_978_64),
            (4, 2.776_445_11, 4.604_094_87, 8.610_301_58),
            (5, 2.570_581_84, 4.032_142_98, 6.868_826_62),
            (10, 2.228_138_85, 3.169_272_67, 4.586_893_86),
            (29, 2.045_229_64, 2.756_385_90, 3.659_405_02),
            (120, 1.979_930_41, 2.617_421_15, 3.373_453_79),
        ];
        for (freedom, at_5, at_1, at_01) in rows {
            for (t, p) in [(at_5, 0.05), (at_1, 0.01), (at_01, 0.001)] {
                assert!(
                    (two_sided(t, freedom) / p - 1.0).abs() < 1e-6,
                    "{freedom}: {}",
                    two_sided(t, freedom)
                );
            }
        }
    }

    #[test]
    fn both_ways_to_compute_it_agree() {
        for freedom in 1..300 {
            let (below, above) = (two_sided(1.0 - 1e-12, freedom), two_sided(1.0, freedom));
            assert!((below - above).abs() < 1e-10, "{freedom}: {below} {above}");
        }
        assert_eq!(two_sided(0.0, 7), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 7), 0.0);
        // With one degree of freedom it is Cauchy's distribution, whose tail is 2/(pi t).
        assert!((two_sided(1e9, 1) * std::f64::consts::FRAC_PI_2 * 1e9 - 1.0).abs() < 1e-9);
    }
}
