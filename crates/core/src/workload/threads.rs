//! Numbers of threads, written as `4`, `cpus` or `cpus-1`; the CPUs are counted when the text is parsed.

use kvdyno_measure::text::parse_count;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

const A_NUMBER: &str = "threads such as 4, \"cpus\" or \"cpus-1\"";

/// A text that is no number of threads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {A_NUMBER}, got {0:?}")]
pub struct ThreadsError(String);

/// Threads: `4`, `cpus` for the number of CPUs that this process may use, or `cpus-1` for one less (but at least 1).
pub fn parse_threads(text: &str) -> Result<u32, ThreadsError> {
    let text = text.trim();
    let wrong = || ThreadsError(text.to_string());
    let Some(rest) = text.strip_prefix("cpus") else {
        return parse_count(text).ok().and_then(|count| u32::try_from(count).ok()).ok_or_else(wrong);
    };
    let less = match rest.trim() {
        "" => 0,
        rest => rest.strip_prefix('-').and_then(|less| less.trim().parse::<u32>().ok()).ok_or_else(wrong)?,
    };
    Ok(cpus().saturating_sub(less).max(1))
}

thread_local! {
    /// The number of CPUs that trials will have, if it differs from that of this process.
    static GIVEN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Returns the result of `read`, with `cpus` as the number of CPUs in all texts that it parses; none: the number for
/// this process.
pub fn with_cpus<Read>(cpus: Option<u32>, read: impl FnOnce() -> Read) -> Read {
    let before = GIVEN.replace(cpus);
    let found = read();
    GIVEN.set(before);
    found
}

/// The number of CPUs from [`with_cpus`], or else of those that this process may use by its affinity mask and the quota
/// of its control group.
fn cpus() -> u32 {
    if let Some(given) = GIVEN.get() {
        return given;
    }
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
}

/// A number of threads in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Threads(pub u32);

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = Threads;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(A_NUMBER)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Threads, E> {
        let threads = u32::try_from(value);
        threads.map(Threads).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Threads, E> {
        parse_threads(value).map(Threads).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader)
    }
}

impl Serialize for Threads {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u32(self.0)
    }
}

impl JsonSchema for Threads {
    fn schema_name() -> Cow<'static, str> {
        "Threads".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^(cpus ?(- ?[0-9]+)?|[0-9][0-9_]*(\\.[0-9]+)? ?[kKmMgG]?)$" }
            ],
            "examples": ["cpus-1"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_cpus_that_the_process_may_use() {
        let here = std::thread::available_parallelism().unwrap().get() as u32;
        assert_eq!(parse_threads("cpus"), Ok(here));
        assert_eq!(parse_threads("cpus-1"), Ok((here - 1).max(1)));
        assert_eq!(parse_threads("cpus - 100000"), Ok(1), "at least one");
        assert_eq!((parse_threads("4"), parse_threads("1k")), (Ok(4), Ok(1000)));
    }

    #[test]
    fn trials_may_have_other_cpus() {
        assert_eq!(with_cpus(Some(7), || (parse_threads("cpus"), parse_threads("cpus-1"))), (Ok(7), Ok(6)));
        let here = std::thread::available_parallelism().unwrap().get() as u32;
        assert_eq!(parse_threads("cpus"), Ok(here), "only inside the call");
    }

    #[test]
    fn refuses_invalid_numbers_of_threads() {
        for text in ["", "cpu", "cpus+1", "cpus-", "cpus-x", "-1", "1.5", "5000M", "cpus*2"] {
            let error = parse_threads(text).unwrap_err().to_string();
            assert_eq!(error, format!("expected {A_NUMBER}, got {text:?}"));
        }
    }
}
