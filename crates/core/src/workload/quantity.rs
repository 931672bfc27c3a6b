//! Counts, bytes, durations and sizes in files: numbers, or texts such as `200k`, `64MiB`, `500ms`, `uniform:1-100`.

use crate::generator::{SizeSpec, SpecError};
use kvdyno_measure::text::{
    A_BYTE_COUNT, A_COUNT, A_DURATION, BYTE_PATTERN, EXACT, parse_bytes, parse_count, parse_seconds,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

const A_SIZE: &str = "a size such as 100, \"4KiB\", \"uniform:1-100\", \"zipf:1-1024\", \"normal:100,20\" or \
    \"histogram:100*9,1000*1\"";

/// A size in bytes or a distribution of sizes: `100`, `4KiB`, `uniform:1-100`, and the other forms of `SizeSpec`.
/// An error reports what was expected.
pub fn parse_size(text: &str) -> Result<SizeSpec, SpecError> {
    text.parse()
}

/// Why a quantity in a file is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum QuantityError {
    /// What was expected instead of a text.
    #[error("{0}")]
    Text(String),
    /// A count that is too large for its field.
    #[error("expected a count of at most {most}, got {0}", most = u32::MAX)]
    Count(u64),
    #[error("{0}")]
    Size(#[from] SpecError),
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
    from_count: fn(u64) -> Result<T, QuantityError>,
    from_number: fn(f64) -> Option<T>,
    from_text: fn(&str) -> Result<T, QuantityError>,
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

fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T, QuantityError> {
    T::try_from(value).map_err(|_| QuantityError::Count(value))
}

fn of_text(error: impl ToString) -> QuantityError {
    QuantityError::Text(error.to_string())
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Count<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_COUNT,
            from_count: |value| narrow(value).map(Count),
            from_number: |_| None,
            from_text: |text| parse_count(text).map_err(of_text).and_then(narrow).map(Count),
        })
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_BYTE_COUNT,
            from_count: |value| Ok(Bytes(value)),
            from_number: |_| None,
            from_text: |text| parse_bytes(text).map(Bytes).map_err(of_text),
        })
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader {
            expected: A_DURATION,
            from_count: |value| Ok(Seconds(value as f64)),
            from_number: |value| Some(Seconds(value)),
            from_text: |text| parse_seconds(text).map(Seconds).map_err(of_text),
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
            from_count: |value| Ok(Size(SizeSpec::Fixed(narrow(value)?).checked()?)),
            from_number: |_| None,
            from_text: |text| Ok(Size(parse_size(text)?)),
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
schema!([] Bytes, "Bytes", quantity_schema("integer", &format!("^{BYTE_PATTERN}$"), "64MiB"));
schema!([] Seconds, "Seconds", quantity_schema("number", "^[0-9][0-9_]*(\\.[0-9]+)? ?(ns|us|ms|s|m|h)?$", "500ms"));
schema!([] Number, "Number", json_schema!({ "type": "number" }));
schema!([] Size, "Size", SizeSpec::json_schema(&mut SchemaGenerator::default()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        assert_eq!(parse_size("100"), Ok(SizeSpec::Fixed(100)));
        assert_eq!(parse_size("4KiB"), Ok(SizeSpec::Fixed(4096)));
        assert_eq!(parse_size("uniform:1-100"), Ok(SizeSpec::Uniform(1, 100)));
    }

    #[test]
    fn refuses_invalid_sizes() {
        for text in ["", "-1", "5G", "big", "100%"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }
}
