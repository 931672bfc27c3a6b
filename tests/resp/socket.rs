//! `kvdyno serve --unix-socket`, with the clients of Redis, and what it leaves and refuses.

use crate::client::is_absent;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A server on a Unix socket; killed when the test ends.
struct Local(Child);

impl Local {
    /// Starts a server in `folder`, on its socket `s`, and waits until it listens; returns its first line too.
    fn start(folder: &Path, more: &[&str]) -> (Local, String) {
        let mut child = serve(folder, more).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        (Local(child), first)
    }

    fn ends_by(&mut self, signal: &str) -> bool {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
        self.0.wait().unwrap().success()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvdyno"));
    command.args(["serve", "memory-btree", "--unix-socket", "s"]).args(more).current_dir(folder);
    command
}

fn ask(path: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

#[test]
fn a_unix_socket_serves_until_the_server_ends_and_is_then_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let (mut local, first) = Local::start(folder.path(), &[]);
    assert!(first.contains(", on s, "), "{first}");
    assert_eq!(ask(&path, "SET k v\r\n"), "+OK\r\n");
    assert!(ask(&path, "CLIENT LIST\r\n").contains(" addr=s:0 "));
    assert!(local.ends_by("-TERM"));
    let left = |name: &str| folder.path().join(name).exists();
    assert!(!left("s") && !left("s.lock"));
    // With a port too.
    let (mut local, first) = Local::start(folder.path(), &["--port", "0"]);
    assert!(first.contains("on 127.0.0.1:") && first.contains(" and s, "), "{first}");
    assert_eq!(ask(&path, "GET k\r\n"), "$1\r\nv\r\n");
    assert!(local.ends_by("-INT"));
    assert!(!left("s") && !left("s.lock"));
}

#[test]
fn only_the_socket_of_a_server_that_was_killed_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let refused = |wanted: &str| {
        let out = serve(folder.path(), &["--dir", "other"]).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        assert!(text(&out).contains(wanted), "{}", text(&out));
        assert!(!folder.path().join("other").exists(), "a database was created");
    };
    std::fs::write(&path, "precious").unwrap();
    refused("exists and is not a socket");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    refused("is a socket that `kvdyno serve` did not create");
    std::fs::remove_file(&path).unwrap();
    let (mut local, _) = Local::start(folder.path(), &[]);
    refused("another server listens on s");
    assert_eq!(ask(&path, "SET k v\r\n"), "+OK\r\n");
    assert!(!local.ends_by("-KILL"));
    assert!(path.exists());
    let (_local, _) = Local::start(folder.path(), &[]);
    assert_eq!(ask(&path, "GET k\r\n"), "$1\r\nv\r\n");
}

#[test]
fn the_clients_of_redis_use_the_unix_socket() {
    if Command::new("redis-benchmark").arg("--version").output().is_err() {
        return is_absent("redis-benchmark (apt-get install redis-tools)");
    }
    let folder = tempfile::tempdir().unwrap();
    let (_local, _) = Local::start(folder.path(), &[]);
    let run = |program: &str, words: &[&str]| {
        let out =
            Command::new(program).args(["-s", "s"]).args(words).current_dir(folder.path()).output().unwrap();
        assert!(out.status.success(), "{program}: {}", text(&out));
        text(&out)
    };
    assert_eq!(run("redis-cli", &["SET", "k", "v"]), "OK\n");
    assert_eq!(run("redis-cli", &["GET", "k"]), "v\n");
    let report = run(
        "redis-benchmark",
        &["-t", "set,get,mset", "-n", "3000", "-c", "20", "-P", "4", "-d", "3000", "--csv"],
    );
    for test in ["SET", "GET", "MSET (10 keys)"] {
        assert!(report.contains(&format!("\"{test}\",")), "{report}");
    }
    assert!(!report.to_lowercase().contains("err"), "{report}");
}
