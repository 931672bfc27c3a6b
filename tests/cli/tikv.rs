//! TiKV through its own client and TiKV's protocol, on the other side of which is the mock of that client: what is right in it
//! is right in the driver, and no figure means anything. `make test-all` runs it, because the client takes long to build.

use crate::clusters::{assert_ended, is_here, wait_until};
use crate::command::{Printed, kvdyno, prepared};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of the mock, for one of the two interfaces: raw keys and transactions do not mix. It ends with the test.
struct Mock {
    process: Child,
    address: String,
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn built(folder: &Path) -> PathBuf {
    let program = folder.join("testserver");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/servers/tikv");
    let mut go = Command::new(std::env::var("GO").unwrap_or("go".into()));
    go.args(["build", "-o"]).arg(&program).arg("./testserver").current_dir(module);
    assert!(go.status().unwrap().success());
    program
}

fn started(program: &Path) -> Mock {
    let mut command = Command::new(program);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
    Mock { process, address: format!("pd://{}", address.trim_end()) }
}

/// The client writes a log with the place in its source, which nobody may see.
fn assert_quiet(printed: &Printed) {
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert!(!said.contains(".go:") && !said.contains("[WARN]"), "{said}");
}

#[test]
#[ignore = "slow: make test-all"]
fn both_interfaces_of_tikv_are_verified_and_measured() {
    if !is_here("tikv") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path());
    let (one, two) = (started(&program), started(&program));
    let url = format!("--option tikv.url={}", one.address);
    let raw = format!("--option tikv-raw.url={}", two.address);
    for words in [
        format!("tikv {url}"),
        format!("tikv-raw {raw}"),
        format!("tikv-raw {raw} --option tikv-raw.ttl=true --option tikv-raw.atomic=true"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove --only rules {words} --ops 5000 --seconds 3"));
        println!("{}", printed.stdout.trim_end());
        assert_ended(&printed, 0, &["0 failed"]);
        assert_quiet(&printed);
    }
    let run = format!("run ycsb-a --engines tikv,tikv-raw --keys 1k --ops 1k --runs 2 --quiet {url} {raw}");
    let printed = kvdyno(folder.path(), &run);
    assert_ended(&printed, 0, &["level power, distributed stores with several copies"]);
    assert_quiet(&printed);
    let words = "run ycsb-a --keys 1k --ops 1k --runs 1 --quiet";
    assert_ended(
        &kvdyno(folder.path(), &format!("{words} --engines tikv --load-generators 2 {url}")),
        0,
        &[],
    );
    // Raw keys do not come to where transactions are.
    let mixed = format!("{words} --engines tikv-raw --option tikv-raw.url={}", one.address);
    assert_ended(&kvdyno(folder.path(), &mixed), 1, &["the cluster has rows of transactions"]);
}

#[test]
#[ignore = "slow: make test-all"]
fn a_tikv_that_cannot_be_used_is_one_line() {
    if !is_here("tikv") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path());
    for engine in ["tikv", "tikv-raw"] {
        let run = |more: &str| {
            let printed = kvdyno(
                folder.path(),
                &format!("run fill-random --engines {engine} --keys 100 --runs 1 --quiet {more}"),
            );
            assert_quiet(&printed);
            printed
        };
        assert_ended(&run(""), 1, &["no cluster", &format!("--option {engine}.url=pd://127.0.0.1:2379")]);
        assert_ended(
            &run(&format!("--option {engine}.url=http://a")),
            1,
            &["must begin with pd:// or pds://"],
        );
        assert_ended(
            &run(&format!("--option {engine}.url=pd://127.0.0.1:1")),
            1,
            &["127.0.0.1:1: cannot connect"],
        );
        // A cluster that goes away in mid-phase.
        let mut mock = started(&program);
        let words = format!(
            "run fill-random --engines {engine} --keys 100M --seconds 600 --runs 1 --quiet --option {engine}.url={} \
             --option {engine}.timeout=1",
            mock.address
        );
        let child =
            prepared(folder.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the trial did not begin", || has_database(folder.path()));
        mock.process.kill().unwrap();
        let printed = Printed::from(child.wait_with_output().unwrap());
        assert_ended(&printed, 1, &["no answer in time"]);
        assert_quiet(&printed);
    }
}

/// Whether a trial has taken its place in a cluster.
fn has_database(folder: &Path) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        entry.file_name() == "tikv-database"
            || entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_database(&entry.path())
    })
}
