//! What this process says on stdout and stderr. A stream that takes no more never ends it in the middle of its work:
//! what could not be printed on stdout is told at the end, and talk that nobody hears is dropped.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::Mutex;

/// Why stdout takes no more.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

fn lost() -> std::sync::MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Results, for stdout. Behind the first that cannot be written nothing is.
pub fn print(text: Arguments<'_>) {
    let mut lost = lost();
    if lost.is_none() {
        *lost = io::stdout().lock().write_fmt(text).err();
    }
}

/// Talk, for stderr.
pub fn talk(text: Arguments<'_>) {
    // There is no other place to tell that it failed.
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether all that was printed has reached stdout; an `Err` says why not.
pub fn finish() -> io::Result<()> {
    match lost().take() {
        Some(error) => Err(error),
        None => io::stdout().lock().flush(),
    }
}
