//! `kvdyno report --site`: which files it writes, overwrites and leaves alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kvdyno(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvdyno"));
    command.args(["report", "--site"]).args(arguments).output().expect("it was built for this test")
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_site_is_written_and_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (out, flag, results) = (folder.path().join("site"), Path::new("--out"), fixture());
    let written = kvdyno(&[&results, flag, &out]);
    assert!(written.status.success(), "{}", said(&written));
    assert_eq!(String::from_utf8_lossy(&written.stdout).trim(), out.join("index.html").to_str().unwrap());
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(index.contains("results of 1 run<") && index.contains("engines/redb.html"), "{index}");
    assert!(out.join("engines/redb.html").is_file() && out.join("runs/results-v1.html").is_file());
    std::fs::write(out.join("mine.txt"), "kept").unwrap();
    let again = kvdyno(&[&results, flag, &out]);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(std::fs::read_to_string(out.join("mine.txt")).unwrap(), "kept");
}

#[test]
fn runs_that_cannot_be_read_are_reported_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (runs, out) = (folder.path().join("runs"), folder.path().join("site"));
    for (name, text) in [("torn", "{\"schema\":1,"), ("newer", "{\"schema\":99}")] {
        std::fs::create_dir_all(runs.join("deep").join(name)).unwrap();
        std::fs::write(runs.join("deep").join(name).join("run.json"), text).unwrap();
    }
    let flag = Path::new("--out");
    let nothing = kvdyno(&[&runs, flag, &out]);
    assert_eq!(nothing.status.code(), Some(2), "{}", said(&nothing));
    assert!(said(&nothing).contains("no readable run found") && !out.exists(), "{}", said(&nothing));
    let results = fixture();
    let written = kvdyno(&[&runs, &results, flag, &out]);
    assert!(written.status.success(), "{}", said(&written));
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    for name in ["torn", "newer"] {
        assert!(said(&written).contains(&format!("{name} was skipped")), "{}", said(&written));
        assert!(index.contains(&format!("<li>{name}: ")), "{index}");
    }
    assert!(!index.contains(folder.path().to_str().unwrap()), "a path of this machine");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "mine").unwrap();
    let (results, flag) = (fixture(), Path::new("--out"));
    let refused = kvdyno(&[&results, flag, folder.path()]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("is not a site made by kvdyno") && said(&refused).contains("--out"),
        "{}",
        said(&refused)
    );
    assert_eq!(std::fs::read_to_string(folder.path().join("index.html")).unwrap(), "mine");
    let missing = kvdyno(&[Path::new("no-such-folder")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(said(&missing).contains("folder no-such-folder does not exist"), "{}", said(&missing));
}
