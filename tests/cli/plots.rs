//! Plots and HTML reports on the command line: which files are written, and the errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kvdyno(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kvdyno")).args(arguments).output().expect("it was built for this test")
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_plot_is_written_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latency.svg");
    let (results, name) = (fixture(), file.to_str().unwrap());
    let output =
        kvdyno(&["report", "--plot", "latency", results.to_str().unwrap(), "-o", name, "--phase", "read"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), name);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg xmlns="));
    let printed =
        kvdyno(&["report", "--plot", "latency", results.to_str().unwrap(), "-o", "-", "--phase", "read"]);
    assert_eq!(printed.stdout, std::fs::read(&file).unwrap());
    let kinds = kvdyno(&["plot"]);
    assert!(kinds.status.success() && String::from_utf8_lossy(&kinds.stdout).contains("throughput "));
}

/// Copies the fixture, so that a test can write into it.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copied(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_folder_without_a_kind_is_drawn_as_a_whole_and_into_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    copied(&fixture(), &run);
    let file = run.join("overview.svg");
    let output = kvdyno(&["plot", run.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), file.to_str().unwrap());
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.contains(": overview</text>") && svg.contains("quick / read: "), "{svg}");
    // The results are as readable as before.
    assert!(kvdyno(&["report", run.to_str().unwrap()]).status.success());
}

#[test]
fn what_cannot_be_plotted_has_a_message_and_a_hint() {
    let (results, folder) = (fixture(), tempfile::tempdir().unwrap());
    let (results, empty) = (results.to_str().unwrap(), folder.path().to_str().unwrap());
    let cases: [(&[&str], &str, &str); 5] = [
        (
            &["report", "--plot", "latenzy", results, "-o", "-"],
            "unknown plot `latenzy`",
            "did you mean `latency`?",
        ),
        (
            &["report", "--plot", "latency", results, "-o", "x.pdf"],
            "x.pdf: unknown file type",
            ".svg or .png",
        ),
        (
            &["report", "--plot", "sizes", results, "-o", "-"],
            "has no data for the plot sizes",
            "several key counts",
        ),
        (
            &["report", "--plot", "latency", results, "-o", "-", "--phase", "raed"],
            "unknown phase `raed`",
            "did you mean `read`?",
        ),
        (
            &["report", "--plot", "latency", empty, "-o", "-"],
            "contains no results",
            "the folder of a run contains run.json",
        ),
    ];
    for (arguments, what, next) in cases {
        let output = kvdyno(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(what) && said(&output).contains(next), "{}", said(&output));
    }
}

/// Debian's librsvg2-bin is one of the test packages. A fake program stands in the way of the real one to fail.
#[test]
fn a_png_is_drawn_by_rsvg_convert_and_its_failures_are_reported() {
    let (results, folder) = (fixture(), tempfile::tempdir().unwrap());
    let picture = folder.path().join("overview.png");
    let arguments =
        ["report", "--plot", "overview", results.to_str().unwrap(), "-o", picture.to_str().unwrap()];
    let with_path = |path: &std::ffi::OsStr| {
        Command::new(env!("CARGO_BIN_EXE_kvdyno")).args(arguments).env("PATH", path).output().unwrap()
    };

    let missing = with_path(folder.path().as_os_str());
    assert_eq!(missing.status.code(), Some(1), "{}", said(&missing));
    assert!(said(&missing).contains("apt-get install librsvg2-bin"), "{}", said(&missing));
    assert!(!picture.exists());

    let fake = folder.path().join("rsvg-convert");
    // It may end before or after the picture is written to it.
    std::fs::write(&fake, "#!/bin/sh\nexec 0<&-\necho 'out of ink' >&2\nexit 7\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for _ in 0..20 {
        let broken = with_path(folder.path().as_os_str());
        assert_eq!(broken.status.code(), Some(1), "{}", said(&broken));
        assert!(said(&broken).contains("rsvg-convert: out of ink, exit status: 7"), "{}", said(&broken));
    }

    let path = std::env::var_os("PATH").unwrap_or_default();
    let drawn = with_path(&path);
    if drawn.status.success() {
        let png = std::fs::read(&picture).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{} bytes", png.len());
    } else {
        assert!(std::env::var_os("CI").is_none(), "{}", said(&drawn));
        eprintln!("skipped: {}", said(&drawn));
    }
}

#[test]
fn a_run_leaves_its_page_and_names_it_last() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let output = kvdyno(&[
        "run",
        "read-random",
        "--engines",
        "memory-btree",
        "--keys",
        "1k",
        "--ops",
        "1k",
        "--runs",
        "1",
        "-q",
        "--results",
        results.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let page =
        stdout.lines().last().and_then(|line| line.strip_prefix("report: ")).expect("the last line names it");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("memory-btree"));
    let again = kvdyno(&["report", results.to_str().unwrap(), "--format", "html"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), html, "the same page from the records alone");
}
