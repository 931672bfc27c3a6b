//! Options that give an engine capabilities: the tables `gives` of its `engine.toml`.

use serde::Deserialize;

/// An option of an engine, and the capabilities that it gives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gives {
    /// The option's name.
    pub option: String,
    /// The value that gives the capabilities.
    pub value: String,
    /// The capabilities, by the names of `kvdyno engines`.
    pub capabilities: Vec<String>,
}
