//! An engine that the kernel blocks, so that it does not end when it is killed: the command says so, goes on where it can, and is
//! not blocked itself.

use super::escapes::Place;
use super::faults::{self, SMALL};
use kvdyno::enter_own_namespace;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HANGS: Duration = Duration::from_secs(100);

/// A file system of 400 MiB on a loop device, which a process can freeze. A shell thaws and unmounts it when this is dropped, or
/// when the test is killed.
struct Freezable {
    folder: tempfile::TempDir,
    keeper: Child,
}

impl Freezable {
    /// In the mount namespace of this thread. None: that is not possible here.
    fn new() -> Option<Freezable> {
        let folder = tempfile::tempdir().unwrap();
        let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
        fs::create_dir(&mount).unwrap();
        File::create(&image).unwrap().set_len(400 << 20).unwrap();
        let is_done = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let is_mounted = enter_own_namespace().is_ok()
            && is_done(Command::new("fsfreeze").arg("--version"))
            && is_done(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))
            && is_done(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount));
        if !is_mounted {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "CI needs root, mount, mkfs.ext4 and fsfreeze"
            );
            println!("SKIPPED: only root can mount and freeze a file system");
            return None;
        }
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "read line; fsfreeze -u \"$0\"; umount \"$0\" || umount -l \"$0\""]).arg(&mount);
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Some(Freezable { folder, keeper: keeper.unwrap() })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    fn thaw(&self) {
        assert!(Command::new("fsfreeze").arg("-u").arg(self.path()).status().unwrap().success());
    }
}

impl Drop for Freezable {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().unwrap();
    }
}

/// Runs a test in a thread, which has a mount namespace of its own.
fn in_own_namespace(test: fn()) {
    std::thread::spawn(test).join().unwrap();
}

/// Waits until a process and all others of the test have ended.
fn assert_all_end(place: &Place, process: &str) {
    let begun = Instant::now();
    while !place.processes().is_empty() || Path::new("/proc").join(process).exists() {
        assert!(begun.elapsed() < HANGS, "processes are left: {process}, {:?}", place.processes());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process that a record names, which the kernel blocks.
fn blocked(outcome: &str) -> String {
    let (_, rest) = outcome.split_once("kvdyno (process ").expect(outcome);
    let (process, rest) = rest.split_once(')').unwrap();
    assert!(rest.starts_with(" could not be killed: the kernel blocks it"), "{outcome}");
    let threads = fs::read_dir(Path::new("/proc").join(process).join("task")).unwrap().flatten();
    let states = threads.map(|thread| fs::read_to_string(thread.path().join("status")).unwrap_or_default());
    assert!(
        states.into_iter().any(|status| status.contains("D (disk sleep)")),
        "process {process} is not blocked"
    );
    process.to_string()
}

fn words(more: &str) -> String {
    format!(
        "run quick --engines faulty,memory-btree {SMALL} --full --plugins plugins --stall-seconds 10 \
         --option faulty.fault=freeze-later {more}"
    )
}

/// The status and the text of the record of each engine, of the only run.
fn outcomes(place: &Place, engine: &str) -> String {
    let report = place.run("report --format json", "none");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let mut records = json["records"].as_array().unwrap().iter();
    records.find(|record| record["trial"]["engine"] == engine).unwrap()["outcome"].to_string()
}

/// Runs the command with the folder that the engine freezes.
fn run(place: &Place, words: &str, frozen: &Path) -> super::command::Printed {
    place.end(place.start_with(words, &[("FAULTY_FREEZE", frozen.as_os_str())]))
}

#[test]
fn an_engine_that_cannot_be_killed_is_a_record_and_the_rest_goes_on() {
    in_own_namespace(|| {
        let Some(disk) = Freezable::new() else { return };
        let place = Place::new();
        faults::build(place.path());
        let printed = run(&place, &words(""), &disk.path());
        assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
        let outcome = outcomes(&place, "faulty");
        assert!(outcome.contains("\"timeout\""), "{outcome}");
        let process = blocked(&outcome);
        assert!(outcomes(&place, "memory-btree").contains("\"ok\""));
        disk.thaw();
        assert_all_end(&place, &process);
        assert_eq!(place.left(), Vec::<String>::new());
    });
}

#[test]
fn a_data_folder_that_blocks_everybody_ends_the_run_which_can_be_resumed() {
    in_own_namespace(|| {
        let Some(disk) = Freezable::new() else { return };
        let place = Place::new();
        faults::build(place.path());
        let data = disk.path().join("data");
        let printed = run(&place, &words(&format!("--data {}", data.display())), &disk.path());
        assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
        for wanted in ["does not respond", "completed trials are saved; resume with: kvdyno run --resume="] {
            assert!(printed.stderr.contains(wanted), "no `{wanted}` in\n{}", printed.stderr);
        }
        let process = blocked(&outcomes(&place, "faulty"));
        disk.thaw();
        assert_all_end(&place, &process);
        let words = format!("run --resume --quiet --plugins plugins --data {}", data.display());
        let printed = run(&place, &words, &disk.path());
        assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
        assert!(printed.stderr.contains("left behind by a kvdyno that was killed"), "{}", printed.stderr);
        assert!(outcomes(&place, "faulty").contains("could not be killed"));
        assert!(outcomes(&place, "memory-btree").contains("\"ok\""));
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "a database is left");
        assert_eq!(place.left(), Vec::<String>::new());
    });
}
