//! Several load generators as processes on loopback against a real redis-server, which CI must have.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;
#[path = "ranks/stores.rs"]
mod stores;

use command::{Printed, kvdyno, prepared};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: &str = "a-secret-of-these-tests";
/// A load and a phase that ends by time.
const TIMED: &str = "run ycsb-b --keys 1000 --seconds 1 --runs 1 --threads 2 --durability none --quiet";

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
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_in(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

/// The records of redis in a folder of results, which has those of one run.
fn records(results: &Path) -> Vec<Value> {
    let own = |path: &PathBuf| path.file_name().is_some_and(|name| name == "record.json");
    let mut files: Vec<PathBuf> = files_in(results).into_iter().filter(own).collect();
    files.sort();
    let read = |path: &PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    files.iter().map(read).filter(|record| record["trial"]["engine"] == "redis").collect()
}

/// The records of a run that rank 0 has reported.
fn reported(folder: &Path) -> Vec<Value> {
    let results = folder.join("kvdyno-results");
    let runs = fs::read_dir(&results).unwrap().flatten().map(|entry| entry.path());
    let run = runs.filter(|path| path.join("run.json").is_file()).max().unwrap();
    records(&run)
}

fn assert_ended(printed: &Printed, code: i32, words: &[&str]) {
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert_eq!(printed.code, Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in\n{said}"));
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks the record of a trial that several ranks ran: what it says of the ranks adds up. `keeps`: the engine is no cache,
/// whose number of keys is unknown.
fn assert_of_ranks(record: &Value, ranks: u64, keys: u64, keeps: bool) {
    assert_eq!(record["outcome"]["status"], "ok", "{record:#}");
    assert_eq!(number(&record["trial"]["ranks"]), ranks);
    for phase in record["phases"].as_array().unwrap() {
        let name = phase["phase"]["name"].as_str().unwrap();
        let of_ranks = phase["ranks"].as_array().unwrap();
        let sum: u64 = of_ranks.iter().map(|rank| number(&rank["ops"])).sum();
        assert_eq!((of_ranks.len() as u64, sum), (ranks, number(&phase["ops"])), "{name}");
        assert!(of_ranks.iter().all(|rank| number(&rank["ops"]) > 0), "{name}: each rank ran ops");
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
    assert_eq!(number(&fill["ops"]), keys, "each key is loaded by one rank");
}

#[test]
fn two_ranks_load_one_server_and_give_one_record() {
    let Some(server) = Server::start() else { return };
    let words = format!("{TIMED} {} --ranks 2 --full", server.engine());
    let printed = kvdyno(server.path(), &words);
    assert_ended(&printed, 0, &["Load generators", "in each of 2"]);
    let found = reported(server.path());
    assert_eq!(found.len(), 1);
    assert_of_ranks(&found[0], 2, 1000, true);
    // The keys of both, and the mark by which the next run knows that they are kvdyno's.
    assert_eq!(server.keys(), 1001);
    // The other rank has its own record, with its part of the workload.
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
    let of_rank: Vec<u64> =
        own[0]["phases"].as_array().unwrap().iter().map(|phase| number(&phase["ops"])).collect();
    assert_eq!(merged, of_rank);
    // The next run empties the database, because it is known.
    assert_ended(&kvdyno(server.path(), &words), 0, &[]);
}

#[test]
fn ranks_that_are_started_by_hand_meet_and_no_file_has_their_secret() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = |rank: u32| format!("{TIMED} {} --rank {rank}/3 --rendezvous {place}", server.engine());
    let start = |rank: u32| {
        let mut command = prepared(server.path(), &words(rank));
        command.env("KVDYNO_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // In any order.
    let others: Vec<Child> = [2, 1].into_iter().map(start).collect();
    let first: Printed = start(0).wait_with_output().unwrap().into();
    assert_ended(&first, 0, &[]);
    for other in others {
        let printed: Printed = other.wait_with_output().unwrap().into();
        assert_ended(&printed, 0, &[]);
        assert_eq!(printed.stdout, "", "rank 0 reports the results");
    }
    assert_of_ranks(&reported(server.path())[0], 3, 1000, true);
    for file in files_in(server.path()) {
        let bytes = fs::read(&file).unwrap();
        let has = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!has, "{} has the secret", file.display());
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_phase_with_a_record_that_says_so() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = |rank: u32| {
        format!(
            "run ycsb-b --keys 1000 --seconds 300 --runs 1 --threads 1 --durability none --quiet {} --rank {rank}/2 --rendezvous {place}",
            server.engine()
        )
    };
    let start = |rank: u32| {
        let mut command = prepared(server.path(), &words(rank));
        command.env("KVDYNO_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (first, mut second) = (start(0), start(1));
    wait_until("the keys were not loaded", || server.keys() >= 1000);
    second.kill().unwrap();
    second.wait().unwrap();
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["a load generator is gone: rank 1"]);
    let found = reported(server.path());
    let outcome = &found[0]["outcome"];
    assert_eq!((&outcome["status"], &outcome["cause"]), (&"failed".into(), &"rank-lost".into()), "{outcome}");
    let cut = found[0]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|phase| phase["not_run"].as_str())
        .unwrap_or("");
    assert!(cut.contains("rank 1"), "{outcome} {cut}");
}

#[test]
fn several_numbers_of_ranks_are_a_sweep() {
    let Some(server) = Server::start() else { return };
    let words = format!("{TIMED} {} --ranks 1,2 --full", server.engine());
    let printed = kvdyno(server.path(), &words);
    let title = "ycsb-b / run: ops/s by load generators";
    assert_ended(&printed, 0, &[title, "2 numbers of load generators, and the law needs 4"]);
    let mut ranks: Vec<u64> =
        reported(server.path()).iter().map(|record| record["trial"]["ranks"].as_u64().unwrap_or(1)).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [1, 2]);
}

#[test]
fn what_ranks_cannot_share_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let url = "--engines redis --option redis.url=redis://127.0.0.1:1";
    for (words, said) in [
        ("run ycsb-b --engines memory-btree --ranks 2", "would be one for each of them"),
        ("run ycsb-b --engines redis --ranks 2", "instead of redis"),
        (&format!("run ycsb-e {url} --ranks 2"), "it scans"),
        (&format!("run ycsb-b {url} --ranks 2 --keep kept"), "--keep and --reuse"),
        (&format!("run ycsb-b {url} --rank 0/2"), "KVDYNO_SECRET"),
        (&format!("run ycsb-b {url} --ranks auto"), "OMPI_COMM_WORLD_RANK"),
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
fn a_rank_with_another_secret_or_plan_is_refused_and_rank_0_says_who_is_missing() {
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let start = |rank: u32, secret: &str, more: &str| {
        let words = format!("{TIMED} {} --rank {rank}/2 --rendezvous {place} {more}", server.engine());
        let mut command = prepared(server.path(), &words);
        command.env("KVDYNO_SECRET", secret).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = start(0, SECRET, "");
    wait_until("rank 0 does not listen", || TcpStream::connect(&place).is_ok());
    let other: Printed = start(1, "another-secret-of-these-tests", "").wait_with_output().unwrap().into();
    assert_ended(&other, 1, &["it does not know the secret"]);
    let other: Printed = start(1, SECRET, "--value-size 10").wait_with_output().unwrap().into();
    assert_ended(&other, 1, &["its plan differs from that of rank 0 (workloads"]);
    // Ctrl-C ends the wait.
    let process = first.id().to_string();
    assert!(first.try_wait().unwrap().is_none());
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    let printed: Printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["these ranks of 2 did not come: 1"]);
}

/// Under Open MPI, whose ranks find their place in the environment. Takes Debian's openmpi-bin, in `make test-all`.
#[test]
#[ignore = "needs mpirun; make test-all runs it"]
fn mpirun_starts_the_ranks() {
    if Command::new("mpirun").arg("--version").output().is_err() {
        println!("skipped: mpirun is not here (apt-get install openmpi-bin)");
        return;
    }
    let Some(server) = Server::start() else { return };
    let place = format!("127.0.0.1:{}", free_port());
    let words = format!("{TIMED} {} --ranks auto --rendezvous {place}", server.engine());
    let output = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "3", env!("CARGO_BIN_EXE_kvdyno")])
        .args(words.split(' '))
        .current_dir(server.path())
        .env("KVDYNO_SECRET", SECRET)
        .env_remove("KVDYNO_PLUGINS")
        .output()
        .unwrap();
    assert_ended(&output.into(), 0, &["results: "]);
    assert_of_ranks(&reported(server.path())[0], 3, 1000, true);
}
