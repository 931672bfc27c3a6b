//! Counts, bytes, durations and sizes as people write them: `200k`, `64MiB`, `500ms`, `uniform:1-100`.

use crate::generator::{SizeSpec, nearest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The first number that a double cannot distinguish from its neighbour; integers print exactly below it.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A unit and its value.
type Unit = (&'static str, f64);

const COUNT_UNITS: &[Unit] =
    &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("K", 1e3), ("m", 1e6), ("g", 1e9)];

/// `M` is binary, because caches and files are sized that way; decimal units have a `B`, as in `MB`.
const BYTE_UNITS: &[Unit] = &[
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("TiB", 1099511627776.0),
    ("K", 1024.0),
    ("M", 1048576.0),
    ("G", 1073741824.0),
    ("T", 1099511627776.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("k", 1024.0),
    ("m", 1048576.0),
    ("g", 1073741824.0),
    ("t", 1099511627776.0),
];

/// Units per second; values are divided rather than multiplied, so that 500ms is exactly 0.5.
const SECOND_PARTS: &[Unit] = &[("ns", 1e9), ("us", 1e6), ("ms", 1e3)];
const SECOND_UNITS: &[Unit] = &[("", 1.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

const A_COUNT: &str = "a count such as 200000 or \"200k\"";
const A_BYTE_COUNT: &str = "bytes such as 4096 or \"64MiB\"";
const A_DURATION: &str = "seconds such as 10 or a duration such as \"500ms\" or \"2m\"";
const A_SIZE: &str = "a size such as 100, \"4KiB\", \"uniform:1-100\", \"zipf:1-1024\", \"normal:100,20\" or \
    \"histogram:100*9,1000*1\"";

/// A count: `200000`, `200_000`, `200k`, `1.5M` (k, M and G are decimal).
/// An error reports what was expected and names the nearest unit.
pub fn parse_count(text: &str) -> Result<u64, String> {
    whole(text, COUNT_UNITS, A_COUNT)
}

/// A short form of a count: `1M`, `500k`, or all digits if it is not round.
pub fn count_text(count: u64) -> String {
    match count {
        _ if count > 0 && count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        _ if count > 0 && count.is_multiple_of(1000) => format!("{}k", count / 1000),
        _ => count.to_string(),
    }
}

/// Bytes: `4096`, `64MiB`, `64M` (K, M, G and T are binary; kB, MB, GB and TB are decimal).
/// An error reports what was expected and names the nearest unit.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    whole(text, BYTE_UNITS, A_BYTE_COUNT)
}

/// A duration in seconds: `10`, `10s`, `500ms`, `2m`, `1h`.
/// An error reports what was expected and names the nearest unit.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    let Ok(number) = number.parse::<f64>() else {
        return Err(format!("expected {A_DURATION}, got {text:?}"));
    };
    if let Some((_, parts)) = SECOND_PARTS.iter().find(|(name, _)| *name == unit) {
        return Ok(number / parts);
    }
    match SECOND_UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, worth)) => Ok(number * worth),
        None => Err(unknown_unit(unit, SECOND_PARTS.iter().chain(SECOND_UNITS))),
    }
}

/// A size in bytes or a distribution of sizes: `100`, `4KiB`, `uniform:1-100`, and the other forms of `SizeSpec`.
/// An error reports what was expected.
pub fn parse_size(text: &str) -> Result<SizeSpec, String> {
    text.parse::<SizeSpec>().map_err(|error| error.to_string())
}

/// The number (without `_`) and the unit of a text, without the blank between them.
fn split(text: &str) -> (String, &str) {
    let text = text.trim();
    let end =
        text.find(|sign: char| !sign.is_ascii_digit() && sign != '.' && sign != '_').unwrap_or(text.len());
    (text[..end].replace('_', ""), text[end..].trim_start())
}

fn whole(text: &str, units: &[Unit], expected: &str) -> Result<u64, String> {
    let wrong = || format!("expected {expected}, got {text:?}");
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(wrong());
    }
    let Some((_, worth)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_unit(unit, units.iter()));
    };
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(*worth as u64).ok_or_else(wrong);
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * worth;
    if value.fract() == 0.0 && value < EXACT { Ok(value as u64) } else { Err(wrong()) }
}

fn unknown_unit<'a>(unit: &str, units: impl Iterator<Item = &'a Unit>) -> String {
    let mut names: Vec<&str> = units.map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
    // Common words for time units are many edits away from the letter.
    let near = match unit {
        "sec" | "secs" | "second" | "seconds" if names.contains(&"s") => Some("s"),
        "min" | "mins" | "minute" | "minutes" if names.contains(&"h") => Some("m"),
        _ if unit.chars().count() > 1 => nearest(unit, &names),
        // Every letter is one edit from every other.
        _ => None,
    };
    if let Some(near) = near {
        return format!("unknown unit `{unit}`; did you mean `{near}`?");
    }
    // Each letter once: `K` and `k` are the same.
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.to_lowercase()));
    format!("unknown unit `{unit}`; expected one of {}", names.join(", "))
}

/// A count in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count<T>(pub T);

/// Bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bytes(pub u64);

/// Seconds in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds(pub f64);

/// A plain number in a file; an integer is written without a decimal point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub f64);

/// A size in a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Size(pub SizeSpec);

/// Reads a number or a text with a unit.
struct Reader<T> {
    expected: &'static str,
    from_count: fn(u64) -> Result<T, String>,
    from_number: fn(f64) -> Option<T>,
    from_text: fn(&str) -> Result<T, String>,
}

impl<T> de::Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        (self.from_count)(value).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        (self.from_number)(value).ok_or_else(|| E::invalid_type(de::Unexpected::Float(value), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.from_text)(text).map_err(E::custom)
    }
}

fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T, String> {
    T::try_from(value).map_err(|_| format!("expected a count of at most {}, got {value}", u32::MAX))
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Count<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_COUNT,
            from_count: |value| narrow(value).map(Count),
            from_number: |_| None,
            from_text: |text| parse_count(text).and_then(narrow).map(Count),
        })
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_BYTE_COUNT,
            from_count: |value| Ok(Bytes(value)),
            from_number: |_| None,
            from_text: |text| parse_bytes(text).map(Bytes),
        })
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_DURATION,
            from_count: |value| Ok(Seconds(value as f64)),
            from_number: |value| Some(Seconds(value)),
            from_text: |text| parse_seconds(text).map(Seconds),
        })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        f64::deserialize(source).map(Number)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_SIZE,
            from_count: |value| {
                let size = SizeSpec::Fixed(narrow(value)?);
                size.checked().map(Size).map_err(|error| error.to_string())
            },
            from_number: |_| None,
            from_text: |text| parse_size(text).map(Size),
        })
    }
}

/// Writes an integer in a form that TOML supports: above 63 bits it becomes a string.
fn write_count<S: Serializer>(value: u64, out: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(value) {
        Ok(value) => out.serialize_i64(value),
        Err(_) => out.serialize_str(&value.to_string()),
    }
}

fn write_number<S: Serializer>(value: f64, out: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < EXACT {
        out.serialize_i64(value as i64)
    } else {
        out.serialize_f64(value)
    }
}

impl<T: Copy + Into<u64>> Serialize for Count<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        write_count(self.0.into(), out)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        write_count(self.0, out)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        write_number(self.0, out)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        write_number(self.0, out)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            SizeSpec::Fixed(size) => out.serialize_u32(*size),
            other => out.serialize_str(&other.to_string()),
        }
    }
}

/// A number, or a string with a unit that matches `pattern`.
fn quantity_schema(number: &str, pattern: &str, example: &str) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": number, "minimum": 0 },
            { "type": "string", "pattern": pattern }
        ],
        "examples": [example]
    })
}

/// Implements the schema of a type from its name and body.
macro_rules! schema {
    ([$($generic:tt)*] $type:ty, $name:literal, $body:expr) => {
        impl<$($generic)*> JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $body
            }
        }
    };
}

schema!([T] Count<T>, "Count", quantity_schema("integer", "^[0-9][0-9_]*(\\.[0-9]+)? ?[kKmMgG]?$", "200k"));
schema!([] Bytes, "Bytes", quantity_schema("integer", "^[0-9][0-9_]*(\\.[0-9]+)? ?([kKmMgGtT]?B?|[KMGT]iB)$", "64MiB"));
schema!([] Seconds, "Seconds", quantity_schema("number", "^[0-9][0-9_]*(\\.[0-9]+)? ?(ns|us|ms|s|m|h)?$", "500ms"));
schema!([] Number, "Number", json_schema!({ "type": "number" }));
schema!([] Size, "Size", SizeSpec::json_schema(&mut SchemaGenerator::default()));

#[cfg(test)]
mod tests {
    use super::*;

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
        for (text, expected) in CASES {
            assert_eq!(parse_count(text), Ok(*expected), "{text}");
        }
    }

    #[test]
    fn writes_counts_as_they_are_read() {
        for (count, expected) in [(0, "0"), (999, "999"), (1500, "1500"), (2000, "2k"), (1_500_000, "1500k")]
        {
            assert_eq!(count_text(count), expected);
            assert_eq!(parse_count(expected), Ok(count));
        }
        assert_eq!((count_text(10_000_000), count_text(4_000_000_000)), ("10M".into(), "4000M".into()));
    }

    #[test]
    fn reads_bytes() {
        const CASES: &[(&str, u64)] = &[
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64M", 64 << 20),
            ("1kB", 1000),
            ("2GB", 2_000_000_000),
            ("0.5K", 512),
        ];
        for (text, expected) in CASES {
            assert_eq!(parse_bytes(text), Ok(*expected), "{text}");
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
        for (text, expected) in CASES {
            assert_eq!(parse_seconds(text), Ok(*expected), "{text}");
        }
    }

    #[test]
    fn reads_sizes() {
        assert_eq!(parse_size("100"), Ok(SizeSpec::Fixed(100)));
        assert_eq!(parse_size("4KiB"), Ok(SizeSpec::Fixed(4096)));
        assert_eq!(parse_size("uniform:1-100"), Ok(SizeSpec::Uniform(1, 100)));
    }

    #[test]
    fn refuses_invalid_quantities() {
        for text in ["", "k", "-5", "1.5", "0.0001k", "1e3", "5 apples", "99999999999G", "1.2.3k"] {
            assert!(parse_count(text).is_err(), "{text:?}");
        }
        for text in ["", "s", "-5s", "1..2s", "5 sex"] {
            assert!(parse_seconds(text).is_err(), "{text:?}");
        }
        for text in ["", "-1", "5G", "big", "100%"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_the_nearest_unit() {
        let error = |result: Result<u64, String>| result.unwrap_err();
        assert_eq!(error(parse_bytes("64MBi")), "unknown unit `MBi`; did you mean `MiB`?");
        assert_eq!(parse_seconds("10sec").unwrap_err(), "unknown unit `sec`; did you mean `s`?");
        assert_eq!(parse_seconds("10 minutes").unwrap_err(), "unknown unit `minutes`; did you mean `m`?");
        assert_eq!(error(parse_count("5 x")), "unknown unit `x`; expected one of k, M, G");
    }
}
