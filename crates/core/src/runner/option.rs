//! Checks the values of drivers' options and converts them to the form for drivers.

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
pub fn option_value(kind: &str, value: &str) -> Result<String, OptionError> {
    if let Some(choices) = kind.strip_prefix("choice:") {
        let choices: Vec<&str> = choices.split('|').collect();
        let is_one = choices.contains(&value);
        return is_one.then(|| value.to_string()).ok_or_else(|| OptionError::Choice(listed(&choices, "or")));
    }
    match kind {
        "bytes" => {
            let bytes = parse_bytes(value).map_err(|error| OptionError::Quantity(error.to_string()))?;
            Ok(bytes.to_string())
        }
        "count" => {
            let count = parse_count(value).map_err(|error| OptionError::Quantity(error.to_string()))?;
            Ok(count.to_string())
        }
        "flag" => value.parse::<bool>().map(|flag| flag.to_string()).map_err(|_| OptionError::Flag),
        _ => Ok(value.into()),
    }
}
