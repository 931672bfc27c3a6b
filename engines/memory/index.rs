//! Secondary indexes: the rows of other keyspaces that follow a row's change.

use crate::log::{Change, Kind};
use kvdyno_driver::abi::{KV_MERGE, KV_PUT, kv_index};
use kvdyno_driver::{Error, Op, Status};

/// The indexes of a database; most have none.
#[derive(Clone, Debug, Default)]
pub struct Indexes(Vec<kv_index>);

impl Indexes {
    /// Refuses keyspaces that do not exist.
    pub(crate) fn new(indexes: &[kv_index], keyspaces: usize) -> Result<Indexes, Error> {
        for index in indexes {
            let is_known = |space: u16| usize::from(space) < keyspaces;
            if !is_known(index.keyspace) || !is_known(index.index_keyspace) {
                return Err(Error::new(format!(
                    "an index of keyspace {}: there is no such keyspace",
                    index.keyspace
                )));
            }
        }
        Ok(Indexes(indexes.to_vec()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The indexes of a keyspace's rows.
    pub(crate) fn of(&self, keyspace: usize) -> impl Iterator<Item = &kv_index> {
        self.0.iter().filter(move |index| usize::from(index.keyspace) == keyspace)
    }

    /// Keyspace and key of each index row of a row.
    pub fn rows(&self, keyspace: usize, key: &[u8], value: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let of = |index: &kv_index| (index.index_keyspace.into(), index_row(index, key, value).key);
        self.of(keyspace).map(of).collect()
    }

    /// Refuses a write that would make rows and index rows inconsistent.
    pub(crate) fn check(&self, op: &Op<'_>) -> Result<(), Error> {
        if self.0.iter().any(|index| usize::from(index.index_keyspace) == op.keyspace()) {
            return Err(Error::unsupported("writes to an index's own rows"));
        }
        let Some(end) = self.of(op.keyspace()).map(|index| (index.from + index.length) as usize).max() else {
            return Ok(());
        };
        match op.kind() {
            KV_MERGE => Err(Error::unsupported("merges of rows that have indexes")),
            KV_PUT if op.value().len() < end => {
                let text = format!(
                    "a value of {} bytes ends before the bytes that its indexes cover",
                    op.value().len()
                );
                Err(Error::with(Status::TooLarge, text))
            }
            _ => Ok(()),
        }
    }
}

/// An index row: its key and its value.
pub(crate) struct IndexRow<'v> {
    pub key: Vec<u8>,
    pub value: &'v [u8],
}

/// The index row for a key and its value.
pub(crate) fn index_row<'v>(index: &kv_index, key: &[u8], value: &'v [u8]) -> IndexRow<'v> {
    let bytes = &value[index.from as usize..][..index.length as usize];
    IndexRow { key: [bytes, key].concat(), value: if index.clustering != 0 { value } else { &[] } }
}

impl IndexRow<'_> {
    /// The change that adds or removes the row.
    pub(crate) fn change(&self, index: &kv_index, kind: Kind) -> Change<'_> {
        let value = if kind == Kind::Put { self.value } else { &[] };
        Change { kind, keyspace: index.index_keyspace.into(), key: &self.key, value }
    }
}
