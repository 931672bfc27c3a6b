//! Databases that a crash has left wrong, kept as they were before anything opened them, so that a failure can be repeated exactly.

use super::no_result::Stopped;
use super::oracle::{Bounds, Judgement, Verdict};
use super::round::{Read, Reader};
use super::script::Script;
use super::worker::Subject;
use super::{Mode, Order};
use crate::machine::MachineError;
use kvdyno_core::engine::Engine;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::copy_folder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The file next to the folder of a kept database.
const FILE: &str = "kept.json";
/// The folder of the database.
const DATABASE: &str = "db";
/// The marker of folders that are being filled or read.
const RUN: &str = "crash-kept";

/// What is known about a kept database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The engine, as users type it.
    pub engine: String,
    /// The version of its library.
    pub version: Option<String>,
    /// Options that were set.
    pub options: Vec<(String, String)>,
    /// The requested level.
    pub level: Durability,
    /// How it was crashed.
    pub mode: Mode,
    /// The file system on which it was.
    pub file_system: String,
    /// What was written to it.
    pub(super) script: Script,
    /// The commits of each thread before the crash.
    pub(super) bounds: Vec<Bounds>,
    /// Whether it may also be created again.
    may_create: bool,
    /// What was found in it.
    pub verdict: Verdict,
    /// Details.
    pub detail: Option<String>,
}

/// What was found in a kept database when it was read again.
pub struct Again {
    /// What is known about it.
    pub kept: Kept,
    /// What was found now.
    pub verdict: Verdict,
    /// Details.
    pub detail: Option<String>,
}

/// Why a kept database cannot be read again.
#[derive(Debug, Error)]
pub enum KeptError {
    /// This machine does not allow it.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What is known about it is not what `kvdyno prove --only crash` writes.
    #[error("{}: {error}", file.display())]
    Facts {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The test was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Keeps the first database of each verdict.
pub(super) struct Keeper {
    folder: PathBuf,
    name: String,
    verdicts: BTreeSet<Verdict>,
    /// What it has kept of the round that is run.
    latest: Vec<PathBuf>,
}

/// A copy of a database that will be kept if something is wrong with it. It is removed on drop.
pub(super) struct Copied(Option<DataFolder>);

impl Drop for Copied {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            // An interrupted command ends anyway; the folder has a marker.
            let _ = folder.remove();
        }
    }
}

/// The crash after which a database was copied.
pub(super) struct Case<'c> {
    pub subject: &'c Subject,
    pub version: Option<&'c String>,
    pub mode: Mode,
    pub file_system: &'c str,
    pub script: Script,
    pub bounds: &'c [Bounds],
    pub may_create: bool,
}

impl Keeper {
    /// Keeps databases of an order in its folder.
    pub(super) fn of(order: &Order, mode: Mode, file_system: &str) -> Option<Keeper> {
        let folder = order.keep.as_ref()?;
        Some(Keeper::in_folder(folder, &order.engine, order.level, mode, file_system))
    }

    /// Keeps databases of an engine at a level in a folder.
    pub(super) fn in_folder(
        folder: &Path,
        engine: &str,
        level: Durability,
        mode: Mode,
        file_system: &str,
    ) -> Keeper {
        let name = format!("{engine}-{level}-{mode}-{file_system}");
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let name = name.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
        Keeper { folder: folder.to_path_buf(), name, verdicts: BTreeSet::new(), latest: Vec::new() }
    }

    /// Whether it has no database with this verdict yet.
    pub(super) fn lacks(&self, verdict: Verdict) -> bool {
        !self.verdicts.contains(&verdict)
    }

    /// A round begins.
    pub(super) fn begin(&mut self) {
        self.latest.clear();
    }

    /// Removes what it has kept of the round, which shows nothing about the engine.
    pub(super) fn take_back(&mut self) -> Result<(), MachineError> {
        // The folders were made for it a moment ago.
        for folder in std::mem::take(&mut self.latest) {
            fs::remove_dir_all(&folder).map_err(MachineError::file("remove", &folder))?;
        }
        Ok(())
    }

    /// Copies a database before it is opened.
    pub(super) fn copy(&self, database: &Path) -> Result<Copied, MachineError> {
        let folder = DataFolder::create(&self.folder, RUN, &self.name).map_err(MachineError::from)?;
        let copy = folder.database();
        let copied = Copied(Some(folder));
        // Before its creation there may be no folder yet.
        if database.exists() {
            copy_folder(database, &copy).map_err(MachineError::from)?;
        }
        Ok(copied)
    }

    /// Keeps the copy if it is the first with this verdict and something is wrong; otherwise removes it. Returns its folder.
    pub(super) fn keep(
        &mut self,
        mut copied: Copied,
        case: &Case<'_>,
        judgement: &Judgement,
    ) -> Result<Option<PathBuf>, MachineError> {
        let Some(folder) = copied.0.take() else { return Ok(None) };
        if judgement.verdict == Verdict::Ok || !self.verdicts.insert(judgement.verdict) {
            return folder.remove().map(|()| None).map_err(MachineError::from);
        }
        let kept = Kept {
            engine: case.subject.engine.clone(),
            version: case.version.cloned(),
            options: case.subject.options.clone(),
            level: case.subject.level,
            mode: case.mode,
            file_system: case.file_system.into(),
            script: case.script,
            bounds: case.bounds.to_vec(),
            may_create: case.may_create,
            verdict: judgement.verdict,
            detail: judgement.detail.clone(),
        };
        let verdict = judgement.verdict.to_string().to_lowercase();
        let place = self.folder.join(format!("{}-{verdict}", self.name));
        let text = serde_json::to_string_pretty(&kept).unwrap_or_default() + "\n";
        let moved =
            fs::write(folder.root().join(FILE), text).and_then(|()| fs::rename(folder.root(), &place));
        moved.map_err(MachineError::file("keep", &place))?;
        self.latest.push(place.clone());
        Ok(Some(place))
    }
}

/// What is known about the database that is kept in a folder.
pub fn kept(folder: &Path) -> Result<Kept, KeptError> {
    let file = folder.join(FILE);
    let text = fs::read_to_string(&file).map_err(MachineError::file("read", &file))?;
    serde_json::from_str(&text).map_err(|error| KeptError::Facts { file, error })
}

/// Reads a copy of a kept database, in `data`, as it was read after the crash, and judges it. `None` if the user has stopped it.
pub fn read_again(
    engine: &Engine,
    folder: &Path,
    data: &Path,
    stall: Duration,
) -> Result<Option<Again>, KeptError> {
    let kept = kept(folder)?;
    let Some(read) = read_kept(engine, &kept, folder, data, stall)? else { return Ok(None) };
    let Judgement { verdict, detail, .. } = read.judgement(&kept.script, &kept.bounds);
    Ok(Some(Again { kept, verdict, detail }))
}

/// Reads a copy of a kept database, in `data`. `None` if the user has stopped it.
pub(super) fn read_kept(
    engine: &Engine,
    kept: &Kept,
    folder: &Path,
    data: &Path,
    stall: Duration,
) -> Result<Option<Read>, KeptError> {
    let subject = Subject {
        engine: kept.engine.clone(),
        plugin: engine.plugin_file().map(PathBuf::from),
        level: kept.level,
        options: kept.options.clone(),
        threads: kept.bounds.len() as u32,
    };
    let copy = DataFolder::create(data, RUN, "kept").map_err(MachineError::from)?;
    let database = copy.database();
    let read = || {
        copy_folder(&folder.join(DATABASE), &database).map_err(MachineError::from)?;
        let database = std::path::absolute(&database)
            .map_err(|error| MachineError::Path { path: database.clone(), error })?;
        let (script, may_create) = (kept.script, kept.may_create);
        Reader { subject: &subject, script, folder: &database, may_create, stall }.read()
    };
    let read = read();
    copy.remove().map_err(MachineError::from)?;
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Stopped::Interrupted) => Ok(None),
        Err(stopped) => Err(stopped.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: of a round that goes on after the first crash only the database that was kept last was removed.
    #[test]
    fn all_that_was_kept_of_a_round_is_taken_back_and_nothing_of_rounds_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let (database, kept) = (folder.path().join("database"), folder.path().join("kept"));
        fs::create_dir(&database).unwrap();
        let mut keeper = Keeper::in_folder(&kept, "one", Durability::Process, Mode::Kill, "ext4");
        let subject = Subject {
            engine: "one".into(),
            plugin: None,
            level: Durability::Process,
            options: Vec::new(),
            threads: 1,
        };
        let keep = |keeper: &mut Keeper, verdict| {
            let case = Case {
                subject: &subject,
                version: None,
                mode: Mode::Kill,
                file_system: "ext4",
                script: Script::of(1, true, true),
                bounds: &[],
                may_create: false,
            };
            let judgement = Judgement { verdict, detail: None, lost: 0, left: Vec::new(), is_empty: false };
            let copied = keeper.copy(&database).unwrap();
            keeper.keep(copied, &case, &judgement).unwrap().unwrap()
        };
        let before = keep(&mut keeper, Verdict::Lost);
        keeper.begin();
        let [first, second] = [Verdict::Holes, Verdict::OpenFailed].map(|verdict| keep(&mut keeper, verdict));
        assert!(first.exists() && second.exists());
        keeper.take_back().unwrap();
        assert!(before.exists() && !first.exists() && !second.exists());
    }
}
