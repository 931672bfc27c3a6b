//! Servers as engines: what is started ends, whoever is killed; a user's server, its data and its password; TLS; and the
//! table of servers. Needs redis-server, which CI must have.

use crate::command::{Printed, kvdyno, prepared};
use crate::members::trial_of;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Whether a program is on the PATH; CI needs it.
fn is_here(program: &str) -> bool {
    let tried = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(tried.is_ok() || std::env::var("CI").as_deref() != Ok("true"), "CI needs {program}");
    if tried.is_err() {
        println!("skipped: {program} is not here");
    }
    tried.is_ok()
}

/// Processes that work in a folder or below it: servers, for they change to their data's.
fn processes_in(folder: &Path) -> Vec<i32> {
    let folder = folder.canonicalize().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = all.filter(|entry| {
        let names_it =
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(b"redis-server"));
        names_it && fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(&folder))
    });
    own.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(process: i32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
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

/// A server of the user's; it is killed when the test ends.
struct Users {
    child: Child,
    port: u16,
}

impl Users {
    fn start(folder: &Path, arguments: &[&str]) -> Users {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let data = folder.join(format!("users-{port}"));
        fs::create_dir(&data).unwrap();
        let is_tls = arguments.contains(&"--tls-cert-file");
        let words = if is_tls { format!("--port 0 --tls-port {port}") } else { format!("--port {port}") };
        let child = Command::new("redis-server")
            .args(words.split(' '))
            .args(["--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&data)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the user's server does not answer", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Users { child, port }
    }

    /// The replies to lines of commands, as they come.
    fn ask(&self, lines: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_ended(printed: &Printed, code: i32, words: &[&str]) {
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert_eq!(printed.code, Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in\n{said}"));
}

#[test]
fn a_server_is_measured_beside_an_engine_marked_and_ended() {
    if !is_here("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let words = "run ycsb-b --engines redis,memory-map --keys 500 --ops 500 --runs 1 --quiet --full";
    assert_ended(&kvdyno(folder.path(), words), 0, &["server, one machine", "level process, servers"]);
    assert!(processes_in(folder.path()).is_empty());
    let printed = kvdyno(folder.path(), "report --format json");
    let report: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let records = report["records"].as_array().or(report["summary"]["records"].as_array()).unwrap();
    let record = records.iter().find(|record| record["engine"]["name"] == "redis").unwrap();
    let effective = |name: &str| {
        let options = record["engine"]["options"].as_array().unwrap();
        options.iter().find(|pair| pair[0] == name).map(|pair| pair[1].as_str().unwrap().to_string())
    };
    assert_eq!(effective("appendonly").as_deref(), Some("yes"));
    assert_eq!(effective("appendfsync").as_deref(), Some("no"));
    assert_eq!(effective("role").as_deref(), Some("master"));
    // The server's memory is in the trial's: it alone has more than the harness.
    let rss = record["phases"][1]["usage"]["rss_bytes"].as_u64().unwrap();
    assert!(rss > record["rss_before_open_bytes"].as_u64().unwrap() + (4 << 20), "{rss}");
    let stats = record["phases"][1]["engine_stats"].to_string();
    assert!(stats.contains("used_memory_bytes") && stats.contains("\"keys\",\"500\""), "{stats}");
}

const LONG: &str = "run read-random --engines redis --keys 500 --seconds 8 --runs 1 --quiet";

#[test]
fn no_server_is_left_when_the_harness_is_killed() {
    if !is_here("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = prepared(folder.path(), LONG).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("no server was started", || processes_in(folder.path()).len() == 1);
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("a server is left", || processes_in(folder.path()).is_empty());
}

#[test]
fn a_server_that_dies_fails_its_trial_and_says_how() {
    if !is_here("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = prepared(folder.path(), LONG).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A server that was started to ask for its version is no trial's. The log has puts once the trial has a session.
    let mut server = None;
    wait_until("no server was filled", || {
        server = processes_in(folder.path()).into_iter().find(|process| trial_of(*process).is_some());
        let log = server.and_then(|server| fs::read_dir(format!("/proc/{server}/cwd/appendonlydir")).ok());
        let is_filled = |file: fs::DirEntry| {
            file.path().to_string_lossy().ends_with(".incr.aof")
                && file.metadata().is_ok_and(|file| file.len() > 0)
        };
        log.is_some_and(|log| log.flatten().any(is_filled))
    });
    kill(server.unwrap());
    let printed = Printed::from(run.wait_with_output().unwrap());
    assert_ended(&printed, 1, &["engine-error", "redis-server has ended", "signal: 9"]);
}

#[test]
fn without_a_program_it_is_told_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "run fill-random --engines redis --keys 100 --runs 1 --quiet --option redis.server=no-such-server";
    assert_ended(
        &kvdyno(folder.path(), words),
        1,
        &["`no-such-server` is not on the PATH", "apt-get install"],
    );
}

#[test]
fn a_users_database_is_not_emptied_and_its_password_is_nowhere() {
    const PASSWORD: &str = "h7-not-to-be-seen";
    if !is_here("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Users::start(folder.path(), &["--requirepass", PASSWORD]);
    let at = |level: &str, more: &str| {
        let words = "run fill-random --engines redis --keys 300 --runs 2 --quiet --full --durability";
        kvdyno(folder.path(), &format!("{words} {level} --option redis.url=redis://{more}"))
    };
    let run = |more: &str| at("none", more);
    let url = |database: u32| format!(":{PASSWORD}@127.0.0.1:{}/{database}", server.port);
    // Twice two trials: what kvdyno has left there is known again.
    assert_ended(&run(&url(1)), 0, &["server, one machine"]);
    // What that server uses of the machine nobody saw, and the client's is not it.
    let report: serde_json::Value =
        serde_json::from_str(&kvdyno(folder.path(), "report --format json").stdout).unwrap();
    let records = report["records"].as_array().or(report["summary"]["records"].as_array()).unwrap();
    let record = records.iter().find(|record| record["engine"]["name"] == "redis").unwrap();
    let phase = &record["phases"][0];
    assert!(phase["usage"]["rss_bytes"].is_null() && phase["usage"]["user_cpu_ns"].is_null(), "{phase}");
    assert!(phase["disk_end"].is_null() && phase["ops"] == 300, "{phase}");
    assert_ended(&run(&url(1)), 0, &[]);
    let file = folder.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let plain = format!("127.0.0.1:{}/1 --option redis.password-file={}", server.port, file.display());
    assert_ended(&run(&plain), 0, &[]);
    assert_ended(&run(&format!("127.0.0.1:{}/1", server.port)), 1, &["NOAUTH"]);
    assert_ended(&run(&format!(":wrong@127.0.0.1:{}/1", server.port)), 1, &["AUTH", "WRONGPASS"]);

    let login = format!("AUTH {PASSWORD}\r\nSELECT 1\r\n");
    server.ask(&format!("{login}SET foreign 1"));
    assert_ended(&run(&url(1)), 1, &["302 keys that kvdyno did not write", "redis.database=flush"]);
    assert!(server.ask(&format!("{login}DBSIZE")).contains(":302"));
    assert_ended(&run(&format!("{} --option redis.database=keep", url(1))), 0, &[]);
    assert!(server.ask(&format!("{login}GET foreign")).contains("$1\r\n1"));
    assert_ended(&run(&format!("{} --option redis.database=flush", url(1))), 0, &[]);
    assert!(server.ask(&format!("{login}DBSIZE")).contains(":301"));
    assert_ended(&at("process", &url(2)), 1, &["refused", "appendonly no"]);
    let kept = texts_in(&folder.path().join("kvdyno-results"));
    assert!(kept.contains("redis://127.0.0.1") && !kept.contains(PASSWORD));
}

/// Runs openssl in a folder; none: it is not here.
fn certificates(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("tls");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    for words in [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile names",
    ] {
        let mut command = Command::new("openssl");
        let ran = command
            .args(words.split(' '))
            .current_dir(&path)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !ran.is_ok_and(|status| status.success()) {
            println!("skipped: openssl is not here");
            return None;
        }
    }
    Some(path)
}

#[test]
fn a_server_is_reached_by_tls_if_its_certificate_is_trusted() {
    if !is_here("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(tls) = certificates(folder.path()) else { return };
    let file = |name: &str| tls.join(name).to_string_lossy().into_owned();
    let (ca, certificate, key) = (file("ca.crt"), file("server.crt"), file("server.key"));
    let server = |asks: &str| {
        let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        Users::start(folder.path(), &[&files[..], &["--tls-auth-clients", asks]].concat())
    };
    let run = |server: &Users, more: &str| {
        let words = "run fill-random --engines redis --keys 300 --runs 1 --quiet --durability none";
        kvdyno(
            folder.path(),
            &format!("{words} --option redis.url=rediss://localhost:{} {more}", server.port),
        )
    };
    let trusts = format!("--option redis.ca-file={ca}");
    let open = server("no");
    assert_ended(&run(&open, &trusts), 0, &[]);
    assert_ended(&run(&open, ""), 1, &["TLS", "UnknownIssuer"]);
    let closed = server("yes");
    assert_ended(&run(&closed, &trusts), 1, &["CertificateRequired"]);
    let shows = format!("{trusts} --option redis.cert-file={certificate} --option redis.key-file={key}");
    assert_ended(&run(&closed, &shows), 0, &[]);
}

/// A program that listens, does this with each connection, and counts them.
fn peer(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (count, serve) = (Arc::new(AtomicUsize::new(0)), Arc::new(serve));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    (port, count)
}

/// Engines and schemes of servers, each in a plug-in that may be absent.
const SCHEMES: [(&str, &str); 7] = [
    ("redis", "redis"),
    ("redis", "rediss"),
    ("redis-cluster", "redis"),
    ("memcached", "memcached"),
    ("etcd", "http"),
    ("cassandra", "cassandra"),
    ("postgresql", "postgres"),
];

/// What a run on a server at this port prints; none: the engine is not available.
fn on(engine: &str, scheme: &str, port: u16) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let words = format!(
        "run read-random --keys 200 --seconds 0.1 --runs 1 --quiet --durability none --engines {engine} --option \
         {engine}.url={scheme}://127.0.0.1:{port}"
    );
    let printed = kvdyno(folder.path(), &words);
    let said = format!("{}{}", printed.stdout, printed.stderr);
    if printed.code == Some(4) {
        println!("skipped: {engine}: {said}");
        return None;
    }
    assert_eq!(printed.code, Some(1), "{said}");
    let line = said.lines().find(|line| line.contains(" run 1: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&format!("127.0.0.1:{port}")), "{said}");
    for advice in ["--stall-seconds", "choose other engines"] {
        assert!(!said.contains(advice), "{advice} does not help:\n{said}");
    }
    assert!(said.contains(&format!("hint: check that the server of --option {engine}.url runs")), "{said}");
    Some(line.to_string())
}

#[test]
fn what_does_not_keep_a_server_from_being_reached_has_another_hint() {
    let folder = tempfile::tempdir().unwrap();
    let said = |engine: &str, words: &str| {
        let words =
            format!("run read-random --keys 200 --seconds 0.1 --runs 1 --quiet --engines {engine} {words}");
        let printed = kvdyno(folder.path(), &words);
        (printed.code != Some(4)).then(|| format!("{}{}", printed.stdout, printed.stderr))
    };
    // A misspelled URL says itself what is wrong.
    if let Some(said) = said("memcached", "--durability none --option memcached.url=memcache://127.0.0.1:1") {
        assert!(said.contains("must begin with memcached://"), "{said}");
        assert!(!said.contains("check that the server"), "{said}");
    }
    let level = "--durability process --option memcached.url=memcached://127.0.0.1:1";
    if let Some(said) = said("memcached", level) {
        assert!(said.contains("hint: try --durability none, the strongest level of this engine"), "{said}");
        assert!(!said.contains("check that the server"), "{said}");
    }
}

#[test]
fn a_server_of_another_protocol_is_asked_once_and_told_with_its_address() {
    for (engine, scheme) in SCHEMES {
        let (port, count) = peer(|mut stream| {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        });
        let Some(line) = on(engine, scheme, port) else { continue };
        println!("{engine}, {scheme}://: {line}");
        let asked = count.load(Ordering::Relaxed);
        // Some ask for TLS then, and PostgreSQL's client tries again, but no phase after the first does.
        assert!((1..=3).contains(&asked) || engine == "postgresql", "{engine} connected {asked} times");
    }
}

#[test]
#[ignore = "ten seconds: make test-all"]
fn a_server_that_never_answers_costs_ten_seconds_and_is_one_line() {
    let runs: Vec<_> = SCHEMES
        .map(|(engine, scheme)| {
            std::thread::spawn(move || {
                let (port, _) = peer(|mut stream| _ = stream.read_to_end(&mut Vec::new()));
                (engine, on(engine, scheme, port))
            })
        })
        .into_iter()
        .map(|run| run.join().unwrap())
        .collect();
    for (engine, line) in runs {
        let Some(line) = line else { continue };
        let told = line.contains("within 10") || engine == "postgresql" && line.contains("timeout");
        assert!(told, "{engine}: {line}");
    }
}

#[test]
fn the_table_of_servers_has_both_loads() {
    if !is_here("redis-server") || !is_here("redis-benchmark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("two.toml"),
        "engines = [\"redis (multi-get=pipeline)\", \"redis (serve=memory-map, multi-get=pipeline)\"]\n\
         [[part]]\nworkload = \"kvbench-server\"\ndurability = \"none\"\nset = [\"threads=2\", \"set.threads=2\", \"get.threads=2\"]\n\
         [[part]]\nworkload = \"kvbench-server\"\nvariant = \"p16\"\ndurability = \"none\"\n\
         set = [\"set.join=16\", \"get.mix={ multi_get = 1 }\", \"get.multi_get_keys=16\", \"set.threads=2\", \"get.threads=2\"]\n",
    )
    .unwrap();
    // redis-benchmark counts whole milliseconds: 1,000 requests may take none, and then their rate is unknown.
    let words = "run two.toml --scale 0.02 --runs 1 --quiet";
    let printed = kvdyno(folder.path(), words);
    assert_ended(&printed, 0, &["Servers\n-------", "SET/s", "Rates are by the wall clock"]);
    let run = fs::read_dir(folder.path().join("kvdyno-results")).unwrap().flatten().next().unwrap().path();
    let table = fs::read_to_string(run.join("kvbench-server.csv")).unwrap();
    assert!(
        table.starts_with("store,pipeline,clients,persist,fsync,load,set_per_second,get_per_second\n"),
        "{table}"
    );
    for store in ["redis", "memory-map"] {
        for pipeline in [1, 16] {
            for load in ["driver", "redis-benchmark"] {
                let row = format!("{store},{pipeline},2,no,no,{load},");
                let line = table
                    .lines()
                    .find(|line| line.starts_with(&row))
                    .unwrap_or_else(|| panic!("{row} {table}"));
                let rate = |rate: &str| {
                    rate.parse::<f64>()
                        .unwrap_or_else(|_| panic!("{line}: {}{}", printed.stdout, printed.stderr))
                };
                let rates: Vec<f64> = line[row.len()..].split(',').map(rate).collect();
                assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0), "{line}");
            }
        }
    }
    assert_eq!(fs::read_to_string(run.join("redis-benchmark.csv")).unwrap().lines().count(), 9);
    assert!(processes_in(folder.path()).is_empty());

    // Without redis-benchmark there are the driver's rows alone, and a line with the reason.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let server =
        std::env::split_paths(&path).map(|path| path.join("redis-server")).find(|path| path.exists());
    std::os::unix::fs::symlink(server.unwrap(), programs.join("redis-server")).unwrap();
    let output = prepared(folder.path(), words).env("PATH", &programs).output().unwrap();
    let printed = Printed::from(output);
    assert_ended(&printed, 0, &["  driver  ", "redis-benchmark has no rows", "apt-get install redis-tools"]);
    assert!(!printed.stdout.contains("  redis-benchmark  "));
}
