//! Databases that are kept after their trial, and that later trials start with. Their state is stored next to their files,
//! so that reads can be checked as if the database had just been written.

use super::check::Versions;
use super::data::{self, Growth};
use super::folder::is_marked;
use super::shared::Population;
use crate::engine::file_of;
use crate::results::Trial;
use crate::workload::Workload;
use kvdyno_measure::{DiskUse, copy_file, copy_folder, read_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

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
pub fn growth(state: &State, workload: &Workload) -> Result<Growth, String> {
    let mut growth = data::growth_after(workload, fills(workload), state.population.next_insert);
    let has_merges = data::has_merges(workload);
    // A permutation of all keys, and groups of keys, depend on their number.
    let is_bound = workload.key.scattered || workload.key.prefix_groups > 0;
    if !is_bound && state.counters == 0 {
        return Ok(Growth { most: growth.most.max(state.insert_end), ..growth });
    }
    if growth.counted > state.insert_end {
        let (end, needed) = (state.insert_end, growth.counted);
        return Err(format!(
            "it has keys for {end} rows, but {needed} are needed; keep a database of a workload that inserts"
        ));
    }
    if has_merges && state.counters == 0 {
        return Err("it has no counters for merges; keep a database of a workload with merges".into());
    }
    growth.most = state.insert_end;
    Ok(growth)
}

impl State {
    /// Checks whether a trial can start with this database; an `Err` is the reason in one line.
    pub fn fits(&self, trial: &Trial) -> Result<(), String> {
        let workload = &trial.workload;
        if let Some(reason) = is_unfit(workload) {
            return Err(reason);
        }
        if self.options != trial.options {
            let text = |options: &[(String, String)]| match options {
                [] => "no options".to_string(),
                all => {
                    all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
                }
            };
            return Err(format!(
                "it was kept with {}, not with {}",
                text(&self.options),
                text(&trial.options)
            ));
        }
        if let Some(difference) = difference("", &self.rows, &rows(workload)) {
            return Err(difference);
        }
        let fills = fills(workload);
        if fills == workload.phases.len() {
            return Err(format!("workload {} has only fills", workload.name));
        }
        // After deletes, or a fill that ended by time, there are fewer keys than the skipped fills would write.
        let whole = if self.population.whole { self.population.dense } else { 0 };
        let present = self.present.unwrap_or(whole);
        if fills > 0 && present < workload.keys {
            return Err(format!("it has {present} of {} keys", workload.keys));
        }
        let growth = growth(self, workload)?;
        let counters = if data::has_merges(workload) { workload.keys } else { 0 };
        data::keys(workload, growth, counters.max(self.counters)).map(|_| ())
    }
}

/// Describes the first field that differs.
fn difference(above: &str, kept: &Map<String, Value>, requested: &Map<String, Value>) -> Option<String> {
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
                Some(format!("its {path} is {}, not {}", text(kept), text(requested)))
            }
        }
    })
}

/// The kept databases in a folder, or the folder itself if it is one; in the order of their names.
pub fn all(parent: &Path) -> Result<Vec<KeptDatabase>, String> {
    if parent.join(STATE).exists() {
        return load(parent).map(|kept| vec![kept]);
    }
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", parent.display());
    let mut folders = Vec::new();
    for entry in fs::read_dir(parent).map_err(failed)? {
        let folder = entry.map_err(failed)?.path();
        // A folder without a state was not moved completely.
        if is_marked(&folder) && folder.join(STATE).exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    folders.iter().map(|folder| load(folder)).collect()
}

fn load(folder: &Path) -> Result<KeptDatabase, String> {
    let file = folder.join(STATE);
    let wrong = |error: String| format!("{}: {error}", file.display());
    let text = read_text(&file).map_err(|error| wrong(error.to_string()))?;
    let state: State = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if state.format != FORMAT {
        return Err(wrong(format!(
            "its format is {}, but this version of kvdyno reads {FORMAT}",
            state.format
        )));
    }
    Ok(KeptDatabase { folder: folder.to_path_buf(), state })
}

/// The kept database that a trial starts with: one of its engine, with the name of its workload if there is one, or else
/// the first that fits. An `Err` is the reason in one line.
pub fn choose<'k>(all: &'k [KeptDatabase], trial: &Trial) -> Result<&'k KeptDatabase, String> {
    let own: Vec<&KeptDatabase> = all.iter().filter(|kept| kept.state.engine == trial.engine).collect();
    let named = own.iter().find(|kept| kept.state.workload == trial.workload.name);
    let first = named.or_else(|| own.iter().find(|kept| kept.state.fits(trial).is_ok())).or(own.first());
    let Some(kept) = first else {
        let mut engines: Vec<&str> = all.iter().map(|kept| kept.state.engine.as_str()).collect();
        engines.dedup();
        let engines = if engines.is_empty() { "none".to_string() } else { engines.join(", ") };
        return Err(format!("there is no kept database of {} (available: {engines})", trial.engine));
    };
    let shown = kept.folder.display();
    kept.state.fits(trial).map_err(|reason| format!("the kept database {shown} does not fit: {reason}"))?;
    let now = DiskUse::of(&kept.folder.join("db"));
    let files = |disk: &Option<DiskUse>| disk.map(|disk| (disk.files, disk.apparent_bytes));
    if files(&now) != files(&kept.state.disk) {
        return Err(format!("the files of the kept database {shown} have changed since it was kept"));
    }
    Ok(kept)
}

impl Versions {
    /// Writes the acknowledged versions; returns the length and checksum of the file.
    pub(super) fn write(&self, file: &Path) -> Result<VersionsFile, String> {
        let bytes = self.bytes();
        fs::write(file, &bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        Ok(VersionsFile { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) })
    }

    /// Loads the acknowledged versions.
    pub(super) fn read(&self, file: &Path, expected: VersionsFile) -> Result<(), String> {
        let bytes = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let found = VersionsFile { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) };
        if found != expected || !self.take(&bytes) {
            return Err(format!("{} is damaged", file.display()));
        }
        Ok(())
    }
}

/// Copies the database that a trial starts with into its empty folder: a kept one, or one of another program, which is a folder
/// or a file.
pub(super) fn copy(trial: &Trial, from: &Path, to: &Path) -> Result<(), String> {
    if !trial.is_foreign() {
        return copy_folder(&from.join("db"), to);
    }
    if from.is_dir() {
        return copy_folder(from, to);
    }
    let name = file_of(&trial.engine).ok_or("the engine keeps its database in a folder")?;
    copy_file(from, &to.join(name)).map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

/// Writes the state next to a kept database.
pub(super) fn write(folder: &Path, state: &State) -> Result<(), String> {
    let file = folder.join(STATE);
    let text = serde_json::to_string_pretty(state).map_err(|error| error.to_string())?;
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
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
pub(super) fn state(folder: &Path) -> Result<State, String> {
    load(folder).map(|kept| kept.state)
}
