//! The kit for kvdyno drivers in Rust. A driver implements [`Driver`] and [`Session`]; the kit does the C
//! boundary, the timed loop, lifetimes, panics and texts. `driver/README.md` is the page for authors.

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
pub use run::{run, ticks};
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
    /// What one thread holds.
    type Session<'db>: Session
    where
        Self: 'db;

    /// Opens or (with [`Config::create`]) makes a database in [`Config::path`], an existing folder, and tells `opened`
    /// what is in force: level, version, settings, compression, cache. Unknown options were refused before the call.
    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Self, Error>;

    /// A session for one thread.
    fn session(&self) -> Result<Self::Session<'_>, Error>;

    /// Flush, compact or settle. What the engine lacks is `Status::Unsupported`.
    fn maintain(&self, _work: Work) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// `name=value` lines about the engine's inside.
    fn stats(&self, _out: &mut String) {}

    /// Closes the database; all sessions have ended. What was acknowledged must be found by the next open, whatever
    /// the level.
    fn close(self) -> Result<(), Error> {
        Ok(())
    }
}

/// One thread's way to a database. Each call is timed; what a session lacks it leaves to the default, `Unsupported`.
pub trait Session {
    /// Read the value of `op.key()`; give it to [`Op::deliver`].
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error>;

    /// Store `op.value()` under `op.key()`; [`Op::is_new`] means insert only.
    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error>;

    /// Delete `op.key()`.
    fn delete(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Give rows to [`Op::deliver_rows`]; [`Op::range`] and [`Op::is_reverse`] say which.
    fn scan(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Add or append `op.value()`.
    fn merge(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Transactions over several calls, and letting go of slots.
    fn control(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Add `op.value()` at the right end of the list named `op.key()`.
    fn push(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// Take the value at the left end of that list away and give it to [`Op::deliver`]; one that is too large for the
    /// buffer stays.
    fn pop(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Unsupported)
    }

    /// A joined group: one commit, one multi-get, or (`atomic`) a transaction. Returns false if this session does
    /// nothing special with such a group: the kit then runs its ops one by one. A driver that returns true has
    /// given every op its status (see [`each`]). An `Err` stands for the whole group, which then had no effect.
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
