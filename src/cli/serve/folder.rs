//! The folder of a served database: made by us and marked, or not touched.

use std::path::{Path, PathBuf};

/// The file that marks it; its line is the engine's name.
const MARKER: &str = "kvdyno-serve.txt";

/// Behind the name of an engine that keeps nothing on disk.
const IN_MEMORY: &str = " (in memory)";

/// A folder that a database may be opened in.
pub struct Folder {
    path: PathBuf,
    engine: String,
    is_new: bool,
}

impl Folder {
    /// The folder `dir`, if it is new, empty, or one of that engine's; else the reason, with what to do.
    pub fn prepare(dir: &Path, engine: &str) -> Result<Folder, String> {
        let path = dir.join("database");
        let failed = |error: std::io::Error| format!("cannot use {}: {error}", dir.display());
        let folder = |is_new| Folder { path: path.clone(), engine: engine.to_string(), is_new };
        match std::fs::read_to_string(dir.join(MARKER)) {
            Ok(text) if text.trim() == engine => return Ok(folder(false)),
            // Nothing of it was ever on disk.
            Ok(text) if text.trim() == format!("{engine}{IN_MEMORY}") => return Ok(folder(true)),
            Ok(text) => {
                return Err(format!(
                    "{} holds a database of {}, not of {engine}; give another folder with --dir",
                    dir.display(),
                    text.trim()
                ));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Err(_) => {}
        }
        if dir.exists() && std::fs::read_dir(dir).map_err(failed)?.next().is_some() {
            return Err(format!(
                "{} is not empty and was not made by `kvdyno serve`; give another folder with --dir",
                dir.display()
            ));
        }
        std::fs::create_dir_all(&path).map_err(failed)?;
        Ok(folder(true))
    }

    /// Where the database lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is no database in it yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The engine has opened it: from now on it is that engine's. What is only in memory is new each time.
    pub fn opened(&self, in_memory: bool) -> Result<(), String> {
        let marker = self.path.with_file_name(MARKER);
        let kept = if in_memory { IN_MEMORY } else { "" };
        std::fs::write(&marker, format!("{}{kept}\n", self.engine))
            .map_err(|error| format!("cannot write {}: {error}", marker.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_folder_or_the_engines_own_is_used() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("db");
        let first = Folder::prepare(&dir, "redb").unwrap();
        assert!(first.is_new());
        first.opened(true).unwrap();
        let again = Folder::prepare(&dir, "redb").unwrap();
        assert!(again.is_new(), "nothing was on disk");
        again.opened(false).unwrap();
        assert!(!Folder::prepare(&dir, "redb").unwrap().is_new());
        let text = Folder::prepare(&dir, "lmdb").err().unwrap();
        assert!(text.contains("holds a database of redb, not of lmdb"), "{text}");
        let text = Folder::prepare(scratch.path(), "redb").err().unwrap();
        assert!(text.contains("was not made by `kvdyno serve`"), "{text}");
    }
}
