//! Words of closed lists in records, which a record of a newer version may have more of.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A word of a closed list, or one that is not in it: a record stays readable whatever word it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<Known> {
    /// One of the list.
    Known(Known),
    /// One that this version does not know.
    Other(String),
}

impl<Known: Copy + Into<&'static str>> Word<Known> {
    /// As the record has it.
    pub fn as_str(&self) -> &str {
        match self {
            Word::Known(known) => (*known).into(),
            Word::Other(word) => word,
        }
    }

    /// Its meaning; none: this version does not know it.
    pub fn known(&self) -> Option<Known> {
        match self {
            Word::Known(known) => Some(*known),
            Word::Other(_) => None,
        }
    }
}

impl<Known> From<Known> for Word<Known> {
    fn from(known: Known) -> Word<Known> {
        Word::Known(known)
    }
}

impl<Known: FromStr> Word<Known> {
    /// The word that a text is.
    pub fn of(text: String) -> Word<Known> {
        text.parse().map_or_else(|_| Word::Other(text), Word::Known)
    }
}

impl<Known: PartialEq> PartialEq<Known> for Word<Known> {
    fn eq(&self, other: &Known) -> bool {
        matches!(self, Word::Known(known) if known == other)
    }
}

impl<Known: Copy + Into<&'static str>> fmt::Display for Word<Known> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl<Known: Copy + Into<&'static str>> Serialize for Word<Known> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, Known: FromStr> Deserialize<'de> for Word<Known> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<Known>, D::Error> {
        String::deserialize(deserializer).map(Word::of)
    }
}

impl<Known> JsonSchema for Word<Known> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{OpKind, Role};

    #[test]
    fn known_words_are_the_names_in_records_and_all_others_stay_as_they_are() {
        for kind in OpKind::ALL {
            let json = format!("{:?}", kind.name());
            let word: Word<OpKind> = serde_json::from_str(&json).unwrap();
            assert_eq!((&word, word.known()), (&Word::Known(kind), Some(kind)));
            assert_eq!((serde_json::to_string(&word).unwrap(), word.as_str()), (json, kind.name()));
        }
        for (text, role) in [("mix", Role::Mix), ("reader", Role::Reader), ("writer", Role::Writer)] {
            let word: Word<Role> = serde_json::from_str(&format!("{text:?}")).unwrap();
            assert!(word == role && word.to_string() == text, "{text}");
        }
        for text in ["", "Get", "multi_get", "merge-sort", "\u{1b}[31m"] {
            let json = serde_json::to_string(text).unwrap();
            let word: Word<OpKind> = serde_json::from_str(&json).unwrap();
            assert_eq!(word, Word::Other(text.to_string()));
            assert_eq!((serde_json::to_string(&word).unwrap(), word.known()), (json, None));
        }
        assert!(serde_json::from_str::<Word<OpKind>>("5").is_err(), "a number is no word");
    }
}
