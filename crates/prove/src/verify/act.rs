//! An op as the checks write it, and its answer.

use super::failure::Failure;
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::kind_name;

/// One op to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Act {
    pub kind: u8,
    pub slot: u8,
    pub flags: u16,
    pub keyspace: u16,
    pub split: u16,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// Scan: maximum rows; put: seconds to live.
    pub limit: u32,
    /// Bytes of the out buffer; `None`: the size of the session's slots.
    pub out_size: Option<usize>,
    /// Tick before which it must not start; 0: no such tick.
    pub due: u64,
}

impl Act {
    fn new(kind: u8, key: &[u8], value: &[u8]) -> Act {
        Act { kind, key: key.to_vec(), value: value.to_vec(), ..Act::default() }
    }

    pub(crate) fn get(key: &[u8]) -> Act {
        Act::new(KV_GET, key, &[])
    }

    pub(crate) fn put(key: &[u8], value: &[u8]) -> Act {
        Act::new(KV_PUT, key, value)
    }

    pub(crate) fn delete(key: &[u8]) -> Act {
        Act::new(KV_DELETE, key, &[])
    }

    /// A scan of all rows starting at `key`.
    pub(crate) fn scan(key: &[u8]) -> Act {
        Act { limit: u32::MAX, ..Act::new(KV_SCAN, key, &[]) }
    }

    /// Adds to a counter.
    pub(crate) fn add(key: &[u8], number: u64) -> Act {
        Act::new(KV_MERGE, key, &number.to_le_bytes())
    }

    pub(crate) fn append(key: &[u8], bytes: &[u8]) -> Act {
        Act::new(KV_MERGE, key, bytes).with(KV_APPEND)
    }

    pub(crate) fn push(list: &[u8], value: &[u8]) -> Act {
        Act::new(KV_PUSH, list, value)
    }

    pub(crate) fn pop(list: &[u8]) -> Act {
        Act::new(KV_POP, list, &[])
    }

    /// An op without a key: begin, commit, abort, drop.
    pub(crate) fn control(kind: u8) -> Act {
        Act::new(kind, &[], &[])
    }

    pub(crate) fn with(mut self, flags: u16) -> Act {
        self.flags |= flags;
        self
    }

    /// A scan's bound or prefix.
    pub(crate) fn to(mut self, value: &[u8]) -> Act {
        self.value = value.to_vec();
        self
    }

    pub(crate) fn rows(mut self, limit: u32) -> Act {
        self.limit = limit;
        self
    }

    pub(crate) fn room(mut self, out_size: usize) -> Act {
        self.out_size = Some(out_size);
        self
    }

    pub(crate) fn within(mut self, keyspace: u16) -> Act {
        self.keyspace = keyspace;
        self
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Joins the acts into a group; with `KV_ATOMIC` in `flags`, into a transaction.
pub(crate) fn group(mut acts: Vec<Act>, flags: u16) -> Vec<Act> {
    let last = acts.len() - 1;
    for (index, act) in acts.iter_mut().enumerate() {
        act.flags |= flags | if index < last { KV_JOIN } else { 0 };
    }
    acts
}

/// The index after the group that begins at `first`.
pub(super) fn group_end(acts: &[Act], first: usize) -> usize {
    let tied = acts[first..].iter().take_while(|act| act.has(KV_JOIN)).count();
    (first + tied + 1).min(acts.len())
}

impl std::fmt::Display for Act {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const FLAGS: [(u16, &str); 10] = [
            (KV_JOIN, "join"),
            (KV_ATOMIC, "atomic"),
            (KV_NEW, "new"),
            (KV_REVERSE, "reverse"),
            (KV_PREFIX, "prefix"),
            (KV_KEYS, "keys"),
            (KV_RESUME, "resume"),
            (KV_HOLD, "hold"),
            (KV_TOUCH, "touch"),
            (KV_APPEND, "append"),
        ];
        write!(out, "{}", kind_name(self.kind))?;
        for (_, name) in FLAGS.iter().filter(|(flag, _)| self.has(*flag)) {
            write!(out, " {name}")?;
        }
        write!(out, " {}", shown(&self.key))?;
        match self.kind {
            KV_SCAN => write!(out, " to {} limit {}", shown(&self.value), self.limit),
            KV_PUT | KV_PUSH => write!(out, " ({} bytes)", self.value.len()),
            _ => Ok(()),
        }?;
        if self.keyspace > 0 { write!(out, " in keyspace {}", self.keyspace) } else { Ok(()) }
    }
}

/// Maximum length of a key in a message, characters; longer keys are truncated.
const SHOWN: usize = 40;

/// Bytes for a message: as text if all of them are printable, otherwise hexadecimal.
pub(super) fn shown(bytes: &[u8]) -> String {
    let is_text = !bytes.is_empty() && bytes.iter().all(|byte| (b'!'..=b'~').contains(byte) && *byte != b'`');
    let text: String = if is_text {
        bytes.iter().take(SHOWN).map(|byte| char::from(*byte)).collect()
    } else {
        bytes.iter().take(SHOWN / 2).map(|byte| format!("{byte:02x}")).collect()
    };
    let rest = if bytes.len() > if is_text { SHOWN } else { SHOWN / 2 } {
        format!("..({} bytes)", bytes.len())
    } else {
        String::new()
    };
    match (bytes.is_empty(), is_text) {
        (true, _) => "(no bytes)".into(),
        (_, true) => format!("`{text}{rest}`"),
        (_, false) => format!("0x{text}{rest}"),
    }
}

/// The answer to one act.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub status: u32,
    /// The contents of the out buffer.
    pub bytes: Vec<u8>,
    pub length: u64,
    pub needed: u64,
    pub detail: u64,
    pub row_count: u32,
    pub start: u64,
    pub end: u64,
    /// The text of the call's first failure, if this op failed.
    pub said: Option<String>,
}

/// Key and value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

impl Reply {
    /// Attaches the error text if the answer is a failure.
    pub(crate) fn saying(mut self, error: Option<&(usize, String)>) -> Reply {
        let is_failure = !self.is_answer() && !matches!(self.status, KV_SHORT | KV_NOT_RUN);
        self.said = error.filter(|_| is_failure).map(|(_, text)| text.clone());
        self
    }

    /// Whether the op is one of the answers that do not abort a group (rule 4).
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.status, KV_OK | KV_NOT_FOUND | KV_EXISTS)
    }

    /// The rows of a scan; `Err` if the bytes are not rows or their number differs from `rows`.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let (row, after) = split_row(rest).ok_or_else(|| {
                Failure::Broken(format!(
                    "rule 8: the out buffer holds no complete row after row {}",
                    rows.len()
                ))
            })?;
            rows.push(row);
            rest = after;
        }
        if rows.len() != self.row_count as usize {
            return Err(Failure::Broken(format!(
                "rule 8: `rows` is {}, but the buffer holds {}",
                self.row_count,
                rows.len()
            )));
        }
        Ok(rows)
    }
}

fn split_row(bytes: &[u8]) -> Option<(Row, &[u8])> {
    let (key_length, rest) = bytes.split_first_chunk::<4>()?;
    let (value_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_ne_bytes(*key_length) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_ne_bytes(*value_length) as usize)?;
    Some(((key.to_vec(), value.to_vec()), rest))
}

/// The name of a status.
pub(crate) fn status_name(status: u32) -> String {
    const NAMES: [&str; 11] = [
        "KV_OK",
        "KV_NOT_FOUND",
        "KV_EXISTS",
        "KV_SHORT",
        "KV_CONFLICT",
        "KV_ABORTED",
        "KV_FULL",
        "KV_TOO_LARGE",
        "KV_UNSUPPORTED",
        "KV_NOT_RUN",
        "KV_ERROR",
    ];
    NAMES.get(status as usize).map_or_else(|| format!("status {status}"), |name| name.to_string())
}
