//! How clients' keys and what belongs to them are stored in an engine: rows of one ordered space, distinguished by
//! their first byte.
//!
//! - `DB key`: the row of a key. Its value begins with a tag: the type in the low bits, and a bit for an expiry,
//!   whose 8 bytes (milliseconds since 1970, big-endian) follow. Then a string's bytes, or a collection's head: its
//!   number and its length, for a list also its two ends.
//! - `ELEMENT + DB, number, ...`: the elements of the collection with that number. A hash: field -> value. A set:
//!   member -> nothing. A sorted set: `0 member` -> score, and `1 score member` -> nothing. A list: position -> value.
//!
//! Numbers of collections are never reused, so replacing a collection only needs a new head; the old elements are
//! deleted in the same commit.

/// Number of databases that SELECT accepts.
pub(crate) const DATABASES: u8 = 16;
const ELEMENT: u8 = 0x40;
/// The row with the number of the next collection.
pub(crate) const NEXT_NUMBER: &[u8] = &[0xf0];
/// The row with an upper bound of the sizes of all values in bytes, if there are large ones.
pub(crate) const LARGEST: &[u8] = &[0xf1];
const EXPIRES: u8 = 0x80;
const TYPE: u8 = 0x0f;
/// The first position of a list, with equal space on both sides.
pub(crate) const MIDDLE: u64 = 1 << 63;

/// The type of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    /// Bytes.
    String = 0,
    /// Fields and values.
    Hash = 1,
    /// Members.
    Set = 2,
    /// Members by score.
    Sorted = 3,
    /// Elements by position.
    List = 4,
}

impl Type {
    /// Its name in the reply of TYPE.
    pub(crate) fn name(self) -> &'static str {
        ["string", "hash", "set", "zset", "list"][self as usize]
    }

    fn of(tag: u8) -> Option<Type> {
        [Type::String, Type::Hash, Type::Set, Type::Sorted, Type::List].get(usize::from(tag & TYPE)).copied()
    }
}

/// A row's value, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// Its type.
    pub kind: Type,
    /// When it expires, milliseconds since 1970; `None` if never.
    pub expires_ms: Option<u64>,
    /// A string's bytes, or a collection's head.
    pub body: &'a [u8],
}

impl<'a> Row<'a> {
    /// `None` if this server did not write the row.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Row<'a>> {
        let (&tag, body) = bytes.split_first()?;
        let kind = Type::of(tag)?;
        if tag & EXPIRES == 0 {
            return Some(Row { kind, expires_ms: None, body });
        }
        let (expiry, body) = body.split_first_chunk::<8>()?;
        Some(Row { kind, expires_ms: Some(u64::from_be_bytes(*expiry)), body })
    }

    /// Whether it has expired at `now_ms`.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|end| end <= now_ms)
    }

    /// Its encoded form in the engine.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9 + self.body.len());
        bytes.push(self.kind as u8 | if self.expires_ms.is_some() { EXPIRES } else { 0 });
        if let Some(end) = self.expires_ms {
            bytes.extend_from_slice(&end.to_be_bytes());
        }
        bytes.extend_from_slice(self.body);
        bytes
    }
}

/// The head of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its number, which identifies its elements' rows.
    pub number: u64,
    /// Number of elements.
    pub len: u64,
    /// For a list: the position of its first element.
    pub first: u64,
}

impl Head {
    /// Decodes a row's body; `None` if it is not a head.
    pub(crate) fn parse(body: &[u8]) -> Option<Head> {
        let word = |at: usize| Some(u64::from_be_bytes(body.get(at..at + 8)?.try_into().ok()?));
        Some(Head { number: word(0)?, len: word(8)?, first: word(16)? })
    }

    /// Encodes it for a row's body.
    pub(crate) fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (slot, word) in bytes.chunks_exact_mut(8).zip([self.number, self.len, self.first]) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

/// The row of a client's key.
pub(crate) fn key_row(database: u8, key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(database);
    row.extend_from_slice(key);
    row
}

/// The row of an element: the collection's number and the bytes after it.
pub(crate) fn element_row(database: u8, number: u64, parts: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::with_capacity(9 + parts.iter().map(|part| part.len()).sum::<usize>());
    row.push(ELEMENT + database);
    row.extend_from_slice(&number.to_be_bytes());
    parts.iter().for_each(|part| row.extend_from_slice(part));
    row
}

/// Bytes of an element's row before those that distinguish it from the collection's others.
pub(crate) const ELEMENT_HEAD: usize = 9;

/// The smallest row that is greater than all rows that begin with `prefix`.
pub(crate) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![u8::MAX; prefix.len() + 1]
}

/// A score as bytes whose order is the order of scores: IEEE 754 with the sign inverted.
pub(crate) fn score_bytes(score: f64) -> [u8; 8] {
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    ordered.to_be_bytes()
}

/// The score for such bytes.
pub(crate) fn score_of(bytes: &[u8]) -> Option<f64> {
    let ordered = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    Some(f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rows_read_back_as_written(tag in 0..5_u8, expires_ms in any::<Option<u64>>(), body in any::<Vec<u8>>()) {
            let row = Row { kind: Type::of(tag).unwrap(), expires_ms, body: &body };
            let bytes = row.bytes();
            prop_assert_eq!(Row::parse(&bytes), Some(row));
        }

        #[test]
        fn bytes_of_scores_have_the_order_of_scores(left in any::<f64>(), right in any::<f64>()) {
            prop_assume!(!left.is_nan() && !right.is_nan());
            let order = score_bytes(left).cmp(&score_bytes(right));
            prop_assert_eq!(Some(order), (left + 0.0).partial_cmp(&(right + 0.0)));
            prop_assert_eq!(score_of(&score_bytes(left)), Some(left + 0.0));
        }

        #[test]
        fn behind_lies_between_a_prefix_and_what_follows(prefix in any::<Vec<u8>>(), more in any::<Vec<u8>>()) {
            let row = [prefix.clone(), more].concat();
            prop_assume!(!prefix.iter().all(|&byte| byte == 255));
            prop_assert!(row < behind(&prefix));
            prop_assert!(!behind(&prefix).starts_with(&prefix));
        }
    }

    #[test]
    fn what_is_no_row_is_none() {
        for bytes in [&[][..], &[9], &[0x80, 1, 2]] {
            assert_eq!(Row::parse(bytes), None);
        }
        assert_eq!(Head::parse(&[0; 23]), None);
    }
}
