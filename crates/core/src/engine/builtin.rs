//! The built-in drivers, in the order in which users see them; and the names of those that a feature would add.

use super::abi::kv_driver;
use kvdyno_driver::table;

/// A driver, or the name of one that was not compiled in.
pub(super) struct BuiltIn {
    /// The name that users type.
    pub name: &'static str,
    /// The table; `None` if it was not compiled in.
    pub table: Option<&'static kv_driver>,
}

macro_rules! always {
    ($name:literal, $driver:ty) => {
        BuiltIn {
            name: $name,
            table: {
                static TABLE: kv_driver = table::<$driver>();
                Some(&TABLE)
            },
        }
    };
}

macro_rules! with_feature {
    ($name:literal, $feature:literal, $driver:ty) => {
        BuiltIn {
            name: $name,
            #[cfg(feature = $feature)]
            table: {
                static TABLE: kv_driver = table::<$driver>();
                Some(&TABLE)
            },
            #[cfg(not(feature = $feature))]
            table: None,
        }
    };
}

pub(super) static BUILT_IN: &[BuiltIn] = &[
    always!("null", kvdyno_null::Null),
    always!("memory-map", kvdyno_memory::MemoryMap),
    always!("memory-btree", kvdyno_memory::MemoryBtree),
    with_feature!("redb", "redb", kvdyno_redb::Redb),
    with_feature!("fjall", "fjall", kvdyno_fjall::Fjall),
    with_feature!("sled", "sled", kvdyno_sled::Sled),
    with_feature!("canopydb", "canopydb", kvdyno_canopydb::Canopydb),
    with_feature!("lmdb", "lmdb", kvdyno_lmdb::Lmdb),
    with_feature!("quick-cache", "quick-cache", kvdyno_quick_cache::QuickCache),
];
