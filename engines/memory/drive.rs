//! Drives a driver's table from a test, like the core: ops in, statuses and bytes out.
#![allow(unsafe_code, reason = "it calls the table like the core")]
#![allow(dead_code, reason = "two crates use it, each a part")]

use kvdyno_driver::Driver;
use kvdyno_driver::abi::*;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU32;

/// An op to send.
#[derive(Clone, Debug)]
pub struct Ask {
    pub kind: u8,
    pub flags: u16,
    pub keyspace: u16,
    pub split: u16,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub limit: u32,
    pub out_size: usize,
}

impl Ask {
    pub fn new(kind: u8, key: &[u8], value: &[u8]) -> Ask {
        let limit = if kind == KV_SCAN { u32::MAX } else { 0 };
        Ask {
            kind,
            flags: 0,
            keyspace: 0,
            split: 0,
            key: key.to_vec(),
            value: value.to_vec(),
            limit,
            out_size: 4096,
        }
    }

    pub fn flags(mut self, flags: u16) -> Ask {
        self.flags |= flags;
        self
    }
}

pub fn get(key: &[u8]) -> Ask {
    Ask::new(KV_GET, key, b"")
}

pub fn put(key: &[u8], value: &[u8]) -> Ask {
    Ask::new(KV_PUT, key, value)
}

pub fn delete(key: &[u8]) -> Ask {
    Ask::new(KV_DELETE, key, b"")
}

pub fn scan(key: &[u8], bound: &[u8]) -> Ask {
    Ask::new(KV_SCAN, key, bound)
}

pub fn merge(key: &[u8], operand: &[u8]) -> Ask {
    Ask::new(KV_MERGE, key, operand)
}

/// The result of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u32,
    pub bytes: Vec<u8>,
    pub rows: u32,
    pub needed: u64,
    pub detail: u64,
    pub start: u64,
    pub end: u64,
}

impl Reply {
    /// The rows that a scan delivered.
    pub fn pairs(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rest = &self.bytes[..];
        let mut pairs = Vec::new();
        while !rest.is_empty() {
            let key = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
            let value = u32::from_ne_bytes(rest[4..8].try_into().unwrap()) as usize;
            pairs.push((rest[8..8 + key].to_vec(), rest[8 + key..8 + key + value].to_vec()));
            rest = &rest[8 + key + value..];
        }
        assert_eq!(pairs.len(), self.rows as usize);
        pairs
    }
}

/// The result of a batch.
pub struct BatchOutcome {
    pub answers: Vec<Reply>,
    pub done: u32,
    pub start: u64,
    pub waited: u64,
    pub error: String,
}

/// How a database is opened.
pub struct Want<'a> {
    pub path: &'a Path,
    pub level: u32,
    pub flags: u32,
    pub keyspaces: u32,
    pub indexes: &'a [kv_index],
    pub option: Option<(&'a str, &'a str)>,
}

/// An open database.
pub struct Bench {
    table: &'static kv_driver,
    database: *mut kv_database,
    pub opened: Box<kv_opened>,
}

// SAFETY: a database is used by many threads (rule 9).
unsafe impl Sync for Bench {}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).expect("texts are NUL-terminated");
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Bench {
    pub fn open(table: &'static kv_driver, want: &Want<'_>) -> Result<Bench, (u32, String)> {
        let path = CString::new(want.path.to_str().unwrap()).unwrap();
        let texts =
            want.option.map(|(name, value)| (CString::new(name).unwrap(), CString::new(value).unwrap()));
        let settings: Vec<kv_setting> = texts
            .iter()
            .map(|(name, value)| kv_setting { name: name.as_ptr(), value: value.as_ptr() })
            .collect();
        // SAFETY: integers and pointers, for which zero is a value.
        let mut config: kv_config = unsafe { std::mem::zeroed() };
        config.abi = KV_ABI;
        config.size = size_of::<kv_config>() as u32;
        config.path = path.as_ptr();
        config.level = want.level;
        config.flags = want.flags;
        config.threads = 1;
        config.keyspaces = want.keyspaces;
        config.index_count = want.indexes.len() as u32;
        config.indexes = want.indexes.as_ptr();
        config.settings = settings.as_ptr();
        config.setting_count = settings.len() as u32;
        // SAFETY: integers and bytes, for which zero is a value.
        let mut opened: Box<kv_opened> = unsafe { Box::new(std::mem::zeroed()) };
        let mut database = null_mut();
        // SAFETY: live structs, as the boundary wants them.
        let status = unsafe { table.open.unwrap()(&config, &mut *opened, &mut database) };
        if status != KV_OK {
            return Err((status, text(&opened.error)));
        }
        Ok(Bench { table, database, opened })
    }

    /// A database that was opened without the table.
    pub fn of<D: Driver>(table: &'static kv_driver, driver: D) -> Bench {
        // SAFETY: integers and bytes, for which zero is a value.
        let opened = unsafe { Box::new(std::mem::zeroed()) };
        Bench { table, database: kvdyno_driver::handle(driver, table.capabilities), opened }
    }

    pub fn settings(&self) -> String {
        text(&self.opened.settings)
    }

    pub fn session(&self) -> Drive<'_> {
        let mut session = null_mut();
        let arena = kv_arena { base: null_mut(), size: 0 };
        // SAFETY: an open database.
        let status = unsafe { self.table.session.unwrap()(self.database, &arena, &mut session, null_mut()) };
        assert_eq!(status, KV_OK);
        Drive { due: 0, deadline: 0, stop: 0, bench: self, session }
    }

    pub fn stats(&self) -> String {
        let mut out = vec![0u8; 4096];
        // SAFETY: `out` has as many bytes as its length.
        let status = unsafe { self.table.stats.unwrap()(self.database, out.as_mut_ptr(), out.len() as u64) };
        assert_eq!(status, KV_OK);
        text(&out)
    }

    pub fn maintain(&self, work: u32) -> u32 {
        // SAFETY: an open database.
        unsafe { self.table.maintain.unwrap()(self.database, work, null_mut()) }
    }

    /// Closes a database whose close must fail.
    pub fn close_in_vain(self) {
        // SAFETY: closed once, its sessions have ended: they borrow it.
        assert_eq!(unsafe { self.table.close.unwrap()(self.database, null_mut()) }, KV_ERROR);
    }

    pub fn close(self) {
        // SAFETY: closed once, its sessions have ended: they borrow it.
        assert_eq!(unsafe { self.table.close.unwrap()(self.database, null_mut()) }, KV_OK);
    }
}

/// A session.
pub struct Drive<'b> {
    /// The due tick of the last op of each batch.
    pub due: u64,
    pub deadline: u64,
    pub stop: u32,
    bench: &'b Bench,
    session: *mut kv_session,
}

impl Drive<'_> {
    /// Runs a batch.
    pub fn run(&mut self, asks: &[Ask]) -> BatchOutcome {
        let mut outs: Vec<Vec<u8>> = asks.iter().map(|ask| vec![0xee; ask.out_size]).collect();
        let mut ops: Vec<kv_op> = asks.iter().zip(&mut outs).map(|(ask, out)| raw(ask, out)).collect();
        if let Some(last) = ops.last_mut() {
            last.due = self.due;
        }
        let stop = AtomicU32::new(self.stop);
        let mut batch = kv_batch {
            ops: ops.as_mut_ptr(),
            count: ops.len() as u32,
            done: AtomicU32::new(0),
            start: 0,
            deadline: self.deadline,
            stop: &stop,
            waited: 0,
            clock: KV_CLOCK_MONOTONIC,
            error_op: 0,
            error: [0; KV_TEXT],
        };
        // SAFETY: a session of this table; ops, keys, values and buffers live until the call returns.
        unsafe { self.bench.table.execute.unwrap()(self.session, &mut batch) };
        let answers = ops.iter().zip(outs).map(|(op, out)| answer(op, out)).collect();
        BatchOutcome {
            answers,
            done: *batch.done.get_mut(),
            start: batch.start,
            waited: batch.waited,
            error: text(&batch.error),
        }
    }

    /// Runs one op.
    pub fn one(&mut self, ask: Ask) -> Reply {
        self.run(&[ask]).answers.remove(0)
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        // SAFETY: ended once.
        unsafe { self.bench.table.session_end.unwrap()(self.session, null_mut()) };
    }
}

fn raw(ask: &Ask, out: &mut [u8]) -> kv_op {
    kv_op {
        kind: ask.kind,
        slot: 0,
        flags: ask.flags,
        keyspace: ask.keyspace,
        split: ask.split,
        key: if ask.key.is_empty() { null() } else { ask.key.as_ptr() },
        value: if ask.value.is_empty() { null() } else { ask.value.as_ptr() },
        out: out.as_mut_ptr(),
        key_length: ask.key.len() as u32,
        value_length: ask.value.len() as u32,
        out_size: ask.out_size as u32,
        limit: ask.limit,
        due: 0,
        user: 0,
        start: 0,
        end: 0,
        length: 0,
        needed: 0,
        detail: 0,
        rows: 0,
        retries: 0,
        status: KV_NOT_RUN,
        reserved: [0; 3],
    }
}

fn answer(op: &kv_op, mut out: Vec<u8>) -> Reply {
    let is_read = matches!(op.kind, KV_GET | KV_SCAN | KV_POP) && matches!(op.status, KV_OK | KV_SHORT);
    let delivered = if is_read && op.flags & KV_TOUCH == 0 { op.length as usize } else { 0 };
    out.truncate(delivered);
    Reply {
        status: op.status,
        bytes: out,
        rows: if is_read && op.kind == KV_SCAN { op.rows } else { 0 },
        needed: if op.status == KV_SHORT { op.needed } else { 0 },
        detail: if is_read && op.flags & KV_TOUCH != 0 { op.detail } else { 0 },
        start: op.start,
        end: op.end,
    }
}

/// A portable random source for tests: splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
