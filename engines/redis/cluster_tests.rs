//! Sessions of a cluster whose slots move and whose nodes are away: an op follows its key as long as no master has accepted it,
//! and one that may have been run is never sent again. With redis-server.

use super::cluster::RedisCluster;
use super::cluster_nodes::{Node, Nodes};
use super::facts::info;
use super::members::Members;
use super::options::LIMIT;
use super::replicas::until_known;
use super::slots::{Slots, slot_of};
use super::tests::{is_here, nodes};
use super::tls::Files;
use kvdyno_driver::abi::*;
use kvdyno_driver::{Driver, Error, Level, Op, Session, Status};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A cluster as a workload with faults opens it.
struct Cluster {
    folder: PathBuf,
    nodes: Arc<Nodes>,
    database: RedisCluster,
    core: UnixStream,
}

impl Cluster {
    fn start(name: &str, masters: usize, replicas: usize, timeout: Duration) -> Cluster {
        let (folder, nodes) = nodes(name, masters, replicas);
        let address = nodes.first().address.clone();
        let slots = Slots::ask(&mut nodes.all().next().unwrap().wire().unwrap(), &address).unwrap();
        let (core, driver) = UnixStream::pair().unwrap();
        let members = Some(Members::serve(driver, Arc::clone(&nodes)).unwrap());
        let files = Files::default();
        let (own, level) = (Some(Arc::clone(&nodes)), Level::Process);
        let database = RedisCluster {
            address,
            files,
            slots,
            timeout,
            nodes: own,
            members,
            level,
            is_marked: false,
            reads_replicas: false,
        };
        Cluster { folder, nodes, database, core }
    }

    fn node(&self, number: usize) -> &Node {
        self.nodes.all().nth(number - 1).unwrap()
    }

    /// Sends words to a node; returns its reply.
    fn tell(&self, number: usize, words: &str) -> Vec<String> {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.node(number).wire().unwrap().texts(&words).unwrap()
    }

    /// Tells the driver, as the core does, whether members fail in the phase that begins.
    fn begin_phase(&self, has_faults: bool) {
        let name: &[u8] = if has_faults { b"phase disturbed\n" } else { b"phase calm\n" };
        (&self.core).write_all(name).unwrap();
        let known = || self.database.members.as_ref().unwrap().fail_now();
        until("the driver does not learn of the phase", || known() == has_faults);
    }

    fn kill(&self, number: usize) {
        // SAFETY: a system call without memory; the process is a child that was not waited for.
        unsafe { libc::kill(self.node(number).server.process() as i32, libc::SIGKILL) };
        until("the node does not end", || self.node(number).server.end_of().is_some());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a get or put; returns its status, the value that was read, and how often it was redirected.
fn run(session: &mut impl Session, kind: u8, key: &str, value: &str) -> Result<(Status, String, u32), Error> {
    let mut out = [0_u8; 64];
    let mut raw = raw(kind, key, value, &mut out);
    // SAFETY: Op is transparent, and key, value and out live until the end of this function.
    let op = unsafe { &mut *(&raw mut raw).cast::<Op<'_>>() };
    let status = if kind == KV_GET { session.get(op) } else { session.put(op) }?;
    let (length, retries) = (op.raw().length as usize, op.raw().retries);
    let read = if kind == KV_GET && status == Status::Ok { &out[..length] } else { &[] };
    Ok((status, String::from_utf8_lossy(read).into_owned(), retries))
}

fn raw(kind: u8, key: &str, value: &str, out: &mut [u8]) -> kv_op {
    // SAFETY: zero is a value of each field.
    let mut raw: kv_op = unsafe { std::mem::zeroed() };
    raw.kind = kind;
    (raw.key, raw.key_length) = (key.as_ptr(), key.len() as u32);
    (raw.value, raw.value_length) = (value.as_ptr(), value.len() as u32);
    (raw.out, raw.out_size) = (out.as_mut_ptr(), out.len() as u32);
    raw
}

fn put(session: &mut impl Session, key: &str, value: &str) -> Result<u32, Error> {
    let (status, _, retries) = run(session, KV_PUT, key, value)?;
    assert_eq!(status, Status::Ok);
    Ok(retries)
}

fn get(session: &mut impl Session, key: &str) -> Result<(String, u32), Error> {
    let (status, value, retries) = run(session, KV_GET, key, "")?;
    assert_eq!(status, Status::Ok, "{key}");
    Ok((value, retries))
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_op_follows_its_key_while_a_slot_moves_and_after() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start("moves", 2, 0, LONG);
    let mut session = cluster.database.session().unwrap();
    // The first slots are those of the first master.
    let tag = (0..).map(|number| number.to_string()).find(|tag| slot_of(tag.as_bytes()) < 8000).unwrap();
    let (slot, old, new) = (slot_of(tag.as_bytes()), format!("{{{tag}}}old"), format!("{{{tag}}}new"));
    assert_eq!(put(&mut session, &old, "1").unwrap(), 0);
    let ids = [1, 2].map(|number| cluster.tell(number, "CLUSTER MYID").concat());
    cluster.tell(2, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
    cluster.tell(1, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
    assert_eq!(get(&mut session, &old).unwrap(), ("1".into(), 0), "it has not moved yet");
    assert_eq!(put(&mut session, &new, "2").unwrap(), 1, "a new key is the new master's (ASK)");
    let (host, port) = cluster.node(2).server.address.host_port();
    let password = cluster.node(2).server.address.password.clone().unwrap();
    cluster.tell(1, &format!("MIGRATE {host} {port} {old} 0 10000 AUTH {password}"));
    assert_eq!(get(&mut session, &old).unwrap(), ("1".into(), 1), "it has moved (ASK)");
    assert_eq!(get(&mut session, &old).unwrap().1, 1, "ASK is for one request");
    for number in [2, 1] {
        cluster.tell(number, &format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
    }
    assert_eq!(get(&mut session, &old).unwrap(), ("1".into(), 1), "the slot has moved (MOVED)");
    assert_eq!(get(&mut session, &new).unwrap(), ("2".into(), 0), "the new master is known");
    // A pipeline whose first keys are elsewhere.
    let mut late = cluster.database.session().unwrap();
    cluster.tell(1, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[1]));
    cluster.tell(2, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[0]));
    let (mut first, mut second) = ([0; 64], [0; 64]);
    let third = format!("{{{tag}}}third");
    let mut ops = [raw(KV_PUT, &third, "3", &mut first), raw(KV_GET, &third, "", &mut second)];
    // SAFETY: Op is transparent, and all that the ops point to lives longer.
    let ops = unsafe { &mut *(&raw mut ops).cast::<[Op<'_>; 2]>() };
    assert!(late.group(ops, false).unwrap());
    assert_eq!(ops.each_ref().map(Op::status), [KV_OK; 2], "the order of the ops of a key stays");
    assert_eq!(&second[..1], b"3");
}

#[test]
fn a_write_without_an_answer_fails_and_is_not_sent_again_and_the_session_goes_on() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start("lost", 1, 0, LONG);
    let mut session = cluster.database.session().unwrap();
    put(&mut session, "k", "before").unwrap();
    cluster.kill(1);
    let text = put(&mut session, "k", "doubtful").unwrap_err().text;
    assert!(text.contains("connection"), "{text}");
    // Started again, it accepts the next one, which was not sent before.
    let again = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| put(&mut session, "other", "2"));
        cluster.node(1).server.again(false).unwrap();
        waiting.join().unwrap()
    });
    again.unwrap();
    assert_eq!(get(&mut session, "k").unwrap().0, "before");
    assert_eq!(get(&mut session, "other").unwrap().0, "2");
}

#[test]
fn a_read_that_no_replica_answers_is_one_of_the_master_and_counts_as_a_retry() {
    if !is_here() {
        return;
    }
    let mut cluster = Cluster::start("reads", 1, 1, LONG);
    cluster.database.reads_replicas = true;
    let node = cluster.nodes.first().address.clone();
    until_known(&mut cluster.node(1).wire().unwrap(), &node, 1).unwrap();
    let mut session = cluster.database.session().unwrap();
    put(&mut session, "k", "1").unwrap();
    until("the replica does not follow", || cluster.tell(2, "DBSIZE") == ["1"]);
    assert_eq!(get(&mut session, "k").unwrap(), ("1".into(), 0), "the replica answers");
    cluster.kill(2);
    for _ in 0..2 {
        assert_eq!(get(&mut session, "k").unwrap(), ("1".into(), 1), "the master answers instead");
    }
}

#[test]
fn a_replica_that_takes_over_is_found_when_its_master_is_away() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start("failover", 1, 1, LONG);
    let mut session = cluster.database.session().unwrap();
    put(&mut session, "k", "1").unwrap();
    until("the replica does not follow", || cluster.tell(2, "DBSIZE") == ["1"]);
    cluster.kill(1);
    assert!(get(&mut session, "k").is_err(), "it was sent");
    assert!(cluster.nodes.leaders().is_empty());
    cluster.tell(2, "CLUSTER FAILOVER TAKEOVER");
    let (value, retries) = get(&mut session, "k").unwrap();
    assert!(value == "1" && retries > 0, "{value} {retries}");
    until("nobody leads", || cluster.nodes.leaders() == ["node-2"]);
    // The old master is a replica now, and a session that still knows it as the master is sent on.
    cluster.node(1).server.again(false).unwrap();
    let follows = || cluster.node(1).wire().and_then(|mut wire| info(&mut wire));
    until("the old master does not follow", || {
        follows().is_ok_and(|lines| lines.contains(&("role".into(), "slave".into())))
    });
    cluster.nodes.until_served().unwrap();
    let mut late = cluster.database.session().unwrap();
    assert_eq!(put(&mut late, "k", "2").unwrap(), 0, "its map is of now");
    assert_eq!(get(&mut session, "k").unwrap(), ("2".into(), 0));
    until("node-2 does not lead alone", || cluster.nodes.leaders() == ["node-2"]);
}

#[test]
fn an_op_on_a_node_that_is_paused_fails_in_time() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start("paused", 1, 0, LONG);
    let mut session = cluster.database.session().unwrap();
    put(&mut session, "k", "1").unwrap();
    drop(session);
    let mut cluster = cluster;
    cluster.database.timeout = Duration::from_millis(100);
    // The limit is short only where members fail.
    for (has_faults, limit) in
        [(true, Duration::from_millis(100)), (false, LIMIT), (true, Duration::from_millis(100))]
    {
        cluster.begin_phase(has_faults);
        assert_eq!(cluster.database.limit(), limit);
    }
    let mut session = cluster.database.session().unwrap();
    let process = cluster.node(1).server.process() as i32;
    // SAFETY: a system call without memory; the process is a child.
    unsafe { libc::kill(process, libc::SIGSTOP) };
    let lost = get(&mut session, "k").unwrap_err().text;
    let refused = put(&mut session, "k", "2").unwrap_err().text;
    // SAFETY: as above.
    unsafe { libc::kill(process, libc::SIGCONT) };
    assert!(lost.contains("did not answer in time"), "{lost}");
    assert!(refused.contains("no master accepts the key within 0.1 s"), "{refused}");
    until("the session does not go on", || get(&mut session, "k").is_ok_and(|(value, _)| value == "1"));
}
