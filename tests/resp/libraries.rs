//! Client libraries: redis-py and go-redis call every command that `kvdyno serve` supports.

use crate::client::{Served, is_absent};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a library's program against two servers; the program shuts the second one down.
fn calls_everything(engine: &str, mut program: Command) {
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let served = Served::start(folder.path(), &[engine, "--dir", &dir("first")]);
    let mut other = Served::start(folder.path(), &[engine, "--dir", &dir("second")]);
    let ports = [&served, &other].map(|server| server.address.port().to_string());
    let Output { status, stdout, stderr } = program.args(ports).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{engine}: {}{}", text(&stdout), text(&stderr));
    assert!(other.child.wait().unwrap().success(), "SHUTDOWN");
}

#[test]
fn redis_py_calls_every_command() {
    let has = |python: &&str| {
        Command::new(python).args(["-c", "import redis"]).output().is_ok_and(|out| out.status.success())
    };
    // Debian's package is for Debian's own Python, which may not be the first in the path.
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has) else {
        return is_absent("redis-py (apt-get install python3-redis)");
    };
    let mut program = Command::new(python);
    program.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resp/redis_py.py"));
    calls_everything("memory-btree", program);
}

#[test]
fn go_redis_calls_every_command() {
    if Command::new("go").arg("version").output().is_err() {
        return is_absent("Go (https://go.dev/dl)");
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-redis");
    let built = Command::new("go")
        .args(["build", "-o", program.to_str().unwrap(), "."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resp/go-redis"))
        .output()
        .unwrap();
    if !built.status.success() {
        let text = String::from_utf8_lossy(&built.stderr).into_owned();
        return is_absent(&format!("go-redis, which go cannot build: {text}"));
    }
    calls_everything("memory-btree", Command::new(program));
}
