//! Space that is held back for records, so that a trial which fills the disk can still be told of.

use crate::measure::disk::{allocate, free_bytes};
use crate::measure::units::bytes_text;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// In a run's folder while a trial runs.
const NAME: &str = "reserve";
/// Real records have some hundred kilobytes; two of one are on disk for a moment.
const BYTES: u64 = 8 << 20;

/// A file in a run's folder that holds the space. It is removed when this is dropped.
#[derive(Debug)]
pub struct Reserve(PathBuf);

impl Reserve {
    /// In the folder of a run; it holds nothing yet.
    pub fn new(run: &Path) -> Reserve {
        Reserve(run.join(NAME))
    }

    /// The file, which may be removed to make room for a record.
    pub fn file(&self) -> &Path {
        &self.0
    }

    /// Holds the space. An `Err` says how much there is.
    pub fn hold(&self) -> Result<(), String> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let held = File::create(&self.0).and_then(|file| allocate(&file, BYTES));
        let error = match held {
            // Where the file system cannot do so, there is only hope.
            Err(error) if error.kind() != ErrorKind::Unsupported => error,
            _ => return Ok(()),
        };
        self.release();
        let free = free_bytes(folder)
            .map_or_else(|| "an unknown amount is".into(), |free| bytes_text(free) + " are");
        let (wanted, shown) = (bytes_text(BYTES), folder.display());
        Err(format!(
            "cannot reserve {wanted} for records in {shown}, where {free} free: {error}: make room there"
        ))
    }

    /// Gives the space back.
    pub fn release(&self) {
        // It may be gone already: a trial may remove it.
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::measure::DiskUse;

    #[test]
    fn the_space_is_taken_while_it_is_held_and_given_back_after() {
        let folder = tempfile::tempdir().unwrap();
        let before = DiskUse::of(folder.path()).unwrap().allocated_bytes;
        let reserve = Reserve::new(folder.path());
        reserve.hold().unwrap();
        reserve.hold().unwrap();
        assert!(DiskUse::of(folder.path()).unwrap().allocated_bytes - before >= BYTES);
        drop(reserve);
        assert_eq!(DiskUse::of(folder.path()).unwrap().allocated_bytes, before);
    }

    #[test]
    fn without_a_folder_it_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let error = Reserve::new(&folder.path().join("gone")).hold().unwrap_err();
        assert!(error.contains("8 MiB") && error.contains("gone"), "{error}");
    }
}
