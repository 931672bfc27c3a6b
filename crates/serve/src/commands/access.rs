//! Keys as commands see them: loaded, written, removed together with everything that belongs to them.

use crate::command::{Call, FOREIGN, Refusal, WRONG_TYPE};
use crate::error::StoreError;
use crate::parse::Arguments;
use crate::record::{ELEMENT_HEAD, Head, Row, Type, behind, element_row};
use crate::reply::Reply;
use crate::store::Stretch;
use kvdyno_core::engine::abi::*;

/// An existing key.
pub(crate) struct StoredValue {
    pub kind: Type,
    pub expires_ms: Option<u64>,
    pub body: Vec<u8>,
}

impl StoredValue {
    /// Its row.
    pub(crate) fn row(&self) -> Row<'_> {
        Row { kind: self.kind, expires_ms: self.expires_ms, body: &self.body }
    }
}

/// A collection, new or existing.
pub(crate) struct Collection {
    pub head: Head,
    pub expires_ms: Option<u64>,
    pub kind: Type,
}

pub(super) const SYNTAX: &str = "ERR syntax error";
/// The largest reply of a command, bytes.
const MOST_REPLY_BYTES: usize = 512 << 20;
/// Receives the name and the value of an element, and returns whether more are needed.
pub(super) type TakeElement<'t, C> = &'t mut dyn FnMut(&mut C, &[u8], &[u8]) -> Result<bool, Refusal>;
/// Maximum number of elements, and of their bytes, that are read at once if each is then looked up elsewhere or copied.
const PAGE: usize = 1024;
const PAGE_BYTES: usize = 1 << 20;

impl Call<'_, '_> {
    /// The value of a key; `None` if it does not exist or has expired.
    pub(crate) fn load(&mut self, row: &[u8]) -> Result<Option<StoredValue>, Refusal> {
        let Some(mut bytes) = self.store.get_owned(row)? else { return Ok(None) };
        let found = Row::parse(&bytes).ok_or(FOREIGN)?;
        if found.is_over(self.now_ms) {
            return Ok(None);
        }
        let Row { kind, expires_ms, body } = found;
        let head = bytes.len() - body.len();
        bytes.drain(..head);
        Ok(Some(StoredValue { kind, expires_ms, body: bytes }))
    }

    /// The value of a key, if it has that type.
    pub(crate) fn load_as(&mut self, row: &[u8], kind: Type) -> Result<Option<StoredValue>, Refusal> {
        match self.load(row)? {
            Some(held) if held.kind != kind => Err(WRONG_TYPE.into()),
            found => Ok(found),
        }
    }

    /// Locks the rows that the command may change.
    pub(crate) fn lock(&mut self, rows: &[&[u8]]) -> Result<(), Refusal> {
        Ok(self.store.lock(rows)?)
    }

    /// Writes a string in place of the key's old value.
    pub(crate) fn put_string(
        &mut self,
        row: &[u8],
        body: &[u8],
        expires_ms: Option<u64>,
    ) -> Result<(), Refusal> {
        if self.server.has_collections() {
            self.remove_elements(row)?;
        }
        Ok(self.store.put(row, Row { kind: Type::String, expires_ms, body }.bytes())?)
    }

    /// Removes a key and what belongs to it; `false` if it did not exist.
    pub(crate) fn remove(&mut self, row: &[u8]) -> Result<bool, Refusal> {
        let is_there = self.load(row)?.is_some();
        // An expired key is removed too. Nothing is changed before everything is read.
        if self.store.get(row)?.is_some() {
            if self.server.has_collections() {
                self.remove_elements(row)?;
            }
            self.store.delete(row)?;
        }
        Ok(is_there)
    }

    /// Removes the elements of a key's collection, expired or not; its row remains.
    fn remove_elements(&mut self, row: &[u8]) -> Result<(), Refusal> {
        let Some(bytes) = self.store.get(row)? else { return Ok(()) };
        let found = Row::parse(bytes).ok_or(FOREIGN)?;
        if found.kind == Type::String {
            return Ok(());
        }
        let head = Head::parse(found.body).ok_or(FOREIGN)?;
        let mut rows = Vec::new();
        self.store.rows(&elements(row[0], head.number, &[], 0), &mut |row, _| {
            rows.push(row.to_vec());
            true
        })?;
        self.store.make_atomic();
        Ok(rows.iter().try_for_each(|row| self.store.delete(row))?)
    }

    /// Fails with the missing capability if the engine cannot store collections.
    pub(crate) fn needs_collections(&self) -> Result<(), Refusal> {
        self.store.needs_order()?;
        self.needs_transactions()?;
        self.needs(KV_OVERWRITE, "overwrite")
    }

    /// Fails with the missing capability if the engine cannot delete a row and write another at once.
    pub(crate) fn needs_transactions(&self) -> Result<(), Refusal> {
        self.needs(KV_TRANSACTION, "transaction")?;
        self.needs(KV_CAN_DELETE, "delete")
    }

    fn needs(&self, bit: u64, capability: &'static str) -> Result<(), Refusal> {
        match self.store.engine().capabilities & bit {
            0 => Err(StoreError::Lacks { what: "this command", capability }.into()),
            _ => Ok(()),
        }
    }

    /// The collection of a key, if there is one.
    pub(crate) fn collection(&mut self, row: &[u8], kind: Type) -> Result<Option<Collection>, Refusal> {
        self.needs_collections()?;
        let Some(held) = self.load_as(row, kind)? else { return Ok(None) };
        let head = Head::parse(&held.body).ok_or(FOREIGN)?;
        Ok(Some(Collection { head, expires_ms: held.expires_ms, kind }))
    }

    /// The collection of a key, or a new one. The key must be locked.
    pub(crate) fn collection_to_fill(&mut self, row: &[u8], kind: Type) -> Result<Collection, Refusal> {
        if let Some(found) = self.collection(row, kind)? {
            return Ok(found);
        }
        // An expired value is removed with its elements before something new replaces it.
        self.remove(row)?;
        let number = self.server.next_number(self.store)?;
        let head = Head { number, len: 0, first: crate::record::MIDDLE };
        Ok(Collection { head, expires_ms: None, kind })
    }

    /// Writes a collection's head; the key is removed with its last element. The next commit is all or nothing.
    pub(crate) fn put_head(&mut self, row: &[u8], collection: &Collection) -> Result<(), Refusal> {
        self.store.make_atomic();
        if collection.head.len == 0 {
            return Ok(self.store.delete(row)?);
        }
        let body = collection.head.bytes();
        let Collection { kind, expires_ms, .. } = *collection;
        Ok(self.store.put(row, Row { kind, expires_ms, body: &body }.bytes())?)
    }

    /// Fails if the engine cannot store an element for every `step`th of the words, before the first of them is
    /// written.
    pub(crate) fn check_elements(&self, words: Arguments, kind: Type, step: usize) -> Result<(), Refusal> {
        // The longer row of a sorted set's member has its score too.
        let score: &[u8] = if kind == Type::Sorted { &[0; 9] } else { &[] };
        let mut names = words.iter().step_by(step);
        Ok(names.try_for_each(|name| self.store.check_key(&element_row(0, 0, &[score, name])))?)
    }

    /// The row of an element.
    pub(crate) fn element(&self, collection: &Collection, parts: &[&[u8]]) -> Vec<u8> {
        element_row(self.client.database, collection.head.number, parts)
    }

    /// Passes the elements from the first row not below `part` on to `take`: the bytes after the collection's number,
    /// and the value.
    pub(crate) fn elements_from(
        &mut self,
        collection: &Collection,
        part: &[u8],
        rows: u32,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let mut stretch = elements(self.client.database, collection.head.number, b"", rows);
        stretch.from.extend_from_slice(part);
        Ok(self.store.rows(&stretch, &mut |row, value| take(&row[ELEMENT_HEAD..], value))?)
    }

    /// Replies with the elements from the first row not below `part` on, at most `most` of them: `write` appends one,
    /// `head` what comes before that many.
    pub(crate) fn reply_elements(
        &mut self,
        collection: Option<&Collection>,
        part: &[u8],
        most: u64,
        head: fn(&mut Reply, usize),
        write: fn(&mut Reply, &[u8], &[u8]),
    ) -> Result<(), Refusal> {
        let start = self.reply().bytes.len();
        let mut count = 0;
        if let Some(collection) = collection.filter(|_| most > 0) {
            let mut stretch = elements(self.client.database, collection.head.number, b"", rows_of(most));
            stretch.from.extend_from_slice(part);
            let reply = &mut self.answers.reply;
            self.store.rows(&stretch, &mut |row, value| {
                write(reply, &row[ELEMENT_HEAD..], value);
                count += 1;
                (count as u64) < most && reply.bytes.len() - start <= MOST_REPLY_BYTES
            })?;
            fits(reply.bytes.len() - start)?;
        }
        self.reply().insert(start, |reply| head(reply, count));
        Ok(())
    }

    /// Passes all elements to `take` until it needs no more, a page at a time, so that it may read and write.
    pub(crate) fn each_element(
        &mut self,
        collection: &Collection,
        take: TakeElement<'_, Self>,
    ) -> Result<(), Refusal> {
        let mut from = Vec::new();
        loop {
            let mut page: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let (mut bytes, mut is_full) = (0, false);
            self.elements_from(collection, &from, PAGE as u32, &mut |name, value| {
                page.push((name.to_vec(), value.to_vec()));
                bytes += name.len() + value.len();
                is_full = page.len() >= PAGE || bytes >= PAGE_BYTES;
                !is_full
            })?;
            for (name, value) in &page {
                if !take(self, name, value)? {
                    return Ok(());
                }
            }
            match page.pop() {
                Some((last, _)) if is_full => from = [&last[..], &[0]].concat(),
                _ => return Ok(()),
            }
        }
    }
}

/// The number of rows to request for at most `most`; 0 means all.
pub(super) fn rows_of(most: u64) -> u32 {
    u32::try_from(most).unwrap_or(0)
}

/// Fails if a reply of that many bytes is too large.
pub(super) fn fits(bytes: usize) -> Result<(), StoreError> {
    match bytes <= MOST_REPLY_BYTES {
        true => Ok(()),
        false => Err(StoreError::LargeReply { most: MOST_REPLY_BYTES }),
    }
}

/// The rows of a collection's elements that begin with `part`.
pub(super) fn elements(database: u8, number: u64, part: &[u8], rows: u32) -> Stretch {
    let from = element_row(database, number, &[part]);
    Stretch { to: behind(&from), from, reverse: false, rows }
}
