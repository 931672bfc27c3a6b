//! One op and one batch, as a driver sees them.

use crate::abi::*;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Bound;

/// The result of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = KV_OK,
    /// The key is absent.
    NotFound = KV_NOT_FOUND,
    /// The key is present, and the op was `is_new`.
    Exists = KV_EXISTS,
    /// The out buffer is too small.
    Short = KV_SHORT,
    /// The driver gave up after retries.
    Conflict = KV_CONFLICT,
    /// The transaction around it was not committed.
    Aborted = KV_ABORTED,
    /// No space.
    Full = KV_FULL,
    /// Key or value over the engine's limit.
    TooLarge = KV_TOO_LARGE,
    /// The engine lacks the ability.
    Unsupported = KV_UNSUPPORTED,
    /// Not reached.
    NotRun = KV_NOT_RUN,
    /// See the error text.
    Error = KV_ERROR,
}

/// A failure: a status and a text.
#[derive(Debug)]
pub struct Error {
    /// Usually [`Status::Error`].
    pub status: Status,
    /// The engine's message.
    pub text: String,
}

impl Error {
    /// An error with a text.
    pub fn new(text: impl Into<String>) -> Error {
        Error { status: Status::Error, text: text.into() }
    }

    /// The engine does not support `what`.
    pub fn unsupported(what: &str) -> Error {
        Error { status: Status::Unsupported, text: format!("this engine does not support {what}") }
    }

    /// A failure with its own status.
    pub fn with(status: Status, text: impl std::fmt::Display) -> Error {
        Error { status, text: text.to_string() }
    }
}

/// Converts any engine's error, by its text; "no space left" becomes [`Status::Full`].
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            source = inner.source();
        }
        let full = text.contains("No space left") || text.contains("os error 28");
        Error { status: if full { Status::Full } else { Status::Error }, text }
    }
}

/// One op of a batch. Keys and values live as long as the batch, longer than a borrow of the op.
#[repr(transparent)]
pub struct Op<'a> {
    raw: kv_op,
    bytes: PhantomData<&'a [u8]>,
}

/// The keys that a scan must walk.
pub struct Range<'a> {
    /// The low end.
    pub lower: Bound<&'a [u8]>,
    /// The high end. Owned only for a reverse prefix scan without a start key.
    pub upper: Bound<Cow<'a, [u8]>>,
}

impl<'a> Range<'a> {
    /// Both ends as slices, as most `range` functions want them.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let upper = match &self.upper {
            Bound::Included(key) => Bound::Included(key.as_ref()),
            Bound::Excluded(key) => Bound::Excluded(key.as_ref()),
            Bound::Unbounded => Bound::Unbounded,
        };
        (self.lower, upper)
    }

    /// Whether the range can hold no key; some engines panic on such a range.
    pub fn is_empty(&self) -> bool {
        match self.bounds() {
            (Bound::Included(a), Bound::Included(b)) => a > b,
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a >= b,
            _ => false,
        }
    }
}

/// The smallest byte string above all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

fn slice<'a>(pointer: *const u8, length: u32) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: rule 5: the bytes belong to the caller, who keeps them until execute returns; `Op<'a>` exists only within
    // that call.
    unsafe { std::slice::from_raw_parts(pointer, length as usize) }
}

impl<'a> Op<'a> {
    /// The raw op.
    pub fn raw(&self) -> &kv_op {
        &self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> &mut kv_op {
        &mut self.raw
    }

    /// `KV_GET` and so on.
    pub fn kind(&self) -> u8 {
        self.raw.kind
    }

    /// The key; for a scan where it starts (may be empty: at the end of the keyspace).
    pub fn key(&self) -> &'a [u8] {
        slice(self.raw.key, self.raw.key_length)
    }

    /// The bytes to write; for a scan its bound or prefix.
    pub fn value(&self) -> &'a [u8] {
        slice(self.raw.value, self.raw.value_length)
    }

    /// The keyspace, from 0.
    pub fn keyspace(&self) -> usize {
        self.raw.keyspace as usize
    }

    fn has(&self, flag: u16) -> bool {
        self.raw.flags & flag != 0
    }

    /// Put: insert only.
    pub fn is_new(&self) -> bool {
        self.has(KV_NEW)
    }

    /// Scan downward.
    pub fn is_reverse(&self) -> bool {
        self.has(KV_REVERSE)
    }

    /// Get or scan: must see every acknowledged write. It matters only to a driver that reports `stale_reads=possible`.
    pub fn is_strong(&self) -> bool {
        self.has(KV_STRONG)
    }

    /// Merge: append, not add.
    pub fn is_append(&self) -> bool {
        self.has(KV_APPEND)
    }

    /// Scan: the prefix that all rows must have.
    pub fn prefix(&self) -> Option<&'a [u8]> {
        self.has(KV_PREFIX).then(|| self.value())
    }

    /// Scan: number of rows requested, `u32::MAX` for all.
    pub fn limit(&self) -> u32 {
        self.raw.limit
    }

    /// Reports that the driver retried an op `count` times.
    pub fn add_retries(&mut self, count: u32) {
        self.raw.retries += count;
    }

    /// Sets the status; for ops of a group.
    pub fn finish(&mut self, status: Status) {
        self.raw.status = status as u32;
    }

    /// The status set so far.
    pub fn status(&self) -> u32 {
        self.raw.status
    }

    /// Delivers a value: copies it into the caller's buffer, or digests it in place if requested.
    #[inline(always)]
    pub fn deliver(&mut self, value: &[u8]) -> Status {
        self.raw.length = value.len() as u64;
        if self.raw.flags & KV_TOUCH != 0 {
            self.raw.detail = digest(value);
            return Status::Ok;
        }
        if value.len() > self.raw.out_size as usize {
            self.raw.needed = value.len() as u64;
            self.raw.length = 0;
            return Status::Short;
        }
        // SAFETY: out has out_size bytes (rule 5), checked above; an engine's value never overlaps the arena.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), self.raw.out, value.len()) };
        Status::Ok
    }

    /// The scan that an iterator is held for: slot, keyspace and direction.
    pub fn scan_name(&self) -> (u8, u16, u16) {
        (self.raw.slot, self.raw.keyspace, self.raw.flags & (KV_REVERSE | KV_PREFIX | KV_KEYS))
    }

    /// Scan: continues the iterator held for [`Op::scan_name`] if it is still at the key; otherwise searches.
    pub fn goes_on(&self) -> bool {
        self.has(KV_HOLD) && self.has(KV_RESUME)
    }

    /// After the rows: whether to hold the iterator, which is at the last row that was written.
    pub fn is_held(&self) -> bool {
        self.has(KV_HOLD) && self.raw.rows > 0 && self.raw.rows == self.raw.limit
    }

    /// The keys that this scan walks, in either direction.
    pub fn range(&self) -> Range<'a> {
        let key = self.key();
        let prefix = self.prefix();
        let bound = if prefix.is_none() { self.value() } else { &[] };
        let start = match (key.is_empty(), self.has(KV_RESUME)) {
            (true, _) => Bound::Unbounded,
            (false, false) => Bound::Included(key),
            (false, true) => Bound::Excluded(key),
        };
        let limit = if bound.is_empty() { Bound::Unbounded } else { Bound::Excluded(bound) };
        if self.is_reverse() {
            let upper = match (start, prefix) {
                (Bound::Unbounded, Some(prefix)) => {
                    successor(prefix).map_or(Bound::Unbounded, |key| Bound::Excluded(Cow::Owned(key)))
                }
                (Bound::Unbounded, None) => Bound::Unbounded,
                (Bound::Included(key), _) => Bound::Included(Cow::Borrowed(key)),
                (Bound::Excluded(key), _) => Bound::Excluded(Cow::Borrowed(key)),
            };
            let lower = prefix.map_or(limit, Bound::Included);
            Range { lower, upper }
        } else {
            let lower = match (start, prefix) {
                (Bound::Unbounded, Some(prefix)) => Bound::Included(prefix),
                _ => start,
            };
            let upper = match limit {
                Bound::Excluded(key) => Bound::Excluded(Cow::Borrowed(key)),
                _ => Bound::Unbounded,
            };
            Range { lower, upper }
        }
    }

    /// Writes the rows of an iterator over [`Op::range`], in the scan's direction, until the limit, the bound, the
    /// prefix or the end of the buffer. Rows outside the range are skipped, so an engine whose iterator can only be
    /// given a start need not filter.
    #[inline(always)]
    pub fn deliver_rows<K: AsRef<[u8]>, V: AsRef<[u8]>, E: Into<Error>>(
        &mut self,
        rows: impl Iterator<Item = Result<(K, V), E>>,
    ) -> Result<Status, Error> {
        let mut writer = self.rows();
        for row in rows {
            let (key, value) = row.map_err(Into::into)?;
            if !writer.push(key.as_ref(), value.as_ref()) {
                break;
            }
        }
        Ok(writer.status)
    }

    /// A writer for rows, for engines whose cursor is not an iterator.
    pub fn rows(&mut self) -> Rows<'_, 'a> {
        self.raw.rows = 0;
        self.raw.length = 0;
        let skip = if self.has(KV_RESUME) { self.key() } else { &[] };
        let (prefix, bound) =
            if self.has(KV_PREFIX) { (self.value(), &[][..]) } else { (&[][..], self.value()) };
        let full = self.raw.limit == 0;
        Rows { op: self, skip, prefix, bound, status: Status::Ok, full }
    }
}

/// Writes rows into an op's out buffer.
pub struct Rows<'o, 'a> {
    op: &'o mut Op<'a>,
    skip: &'a [u8],
    prefix: &'a [u8],
    bound: &'a [u8],
    status: Status,
    full: bool,
}

impl Rows<'_, '_> {
    /// Offers the next row; false: stop.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        if self.full || (!self.bound.is_empty() && self.is_beyond(key)) || !key.starts_with(self.prefix) {
            return false;
        }
        if !self.skip.is_empty() && key == self.skip {
            return true;
        }
        let value = if self.op.raw.flags & KV_KEYS != 0 { &[] } else { value };
        let at = self.op.raw.length as usize;
        let size = 8 + key.len() + value.len();
        if at + size > self.op.raw.out_size as usize {
            self.op.raw.needed = size as u64;
            self.status = Status::Short;
            self.full = true;
            return false;
        }
        // SAFETY: at + size lies within the out buffer, checked above (rule 5).
        unsafe {
            let out = self.op.raw.out.add(at);
            out.cast::<u32>().write_unaligned(key.len() as u32);
            out.add(4).cast::<u32>().write_unaligned(value.len() as u32);
            std::ptr::copy_nonoverlapping(key.as_ptr(), out.add(8), key.len());
            std::ptr::copy_nonoverlapping(value.as_ptr(), out.add(8 + key.len()), value.len());
        }
        self.op.raw.length += size as u64;
        self.op.raw.rows += 1;
        self.full = self.op.raw.rows >= self.op.raw.limit;
        !self.full
    }

    fn is_beyond(&self, key: &[u8]) -> bool {
        if self.op.is_reverse() { key <= self.bound } else { key >= self.bound }
    }

    /// The status of the scan so far: `Ok` or `Short`.
    pub fn status(&self) -> Status {
        self.status
    }
}

/// KV_TOUCH's digest (see driver.h).
pub fn digest(value: &[u8]) -> u64 {
    let mut words = value.chunks_exact(8);
    let mut sum = 0u64;
    for word in &mut words {
        sum = sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes")));
    }
    let mut last = [0u8; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    sum.wrapping_add(u64::from_le_bytes(last))
}

/// What the ops of a group mean for its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Continue and commit.
    Commit,
    /// An op was short or refused: undo; the statuses are set.
    Abort,
}

/// Runs `one` on each op of a group and sets the statuses. The first error ends it: the driver must undo.
pub fn each<'a>(
    ops: &mut [Op<'a>],
    mut one: impl FnMut(&mut Op<'a>) -> Result<Status, Error>,
) -> Result<Vote, Error> {
    for index in 0..ops.len() {
        let status = one(&mut ops[index])?;
        ops[index].finish(status);
        if !matches!(status, Status::Ok | Status::NotFound | Status::Exists) {
            for (other, op) in ops.iter_mut().enumerate() {
                if other != index {
                    op.finish(Status::Aborted);
                }
            }
            return Ok(Vote::Abort);
        }
    }
    Ok(Vote::Commit)
}

/// A batch, as the timed loop sees it.
#[repr(transparent)]
pub struct Batch {
    pub(crate) raw: kv_batch,
}

impl Batch {
    pub(crate) fn fail(&mut self, index: usize, text: &str) {
        if self.raw.error[0] == 0 {
            self.raw.error_op = index as u32;
            write_error(&mut self.raw.error, text);
        }
    }
}

/// Copies an error's text into a field. Of a text that is too long, a part of the beginning and the end are kept: errors say first
/// where, and at the end what went wrong.
pub(crate) fn write_error(field: &mut [u8], text: &str) {
    let room = field.len() - 1;
    if text.len() <= room {
        return write_text(field, text);
    }
    let (mut head, mut tail) = (room / 3, text.len() - (room - room / 3 - 2));
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    write_text(field, &format!("{}..{}", &text[..head], &text[tail..]));
}

/// Copies a text into a fixed field: cut at a character boundary, NUL-terminated.
pub(crate) fn write_text(field: &mut [u8], text: &str) {
    let mut end = text.len().min(field.len() - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field[end] = 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut field = [b'!'; 60];
        write_error(&mut field, text);
        let end = field.iter().position(|byte| *byte == 0).expect("the field ends");
        String::from_utf8(field[..end].to_vec()).expect("whole characters")
    }

    #[test]
    fn a_long_error_keeps_its_end() {
        let text = format!(
            "While appending to file: /a/\u{e9}{}\u{20ac}: No space left on device",
            "long/".repeat(40)
        );
        let written = written(&text);
        assert!(
            written.starts_with("While app") && written.ends_with(": No space left on device"),
            "{written}"
        );
    }

    #[test]
    fn an_error_of_any_length_and_letters_fits() {
        assert_eq!(written("short"), "short");
        for length in 0..100 {
            let text = "\u{20ac}".repeat(length);
            assert!(written(&text).len() < 60);
        }
    }
}
