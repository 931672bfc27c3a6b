//! Random acts for the model check: keys that provoke errors, values of all sizes, every op that the engine supports.

use super::act::{Act, group};
use super::model::Model;
use super::subject::Facts;
use kvdyno_core::engine::abi::*;
use kvdyno_core::generator::Random;

/// Bytes that keys consist of: the ends of the range, and few enough that keys share prefixes.
const LETTERS: [u8; 8] = [0x00, 0x01, b'a', b'b', b'c', 0x7f, 0x80, 0xff];
/// First byte of a counter's key; no other key begins with it.
const COUNTER: u8 = 0xc0;

/// Draws acts over a fixed set of keys.
pub(super) struct Draw {
    random: Random,
    capabilities: u64,
    keys: Vec<Vec<u8>>,
    counters: Vec<Vec<u8>>,
    value_bytes: usize,
    keyspaces: u64,
}

impl Draw {
    /// Every key begins with `prefix`; keys have at least one byte more.
    pub(super) fn new(
        mut random: Random,
        facts: &Facts,
        capabilities: u64,
        count: usize,
        prefix: &[u8],
        keyspaces: u16,
    ) -> Draw {
        let fixed = capabilities & KV_FIXED_KEY_SIZE != 0;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < count {
            let mut key = prefix.to_vec();
            let length = if fixed {
                16 - prefix.len()
            } else {
                key_length(&mut random, facts.key_bytes - prefix.len())
            };
            key.extend((0..length).map(|_| LETTERS[random.below(8) as usize]));
            if !fixed && random.below(4) == 0 && !keys.is_empty() {
                // A neighbour of another key: one byte more, so that no key is between them.
                key = keys[random.below(keys.len() as u64) as usize].clone();
                key.push(0);
            }
            if key.len() <= facts.key_bytes && !keys.contains(&key) {
                keys.push(key);
            }
        }
        let counter = |number: u8| {
            let mut key = prefix.to_vec();
            key.extend([COUNTER, number]);
            key.resize(if fixed { 16 } else { key.len() }, 0);
            key
        };
        let counters = (0..8).map(counter).collect();
        let value_bytes = facts.value_bytes;
        Draw { random, capabilities, keys, counters, value_bytes, keyspaces: keyspaces.into() }
    }

    /// All keys that acts can have, present or not.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.keys.iter().chain(&self.counters)
    }

    fn can(&self, capability: u64) -> bool {
        self.capabilities & capability != 0
    }

    /// True once in `n` draws.
    fn chance(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn key(&mut self) -> Vec<u8> {
        let index = self.random.below(self.keys.len() as u64);
        self.keys[index as usize].clone()
    }

    fn space(&mut self) -> u16 {
        self.random.below(self.keyspaces) as u16
    }

    /// Random bytes: mostly few, sometimes as many as the engine accepts.
    pub(super) fn value(&mut self) -> Vec<u8> {
        let length = match self.random.below(100) {
            0 if !self.can(KV_NO_EMPTY_VALUES) => 0,
            0..5 => 1 + self.random.below(8) as usize,
            5..90 => 9 + self.random.below(200) as usize,
            90..99 => 200 + self.random.below(4000) as usize,
            _ => self.value_bytes - self.random.below(16) as usize,
        };
        bytes(&mut self.random, length.min(self.value_bytes))
    }

    /// The acts of one call: 1 to `most`, some of them in groups.
    pub(super) fn batch(&mut self, most: usize, model: &Model) -> Vec<Act> {
        let count = if self.chance(3) { 1 } else { 1 + self.random.below(most as u64) as usize };
        let mut acts = Vec::new();
        while acts.len() < count {
            let size = 2 + self.random.below(6) as usize;
            match self.random.below(12) {
                0 if self.can(KV_TRANSACTION) && acts.len() + size <= most => {
                    acts.extend(self.transaction(size))
                }
                1 if acts.len() + size <= most => acts.extend(self.joined(size, model)),
                _ => acts.push(self.act(model)),
            }
        }
        acts
    }

    fn transaction(&mut self, size: usize) -> Vec<Act> {
        let reads = self.can(KV_TRANSACTION_READS);
        // In one keyspace and without merges: separate checks test whether a transaction may have more.
        let space = self.space();
        let one = |draw: &mut Draw| {
            let act = if reads && draw.chance(3) { Act::get(&draw.key()) } else { draw.write(false) };
            act.within(space)
        };
        let acts = (0..size).map(|_| one(self)).collect();
        group(acts, KV_ATOMIC)
    }

    /// Only gets, or only writes: what a server joins.
    fn joined(&mut self, size: usize, model: &Model) -> Vec<Act> {
        let reads = self.chance(2);
        let acts = (0..size).map(|_| if reads { self.get(model, false) } else { self.write(true) }).collect();
        group(acts, 0)
    }

    fn act(&mut self, model: &Model) -> Act {
        let can_scan = self.can(KV_ORDERED) || self.can(KV_CAN_PREFIX);
        match self.random.below(10) {
            0..4 => self.write(true),
            4 if can_scan => self.scan(),
            _ => self.get(model, true),
        }
    }

    fn write(&mut self, may_merge: bool) -> Act {
        let space = self.space();
        let act = match self.random.below(20) {
            0..5 if self.can(KV_CAN_DELETE) => Act::delete(&self.key()),
            5..8 if self.can(KV_CAN_NEW) => {
                let value = self.value();
                Act::put(&self.key(), &value).with(KV_NEW)
            }
            8..10 if may_merge && self.can(KV_MERGE_ADD) => {
                let index = self.random.below(self.counters.len() as u64) as usize;
                Act::add(&self.counters[index].clone(), self.random.next_u64())
            }
            10 if may_merge && self.can(KV_MERGE_APPEND) => {
                let length = self.random.below(20) as usize + 1;
                let more = bytes(&mut self.random, length);
                // On a row that is always short, because it grows.
                Act::append(&self.keys[0].clone(), &more)
            }
            _ => {
                let value = self.value();
                Act::put(&self.key(), &value)
            }
        };
        act.within(space)
    }

    fn get(&mut self, model: &Model, may_be_short: bool) -> Act {
        let counter = self.chance(20).then(|| self.counters[0].clone());
        let key = counter.unwrap_or_else(|| self.key());
        let space = self.space();
        let act = Act::get(&key).within(space);
        let length = model.get(space, &key).map_or(0, Vec::len);
        if self.can(KV_CAN_TOUCH) && self.chance(8) {
            return act.with(KV_TOUCH);
        }
        // The row may grow in the same call before it is read: the answer is then "short", which the oracle knows.
        match self.random.below(16) {
            0 if may_be_short && length > 0 => act.room(self.random.below(length as u64) as usize),
            1..8 => act.room(length),
            _ => act,
        }
    }

    fn scan(&mut self) -> Act {
        let mut act = Act::scan(&[]).within(self.space());
        let prefix = self.can(KV_CAN_PREFIX) && (!self.can(KV_ORDERED) || self.chance(3));
        if prefix {
            let key = self.key();
            let cut = 1 + self.random.below(key.len().min(4) as u64) as usize;
            act = act.with(KV_PREFIX).to(&key[..cut]);
            act.key = if self.can(KV_ORDERED) && self.chance(2) { self.key() } else { Vec::new() };
            if !act.key.starts_with(&act.value) {
                act.key.clear();
            }
        } else {
            act.key = if self.chance(5) { Vec::new() } else { self.key() };
            if self.chance(2) {
                let bound = self.key();
                act = act.to(&bound);
            }
        }
        if self.can(KV_CAN_REVERSE) && self.chance(2) {
            act = act.with(KV_REVERSE);
        }
        if self.chance(4) {
            act = act.with(KV_KEYS);
        }
        if self.chance(4) {
            act = act.room(self.random.below(2000) as usize);
        }
        let limit = 1 + self.random.below(40) as u32;
        if self.chance(3) { act } else { act.rows(limit) }
    }
}

/// Mostly short; sometimes as long as the engine accepts.
fn key_length(random: &mut Random, most: usize) -> usize {
    let length = match random.below(20) {
        0..12 => 1 + random.below(4),
        12..18 => 1 + random.below(40),
        _ => 1 + random.below(most as u64),
    };
    (length as usize).clamp(1, most)
}

/// Random bytes.
pub(crate) fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
