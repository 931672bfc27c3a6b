//! Checks the values of drivers' options and converts them to the form for drivers.

use crate::generator::parse_bytes;

/// Checks a value against an option's type (driver.h, `kv_option`); `256M` becomes digits. The error is the expected form.
pub fn option_value(kind: &str, value: &str) -> Result<String, String> {
    if let Some(choices) = kind.strip_prefix("choice:") {
        let is_one = choices.split('|').any(|choice| choice == value);
        return if is_one { Ok(value.into()) } else { Err(format!("one of {}", choices.replace('|', ", "))) };
    }
    match kind {
        "bytes" => {
            parse_bytes(value).map(|bytes| bytes.to_string()).map_err(|_| "bytes, such as 64MiB".into())
        }
        "count" => value.parse::<u64>().map(|count| count.to_string()).map_err(|_| "a number".into()),
        "flag" => value.parse::<bool>().map(|flag| flag.to_string()).map_err(|_| "true or false".to_string()),
        _ => Ok(value.into()),
    }
}
