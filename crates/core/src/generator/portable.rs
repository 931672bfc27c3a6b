//! Logarithm, exponential and power from basic IEEE operations only, so that every machine gets the same bits.
//!
//! The functions of the standard library come from the platform's C library and differ in the last bit between
//! libraries and processors (with and without fused multiply-add), which would occasionally change a draw.

/// ln 2, its upper 33 bits, so that a product with an exponent is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// ln 2 minus `LN2_HIGH`.
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// The natural logarithm of a positive, finite, normal number; within about two units in the last place.
#[inline]
pub(super) fn ln(x: f64) -> f64 {
    // x = m * 2^k with m in [sqrt(1/2), sqrt(2)): the added constant carries into the exponent from sqrt(2) on.
    const ROUND: u64 = 0x0009_5f62_0000_0000;
    let bits = x.to_bits() + ROUND;
    let exponent = ((bits >> 52) as i64 - 1023) as f64;
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + (0x3ff0_0000_0000_0000 - ROUND));
    // ln m = 2 artanh s = f - s * (f - t), with f = m - 1, s = f / (2 + f) and t the series after its first term.
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = 1.0 / 5.0 + w * (1.0 / 9.0 + w * (1.0 / 13.0 + w * (1.0 / 17.0 + w * (1.0 / 21.0))));
    let odd = 1.0 / 3.0
        + w * (1.0 / 7.0 + w * (1.0 / 11.0 + w * (1.0 / 15.0 + w * (1.0 / 19.0 + w * (1.0 / 23.0)))));
    let series = 2.0 * z * (odd + z * even);
    exponent * LN2_HIGH + (f - (s * (f - series) - exponent * LN2_LOW))
}

/// e to the power of `x`; 0 below about -708 and infinity above about 709; within about one unit in the last place.
#[inline]
pub(super) fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    // Adding and subtracting 1.5 * 2^52 rounds to the nearest integer without a call.
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    let shifted = x * std::f64::consts::LOG2_E + SHIFTER;
    let k = shifted - SHIFTER;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let r2 = r * r;
    let r4 = r2 * r2;
    // The Taylor series to r^13 in pairs: |r| <= 0.347, so the next term is below 2^-57.
    let low = (0.5 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
    let middle = (1.0 / 720.0 + r * (1.0 / 5_040.0)) + r2 * (1.0 / 40_320.0 + r * (1.0 / 362_880.0));
    let high = (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0))
        + r2 * (1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0));
    let series = low + r4 * (middle + r4 * high);
    let power = f64::from_bits(((k as i64 + 1023) as u64) << 52);
    (1.0 + (r + r2 * series)) * power
}

/// `x` to the power of `y` for a positive, normal `x`; the relative error is about |y ln x| units in the last place.
#[inline]
pub(super) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

/// (e^x - 1) / x, without loss of precision near 0.
pub(super) fn exp_minus_one_over(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return (exp(x) - 1.0) / x;
    }
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 2..18 {
        term *= x / f64::from(k);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_close_to_the_platforms() {
        let mut random = Random::seeded(1);
        for round in 0..200_000 {
            let x = (random.unit() - 0.5) * 1400.0;
            let wanted = x.exp();
            assert!((exp(x) / wanted - 1.0).abs() < 4e-16, "seed 1, round {round}: exp({x})");
            let y = if round % 2 == 0 { wanted.max(1e-300) } else { random.unit() * 2.0 + 1e-12 };
            let error = (ln(y) - y.ln()).abs();
            assert!(error <= 3e-16 * y.ln().abs().max(1e-3), "seed 1, round {round}: ln({y}) off by {error}");
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
    }

    #[test]
    fn logarithm_and_exponential_keep_their_bits() {
        assert_eq!(ln(1.1).to_bits(), 0x3fb8_663f_793c_46cc);
        assert_eq!(exp(1.1).to_bits(), 0x4008_0888_3244_d593);
        assert_eq!(pow(0.37, 12.5).to_bits(), 0x3ed0_cb88_c9b8_0910);
    }

    #[test]
    fn quotient_has_no_gap_where_its_forms_meet() {
        for x in [-0.500_000_1, -0.499_999_9, -1e-9, 0.0, 1e-9, 0.499_999_9, 0.500_000_1] {
            let wanted = if x == 0.0 { 1.0 } else { f64::exp_m1(x) / x };
            assert!((exp_minus_one_over(x) - wanted).abs() < 1e-14, "{x}");
        }
    }
}
