//! What the system refused to do with a file or folder.

use std::io;
use std::path::{Path, PathBuf};

/// The system refused something on a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {}: {error}", path.display())]
pub struct Cannot {
    /// What was to be done: a verb, such as `create`.
    pub act: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The reason.
    pub error: io::Error,
}

impl Cannot {
    /// Makes the error of an act on a file or folder from its reason.
    pub fn on(act: &'static str, path: &Path) -> impl Fn(io::Error) -> Cannot {
        move |error| Cannot { act, path: path.to_path_buf(), error }
    }
}
