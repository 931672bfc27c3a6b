//! The ops that a session refuses: those that need a capability which is not in effect.

use crate::abi::*;

/// The ops that a set of capabilities excludes. No driver may silently do what it does not declare.
#[derive(Clone, Copy)]
pub struct Refused {
    flags: u16,
    keyspaces: u16,
    seconds: u32,
    capabilities: u64,
}

impl Refused {
    /// The ops that these capabilities exclude.
    pub const fn without(capabilities: u64) -> Refused {
        const NEEDS: [(u16, u64); 6] = [
            (KV_NEW, KV_CAN_NEW),
            (KV_REVERSE, KV_CAN_REVERSE),
            (KV_PREFIX, KV_CAN_PREFIX),
            (KV_HOLD, KV_CAN_HOLD),
            (KV_TOUCH, KV_CAN_TOUCH),
            (KV_APPEND, KV_MERGE_APPEND),
        ];
        let mut flags = 0;
        let mut index = 0;
        while index < NEEDS.len() {
            if capabilities & NEEDS[index].1 == 0 {
                flags |= NEEDS[index].0;
            }
            index += 1;
        }
        Refused {
            flags,
            keyspaces: if capabilities & KV_KEYSPACES == 0 { u16::MAX } else { 0 },
            seconds: if capabilities & KV_TIME_TO_LIVE == 0 { u32::MAX } else { 0 },
            capabilities,
        }
    }

    /// Whether an op is excluded.
    #[inline(always)]
    pub(crate) fn refuses(&self, op: &kv_op) -> bool {
        if op.flags & self.flags != 0 || op.keyspace & self.keyspaces != 0 {
            return true;
        }
        let lacks = |capability: u64| self.capabilities & capability == 0;
        match op.kind {
            KV_GET => false,
            KV_PUT => op.limit & self.seconds != 0,
            KV_DELETE => lacks(KV_CAN_DELETE),
            KV_SCAN => op.flags & KV_PREFIX == 0 && lacks(KV_ORDERED),
            KV_MERGE => op.flags & KV_APPEND == 0 && lacks(KV_MERGE_ADD),
            KV_BEGIN | KV_COMMIT | KV_ABORT => lacks(KV_CAN_LONG_TRANSACTION),
            KV_DROP => lacks(KV_CAN_HOLD),
            KV_PUSH | KV_POP => lacks(KV_LISTS),
            _ => true,
        }
    }

    /// Whether transactions are excluded.
    pub(crate) fn refuses_transactions(&self) -> bool {
        self.capabilities & KV_TRANSACTION == 0
    }
}
