//! Disk space that is reserved for records, so that a trial that fills the disk can still be reported.

use kvdyno_measure::disk::{allocate, free_bytes};
use kvdyno_measure::shortage::cure;
use kvdyno_measure::text::bytes_text;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The file's name in a run's folder; it exists while a trial runs.
const NAME: &str = "reserve";
/// Records have some hundred kilobytes; two copies of one are on disk for a moment.
const BYTES: u64 = 8 << 20;

/// The space cannot be reserved.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot reserve {} for records in {}, where {} free: {error}: {}",
    bytes_text(BYTES),
    folder.display(),
    free_text(*free),
    cure(error).unwrap_or("free some space there")
)]
pub struct ReserveError {
    folder: PathBuf,
    /// Free bytes, if their number is known.
    free: Option<u64>,
    error: io::Error,
}

fn free_text(free: Option<u64>) -> String {
    free.map_or_else(|| "an unknown amount is".into(), |free| bytes_text(free) + " are")
}

/// A file in a run's folder that reserves the space. It is removed on drop.
#[derive(Debug)]
pub struct Reserve(PathBuf);

impl Reserve {
    /// A reserve in the folder of a run; it does not reserve anything yet.
    pub fn new(run: &Path) -> Reserve {
        Reserve(run.join(NAME))
    }

    /// The file, which may be removed to make room for a record.
    pub fn file(&self) -> &Path {
        &self.0
    }

    /// Reserves the space. An error reports how much is free.
    pub fn claim(&self) -> Result<(), ReserveError> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let claimed = File::create(&self.0).and_then(|file| allocate(&file, BYTES));
        let error = match claimed {
            // Ignore file systems that do not support allocation.
            Err(error) if error.kind() != ErrorKind::Unsupported => error,
            _ => return Ok(()),
        };
        self.release();
        Err(ReserveError { folder: folder.to_path_buf(), free: free_bytes(folder), error })
    }

    /// Releases the space.
    pub fn release(&self) {
        // A trial may already have removed it.
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
    use kvdyno_measure::DiskUse;

    #[test]
    fn the_space_is_reserved_and_then_released() {
        let folder = tempfile::tempdir().unwrap();
        let before = DiskUse::of(folder.path()).unwrap().allocated_bytes;
        let reserve = Reserve::new(folder.path());
        reserve.claim().unwrap();
        reserve.claim().unwrap();
        assert!(DiskUse::of(folder.path()).unwrap().allocated_bytes - before >= BYTES);
        drop(reserve);
        assert_eq!(DiskUse::of(folder.path()).unwrap().allocated_bytes, before);
    }

    #[test]
    fn the_error_names_a_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let error = Reserve::new(&folder.path().join("gone")).claim().unwrap_err().to_string();
        assert!(error.contains("8 MiB") && error.contains("gone"), "{error}");
    }
}
