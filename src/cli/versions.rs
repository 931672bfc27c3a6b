//! The versions of engines. A driver reports the version of its library only when it opens a database, so each engine opens
//! one in a temporary folder, in a separate process that may crash or hang.

use super::error::CliError;
use kvdyno_core::engine::abi::{KV_CLOCK_MONOTONIC, KV_FIXED_KEY_SIZE, KV_GET, KV_NONE, KV_PUT};
use kvdyno_core::engine::{Database, Engine, Registry, Request, environment_of};
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::start::thread_in;
use kvdyno_measure::{Event, Task, signals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Opens a database in a process of its own, and tells the version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VersionTask {
    /// Name of the engine.
    engine: String,
    /// Its plug-in; `None` if it is built in.
    plugin: Option<PathBuf>,
    /// Folder to create.
    folder: PathBuf,
}

/// Interval between checks of the time.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Task for VersionTask {
    const KIND: Kind = Kind::Version;
    /// The version.
    type Message = String;
    type Prepared = ();

    fn prepare(&self) {}

    fn run(self, (): ()) -> Result<u8, String> {
        let registry = Registry::alone(self.plugin.as_deref()).map_err(|error| error.to_string())?;
        let engine =
            registry.engine(&self.engine).map_err(|_| "the engine is no longer available".to_string())?;
        std::fs::create_dir(&self.folder)
            .map_err(|error| format!("cannot create {}: {error}", self.folder.display()))?;
        let is_fixed = engine.capabilities() & KV_FIXED_KEY_SIZE != 0;
        let request = Request {
            level: KV_NONE,
            create: true,
            cache_bytes: Some(8 << 20),
            expected_rows: 1000,
            disk_limit_bytes: 64 << 20,
            key_size_max: 16,
            key_size_fixed: if is_fixed { 16 } else { 0 },
            value_size_max: 100,
            threads: 1,
            keyspaces: 1,
            kinds: 1 << KV_GET | 1 << KV_PUT,
            clock: KV_CLOCK_MONOTONIC,
            ..Request::default()
        };
        let database = Database::open(&engine, &self.folder, &request).map_err(|error| error.to_string())?;
        // Told before close, which may be slow or fail.
        VersionTask::tell(&database.effective().version);
        database.close().map_err(|error| error.to_string())?;
        Ok(0)
    }
}

/// The mark of the folder in which all engines open their databases, and the start of its name; a process's number follows.
const MARK: &str = "engines";
const NAME: &str = "versions-";

/// The versions, by name, of the engines that reported theirs within `budget`, or until the user stops the command. An `Err`
/// says why there is no place for their databases.
pub(super) fn versions(engines: &[&Engine], budget: Duration) -> Result<BTreeMap<String, String>, CliError> {
    let until = Instant::now() + budget;
    let found = Mutex::new(BTreeMap::new());
    let place = std::env::temp_dir();
    let failed = |reason: &dyn Display| {
        CliError::failed(format!("{reason}; set TMPDIR to a folder that exists and that you may write to"))
    };
    if !place.is_dir() {
        // It belongs to the user, who may have misspelled it.
        return Err(failed(&format!("there is no folder {}", place.display())));
    }
    signals::count_interrupts();
    remove_leftovers(&place);
    let folder = DataFolder::create(&place, MARK, &format!("{NAME}{}", std::process::id()))
        .map_err(|error| failed(&error.to_string()))?;
    // Held as long as this process lives.
    let _lock =
        File::open(folder.root()).and_then(|root| root.try_lock().map(|()| root).map_err(io::Error::from));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(engine) = engines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let own = folder.database().join(engine.name());
            if let (Some(version), Ok(mut found)) = (ask(engine, &own, until), found.lock()) {
                found.insert(engine.name().to_string(), version);
            }
        }
    };
    // Opening waits for the disk as often as for a CPU.
    let workers = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started =
            (0..workers.min(engines.len())).map(|_| thread_in(scope, work)).filter(Result::is_ok).count();
        if started == 0 {
            work();
        }
    });
    // If the folder cannot be removed, it stays marked in the system's temporary folder.
    let _ = folder.remove();
    Ok(found.into_inner().unwrap_or_default())
}

/// Removes the folders of commands that were killed.
fn remove_leftovers(place: &Path) {
    let start = format!("kvdyno-{NAME}");
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(&start)?.parse::<u32>().ok());
        let Some(maker) = maker else { continue };
        // The process may be one that is not seen here, as that of a container, but then it has the lock.
        let is_left = || File::open(entry.path()).is_ok_and(|root| root.try_lock().is_ok());
        if !Path::new(&format!("/proc/{maker}")).exists() && is_left() {
            // What has no mark of ours is not removed.
            let left = DataFolder::create(place, MARK, &format!("{NAME}{maker}"));
            let _ = left.and_then(|folder| folder.remove());
        }
    }
}

/// Starts a process that opens the engine, and reads the version from it.
fn ask(engine: &Engine, folder: &Path, until: Instant) -> Option<String> {
    let is_over = || Instant::now() >= until || signals::interrupts() > 0;
    if is_over() {
        return None;
    }
    let task = VersionTask {
        engine: engine.name().to_string(),
        plugin: engine.plugin_file().map(PathBuf::from),
        folder: folder.to_path_buf(),
    };
    let started = task.start(&std::env::current_exe().ok()?, |command| {
        command.envs(environment_of(engine.name()));
        // Some engines have temporary files elsewhere, which stay if their process is killed.
        command.envs(folder.parent().map(|all| ("TMPDIR", all)));
        command.stderr(Stdio::null());
    });
    let mut process = started.ok()?;
    let mut version = None;
    loop {
        match process.next(POLL_INTERVAL) {
            Event::Told(told) => version = version.or(Some(told)),
            Event::Quiet => {}
            Event::Ended(_) => break,
        }
        if is_over() {
            process.kill();
        }
    }
    let plain: String = version?.chars().filter(|letter| !letter.is_control()).collect();
    Some(plain).filter(|version| !version.is_empty())
}
