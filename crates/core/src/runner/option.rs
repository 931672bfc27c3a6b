//! Checks the values of drivers' options and converts them to the form for drivers.

use crate::engine::OptionKind;
use kvdyno_measure::text::{listed, parse_bytes, parse_count};

/// What was expected instead of an option's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// One of these.
    #[error("expected {0}")]
    Choice(String),
    /// A flag.
    #[error("expected true or false")]
    Flag,
    /// A quantity: what is one.
    #[error("{0}")]
    Quantity(String),
}

/// Checks a value against an option's type (driver.h, `kv_option`); `256M` becomes digits.
pub fn option_value(kind: &OptionKind, value: &str) -> Result<String, OptionError> {
    match kind {
        OptionKind::Choice(choices) if choices.iter().any(|choice| choice == value) => Ok(value.into()),
        OptionKind::Choice(choices) => Err(OptionError::Choice(listed(choices, "or"))),
        OptionKind::Bytes => {
            let bytes = parse_bytes(value).map_err(|error| OptionError::Quantity(error.to_string()))?;
            Ok(bytes.to_string())
        }
        OptionKind::Count => {
            let count = parse_count(value).map_err(|error| OptionError::Quantity(error.to_string()))?;
            Ok(count.to_string())
        }
        OptionKind::Flag => value.parse::<bool>().map(|flag| flag.to_string()).map_err(|_| OptionError::Flag),
        OptionKind::Text | OptionKind::Unknown(_) => Ok(value.into()),
    }
}
