//! Output of this process on stdout and stderr. A broken stream never ends the process in the middle of its work:
//! failed output to stdout is reported at the end, and messages on a broken stderr are dropped.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::Mutex;

/// Why stdout failed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

fn lost() -> std::sync::MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Prints results on stdout. After the first error nothing more is written.
pub fn print(text: Arguments<'_>) {
    let mut lost = lost();
    if lost.is_none() {
        *lost = io::stdout().lock().write_fmt(text).err();
    }
}

/// Prints a message on stderr.
pub fn talk(text: Arguments<'_>) {
    // There is no other place to report that it failed.
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether everything printed has reached stdout; `Err` holds the reason if not.
pub fn finish() -> io::Result<()> {
    match lost().take() {
        Some(error) => Err(error),
        None => io::stdout().lock().flush(),
    }
}
