//! Two load generators and a running etcd, memcached, PostgreSQL and Redis Cluster, and clusters that the driver of load
//! generator 0 starts.

use super::command::{kvdyno, prepared};
use super::{assert_ended, assert_of_load_generators, files_in, free_port, wait_until};
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The user of a server that refuses root.
const NOBODY: u32 = 65_534;

/// Whether the plug-in and the programs of an engine are here; CI needs them.
fn is_here(engine: &str, programs: &[&str]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), &format!("engines {engine}"));
    let is_built = printed.code == Some(0) && !printed.stdout.contains("not available");
    let missing: Vec<&&str> = programs.iter().filter(|program| found(program).is_none()).collect();
    let is_here = is_built && missing.is_empty();
    assert!(is_here || std::env::var("CI").as_deref() != Ok("true"), "CI needs {engine}: {missing:?}");
    if !is_here {
        println!("skipped: {engine} is not here (plug-in: {is_built}, missing programs: {missing:?})");
    }
    is_here
}

/// A program on the PATH, or where Debian has those of PostgreSQL.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = debian.map(|version| version.path().join("bin"));
    std::env::split_paths(&path).chain(debian).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Servers of the user; they are killed when the test ends.
struct Running {
    children: Vec<Child>,
    /// The option `url`.
    url: String,
    folder: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    fn new() -> Running {
        Running { children: Vec::new(), url: String::new(), folder: tempfile::tempdir().unwrap() }
    }

    /// Starts a program in a folder of its own.
    fn start(&mut self, mut command: Command, port: u16) {
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.children.push(command.spawn().unwrap());
        wait_until("a server does not answer", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    fn etcd() -> Running {
        let (mut made, port, peer) = (Running::new(), free_port(), free_port());
        let mut command = Command::new("etcd");
        let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        command.args([
            "--data-dir",
            "data",
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args([
            "--initial-cluster",
            &format!("default={peer}"),
            "--logger",
            "zap",
            "--log-outputs",
            "stderr",
        ]);
        made.start(command, port);
        made.url = client;
        made
    }

    fn memcached() -> Running {
        let (mut made, port) = (Running::new(), free_port());
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-u", "root"]);
        made.start(command, port);
        made.url = format!("memcached://127.0.0.1:{port}");
        made
    }

    fn postgresql() -> Running {
        let (mut made, port) = (Running::new(), free_port());
        let place = made.folder.path().to_path_buf();
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        if is_root {
            chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let program = |name: &str| {
            let program = found(name).unwrap();
            if !is_root {
                return Command::new(program);
            }
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
            command.arg(program);
            command
        };
        let data = place.join("data");
        let mut create = program("initdb");
        create.arg("-D").arg(&data).args(["-A", "trust", "-U", "me", "--no-sync"]).current_dir("/");
        let created = create.output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let mut server = program("postgres");
        server.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""]);
        made.start(server, port);
        made.url = format!("postgres://me@127.0.0.1:{port}/postgres");
        made
    }

    fn redis_cluster() -> Running {
        let mut made = Running::new();
        let ports = [free_port(), free_port(), free_port()];
        for port in ports {
            let folder = made.folder.path().join(port.to_string());
            fs::create_dir(&folder).unwrap();
            let mut command = Command::new("redis-server");
            command
                .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
                .arg(&folder);
            command.args(["--cluster-enabled", "yes", "--cluster-port", &free_port().to_string()]);
            made.start(command, port);
        }
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(ports.map(|port| format!("127.0.0.1:{port}")));
        let created = create.arg("--cluster-yes").output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        // Each node refuses requests until it has heard from the others.
        let is_up = |port: &u16| {
            let asked = Command::new("redis-cli").args(["-p", &port.to_string(), "cluster", "info"]).output();
            String::from_utf8_lossy(&asked.unwrap().stdout).contains("cluster_state:ok")
        };
        wait_until("the cluster is not up", || ports.iter().all(is_up));
        made.url = format!("redis://127.0.0.1:{}", ports[0]);
        made
    }
}

/// The records of an engine in the newest run of a folder.
fn records(folder: &Path, engine: &str) -> Vec<Value> {
    let results = folder.join("kvdyno-results");
    let runs = fs::read_dir(&results).unwrap().flatten().map(|entry| entry.path());
    let run = runs.filter(|path| path.join("run.json").is_file()).max().unwrap();
    let all =
        files_in(&run).into_iter().filter(|path| path.file_name().is_some_and(|name| name == "record.json"));
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    all.map(read).filter(|record| record["trial"]["engine"] == engine).collect()
}

const LOAD: &str = "run ycsb-b --keys 600 --seconds 1.5 --runs 1 --threads 2 --durability none --quiet";

/// Two load generators run a workload twice: the second run finds what the first has left.
fn two_load_generators_share(engine: &str, server: &Running) {
    for run in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let words =
            format!("{LOAD} --engines {engine} --option {engine}.url={} --load-generators 2", server.url);
        assert_ended(&kvdyno(folder.path(), &words), 0, &[]);
        let found = records(folder.path(), engine);
        assert_eq!(found.len(), 1, "run {run}");
        assert_of_load_generators(&found[0], 2, 600, engine != "memcached");
    }
}

#[test]
fn two_load_generators_share_an_etcd() {
    if is_here("etcd", &["etcd"]) {
        two_load_generators_share("etcd", &Running::etcd());
    }
}

#[test]
fn two_load_generators_share_a_memcached_and_the_next_run_knows_what_they_have_left() {
    if is_here("memcached", &["memcached"]) {
        two_load_generators_share("memcached", &Running::memcached());
    }
}

#[test]
fn two_load_generators_share_a_postgresql() {
    if is_here("postgresql", &["postgres", "initdb"]) {
        two_load_generators_share("postgresql", &Running::postgresql());
    }
}

#[test]
fn two_load_generators_share_a_redis_cluster() {
    if is_here("redis-cluster", &["redis-server", "redis-cli"]) {
        two_load_generators_share("redis-cluster", &Running::redis_cluster());
    }
}

#[test]
fn load_generators_join_the_clusters_that_load_generator_0_starts_with_several_numbers_of_nodes() {
    for (engine, program, class) in [
        ("etcd", "etcd", ["server, one machine", "distributed, one machine"]),
        ("redis-cluster", "redis-server", ["distributed, one machine"; 2]),
    ] {
        if !is_here(engine, &[program]) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let words = format!("{LOAD} --engines {engine} --nodes 1,3 --load-generators 1,2 --full");
        let titles = ["ycsb-b-r1 / run: ops/s by nodes", "ycsb-b-r2 / run: ops/s by nodes"];
        let printed = kvdyno(folder.path(), &words);
        assert_ended(&printed, 0, &[&titles[..], &["ycsb-b / run: ops/s by load generators"]].concat());
        let found = records(folder.path(), engine);
        let mut cells: Vec<(u64, String)> = Vec::new();
        for record in &found {
            let load_generators = record["trial"]["ranks"].as_u64().unwrap_or(1);
            let option = record["trial"]["nodes_option"].as_str().unwrap();
            let options = record["trial"]["options"].as_array().unwrap();
            let nodes =
                options.iter().find(|pair| pair[0] == option).unwrap()[1].as_str().unwrap().to_string();
            if load_generators == 2 {
                assert_of_load_generators(record, 2, 600, true);
            }
            let effective = record["engine"]["options"].as_array().unwrap();
            let own = effective.iter().find(|pair| pair[0] == "class").unwrap()[1].as_str().unwrap();
            assert_eq!(own, class[usize::from(nodes == "3")], "{engine} {nodes}");
            cells.push((load_generators, nodes));
        }
        cells.sort();
        let wanted = [(1, "1"), (1, "3"), (2, "1"), (2, "3")]
            .map(|(load_generators, nodes)| (load_generators, nodes.to_string()));
        assert_eq!(cells, wanted, "{engine}");
        // The password of the cluster is in no file that is kept.
        for file in files_in(folder.path()) {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
            assert!(!text.contains("redis://:"), "{}", file.display());
        }
    }
}

#[test]
fn a_cluster_of_load_generator_0_ends_with_a_load_generator_that_is_killed() {
    if !is_here("etcd", &["etcd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = format!("127.0.0.1:{}", free_port());
    let start = |load_generator: u32| {
        let words = format!(
            "run ycsb-b --keys 300 --seconds 300 --runs 1 --threads 1 --quiet --engines etcd --nodes 1 --load-generator {load_generator}/2 --rendezvous {place}"
        );
        super::start(folder.path(), &words)
    };
    let (first, mut second) = (start(0), start(1));
    // Its trial's process writes into its folder once load generator 0 has let it in.
    let load_generators = folder.path().join("kvdyno-results/ranks/rank-1");
    wait_until("load generator 1 has no trial", || {
        load_generators.is_dir() && files_in(&load_generators).iter().any(|file| file.ends_with("task.json"))
    });
    second.kill().unwrap();
    second.wait().unwrap();
    let printed = first.wait_with_output().unwrap().into();
    assert_ended(&printed, 1, &["a load generator is gone: load generator 1"]);
    let left = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let own = all.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
        own.filter(|place| place.starts_with(folder.path())).count()
    };
    wait_until("a server is left", || left() == 0);
}

#[test]
fn engines_without_clusters_and_options_that_name_one_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (engines, more, said) in [
        ("memory-btree", "", "--nodes: memory-btree starts no cluster"),
        ("etcd", "--option etcd.members=1", "the option members of etcd is the number of its nodes"),
        ("etcd", "--option etcd.url=http://127.0.0.1:1", "names a running cluster"),
        (
            "etcd",
            "--load-generators 2 --load-generator 0/2 --rendezvous 192.0.2.1:7707",
            "only by load generators on its machine",
        ),
    ] {
        if engines != "memory-btree" && !is_here(engines, &[]) {
            continue;
        }
        let words = format!("run ycsb-b --engines {engines} --nodes 3 {more}");
        let mut command = prepared(folder.path(), &words);
        command.env("KVDYNO_SECRET", super::SECRET);
        assert_ended(&command.output().unwrap().into(), 2, &[said]);
    }
    assert!(!folder.path().join("kvdyno-results").exists(), "nothing was created");
}
