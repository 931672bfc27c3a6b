//! Results and databases on one small disk that fills up: only the trial that filled it fails, and a run goes on.

use super::command::Printed;
use super::escapes::Place;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A file system of 30 MiB; unmounted again when the test ends, however it ends.
pub struct Disk {
    folder: tempfile::TempDir,
    /// What it lies in; none: it is in memory.
    _image: Option<tempfile::NamedTempFile>,
    is_mounted: bool,
}

impl Disk {
    pub fn new(kind: &str) -> Option<Disk> {
        let mut disk = Disk { folder: tempfile::tempdir().unwrap(), _image: None, is_mounted: false };
        let mut mount = Command::new("mount");
        if kind == "tmpfs" {
            mount.args(["-t", "tmpfs", "-o", "size=30m", "none"]);
        } else {
            let image = tempfile::NamedTempFile::new().unwrap();
            image.as_file().set_len(30 << 20).unwrap();
            let made = Command::new(format!("mkfs.{kind}")).args(["-q", "-F"]).arg(image.path()).output();
            if !made.is_ok_and(|output| output.status.success()) {
                return skipped(kind);
            }
            mount.args(["-o", "loop"]).arg(image.path());
            disk._image = Some(image);
        }
        let mounted = mount.arg(disk.folder.path()).output();
        disk.is_mounted = mounted.is_ok_and(|output| output.status.success());
        if disk.is_mounted { Some(disk) } else { skipped(kind) }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Takes all of it but so many bytes.
    fn fill_but(&self, left: usize) {
        let mut file = File::create(self.path().join("others")).unwrap();
        let block = vec![1; 4096];
        while file.write_all(&block).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length - left as u64).unwrap();
        file.sync_all().unwrap();
    }
}

fn skipped(kind: &str) -> Option<Disk> {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs mount and mkfs.{kind}");
    println!("skipped: a disk with {kind} cannot be mounted here");
    None
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            let unmounted = Command::new("umount").arg(self.folder.path()).output();
            let is_gone = unmounted.is_ok_and(|output| output.status.success());
            if !is_gone {
                // Somebody still works there: it goes when he does.
                let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
            }
        }
    }
}

const KINDS: [&str; 2] = ["tmpfs", "ext4"];

fn words(disk: &Disk, escape: &str) -> String {
    format!(
        "run tiny.toml --engines escapes,memory-btree --runs 2 --quiet --ignore-space --plugins plugins --stall-seconds 30 \
         --results {} --option escapes.escape={escape}",
        disk.path().display()
    )
}

/// The engine and the outcome of each record, as the report has them.
fn outcomes(place: &Place, disk: &Disk) -> Vec<(String, String)> {
    let report = place.run(&format!("report --format json {}", run_folder(disk).display()), "none");
    let json: serde_json::Value = serde_json::from_str(&report.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", report.stderr, report.stdout));
    let records = json["records"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.to_string();
    records.iter().map(|record| (text(&record["trial"]["engine"]), text(&record["outcome"]))).collect()
}

fn run_folder(disk: &Disk) -> std::path::PathBuf {
    let mut all: Vec<_> = fs::read_dir(disk.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.join("run.json").exists());
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn a_full_disk_ends_only_the_trials_that_filled_it() {
    for kind in KINDS {
        let Some(disk) = Disk::new(kind) else { continue };
        // The first returns the error, the second dies of it.
        for (escape, cause) in [("full", "no-space"), ("full-abort", "SIGABRT")] {
            let place = Place::new();
            let printed = place.run(&words(&disk, &format!("execute/{escape}")), "none");
            let Printed { code, stdout, stderr } = &printed;
            assert_eq!(*code, Some(1), "{kind}, {escape}\n{stderr}\n{stdout}");
            let outcomes = outcomes(&place, &disk);
            assert_eq!(outcomes.len(), 4, "{kind}, {escape}: {outcomes:?}\n{stderr}");
            for (engine, outcome) in &outcomes {
                let wanted = if engine.contains("escapes") { cause } else { "\"status\":\"ok\"" };
                let is_right = outcome.contains(wanted);
                assert!(is_right, "{kind}, {escape}: {outcomes:?}\n{stderr}");
            }
            assert!(place.left().is_empty(), "{kind}: {:?}", place.left());
            let again = place.run(
                &format!("run --quiet --plugins plugins --resume={}", run_folder(&disk).display()),
                "none",
            );
            assert_eq!(again.code, Some(1), "{kind}, {escape}\n{}", again.stderr);
            fs::remove_dir_all(run_folder(&disk)).unwrap();
        }
    }
}

#[test]
fn without_room_for_records_a_run_stops_and_can_go_on() {
    for kind in KINDS {
        let Some(disk) = Disk::new(kind) else { continue };
        let place = Place::new();
        disk.fill_but(3 << 20);
        let printed = place.run(&words(&disk, "none"), "none");
        let Printed { code, stdout, stderr } = &printed;
        assert_eq!(*code, Some(1), "{kind}\n{stderr}\n{stdout}");
        let run = run_folder(&disk);
        for wanted in [
            "cannot reserve 8 MiB for records in ",
            &run.display().to_string(),
            "MiB are free",
            &format!("kvdyno run --resume={}", run.display()),
        ] {
            assert!(stderr.contains(wanted), "{kind}: no `{wanted}` in\n{stderr}");
        }
        assert!(place.left().is_empty() && !run.join("data").exists(), "{kind}: {:?}", place.left());
        fs::remove_file(disk.path().join("others")).unwrap();
        let again = place.run(&format!("run --quiet --plugins plugins --resume={}", run.display()), "none");
        assert_eq!(again.code, Some(0), "{kind}\n{}\n{}", again.stderr, again.stdout);
        assert_eq!(outcomes(&place, &disk).len(), 4, "{kind}");
        assert!(!run.join("reserve").exists() && !run.join("data").exists(), "{kind}");
    }
}
