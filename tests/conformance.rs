//! Every available engine passes `kvdyno prove --only rules`; every planted bug is detected, by it and by an ordinary run; the
//! reference engines cause no false alarm.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use std::collections::BTreeSet;
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

/// A mutant, the check of `kvdyno prove --only rules` that must detect its fault, and the workload that must.
type Caught = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const CAUGHT: &[Caught] = &[
    ("mutant:stale-read", "overwrite", "all"),
    ("mutant:stale-strong", "overwrite", "all"),
    ("mutant:lost-update", "model", "all"),
    ("mutant:lost-race", "threads-contended", "all"),
    ("mutant:ghost-after-delete", "delete", "all"),
    ("mutant:bit-flip", "independent-values", "all"),
    ("mutant:cache-swaps", "cache", "all"),
    ("mutant:swapped-values", "volume", "all"),
    ("mutant:truncated-value", "volume", "all"),
    ("mutant:zero-page", "volume", "all"),
    ("mutant:wrong-key", "volume", "all"),
    ("mutant:scan-out-of-order", "scan-forward", "all"),
    ("mutant:scan-duplicate", "scan-forward", "all"),
    ("mutant:scan-missing", "scan-forward", "all"),
    ("mutant:scan-past-bound", "scan-prefix", "all"),
    ("mutant:scan-early-end", "scan-forward", "all"),
    ("mutant:phantom-put", "basics", "all"),
    ("mutant:abort-commits", "long-transaction", "all"),
    ("mutant:non-atomic-transaction", "transaction-failure", "all"),
    ("mutant:loses-tail-on-reopen", "model-reopen", "all"),
    ("mutant:loses-creation", "creation", "all"),
    ("mutant:previous-campaign", "volume", "all"),
    ("mutant:error-swallowed", "too-large-key", "all"),
    ("mutant:timing-liar", "honest-time", "all"),
    ("mutant:waiting-liar", "due", "all"),
    ("mutant:dangling-buffer", "multi-get", "all"),
    ("mutant:declares-too-much", "scan-reverse", "all"),
    ("mutant:wrong-miss", "basics", "all"),
    ("mutant:miss-for-present", "volume", "all"),
    ("mutant:new-overwrites", "new", "all"),
    ("mutant:delete-noop", "delete", "all"),
    ("mutant:merge-wrong", "merge-add", "all"),
    ("mutant:keyspace-mixed", "keyspaces", "all"),
    ("mutant:index-row-lost", "indexes", "indexed"),
    ("mutant:collection-mixed", "collections", "sorted"),
    ("mutant:pop-twice", "lists", "lists"),
    ("mutant:push-lost", "lists", "lists"),
    ("mutant:empty-absent", "empty-values", "empty"),
    ("mutant:get-fails", "volume", "all"),
];

/// Faults that show only after a crash; tests/audit.rs and tests/crash.rs catch them.
const OF_DURABILITY: [&str; 9] = [
    "mutant:acknowledges-before-write",
    "mutant:acknowledges-before-sync",
    "mutant:lies-about-level",
    "mutant:crash-loses-tail",
    "mutant:crash-loses-creation",
    "mutant:crash-leaves-holes",
    "mutant:crash-halves-transaction",
    "mutant:crash-writes-behind-torn",
    "mutant:crash-forgets-repair",
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
        let printed = kvdyno(
            own.path(),
            &format!("prove --only rules {name} --ops 5000 --seconds 3 --stall-seconds 600{options}"),
        );
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
        // Of an engine's eight seconds, two are processor time.
        for _ in 0..4 {
            threads
                .push(scope.spawn(|| std::iter::from_fn(next).filter_map(|name| verified(&name)).collect()));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(red.is_empty(), "seed 1:\n{}", red.join("\n"));
}

/// The workloads of CAUGHT, written into a folder.
fn workloads(folder: &std::path::Path) {
    let collections = include_str!("conformance/collections.toml");
    let files = [
        ("all", include_str!("conformance/all.toml")),
        ("indexed", include_str!("conformance/indexed.toml")),
        ("lists", include_str!("conformance/lists.toml")),
        ("empty", include_str!("conformance/empty.toml")),
        ("sorted", collections),
        ("hashes", &collections.replace("sorted", "hash").replace("\"collections\"", "\"hashes\"")),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

const ALL_WORKLOADS: &str = "all.toml indexed.toml lists.toml sorted.toml hashes.toml empty.toml";

/// Whether an ordinary run detects the fault. Exit code 1: a trial failed, for example when a transaction ends in the middle.
fn is_caught_by_run(folder: &std::path::Path, name: &str, files: &str) -> Result<(), String> {
    let printed = kvdyno(folder, &format!("run {files} --engines {name} --quiet --runs 1"));
    let is_caught = [Some(1), Some(3)].contains(&printed.code);
    is_caught.then_some(()).ok_or(format!("run {files}, {name}: exit {:?}\n{}", printed.code, printed.stdout))
}

fn is_caught_by_verify(folder: &std::path::Path, name: &str, check: &str) -> Result<(), String> {
    let printed = kvdyno(folder, &format!("prove --only rules {name} --ops 5000 --seconds 3{check}"));
    let is_caught = printed.code == Some(3);
    is_caught
        .then_some(())
        .ok_or(format!("verify{check}, {name}: exit {:?}\n{}", printed.code, printed.stdout))
}

/// Two mutants at a time, each in its own folder.
fn assert_caught(is_caught: impl Fn(&std::path::Path, &Caught) -> Result<(), String> + Sync) {
    let mutants = Mutex::new(CAUGHT.iter());
    let next = || mutants.lock().unwrap().next();
    let missed: Vec<String> = std::thread::scope(|scope| {
        let tried = || {
            let folder = fast_folder();
            workloads(folder.path());
            Vec::from_iter(
                std::iter::from_fn(next).filter_map(|mutant| is_caught(folder.path(), mutant).err()),
            )
        };
        let threads = [scope.spawn(tried), scope.spawn(tried)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(missed.is_empty(), "seed 1: not caught: {}", missed.join("\n"));
}

#[test]
fn every_mutant_is_caught_or_shows_only_after_a_crash() {
    let folder = fast_folder();
    let printed =
        kvdyno(folder.path(), "prove --only rules mutants --ops 1 --seconds 0.01 --check open --json");
    let reports: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let names = reports.as_array().unwrap().iter();
    // A report has the name in the table, `mutant-stale-read`; users type `mutant:stale-read`.
    let names = names.map(|report| report["engine"].as_str().unwrap().replacen("mutant-", "mutant:", 1));
    let known = CAUGHT.iter().map(|(name, ..)| *name).chain(OF_DURABILITY).map(String::from);
    assert_eq!(known.collect::<BTreeSet<_>>(), names.collect());
}

#[test]
fn every_planted_fault_is_caught_by_its_check_and_by_an_ordinary_run() {
    assert_caught(|folder, (name, check, workload)| {
        is_caught_by_verify(folder, name, &format!(" --check {check}"))?;
        is_caught_by_run(folder, name, &format!("{workload}.toml"))
    });
}

#[test]
#[ignore = "takes some minutes; part of make test-all"]
fn every_planted_fault_is_caught_by_all_checks_and_all_workloads_together() {
    assert_caught(|folder, (name, ..)| {
        is_caught_by_verify(folder, name, "")?;
        is_caught_by_run(folder, name, ALL_WORKLOADS)
    });
}

#[test]
fn the_workloads_that_catch_mutants_cause_no_false_alarm() {
    let folder = fast_folder();
    workloads(folder.path());
    for name in ["memory-btree", "memory-map"] {
        let printed =
            kvdyno(folder.path(), &format!("run {ALL_WORKLOADS} --engines {name} --quiet --runs 1"));
        assert_eq!(printed.code, Some(0), "a false alarm on {name}\n{}\n{}", printed.stderr, printed.stdout);
    }
}
