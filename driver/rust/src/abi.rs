//! The Rust mirror of `driver/include/driver.h`: same names, same layout, no behaviour. `tests/abi.rs` compares the two.
#![allow(
    non_camel_case_types,
    missing_docs,
    reason = "the names are those of driver.h, which documents them"
)]

use std::ffi::{c_char, c_void};
use std::sync::atomic::AtomicU32;

pub const KV_ABI: u32 = 2;
pub const KV_TEXT: usize = 232;

pub const KV_NONE: u32 = 0;
pub const KV_PROCESS: u32 = 1;
pub const KV_POWER: u32 = 2;
pub const KV_DEFAULT: u32 = 3;

pub const KV_NOTHING: u8 = 0;
pub const KV_GET: u8 = 1;
pub const KV_PUT: u8 = 2;
pub const KV_DELETE: u8 = 3;
pub const KV_SCAN: u8 = 4;
pub const KV_MERGE: u8 = 5;
pub const KV_BEGIN: u8 = 6;
pub const KV_COMMIT: u8 = 7;
pub const KV_ABORT: u8 = 8;
pub const KV_DROP: u8 = 9;
pub const KV_PUSH: u8 = 10;
pub const KV_POP: u8 = 11;

pub const KV_JOIN: u16 = 1 << 0;
pub const KV_ATOMIC: u16 = 1 << 1;
pub const KV_NEW: u16 = 1 << 2;
pub const KV_REVERSE: u16 = 1 << 3;
pub const KV_PREFIX: u16 = 1 << 4;
pub const KV_KEYS: u16 = 1 << 5;
pub const KV_RESUME: u16 = 1 << 6;
pub const KV_HOLD: u16 = 1 << 7;
pub const KV_TOUCH: u16 = 1 << 8;
pub const KV_APPEND: u16 = 1 << 9;
pub const KV_STRONG: u16 = 1 << 10;

pub const KV_OK: u32 = 0;
pub const KV_NOT_FOUND: u32 = 1;
pub const KV_EXISTS: u32 = 2;
pub const KV_SHORT: u32 = 3;
pub const KV_CONFLICT: u32 = 4;
pub const KV_ABORTED: u32 = 5;
pub const KV_FULL: u32 = 6;
pub const KV_TOO_LARGE: u32 = 7;
pub const KV_UNSUPPORTED: u32 = 8;
pub const KV_NOT_RUN: u32 = 9;
pub const KV_ERROR: u32 = 10;

pub const KV_CLOCK_MONOTONIC: u32 = 0;
pub const KV_CLOCK_COUNTER: u32 = 1;

pub const KV_ORDERED: u64 = 1 << 0;
pub const KV_CAN_REVERSE: u64 = 1 << 1;
pub const KV_CAN_PREFIX: u64 = 1 << 2;
pub const KV_MULTI_GET: u64 = 1 << 3;
pub const KV_TRANSACTION: u64 = 1 << 4;
pub const KV_TRANSACTION_READS: u64 = 1 << 5;
pub const KV_MERGE_ADD: u64 = 1 << 6;
pub const KV_MERGE_APPEND: u64 = 1 << 7;
pub const KV_CAN_DELETE: u64 = 1 << 8;
pub const KV_DELETE_TELLS: u64 = 1 << 9;
pub const KV_OVERWRITE: u64 = 1 << 10;
pub const KV_CAN_NEW: u64 = 1 << 11;
pub const KV_KEYSPACES: u64 = 1 << 12;
pub const KV_COLLECTIONS: u64 = 1 << 13;
pub const KV_TIME_TO_LIVE: u64 = 1 << 14;
pub const KV_FIXED_KEY_SIZE: u64 = 1 << 15;
pub const KV_KEEPS_KEY: u64 = 1 << 16;
pub const KV_KEEPS_VALUE: u64 = 1 << 17;
pub const KV_IN_MEMORY: u64 = 1 << 18;
pub const KV_SINGLE_WRITER: u64 = 1 << 19;
pub const KV_SCAN_BLOCKS_WRITES: u64 = 1 << 20;
pub const KV_CAN_HOLD: u64 = 1 << 21;
pub const KV_CAN_LONG_TRANSACTION: u64 = 1 << 22;
pub const KV_CAN_TOUCH: u64 = 1 << 23;
pub const KV_SINGLE_THREAD: u64 = 1 << 24;
pub const KV_STORES_NOTHING: u64 = 1 << 25;
pub const KV_INDEXES: u64 = 1 << 26;
pub const KV_LISTS: u64 = 1 << 27;
pub const KV_EVICTS: u64 = 1 << 28;
pub const KV_LIVE_STATS: u64 = 1 << 29;
pub const KV_NO_EMPTY_VALUES: u64 = 1 << 30;

pub const KV_CREATE: u32 = 1 << 0;
pub const KV_READ_ONLY: u32 = 1 << 1;

pub const KV_FLUSH: u32 = 0;
pub const KV_COMPACT: u32 = 1;
pub const KV_SETTLE: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_op {
    pub kind: u8,
    pub slot: u8,
    pub flags: u16,
    pub keyspace: u16,
    pub split: u16,
    pub key: *const u8,
    pub value: *const u8,
    pub out: *mut u8,
    pub key_length: u32,
    pub value_length: u32,
    pub out_size: u32,
    pub limit: u32,
    pub due: u64,
    pub user: u64,
    pub start: u64,
    pub end: u64,
    pub length: u64,
    pub needed: u64,
    pub detail: u64,
    pub rows: u32,
    pub retries: u32,
    pub status: u32,
    pub reserved: [u32; 3],
}

#[repr(C)]
pub struct kv_batch {
    pub ops: *mut kv_op,
    pub count: u32,
    pub done: AtomicU32,
    pub start: u64,
    pub deadline: u64,
    pub stop: *const AtomicU32,
    /// Ticks that belong to no op: spinning for due times, and handing the batch over to another thread.
    pub waited: u64,
    pub clock: u32,
    pub error_op: u32,
    pub error: [u8; KV_TEXT],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_option {
    pub name: *const c_char,
    pub kind: *const c_char,
    pub default_value: *const c_char,
    pub help: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_setting {
    pub name: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct kv_index {
    pub keyspace: u16,
    pub index_keyspace: u16,
    pub from: u32,
    pub length: u32,
    pub clustering: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_config {
    pub abi: u32,
    pub size: u32,
    pub path: *const c_char,
    pub level: u32,
    pub flags: u32,
    pub cache_bytes: u64,
    pub expected_rows: u64,
    pub disk_limit_bytes: u64,
    pub key_size_max: u32,
    pub key_size_fixed: u32,
    pub value_size_max: u32,
    pub threads: u32,
    pub keyspaces: u32,
    pub index_count: u32,
    pub indexes: *const kv_index,
    pub settings: *const kv_setting,
    pub setting_count: u32,
    pub kinds: u32,
    pub op_flags: u32,
    pub clock: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_opened {
    pub size: u32,
    pub level: u32,
    pub capabilities: u64,
    pub cache_bytes: u64,
    pub version: [u8; 64],
    pub compression: [u8; 32],
    pub settings: [u8; 2048],
    pub error: [u8; KV_TEXT],
}

pub enum kv_database {}
pub enum kv_session {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_arena {
    pub base: *mut u8,
    pub size: u64,
}

pub type kv_open_fn = unsafe extern "C" fn(*const kv_config, *mut kv_opened, *mut *mut kv_database) -> u32;
pub type kv_session_fn =
    unsafe extern "C" fn(*mut kv_database, *const kv_arena, *mut *mut kv_session, *mut u8) -> u32;
pub type kv_execute_fn = unsafe extern "C" fn(*mut kv_session, *mut kv_batch) -> u32;
pub type kv_session_end_fn = unsafe extern "C" fn(*mut kv_session, *mut u8) -> u32;
pub type kv_maintain_fn = unsafe extern "C" fn(*mut kv_database, u32, *mut u8) -> u32;
pub type kv_stats_fn = unsafe extern "C" fn(*mut kv_database, *mut u8, u64) -> u32;
pub type kv_turn_fn = unsafe extern "C" fn(*mut c_void, u32) -> *mut kv_batch;
pub type kv_drive_fn = unsafe extern "C" fn(*mut kv_session, kv_turn_fn, *mut c_void) -> u32;
pub type kv_close_fn = unsafe extern "C" fn(*mut kv_database, *mut u8) -> u32;

#[repr(C)]
pub struct kv_driver {
    pub abi: u32,
    pub size: u32,
    pub name: *const c_char,
    pub engine: *const c_char,
    pub language: *const c_char,
    pub family: *const c_char,
    pub capabilities: u64,
    pub levels: u64,
    pub key_size_max: u32,
    pub option_count: u32,
    pub options: *const kv_option,
    pub open: Option<kv_open_fn>,
    pub session: Option<kv_session_fn>,
    pub execute: Option<kv_execute_fn>,
    pub session_end: Option<kv_session_end_fn>,
    pub maintain: Option<kv_maintain_fn>,
    pub stats: Option<kv_stats_fn>,
    pub close: Option<kv_close_fn>,
    pub drive: Option<kv_drive_fn>,
}

#[repr(C)]
pub struct kv_drivers {
    pub abi: u32,
    pub count: u32,
    pub drivers: *const *const kv_driver,
}

pub type kv_plugin_entry = unsafe extern "C" fn() -> *const kv_drivers;

// SAFETY: the tables hold pointers to constants only.
unsafe impl Sync for kv_driver {}
// SAFETY: as above.
unsafe impl Sync for kv_option {}
// SAFETY: as above.
unsafe impl Sync for kv_drivers {}
