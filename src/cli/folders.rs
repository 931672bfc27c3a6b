//! Folders that users name: what is refused before anything is created in them, and which run may have been meant.

use super::error::CliError;
use super::report::RESULTS;
use kvdyno_core::results::store::newest;
use kvdyno_measure::disk;
use kvdyno_report::CommandLine;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Creates a new file. It is removed if `write` fails.
pub(super) fn write_new(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), CliError> {
    let file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(CliError::usage(format!("{} already exists", path.display()))
                .hint("name another file, or remove this one first"));
        }
        opened => opened.map_err(CliError::cannot("create", path))?,
    };
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
    if written.is_err() {
        // The incomplete file is useless. The error of the write is reported, not that of the removal.
        let _ = fs::remove_file(path);
    }
    written.map_err(CliError::cannot("write", path))
}

/// Refuses a folder for databases that cannot be created: only its last part is, because a missing folder above it is more
/// likely a typing error than a wish.
pub(super) fn check_creatable(flag: &str, folder: &Path) -> Result<(), CliError> {
    check_folder(flag, folder)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() && !parent.is_dir() {
        let text = format!("{flag}: the folder {} does not exist", parent.display());
        return Err(CliError::usage(text).hint(format!(
            "check its spelling, or create it; kvdyno creates only the last part of {}",
            folder.display()
        )));
    }
    check_writable(flag, folder)
}

/// Refuses what is a file, or would be below one.
fn check_folder(flag: &str, folder: &Path) -> Result<(), CliError> {
    let there = folder.ancestors().find(|place| place.exists() && !place.as_os_str().is_empty());
    match there.filter(|place| !place.is_dir()) {
        Some(file) => Err(CliError::usage(format!("{flag}: {} is not a folder", file.display()))
            .hint("name a folder, which may be new")),
        None => Ok(()),
    }
}

/// Refuses a folder in which nothing can be created.
pub(super) fn check_writable(flag: &str, folder: &Path) -> Result<(), CliError> {
    check_folder(flag, folder)?;
    disk::check_writable(folder).map_err(|error| {
        CliError::usage(format!("{flag}: cannot write to {}: {error}", folder.display()))
            .hint("name a folder that you may write to, on a file system that is not read-only")
    })
}

/// What the folder of a run is, and the newest run in this folder or where results are by default.
pub(super) fn run_hint(folder: &Path) -> String {
    let newest_in = |place: &Path| newest(place).ok().flatten();
    match newest_in(folder).or_else(|| newest_in(Path::new(RESULTS))) {
        Some(run) => {
            format!("the folder of a run contains run.json; the newest run here is {}", run.display())
        }
        None => "the folder of a run contains run.json; `kvdyno run` prints its path at the end".to_string(),
    }
}

/// Refuses to resume what is not the folder of a run.
pub(super) fn check_run(folder: &Path) -> Result<(), CliError> {
    if folder.join("run.json").exists() {
        return Ok(());
    }
    let what = if folder.is_dir() { "is not the folder of a run" } else { "does not exist" };
    Err(CliError::usage(format!("--resume: {} {what}", folder.display())).hint(run_hint(folder)))
}

/// The error of `--resume DIR`, which lacks the `=` and takes DIR for a workload.
pub(super) fn without_equals(folder: &str) -> CliError {
    let resume = CommandLine::of("run").with(format!("--resume={folder}"));
    CliError::usage(format!("`{folder}` is a folder, not a workload"))
        .hint(format!("write an equals sign between --resume and the folder: {resume}"))
}

/// A word that is a folder, in a list of workloads.
pub(super) fn folder_among(workloads: &[String]) -> Option<&str> {
    let is_folder = |word: &&String| PathBuf::from(word).is_dir() && !super::workloads::is_workload(word);
    workloads.iter().find(is_folder).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_of_a_folder_may_be_new() {
        let place = tempfile::tempdir().unwrap();
        let check = |folder: &str| check_creatable("--data", &place.path().join(folder));
        check("new").unwrap();
        check("").unwrap();
        let text = check("mistyped/new").unwrap_err().to_string();
        assert!(text.contains("mistyped does not exist\nhint: check its spelling"), "{text}");
        std::fs::write(place.path().join("file"), "").unwrap();
        for below in ["file", "file/new", "file/new/newer"] {
            let text = check(below).unwrap_err().to_string();
            assert!(text.contains("file is not a folder"), "{text}");
            let text = check_writable("--results", &place.path().join(below)).unwrap_err().to_string();
            assert!(text.contains("file is not a folder"), "{text}");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is created");
        check_creatable("--data", Path::new("a-folder-that-does-not-exist")).unwrap();
    }

    #[test]
    fn the_newest_run_nearby_is_named() {
        let place = tempfile::tempdir().unwrap();
        let text = check_run(place.path()).unwrap_err().to_string();
        assert!(
            text.contains("is not the folder of a run\nhint: the folder of a run contains run.json"),
            "{text}"
        );
        for run in ["2026-01-01T00-00-00-a", "2026-01-02T00-00-00-b"] {
            std::fs::create_dir(place.path().join(run)).unwrap();
            std::fs::write(place.path().join(run).join("run.json"), "{}").unwrap();
        }
        let text = check_run(place.path()).unwrap_err().to_string();
        assert!(text.ends_with("2026-01-02T00-00-00-b"), "{text}");
        let text = check_run(&place.path().join("nowhere")).unwrap_err().to_string();
        assert!(text.contains("nowhere does not exist\nhint: "), "{text}");
        check_run(&place.path().join("2026-01-01T00-00-00-a")).unwrap();
    }
}
