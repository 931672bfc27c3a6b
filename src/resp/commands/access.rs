//! Keys as commands see them: loaded, written, removed together with everything that belongs to them.

use crate::engine::abi::*;
use crate::resp::command::{Call, FOREIGN, Refusal, WRONG_TYPE};
use crate::resp::parse::number;
use crate::resp::record::{ELEMENT_HEAD, Head, Row, Type, behind, element_row};
use crate::resp::store::Stretch;

/// An existing key.
pub struct StoredValue {
    pub kind: Type,
    pub expires_ms: Option<u64>,
    pub body: Vec<u8>,
}

/// A collection, new or existing.
pub struct Collection {
    pub head: Head,
    pub expires_ms: Option<u64>,
    pub kind: Type,
}

pub const SYNTAX: &str = "ERR syntax error";
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

/// An argument that must be a whole number.
pub fn integer(text: &[u8]) -> Result<i64, Refusal> {
    number(text).ok_or_else(|| NOT_AN_INTEGER.to_string())
}

/// An argument that is a count.
pub fn amount(text: &[u8]) -> Result<i64, Refusal> {
    let found = number(text).filter(|count| *count >= 0);
    found.ok_or_else(|| "ERR value is out of range, must be positive".to_string())
}

/// An argument that must be a number, but not NaN.
pub fn float(text: &[u8]) -> Result<f64, Refusal> {
    let text = std::str::from_utf8(text).map_err(|_| "ERR value is not a valid float".to_string())?;
    match text.parse::<f64>() {
        Ok(number) if !number.is_nan() => Ok(number),
        _ => Err("ERR value is not a valid float".to_string()),
    }
}

impl Call<'_, '_> {
    /// The value of a key; `None` if it does not exist or has expired.
    pub fn load(&mut self, row: &[u8]) -> Result<Option<StoredValue>, Refusal> {
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
    pub fn load_as(&mut self, row: &[u8], kind: Type) -> Result<Option<StoredValue>, Refusal> {
        match self.load(row)? {
            Some(held) if held.kind != kind => Err(WRONG_TYPE.to_string()),
            found => Ok(found),
        }
    }

    /// Locks the rows that the command may change.
    pub fn lock(&mut self, rows: &[&[u8]]) -> Result<(), Refusal> {
        self.store.lock(rows)
    }

    /// Writes a string in place of the key's old value.
    pub fn put_string(&mut self, row: &[u8], body: &[u8], expires_ms: Option<u64>) -> Result<(), Refusal> {
        if self.server.has_collections() {
            self.remove_elements(row)?;
        }
        self.store.put(row, Row { kind: Type::String, expires_ms, body }.bytes())
    }

    /// Removes a key and what belongs to it; `false` if it did not exist.
    pub fn remove(&mut self, row: &[u8]) -> Result<bool, Refusal> {
        let is_there = self.load(row)?.is_some();
        if self.server.has_collections() {
            self.remove_elements(row)?;
        }
        // An expired key is removed too.
        if self.store.get(row)?.is_some() {
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
        let database = self.client.database;
        let mut rows = Vec::new();
        self.store.rows(&elements(database, head.number, &[], 0), &mut |row, _| {
            rows.push(row.to_vec());
            true
        })?;
        self.store.make_atomic();
        rows.iter().try_for_each(|row| self.store.delete(row))
    }

    /// Fails with the missing capability if the engine cannot store collections.
    pub fn needs_collections(&self) -> Result<(), Refusal> {
        self.store.needs_order()?;
        let capabilities = self.store.engine().capabilities;
        let lacks = |bit: u64, name: &str| match capabilities & bit {
            0 => Err(format!(
                "ERR hashes, sets and lists need the capability `{name}`, which this engine lacks"
            )),
            _ => Ok(()),
        };
        lacks(KV_TRANSACTION, "transaction")?;
        lacks(KV_CAN_DELETE, "delete")?;
        lacks(KV_OVERWRITE, "overwrite")
    }

    /// The collection of a key, if there is one.
    pub fn collection(&mut self, row: &[u8], kind: Type) -> Result<Option<Collection>, Refusal> {
        self.needs_collections()?;
        let Some(held) = self.load_as(row, kind)? else { return Ok(None) };
        let head = Head::parse(&held.body).ok_or(FOREIGN)?;
        Ok(Some(Collection { head, expires_ms: held.expires_ms, kind }))
    }

    /// The collection of a key, or a new one. The key must be locked.
    pub fn collection_to_fill(&mut self, row: &[u8], kind: Type) -> Result<Collection, Refusal> {
        if let Some(found) = self.collection(row, kind)? {
            return Ok(found);
        }
        // An expired value is removed with its elements before something new replaces it.
        self.remove(row)?;
        let number = self.server.next_number(self.store)?;
        let head = Head { number, len: 0, first: crate::resp::record::MIDDLE };
        Ok(Collection { head, expires_ms: None, kind })
    }

    /// Writes a collection's head; the key is removed with its last element. The next commit is all or nothing.
    pub fn put_head(&mut self, row: &[u8], collection: &Collection) -> Result<(), Refusal> {
        self.store.make_atomic();
        if collection.head.len == 0 {
            return self.store.delete(row);
        }
        let body = collection.head.bytes();
        let Collection { kind, expires_ms, .. } = *collection;
        self.store.put(row, Row { kind, expires_ms, body: &body }.bytes())
    }

    /// The row of an element.
    pub fn element(&self, collection: &Collection, parts: &[&[u8]]) -> Vec<u8> {
        element_row(self.client.database, collection.head.number, parts)
    }

    /// Passes the elements whose rows begin with `part` to `take`: the bytes after the collection's number, and the
    /// value.
    pub fn elements(
        &mut self,
        collection: &Collection,
        part: &[u8],
        rows: u32,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let stretch = elements(self.client.database, collection.head.number, part, rows);
        self.store.rows(&stretch, &mut |row, value| take(&row[ELEMENT_HEAD..], value))
    }

    /// Like `elements`, but from the first row not below `part` to the collection's end.
    pub fn elements_from(
        &mut self,
        collection: &Collection,
        part: &[u8],
        rows: u32,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let mut stretch = elements(self.client.database, collection.head.number, b"", rows);
        stretch.from.extend_from_slice(part);
        self.store.rows(&stretch, &mut |row, value| take(&row[ELEMENT_HEAD..], value))
    }
}

/// The rows of a collection's elements that begin with `part`.
pub fn elements(database: u8, number: u64, part: &[u8], rows: u32) -> Stretch {
    let from = element_row(database, number, &[part]);
    Stretch { to: behind(&from), from, reverse: false, rows }
}
