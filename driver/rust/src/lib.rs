//! The kit for kvdyno drivers in Rust. A driver implements [`Driver`] and [`Session`]; the kit handles the C
//! boundary, the timed loop, lifetimes, panics and texts. `driver/README.md` is the guide for authors.

#![allow(unsafe_code, reason = "the C boundary is here")]

pub mod abi;
mod config;
mod op;
mod refuse;
mod run;
mod table;

pub use config::{Config, Info, Level, ORDERED_MAP, Opened, TRANSACTIONS, option};
pub use op::{Batch, Error, Op, Range, Status, Vote, digest, each};
pub use refuse::Refused;
pub use run::{ordered_ticks, run, ticks};
pub use table::{handle, table};

/// Work that is not an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Write out what is buffered.
    Flush,
    /// Full compaction.
    Compact,
    /// Wait until background work is done.
    Settle,
}

/// An engine: one open database. Shared by all sessions, so `Sync`.
pub trait Driver: Sized + Send + Sync + 'static {
    /// Name, capabilities, levels and options.
    const INFO: Info;
    /// The state of one thread.
    type Session<'db>: Session
    where
        Self: 'db;

    /// Opens or (with [`Config::create`]) creates a database in [`Config::path`], an existing folder, and reports in
    /// `opened` what is in effect: level, version, settings, compression, cache. Unknown options were refused before
    /// the call.
    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Self, Error>;

    /// A session for one thread.
    fn session(&self) -> Result<Self::Session<'_>, Error>;

    /// Flush, compact or settle. `Status::Unsupported` for work that the engine lacks.
    fn maintain(&self, _work: Work) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Statistics of the engine, as `name=value` lines.
    fn stats(&self, _out: &mut String) {}

    /// Closes the database; all sessions have ended. The next open must find everything that was acknowledged, at every
    /// level.
    fn close(self) -> Result<(), Error> {
        Ok(())
    }
}

/// One thread's access to a database. Each call is timed; the default of a call that a session lacks is `Unsupported`.
pub trait Session {
    /// Read the value of `op.key()` and pass it to [`Op::deliver`].
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error>;

    /// Store `op.value()` under `op.key()`; [`Op::is_new`] means insert only.
    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error>;

    /// Delete `op.key()`.
    fn delete(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Pass rows to [`Op::deliver_rows`]; [`Op::range`] and [`Op::is_reverse`] define which.
    fn scan(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Add or append `op.value()`.
    fn merge(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Transactions over several calls, and the release of slots.
    fn control(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Add `op.value()` at the right end of the list named `op.key()`.
    fn push(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Remove the value at the left end of that list and pass it to [`Op::deliver`]; a value that is too large for the
    /// buffer stays.
    fn pop(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// A joined group: one commit, one multi-get, or (`atomic`) a transaction. Returns false if this session does not
    /// handle such a group specially: the kit then runs its ops one by one. A driver that returns true has
    /// given every op its status (see [`each`]). An `Err` applies to the complete group, which then had no effect.
    fn group(&mut self, _ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        if atomic { Err(Error::unsupported("transactions")) } else { Ok(false) }
    }
}

/// Exports drivers from a plug-in (a `cdylib`): `export_drivers!(Mine, Other);`
#[macro_export]
macro_rules! export_drivers {
    ($($driver:ty),+ $(,)?) => {
        /// The one symbol of a plug-in.
        #[unsafe(no_mangle)]
        pub extern "C" fn kv_plugin() -> *const $crate::abi::kv_drivers {
            struct List<const N: usize>([*const $crate::abi::kv_driver; N]);
            // SAFETY: pointers to constants.
            unsafe impl<const N: usize> Sync for List<N> {}
            static LIST: List<{ [$(stringify!($driver)),+].len() }> = List([$({
                static TABLE: $crate::abi::kv_driver = $crate::table::<$driver>();
                &raw const TABLE
            }),+]);
            static DRIVERS: $crate::abi::kv_drivers = $crate::abi::kv_drivers {
                abi: $crate::abi::KV_ABI,
                count: LIST.0.len() as u32,
                drivers: LIST.0.as_ptr(),
            };
            &DRIVERS
        }
    };
}
