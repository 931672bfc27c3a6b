//! Nodes of a Redis Cluster that fail, and slots that move, while a phase is measured: the sessions go on, what was acknowledged is
//! read back, what a failover loses is reported, and nothing is left. Needs redis-server, which CI must have.

use crate::clusters::{assert_ended, is_here, servers_in, wait_until};
use crate::command::{Printed, kvdyno, prepared};
use crate::members::{is_paused, ms, record, trial_of, workload};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The exit code is that of a loss exactly if the record has one: a failover may lose what was acknowledged.
fn assert_honest(printed: &Printed, found: &Value) {
    let is_whole = found["lost"] == 0 && found["stale_reads"] == 0;
    assert_ended(printed, if is_whole { 0 } else { 3 }, &["read back"]);
}

fn failed_ops(found: &Value) -> u64 {
    found["errors"].as_array().unwrap().iter().map(|error| error["count"].as_u64().unwrap()).sum()
}

#[test]
fn a_replica_that_is_killed_costs_no_op_and_no_write() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = 'kill'\nmember = 'follower'\nat_seconds = 1\nfor_seconds = 1\n";
    workload(folder.path(), 6, fault);
    // Slow answers of a busy machine are no errors here.
    let words = "run w.toml --engines redis-cluster --quiet --option redis-cluster.timeout=100";
    let words_told = ["kill follower (node-4)", "read back, 0 lost, 0 stale reads"];
    assert_ended(&kvdyno(folder.path(), words), 0, &words_told);
    let found = record(folder.path())["disturbed"].clone();
    assert_eq!(
        (&found["faults"][0]["kind"], &found["faults"][0]["member"]),
        (&"kill".into(), &"node-4".into())
    );
    assert!((1..=300).contains(&found["read_back"].as_u64().unwrap()), "{found}");
    assert!(found["acknowledged_writes"].as_u64().unwrap() > 0 && failed_ops(&found) == 0, "{found}");
    assert!(servers_in(folder.path(), "redis-server").is_empty());
}

#[test]
fn what_cannot_fail_is_refused() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 3, "[[fault]]\nmember = 7\nat_seconds = 1\n");
    let few = ["has a [[fault]] of member 7, and redis-cluster has 6 (options masters and replicas)"];
    assert_ended(&kvdyno(folder.path(), "run w.toml --engines redis-cluster --quiet"), 2, &few);
    let single = ["and redis has no members of its own that could fail"];
    assert_ended(&kvdyno(folder.path(), "run w.toml --engines redis --quiet"), 2, &single);
    workload(folder.path(), 3, "[[fault]]\nmember = 'follower'\nat_seconds = 1\n");
    let lonely = [
        "has a [[fault]] of a follower, and each member of redis-cluster leads (options masters and replicas)",
    ];
    let words = "run w.toml --quiet --engines redis-cluster --option redis-cluster.replicas=0";
    assert_ended(&kvdyno(folder.path(), words), 2, &lonely);
    let words = "run w.toml --engines redis-cluster --quiet --option redis-cluster.timeout=0";
    assert_ended(&kvdyno(folder.path(), words), 1, &["option timeout: expected auto, or seconds"]);
    assert!(servers_in(folder.path(), "redis-server").is_empty());
}

#[test]
fn no_paused_node_is_left_when_the_harness_is_killed() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 60, "[[fault]]\nkind = 'pause'\nat_seconds = 0.5\n");
    let words = "run w.toml --engines redis-cluster --quiet --option redis-cluster.timeout=100";
    let mut run = prepared(folder.path(), words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("no node was paused", || servers_in(folder.path(), "redis-server").iter().any(is_paused));
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("a server is left", || servers_in(folder.path(), "redis-server").is_empty());
}

#[test]
#[ignore = "slow: make test-all"]
fn a_replica_takes_over_from_a_master_that_is_killed_and_what_is_lost_is_told() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = 'kill'\nmember = 'leader'\nat_seconds = 3\nfor_seconds = 9\n";
    workload(folder.path(), 16, fault);
    let words = "run w.toml --engines redis-cluster --quiet --option redis-cluster.node-timeout=1000";
    let printed = kvdyno(folder.path(), words);
    let phase = record(folder.path());
    let found = &phase["disturbed"];
    println!("{found}");
    assert_honest(&printed, found);
    let fault = &found["faults"][0];
    assert_eq!((&fault["kind"], &fault["target"]), (&"kill".into(), &"leader".into()));
    // Its keys have no service until the cluster has noticed its death, which takes its timeout, and has elected the replica.
    let (waited, nobody) = (ms(&fault["thread_waited_ns"]), ms(&fault["without_service_ns"]));
    assert!(nobody > 0.0 && waited >= nobody, "{fault}");
    let errors = found["errors"].as_array().unwrap();
    assert!(!errors.is_empty(), "ops of the master that died must have failed: {found}");
    let last = errors.iter().map(|error| ms(&error["last_ns"])).fold(0.0, f64::max);
    assert!(last > ms(&fault["at_ns"]) + 900.0, "no failover is quicker than the timeout: {found}");
    assert!(last < ms(&fault["until_ns"]), "service must be back by failover, not by the restart: {found}");
    assert!((1..=300).contains(&found["read_back"].as_u64().unwrap()), "{found}");
    let report = kvdyno(folder.path(), "report --full");
    assert_ended(&report, 0, &["kill leader", "Errors under faults", "no service"]);
    assert!(servers_in(folder.path(), "redis-server").is_empty());
}

#[test]
#[ignore = "slow: make test-all"]
fn nodes_are_paused_and_restarted_and_the_phase_goes_on() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let faults = "[[fault]]\nkind = 'pause'\nmember = 'leader'\nat_seconds = 2\nfor_seconds = 5\n\
                  [[fault]]\nkind = 'restart'\nmember = 'follower'\nat_seconds = 10\n\
                  [[fault]]\nkind = 'restart'\nmember = 'leader'\nat_seconds = 13\n\
                  [[fault]]\nkind = 'pause'\nmember = 2\nat_seconds = 19\n";
    workload(folder.path(), 21, faults);
    let words = "run w.toml --engines redis-cluster --quiet --option redis-cluster.node-timeout=1000";
    let printed = kvdyno(folder.path(), words);
    let phase = record(folder.path());
    println!("{}", phase["disturbed"]);
    assert_honest(&printed, &phase["disturbed"]);
    let found = phase["disturbed"]["faults"].as_array().unwrap().clone();
    let kinds: Vec<&str> = found.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["pause", "restart", "restart", "pause"]);
    assert_eq!((&found[0]["member"], &found[3]["member"]), (&"node-1".into(), &"node-2".into()));
    assert_eq!(found[1]["member"], "node-1", "the first that does not lead any more");
    assert!(found[2]["until_ns"].is_u64() && found[3]["until_ns"].is_null(), "{found:?}");
    assert!(phase["ops"].as_u64().unwrap() > 0 && phase["ended_by"] == "time");
}

/// A connection to a node.
struct Node {
    stream: BufReader<TcpStream>,
    id: String,
    host: String,
    port: String,
}

impl Node {
    fn connect(line: &str, password: &str) -> Option<Node> {
        let (host, port) = line.split_once(' ')?;
        let stream = TcpStream::connect(format!("{host}:{port}")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        let (host, port) = (host.to_string(), port.to_string());
        let mut node = Node { stream: BufReader::new(stream), id: String::new(), host, port };
        assert_eq!(node.ask(&format!("AUTH {password}")), ["OK"]);
        node.id = node.ask("CLUSTER MYID").concat();
        Some(node)
    }

    /// Sends words; returns the reply, or its elements if it is an array, as texts.
    fn ask(&mut self, words: &str) -> Vec<String> {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.send(&words).iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    fn send(&mut self, words: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request
                .extend(format!("${}\r\n", word.len()).bytes().chain(word.iter().copied()).chain(*b"\r\n"));
        }
        self.stream.get_mut().write_all(&request).unwrap();
        self.reply()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    fn reply(&mut self) -> Vec<Vec<u8>> {
        let line = self.line();
        let (mark, rest) = line.split_at(1);
        match mark {
            "*" => (0..rest.parse::<usize>().unwrap()).flat_map(|_| self.reply()).collect(),
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                vec![bytes]
            }
            "-" => panic!("{line}"),
            _ => vec![rest.as_bytes().to_vec()],
        }
    }
}

/// The file with this name in a folder or below it.
fn found_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries.into_iter().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => found_in(&entry.path(), name),
        _ => (entry.file_name() == name).then(|| entry.path()),
    })
}

/// The nodes of the trial that runs in a folder, when it has begun.
fn nodes_of(folder: &Path) -> Vec<Node> {
    let mut nodes = Vec::new();
    wait_until("the cluster was not started", || {
        if servers_in(folder, "redis-server")
            .into_iter()
            .filter(|process| trial_of(*process).is_some())
            .count()
            != 6
        {
            return false;
        }
        let Some(join) = found_in(folder, "join") else { return false };
        let url = fs::read_to_string(&join).unwrap_or_default();
        let password = url.split_once("redis://:").and_then(|(_, rest)| Some(rest.split_once('@')?.0));
        let layout = fs::read_to_string(join.with_file_name("nodes.txt")).unwrap_or_default();
        let Some(password) = password else { return false };
        nodes = layout.lines().filter_map(|line| Node::connect(line, password)).collect();
        nodes.len() == 6
    });
    nodes
}

#[test]
#[ignore = "slow: make test-all"]
fn slots_move_and_masters_change_while_a_workload_runs_and_no_op_fails() {
    const MOVED: usize = 1000;
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 20, "");
    let words = "run w.toml --engines redis-cluster --quiet";
    let run = prepared(folder.path(), words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut nodes = nodes_of(folder.path());
    let password = {
        let text = fs::read_to_string(found_in(folder.path(), "join").unwrap()).unwrap();
        text.split_once("redis://:").unwrap().1.split_once('@').unwrap().0.to_string()
    };
    let keys = |node: &mut Node| node.ask("DBSIZE").concat().parse::<u64>().unwrap();
    wait_until("the keys were not loaded", || nodes[..3].iter_mut().map(keys).sum::<u64>() == 300);
    let (mut moved, ids) = (0, [nodes[0].id.clone(), nodes[1].id.clone()]);
    let (host, port) = (nodes[1].host.clone(), nodes[1].port.clone());
    // As `redis-cli --cluster reshard` does it.
    for slot in 0..MOVED {
        nodes[1].ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
        nodes[0].ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
        let (number, port) = (slot.to_string(), port.as_bytes());
        for key in nodes[0].send(&[b"CLUSTER", b"GETKEYSINSLOT", number.as_bytes(), b"1000"]) {
            moved += 1;
            let place = [&b"MIGRATE"[..], host.as_bytes(), port, &key, b"0", b"10000"];
            nodes[0].send(&[&place[..], &[b"AUTH", password.as_bytes()]].concat());
        }
        for place in [1, 0] {
            nodes[place].ask(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
        }
    }
    assert!(moved > 0, "no key was in the slots that moved");
    // The replica of the third master takes its place, which loses nothing: the master waits until it has all writes.
    nodes[5].ask("CLUSTER FAILOVER");
    wait_until("the replica does not take over", || nodes[5].ask("ROLE")[0] == "master");
    let printed = Printed::from(run.wait_with_output().unwrap());
    assert_ended(&printed, 0, &[]);
    let phase = record(folder.path());
    assert!(phase["check"]["faults"] == 0 && phase["ended_by"] == "time", "{phase}");
    // Sessions were redirected, and each of their ops was done.
    let rows = kvdyno(folder.path(), "report --format csv-long").stdout;
    let retries = |row: &str| {
        let (names, value) = row.rsplit_once(',')?;
        names.contains(",run,").then_some(())?;
        names.ends_with(",retries,retries").then(|| value.parse::<u64>().unwrap())
    };
    let redirected: u64 = rows.lines().filter_map(retries).sum();
    println!("{moved} keys moved, {redirected} redirections");
    assert!(redirected > 0, "{rows}");
}
