//! Collections: the rows of a workload are plain, or belong to many collections, each a hash, a sorted set or a list.

use super::quantity::Count;
use super::table::table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The type of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
        self.into()
    }
}

table! {
    /// The collections that keys are fields of, by their numbers.
    #[derive(Copy, Eq)]
    Collections, CollectionsFile as "Collections", "a table such as { count = 16, type = \"hash\" }" {
        /// The number of collections, up to 65535; ignored if there are none. Default: 16, as in KVDK's own script.
        count: u32, Count<u32> = 16;
        /// The type of each: `hash`, `sorted` or `list`; `string` for no collections. Default: string.
        r#type: DataType, DataType = DataType::String;
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
