//! Every available engine passes `kvdyno verify`; every planted fault is detected, by it and by an ordinary run; the
//! reference engines cause no false alarm.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use std::sync::Mutex;

/// The names that `kvdyno engines` lists as present.
fn present(folder: &std::path::Path) -> Vec<String> {
    let printed = kvdyno(folder, "engines --json");
    let engines: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let here = engines.as_array().unwrap().iter().filter(|engine| engine["is_present"] == true);
    here.map(|engine| engine["name"].as_str().unwrap().to_string()).collect()
}

/// A folder in memory where there is one, because syncs of a disk take most of the time otherwise.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn mutants(folder: &std::path::Path) -> Vec<String> {
    let printed = kvdyno(folder, "verify mutants --ops 1 --seconds 0.01 --json");
    let reports: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let names = reports.as_array().unwrap().iter();
    // A report has the name in the table, `mutant-stale-read`; users type `mutant:stale-read`.
    let names = names.map(|report| report["engine"].as_str().unwrap().replacen("mutant-", "mutant:", 1));
    names.filter(|name| !OF_DURABILITY.contains(&&name[..])).collect()
}

/// Faults that show only after a crash; tests/audit.rs and tests/crash.rs catch them.
const OF_DURABILITY: [&str; 7] = [
    "mutant:acknowledges-before-write",
    "mutant:acknowledges-before-sync",
    "mutant:lies-about-level",
    "mutant:crash-loses-tail",
    "mutant:crash-loses-creation",
    "mutant:crash-leaves-holes",
    "mutant:crash-halves-transaction",
];

/// Engines that start a server for each database: their program, and options with which that takes less time. A first
/// election of several members takes seconds, and so does the return of a node; tests/cli/clusters.rs runs them as they are.
const SERVERS: [(&str, &str, &str); 5] = [
    ("redis", "redis-server", ""),
    ("redis-cluster", "redis-server", " --option redis-cluster.node-timeout=1000"),
    ("etcd", "etcd", " --option etcd.members=1"),
    ("memcached", "memcached", ""),
    ("postgresql", "postgres", ""),
];

#[test]
fn every_engine_present_conforms() {
    let folder = tempfile::tempdir().unwrap();
    // The drivers of servers are available also where their servers are not.
    let debian = std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some());
    let is_missing = |name: &str| {
        let server = SERVERS.iter().find(|(engine, ..)| *engine == name).map(|(_, server, _)| *server);
        let is_missing = server.is_some_and(|server| {
            std::process::Command::new(server).arg("--version").output().is_err()
                && !(server == "postgres" && debian)
        });
        assert!(!is_missing || std::env::var("CI").as_deref() != Ok("true"), "CI needs {server:?}");
        is_missing
    };
    let verified = |name: &str| {
        if is_missing(name) {
            println!("skipped: the server of {name} is not installed");
            return None;
        }
        let options =
            SERVERS.iter().find(|(engine, ..)| *engine == name).map_or("", |(.., options)| *options);
        // Each in its own folder, because several are verified at the same time.
        let own = fast_folder();
        let printed =
            kvdyno(own.path(), &format!("verify {name} --ops 5000 --seconds 3 --stall-seconds 600{options}"));
        println!("{}", printed.stdout.trim_end());
        let is_red = printed.code != Some(0);
        is_red.then(|| format!("{name}: {}{}", printed.stdout, printed.stderr))
    };
    let is_server = |name: &String| SERVERS.iter().any(|(engine, ..)| engine == name);
    // A database of Cassandra takes ten seconds to open, and TiKV needs a cluster: `make test-all` verifies them.
    let is_elsewhere = |name: &str| ["cassandra", "tikv", "tikv-raw"].contains(&name);
    let here = present(folder.path()).into_iter().filter(|name| !is_elsewhere(name));
    let (servers, others): (Vec<String>, Vec<String>) = here.partition(is_server);
    let others = Mutex::new(others.into_iter());
    let next = || others.lock().unwrap().next();
    let red: Vec<String> = std::thread::scope(|scope| {
        let verified = &verified;
        // Most of their time they wait for a server that starts, so that all of them run beside the others.
        let waiting = servers.iter().map(|name| scope.spawn(move || Vec::from_iter(verified(name))));
        let mut threads: Vec<_> = waiting.collect();
        for _ in 0..2 {
            threads
                .push(scope.spawn(|| std::iter::from_fn(next).filter_map(|name| verified(&name)).collect()));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(red.is_empty(), "seed 1:\n{}", red.join("\n"));
}

#[test]
fn every_planted_fault_is_caught_by_verify() {
    let folder = fast_folder();
    let mut missed = Vec::new();
    for name in mutants(folder.path()) {
        let printed = kvdyno(folder.path(), &format!("verify {name} --ops 5000 --seconds 3"));
        if printed.code != Some(3) {
            missed.push(format!("{name}: exit {:?}\n{}", printed.code, printed.stdout));
        }
    }
    assert!(missed.is_empty(), "seed 1: not caught: {}", missed.join("\n"));
}

#[test]
fn every_planted_fault_is_caught_by_an_ordinary_run() {
    let folder = fast_folder();
    std::fs::write(folder.path().join("all.toml"), include_str!("conformance/all.toml")).unwrap();
    std::fs::write(folder.path().join("indexed.toml"), include_str!("conformance/indexed.toml")).unwrap();
    std::fs::write(folder.path().join("lists.toml"), include_str!("conformance/lists.toml")).unwrap();
    std::fs::write(folder.path().join("empty.toml"), include_str!("conformance/empty.toml")).unwrap();
    let collections = include_str!("conformance/collections.toml");
    std::fs::write(folder.path().join("sorted.toml"), collections).unwrap();
    let hashes = collections.replace("sorted", "hash").replace("\"collections\"", "\"hashes\"");
    std::fs::write(folder.path().join("hashes.toml"), hashes).unwrap();
    let files = "all.toml indexed.toml lists.toml sorted.toml hashes.toml empty.toml";
    let run = |name: &str| kvdyno(folder.path(), &format!("run {files} --engines {name} --quiet --runs 1"));
    let mut passed = Vec::new();
    for name in mutants(folder.path()) {
        let printed = run(&name);
        // Exit code 1: a trial failed, for example when a transaction ends in the middle.
        if ![Some(1), Some(3)].contains(&printed.code) {
            passed.push(format!("{name} (exit {:?})", printed.code));
        }
    }
    assert!(passed.is_empty(), "not caught: {passed:?}");
    for name in ["memory-btree", "memory-map"] {
        let printed = run(name);
        assert_eq!(printed.code, Some(0), "a false alarm on {name}\n{}\n{}", printed.stderr, printed.stdout);
    }
}
