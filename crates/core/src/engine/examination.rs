//! Runs in the process that examines plug-ins for another one: loads them one after the other, and writes the
//! contents of each to its stdout, one line before each and one after it.

use super::{Description, plugin};
use kvdyno_measure::Task;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::processes::write_message;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::PathBuf;

/// Loads each file and tells its contents.
#[derive(Debug, Serialize, Deserialize)]
pub struct PluginsTask {
    /// The plug-ins.
    pub files: Vec<PathBuf>,
}

/// What the process tells.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reported {
    /// It is about to load the plug-in at this place in the list.
    Begun(usize),
    /// The contents of the plug-in, or why it cannot be loaded.
    Ended(usize, Result<Vec<Description>, String>),
}

impl Task for PluginsTask {
    const KIND: Kind = Kind::Plugins;
    type Message = Reported;
    type Prepared = ();

    fn prepare(&self) {}

    /// Output of the plug-ins is discarded (stdout) or goes to the parent (stderr). Ends the process without running the plug-ins'
    /// exit handlers.
    fn run(self, (): ()) -> Result<u8, String> {
        let code = i32::from(report_all(&self.files).is_err());
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(code) }
    }
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
    let mut report = |reported: &Reported| write_message(&mut out, reported);
    for (place, file) in files.iter().enumerate() {
        report(&Reported::Begun(place))?;
        let engines = plugin::load(file)
            .map(|engines| engines.iter().map(|engine| (*engine.description).clone()).collect())
            .map_err(|error| error.to_string());
        report(&Reported::Ended(place, engines))?;
    }
    Ok(())
}
