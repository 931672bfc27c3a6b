//! Whatever an engine does in a trial, the trial becomes a record with its cause, and the rest goes on.

use super::command::{Printed, build_driver, kvdyno, prepared, skip};
use std::path::Path;
use std::process::Command;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The kernel counts processes that it kills for their memory of all of the machine, so that such a one explains every SIGKILL
/// of an uncapped trial at the same time.
static MEMORY_KILLS: RwLock<()> = RwLock::new(());

/// Held by a test in which the kernel kills a process for its memory.
pub fn memory_kill() -> RwLockWriteGuard<'static, ()> {
    MEMORY_KILLS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test in which an uncapped trial gets SIGKILL for another reason.
pub fn no_memory_kills() -> RwLockReadGuard<'static, ()> {
    MEMORY_KILLS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Builds the faulty engine into `folder/plugins`.
pub fn build(folder: &Path) {
    build_driver(folder, "cli/faulty.c");
}

pub const SMALL: &str = "--keys 2000 --ops 2000 --set sync.ops=20 --runs 1 --quiet";

fn with_fault(fault: &str) -> Printed {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let words = format!(
        "run quick --engines faulty,memory-btree {SMALL} --full --plugins plugins --stall-seconds 5 \
         --option faulty.fault={fault}"
    );
    let printed = kvdyno(folder.path(), &words);
    let left: Vec<_> = walk(folder.path()).into_iter().filter(|path| path.contains("kvdyno-00")).collect();
    assert!(left.is_empty(), "{fault}: left behind: {left:?}");
    printed
}

fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

#[test]
fn a_trial_that_goes_wrong_is_a_record_with_its_cause_and_the_rest_goes_on() {
    for (fault, wanted) in [
        ("segv", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("exit", "exit 0"),
        ("hang", "timeout"),
        ("stop", "timeout"),
        ("memory", "out-of-memory"),
        ("files", "too-many-files"),
        ("error", "the page is torn"),
        ("abort-later", "crashed: SIGABRT"),
        ("exit-zero", "crashed: exit 0"),
        ("exit-zero-later", "crashed: exit 0"),
        ("exit-three", "crashed: exit 3"),
        ("exit-three-later", "crashed: exit 3"),
        ("kill", "crashed: SIGKILL"),
        ("kill-later", "crashed: SIGKILL"),
        ("bus", "crashed: SIGBUS (usually a mapped file that is shorter than its mapping"),
        ("bus-later", "crashed: SIGBUS (usually a mapped file that is shorter than its mapping"),
        ("size", "crashed: SIGXFSZ"),
        ("size-later", "crashed: SIGXFSZ"),
    ] {
        let _alone = wanted.contains("SIGKILL").then(no_memory_kills);
        let printed = with_fault(fault);
        assert_eq!(printed.code, Some(1), "{fault}\n{}\n{}", printed.stderr, printed.stdout);
        let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{fault}: no `{wanted}` in\n{}", printed.stdout);
        assert!(
            printed.stdout.contains("memory-btree"),
            "{fault}: the rest did not go on\n{}",
            printed.stdout
        );
    }
}

#[test]
fn the_last_lines_of_a_crashed_engine_are_in_the_report() {
    let printed = with_fault("abort");
    assert!(printed.stdout.contains("assertion failed: it was not"), "{}", printed.stdout);
}

#[test]
fn an_engine_without_a_fault_in_the_same_plugin_is_fine() {
    let printed = with_fault("none");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
}

/// A file system of 8 MiB that is gone again when the test ends, however it ends.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "none"]).arg(disk.0.path()).output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        assert!(is_mounted || std::env::var("CI").as_deref() != Ok("true"), "CI needs mount");
        is_mounted.then_some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_disk_that_fills_up_in_a_trial_is_a_record_with_the_cause() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: mounting is not permitted");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // The estimate refuses such a plan; a writer beside the run can still take the space.
    let words = format!("run quick --engines memory-btree {SMALL} --data {}", disk.0.path().display());
    let refused = kvdyno(folder.path(), &words);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("are free"), "{}", refused.stderr);
    let words = words.replace("--keys 2000", "--keys 200000 --ignore-space");
    let printed = kvdyno(folder.path(), &words);
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("no-space"), "{}", printed.stdout);
}

#[test]
fn a_mapped_page_that_a_full_disk_does_not_take_is_a_lack_of_space() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: mounting is not permitted");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let words = format!(
        "run quick --engines faulty,memory-btree {SMALL} --full --ignore-space --plugins plugins --data {} \
         --option faulty.fault=map",
        disk.0.path().display()
    );
    let printed = kvdyno(folder.path(), &words);
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "no-space: no space is left on the file system of the database (";
    assert!(text.contains(wanted), "{}", printed.stdout);
    assert!(text.contains("; it died of SIGBUS"), "{}", printed.stdout);
    assert_eq!(std::fs::read_dir(disk.0.path()).unwrap().count(), 0, "a database is left");
}

/// The status, cause and text of the one record of the faulty engine under a cap of memory. None: there are no caps here.
fn capped(fault: &str) -> Option<(String, serde_json::Value)> {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let words = format!(
        "run quick --engines faulty,memory-btree {SMALL} --memory 64M --plugins plugins --option faulty.fault={fault}"
    );
    let printed = kvdyno(folder.path(), &words);
    if printed.stderr.contains("memory cannot be capped") {
        skip("memory cap", &printed.stderr);
        return None;
    }
    assert_eq!(printed.code, Some(1), "{fault}\n{}\n{}", printed.stderr, printed.stdout);
    let report = kvdyno(folder.path(), "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let records = json["records"].as_array().unwrap();
    let of = |engine: &str| records.iter().find(|record| record["trial"]["engine"] == engine).unwrap();
    assert_eq!(of("memory-btree")["outcome"]["status"], "ok");
    let kills = &of("faulty")["memory_cap"]["kills"];
    Some((of("faulty")["outcome"].to_string(), kills.clone()))
}

#[test]
fn a_trial_killed_for_its_memory_is_told_from_one_that_is_killed_otherwise() {
    let killed = {
        let _kill = memory_kill();
        capped("endless-later")
    };
    let Some((outcome, kills)) = killed else { return };
    assert!(outcome.contains("\"out-of-memory\"") && outcome.contains("under a cap of 64 MiB"), "{outcome}");
    assert!(kills.as_u64() > Some(0), "{kills}");
    let Some((outcome, kills)) = capped("kill-later") else { return };
    assert!(outcome.contains("\"crashed\"") && outcome.contains("SIGKILL"), "{outcome}");
    assert_eq!(kills, 0);
}

#[test]
fn a_trial_without_enough_memory_is_a_record_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 700000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kvdyno")]);
    let words =
        "run quick --engines memory-btree --durability none --keys 2M --value-size 1000 --runs 1 --quiet";
    command.args(words.split(' ')).current_dir(folder.path()).env("RUST_BACKTRACE", "0");
    let printed: Printed = command.output().unwrap().into();
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("address-space: the limit of 684 MiB"), "{}", printed.stdout);
}

/// A limit on the size of files, which the harness's own files respect: an engine gets an error instead of a signal.
#[test]
fn a_file_that_may_not_become_longer_is_a_record_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // In units of 512 bytes: 12 MiB, more than what is reserved for records.
    command.args(["-c", "ulimit -f 24576; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kvdyno")]);
    let words = "run fill-random --engines memory-btree --keys 50k --value-size 1000 --runs 1 --quiet --full";
    command.args(words.split(' ')).current_dir(folder.path()).env("RUST_BACKTRACE", "0");
    let printed: Printed = command.output().unwrap().into();
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    let report = kvdyno(folder.path(), "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let mut records = json["records"].as_array().unwrap().iter();
    let outcome = &records.find(|record| record["trial"]["engine"] == "memory-btree").unwrap()["outcome"];
    assert_eq!(outcome["status"], "failed", "{outcome}");
    assert!(outcome["text"].as_str().unwrap().contains("File too large"), "{outcome}");
    let left: Vec<_> = walk(folder.path()).into_iter().filter(|path| path.contains("kvdyno-00")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Memory and open files that an engine keeps are told, although no error ends its trial.
#[test]
fn a_leak_of_memory_and_files_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let workload = "keys = 900\nruns = 1\n[[phase]]\nname = 'fill'\nmix = { put = 1 }\neach_key = true\n\
         distribution = 'permutation'\n[[phase]]\nname = 'read'\nmix = { get = 1 }\nseconds = 12\n";
    std::fs::write(folder.path().join("long.toml"), workload).unwrap();
    let words = "run long.toml --engines faulty --plugins plugins --quiet --full --option faulty.fault=leak";
    let wanted = "At the end of phase read, which added no keys, the memory of its process still grew by";
    // Nothing is told if a busy machine has left a second without a sample.
    let is_told = || {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
        let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        println!("{}", printed.stdout);
        text.contains(wanted) && text.contains("and open files still grew by")
    };
    assert!((0..3).any(|_| is_told()));
}

#[test]
fn wrong_answers_are_exit_code_3_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("run quick --engines mutant:bit-flip,memory-btree {SMALL}");
    let printed: Printed = prepared(folder.path(), &words).output().unwrap().into();
    assert_eq!(printed.code, Some(3), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("wrong answers"), "{}", printed.stdout);
}
