//! Numbers in requests, read as Redis reads them.

use crate::command::Refusal;
use crate::parse::number;

pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(super) const NOT_A_FLOAT: &str = "ERR value is not a valid float";

/// An argument that must be a whole number.
pub(super) fn integer(text: &[u8]) -> Result<i64, Refusal> {
    number(text).ok_or_else(|| NOT_AN_INTEGER.into())
}

/// An argument that is a count.
pub(super) fn amount(text: &[u8]) -> Result<i64, Refusal> {
    amount_or(text, "ERR value is out of range, must be positive")
}

/// An argument that is a count; the error for all else.
pub(super) fn amount_or(text: &[u8], error: &'static str) -> Result<i64, Refusal> {
    number(text).filter(|count| *count >= 0).ok_or_else(|| error.into())
}

/// An argument that must be a number which a double can represent, but not NaN.
pub(super) fn float(text: &[u8]) -> Result<f64, Refusal> {
    let found = c_number(text).filter(|found| !found.is_nan() && !is_out_of_range(text, *found));
    found.ok_or_else(|| NOT_A_FLOAT.into())
}

/// Whether a number has become infinite or zero because a double cannot represent it.
fn is_out_of_range(text: &[u8], found: f64) -> bool {
    let mantissa = text.split(|byte| b"eEpP".contains(byte)).next().unwrap_or_default();
    match found {
        0.0 => mantissa.iter().any(|byte| (b'1'..=b'9').contains(byte)),
        _ => found.is_infinite() && mantissa.iter().any(u8::is_ascii_digit),
    }
}

/// The end of a range of scores.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub score: f64,
    pub is_excluded: bool,
}

/// A bound of ZRANGE BYSCORE: the score, and whether it is excluded. As in Redis, spaces may precede the number, and an
/// empty text is 0.
pub(super) fn bound(text: &[u8]) -> Result<Bound, Refusal> {
    let (text, is_open) = match text {
        [b'(', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    let text = text.trim_ascii_start();
    let score = if text.is_empty() { Some(0.0) } else { c_number(text).filter(|score| !score.is_nan()) };
    score
        .map(|score| Bound { score, is_excluded: is_open })
        .ok_or_else(|| "ERR min or max is not a float".into())
}

/// A cursor of SCAN: as in Redis, an empty text is 0, and a negative number is that much below 2^64.
pub(super) fn cursor(text: &[u8]) -> Result<u64, Refusal> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let value = digits.iter().try_fold(0_u64, |sum, &byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    });
    match value {
        Some(value) if text.is_empty() || !digits.is_empty() => {
            Ok(if is_negative { value.wrapping_neg() } else { value })
        }
        _ => Err("ERR invalid cursor".into()),
    }
}

/// A number as C's `strtod` reads it, if that is the whole text; one that is too large is infinite.
fn c_number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let found = match digits.get(..2) {
        _ if digits.starts_with(['+', '-']) => None,
        Some("0x" | "0X") => hexadecimal(&digits[2..]),
        _ => digits.parse::<f64>().ok(),
    };
    found.map(|found| sign * found)
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut digits = whole.chars().chain(fraction.chars()).peekable();
    digits.peek()?;
    let number = digits.try_fold(0.0, |sum, digit| Some(sum * 16.0 + f64::from(digit.to_digit(16)?)))?;
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(number * 2_f64.powi(exponent.saturating_sub(places)))
}

/// Whether INCRBYFLOAT can add the number.
pub(super) fn is_addend(text: &[u8]) -> bool {
    c_number(text).is_some_and(|number| !number.is_nan())
}

/// The sum of two numbers in decimal digits, 17 of them after the point, without zeros at the end. Doubles would make
/// 0.30000000000000004 of 0.1 and 0.2. Redis uses `long double`, whose size depends on the machine.
pub(super) fn sum(left: &[u8], right: &[u8]) -> Result<String, Refusal> {
    let units = decimal(left).zip(decimal(right)).and_then(|(left, right)| left.checked_add(right));
    if let Some(units) = units {
        let (whole, rest) = (units.unsigned_abs() / UNIT as u128, units.unsigned_abs() % UNIT as u128);
        let sign = if units < 0 { "-" } else { "" };
        let text = format!("{sign}{whole}.{rest:0width$}", width = PLACES as usize);
        return Ok(text.trim_end_matches('0').trim_end_matches('.').to_string());
    }
    // Beyond 10^21, where doubles have no digits after the point.
    let both = c_number(left).zip(c_number(right)).map(|(left, right)| left + right);
    match both.filter(|sum| sum.is_finite()) {
        Some(sum) => Ok(format!("{sum}")),
        None => Err("ERR increment would produce NaN or Infinity".into()),
    }
}

const PLACES: u32 = 17;
const UNIT: i128 = 10_i128.pow(PLACES);

/// A number in units of 10^-17, rounded; `None` if it is too large for that, or has no decimal digits.
fn decimal(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let digits = mantissa.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = whole.bytes().chain(fraction.bytes()).try_fold(0_i128, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(i128::from(digit))
    })?;
    let shift = exponent.checked_add(PLACES as i32)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(shift.unsigned_abs());
    let units = match (shift >= 0, power) {
        (true, Some(power)) => number.checked_mul(power)?,
        (true, None) => return None,
        (false, Some(power)) => number / power + i128::from(number % power >= power / 2),
        (false, None) => 0,
    };
    Some(if mantissa.starts_with('-') { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_those_of_c_within_the_range_of_a_double() {
        for (text, number) in [
            ("1", 1.0),
            ("+1", 1.0),
            ("-2.5e3", -2500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("0x0p9", 0.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0e999999", 0.0),
            ("4.9e-324", 5e-324),
        ] {
            assert_eq!(float(text.as_bytes()), Ok(number), "{text}");
        }
        for text in [
            "",
            " 1",
            "1 ",
            "x",
            "1e",
            "1e400",
            "-1e400",
            "1e-400",
            "nan",
            "--1",
            "+-1",
            "0x",
            "0xg",
            "0x1p-2000",
            ".",
        ] {
            assert_eq!(float(text.as_bytes()), Err(NOT_A_FLOAT.into()), "{text:?}");
        }
    }

    #[test]
    fn sums_are_decimal() {
        for (left, right, wanted) in [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("-1.5", "1.5", "0"),
            ("5.0e3", "2.0e2", "5200"),
            ("1e-17", "0", "0.00000000000000001"),
            ("-1e-18", "0", "0"),
            ("1e20", "0.5", "100000000000000000000.5"),
            ("1e25", "1", "10000000000000000000000000"),
            ("0x10", "1", "17"),
            ("160000000000000000000000000000000000000e-55", "0", "0.00000000000000002"),
            ("140000000000000000000000000000000000000e-55", "0", "0.00000000000000001"),
        ] {
            assert_eq!(sum(left.as_bytes(), right.as_bytes()).as_deref(), Ok(wanted), "{left} + {right}");
        }
        for (left, right) in [("inf", "1"), ("1e308", "1e308"), ("inf", "-inf"), ("1e400", "0")] {
            assert!(sum(left.as_bytes(), right.as_bytes()).is_err(), "{left} + {right}");
        }
    }

    #[test]
    fn cursors_are_those_of_strtoul() {
        let most = u64::MAX;
        for (text, value) in
            [("", 0), ("0", 0), ("+7", 7), ("007", 7), ("-1", most), ("18446744073709551615", most)]
        {
            assert_eq!(cursor(text.as_bytes()), Ok(value), "{text}");
        }
        for text in ["-", "+", "x", " 0", "0 ", "1.5", "18446744073709551616"] {
            assert!(cursor(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
