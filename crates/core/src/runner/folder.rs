//! The folder of a trial's database. It has a marker file, and no folder with contents and without that marker is ever deleted.

use super::kept::{STATE, VERSIONS};
use crate::results::store::lock_idle;
use kvdyno_measure::Cannot;
use kvdyno_measure::{copy_folder, mounts_below, responds};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The marker's file name. It is next to the database's folder, so that engines do not see it.
const MARKER: &str = "KVDYNO-TRIAL-DATA";
/// Longer markers are not ours, bytes.
const MARKER_BYTES: u64 = 4096;

/// Why the folder of a database is not made, kept or removed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system refuses it.
    #[error("{0}")]
    File(#[from] Cannot),
    /// It cannot be moved.
    #[error("cannot move {} to {}: {error}", from.display(), to.display())]
    Move {
        /// The folder.
        from: PathBuf,
        /// Its new place.
        to: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Its files cannot be copied to another file system: why.
    #[error("{0}")]
    Copy(String),
    /// A process that was killed is still blocked by its file system.
    #[error(
        "the file system of {} does not respond, and a killed process is still blocked by it, so the folder was not touched: \
         check the disk and the kernel's log (dmesg)",
        .0.display()
    )]
    Blocked(PathBuf),
    /// It is not one of this run.
    #[error(
        "{} does not have the marker of this run and was not removed; remove it yourself, or choose another folder with --data",
        .0.display()
    )]
    Unmarked(PathBuf),
    /// Something is mounted in it.
    #[error(
        "{} was not removed, because something is mounted on {}; unmount it, and remove the folder yourself",
        folder.display(),
        point.display()
    )]
    Mounted {
        /// The folder.
        folder: PathBuf,
        /// Where it is mounted.
        point: PathBuf,
    },
    /// There is something at its new place.
    #[error("{} already exists, so the database was not kept", .0.display())]
    Exists(PathBuf),
    /// The data folder has files of others.
    #[error(
        "the data folder {} is not empty, and `{name}` in it does not belong to kvdyno; choose an empty or new folder with \
         --data",
        parent.display()
    )]
    NotEmpty {
        /// The data folder.
        parent: PathBuf,
        /// One of the files.
        name: String,
    },
}

/// A folder for one trial: `<parent>/kvdyno-<trial id>/`, with the marker and the folder `db` for the engine.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    run: String,
}

impl DataFolder {
    /// Creates it in `parent`, which is created too if necessary. A folder that is left from the same run is removed first.
    pub fn create(parent: &Path, run: &str, trial: &str) -> Result<DataFolder, FolderError> {
        let root = parent.join(format!("kvdyno-{trial}"));
        let folder = DataFolder { root, run: run.to_string() };
        check_responds(parent)?;
        if folder.root.exists() {
            folder.remove()?;
        }
        fs::create_dir_all(parent)
            .and_then(|()| fs::create_dir(&folder.root))
            .map_err(Cannot::on("create", &folder.root))?;
        if let Err(error) = folder.fill() {
            // Without its marker it could not be removed later.
            let _ = fs::remove_dir_all(&folder.root);
            return Err(Cannot::on("create", &folder.root)(error).into());
        }
        Ok(folder)
    }

    /// Removes all folders of a run in `parent` and returns them. No process may be using them.
    pub fn leftovers(parent: &Path, run: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_named = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kvdyno-"))
        };
        let mut left: Vec<PathBuf> = entries.filter(|path| is_named(path) && is_of_run(path, run)).collect();
        left.sort();
        let remove =
            |root: &PathBuf| DataFolder { root: root.clone(), run: run.to_string() }.remove().is_ok();
        left.retain(remove);
        left
    }

    /// Creates the marker and the database's folder in the new folder.
    fn fill(&self) -> io::Result<()> {
        let mut marker = fs::OpenOptions::new().write(true).create_new(true).open(self.root.join(MARKER))?;
        marker.write_all(self.run.as_bytes())?;
        fs::create_dir(self.root.join("db"))
    }

    /// The folder that contains the marker and the database's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for the engine.
    pub fn database(&self) -> PathBuf {
        self.root.join("db")
    }

    /// Removes it if it has the marker of this run.
    pub fn remove(&self) -> Result<(), FolderError> {
        check_responds(&self.root)?;
        let is_folder = fs::symlink_metadata(&self.root).is_ok_and(|facts| facts.is_dir());
        let marker = marker_of(&self.root);
        if is_folder && marker.as_ref() != Some(&self.run) && self.is_bare(marker.as_deref()) {
            // Killed while it was created or removed. Neither call deletes anything but what was just seen.
            let _ = fs::remove_file(self.root.join(MARKER));
            return Ok(fs::remove_dir(&self.root).map_err(Cannot::on("remove", &self.root))?);
        }
        if !is_folder || marker.as_ref() != Some(&self.run) {
            return Err(FolderError::Unmarked(self.root.clone()));
        }
        // A mount, also of a folder of the same file system, shows files that are elsewhere.
        if let Some(point) = mounts_below(&self.root).into_iter().next() {
            return Err(FolderError::Mounted { folder: self.root.clone(), point });
        }
        // The marker is removed last, so that an interrupted removal can be repeated.
        let gone = |path: &Path| match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Cannot::on("remove", path)(error)),
            _ => Ok(()),
        };
        gone(&self.root.join("db"))?;
        for name in [STATE, VERSIONS, MARKER] {
            let file = self.root.join(name);
            match fs::remove_file(&file) {
                Err(error) if name == MARKER || error.kind() != io::ErrorKind::NotFound => {
                    return Err(Cannot::on("remove", &file)(error).into());
                }
                _ => {}
            }
        }
        Ok(fs::remove_dir(&self.root).map_err(Cannot::on("remove", &self.root))?)
    }
}

impl DataFolder {
    /// Whether it contains nothing, or only the beginning of this run's marker.
    fn is_bare(&self, marker: Option<&str>) -> bool {
        let is_begun = marker.is_some_and(|marker| self.run.starts_with(marker));
        let is_marker = |entry: io::Result<fs::DirEntry>| {
            is_begun && entry.is_ok_and(|entry| entry.file_name() == MARKER)
        };
        fs::read_dir(&self.root).is_ok_and(|mut entries| entries.all(is_marker))
    }

    /// Moves it to `place`, which must not exist, if its trial has written a state next to the database; otherwise removes
    /// it.
    pub fn keep_as(self, place: &Path) -> Result<(), FolderError> {
        if !self.root.join(STATE).exists() {
            return self.remove();
        }
        check_responds(&self.root)?;
        let failed =
            |error: io::Error| FolderError::Move { from: self.root.clone(), to: place.to_path_buf(), error };
        if place.symlink_metadata().is_ok() {
            return Err(FolderError::Exists(place.to_path_buf()));
        }
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match fs::rename(&self.root, place) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                fs::create_dir(place).map_err(failed)?;
                fs::copy(self.root.join(MARKER), place.join(MARKER)).map_err(failed)?;
                fs::create_dir(place.join("db")).map_err(failed)?;
                copy_folder(&self.database(), &place.join("db"))
                    .map_err(|error| FolderError::Copy(error.to_string()))?;
                if self.root.join(VERSIONS).exists() {
                    fs::copy(self.root.join(VERSIONS), place.join(VERSIONS)).map_err(failed)?;
                }
                // The state is copied last: it shows that the rest is complete.
                fs::copy(self.root.join(STATE), place.join(STATE)).map_err(failed)?;
                self.remove()
            }
            outcome => outcome.map_err(failed),
        }
    }
}

/// Removes the databases of runs in `results` that were killed, and returns the folders that were removed. They are in the run's
/// own folder or in `data`. Nothing is removed of a run that a process still writes to.
pub fn reap(results: &Path, data: Option<&Path>) -> Vec<PathBuf> {
    let runs = fs::read_dir(results).into_iter().flatten().flatten();
    let runs = runs.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut removed = Vec::new();
    for run in runs.map(|entry| entry.path()) {
        let Some(id) = run.file_name().and_then(|name| name.to_str()) else { continue };
        let own = run.join("data");
        if !own.exists() && data.is_none() {
            continue;
        }
        // While it is locked, nobody can resume the run.
        let Some(_lock) = lock_idle(&run) else { continue };
        for place in [Some(own.as_path()), data].into_iter().flatten() {
            removed.extend(DataFolder::leftovers(place, id));
        }
        // Only an empty folder is removed.
        let _ = fs::remove_dir(own);
    }
    removed
}

/// Whether a folder has a marker of any run.
pub(super) fn is_marked(folder: &Path) -> bool {
    marker_of(folder).is_some()
}

/// Whether a folder has the marker of this run.
pub fn is_of_run(folder: &Path, run: &str) -> bool {
    marker_of(folder).is_some_and(|marker| marker == run)
}

/// The text of a folder's marker, which must be a file: a link could lead anywhere, and a pipe would block.
fn marker_of(folder: &Path) -> Option<String> {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(folder.join(MARKER)).ok()?;
    let facts = file.metadata().ok()?;
    let mut text = String::new();
    let is_ours = facts.is_file() && facts.len() <= MARKER_BYTES;
    is_ours.then(|| file.take(MARKER_BYTES).read_to_string(&mut text)).and_then(Result::ok).map(|_| text)
}

/// Fails if a file system blocks whoever changes it.
fn check_responds(folder: &Path) -> Result<(), FolderError> {
    if responds(folder) {
        return Ok(());
    }
    Err(FolderError::Blocked(folder.to_path_buf()))
}

/// Creates a folder that the user named, and fails if no folder can be created in it, before anything is measured.
pub fn check_place(folder: &Path) -> Result<(), Cannot> {
    let probe = || tempfile::Builder::new().prefix("kvdyno-probe-").tempdir_in(folder);
    fs::create_dir_all(folder)
        .and_then(|()| probe())
        .and_then(TempDir::close)
        .map_err(Cannot::on("create the folder of a database in", folder))
}

/// Refuses a data folder with files that do not belong to kvdyno.
pub fn check_parent(parent: &Path) -> Result<(), FolderError> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Cannot::on("read", parent)(error).into()),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        let is_ours =
            entry.file_name().to_string_lossy().starts_with("kvdyno-") && (is_marked(&path) || is_empty());
        if !is_ours {
            let name = entry.file_name().to_string_lossy().into_owned();
            return Err(FolderError::NotEmpty { parent: parent.to_path_buf(), name });
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod hostile;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_not_completed_is_no_obstacle_and_one_with_contents_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("kvdyno-0001-redb");
        // Killed after the folder was created, after the marker was, and while its text was written.
        for marker in [None, Some(""), Some("run"), Some("run-1")] {
            fs::create_dir(&root).unwrap();
            marker.iter().for_each(|text| fs::write(root.join(MARKER), text).unwrap());
            assert!(check_parent(parent.path()).is_ok(), "{marker:?}");
            DataFolder::create(parent.path(), "run-1", "0001-redb").unwrap().remove().unwrap();
            assert!(!root.exists(), "{marker:?}");
        }
        for (file, marker) in [("file", None), ("file", Some("")), (MARKER, Some("run-2"))] {
            fs::create_dir(&root).unwrap();
            fs::write(root.join(file), "x").unwrap();
            marker.iter().for_each(|text| fs::write(root.join(MARKER), text).unwrap());
            let error = DataFolder::create(parent.path(), "run-1", "0001-redb").unwrap_err().to_string();
            assert!(error.contains("does not have the marker of this run and was not removed"), "{error}");
            assert!(root.join(file).exists(), "{file} {marker:?}");
            fs::remove_dir_all(&root).unwrap();
        }
    }

    #[test]
    fn leftovers_are_all_folders_of_the_run_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let root = |name: &str| parent.path().join(name);
        for (name, marker) in
            [("kvdyno-b", "crash"), ("kvdyno-a", "crash"), ("kvdyno-c", "audit"), ("mine", "crash")]
        {
            fs::create_dir_all(root(name).join("db")).unwrap();
            fs::write(root(name).join(MARKER), marker).unwrap();
        }
        fs::create_dir(root("kvdyno-e")).unwrap();
        // Opening a pipe would block.
        assert!(
            std::process::Command::new("mkfifo")
                .arg(root("kvdyno-e").join(MARKER))
                .status()
                .unwrap()
                .success()
        );
        std::os::unix::fs::symlink(root("mine"), root("kvdyno-d")).unwrap();
        fs::write(root("kvdyno-a").join("precious"), "x").unwrap();
        assert_eq!(DataFolder::leftovers(parent.path(), "crash"), [root("kvdyno-b")]);
        for kept in ["kvdyno-a/precious", "kvdyno-c/db", "mine/db", "kvdyno-e"] {
            assert!(root(kept).exists(), "{kept}");
        }
        assert_eq!(DataFolder::leftovers(&root("absent"), "crash"), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_a_folder_with_the_marker_of_the_run_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::create(parent.path(), "run-1", "0001-redb").unwrap();
        fs::write(folder.database().join("file"), b"x").unwrap();
        let other = DataFolder { root: folder.root.clone(), run: "run-2".into() };
        assert!(other.remove().unwrap_err().to_string().contains("marker"));
        assert!(folder.database().join("file").exists());
        folder.remove().unwrap();
        assert!(!folder.root.exists());
        assert!(parent.path().exists());
    }

    #[test]
    fn a_foreign_folder_of_the_same_name_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let foreign = parent.path().join("kvdyno-0001-redb");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("precious"), b"x").unwrap();
        assert!(DataFolder::create(parent.path(), "run", "0001-redb").is_err());
        assert!(foreign.join("precious").exists());
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join(MARKER), "run").unwrap();
        std::os::unix::fs::symlink(target.path(), parent.path().join("kvdyno-0001-redb")).unwrap();
        assert!(DataFolder::create(parent.path(), "run", "0001-redb").is_err());
        assert!(target.path().join(MARKER).exists());
    }

    #[test]
    fn a_marker_that_is_a_pipe_or_a_link_is_none() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("kvdyno-0001-redb");
        fs::create_dir_all(root.join("db")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join(MARKER)).status().unwrap().success());
        assert!(DataFolder::create(parent.path(), "run", "0001-redb").is_err());
        fs::remove_file(root.join(MARKER)).unwrap();
        fs::write(parent.path().join("text"), "run").unwrap();
        std::os::unix::fs::symlink(parent.path().join("text"), root.join(MARKER)).unwrap();
        assert!(DataFolder::create(parent.path(), "run", "0001-redb").is_err());
        assert!(root.join("db").exists() && parent.path().join("text").exists());
    }

    #[test]
    fn databases_of_killed_runs_are_removed_and_those_of_others_are_not() {
        let results = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let mut kept = Vec::new();
        for run in ["killed", "running"] {
            let folder = results.path().join(run);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("journal.jsonl"), "").unwrap();
            for place in [folder.join("data"), data.path().to_path_buf()] {
                kept.push(DataFolder::create(&place, run, &format!("0001-{run}")).unwrap());
            }
        }
        let foreign = DataFolder::create(data.path(), "elsewhere", "0001-elsewhere").unwrap();
        let journal = fs::File::open(results.path().join("running/journal.jsonl")).unwrap();
        journal.lock().unwrap();
        let mut removed = reap(results.path(), Some(data.path()));
        removed.sort();
        let mut wanted = [kept[0].root().to_path_buf(), kept[1].root().to_path_buf()];
        wanted.sort();
        assert_eq!(removed, wanted);
        assert!(!results.path().join("killed/data").exists());
        assert!(kept[2].root().exists() && kept[3].root().exists() && foreign.root().exists());
    }

    #[test]
    fn a_folder_with_other_things_in_it_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        assert!(check_parent(parent.path()).is_ok());
        assert!(check_parent(&parent.path().join("new")).is_ok());
        fs::write(parent.path().join("thesis.txt"), b"x").unwrap();
        assert!(check_parent(parent.path()).unwrap_err().to_string().contains("thesis.txt"));
    }
}
