//! Databases that are kept after their trial, and that later trials start with. Their state is stored next to their files,
//! so that reads can be checked as if the database had just been written.

use super::check::Versions;
use super::data::{self, DataError, Growth};
use super::folder::is_marked;
use super::phase_data::Population;
use crate::engine::file_of;
use crate::results::Trial;
use crate::workload::Workload;
use kvdyno_measure::Cannot;
use kvdyno_measure::{DiskUse, copy_file, copy_folder, read_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Why a trial cannot start with a kept database.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// No kept database serves its workload: why.
    #[error("{0}")]
    Workload(String),
    /// The engine had other options.
    #[error("it was kept with {}, not with {}", options_text(kept), options_text(requested))]
    Options {
        /// Those of the database.
        kept: Vec<(String, String)>,
        /// Those of the trial.
        requested: Vec<(String, String)>,
    },
    /// The rows have another form.
    #[error("its {field} is {kept}, not {requested}")]
    Rows {
        /// The first setting that differs.
        field: String,
        /// Its value in the database.
        kept: String,
        /// That of the trial.
        requested: String,
    },
    /// Nothing is left to do: the workload.
    #[error("workload {0} has only fills")]
    OnlyFills(String),
    /// It has fewer keys than the workload.
    #[error("it has {present} of {needed} keys")]
    Keys {
        /// Its keys.
        present: u64,
        /// Those of the workload.
        needed: u64,
    },
    /// Its keys cannot become as many as the workload inserts.
    #[error(
        "it has keys for {end} rows, but {needed} are needed; keep a database of a workload that inserts"
    )]
    Growth {
        /// The most rows.
        end: u64,
        /// Those of the workload.
        needed: u64,
    },
    /// It has no counters.
    #[error("it has no counters for merges; keep a database of a workload with merges")]
    NoCounters,
    /// The keys cannot be created.
    #[error("{0}")]
    Data(#[from] DataError),
}

fn options_text(options: &[(String, String)]) -> String {
    match options {
        [] => "no options".to_string(),
        all => all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "),
    }
}

/// Why databases cannot be kept or reused.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The operating system refuses it.
    #[error("{0}")]
    File(#[from] Cannot),
    /// The file of a state cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file is no state.
    #[error("{}: {error}", file.display())]
    NoState {
        /// The file.
        file: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// A state has another format.
    #[error("{}: its format is {format}, but this version of kvdyno reads {FORMAT}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The format.
        format: u32,
    },
    /// A state cannot be written.
    #[error("{0}")]
    Unwritable(serde_json::Error),
    /// There is none of an engine.
    #[error("there is no kept database of {engine} (available: {available})")]
    None {
        /// The engine.
        engine: String,
        /// The engines that there are databases of.
        available: String,
    },
    /// It does not fit the trial.
    #[error("the kept database {} does not fit: {reason}", folder.display())]
    Unfit {
        /// Its folder.
        folder: PathBuf,
        /// Why.
        reason: Unfit,
    },
    /// It is not as it was: its folder.
    #[error("the files of the kept database {} have changed since it was kept", .0.display())]
    Changed(PathBuf),
    /// A file of versions is not as it was written.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// One file is given for an engine that has a folder.
    #[error("the engine keeps its database in a folder")]
    NotOneFile,
    /// Its folder cannot be copied: why.
    #[error("{0}")]
    Copy(String),
}

/// The file of the state, next to the database's folder. It is written last, so that it exists only after success.
pub const STATE: &str = "state.json";
/// The file of versions next to it.
pub const VERSIONS: &str = "versions";
/// The format of both files; others are refused.
const FORMAT: u32 = 1;

/// The state of a kept database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The format of this file.
    pub format: u32,
    /// Version of the tool that wrote it.
    pub tool_version: String,
    /// The requested engine.
    pub engine: String,
    /// Version of its library.
    pub engine_version: String,
    /// Requested options.
    pub options: Vec<(String, String)>,
    /// The workload that created it.
    pub workload: String,
    /// The settings of its keys and values, by the names of a workload's fields.
    pub rows: Map<String, Value>,
    /// Its keys, by their numbers.
    pub population: Population,
    /// The number of its keys; none: unknown.
    pub present: Option<u64>,
    /// The number of items that have keys; counters follow them.
    pub insert_end: u64,
    /// The number of counters.
    pub counters: u64,
    /// The sum of the counters.
    pub merges: u64,
    /// The versions of its keys; none: there are too many, and checks are stateless.
    pub versions: Option<VersionsFile>,
    /// The use of disk by its files when it was closed.
    pub disk: Option<DiskUse>,
}

/// The file of versions: a number of four bytes for each key, little-endian; keys after the last were never written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionsFile {
    /// The length of the file.
    pub bytes: u64,
    /// CRC-32 (IEEE).
    pub crc32: u32,
}

/// A kept database.
#[derive(Clone, Debug)]
pub struct KeptDatabase {
    /// The folder.
    pub folder: PathBuf,
    /// The state.
    pub state: State,
}

/// The folder's name for the database of a trial: `redb-ycsb-a`.
pub fn name(trial: &Trial) -> String {
    format!("{}-{}", trial.engine.replace(':', "-"), trial.workload.name)
}

/// The settings of rows, by the names of a workload's fields.
pub fn rows(workload: &Workload) -> Map<String, Value> {
    let all = serde_json::to_value(workload).unwrap_or_default();
    let is_of_rows = |name: &&str| all.get(name).is_some();
    let names = ["seed", "keys", "keyspaces", "key", "value", "indexes", "collections"];
    names.iter().filter(|name| is_of_rows(name)).map(|name| (name.to_string(), all[*name].clone())).collect()
}

/// The reason why the database of this workload cannot be kept or reused; none: it can.
pub fn is_unfit(workload: &Workload) -> Option<String> {
    let name = &workload.name;
    if workload.collections.are_lists() {
        return Some(format!("workload {name}: databases with lists cannot be kept"));
    }
    let own_size = workload.phases.iter().find(|phase| phase.value_size.is_some());
    own_size.map(|phase| {
        format!(
            "workload {name}: phase {} has its own value sizes, so the database cannot be kept",
            phase.name
        )
    })
}

/// The number of fills at the start of a workload: a trial with a kept database skips them, because the rows exist.
pub fn fills(workload: &Workload) -> usize {
    workload.phases.iter().take_while(|phase| phase.is_fill()).count()
}

/// The range of keys of a trial that starts with this database.
pub fn growth(state: &State, workload: &Workload) -> Result<Growth, Unfit> {
    let mut growth = data::growth_after(workload, fills(workload), state.population.next_insert);
    let has_merges = data::has_merges(workload);
    // A permutation of all keys, and groups of keys, depend on their number.
    let is_bound = workload.key.scattered || workload.key.prefix_groups > 0;
    if !is_bound && state.counters == 0 {
        return Ok(Growth { most: growth.most.max(state.insert_end), ..growth });
    }
    if growth.counted > state.insert_end {
        return Err(Unfit::Growth { end: state.insert_end, needed: growth.counted });
    }
    if has_merges && state.counters == 0 {
        return Err(Unfit::NoCounters);
    }
    growth.most = state.insert_end;
    Ok(growth)
}

impl State {
    /// Checks whether a trial can start with this database.
    pub fn fits(&self, trial: &Trial) -> Result<(), Unfit> {
        let workload = &trial.workload;
        if let Some(reason) = is_unfit(workload) {
            return Err(Unfit::Workload(reason));
        }
        if self.options != trial.options {
            let (kept, requested) = (self.options.clone(), trial.options.clone());
            return Err(Unfit::Options { kept, requested });
        }
        if let Some(difference) = difference("", &self.rows, &rows(workload)) {
            return Err(difference);
        }
        let fills = fills(workload);
        if fills == workload.phases.len() {
            return Err(Unfit::OnlyFills(workload.name.clone()));
        }
        // After deletes, or a fill that ended by time, there are fewer keys than the skipped fills would write.
        let whole = if self.population.whole { self.population.dense } else { 0 };
        let present = self.present.unwrap_or(whole);
        if fills > 0 && present < workload.keys {
            return Err(Unfit::Keys { present, needed: workload.keys });
        }
        let growth = growth(self, workload)?;
        let counters = if data::has_merges(workload) { workload.keys } else { 0 };
        data::keys(workload, growth, counters.max(self.counters))?;
        Ok(())
    }
}

/// Describes the first field that differs.
fn difference(above: &str, kept: &Map<String, Value>, requested: &Map<String, Value>) -> Option<Unfit> {
    let names = kept.keys().chain(requested.keys());
    names.into_iter().find_map(|name| {
        let path = format!("{above}{name}");
        match (kept.get(name), requested.get(name)) {
            (kept, requested) if kept == requested => None,
            (Some(Value::Object(kept)), Some(Value::Object(requested))) => {
                difference(&format!("{path}."), kept, requested)
            }
            (kept, requested) => {
                let text = |value: Option<&Value>| value.map_or("-".to_string(), Value::to_string);
                Some(Unfit::Rows { field: path, kept: text(kept), requested: text(requested) })
            }
        }
    })
}

/// The kept databases in a folder, or the folder itself if it is one; in the order of their names.
pub fn all(parent: &Path) -> Result<Vec<KeptDatabase>, KeptError> {
    if parent.join(STATE).exists() {
        return load(parent).map(|kept| vec![kept]);
    }
    let failed = Cannot::on("read", parent);
    let mut folders = Vec::new();
    for entry in fs::read_dir(parent).map_err(&failed)? {
        let folder = entry.map_err(&failed)?.path();
        // A folder without a state was not moved completely.
        if is_marked(&folder) && folder.join(STATE).exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    folders.iter().map(|folder| load(folder)).collect()
}

fn load(folder: &Path) -> Result<KeptDatabase, KeptError> {
    let file = folder.join(STATE);
    let text = read_text(&file).map_err(|error| KeptError::Unreadable { file: file.clone(), error })?;
    let state: State =
        serde_json::from_str(&text).map_err(|error| KeptError::NoState { file: file.clone(), error })?;
    if state.format != FORMAT {
        return Err(KeptError::Format { file, format: state.format });
    }
    Ok(KeptDatabase { folder: folder.to_path_buf(), state })
}

/// The kept database that a trial starts with: one of its engine, with the name of its workload if there is one, or else
/// the first that fits.
pub fn choose<'k>(all: &'k [KeptDatabase], trial: &Trial) -> Result<&'k KeptDatabase, KeptError> {
    let own: Vec<&KeptDatabase> = all.iter().filter(|kept| kept.state.engine == trial.engine).collect();
    let named = own.iter().find(|kept| kept.state.workload == trial.workload.name);
    let first = named.or_else(|| own.iter().find(|kept| kept.state.fits(trial).is_ok())).or(own.first());
    let Some(kept) = first else {
        let mut engines: Vec<&str> = all.iter().map(|kept| kept.state.engine.as_str()).collect();
        engines.dedup();
        let available = if engines.is_empty() { "none".to_string() } else { engines.join(", ") };
        return Err(KeptError::None { engine: trial.engine.clone(), available });
    };
    kept.state.fits(trial).map_err(|reason| KeptError::Unfit { folder: kept.folder.clone(), reason })?;
    let now = DiskUse::of(&kept.folder.join("db"));
    let files = |disk: &Option<DiskUse>| disk.map(|disk| (disk.files, disk.apparent_bytes));
    if files(&now) != files(&kept.state.disk) {
        return Err(KeptError::Changed(kept.folder.clone()));
    }
    Ok(kept)
}

impl Versions {
    /// Writes the acknowledged versions; returns the length and checksum of the file.
    pub(super) fn write(&self, file: &Path) -> Result<VersionsFile, KeptError> {
        let bytes = self.bytes();
        fs::write(file, &bytes).map_err(Cannot::on("write", file))?;
        Ok(VersionsFile { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) })
    }

    /// Loads the acknowledged versions.
    pub(super) fn read(&self, file: &Path, expected: VersionsFile) -> Result<(), KeptError> {
        let bytes = fs::read(file).map_err(Cannot::on("read", file))?;
        let found = VersionsFile { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) };
        if found != expected || !self.take(&bytes) {
            return Err(KeptError::Damaged(file.to_path_buf()));
        }
        Ok(())
    }
}

/// Copies the database that a trial starts with into its empty folder: a kept one, or one of another program, which is a folder
/// or a file.
pub(super) fn copy(trial: &Trial, from: &Path, to: &Path) -> Result<(), KeptError> {
    if trial.is_foreign() && !from.is_dir() {
        let name = file_of(&trial.engine).ok_or(KeptError::NotOneFile)?;
        return Ok(copy_file(from, &to.join(name)).map_err(Cannot::on("copy", from))?);
    }
    let folder = if trial.is_foreign() { from.to_path_buf() } else { from.join("db") };
    copy_folder(&folder, to).map_err(|error| KeptError::Copy(error.to_string()))
}

/// Writes the state next to a kept database.
pub(super) fn write(folder: &Path, state: &State) -> Result<(), KeptError> {
    let file = folder.join(STATE);
    let text = serde_json::to_string_pretty(state).map_err(KeptError::Unwritable)?;
    Ok(fs::write(&file, text).map_err(Cannot::on("write", &file))?)
}

/// An initial state.
pub(super) fn begin(trial: &Trial, engine_version: String) -> State {
    State {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        engine: trial.engine.clone(),
        engine_version,
        options: trial.options.clone(),
        workload: trial.workload.name.clone(),
        rows: rows(&trial.workload),
        population: Population { dense: 0, whole: true, next_insert: 0 },
        present: None,
        insert_end: 0,
        counters: 0,
        merges: 0,
        versions: None,
        disk: None,
    }
}

/// The state of the kept database in this folder.
pub(super) fn state(folder: &Path) -> Result<State, KeptError> {
    load(folder).map(|kept| kept.state)
}
