//! How requests that arrive at a rate wait: in one queue or several, and what happens to late ones.

use crate::generator::Rate;
use kvdyno_measure::text::{parse_seconds, time_text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Whose requests a thread sends.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Arriving {
    /// One queue for all threads: the next free thread sends the next request (M/G/c).
    #[default]
    Shared,
    /// A queue for each thread, which has its part of the rate (c times M/G/1).
    Own,
}

impl Arriving {
    /// The words for it in reports.
    pub fn words(self) -> &'static str {
        match self {
            Arriving::Shared => "one queue for all threads",
            Arriving::Own => "a queue for each thread",
        }
    }
}

/// What happens to a request whose time has passed when a thread is free for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WhenLate {
    /// It is sent, however late.
    #[default]
    Queue,
    /// It is not sent if it is later than this many seconds, and counted.
    Drop(f64),
}

/// A text that is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected queue or drop:LIMIT, such as drop:10ms, got `{0}`")]
pub struct WhenLateError(String);

impl FromStr for WhenLate {
    type Err = WhenLateError;

    fn from_str(text: &str) -> Result<WhenLate, WhenLateError> {
        let wrong = || WhenLateError(text.to_string());
        let limit = match text.trim() {
            "queue" => return Ok(WhenLate::Queue),
            drop => drop.strip_prefix("drop:").ok_or_else(wrong)?,
        };
        parse_seconds(limit).map(WhenLate::Drop).map_err(|_| wrong())
    }
}

impl fmt::Display for WhenLate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhenLate::Queue => out.write_str("queue"),
            WhenLate::Drop(seconds) => write!(out, "drop:{seconds}s"),
        }
    }
}

impl TryFrom<String> for WhenLate {
    type Error = WhenLateError;

    fn try_from(text: String) -> Result<WhenLate, WhenLateError> {
        text.parse()
    }
}

impl From<WhenLate> for String {
    fn from(when: WhenLate) -> String {
        when.to_string()
    }
}

impl JsonSchema for WhenLate {
    fn schema_name() -> Cow<'static, str> {
        "WhenLate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What happens to a request whose time has passed when a thread is free for it: `queue` (it is sent) or \
                `drop:LIMIT` (if it is later than LIMIT, it is dropped and counted).",
            "type": "string",
            "pattern": "^(queue|drop:[0-9].*)$",
            "examples": ["queue", "drop:10ms"]
        })
    }
}

/// How requests of a phase arrive, in words: `20k requests/s, Poisson, one queue for all threads`.
pub fn arrivals_text(rate: &Rate, arriving: Arriving, late: WhenLate) -> String {
    let late = match late {
        WhenLate::Queue => String::new(),
        WhenLate::Drop(seconds) => {
            format!(", dropped if later than {}", time_text(seconds * 1e9))
        }
    };
    format!("{rate}, {}{late}", arriving.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        for (text, wanted) in
            [("queue", WhenLate::Queue), ("drop:10ms", WhenLate::Drop(0.01)), ("drop:2", WhenLate::Drop(2.0))]
        {
            let read: WhenLate = text.parse().unwrap();
            assert_eq!((read, read.to_string().parse()), (wanted, Ok(wanted)), "{text}");
        }
        for text in ["", "drop", "drop:", "drop:x", "drop:-1s", "skip"] {
            assert!(text.parse::<WhenLate>().is_err(), "{text}");
        }
    }
}
