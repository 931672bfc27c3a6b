//! Trials under a cap of memory and on chosen CPUs, as people ask for them; and what is refused before anything is run.

use super::command::{Printed, kvdyno, prepared, skip};
use super::faults::memory_kill;
use super::reopen;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

/// 64 MB of values, written in order so that the engine goes over its file once, and read here and there.
const LARGER_THAN_MEMORY: &str = "keys = 64000\nruns = 1\nmemory_bytes = '32MiB'\nvalue = { size = 1000 }\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\njoin = 1000\n\
    [[phase]]\nname = 'read'\nmix = { get = 1 }\nops = 200\n";

/// A folder on a disk: in a memory file system files are memory that cannot be dropped.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether there are no caps here, so that a test is skipped.
fn is_skipped(printed: &Printed) -> bool {
    let is_refused = is_refused(printed);
    if is_refused {
        skip("memory cap", &printed.stderr);
    }
    is_refused
}

/// Whether a cap was refused; the refusal must say what to do.
fn is_refused(printed: &Printed) -> bool {
    let is_refused = printed.code == Some(1) && printed.stderr.contains("error: memory cannot be capped: ");
    if is_refused {
        assert!(
            printed.stderr.contains("hint: run as root, or in your own control group"),
            "{}",
            printed.stderr
        );
    }
    is_refused
}

fn records(folder: &Path) -> Vec<serde_json::Value> {
    let report = kvdyno(folder, "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    json["records"].as_array().unwrap().clone()
}

/// Groups of trials that are still there, of whatever run: named for the process that made them.
fn groups_of(maker: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.extend(name.starts_with(&format!("kvdyno-trial-{maker}-")).then_some(name));
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn data_beyond_the_cap_are_dropped_and_read_again() {
    let folder = folder();
    std::fs::write(folder.path().join("large.toml"), LARGER_THAN_MEMORY).unwrap();
    let printed = kvdyno(folder.path(), "run large.toml --engines sqlite,lmdb --quiet --full");
    if is_skipped(&printed) {
        return;
    }
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    for text in ["memory capped at 32 MiB", "large / memory under the cap"] {
        assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
    }
    for record in records(folder.path()) {
        let cap = &record["memory_cap"];
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {cap}"));
        assert_eq!(number(&cap["limit_bytes"]), 32 << 20);
        assert_eq!(number(&cap["kills"]), 0);
        if !cap["peak_bytes"].is_null() {
            assert!((1..=32 << 20).contains(&number(&cap["peak_bytes"])), "{cap}");
        }
        let read = &record["phases"][1];
        if record["trial"]["engine"] == "null" {
            continue;
        }
        if !cap["limit_hits"].is_null() {
            assert!(number(&cap["limit_hits"]) > 0, "{cap}");
        }
        assert!(number(&read["usage"]["read_storage_bytes"]) > 0, "{}", read["usage"]);
        assert!(number(&read["cap_use"]["page_cache_bytes"]) < 32 << 20, "{}", read["cap_use"]);
        assert!(number(&read["cap_use"]["refaulted_pages"]) > 0, "{}", read["cap_use"]);
    }
}

#[test]
fn an_engine_that_needs_more_than_the_cap_fails_with_the_cap_in_its_cause() {
    let folder = folder();
    let words =
        "run fill-seq --engines memory-btree --keys 64000 --value-size 1000 --memory 32M --runs 1 --quiet";
    let mut command = prepared(folder.path(), words);
    let _kill = memory_kill();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let maker = child.id();
    let printed: Printed = child.wait_with_output().unwrap().into();
    if is_skipped(&printed) {
        return;
    }
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    let cause = "out-of-memory: the trial's process ran out of memory under a cap of 32 MiB";
    assert!(printed.stdout.contains(cause), "{}", printed.stdout);
    assert_eq!(groups_of(maker), Vec::<String>::new());
}

/// Regression: RocksDB was killed for what its closed database had freed in the process that waited for the fresh one.
#[test]
fn what_a_closed_engine_has_freed_does_not_count_when_the_database_is_opened_again() {
    let folder = folder();
    reopen::build(folder.path());
    // The engine takes 128 MiB in each of the two processes.
    let words = "run rows.toml --engines reopen --plugins plugins --runs 1 --quiet --memory 208M";
    let printed: Printed = prepared(folder.path(), words).env("STORES", "hoard").output().unwrap().into();
    if is_skipped(&printed) {
        return;
    }
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let cap = &records(folder.path())[0]["memory_cap"];
    assert!(cap["peak_bytes"].as_u64().is_none_or(|peak| peak > 128 << 20), "it takes less: {cap}");
}

#[test]
fn a_trial_is_held_to_its_cpus_with_all_of_its_threads() {
    let folder = folder();
    let words = "run read-while-writing --engines memory-btree --keys 2000 --ops 2000 --runs 1 --quiet --full --cpus 0";
    let printed = kvdyno(folder.path(), words);
    if printed.stderr.contains("CPU 0 is not available; this process may use ") {
        return eprintln!("skipped: {}", printed.stderr);
    }
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("limits     CPUs 0\n"), "{}", printed.stdout);
    for record in records(folder.path()) {
        assert_eq!(record["trial"]["placement"]["cpus"], "0");
        assert_eq!(record["cpus_in_force"], "0");
    }
}

#[test]
fn limits_that_are_not_here_are_refused_before_anything_is_run() {
    let folder = folder();
    for (flag, wanted) in [
        ("--cpus 1023", "error: CPU 1023 is not available; this process may use "),
        ("--cpus 3-1", "expected CPUs such as 0-3,6, got `3-1`"),
        ("--numa-node 999", "error: this machine has no NUMA node 999; it has "),
        ("--memory 1M", "`memory_bytes`: expected 16 MiB or more, because the harness counts too, got 1 MiB"),
    ] {
        let printed = kvdyno(folder.path(), &format!("run quick --engines memory-btree {flag}"));
        assert_eq!(printed.code, Some(2), "{flag}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{flag}: {}", printed.stderr);
    }
    assert!(!folder.path().join("kvdyno-results").exists());
}

#[test]
fn a_user_who_may_not_make_groups_is_told_what_to_do() {
    // Another user must be able to come here, and to start the command.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command =
        prepared(folder.path(), "run quick --engines memory-btree --memory 64M --runs 1 --quiet");
    let Ok(output) = command.uid(65534).gid(65534).output() else {
        return eprintln!("skipped: the command cannot be run as another user here");
    };
    let printed: Printed = output.into();
    assert!(is_refused(&printed), "{:?}\n{}\n{}", printed.code, printed.stderr, printed.stdout);
}

#[test]
fn keys_and_values_that_an_engine_does_not_store_are_refused_before_the_first_phase() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        kvdyno(
            folder.path(),
            &format!("run fill-random --keys 4 --runs 1 --durability default --quiet {words}"),
        )
    };
    for (words, wanted) in [
        // Both limits are reached when the first row is written.
        (
            "--engines fjall --key-size 65536",
            "keys have up to 65536 bytes, but the engine supports at most 65535",
        ),
        (
            "--engines sniper --key-size 65536",
            "keys have up to 65536 bytes, but the engine supports at most 65535",
        ),
        (
            "--engines sniper --value-size 524265",
            "values have up to 524265 bytes, but the engine supports at most 524264",
        ),
    ] {
        let printed = run(words);
        assert_eq!(printed.code, Some(1), "{words}\n{}\n{}", printed.stdout, printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: no `{wanted}`\n{}", printed.stderr);
    }
    for words in ["--engines fjall --key-size 65535", "--engines sniper --value-size 524264"] {
        let printed = run(words);
        assert_eq!(printed.code, Some(0), "{words}\n{}\n{}", printed.stdout, printed.stderr);
    }
}

#[test]
fn more_threads_than_ops_run_these_ops_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let few = "run read-random -e null --keys 1000 --ops 3 --threads 8 --runs 1 --quiet";
    for words in [few.to_string(), format!("{few} --seconds 20")] {
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{words}\n{}", printed.stderr);
        let records = records(folder.path());
        let phase = &records[0]["phases"][1];
        assert_eq!((&phase["ops"], &phase["ended_by"]), (&3.into(), &"count".into()), "{words}");
    }
}

#[test]
fn a_trial_takes_no_more_memory_than_its_ops_need() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run overwrite -e null --keys 2 --value-size 16MiB --ops 20 --runs 1 --quiet";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let record = &records(folder.path())[0];
    let peak = record["rss_peak_bytes"].as_u64().unwrap();
    assert!(peak < 64 << 20, "a peak of {peak} bytes for one value of 16 MiB at a time");
    for phase in record["phases"].as_array().unwrap() {
        let buffers = phase["buffers_bytes"].as_u64().unwrap();
        assert!((16 << 20..17 << 20).contains(&buffers), "{buffers}");
    }
    // Groups that are transactions stay as they are, and are refused where they do not fit.
    let words = "run overwrite -e null --keys 1000 --value-size 16MiB --set load.atomic=true --memory 512MiB --runs 1";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    let text = "the threads of a trial need 1.56 GiB of memory for their keys and values, and the cap of a trial is 512 MiB";
    assert!(printed.stderr.contains(text), "{}", printed.stderr);
}

#[test]
fn engines_that_keep_no_files_need_no_space_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |engines: &str| {
        let words = format!("plan read-random -e {engines} --reference {engines} --keys 4294967296 --runs 1");
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        printed.stdout
    };
    assert!(!plan("null").contains("disk space"), "{}", plan("null"));
    assert!(plan("lmdb").contains("2.06 TiB of free disk space"), "{}", plan("lmdb"));
}
