//! The null engine: answers immediately and stores nothing. Its figures are the baseline of every table.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, Op, Opened, Session, Status};

/// The database, which has no state.
pub struct Null;

impl Driver for Null {
    const INFO: Info = Info {
        name: c"null",
        engine: c"does nothing; the baseline of every table",
        language: c"Rust",
        family: c"none",
        capabilities: KV_STORES_NOTHING
            | KV_IN_MEMORY
            | KV_ORDERED
            | KV_CAN_REVERSE
            | KV_CAN_PREFIX
            | KV_CAN_DELETE
            | KV_OVERWRITE
            | KV_CAN_NEW
            | KV_MERGE_ADD
            | KV_MERGE_APPEND
            | KV_MULTI_GET
            | KV_TRANSACTION,
        levels: &[Level::None],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = NullSession;

    fn open(_config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Null, Error> {
        opened.level(Level::None);
        opened.version(env!("CARGO_PKG_VERSION"));
        opened.compression("none");
        Ok(Null)
    }

    fn session(&self) -> Result<NullSession, Error> {
        Ok(NullSession)
    }
}

/// A session without state.
pub struct NullSession;

impl Session for NullSession {
    #[inline(always)]
    fn get(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    #[inline(always)]
    fn put(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    #[inline(always)]
    fn delete(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    #[inline(always)]
    fn scan(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    #[inline(always)]
    fn merge(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        for op in ops {
            op.finish(Status::Ok);
        }
        Ok(true)
    }
}
