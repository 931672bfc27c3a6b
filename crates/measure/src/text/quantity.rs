//! Counts, bytes and durations as people write them: `200k`, `64MiB`, `500ms`. Flags, workload files, sizes of keys and
//! values, and options of engines all accept the same forms (docs/workloads.md, "Notation of values").

use super::count_text;
use super::sentence::nearest;

/// The first number that a double cannot distinguish from its neighbour; integers print exactly below it.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

/// A unit and its value.
type Unit = (&'static str, f64);

/// A kind of quantity.
struct Kind {
    /// The expected form, with examples.
    expected: &'static str,
    /// The units, for messages. Each letter once: `K` and `k` are the same.
    forms: &'static str,
    units: &'static [Unit],
}

const COUNT: Kind = Kind {
    expected: A_COUNT,
    forms: "k, M, G",
    units: &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("K", 1e3), ("m", 1e6), ("g", 1e9)],
};

/// `M` is binary, because caches and files are sized that way; decimal units have a `B`, as in `MB`.
const BYTES: Kind = Kind {
    expected: A_BYTE_COUNT,
    forms: "B, KiB, MiB, GiB, TiB, PiB, K, M, G, T, P (powers of 1024), kB, MB, GB, TB, PB (powers of 1000)",
    units: &[
        ("", 1.0),
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
        ("GiB", 1073741824.0),
        ("TiB", 1099511627776.0),
        ("PiB", 1125899906842624.0),
        ("K", 1024.0),
        ("M", 1048576.0),
        ("G", 1073741824.0),
        ("T", 1099511627776.0),
        ("P", 1125899906842624.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("PB", 1e15),
        ("k", 1024.0),
        ("m", 1048576.0),
        ("g", 1073741824.0),
        ("t", 1099511627776.0),
    ],
};

const DURATION: Kind = Kind {
    expected: A_DURATION,
    forms: "ns, us, ms, s, m, h",
    units: &[("", 1.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)],
};

/// What a count is, for messages.
pub const A_COUNT: &str = "a count such as 200000 or \"200k\"";
/// What a number of bytes is, for messages.
pub const A_BYTE_COUNT: &str = "bytes such as 4096 or \"64MiB\"";
/// What a duration is, for messages.
pub const A_DURATION: &str = "seconds such as 10 or a duration such as \"500ms\" or \"2m\"";

/// The regular expression of a number of bytes, for schemas.
pub const BYTE_PATTERN: &str = r"[0-9][0-9_]*(\.[0-9]+)? ?(B|[kKmMgGtTP]|[kKMGTP]B|[KMGTP]iB)?";

/// The separators that people write between groups of three digits.
const SEPARATORS: [char; 6] = [',', '.', '\'', ' ', '\u{a0}', '\u{202f}'];

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It has not the form of one, or it is too large or not whole.
    #[error("expected {expected}, got {text:?}")]
    Form {
        /// The form, with examples.
        expected: &'static str,
        /// The text.
        text: String,
    },
    /// It has separators between groups of three digits, which also separate a list or a fraction.
    #[error("{text:?} has a thousands separator; write {plain}")]
    Separated {
        /// The text.
        text: String,
        /// The forms without one.
        plain: String,
    },
    /// It has a comma before its fraction.
    #[error("{text:?} has a decimal comma; write {plain}")]
    Comma {
        /// The text.
        text: String,
        /// The form with a point.
        plain: String,
    },
    /// Its unit is misspelt.
    #[error("unknown unit `{unit}`; did you mean `{near}`?")]
    Misspelt {
        /// The unit in the text.
        unit: String,
        /// The unit that is nearest to it.
        near: &'static str,
    },
    /// Its unit is none, nor near to one.
    #[error("unknown unit `{unit}`; expected one of {forms}")]
    Unit {
        /// The unit in the text.
        unit: String,
        /// All units.
        forms: &'static str,
    },
}

/// A count: `200000`, `200_000`, `200k`, `1.5M` (k, M and G are decimal).
/// An error reports what was expected and names the nearest unit.
pub fn parse_count(text: &str) -> Result<u64, QuantityError> {
    // `10.000` would be 10, which nobody means who counts things.
    if let Some(plain) = ungrouped(text).filter(|_| text.contains('.')) {
        return Err(QuantityError::Separated { text: text.to_string(), plain });
    }
    let (number, worth) = COUNT.split(text)?;
    whole(&number, worth).filter(|_| is_exact(&number, worth)).ok_or_else(|| COUNT.wrong(text))
}

/// Bytes: `4096`, `64MiB`, `64M` (K, M, G, T and P are binary; kB, MB, GB, TB and PB are decimal). A fraction of a unit is
/// rounded to bytes. An error reports what was expected and names the nearest unit or all units.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, worth) = BYTES.split(text)?;
    let is_rounded = worth > 1.0 || is_exact(&number, worth);
    whole(&number, worth).filter(|_| is_rounded).ok_or_else(|| BYTES.wrong(text))
}

/// A duration in seconds: `10`, `10s`, `500ms`, `2m`, `1h`.
/// An error reports what was expected and names the nearest unit.
pub fn parse_seconds(text: &str) -> Result<f64, QuantityError> {
    let (number, worth) = DURATION.split(text)?;
    let number = number.parse::<f64>().map_err(|_| DURATION.wrong(text))?;
    // Divided rather than multiplied by a fraction, so that 500ms is exactly 0.5.
    Ok(if worth < 1.0 { number / (1.0 / worth).round() } else { number * worth })
}

impl Kind {
    /// The number (without `_`) of a text, and the value of its unit.
    fn split(&self, text: &str) -> Result<(String, f64), QuantityError> {
        let trimmed = text.trim();
        let is_number = |sign: char| sign.is_ascii_digit() || sign == '.' || sign == '_';
        let (number, unit) = trimmed.split_at(trimmed.find(|sign| !is_number(sign)).unwrap_or(trimmed.len()));
        let (number, unit) = (number.replace('_', ""), unit.trim_start());
        if number.is_empty() || unit.starts_with(|sign: char| !sign.is_alphabetic()) {
            return Err(self.wrong(text));
        }
        match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, worth)) => Ok((number, *worth)),
            None => Err(self.unknown(unit)),
        }
    }

    fn wrong(&self, text: &str) -> QuantityError {
        let (expected, own) = (self.expected, text.to_string());
        match (ungrouped(text), with_point(text)) {
            (Some(plain), _) => QuantityError::Separated { text: own, plain },
            (None, Some(plain)) => QuantityError::Comma { text: own, plain },
            (None, None) => QuantityError::Form { expected, text: own },
        }
    }

    fn unknown(&self, unit: &str) -> QuantityError {
        let names: Vec<&'static str> =
            self.units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        // In another case it may be another unit: `Mb` is a megabit.
        let is_ambiguous = names.iter().any(|name| name.eq_ignore_ascii_case(unit));
        // Common words for time units are many edits away from the letter.
        let near = match unit {
            "sec" | "secs" | "second" | "seconds" if names.contains(&"s") => Some("s"),
            "min" | "mins" | "minute" | "minutes" if names.contains(&"h") => Some("m"),
            // Every letter is one edit from every other.
            _ if unit.chars().count() > 1 && !is_ambiguous => nearest(unit, &names),
            _ => None,
        };
        let unit = unit.to_string();
        match near {
            Some(near) => QuantityError::Misspelt { unit, near },
            None => QuantityError::Unit { unit, forms: self.forms },
        }
    }
}

/// The forms of a number with thousands separators that have none: `1000 or 1k` for `1,000`; `None` if it has none, or a unit
/// after a point, which is a fraction: `1.500k`.
pub fn ungrouped(text: &str) -> Option<String> {
    let text = text.trim();
    let separator = text.chars().find(|sign| !sign.is_ascii_digit())?;
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != separator).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (number, unit) = (number.trim_end(), unit.trim());
    let mut groups = number.split(separator);
    let is_first =
        groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && !first.starts_with('0'));
    let (mut count, mut are_full) = (0, true);
    groups.for_each(|group| (count, are_full) = (count + 1, are_full && group.len() == 3));
    let is_fraction = separator == '.' && !unit.is_empty();
    let is_unit = unit.chars().all(char::is_alphabetic);
    if !SEPARATORS.contains(&separator) || !is_first || count == 0 || !are_full || is_fraction || !is_unit {
        return None;
    }
    let plain = format!("{}{unit}", number.replace(separator, ""));
    let short = plain.parse().map(count_text).ok().filter(|short| *short != plain);
    Some(short.map_or(plain.clone(), |short| format!("{plain} or {short}")))
}

/// A number with a decimal comma as one with a point: `1.5s` for `1,5s`; `None` for other texts.
fn with_point(text: &str) -> Option<String> {
    let (whole, rest) = text.trim().split_once(',')?;
    let digits = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
    let is_number = !whole.is_empty() && whole.chars().all(|sign| sign.is_ascii_digit()) && digits > 0;
    let is_unit = rest[digits..].trim().chars().all(char::is_alphabetic);
    (is_number && is_unit).then(|| format!("{whole}.{rest}"))
}

/// A number of units as an integer, rounded; `None` if it is too large.
fn whole(number: &str, worth: f64) -> Option<u64> {
    match number.parse::<u64>() {
        Ok(number) => number.checked_mul(worth as u64),
        Err(_) => Some(number.parse::<f64>().ok()? * worth)
            .filter(|value| *value < EXACT)
            .map(|value| value.round() as u64),
    }
}

/// Whether a number of units is an integer.
fn is_exact(number: &str, worth: f64) -> bool {
    number.parse::<f64>().is_ok_and(|number| (number * worth).fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::{bytes_text, count_text, time_text};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_counts() {
        const CASES: &[(&str, u64)] = &[
            ("0", 0),
            ("200000", 200_000),
            ("200_000", 200_000),
            ("200k", 200_000),
            ("1.5M", 1_500_000),
            ("2 G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, wanted) in CASES {
            assert_eq!(parse_count(text), Ok(*wanted), "{text}");
        }
    }

    #[test]
    fn reads_bytes() {
        const CASES: &[(&str, u64)] = &[
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("1kB", 1000),
            ("2GB", 2_000_000_000),
            ("2TiB", 2 << 40),
            ("0.5K", 512),
            ("1.01 KiB", 1034),
        ];
        for (text, wanted) in CASES {
            assert_eq!(parse_bytes(text), Ok(*wanted), "{text}");
        }
    }

    #[test]
    fn reads_durations() {
        const CASES: &[(&str, f64)] = &[
            ("10", 10.0),
            ("10s", 10.0),
            ("500ms", 0.5),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("0.1 s", 0.1),
            ("250us", 0.00025),
        ];
        for (text, wanted) in CASES {
            assert_eq!(parse_seconds(text), Ok(*wanted), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_quantities() {
        for text in ["", "k", "-5", "1.5", "0.0001k", "1e3", "5 apples", "1,000", "99999999999G", "1.2.3k"] {
            assert!(parse_count(text).is_err(), "{text:?}");
        }
        for text in ["", "-1", "0.5", "0.5B", "64Mb", "64MIB", "99999999T", "1.2.3k", "1,000"] {
            assert!(parse_bytes(text).is_err(), "{text:?}");
        }
        for text in ["", "s", "-5s", "1..2s", "5 sex"] {
            assert!(parse_seconds(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn separators_between_digits_are_named_with_the_number_without_them() {
        let count = |text: &str| parse_count(text).unwrap_err().to_string();
        assert_eq!(count("1,000"), "\"1,000\" has a thousands separator; write 1000 or 1k");
        assert_eq!(count("10,500"), "\"10,500\" has a thousands separator; write 10500");
        assert_eq!(count("1,234,567"), "\"1,234,567\" has a thousands separator; write 1234567");
        assert_eq!(count("10.000"), "\"10.000\" has a thousands separator; write 10000 or 10k");
        assert_eq!(count("1.000.000"), "\"1.000.000\" has a thousands separator; write 1000000 or 1M");
        assert_eq!(count("1 000"), "\"1 000\" has a thousands separator; write 1000 or 1k");
        assert_eq!(count("1'000k"), "\"1'000k\" has a thousands separator; write 1000k");
        assert_eq!(count("1,5k"), "\"1,5k\" has a decimal comma; write 1.5k");
        let seconds = |text: &str| parse_seconds(text).unwrap_err().to_string();
        assert_eq!(seconds("0,5"), "\"0,5\" has a decimal comma; write 0.5");
        assert_eq!(
            parse_bytes("4,096").unwrap_err().to_string(),
            "\"4,096\" has a thousands separator; write 4096"
        );
        for text in ["1.500k", "1.5M", "0.125k"] {
            assert!(parse_count(text).is_ok(), "{text}");
        }
        assert_eq!((parse_seconds("1.000"), parse_bytes("1.000")), (Ok(1.0), Ok(1)));
        for text in ["1,2", "1000,000", "1,0000", ",100", "1,,000", "a,000", "0,500", ""] {
            assert_eq!(ungrouped(text), None, "{text}");
        }
    }

    #[test]
    fn names_the_nearest_unit_or_all_of_them() {
        assert_eq!(parse_bytes("64MBi").unwrap_err().to_string(), "unknown unit `MBi`; did you mean `MiB`?");
        assert_eq!(parse_seconds("10sec").unwrap_err().to_string(), "unknown unit `sec`; did you mean `s`?");
        assert_eq!(
            parse_seconds("10 minutes").unwrap_err().to_string(),
            "unknown unit `minutes`; did you mean `m`?"
        );
        assert_eq!(parse_count("5 x").unwrap_err().to_string(), "unknown unit `x`; expected one of k, M, G");
        assert_eq!(
            parse_bytes("64Mb").unwrap_err().to_string(),
            "unknown unit `Mb`; expected one of B, KiB, MiB, GiB, TiB, PiB, K, M, G, T, P (powers of 1024), kB, MB, GB, \
             TB, PB (powers of 1000)"
        );
    }

    #[test]
    fn each_unit_is_in_the_list_of_accepted_forms() {
        for kind in [COUNT, BYTES, DURATION] {
            let forms = kind.forms.to_lowercase();
            let names: Vec<&str> = forms.split([' ', ',']).collect();
            for (unit, _) in kind.units.iter().filter(|(unit, _)| !unit.is_empty()) {
                assert!(names.contains(&unit.to_lowercase().as_str()), "{unit} is not in {names:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn printed_quantities_are_read_back(number in any::<u64>(), shift in 0u32..64) {
            let number = number >> shift;
            prop_assert_eq!(parse_count(&count_text(number)), Ok(number));
            prop_assert_eq!(parse_bytes(&number.to_string()), Ok(number));
            let near = |read: f64, printed: f64| (read - printed).abs() <= printed * 0.006;
            if (number as f64) < EXACT / 2.0 {
                prop_assert!(near(parse_bytes(&bytes_text(number)).unwrap() as f64, number as f64));
                prop_assert!(near(parse_seconds(&time_text(number as f64)).unwrap(), number as f64 / 1e9));
            }
        }

        #[test]
        fn each_unit_is_a_multiple(number in 0u64..1000, unit in prop::sample::select(BYTES.units)) {
            let text = format!("{number}{}", unit.0);
            prop_assert_eq!(parse_bytes(&text), Ok(number * unit.1 as u64));
        }

        #[test]
        fn texts_of_the_pattern_have_a_known_unit(text in BYTE_PATTERN) {
            let found = parse_bytes(&text);
            let is_unit = matches!(found, Ok(_) | Err(QuantityError::Form { .. } | QuantityError::Separated { .. }));
            prop_assert!(is_unit, "{found:?}");
        }

        #[test]
        fn no_text_panics(text in any::<String>(), number in "[0-9._]{1,30}", unit in "[a-zA-Z]{0,3}") {
            for text in [text, format!("{number}{unit}")] {
                let _ = (parse_count(&text), parse_bytes(&text), parse_seconds(&text));
            }
        }
    }
}
