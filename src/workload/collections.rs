//! What the rows of a workload are: plain ones, or those of many collections, each a hash, a sorted set or a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a collection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// No collections: a key has a value.
    #[default]
    String,
    /// Fields with values, in no order; a scan is of a whole one.
    Hash,
    /// Fields with values, in the order of their bytes.
    Sorted,
    /// Values that are pushed at the right end and popped at the left.
    List,
}

impl DataType {
    /// As files and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            DataType::String => "string",
            DataType::Hash => "hash",
            DataType::Sorted => "sorted",
            DataType::List => "list",
        }
    }
}

/// The collections that the keys are spread over, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Collections {
    /// How many; of no meaning where there are none.
    pub count: u32,
    /// What each is; `string`: there are none.
    pub r#type: DataType,
}

impl Default for Collections {
    /// None; and sixteen once a type is given, as KVDK's own script has it.
    fn default() -> Self {
        Collections { count: 16, r#type: DataType::String }
    }
}

impl Collections {
    /// Whether there are hashes or sorted collections: keys are fields of one.
    pub fn has_fields(&self) -> bool {
        matches!(self.r#type, DataType::Hash | DataType::Sorted)
    }

    /// Whether scans are of whole hashes.
    pub fn are_hashes(&self) -> bool {
        self.r#type == DataType::Hash
    }

    /// Whether there are lists, which are pushed and popped and nothing else.
    pub fn are_lists(&self) -> bool {
        self.r#type == DataType::List
    }
}
