//! Machines that are short of something: for every embedded engine and everything that can be short, and for servers that kvdyno
//! starts, the cause of the failed trial is the right one, or the message says that it is not known.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, open_folder, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// What can be short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Short {
    Space,
    Inodes,
    Descriptors,
    AddressSpace,
    MemoryCap,
    Processes,
}

const ALL: [Short; 6] = [
    Short::Space,
    Short::Inodes,
    Short::Descriptors,
    Short::AddressSpace,
    Short::MemoryCap,
    Short::Processes,
];

impl Short {
    fn name(self) -> &'static str {
        match self {
            Short::Space => "space",
            Short::Inodes => "inodes",
            Short::Descriptors => "open files",
            Short::AddressSpace => "address space",
            Short::MemoryCap => "memory cap",
            Short::Processes => "processes",
        }
    }

    /// The cause of a trial that fails for it.
    fn cause(self) -> &'static str {
        match self {
            Short::Space => "no-space",
            Short::Inodes => "no-inodes",
            Short::Descriptors => "too-many-files",
            Short::AddressSpace => "address-space",
            Short::MemoryCap => "out-of-memory",
            Short::Processes => "too-many-processes",
        }
    }

    /// What a message of kvdyno itself has, if it cannot even start a trial.
    fn words(self) -> &'static [&'static str] {
        match self {
            Short::Space => &["no space", "No space left", "free space"],
            Short::Inodes => &["no inode", "No space left", "free inodes"],
            Short::Descriptors => &["ulimit -n"],
            Short::AddressSpace => &["ulimit -v"],
            Short::MemoryCap => &["ran out of memory under a cap", "memory cap"],
            Short::Processes => &["ulimit -u"],
        }
    }

    /// Limits, of which the first is used under which the engine fails.
    fn limits(self) -> &'static [u64] {
        match self {
            // MiB.
            Short::Space => &[6],
            // Four are those of the harness.
            Short::Inodes => &[16, 12, 10, 8, 7, 6, 5, 4],
            Short::Descriptors => &[48, 32, 24, 20, 17, 14, 12, 10, 9, 8],
            // MiB.
            Short::AddressSpace => &[4000, 2000, 1000, 600, 400, 250, 150, 100],
            Short::MemoryCap => &[32, 24, 16],
            Short::Processes => &[32, 20, 16, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2],
        }
    }
}

/// A file system in memory, with so many MiB and files; unmounted when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(options: &str) -> Option<Disk> {
        let disk = Disk(tempfile::tempdir().unwrap());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("mode=777,{options}"), "none"]).arg(disk.0.path());
        let mounted = mount.output();
        mounted.is_ok_and(|output| output.status.success()).then_some(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// The result of a cell.
#[derive(Debug, PartialEq)]
enum Cell {
    /// The cause is right, under this limit.
    Right(u64),
    /// It says that the cause is not known, and the limit is among those that it names.
    Suspected(u64, String),
    /// It hung, and the message names what may be the reason.
    Hung(u64, String),
    /// It reported no error and lost rows, and the message names what was short.
    Lost(u64, String),
    /// It did not fail under the lowest limit.
    Survived,
    /// Nothing of this is short for an engine in memory.
    None,
    Wrong(u64, String),
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Cell::Right(limit) => format!("right at {limit}"),
            Cell::Suspected(limit, _) => format!("not known at {limit}"),
            Cell::Hung(limit, _) => format!("hangs at {limit}"),
            Cell::Lost(limit, _) => format!("loses rows at {limit}"),
            Cell::Survived => "survives".into(),
            Cell::None => "in memory".into(),
            Cell::Wrong(limit, _) => format!("WRONG at {limit}"),
        }
    }
}

/// A user of this test alone, whose processes no other one counts.
fn user() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (200_000 + (std::process::id() % 10_000) * 100 + NEXT.fetch_add(1, Ordering::Relaxed) % 100).to_string()
}

/// Runs a fill under a limit.
fn run(engine: &str, short: Short, limit: u64, folder: &Path) -> Option<Printed> {
    let disk = match short {
        Short::Space => Some(Disk::new(&format!("size={limit}m"))?),
        Short::Inodes => Some(Disk::new(&format!("size=256m,nr_inodes={limit}"))?),
        _ => None,
    };
    let own = folder.join("data");
    let data = disk.as_ref().map_or(own.as_path(), |disk| disk.0.path());
    let mut command: Vec<String> = match short {
        Short::Descriptors => vec!["prlimit".into(), format!("--nofile={limit}")],
        Short::AddressSpace => vec!["prlimit".into(), format!("--as={}", limit << 20)],
        Short::Processes => {
            let user = user();
            let words =
                ["prlimit", &format!("--nproc={limit}"), "setpriv", "--clear-groups"].map(String::from);
            words.into_iter().chain([format!("--reuid={user}"), format!("--regid={user}")]).collect()
        }
        _ => Vec::new(),
    };
    command.push(env!("CARGO_BIN_EXE_kvdyno").into());
    // More than fits into the smallest file system, and for an engine in memory into the smallest cap.
    let rows = if short == Short::MemoryCap { "--keys 60k --value-size 1000" } else { "--keys 100k" };
    let words = format!(
        "run fill-seq --engines {engine} {rows} --runs 1 --quiet --ignore-space --stall-seconds 20 --durability none"
    );
    command.extend(words.split(' ').map(String::from));
    command.extend([
        "--data".into(),
        data.display().to_string(),
        "--results".into(),
        folder.display().to_string(),
    ]);
    if short == Short::MemoryCap {
        command.extend(["--memory".into(), format!("{limit}M")]);
    }
    let mut started = Command::new(&command[0]);
    started.args(&command[1..]).current_dir(folder).stdin(Stdio::null());
    started.env_remove("KVDYNO_PLUGINS").env("RUST_BACKTRACE", "0").env("TMPDIR", folder);
    Some(started.output().unwrap().into())
}

/// The outcome of the engine's trial; none: there is no record of it.
fn outcome(engine: &str, folder: &Path) -> Option<serde_json::Value> {
    let mut command = command::prepared(folder, "report --format json");
    let run = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let run: PathBuf = run.filter(|path| path.join("run.json").exists()).max()?;
    let printed: Printed = command.arg(run).output().unwrap().into();
    let json: serde_json::Value = serde_json::from_str(&printed.stdout).ok()?;
    let records = json["records"].as_array()?.clone();
    Some(records.into_iter().find(|record| record["trial"]["engine"] == engine)?["outcome"].clone())
}

/// Lowers a limit until the engine fails; none: the limit cannot be set here.
fn cell(engine: &str, in_memory: bool, short: Short, limits: &[u64]) -> Option<Cell> {
    if in_memory && matches!(short, Short::Space | Short::Inodes) {
        return Some(Cell::None);
    }
    for &limit in limits {
        let folder = open_folder();
        let printed = run(engine, short, limit, folder.path())?;
        if printed.stderr.contains("memory cannot be capped") {
            return None;
        }
        let all = format!("{}\n{}", printed.stderr, printed.stdout);
        if printed.code == Some(70) || all.contains("has a bug") {
            return Some(Cell::Wrong(limit, all));
        }
        let outcome = outcome(engine, folder.path());
        let Some(outcome) = outcome else {
            // No trial could be started.
            let is_named = short.words().iter().any(|words| all.contains(words));
            return Some(if is_named { Cell::Right(limit) } else { Cell::Wrong(limit, all) });
        };
        let text = outcome.to_string();
        if outcome["status"] == "ok" {
            continue;
        }
        if outcome["cause"] == short.cause() {
            return Some(Cell::Right(limit));
        }
        let is_named = short.words().iter().any(|words| text.contains(words));
        if outcome["cause"] == "timeout" && is_named {
            return Some(Cell::Hung(limit, text));
        }
        if outcome["status"] == "wrong-answers" && is_named {
            return Some(Cell::Lost(limit, text));
        }
        let is_suspected = is_named && (outcome["suspects"].is_string() || text.contains("these are low"));
        return Some(if is_suspected { Cell::Suspected(limit, text) } else { Cell::Wrong(limit, text) });
    }
    Some(Cell::Survived)
}

/// The embedded engines that are available, and whether each keeps its rows in memory.
fn engines() -> BTreeMap<String, bool> {
    let mut all = available(|family| !matches!(family, "server" | "null" | "example"));
    all.retain(|name, _| !name.starts_with("null") && !name.starts_with("example"));
    all
}

/// The available engines of families, and whether each keeps its rows in memory.
fn available(is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, bool> {
    let folder = tempfile::tempdir().unwrap();
    let printed = command::kvdyno(folder.path(), "engines --json");
    let all: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let is_wanted =
        |row: &&serde_json::Value| row["is_present"] == true && row["family"].as_str().is_none_or(&is_wanted);
    let rows = all.as_array().unwrap().iter().filter(is_wanted);
    let row = |row: &serde_json::Value| {
        let declared = row["capabilities_declared"].as_array().unwrap();
        (row["name"].as_str().unwrap().to_string(), declared.iter().any(|name| name == "in-memory"))
    };
    rows.map(row).collect()
}

/// Fills the cells with two threads.
fn matrix(cells: Vec<(String, bool, Short, Vec<u64>)>) -> Vec<(String, Short, Option<Cell>)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((place, (engine, in_memory, short, limits))) =
                    Some(next.fetch_add(1, Ordering::Relaxed))
                        .and_then(|place| Some((place, cells.get(place)?)))
                {
                    let found = cell(engine, *in_memory, *short, limits);
                    println!("{engine}, {}: {}", short.name(), found.as_ref().map_or("-".into(), Cell::text));
                    done.lock().unwrap().push((place, engine.clone(), *short, found));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(place, ..)| *place);
    done.into_iter().map(|(_, engine, short, found)| (engine, short, found)).collect()
}

fn assert_right(found: &[(String, Short, Option<Cell>)]) {
    let wrong: Vec<String> = found
        .iter()
        .filter_map(|(engine, short, cell)| match cell {
            Some(Cell::Wrong(limit, text)) => Some(format!("{engine}, {} {limit}: {text}", short.name())),
            _ => None,
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong causes:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether file systems can be mounted and users changed here.
fn can_limit() -> bool {
    let is_possible = Disk::new("size=1m").is_some();
    if !is_possible {
        skip("loop devices", "only root can mount file systems and change users");
    }
    is_possible
}

#[test]
fn the_cause_is_what_was_short() {
    if !can_limit() {
        return;
    }
    let known = engines();
    let cells = [
        ("rocksdb", Short::Space, 6),
        ("rocksdb", Short::Inodes, 8),
        ("badger", Short::Descriptors, 16),
        ("badger", Short::AddressSpace, 2000),
        ("memory-btree", Short::MemoryCap, 32),
        ("pebble", Short::Processes, 6),
    ];
    let here = cells.into_iter().filter_map(|(engine, short, limit)| {
        let in_memory = known.get(engine)?;
        Some((engine.to_string(), *in_memory, short, vec![limit]))
    });
    let found = matrix(here.collect());
    assert_right(&found);
    for (engine, short, cell) in found {
        assert!(matches!(cell, Some(Cell::Right(_)) | None), "{engine}, {}: {cell:?}", short.name());
    }
}

/// Servers that kvdyno starts, the program of each, and limits under which it does not start or is killed.
const SERVERS: &[(&str, &str, Short, u64)] = &[
    ("redis", "redis-server", Short::Descriptors, 16),
    ("redis", "redis-server", Short::Processes, 8),
    ("redis", "redis-server", Short::MemoryCap, 16),
    ("redis-cluster", "redis-server", Short::Space, 6),
    ("redis-cluster", "redis-server", Short::Descriptors, 16),
    ("redis-cluster", "redis-server", Short::Processes, 12),
    ("redis-cluster", "redis-server", Short::MemoryCap, 16),
    ("memcached", "memcached", Short::Descriptors, 20),
    ("memcached", "memcached", Short::Processes, 12),
    ("etcd", "etcd", Short::Space, 6),
    ("etcd", "etcd", Short::Inodes, 10),
    ("etcd", "etcd", Short::Descriptors, 20),
    ("postgresql", "postgres", Short::Space, 6),
    ("postgresql", "postgres", Short::Inodes, 10),
    ("postgresql", "postgres", Short::Descriptors, 40),
];

#[test]
fn the_cause_is_right_for_servers_that_are_started() {
    if !can_limit() {
        return;
    }
    let known = available(|family| family == "server");
    let is_installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let here =
        SERVERS.iter().filter(|(engine, program, ..)| known.contains_key(*engine) && is_installed(program));
    // A server has its rows in memory, but its files on the disk.
    let cells = here.map(|(engine, _, short, limit)| ((*engine).to_string(), false, *short, vec![*limit]));
    let found = matrix(cells.collect());
    assert_right(&found);
    for (engine, short, cell) in found {
        assert!(matches!(cell, Some(Cell::Right(_)) | None), "{engine}, {}: {cell:?}", short.name());
    }
}

#[test]
#[ignore = "takes half an hour; part of make test-all"]
fn the_cause_is_right_for_every_engine() {
    if !can_limit() {
        return;
    }
    let only = std::env::var("KVDYNO_ENGINES").unwrap_or_default();
    let all =
        engines().into_iter().filter(|(name, _)| only.is_empty() || only.split(',').any(|one| one == name));
    let all: Vec<(String, bool)> = all.collect();
    let cells = all.iter().flat_map(|(engine, in_memory)| {
        ALL.map(|short| (engine.clone(), *in_memory, short, short.limits().to_vec()))
    });
    let found = matrix(cells.collect());
    println!("| engine | {} |", ALL.map(Short::name).join(" | "));
    println!("|---|{}", "---|".repeat(ALL.len()));
    for row in found.chunks(ALL.len()) {
        let texts: Vec<String> =
            row.iter().map(|(_, _, cell)| cell.as_ref().map_or("-".into(), Cell::text)).collect();
        println!("| {} | {} |", row[0].0, texts.join(" | "));
    }
    assert_right(&found);
}
