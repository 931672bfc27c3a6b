//! Stores behind sockets, and with several copies: their class in reports, what they promise, what is left when the harness
//! is killed, and what is said of a user's server that cannot be used. Each needs its server, which CI must have.

use crate::command::{Printed, kvdyno, prepared};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A store: its engine, its server's process, and what a report says of it.
struct Store {
    engine: &'static str,
    process: &'static str,
    processes: usize,
    /// The level of the run; none: the workload's.
    level: &'static str,
    title: &'static str,
    promises: [(&'static str, &'static str); 3],
}

const STORES: [Store; 4] = [
    Store {
        engine: "redis-cluster",
        process: "redis-server",
        processes: 6,
        level: "",
        title: "level process, distributed stores",
        promises: [
            ("replication", "2"),
            ("consistency", "linearizable until a failover, which may lose writes"),
            ("persistence", "the log is written before the reply, not synced"),
        ],
    },
    Store {
        engine: "etcd",
        process: "etcd",
        processes: 3,
        level: "",
        title: "level power, distributed stores",
        promises: [
            ("replication", "3"),
            ("consistency", "linearizable"),
            ("persistence", "a majority syncs its log before the reply"),
        ],
    },
    Store {
        engine: "memcached",
        process: "memcached",
        processes: 1,
        level: "--durability none",
        title: "level none, cache servers",
        promises: [
            ("replication", "1"),
            ("consistency", "linearizable"),
            ("persistence", "none: the memory of the server"),
        ],
    },
    Store {
        engine: "postgresql",
        process: "postgres",
        processes: 1,
        level: "",
        title: "level process, servers",
        promises: [
            ("replication", "1"),
            ("consistency", "linearizable"),
            ("persistence", "the log is written before the reply, not synced"),
        ],
    },
];

/// Three Java machines, which only `make test-all` starts.
const CASSANDRA: Store = Store {
    engine: "cassandra",
    process: "java",
    processes: 3,
    level: "--option cassandra.members=3",
    title: "level power, distributed stores",
    promises: [
        ("replication", "3"),
        (
            "consistency",
            "quorum: reads and writes overlap in a copy; the last timestamp wins, so clocks of several processes must agree",
        ),
        ("persistence", "2 of 3 copies: the log is synced before the reply"),
    ],
};

/// Whether the engine's plug-in and its server are here; CI needs both.
pub fn is_here(engine: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let listed = kvdyno(folder.path(), "engines --json");
    let engines: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let is_built =
        engines.as_array().unwrap().iter().any(|own| own["name"] == engine && own["is_present"] == true);
    let debian = || fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some());
    let is_installed = match engine {
        "postgresql" => is_on_path("postgres") || debian(),
        "redis-cluster" => is_on_path("redis-server"),
        "cassandra" => is_on_path("java") && extra_of_cassandra(),
        // Its mock is built by the test.
        "tikv" => is_on_path("go"),
        name => is_on_path(name),
    };
    let is_here = is_built && is_installed;
    assert!(
        is_here || std::env::var("CI").as_deref() != Ok("true"),
        "CI needs the plug-in and the server of {engine}"
    );
    if !is_here {
        println!("skipped: {engine} is not here (plug-in: {is_built}, server: {is_installed})");
    }
    is_here
}

/// Whether `make cassandra` has downloaded it.
fn extra_of_cassandra() -> bool {
    let folder = Path::new(env!("CARGO_BIN_EXE_kvdyno")).parent().unwrap();
    std::env::var_os("KVDYNO_CASSANDRA").is_some() || folder.join("extra/cassandra").is_dir()
}

fn is_on_path(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The servers that work in a folder or below it: the program of each process, without those that it has started.
pub fn servers_in(folder: &Path, program: &str) -> Vec<i32> {
    let folder = folder.canonicalize().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = all.filter(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let first =
            String::from_utf8_lossy(line.split(|byte| b"\0 ".contains(byte)).next().unwrap_or_default())
                .into_owned();
        let is_it = Path::new(&first).file_name().is_some_and(|name| name == program);
        is_it && fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(&folder))
    });
    own.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn assert_ended(printed: &Printed, code: i32, words: &[&str]) {
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert_eq!(printed.code, Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in\n{said}"));
}

#[test]
fn a_store_is_measured_in_its_own_class_with_what_it_promises() {
    STORES.iter().filter(|store| is_here(store.engine)).for_each(is_measured);
}

#[test]
#[ignore = "minutes; `make test-all` runs it"]
fn cassandra_is_measured_in_its_own_class_with_what_it_promises() {
    if is_here(CASSANDRA.engine) {
        is_measured(&CASSANDRA);
    }
}

fn is_measured(store: &Store) {
    let folder = tempfile::tempdir().unwrap();
    let (engine, level) = (store.engine, store.level);
    let words =
        format!("run ycsb-b --engines {engine},memory-map --keys 300 --ops 300 --runs 1 --quiet {level}");
    assert_ended(&kvdyno(folder.path(), &words), 0, &[store.title]);
    assert!(servers_in(folder.path(), store.process).is_empty(), "{}", store.engine);
    let printed = kvdyno(folder.path(), "report --format json");
    let report: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    for phase in report["summary"]["phases"].as_array().unwrap() {
        for group in phase["groups"].as_array().unwrap() {
            let cells = group["cells"].as_array().unwrap();
            assert_eq!(cells.len(), 1, "{} is ranked beside an embedded engine: {group}", store.engine);
        }
    }
    let records = report["records"].as_array().or(report["summary"]["records"].as_array()).unwrap();
    let record = records.iter().find(|record| record["engine"]["name"] == store.engine).unwrap();
    let options = record["engine"]["options"].as_array().unwrap();
    for (name, value) in store.promises {
        assert!(
            options.iter().any(|pair| pair[0] == name && pair[1] == value),
            "{name} {value}: {options:?}"
        );
    }
    // The servers' memory is in the trial's.
    let rss = record["phases"][1]["usage"]["rss_bytes"].as_u64().unwrap();
    assert!(rss > record["rss_before_open_bytes"].as_u64().unwrap() + (1 << 20), "{}: {rss}", store.engine);
}

#[test]
fn no_server_of_a_store_is_left_when_the_harness_is_killed() {
    STORES.iter().filter(|store| is_here(store.engine)).for_each(leaves_nothing);
}

#[test]
#[ignore = "minutes; `make test-all` runs it"]
fn no_node_of_cassandra_is_left_when_the_harness_is_killed() {
    if is_here(CASSANDRA.engine) {
        leaves_nothing(&CASSANDRA);
    }
}

fn leaves_nothing(store: &Store) {
    let folder = tempfile::tempdir().unwrap();
    let (engine, level) = (store.engine, store.level);
    let words =
        format!("run read-random --engines {engine} --keys 100 --seconds 60 --runs 1 --quiet {level}");
    let mut run =
        prepared(folder.path(), &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the servers were not started", || {
        servers_in(folder.path(), store.process).len() >= store.processes
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("a server is left", || servers_in(folder.path(), store.process).is_empty());
}

#[test]
fn a_store_that_cannot_be_reached_is_one_line() {
    // A port that nothing listens on.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (engine, url) in [
        ("etcd", format!("http://127.0.0.1:{port}")),
        ("memcached", format!("memcached://127.0.0.1:{port}")),
        ("postgresql", format!("postgres://me@127.0.0.1:{port}/db")),
    ] {
        if !is_here(engine) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let run = |more: &str| {
            let words =
                format!("run fill-random --engines {engine} --keys 100 --runs 1 --quiet --durability none");
            kvdyno(folder.path(), &format!("{words} {more}"))
        };
        assert_ended(
            &run(&format!("--option {engine}.url={url}")),
            1,
            &[&format!("127.0.0.1:{port}"), "refused"],
        );
        assert_ended(
            &run(&format!("--option {engine}.url=gopher://x")),
            1,
            &["option url", "must begin with"],
        );
        assert_ended(
            &run(&format!("--option {engine}.server=no-such-server")),
            1,
            &["`no-such-server` is not installed", "apt-get install"],
        );
        assert_ended(&run(&format!("--option {engine}.password-file=x")), 1, &["it needs the option url"]);
    }
}

/// A server of the user's; it is killed when the test ends.
struct Users(Child);

impl Drop for Users {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawned(program: &str, words: &str, folder: &Path, port: u16) -> Users {
    let mut command = Command::new(program);
    command.args(words.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Users(command.spawn().unwrap());
    wait_until("the user's server does not answer", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

#[test]
fn a_users_memcached_is_not_emptied_and_its_password_is_nowhere() {
    const PASSWORD: &str = "h7-not-to-be-seen";
    if !is_here("memcached") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("users"), format!("me:{PASSWORD}\n")).unwrap();
    let port = free_port();
    let words = format!("-l 127.0.0.1 -p {port} -U 0 -Y users -u root");
    let _server = spawned("memcached", &words, folder.path(), port);
    let ask = |line: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let login = format!("me {PASSWORD}");
        write!(stream, "set x 0 0 {}\r\n{login}\r\n{line}\r\nquit\r\n", login.len()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let run = |login: &str, more: &str| {
        let words = "run fill-random --engines memcached --keys 300 --runs 2 --quiet --durability none";
        let url = format!("memcached://{login}127.0.0.1:{port}");
        kvdyno(folder.path(), &format!("{words} --option memcached.url={url} {more}"))
    };
    let login = format!("me:{PASSWORD}@");
    // Twice two trials: what kvdyno has left there is known again.
    assert_ended(&run(&login, ""), 0, &[]);
    assert_ended(&run(&login, ""), 0, &[]);
    assert_ended(&run("me:wrong@", ""), 1, &["the server refuses the password"]);
    assert_ended(&run("", ""), 1, &["unauthenticated"]);
    ask("set foreign 0 0 1\r\n1");
    assert_ended(&run(&login, ""), 1, &["items, not all written by kvdyno", "memcached.database=flush"]);
    assert!(ask("get foreign").contains("VALUE foreign 0 1"));
    assert_ended(&run(&login, "--option memcached.database=flush"), 0, &[]);
    assert!(!ask("get foreign").contains("VALUE foreign"));
    let kept = texts_in(&folder.path().join("kvdyno-results"));
    assert!(kept.contains("memcached://me@127.0.0.1") && !kept.contains(PASSWORD));
}

/// All that lies in a folder, as text.
fn texts_in(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => text += &texts_in(&entry.path()),
            false => text += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap()),
        }
    }
    text
}

#[test]
fn keys_of_others_in_a_users_etcd_stay() {
    if !is_here("etcd") || !is_on_path("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (port, peer) = (free_port(), free_port());
    let words = format!(
        "--data-dir users --listen-client-urls http://127.0.0.1:{port} --advertise-client-urls http://127.0.0.1:{port} \
         --listen-peer-urls http://127.0.0.1:{peer} --initial-advertise-peer-urls http://127.0.0.1:{peer} \
         --initial-cluster default=http://127.0.0.1:{peer} --logger zap --log-outputs stderr"
    );
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let _server = spawned("etcd", &words, folder.path(), port);
    // The keys and values of its gateway are in base64: `foreign` is `1`.
    let ask = |call: &str, body: &str| {
        let url = format!("http://127.0.0.1:{port}/v3/kv/{call}");
        let output = Command::new("curl").args(["-s", &url, "-d", body]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    wait_until("etcd has no leader", || ask("range", r#"{"key":"Zm9yZWlnbg=="}"#).contains("revision"));
    let run = |more: &str| {
        let words = "run fill-random --engines etcd --keys 100 --runs 2 --quiet";
        let url = format!("--option etcd.url=http://127.0.0.1:{port}");
        kvdyno(folder.path(), &format!("{words} {url} {more}"))
    };
    assert_ended(&run(""), 0, &["level power, servers"]);
    assert_ended(&run(""), 0, &[]);
    ask("put", r#"{"key":"Zm9yZWlnbg==","value":"MQ=="}"#);
    assert_ended(&run(""), 1, &["the cluster has 1 keys that kvdyno did not write", "etcd.database=share"]);
    assert_ended(&run("--option etcd.database=share"), 0, &[]);
    assert!(ask("range", r#"{"key":"Zm9yZWlnbg=="}"#).contains("MQ=="));
    // A key below the prefix that kvdyno did not write: `kvdyno/x`.
    ask("put", r#"{"key":"a3ZkeW5vL3g=","value":"MQ=="}"#);
    assert_ended(&run("--option etcd.database=share"), 1, &["below `kvdyno/` are 102 keys", "etcd.prefix"]);
    assert!(ask("range", r#"{"key":"a3ZkeW5vL3g="}"#).contains("MQ=="));
}
