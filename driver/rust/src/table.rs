//! The C entries of a driver, made from its traits.

use crate::abi::*;
use crate::config::{Config, Level, Opened};
use crate::op::{Batch, Error, Status, write_error, write_text};
use crate::refuse::Refused;
use crate::{Driver, Work, run};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The table of a driver, for a built-in list or [`crate::export_drivers`].
pub const fn table<D: Driver>() -> kv_driver {
    let info = &D::INFO;
    let mut levels = 0;
    let mut index = 0;
    while index < info.levels.len() {
        levels |= 1 << level_number(info.levels[index]);
        index += 1;
    }
    kv_driver {
        abi: KV_ABI,
        size: size_of::<kv_driver>() as u32,
        name: info.name.as_ptr(),
        engine: info.engine.as_ptr(),
        language: info.language.as_ptr(),
        family: info.family.as_ptr(),
        capabilities: info.capabilities,
        levels,
        key_size_max: info.key_size_max,
        option_count: info.options.len() as u32,
        options: info.options.as_ptr(),
        open: Some(open::<D>),
        session: Some(session::<D>),
        execute: Some(execute::<D>),
        session_end: Some(session_end::<D>),
        maintain: Some(maintain::<D>),
        stats: Some(stats::<D>),
        close: Some(close::<D>),
        drive: None,
    }
}

const fn level_number(level: Level) -> u32 {
    level as u32
}

/// What a database's handle points to.
struct Database<D> {
    driver: D,
    refused: Refused,
}

/// What a session's handle points to.
struct Running<S> {
    session: S,
    refused: Refused,
}

/// The handle of a database that was opened without its table, for tests; the table's `close` frees it.
pub fn handle<D: Driver>(driver: D, capabilities: u64) -> *mut kv_database {
    Box::into_raw(Box::new(Database { driver, refused: Refused::without(capabilities) })).cast()
}

/// Runs `work`, turning a panic into an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::new(panic_text(&*panic))))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.as_deref().unwrap_or("without a message"))
}

/// Writes an error's text to a field of KV_TEXT bytes and returns its status.
///
/// # Safety
/// `field` is null or has KV_TEXT bytes.
unsafe fn report(error: &Error, field: *mut u8) -> u32 {
    if !field.is_null() {
        // SAFETY: the boundary promises KV_TEXT bytes.
        write_error(unsafe { std::slice::from_raw_parts_mut(field, KV_TEXT) }, &error.text);
    }
    error.status as u32
}

unsafe extern "C" fn open<D: Driver>(
    config: *const kv_config,
    opened: *mut kv_opened,
    database: *mut *mut kv_database,
) -> u32 {
    // SAFETY: the core gives live structs.
    let (config, raw) = unsafe { (&*config, &mut *opened) };
    let mut opened = Opened::new(raw, D::INFO.capabilities);
    let outcome = guarded(|| {
        if config.abi != KV_ABI {
            return Err(Error::new(format!(
                "the config has ABI {}, this driver has ABI {KV_ABI}",
                config.abi
            )));
        }
        D::open(&Config::new(config, D::INFO.options)?, &mut opened)
    });
    match outcome {
        Ok(driver) => {
            // SAFETY: `database` is live.
            unsafe { *database = handle(driver, opened.capabilities()) };
            KV_OK
        }
        Err(error) => {
            opened.fail(&error.text);
            error.status as u32
        }
    }
}

unsafe extern "C" fn session<D: Driver>(
    database: *mut kv_database,
    _arena: *const kv_arena,
    session: *mut *mut kv_session,
    error: *mut u8,
) -> u32 {
    // SAFETY: a database of this driver, which the core closes only after its sessions have ended (rule 9): that
    // makes the 'static here true in effect, and it is not used anywhere else.
    let database: &'static Database<D> = unsafe { &*database.cast() };
    match guarded(|| database.driver.session()) {
        Ok(made) => {
            let running = Running { session: made, refused: database.refused };
            // SAFETY: `session` is live.
            unsafe { *session = Box::into_raw(Box::new(running)).cast() };
            KV_OK
        }
        // SAFETY: as the boundary promises.
        Err(failure) => unsafe { report(&failure, error) },
    }
}

unsafe extern "C" fn execute<D: Driver>(session: *mut kv_session, batch: *mut kv_batch) -> u32 {
    // SAFETY: a session of this driver's own, used by one thread; Batch is transparent over kv_batch.
    let (running, batch) =
        unsafe { (&mut *session.cast::<Running<D::Session<'static>>>(), &mut *batch.cast::<Batch>()) };
    let refused = running.refused;
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut running.session, batch, refused)));
    outcome.unwrap_or_else(|panic| {
        let first = *batch.raw.done.get_mut() as usize;
        // SAFETY: the core gives `count` ops.
        let ops = unsafe { std::slice::from_raw_parts_mut(batch.raw.ops, batch.raw.count as usize) };
        // The op that panicked, and the ops joined to it: their outcome is unknown.
        let mut is_tied = true;
        for op in ops
            .iter_mut()
            .skip(first)
            .take_while(|op| std::mem::replace(&mut is_tied, op.flags & KV_JOIN != 0))
        {
            op.status = KV_ERROR;
        }
        batch.fail(first, &panic_text(&*panic));
        KV_ERROR
    })
}

unsafe extern "C" fn session_end<D: Driver>(session: *mut kv_session, error: *mut u8) -> u32 {
    // SAFETY: made by `session` above, ended once.
    let session = unsafe { Box::from_raw(session.cast::<Running<D::Session<'static>>>()) };
    match guarded(|| {
        drop(session);
        Ok(())
    }) {
        Ok(()) => KV_OK,
        // SAFETY: as the boundary promises.
        Err(failure) => unsafe { report(&failure, error) },
    }
}

unsafe extern "C" fn maintain<D: Driver>(database: *mut kv_database, work: u32, error: *mut u8) -> u32 {
    // SAFETY: a database of this driver's own.
    let driver = unsafe { &(*database.cast::<Database<D>>()).driver };
    let work = match work {
        KV_FLUSH => Work::Flush,
        KV_COMPACT => Work::Compact,
        KV_SETTLE => Work::Settle,
        _ => return Status::Unsupported as u32,
    };
    match guarded(|| driver.maintain(work)) {
        Ok(status) => status as u32,
        // SAFETY: as the boundary promises.
        Err(failure) => unsafe { report(&failure, error) },
    }
}

unsafe extern "C" fn stats<D: Driver>(database: *mut kv_database, out: *mut u8, size: u64) -> u32 {
    // SAFETY: a database of this driver's own.
    let driver = unsafe { &(*database.cast::<Database<D>>()).driver };
    let mut text = String::new();
    if guarded(|| {
        driver.stats(&mut text);
        Ok(())
    })
    .is_err()
        || size == 0
    {
        return KV_ERROR;
    }
    // SAFETY: the core gives `size` bytes.
    write_text(unsafe { std::slice::from_raw_parts_mut(out, size as usize) }, &text);
    if text.len() as u64 >= size { KV_SHORT } else { KV_OK }
}

unsafe extern "C" fn close<D: Driver>(database: *mut kv_database, error: *mut u8) -> u32 {
    // SAFETY: made by `open` above, closed once.
    let database = unsafe { Box::from_raw(database.cast::<Database<D>>()) };
    match guarded(|| database.driver.close()) {
        Ok(()) => KV_OK,
        // SAFETY: as the boundary promises.
        Err(failure) => unsafe { report(&failure, error) },
    }
}
