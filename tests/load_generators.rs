//! Several load generators as processes on loopback against a real redis-server, which CI must have.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;
#[path = "load_generators/stores.rs"]
mod stores;

use command::{Printed, kvdyno, prepared};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: &str = "a-secret-of-these-tests";
/// A load and a phase that ends by time.
const TIMED: &str = "run ycsb-b --keys 1000 --seconds 2 --runs 1 --threads 2 --durability none --quiet";

/// Whether a program is on the PATH; CI needs it.
fn is_here(program: &str) -> bool {
    let tried = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(tried.is_ok() || std::env::var("CI").as_deref() != Ok("true"), "CI needs {program}");
    if tried.is_err() {
        println!("skipped: {program} is not here");
    }
    tried.is_ok()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    /// None: redis-server is not installed.
    fn start() -> Option<Server> {
        if !is_here("redis-server") {
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        fs::create_dir(folder.path().join("server")).unwrap();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(folder.path().join("server"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the server does not answer", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Server { child, port, folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn engine(&self) -> String {
        format!("--engines redis --option redis.url=redis://127.0.0.1:{}", self.port)
    }

    /// The number of keys in the database.
    fn keys(&self) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"DBSIZE\r\nQUIT\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines()
            .next()
            .and_then(|line| line.strip_prefix(':')?.parse().ok())
            .unwrap_or_else(|| panic!("{text}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    // A folder of a trial may be removed meanwhile.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => files.extend(files_in(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

/// The records of redis in a folder of results, which has those of one run.
fn records(results: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = files_in(results);
    files.retain(|path| path.ends_with("record.json"));
    files.sort();
    let read = |path: &PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    files.iter().map(read).filter(|record| record["trial"]["engine"] == "redis").collect()
}

/// The records of a run that load generator 0 has reported.
fn reported(folder: &Path) -> Vec<Value> {
    records(&run_in(folder))
}

/// The folder of the newest run that load generator 0 has reported.
fn run_in(folder: &Path) -> PathBuf {
    let runs = fs::read_dir(folder.join("kvdyno-results")).unwrap().flatten().map(|entry| entry.path());
    runs.filter(|path| path.join("run.json").is_file()).max().unwrap()
}

/// Starts a load generator that knows the secret.
fn start(folder: &Path, words: &str) -> Child {
    let mut command = prepared(folder, words);
    command.env("KVDYNO_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn assert_ended(printed: &Printed, code: i32, words: &[&str]) {
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert_eq!(printed.code, Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in\n{said}"));
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks the record of a trial that several load generators ran: what it says of the load generators adds up. `keeps`: the
/// engine is no cache, whose number of keys is unknown.
fn assert_of_load_generators(record: &Value, load_generators: u64, keys: u64, keeps: bool) {
    assert_eq!(record["outcome"]["status"], "ok", "{record:#}");
    assert_eq!(number(&record["trial"]["ranks"]), load_generators);
    for phase in record["phases"].as_array().unwrap() {
        let name = phase["phase"]["name"].as_str().unwrap();
        let of_load_generators = phase["ranks"].as_array().unwrap();
        let sum: u64 = of_load_generators.iter().map(|load_generator| number(&load_generator["ops"])).sum();
        assert_eq!(
            (of_load_generators.len() as u64, sum),
            (load_generators, number(&phase["ops"])),
            "{name}"
        );
        assert!(
            of_load_generators.iter().all(|load_generator| number(&load_generator["ops"]) > 0),
            "{name}: each load generator ran ops"
        );
        let times: u64 =
            phase["kinds"].as_array().unwrap().iter().map(|kind| number(&kind["service_ns"]["count"])).sum();
        let rows: u64 = phase["series"].as_array().unwrap().iter().map(|row| number(&row["ops"])).sum();
        assert_eq!((times > 0, rows), (true, sum), "{name}");
        assert_eq!(number(&phase["check"]["faults"]), 0);
        assert!(
            number(&phase["check"]["values"]) > 0 || phase["phase"]["each_key"] == true,
            "{name}: reads are checked"
        );
        assert_eq!(phase["keys_after"].as_u64(), keeps.then_some(keys), "{name}");
    }
    let fill = &record["phases"][0];
    assert_eq!(number(&fill["ops"]), keys, "each key is loaded by one load generator");
}

#[test]
fn two_load_generators_load_one_server_and_give_one_record() {
    let Some(server) = Server::start() else { return };
    let words = format!("{TIMED} {} --load-generators 2 --full", server.engine());
    let printed = kvdyno(server.path(), &words);
    assert_ended(&printed, 0, &["Load generators", "in each of 2"]);
    let found = reported(server.path());
    assert_eq!(found.len(), 1);
    assert_of_load_generators(&found[0], 2, 1000, true);
    // The keys of both, and the mark by which the next run knows that they are kvdyno's.
    assert_eq!(server.keys(), 1001);
    // The other load generator has its own record, with its part of the workload.
    let own = records(&server.path().join("kvdyno-results").join("ranks").join("rank-1"));
    assert_eq!(
        (own.len(), number(&own[0]["trial"]["rank"]), number(&own[0]["trial"]["workload"]["keys"])),
        (1, 1, 500)
    );
    let merged: Vec<u64> = found[0]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| number(&phase["ranks"][1]["ops"]))
        .collect();
    let of_load_generator: Vec<u64> =
        own[0]["phases"].as_array().unwrap().iter().map(|phase| number(&phase["ops"])).collect();
    assert_eq!(merged, of_load_generator);
    // The next run empties the database, because it is known.
    assert_ended(&kvdyno(server.path(), &words), 0, &[]);
}

#[test]
fn load_generators_that_are_started_by_hand_meet_and_no_file_has_their_secret() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = |load_generator: u32| {
        format!("{TIMED} {} --load-generator {load_generator}/3 --rendezvous {place}", server.engine())
    };
    let start = |load_generator: u32| start(server.path(), &words(load_generator));
    // In any order.
    let others: Vec<Child> = [2, 1].into_iter().map(start).collect();
    let first: Printed = start(0).wait_with_output().unwrap().into();
    assert_ended(&first, 0, &[]);
    for other in others {
        let printed: Printed = other.wait_with_output().unwrap().into();
        assert_ended(&printed, 0, &[]);
        assert_eq!(printed.stdout, "", "load generator 0 reports the results");
    }
    assert_of_load_generators(&reported(server.path())[0], 3, 1000, true);
    for file in files_in(server.path()) {
        let bytes = fs::read(&file).unwrap();
        let has = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!has, "{} has the secret", file.display());
    }
}

#[test]
fn a_load_generator_that_is_killed_ends_the_phase_with_a_record_that_says_so() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = |load_generator: u32| {
        format!(
            "run ycsb-b --keys 1000 --seconds 300 --runs 1 --threads 1 --durability none --quiet {} --load-generator {load_generator}/2 --rendezvous {place}",
            server.engine()
        )
    };
    let start = |load_generator: u32| start(server.path(), &words(load_generator));
    let (first, mut second) = (start(0), start(1));
    wait_until("the keys were not loaded", || server.keys() >= 1000);
    second.kill().unwrap();
    second.wait().unwrap();
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["a load generator is gone: load generator 1"]);
    let found = reported(server.path());
    let outcome = &found[0]["outcome"];
    assert_eq!(
        (&outcome["status"], &outcome["cause"]),
        (&"failed".into(), &"load-generator-lost".into()),
        "{outcome}"
    );
    let cut = found[0]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|phase| phase["not_run"].as_str())
        .unwrap_or("");
    assert!(cut.contains("load generator 1"), "{outcome} {cut}");
}

#[test]
fn several_numbers_of_load_generators_are_a_sweep() {
    let Some(server) = Server::start() else { return };
    let words = format!("{TIMED} {} --load-generators 1,2 --full", server.engine());
    let printed = kvdyno(server.path(), &words);
    let title = "ycsb-b / run: ops/s by load generators";
    assert_ended(&printed, 0, &[title, "2 numbers of load generators, and the law needs 4"]);
    let mut load_generators: Vec<u64> =
        reported(server.path()).iter().map(|record| record["trial"]["ranks"].as_u64().unwrap_or(1)).collect();
    load_generators.sort_unstable();
    assert_eq!(load_generators, [1, 2]);
}

/// Regression: a load generator without further trials ended, and was then taken for one that is lost.
#[test]
fn numbers_of_load_generators_may_come_in_any_order() {
    let mut is_tried = false;
    for seed in [1, 2, 3, 4] {
        let folder = tempfile::tempdir().unwrap();
        let words = format!(
            "run ycsb-b --engines null --keys 600 --seconds 0.1 --threads 1 --runs 1 --quiet --load-generators 3,2 --seed {seed}"
        );
        assert_ended(&kvdyno(folder.path(), &words), 0, &[]);
        let run = run_in(folder.path());
        let records = files_in(&run).into_iter().filter(|path| path.ends_with("record.json")).count();
        assert_eq!(records, 2, "seed {seed}");
        let plan: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
        is_tried |= plan["trials"][1]["ranks"] == 2;
    }
    assert!(is_tried, "in one of the orders load generator 2 is done before the others");
}

/// Regression: load generator 1 looked for load generator 0 for 20 s and said that a pipe was broken; and a run that one
/// process resumed had records that said it had been two.
#[test]
fn an_interrupted_run_of_several_load_generators_ends_in_all_of_them_and_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("127.0.0.1:{}", free_port());
    let start = |load_generator: u32| {
        let words = format!(
            "run ycsb-b --engines null --keys 600 --seconds 300 --threads 1 --runs 2 --quiet --load-generator {load_generator}/2 --rendezvous {place}"
        );
        start(folder.path(), &words)
    };
    let (first, second) = (start(0), start(1));
    let results = folder.path().join("kvdyno-results");
    wait_until("the run has not begun", || {
        results.exists() && files_in(&results).iter().any(|path| path.ends_with("run.json"))
    });
    let process = first.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(
        &printed,
        143,
        &["interrupted; completed trials are saved", "start all load generators again"],
    );
    assert!(!printed.stdout.contains("--resume"), "{}", printed.stdout);
    let printed: Printed = second.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["the run cannot go on: load generator 0: "]);
    let words = format!("run --resume={} --quiet", run_in(folder.path()).display());
    assert_ended(&kvdyno(folder.path(), &words), 2, &["it is a run of several load generators"]);
}

/// As in a terminal: Ctrl-C reaches all load generators, once. The trials go on to their ends, and no load generator calls that
/// an error.
#[test]
fn ctrl_c_in_a_terminal_ends_all_load_generators_after_their_trial_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run ycsb-b --engines null --keys 600 --seconds 1 --threads 1 --runs 1000 --quiet --load-generators 3";
    let mut command = prepared(folder.path(), words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let first = command.spawn().unwrap();
    let load_generators = [1, 2].map(|load_generator| format!("kvdyno-results/ranks/rank-{load_generator}/"));
    wait_until("the trials have not begun", || {
        let mut tasks = files_in(folder.path());
        tasks.retain(|file| file.ends_with("task.json"));
        let is_of = |task: &PathBuf, load_generator: &String| {
            task.to_string_lossy().contains(load_generator.as_str())
        };
        let is_of_load_generator_0 = |task: &PathBuf| !task.to_string_lossy().contains("/ranks/");
        load_generators.iter().all(|load_generator| tasks.iter().any(|task| is_of(task, load_generator)))
            && tasks.iter().any(is_of_load_generator_0)
    });
    let group = format!("-{}", first.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 130, &["start all load generators again"]);
    assert!(!printed.stderr.contains("error"), "{}", printed.stderr);
    let files = files_in(&run_in(folder.path()));
    assert!(files.iter().any(|path| path.ends_with("record.json")), "the trial that ran has a record");
}

#[test]
fn what_load_generators_cannot_share_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let url = "--engines redis --option redis.url=redis://127.0.0.1:1";
    for (words, said) in [
        ("run ycsb-b --engines memory-btree --load-generators 2", "would be one for each of them"),
        ("run ycsb-b --engines redis --load-generators 2", "instead of redis"),
        (&format!("run ycsb-e {url} --load-generators 2"), "it scans"),
        (&format!("run ycsb-b {url} --load-generators 2 --keep kept"), "--keep and --reuse"),
        (&format!("run ycsb-b {url} --load-generator 0/2"), "KVDYNO_SECRET"),
        (&format!("run ycsb-b {url} --load-generators auto"), "OMPI_COMM_WORLD_RANK"),
    ] {
        let mut command = prepared(folder.path(), words);
        for name in ["KVDYNO_SECRET", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"] {
            command.env_remove(name);
        }
        assert_ended(&command.output().unwrap().into(), 2, &[said]);
    }
    assert!(!folder.path().join("kvdyno-results").exists(), "nothing was created");
}

#[test]
fn a_load_generator_with_another_secret_or_plan_is_refused_and_load_generator_0_says_who_is_missing() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let start = |load_generator: u32, secret: &str, more: &str| {
        let words = format!(
            "{TIMED} {} --load-generator {load_generator}/2 --rendezvous {place} {more}",
            server.engine()
        );
        let mut command = prepared(server.path(), &words);
        command.env("KVDYNO_SECRET", secret).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = start(0, SECRET, "");
    wait_until("load generator 0 does not listen", || TcpStream::connect(&place).is_ok());
    let other: Printed = start(1, "another-secret-of-these-tests", "").wait_with_output().unwrap().into();
    assert_ended(&other, 1, &["it does not know the secret"]);
    let other: Printed = start(1, SECRET, "--value-size 10").wait_with_output().unwrap().into();
    assert_ended(&other, 1, &["its plan differs from that of load generator 0 (workloads"]);
    // Ctrl-C ends the wait.
    let process = first.id().to_string();
    assert!(first.try_wait().unwrap().is_none());
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["these load generators of 2 did not come: 1"]);
}

/// Under Open MPI, whose load generators find their place in the environment. Takes Debian's openmpi-bin, in `make test-all`.
#[test]
#[ignore = "needs mpirun; make test-all runs it"]
fn mpirun_starts_the_load_generators() {
    if Command::new("mpirun").arg("--version").output().is_err() {
        println!("skipped: mpirun is not here (apt-get install openmpi-bin)");
        return;
    }
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = format!("{TIMED} {} --load-generators auto --rendezvous {place}", server.engine());
    let output = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "3", env!("CARGO_BIN_EXE_kvdyno")])
        .args(words.split(' '))
        .current_dir(server.path())
        .env("KVDYNO_SECRET", SECRET)
        .env_remove("KVDYNO_PLUGINS")
        .output()
        .unwrap();
    assert_ended(&output.into(), 0, &["results: "]);
    assert_of_load_generators(&reported(server.path())[0], 3, 1000, true);
}
