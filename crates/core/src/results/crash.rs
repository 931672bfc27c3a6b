//! How databases are crashed, and what they were seen to survive: the words of certificates.

use super::Word;
use crate::workload::Durability;
use kvdyno_measure::text::listed;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What is said of an engine that a crash during the creation of the database can leave without one.
const CREATION: &str = "creation is not atomic";
/// The class if nothing decides it.
const NO_CLASS: &str = "not measured";
/// Between a class and what is said of the creation.
const THEN: &str = "; ";

/// There is no kind of crash of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", listed(&Mode::VARIANTS.iter().map(|mode| format!("`{mode}`")).collect::<Vec<_>>(), "or"))]
pub struct UnknownMode;

/// How a database is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    /// Its process is killed at a random moment.
    Kill,
    /// Its process is killed at each of its calls.
    Calls,
    /// Its file system is cut off from the device, as by a power failure.
    Cut,
    /// What a power failure may leave on a device with a volatile cache is rebuilt from a recording.
    Replay,
}

impl Mode {
    /// The level whose promise includes this crash.
    pub fn promised_at(self) -> Durability {
        match self {
            Mode::Kill | Mode::Calls => Durability::Process,
            Mode::Cut | Mode::Replay => Durability::Power,
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Mode, UnknownMode> {
        Mode::VARIANTS.iter().copied().find(|mode| mode.to_string() == text).ok_or(UnknownMode)
    }
}

/// What a database survives, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Class {
    /// A kill loses everything.
    Volatile,
    /// A kill may leave a database that is corrupt.
    #[strum(serialize = "a kill may corrupt")]
    KillCorrupts,
    /// A kill loses only the last commits.
    #[strum(serialize = "survives kill with loss")]
    KillLosesEnd,
    /// A kill loses nothing; a power cut was not tested.
    #[strum(serialize = "survives kill; power cut not tested")]
    SurvivesKill,
    /// A kill loses nothing; a power cut may leave a database that is corrupt.
    #[strum(serialize = "survives kill; a power cut may corrupt")]
    CutCorrupts,
    /// A kill loses nothing, a power cut only the last commits.
    #[strum(serialize = "a power cut loses only the last commits")]
    CutLosesEnd,
    /// Nothing acknowledged is lost by either.
    #[strum(serialize = "nothing acknowledged is lost")]
    LosesNothing,
}

/// What crashes have shown of a level: its class, and what they leave of a database that is being created. Files have it as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Measured {
    /// The class; `None` if nothing decides it.
    pub class: Option<Word<Class>>,
    /// Whether a crash while the database was created has left one that can neither be opened nor be created again.
    pub has_broken_creation: bool,
}

impl Measured {
    /// It in words; `None` if nothing was shown.
    pub fn text(&self) -> Option<String> {
        let class = self.class.as_ref().map(Word::as_str);
        let creation = self.has_broken_creation.then_some(CREATION);
        let words: Vec<&str> = class.into_iter().chain(creation).collect();
        (!words.is_empty()).then(|| words.join(THEN))
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text().as_deref().unwrap_or(NO_CLASS))
    }
}

impl From<Measured> for String {
    fn from(measured: Measured) -> String {
        measured.to_string()
    }
}

impl From<String> for Measured {
    fn from(text: String) -> Measured {
        let before = text.strip_suffix(CREATION);
        let class = match before {
            Some("") => None,
            Some(before) => before.strip_suffix(THEN),
            None => Some(text.as_str()).filter(|text| *text != NO_CLASS),
        };
        let has_broken_creation = before.is_some_and(|before| before.is_empty() || class.is_some());
        // What ends in the same words and is no class before them is a word that this version does not know.
        let class = if before.is_some() && !has_broken_creation { Some(text.as_str()) } else { class };
        Measured { class: class.map(|class| Word::of(class.to_string())), has_broken_creation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_class_is_written_as_it_was_read() {
        let class = |class: Class| Some(Word::Known(class));
        let other = |text: &str| Some(Word::Other(text.to_string()));
        for (text, class, has_broken_creation) in [
            ("not measured", None, false),
            ("creation is not atomic", None, true),
            ("volatile", class(Class::Volatile), false),
            ("survives kill; power cut not tested", class(Class::SurvivesKill), false),
            ("nothing acknowledged is lost; creation is not atomic", class(Class::LosesNothing), true),
            (
                "survives kill; a power cut may corrupt; creation is not atomic",
                class(Class::CutCorrupts),
                true,
            ),
            ("survives anything", other("survives anything"), false),
            ("survives anything; creation is not atomic", other("survives anything"), true),
            ("recreation is not atomic", other("recreation is not atomic"), false),
            ("", other(""), false),
        ] {
            let json = serde_json::to_string(text).unwrap();
            let measured: Measured = serde_json::from_str(&json).unwrap();
            assert_eq!(measured, Measured { class, has_broken_creation }, "{text}");
            assert_eq!(serde_json::to_string(&measured).unwrap(), json);
        }
    }

    #[test]
    fn an_unknown_way_to_crash_is_refused_with_the_known_ones() {
        assert_eq!("replay".parse(), Ok(Mode::Replay));
        assert_eq!(
            "Kill".parse::<Mode>().unwrap_err().to_string(),
            "expected `kill`, `calls`, `cut` or `replay`"
        );
        assert_eq!(Word::<Mode>::of("burn".to_string()), Word::Other("burn".to_string()));
    }
}
