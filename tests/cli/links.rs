//! Members that are cut off, and members with slow disks: what is reported, that acknowledged writes survive, that a cut is one, and
//! that no namespace, interface or process is left. Needs etcd, which CI must have, and what `kvdyno doctor` calls network links and
//! seccomp notification.

#![allow(unsafe_code, reason = "a thread enters the network of a trial")]

use crate::clusters::{assert_ended, is_here, servers_in, wait_until};
use crate::command::{kvdyno, prepared, skip};
use crate::members::{Probe, addresses, ms, record, trial_of, workload};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const LINKS: &str = "network links";
const FILTER: &str = "seccomp notification";

/// Whether etcd is here, and the machine has a facility.
fn can(facility: &str) -> bool {
    static DOCTOR: OnceLock<Value> = OnceLock::new();
    let doctor = DOCTOR.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        serde_json::from_str(&kvdyno(folder.path(), "doctor --json").stdout).unwrap()
    });
    let row = doctor["rows"].as_array().unwrap().iter().find(|row| row["name"] == facility).unwrap();
    if row["verdict"] != "ok" {
        skip(facility, &row["value"].to_string());
        return false;
    }
    is_here("etcd")
}

/// The network of a process.
fn network_of(process: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// The networks in which any process is.
fn networks() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(network_of).collect()
}

/// The interfaces of the network of this process, and the names of other networks.
fn names() -> (Vec<String>, BTreeSet<PathBuf>) {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap();
    let interfaces = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_string()));
    let named = fs::read_dir("/run/netns").map(|all| all.flatten().map(|entry| entry.path()).collect());
    (interfaces.collect(), named.unwrap_or_default())
}

/// Waits until all members of a trial in the folder run, each in a network of its own; returns their networks and the trial's.
fn networks_of_members(folder: &Path) -> BTreeSet<PathBuf> {
    let own = network_of(std::process::id() as i32).unwrap();
    let mut found = BTreeSet::new();
    wait_until("the members have no networks of their own", || {
        let members = servers_in(folder, "etcd");
        let trials = members.iter().filter_map(|member| trial_of(*member));
        let all: Vec<PathBuf> = members.iter().copied().chain(trials).filter_map(network_of).collect();
        found = all.into_iter().filter(|network| *network != own).collect();
        found.len() == 4
    });
    found
}

fn assert_nothing_is_left(folder: &Path, networks_of_trial: &BTreeSet<PathBuf>) {
    wait_until("a server is left", || servers_in(folder, "etcd").is_empty());
    wait_until("a network is left", || networks().is_disjoint(networks_of_trial));
}

#[test]
fn a_leader_that_is_cut_off_loses_no_acknowledged_write_and_nothing_is_left() {
    if !can(LINKS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = names();
    // An op fails only if the cut is longer than the limit of an op, also if it begins late because the members elect a leader.
    workload(
        folder.path(),
        19,
        "[[fault]]\nkind = 'cut'\nmember = 'leader'\nat_seconds = 3\nfor_seconds = 11\n",
    );
    // A busy machine may answer a put of the load after more than the usual quarter of a second.
    let run = prepared(folder.path(), "run w.toml --engines etcd --quiet --option etcd.timeout=5")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let of_trial = networks_of_members(folder.path());
    assert_eq!(names(), before, "the machine's own network has changed");
    let printed = run.wait_with_output().unwrap().into();
    assert_ended(&printed, 0, &["cut leader", "0 lost"]);
    let phase = record(folder.path());
    let found = &phase["disturbed"];
    let fault = &found["faults"][0];
    println!("{found}");
    assert_eq!((&fault["kind"], &fault["target"]), (&"cut".into(), &"leader".into()));
    // The others wait for about a second before they elect a leader.
    assert!(ms(&fault["without_service_ns"]) > 300.0, "{fault}");
    // On a busy machine either may be late, but neither is early.
    assert!(
        (2_990.0..7_000.0).contains(&ms(&fault["at_ns"])) && ms(&fault["until_ns"]) >= 13_990.0,
        "{fault}"
    );
    let failed = found["errors"].as_array().unwrap();
    assert!(!failed.is_empty(), "ops of the member that was cut off must have failed: {found}");
    assert!(
        found["read_back"].as_u64() >= Some(1) && found["lost"] == 0 && found["stale_reads"] == 0,
        "{found}"
    );
    assert!(fault["delayed_syncs"].is_null() && fault["sync_delay_ns"].is_null(), "{fault}");
    assert_nothing_is_left(folder.path(), &of_trial);
    assert_eq!(names(), before);
}

/// Whether a member accepts a connection, asked in this thread's network.
fn is_reached(member: SocketAddr) -> bool {
    TcpStream::connect_timeout(&member, Duration::from_millis(300)).is_ok()
}

#[test]
#[ignore = "slow: make test-all"]
fn a_member_that_is_cut_off_runs_and_cannot_be_reached_and_a_probe_sees_the_same_outage() {
    if !can(LINKS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(
        folder.path(),
        24,
        "[[fault]]\nkind = 'cut'\nmember = 'leader'\nat_seconds = 5\nfor_seconds = 8\n",
    );
    let run = prepared(folder.path(), "run w.toml --engines etcd --quiet")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the servers were not started", || addresses(folder.path()).len() == 3);
    let members = addresses(folder.path());
    let trial = servers_in(folder.path(), "etcd").into_iter().find_map(trial_of).unwrap();
    let network = File::open(format!("/proc/{trial}/ns/net")).unwrap();
    let place = folder.path();
    let watch = move || {
        // SAFETY: a plain system call on an open descriptor, which moves only this thread and those that it starts.
        assert_eq!(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
        wait_until("the members cannot be reached", || members.iter().all(|member| is_reached(*member)));
        let probe = Probe::start(members.clone());
        wait_until("no member was cut off", || !members.iter().all(|member| is_reached(*member)));
        let cut = Instant::now();
        let away = members.iter().filter(|member| !is_reached(**member)).count();
        assert_eq!((away, servers_in(place, "etcd").len()), (1, 3), "one is cut off, and it runs");
        wait_until("the link was not restored", || members.iter().all(|member| is_reached(*member)));
        // The return of a member may cost the others their leader, so it goes on until the members have ended.
        wait_until("the phase does not end", || !members.iter().any(|member| is_reached(*member)));
        probe.end(cut)
    };
    let probed = std::thread::scope(|scope| scope.spawn(watch).join().unwrap());
    assert_ended(&run.wait_with_output().unwrap().into(), 0, &["cut leader"]);
    let found = record(folder.path())["disturbed"].clone();
    let told = ms(&found["faults"][0]["without_service_ns"]);
    println!("no service for {told:.0} ms, by the probe {probed:.0} ms: {found}");
    // Threads of the workload that wait for the member that is cut off see more, but not less.
    assert!(told > 300.0 && probed > 300.0 && told + 500.0 > probed, "{told} ms, by the probe {probed} ms");
    assert!(found["lost"] == 0 && found["stale_reads"] == 0, "{found}");
}

#[test]
fn a_leader_with_a_slow_disk_answers_later_and_its_syncs_are_counted() {
    if !can(FILTER) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = 'slow'\nmember = 'leader'\nat_seconds = 5\nfor_seconds = 6\ndelay_seconds = '200ms'\n";
    workload(folder.path(), 14, fault);
    let words = "run w.toml --engines etcd --quiet --option etcd.timeout=20 --set run.mix.get=0 --set run.mix.update=1";
    assert_ended(&kvdyno(folder.path(), words), 0, &["slow leader", "delayed syncs", "0 lost"]);
    let phase = record(folder.path());
    let found = &phase["disturbed"];
    let fault = &found["faults"][0];
    println!("{found}");
    assert!(fault["delayed_syncs"].as_u64() >= Some(5) && ms(&fault["sync_delay_ns"]) == 200.0, "{fault}");
    assert!(found["read_back"].as_u64() >= Some(1) && found["lost"] == 0, "{found}");
    // A closed loop, so that later answers are fewer; few ops of a second have no median of their own.
    let ops: Vec<(f64, u64)> = phase["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (ms(&row["at_ns"]) / 1e3, row["ops"].as_u64().unwrap()))
        .collect();
    let median = |from: f64, to: f64| {
        let within = ops.iter().filter(|(at, _)| (from..=to).contains(at));
        let mut all: Vec<u64> = within.map(|(_, ops)| *ops).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let (at, until) = (ms(&fault["at_ns"]) / 1e3, ms(&fault["until_ns"]) / 1e3);
    let meanwhile = ops.iter().filter(|(end, _)| (at + 1.0..=until).contains(end)).map(|(_, ops)| *ops).min();
    let (before, meanwhile) = (median(0.0, at), meanwhile.unwrap());
    // Eight threads that wait for syncs of 200 ms. Another member may lead after a while, if a busy machine is even slower.
    assert!(meanwhile < before && meanwhile <= 50, "{meanwhile} ops in a second, {before} before: {ops:?}");
    assert!(servers_in(folder.path(), "etcd").is_empty());
}

#[test]
#[ignore = "slow: make test-all"]
fn nodes_of_a_redis_cluster_are_cut_off_and_have_slow_disks() {
    if !(can(LINKS) && can(FILTER) && is_here("redis-cluster")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let faults = "[[fault]]\nkind = 'cut'\nmember = 'follower'\nat_seconds = 2\nfor_seconds = 3\n\
                  [[fault]]\nkind = 'slow'\nmember = 'leader'\nat_seconds = 7\nfor_seconds = 4\ndelay_seconds = '50ms'\n";
    workload(folder.path(), 13, faults);
    let words = "run w.toml --engines redis-cluster --quiet --durability power";
    assert_ended(&kvdyno(folder.path(), words), 0, &["cut follower", "slow leader", "0 lost"]);
    let found = record(folder.path())["disturbed"].clone();
    println!("{found}");
    assert_eq!(found["faults"][0]["kind"], "cut");
    assert!(found["faults"][1]["delayed_syncs"].as_u64() >= Some(5), "{found}");
    assert!(servers_in(folder.path(), "redis-server").is_empty());
}

#[test]
fn nothing_is_left_of_links_when_the_harness_is_killed() {
    if !can(LINKS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = names();
    workload(folder.path(), 60, "[[fault]]\nkind = 'cut'\nat_seconds = 0.5\n");
    let mut run = prepared(folder.path(), "run w.toml --engines etcd --quiet")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let of_trial = networks_of_members(folder.path());
    run.kill().unwrap();
    run.wait().unwrap();
    assert_nothing_is_left(folder.path(), &of_trial);
    assert_eq!(names(), before);
}

#[test]
fn what_cannot_be_cut_off_or_slowed_is_refused_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let cut = "[[fault]]\nkind = 'cut'\nat_seconds = 1\nfor_seconds = 1\n";
    let slow = "[[fault]]\nkind = 'slow'\nat_seconds = 1\nfor_seconds = 1\ndelay_seconds = 0.1\n";
    for fault in [cut, slow] {
        workload(folder.path(), 3, fault);
        let none = ["no members of its own that could fail"];
        assert_ended(&kvdyno(folder.path(), "run w.toml --engines memory-map --quiet"), 2, &none);
    }
    if !can(LINKS) {
        return;
    }
    workload(folder.path(), 3, cut);
    let run = prepared(folder.path(), "run w.toml --engines etcd --quiet");
    let mut weak = Command::new("setpriv");
    weak.args(["--bounding-set=-sys_admin,-net_admin", "--"]).arg(run.get_program()).args(run.get_args());
    let printed = weak.current_dir(folder.path()).env("RUST_BACKTRACE", "0").output().unwrap().into();
    assert_ended(&printed, 1, &["links cannot be cut here", "run as root", "network links"]);
    assert!(servers_in(folder.path(), "etcd").is_empty());
}
