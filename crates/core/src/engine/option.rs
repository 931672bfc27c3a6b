//! The options of a driver, and the types of their values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The prefix of the type of an option that has a list of values.
const CHOICE: &str = "choice:";

/// An option of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionInfo {
    /// `name` of `name=value`.
    pub name: String,
    /// The type of its values.
    pub kind: OptionKind,
    /// The value if it is not set.
    pub default_value: String,
    /// Help, one line.
    pub help: String,
}

/// The type of an option's values (driver.h, `kv_option`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum OptionKind {
    /// `bytes`: a size.
    Bytes,
    /// `count`: a number.
    Count,
    /// `flag`: true or false.
    Flag,
    /// `choice:a|b`: one of these.
    Choice(Vec<String>),
    /// `text`.
    Text,
    /// What no driver should have: a breach of the rules, which is reported elsewhere.
    Unknown(String),
}

impl From<String> for OptionKind {
    fn from(text: String) -> OptionKind {
        match text.as_str() {
            "bytes" => OptionKind::Bytes,
            "count" => OptionKind::Count,
            "flag" => OptionKind::Flag,
            "text" => OptionKind::Text,
            other => match other.strip_prefix(CHOICE) {
                Some(choices) => OptionKind::Choice(choices.split('|').map(str::to_string).collect()),
                None => OptionKind::Unknown(text),
            },
        }
    }
}

impl From<OptionKind> for String {
    fn from(kind: OptionKind) -> String {
        kind.to_string()
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionKind::Bytes => out.write_str("bytes"),
            OptionKind::Count => out.write_str("count"),
            OptionKind::Flag => out.write_str("flag"),
            OptionKind::Choice(choices) => write!(out, "{CHOICE}{}", choices.join("|")),
            OptionKind::Text => out.write_str("text"),
            OptionKind::Unknown(text) => out.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_written_as_the_driver_told_it() {
        for (text, wanted) in [
            ("bytes", OptionKind::Bytes),
            ("count", OptionKind::Count),
            ("flag", OptionKind::Flag),
            ("text", OptionKind::Text),
            ("choice:a|b", OptionKind::Choice(vec!["a".into(), "b".into()])),
            ("choice:", OptionKind::Choice(vec![String::new()])),
            ("choice", OptionKind::Unknown("choice".into())),
            ("Bytes", OptionKind::Unknown("Bytes".into())),
            ("", OptionKind::Unknown(String::new())),
        ] {
            let json = format!("{text:?}");
            let kind: OptionKind = serde_json::from_str(&json).unwrap();
            assert_eq!(kind, wanted);
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
            assert_eq!(kind.to_string(), text);
        }
    }
}
