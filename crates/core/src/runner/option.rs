//! Checks the values of drivers' options and converts them to the form for drivers.

use kvdyno_measure::text::{listed, parse_bytes, parse_count};

/// Checks a value against an option's type (driver.h, `kv_option`); `256M` becomes digits. An error reports what was
/// expected.
pub fn option_value(kind: &str, value: &str) -> Result<String, String> {
    if let Some(choices) = kind.strip_prefix("choice:") {
        let choices: Vec<&str> = choices.split('|').collect();
        let is_one = choices.contains(&value);
        return is_one
            .then(|| value.to_string())
            .ok_or_else(|| format!("expected {}", listed(&choices, "or")));
    }
    match kind {
        "bytes" => parse_bytes(value).map(|bytes| bytes.to_string()),
        "count" => parse_count(value).map(|count| count.to_string()),
        "flag" => {
            value.parse::<bool>().map(|flag| flag.to_string()).map_err(|_| "expected true or false".into())
        }
        _ => Ok(value.into()),
    }
}
