//! What the operating system refuses, with what was being done and where.

use std::io;
use std::path::{Path, PathBuf};

/// Something cannot be done with a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {error}", path.display())]
pub struct FileError {
    /// What was being done.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The error of the operating system.
    pub error: io::Error,
}

/// Makes the error of doing something with a file or folder.
pub(super) fn cannot(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |error| FileError { doing, path: path.to_path_buf(), error }
}
