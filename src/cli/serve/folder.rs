//! The folder of a served database. Only new or empty folders and those marked by `kvdyno serve` are used.

use crate::cli::error::CliError;
use std::path::{Path, PathBuf};

/// The file that marks the folder. It contains the name of the engine.
const MARKER: &str = "kvdyno-serve.txt";

/// Suffix after the name of an engine that stores nothing on disk.
const IN_MEMORY: &str = " (in memory)";

/// A folder in which a database may be opened.
pub(super) struct Folder {
    path: PathBuf,
    engine: String,
    is_new: bool,
}

impl Folder {
    /// Prepares `dir` if it is new, empty or belongs to this engine. Otherwise returns the reason, with a hint.
    pub(super) fn prepare(dir: &Path, engine: &str) -> Result<Folder, CliError> {
        let path = dir.join("database");
        let failed = |error| CliError::usage(format!("cannot use {}: {error}", dir.display()));
        let folder = |is_new| Folder { path: path.clone(), engine: engine.to_string(), is_new };
        match std::fs::read_to_string(dir.join(MARKER)) {
            Ok(text) if text.trim() == engine => return Ok(folder(false)),
            // An in-memory engine has left nothing on disk.
            Ok(text) if text.trim() == format!("{engine}{IN_MEMORY}") => return Ok(folder(true)),
            Ok(text) => {
                return Err(CliError::usage(format!(
                    "{} contains a database of {}, not of {engine}; name another folder with --dir",
                    dir.display(),
                    text.trim()
                )));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Err(_) => {}
        }
        if dir.exists() && std::fs::read_dir(dir).map_err(failed)?.next().is_some() {
            return Err(CliError::usage(format!(
                "{} is not empty and was not created by `kvdyno serve`; name another folder with --dir",
                dir.display()
            )));
        }
        std::fs::create_dir_all(&path).map_err(failed)?;
        Ok(folder(true))
    }

    /// The path of the database.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder contains no database yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Marks the folder as belonging to the engine, which has opened it. An in-memory database is new each time.
    pub(super) fn opened(&self, in_memory: bool) -> Result<(), CliError> {
        let marker = self.path.with_file_name(MARKER);
        let suffix = if in_memory { IN_MEMORY } else { "" };
        std::fs::write(&marker, format!("{}{suffix}\n", self.engine))
            .map_err(CliError::cannot("write", &marker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_folder_or_one_of_the_same_engine_is_used() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("db");
        let first = Folder::prepare(&dir, "redb").unwrap();
        assert!(first.is_new());
        first.opened(true).unwrap();
        let again = Folder::prepare(&dir, "redb").unwrap();
        assert!(again.is_new(), "an in-memory database is always new");
        again.opened(false).unwrap();
        assert!(!Folder::prepare(&dir, "redb").unwrap().is_new());
        let text = Folder::prepare(&dir, "lmdb").err().unwrap().to_string();
        assert!(text.contains("contains a database of redb, not of lmdb"), "{text}");
        let text = Folder::prepare(scratch.path(), "redb").err().unwrap().to_string();
        assert!(text.contains("was not created by `kvdyno serve`"), "{text}");
    }
}
