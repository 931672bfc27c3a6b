//! A complete driver in Rust: std's ordered map behind a lock. Copy it to start a driver.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use std::collections::BTreeMap;
use std::sync::RwLock;

/// An open database.
pub struct Example(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Driver for Example {
    const INFO: Info = Info {
        name: c"example-rust",
        engine: c"an ordered map behind a lock; the Rust driver to copy",
        language: c"Rust",
        // Excludes it from comparisons of all engines; yours is lsm, b+tree ...
        family: c"example",
        capabilities: ORDERED_MAP | KV_DELETE_TELLS | KV_CAN_NEW | KV_IN_MEMORY,
        levels: &[Level::None],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = ExampleSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Example, Error> {
        opened.level(config.pick(Self::INFO.levels, Level::None)?);
        opened.version(env!("CARGO_PKG_VERSION"));
        opened.compression("none");
        Ok(Example(RwLock::default()))
    }

    fn session(&self) -> Result<ExampleSession<'_>, Error> {
        Ok(ExampleSession(self))
    }
}

/// One thread's session.
pub struct ExampleSession<'db>(&'db Example);

impl Session for ExampleSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let rows = self.0.0.read()?;
        Ok(rows.get(op.key()).map_or(Status::NotFound, |value| op.deliver(value)))
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let mut rows = self.0.0.write()?;
        if op.is_new() && rows.contains_key(op.key()) {
            return Ok(Status::Exists);
        }
        rows.insert(op.key().to_vec(), op.value().to_vec());
        Ok(Status::Ok)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let old = self.0.0.write()?.remove(op.key());
        Ok(if old.is_some() { Status::Ok } else { Status::NotFound })
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let (rows, range) = (self.0.0.read()?, op.range());
        if range.is_empty() {
            return op.deliver_rows(std::iter::empty::<Result<(&[u8], &[u8]), Error>>());
        }
        let found = rows.range::<[u8], _>(range.bounds()).map(Ok::<_, Error>);
        if op.is_reverse() { op.deliver_rows(found.rev()) } else { op.deliver_rows(found) }
    }
}

kvdyno_driver::export_drivers!(Example);
