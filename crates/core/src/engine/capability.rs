//! The names of capabilities, levels and statuses in reports and messages.

use super::abi::*;

const NAMES: &[(u64, &str)] = &[
    (KV_ORDERED, "ordered"),
    (KV_CAN_REVERSE, "reverse"),
    (KV_CAN_PREFIX, "prefix"),
    (KV_MULTI_GET, "multi-get"),
    (KV_TRANSACTION, "transaction"),
    (KV_TRANSACTION_READS, "transaction-reads"),
    (KV_MERGE_ADD, "merge-add"),
    (KV_MERGE_APPEND, "merge-append"),
    (KV_CAN_DELETE, "delete"),
    (KV_DELETE_TELLS, "delete-tells"),
    (KV_OVERWRITE, "overwrite"),
    (KV_CAN_NEW, "new"),
    (KV_KEYSPACES, "keyspaces"),
    (KV_COLLECTIONS, "collections"),
    (KV_TIME_TO_LIVE, "time-to-live"),
    (KV_FIXED_KEY_SIZE, "fixed-key-size"),
    (KV_KEEPS_KEY, "keeps-key"),
    (KV_KEEPS_VALUE, "keeps-value"),
    (KV_IN_MEMORY, "in-memory"),
    (KV_SINGLE_WRITER, "single-writer"),
    (KV_SCAN_BLOCKS_WRITES, "scan-blocks-writes"),
    (KV_CAN_HOLD, "hold"),
    (KV_CAN_LONG_TRANSACTION, "long-transaction"),
    (KV_CAN_TOUCH, "touch"),
    (KV_SINGLE_THREAD, "single-thread"),
    (KV_STORES_NOTHING, "stores-nothing"),
    (KV_INDEXES, "indexes"),
    (KV_LISTS, "lists"),
    (KV_EVICTS, "evicts"),
    (KV_LIVE_STATS, "live-stats"),
    (KV_NO_EMPTY_VALUES, "no-empty-values"),
];

/// The durability levels that an engine can support itself: bits `1 << level`.
pub(super) const LEVELS: u64 = 1 << KV_NONE | 1 << KV_PROCESS | 1 << KV_POWER;

/// Every bit that has a name.
pub(super) fn known_capabilities() -> u64 {
    NAMES.iter().fold(0, |bits, (bit, _)| bits | bit)
}

/// The names of the set bits, in the header's order.
pub fn capability_names(bits: u64) -> Vec<&'static str> {
    NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|&(_, name)| name).collect()
}

/// The name of a durability level.
pub fn level_name(level: u32) -> &'static str {
    match level {
        KV_NONE => "none",
        KV_PROCESS => "process",
        KV_POWER => "power",
        KV_DEFAULT => "default",
        _ => "unknown",
    }
}

/// A status in words.
pub(super) fn status_name(status: u32) -> &'static str {
    match status {
        KV_OK => "ok",
        KV_NOT_FOUND => "not found",
        KV_EXISTS => "the key exists",
        KV_SHORT => "the buffer is too small",
        KV_CONFLICT => "conflict with another transaction",
        KV_ABORTED => "the transaction was aborted",
        KV_FULL => "no space left",
        KV_TOO_LARGE => "key or value too large",
        KV_UNSUPPORTED => "not supported by this engine",
        KV_NOT_RUN => "not run",
        _ => "error without a text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_bit_has_a_name_of_its_own() {
        let mut names: Vec<_> = NAMES.iter().map(|(_, name)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        assert_eq!(known_capabilities(), (KV_NO_EMPTY_VALUES << 1) - 1);
    }
}
