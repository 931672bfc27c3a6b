//! Collections: the rows of a workload are plain, or belong to many collections, each a hash, a sorted set or a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// No collections: each key has a value.
    #[default]
    String,
    /// Fields with values, in no order; a scan reads a complete hash.
    Hash,
    /// Fields with values, in the order of their bytes.
    Sorted,
    /// Values that are pushed at the right end and popped at the left.
    List,
}

impl DataType {
    /// The name in files and reports.
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
    /// The number of collections; ignored if there are none.
    pub count: u32,
    /// The type of each; `string`: there are none.
    pub r#type: DataType,
}

impl Default for Collections {
    /// No collections; sixteen once a type is given, as in KVDK's own script.
    fn default() -> Self {
        Collections { count: 16, r#type: DataType::String }
    }
}

impl Collections {
    /// Whether there are hashes or sorted collections: keys are fields of one.
    pub fn has_fields(&self) -> bool {
        matches!(self.r#type, DataType::Hash | DataType::Sorted)
    }

    /// Whether scans read complete hashes.
    pub fn are_hashes(&self) -> bool {
        self.r#type == DataType::Hash
    }

    /// Whether there are lists, which support only push and pop.
    pub fn are_lists(&self) -> bool {
        self.r#type == DataType::List
    }
}
