//! Runs in the process that examines plug-ins for another one: loads them one after the other, and writes the
//! contents of each to its stdout, one line before each and one after it.

use super::{Description, plugin};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::PathBuf;

/// Prefix of each line; JSON follows.
pub const REPORT_PREFIX: &str = "kvdyno-told ";

/// A line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reported {
    /// It is about to load the plug-in at this place in the list.
    Begun(usize),
    /// The contents of the plug-in, or why it cannot be loaded.
    Ended(usize, Result<Vec<Description>, String>),
}

/// Loads each file and reports its contents. Output of the plug-ins is discarded (stdout) or goes to the parent
/// (stderr). Ends the process without running the plug-ins' exit handlers.
pub fn describe(files: &[PathBuf]) -> ! {
    let code = i32::from(report_all(files).is_err());
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(code) }
}

fn report_all(files: &[PathBuf]) -> std::io::Result<()> {
    // SAFETY: a descriptor of this process is copied, and the copy has no other owner.
    let mut out = unsafe {
        let copy = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(std::io::Error::last_os_error());
        }
        File::from_raw_fd(copy)
    };
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open.
    if unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), libc::STDOUT_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let mut report = |reported: &Reported| {
        let line = serde_json::to_string(reported).map_err(std::io::Error::other)?;
        out.write_all(format!("{REPORT_PREFIX}{line}\n").as_bytes())
    };
    for (place, file) in files.iter().enumerate() {
        report(&Reported::Begun(place))?;
        let engines = plugin::load(file)
            .map(|engines| engines.iter().map(|engine| (*engine.description).clone()).collect());
        report(&Reported::Ended(place, engines))?;
    }
    Ok(())
}
