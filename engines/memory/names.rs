//! What the two reference engines declare about themselves.

use crate::store::{Map, Store, Tree};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Info, Level, option};

pub(crate) const LEVELS: &[Level] = &[Level::None, Level::Process, Level::Power];

const CAPABILITIES: u64 = KV_MULTI_GET
    | KV_TRANSACTION
    | KV_TRANSACTION_READS
    | KV_MERGE_ADD
    | KV_MERGE_APPEND
    | KV_CAN_DELETE
    | KV_DELETE_TELLS
    | KV_OVERWRITE
    | KV_CAN_NEW
    | KV_KEYSPACES
    | KV_CAN_TOUCH;

const OPTIONS: &[kv_option] = &[option(
    c"log",
    c"choice:auto|on|off",
    c"auto",
    c"append-only file; auto: at levels process and power, and if one exists",
)];

/// The differences between the two engines, besides their container.
pub trait Named: Store {
    /// What the driver declares.
    const INFO: Info;
}

impl Named for Map {
    const INFO: Info = Info {
        name: c"memory-map",
        engine: c"std's hash map in 64 shards; optional append-only file",
        language: c"Rust",
        family: c"memory",
        capabilities: CAPABILITIES,
        levels: LEVELS,
        key_size_max: 0,
        options: OPTIONS,
    };
}

impl Named for Tree {
    const INFO: Info = Info {
        name: c"memory-btree",
        engine: c"std's B-tree map behind one lock; optional append-only file",
        language: c"Rust",
        family: c"memory",
        capabilities: CAPABILITIES | KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_INDEXES | KV_LISTS,
        levels: LEVELS,
        key_size_max: 0,
        options: OPTIONS,
    };
}
