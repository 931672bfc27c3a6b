//! What this machine can refuse to a check.

use kvdyno_core::runner::FolderError;
use kvdyno_measure::volume::VolumeError;
use kvdyno_measure::{Cannot, CopyError};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// This machine does not allow a check. It says nothing about the engine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// A folder for databases cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A folder cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] Cannot),
    /// A path cannot be made absolute.
    #[error("{}: {error}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system returned.
        error: io::Error,
    },
    /// A process of a check cannot be started.
    #[error("cannot start a process: {0}")]
    Start(io::Error),
    /// A process for an engine cannot be started.
    #[error("cannot start a process for {engine}: {error}")]
    StartFor {
        /// The engine.
        engine: String,
        /// What the system returned.
        error: io::Error,
    },
    /// A process cannot be stopped.
    #[error("{0}")]
    Stop(String),
    /// A killed process is still there after this many seconds.
    #[error("a killed process has not ended within {0} s; the kernel may be waiting for a disk")]
    StillThere(u64),
    /// There is no memory that two processes share.
    #[error("cannot share memory: {0}")]
    Memory(io::Error),
    /// This system cannot pass memory to another process.
    #[error("memory cannot be shared on this system")]
    NoSharedMemory,
    /// A file system of its own cannot be made, mounted, cut off or removed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// An engine failed on a file system of its own whose device or space was at fault.
    #[error("this machine is at fault, not the engine: {0}")]
    Trouble(VolumeError),
    /// An engine failed in a folder whose file system has no space left, in these words.
    #[error("this machine is at fault, not the engine: {0}")]
    Short(String),
    /// A state of a device that was rebuilt cannot be mounted.
    #[error("a rebuilt state is not usable: {0}")]
    State(String),
    /// The process of the device in user space says why there is none.
    #[error("{0}")]
    Device(String),
    /// The process of the device in user space ended before the device was there.
    #[error("the process of the device in user space has ended")]
    DeviceEnded,
    /// The device in user space is not there after this many seconds.
    #[error("the device in user space is not there after {0} s")]
    DeviceLate(u64),
    /// The calls of a process cannot be watched.
    #[error("no seccomp notification ({0}); `kvdyno doctor` says what this machine allows")]
    Unobserved(io::Error),
    /// A process that was forked cannot be followed to its end.
    #[error("a process of the test cannot be followed: {0}")]
    Unfollowed(io::Error),
    /// The process that kills others at their calls says why it cannot, or how it ended.
    #[error("{0}")]
    Bench(String),
    /// The log of the device in user space cannot be read.
    #[error("cannot read the log: {0}")]
    Log(io::Error),
}

impl MachineError {
    /// What to do with an error of the system: `doing` is a verb, such as "create".
    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> MachineError {
        let path = path.into();
        move |error| Cannot::on(doing, &path)(error).into()
    }
}
