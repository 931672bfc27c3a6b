//! The report of `doctor` has a row for each item, leaves no files, and distinguishes good from bad.

use super::probe::{SyncTimes, Tool, version_in, version_of};
use super::{Doctor, Finding, Verdict, Warnings, sync_row, toolchain_row};
use kvdyno_measure::{Clock, warning::Concern};
use std::collections::HashSet;
use std::time::Duration;

fn row(name: &str, value: &str, verdict: Verdict, advice: Option<&str>) -> Finding {
    Finding { name: name.into(), value: value.into(), verdict, advice: advice.map(str::to_owned) }
}

#[test]
fn examines_everything_once_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = Doctor::examine(folder.path());
    let names: Vec<&str> = doctor.rows.iter().map(|row| row.name.as_str()).collect();
    let distinct: HashSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    for name in ["machine", "clock", "data path", "fdatasync", "noise", "limits", "toolchains", "perf events"]
    {
        assert!(distinct.contains(name), "{name} is not in {names:?}");
    }
    for row in &doctor.rows {
        assert_eq!(row.advice.is_some(), row.verdict != Verdict::Ok, "{row:?}");
        assert!(row.advice.as_ref().is_none_or(|advice| advice.ends_with('.')), "{row:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let text = serde_json::to_string(&doctor).unwrap();
    assert_eq!(serde_json::from_str::<Doctor>(&text).unwrap(), doctor, "{text}");
}

#[test]
fn the_table_is_aligned_and_advice_is_below() {
    let rows = vec![
        row("clock", "tsc", Verdict::Ok, None),
        row("data path", "tmpfs in memory", Verdict::Warn, Some("Put it on a disk.")),
        row("FUSE", "no", Verdict::Missing, None),
    ];
    let wanted = "clock      tsc              ok\n\
                  data path  tmpfs in memory  WARN\n           -> Put it on a disk.\n\
                  FUSE       no               missing\n";
    assert_eq!(Doctor { rows }.text(110), wanted);
}

#[test]
fn long_advice_wraps_between_words() {
    let words = "word ".repeat(60);
    for width in [80, 110, 200] {
        let rows = vec![row("seccomp notification", &words, Verdict::Missing, Some(&words))];
        let text = Doctor { rows }.text(width);
        let fits = text.lines().all(|line| line.len() <= width.min(110));
        assert!(text.lines().count() > 6 && fits, "{width}\n{text}");
        assert_eq!(text.matches("word").count(), 120, "{width}\n{text}");
    }
}

#[test]
fn no_warning_is_lost_between_the_rows() {
    let mut warnings = Warnings(vec![Concern::Swap.because("A."), Concern::Load.because("B.")]);
    let memory = warnings.row("memory", "v".into(), &["swap"]);
    assert_eq!(memory.verdict, Verdict::Warn);
    assert!(memory.advice.unwrap().starts_with("A. Turn swap off"));
    assert_eq!(warnings.row("clock", "v".into(), &["slow-clock"]).verdict, Verdict::Ok);
    let rest = warnings.rest();
    assert_eq!((rest.len(), rest[0].name.as_str()), (1, "load"));
}

#[test]
fn a_sync_that_does_not_wait_for_a_disk_is_suspicious() {
    let times = |ns| SyncTimes { count: 200, p50_ns: Some(ns), p99_ns: Some(ns), max_ns: Some(ns) };
    assert_eq!(sync_row(Ok(times(2_900))).verdict, Verdict::Warn);
    assert_eq!(sync_row(Ok(times(2_800_000))).verdict, Verdict::Ok);
    let refused = sync_row(Err(std::io::ErrorKind::PermissionDenied.into()));
    assert_eq!(refused.verdict, Verdict::Warn);
    assert!(refused.value.contains("permission denied"), "{refused:?}");
}

#[test]
fn syncs_are_counted_and_their_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let times = SyncTimes::measure(&folder.path().join("yet/to/come"), &Clock::monotonic()).unwrap();
    assert!(times.count > 0 && times.max_ns.is_some(), "{times:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    assert!(SyncTimes::measure(&file, &Clock::monotonic()).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn finds_versions_in_the_output_of_compilers() {
    let cases = [
        ("cc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", "12.2.0"),
        ("go version go1.26.8 linux/amd64", "1.26.8"),
        ("cmake version 3.25.1", "3.25.1"),
        ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", "1.95.0"),
    ];
    for (text, wanted) in cases {
        assert_eq!(version_in(text).as_deref(), Some(wanted), "{text}");
    }
    assert_eq!(version_in("command not found."), None);
}

#[test]
fn missing_toolchains_are_named_and_are_not_a_problem() {
    let found = toolchain_row(&[("cc", Tool::Version("12.2.0".into())), ("go", Tool::Absent)]);
    assert_eq!((found.value.as_str(), found.verdict), ("cc 12.2.0  go -", Verdict::Info));
    assert!(found.advice.unwrap().contains("need go "));
    let none = version_of("no-such-program-anywhere", "--version", Duration::from_secs(1));
    assert_eq!(none, Tool::Absent);
}

#[test]
fn toolchains_that_cannot_be_asked_are_not_called_missing() {
    let unknown = |reason: &str| Tool::Unknown(reason.into());
    let row = toolchain_row(&[
        ("cc", unknown("the limit of 1 processes is reached; raise it")),
        ("g++", unknown("the limit of 1 processes is reached; raise it")),
        ("go", Tool::Absent),
        ("cargo", unknown("no answer within 2 s")),
    ]);
    assert_eq!((row.value.as_str(), row.verdict), ("cc ?  g++ ?  go -  cargo ?", Verdict::Info));
    assert_eq!(
        row.advice.unwrap(),
        "Engines that need go cannot be built on this machine. Install the missing tools. The version of cc, g++ is not known: the \
         limit of 1 processes is reached; raise it. The version of cargo is not known: no answer within 2 s."
    );
    let said = version_of("ls", "--no-such-option", Duration::from_secs(60));
    assert!(matches!(&said, Tool::Unknown(reason) if reason.starts_with("exit status: 2: ")), "{said:?}");
}

#[cfg(unix)]
#[test]
fn a_program_that_does_not_answer_is_killed() {
    let reason = "no answer within 0 s".to_string();
    assert_eq!(version_of("sleep", "600", Duration::ZERO), Tool::Unknown(reason));
}
