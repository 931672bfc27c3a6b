//! Members of a store that fail while a phase is measured: what is reported agrees with an independent probe, acknowledged writes are
//! read back, lost ones are found, what cannot fail is refused, and nothing is left. Needs etcd, which CI must have.

use crate::clusters::{assert_ended, is_here, servers_in, wait_until};
use crate::command::{kvdyno, prepared};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A workload of 300 keys with these faults in its second phase, of so many seconds.
pub fn workload(folder: &Path, seconds: u32, faults: &str) {
    let text = format!(
        "runs = 1\nkeys = 300\nthreads = 8\n[[phase]]\nname = 'load'\nmix.put = 1\ndistribution = 'permutation'\n\
         each_key = true\njoin = 100\n[[phase]]\nname = 'run'\nmix = {{ get = 0.5, update = 0.5 }}\nseconds = {seconds}\n{faults}"
    );
    fs::write(folder.join("w.toml"), text).unwrap();
}

/// Runs it on etcd. A busy machine may answer a put of the load after more than the usual quarter of a second.
pub const RUN: &str = "run w.toml --engines etcd --quiet --option etcd.timeout=3";

/// What the record of the only trial says of its second phase.
pub fn record(folder: &Path) -> Value {
    let printed = kvdyno(folder, "report --format json");
    let report: Value = serde_json::from_str(&printed.stdout).unwrap();
    let records = report["records"].as_array().or(report["summary"]["records"].as_array()).unwrap();
    records[0]["phases"][1].clone()
}

pub fn ms(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}")) / 1e6
}

/// The process that started another one, if it measures a trial. Before the first, servers are started to ask for their version.
pub fn trial_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    let line = fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let task = line.split(|byte| *byte == 0).nth(2).unwrap_or_default();
    let is_trial = task.starts_with(b"{\"trial\":");
    parent.parse().ok().filter(|_| is_trial)
}

/// The addresses for clients of the members below a folder.
pub fn addresses(folder: &Path) -> Vec<SocketAddr> {
    let of = |process: i32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let at = words.iter().position(|word| word == "--listen-client-urls")?;
        words.get(at + 1)?.strip_prefix("http://")?.parse().ok()
    };
    servers_in(folder, "etcd")
        .into_iter()
        .filter(|process| trial_of(*process).is_some())
        .filter_map(of)
        .collect()
}

/// Sends a read to the JSON gateway of a member; returns whether it was answered with success in time.
fn ask(address: SocketAddr, limit: Duration) -> bool {
    let answer = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        let length = KEY.len();
        write!(
            stream,
            "POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{KEY}"
        )?;
        let mut text = [0; 256];
        let count = stream.read(&mut text)?;
        Ok(String::from_utf8_lossy(&text[..count]).into_owned())
    };
    answer().is_ok_and(|text| text.starts_with("HTTP/1.1 200"))
}

/// A probe: a request each 10 ms, to the members in turn, whether or not those before it were answered.
pub struct Probe {
    stop: Arc<AtomicBool>,
    answered: Arc<Mutex<Vec<Instant>>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

const PROBES: u64 = 30;
const EVERY: Duration = Duration::from_millis(10);
/// An answer after this time is none.
const LATE: Duration = Duration::from_secs(1);
/// The key `probe`, in base64, which nobody writes: a write that is answered late would be a key too many.
const KEY: &str = r#"{"key":"cHJvYmU="}"#;

impl Probe {
    /// Begins with reads.
    pub fn start(members: Vec<SocketAddr>) -> Probe {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let begun = Instant::now();
        let thread = |number: u64| {
            let (stop, answered, members) = (Arc::clone(&stop), Arc::clone(&answered), members.clone());
            std::thread::spawn(move || {
                for turn in 0.. {
                    let place = turn * PROBES + number;
                    let due = begun + EVERY * place as u32;
                    if let Some(left) = due.checked_duration_since(Instant::now()) {
                        std::thread::sleep(left);
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let member = members[place as usize % members.len()];
                    if ask(member, LATE) {
                        answered.lock().unwrap().push(Instant::now());
                    }
                }
            })
        };
        let threads = (0..PROBES).map(thread).collect();
        Probe { stop, answered, threads }
    }

    /// Ends it; returns the longest time without an answer that ended after a moment, ms.
    pub fn end(self, since: Instant) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut answered = self.answered.lock().unwrap().clone();
        answered.sort();
        let gaps = answered
            .windows(2)
            .filter(|pair| pair[1] > since)
            .map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3);
        gaps.fold(0.0, f64::max)
    }
}

#[test]
fn the_time_without_service_is_that_of_an_independent_probe_and_no_acknowledged_write_is_lost() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = 'kill'\nmember = 'leader'\nat_seconds = 3\nfor_seconds = 4\n";
    workload(folder.path(), 12, fault);
    let mut run = prepared(folder.path(), RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the servers were not started", || addresses(folder.path()).len() == 3);
    let members = addresses(folder.path());
    wait_until("etcd does not answer", || ask(members[0], LATE));
    let probe = Probe::start(members);
    wait_until("no member was killed", || addresses(folder.path()).len() == 2);
    let killed = Instant::now();
    wait_until("the phase does not end", || addresses(folder.path()).is_empty());
    let probed = probe.end(killed);
    assert!(run.wait().unwrap().success());
    let phase = record(folder.path());
    let found = &phase["disturbed"];
    let fault = &found["faults"][0];
    let told = ms(&fault["without_service_ns"]);
    println!("no service for {told:.0} ms, by the probe {probed:.0} ms: {found}");
    // An election takes about a second. Threads of the workload also wait for what the old leader took with it, until the
    // timeout of three seconds.
    assert!(told > 300.0 && probed > 300.0, "{told} ms, by the probe {probed} ms");
    assert!((-500.0..3_500.0).contains(&(told - probed)), "{told} ms, by the probe {probed} ms");
    assert!((2_990.0..6_900.0).contains(&ms(&fault["at_ns"])), "{fault}");
    assert!(ms(&fault["until_ns"]) > 6_900.0 && ms(&fault["thread_waited_ns"]) >= told, "{fault}");
    let read_back = found["read_back"].as_u64().unwrap();
    assert!((1..=300).contains(&read_back) && found["lost"] == 0 && found["stale_reads"] == 0, "{found}");
    assert!(servers_in(folder.path(), "etcd").is_empty());
    let report = kvdyno(folder.path(), "report --full");
    assert_ended(&report, 0, &["kill leader", "no service"]);
    // Ops of the leader that died fail, unless it had just answered all of them.
    let failed: u64 =
        found["errors"].as_array().unwrap().iter().map(|error| error["count"].as_u64().unwrap()).sum();
    assert_eq!(report.stdout.contains("Errors under faults"), failed > 0, "{found}\n{}", report.stdout);
}

#[test]
fn members_are_paused_and_restarted_and_the_phase_goes_on() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let faults = "[[fault]]\nkind = 'pause'\nmember = 'leader'\nat_seconds = 2\nfor_seconds = 2.5\n\
                  [[fault]]\nkind = 'restart'\nmember = 'follower'\nat_seconds = 7\n\
                  [[fault]]\nkind = 'pause'\nmember = 1\nat_seconds = 10\n";
    workload(folder.path(), 12, faults);
    assert_ended(&kvdyno(folder.path(), RUN), 0, &["pause leader", "read back, 0 lost"]);
    let phase = record(folder.path());
    let found = phase["disturbed"]["faults"].as_array().unwrap().clone();
    let kinds: Vec<&str> = found.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["pause", "restart", "pause"]);
    assert!((4_490.0..7_000.0).contains(&ms(&found[0]["until_ns"])), "{}", found[0]);
    assert!(found[1]["until_ns"].is_u64() && found[2]["until_ns"].is_null(), "{found:?}");
    assert_eq!((&found[2]["member"], &found[2]["target"]), (&"member-1".into(), &"member 1".into()));
    assert!(phase["ops"].as_u64().unwrap() > 0 && phase["ended_by"] == "time");
}

#[test]
fn acknowledged_writes_that_a_member_forgets_are_found() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A server that forgets everything when it is started again.
    let program = folder.path().join("forgetful");
    fs::write(&program, "#!/bin/sh\nrm -rf member-1\nexec etcd \"$@\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    workload(folder.path(), 15, "[[fault]]\nmember = 1\nat_seconds = 2\nfor_seconds = 0.5\n");
    let words = format!("{RUN} --option etcd.members=1 --option etcd.server={}", program.display());
    assert_ended(&kvdyno(folder.path(), &words), 3, &["not found, expected"]);
    let found = record(folder.path())["disturbed"].clone();
    assert!(found["stale_reads"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn what_cannot_fail_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 3, "[[fault]]\nmember = 7\nat_seconds = 1\n");
    let refused = |words: &str, expected: &str| {
        let printed = kvdyno(folder.path(), &format!("run w.toml --quiet --engines {words}"));
        assert_ended(
            &printed,
            2,
            &["workload w ", expected, "hint: engines whose members may fail: etcd, redis-cluster"],
        );
        assert_eq!(
            (printed.stdout.as_str(), printed.stderr.matches("error: ").count()),
            ("", 1),
            "{}",
            printed.stderr
        );
        assert!(!folder.path().join("kvdyno-results").exists(), "nothing was begun");
    };
    let none = "and memory-map has no members of its own that could fail";
    refused("memory-map", none);
    // A group has engines that can, or it is refused as a whole.
    refused("memory", "none of these engines has members that could fail: ");
    if is_here("memcached") {
        refused("memcached --durability none", "memcached has no members of its own");
    }
    if is_here("etcd") {
        refused("etcd", "has a [[fault]] of member 7, and etcd has 3 (option members)");
        refused("etcd,memory-map", "[[fault]]");
        refused("etcd --option etcd.url=http://127.0.0.1:1", "the option url of etcd names running ones");
        workload(folder.path(), 3, "[[fault]]\nmember = 'follower'\nat_seconds = 1\n");
        refused(
            "etcd --nodes 1",
            "has a [[fault]] of a follower, and each member of etcd leads (option members)",
        );
        assert!(servers_in(folder.path(), "etcd").is_empty());
    }
}

#[test]
fn an_outage_of_known_length_is_measured_and_one_that_the_end_cuts_off_is_at_least_what_is_told() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The only member is paused for a second, and from 3.5 s on until the phase has ended at 5 s.
    let faults = "[[fault]]\nkind = 'pause'\nmember = 1\nat_seconds = 1\nfor_seconds = 1\n\
                  [[fault]]\nkind = 'pause'\nmember = 1\nat_seconds = 3.5\n";
    workload(folder.path(), 5, faults);
    let printed = kvdyno(folder.path(), "run w.toml --engines etcd --quiet --option etcd.members=1");
    assert_ended(&printed, 0, &["pause member 1", "no service for at least ", "(the phase ended first)"]);
    let found = record(folder.path())["disturbed"]["faults"].clone();
    println!("{found}");
    let (first, last) = (&found[0], &found[1]);
    let paused = |fault: &Value, until: f64| until - ms(&fault["at_ns"]);
    let known = paused(first, ms(&first["until_ns"]));
    assert!(
        ms(&first["without_service_ns"]) > known - 50.0 && first["without_service_at_end_ns"].is_null(),
        "{first}"
    );
    assert_eq!(first["thread_waited_at_end"], false, "{first}");
    assert!(first["without_service_times"].as_u64() >= Some(1), "{first}");
    assert!(ms(&first["without_service_sum_ns"]) >= ms(&first["without_service_ns"]), "{first}");
    assert!(ms(&last["without_service_at_end_ns"]) > paused(last, 5_000.0) - 50.0, "{last}");
    assert!(last["thread_waited_at_end"] == true && last["until_ns"].is_null(), "{last}");
    let csv = kvdyno(folder.path(), "report --format csv-faults").stdout;
    assert_eq!(
        csv.matches(",at least: the phase ended first,at least: the phase ended first,").count(),
        1,
        "{csv}"
    );
    assert_eq!(csv.matches(",measured,measured,").count(), 1, "{csv}");
    assert_ended(&kvdyno(folder.path(), "report --full"), 0, &["at least ", "in all"]);
}

#[test]
fn only_phases_with_faults_have_the_short_limit_of_ops() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Each put of the load is a commit, and the member pauses again and again for longer than the limit of phases with faults.
    let text = "runs = 1\nkeys = 400\nthreads = 4\n[[phase]]\nname = 'load'\nmix.put = 1\ndistribution = 'permutation'\n\
                each_key = true\n[[phase]]\nname = 'run'\nmix.get = 1\nseconds = 1\n\
                [[fault]]\nkind = 'pause'\nmember = 1\nat_seconds = 0.2\nfor_seconds = 0.2\n";
    fs::write(folder.path().join("w.toml"), text).unwrap();
    let words = "run w.toml --engines etcd --quiet --option etcd.members=1";
    let mut run =
        prepared(folder.path(), words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let members = || {
        let all = servers_in(folder.path(), "etcd");
        all.into_iter().filter(|process| trial_of(*process).is_some()).collect::<Vec<i32>>()
    };
    let signal = |name: &str| {
        for process in members() {
            let _ = Command::new("kill").args([name, &process.to_string()]).stderr(Stdio::null()).status();
        }
    };
    let mut pauses = 0;
    while run.try_wait().unwrap().is_none() {
        pauses += usize::from(!members().is_empty());
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(400));
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(300));
    }
    let printed = run.wait_with_output().unwrap().into();
    assert_ended(&printed, 0, &["pause member 1", "0 lost"]);
    assert!(pauses > 1, "it was not paused in the load");
    let record = kvdyno(folder.path(), "report --format json").stdout;
    assert!(record.contains("\"30, in phases with faults 0.25\""), "{record}");
}

/// Whether a process is stopped.
pub fn is_paused(process: &i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

#[test]
fn no_paused_member_is_left_when_the_harness_is_killed() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 60, "[[fault]]\nkind = 'pause'\nat_seconds = 0.5\n");
    let mut run = prepared(folder.path(), RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("no member was paused", || servers_in(folder.path(), "etcd").iter().any(is_paused));
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("a server is left", || servers_in(folder.path(), "etcd").is_empty());
}
