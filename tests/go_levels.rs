//! Each level that an engine in Go, or a server, declares is what it does: its sync calls for 100 commits are counted with strace.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use std::path::Path;
use std::process::Command;

const COMMITS: u32 = 100;
/// Syncs that a level below power may make while it commits that often: the files of a log that grows.
const MOST: i64 = COMMITS as i64 / 10;

const PUTS: &str = r#"
about = "Puts by one thread"

[[phase]]
name = "put"
mix = { put = 1 }
distribution = "permutation"
threads = 1
ops = 100
"#;

/// A server whose program is here; strace follows it.
fn is_server_here(engine: &serde_json::Value) -> bool {
    let has_program = || Command::new("redis-server").arg("--version").output().is_ok();
    engine["family"] == "server" && has_program()
}

/// The engines in Go, and servers: name, levels, whether it is here.
fn engines(folder: &Path) -> Vec<(String, Vec<String>, bool)> {
    let printed = kvdyno(folder, "engines --json");
    let engines: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let engines = engines.as_array().unwrap().iter();
    let engines = engines.filter(|engine| engine["language"] == "Go" || is_server_here(engine));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let levels = |value: &serde_json::Value| value.as_array().into_iter().flatten().map(text).collect();
    engines
        .map(|engine| (text(&engine["name"]), levels(&engine["levels"]), engine["is_present"] == true))
        .collect()
}

/// strace of `words`, into `folder/trace`.
fn traced(folder: &Path, words: &str) -> Command {
    let mut command = Command::new("strace");
    command
        .args("-f --seccomp-bpf -qq -o trace -e trace=fsync,fdatasync,msync,sync,syncfs".split(' '))
        .args(words.split_whitespace())
        .current_dir(folder)
        .env_remove("KVDYNO_PLUGINS");
    command
}

/// Calls in a trace that return when what was written is on stable storage. One that another thread interrupts in the
/// trace has two lines, of which the second has no bracket behind the name.
fn syncs_in(trace: &str) -> i64 {
    let calls = ["fsync(", "fdatasync(", "sync(", "syncfs(", "msync("];
    let is_sync = |line: &&str| {
        let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
        calls.iter().any(|name| call.starts_with(name)) && !call.contains("MS_ASYNC")
    };
    trace.lines().filter(is_sync).count() as i64
}

/// The sync calls of a whole run with so many commits of `join` puts each.
fn syncs_of_run(folder: &Path, engine: &str, level: &str, commits: u32, join: u32) -> Result<i64, String> {
    let binary = env!("CARGO_BIN_EXE_kvdyno");
    let ops = commits * join;
    let words = format!(
        "{binary} run puts.toml --engines {engine} --durability {level} --keys 2k --ops {ops} \
         --set put.join={join} --runs 1 --quiet"
    );
    let output = traced(folder, &words).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let talk = String::from_utf8_lossy(&output.stderr);
        return Err(talk.lines().last().unwrap_or("it said nothing").to_string());
    }
    let in_force = levels_in_force(folder, engine);
    if in_force != [format!("{level:?}")] {
        return Err(format!("{engine} declares {level}, and {in_force:?} was in force"));
    }
    Ok(syncs_in(&std::fs::read_to_string(folder.join("trace")).unwrap()))
}

/// What the records of an engine's trials say, which are removed.
fn levels_in_force(folder: &Path, engine: &str) -> Vec<String> {
    let results = folder.join("kvdyno-results");
    let mut levels = Vec::new();
    for run in std::fs::read_dir(&results).unwrap().flatten() {
        for trial in std::fs::read_dir(run.path().join("trials")).unwrap().flatten() {
            let text = std::fs::read_to_string(trial.path().join("record.json")).unwrap();
            let record: serde_json::Value = serde_json::from_str(&text).unwrap();
            if record["engine"]["name"] == engine {
                levels.push(record["phases"][0]["durability_in_force"].to_string());
            }
        }
    }
    std::fs::remove_dir_all(results).unwrap();
    levels
}

/// Those of 100 commits: a run with 200 less a run with 100, so that opening, closing and the record do not count.
fn syncs(folder: &Path, engine: &str, level: &str, join: u32) -> Result<i64, String> {
    let fewer = syncs_of_run(folder, engine, level, COMMITS, join)?;
    Ok(syncs_of_run(folder, engine, level, 2 * COMMITS, join)? - fewer)
}

#[test]
fn syncs_are_told_from_other_lines_of_a_trace() {
    let trace = "12 fsync(3)   = 0\n12 fsync(3 <unfinished ...>\n13 msync(0x7f, 4096, MS_SYNC) = 0\n\
                 12 <... fsync resumed>) = 0\n13 msync(0x7f, 4096, MS_ASYNC) = 0\n13 fdatasync(4) = 0\n\
                 13 +++ exited with 0 +++\n";
    assert_eq!(syncs_in(trace), 4);
}

#[test]
fn the_level_in_force_is_the_level_declared() {
    let folder = tempfile::tempdir().unwrap();
    let engines = engines(folder.path());
    let required = std::env::var("KVDYNO_REQUIRED_ENGINES").unwrap_or_default();
    let is_required =
        |name: &str| required.split([',', ' ']).any(|one| one == name) && std::env::var("CI").is_ok();
    let missing: Vec<_> = engines.iter().filter(|(name, _, is_here)| !is_here && is_required(name)).collect();
    assert!(missing.is_empty(), "not installed: {missing:?}");
    let has_strace = traced(folder.path(), "true").status().is_ok_and(|status| status.success());
    if !has_strace || !engines.iter().any(|(_, _, is_here)| *is_here) {
        let must = engines.iter().any(|(name, ..)| is_required(name));
        assert!(!must, "not installed: strace, or it may not trace");
        println!("skipped: not installed");
        return;
    }
    std::fs::write(folder.path().join("puts.toml"), PUTS).unwrap();
    let mut wrong = Vec::new();
    println!("engine level: syncs of {COMMITS} puts, of {COMMITS} groups of 5");
    for (name, levels, _) in engines.iter().filter(|(_, _, is_here)| *is_here) {
        for level in levels {
            let counts = [1, 5].map(|join| syncs(folder.path(), name, level, join));
            println!("{name} {level}: {counts:?}");
            let is_right = |count: &Result<i64, String>| match count {
                Ok(count) if level == "power" => *count >= i64::from(COMMITS),
                Ok(count) => *count <= MOST,
                Err(_) => false,
            };
            if !counts.iter().all(is_right) {
                wrong.push(format!("{name} {level}: {counts:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "syncs of {COMMITS} commits are not those of the level:\n{}", wrong.join("\n"));
}
