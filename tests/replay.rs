//! `kvdyno prove --only crash --mode replay`: states of a recorded device are rebuilt; sound engines keep what they claim in all of them, known and
//! planted bugs are found, and a device that hangs hangs nothing.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, kvdyno, prepared};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SEED: u64 = 100;
const LOSSES: [&str; 7] = ["LOST", "HOLES", "DUPLICATE", "GARBAGE", "CHANGED", "OPEN-FAILED", "OPEN-HUNG"];

/// A folder in memory where there is one.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Replays with a seed that the messages of failed tests name; the first cell, or `None` with the reason printed if this machine cannot.
fn replayed(folder: &Path, words: &str) -> Option<(Value, Printed)> {
    let words = format!("prove --only crash {words} --mode replay --seed {SEED} --images images --json");
    let printed = kvdyno(folder, &words);
    assert_eq!(left(folder), Vec::<String>::new(), "{words}: {}", printed.stderr);
    let groups: Value = serde_json::from_str(&printed.stdout)
        .unwrap_or_else(|_| panic!("{words}: {}{}", printed.stdout, printed.stderr));
    let cell = groups[0]["cells"][0].clone();
    if let Some(reason) = cell["skipped"].as_str() {
        println!("SKIPPED: {words}: {reason}");
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI needs FUSE, loop devices and mkfs: {reason}"
        );
        return None;
    }
    Some((groups[0].clone(), printed))
}

/// What is left in the folder of images, and mounts, loop devices and processes that name it.
fn left(folder: &Path) -> Vec<String> {
    let name = folder.display().to_string();
    let files = std::fs::read_dir(folder.join("images")).into_iter().flatten().flatten();
    let mut left: Vec<String> = files.map(|entry| entry.path().display().to_string()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    left.extend(mounts.lines().filter(|line| line.contains(&name)).map(String::from));
    for device in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        left.extend(file.contains(&name).then(|| format!("{}: {file}", device.path().display())));
    }
    left.extend(processes(folder).into_iter().map(|process| format!("process {process}")));
    left
}

/// The processes whose command lines name a folder, apart from kvdyno itself.
fn processes(folder: &Path) -> Vec<i32> {
    let name = folder.display().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_ours = |process: &i32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("crash-") && line.contains(&name)
    };
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

fn count(cell: &Value, verdicts: &[&str]) -> u64 {
    verdicts.iter().map(|verdict| cell["verdicts"][verdict].as_u64().unwrap_or(0)).sum()
}

fn rounds(cell: &Value) -> &Vec<Value> {
    cell["rounds"].as_array().unwrap()
}

/// 200 states of these four.
#[test]
fn sound_engines_keep_what_they_claim_in_every_state_and_sled_loses_its_last_commits() {
    let folder = fast_folder();
    for (name, level) in [("lmdb", "power"), ("redb", "power"), ("fjall", "power"), ("sled", "process")] {
        let words = format!("{name} --durability {level} --states 50 --file-system ext4");
        let Some((group, printed)) = replayed(folder.path(), &words) else { return };
        let cell = &group["cells"][0];
        // A recovery may have fewer different states than are asked for, and a short log as well.
        assert!((1..=50).contains(&rounds(cell).len()), "seed {SEED}: {words}: {cell}");
        // None of these claims what it does not keep.
        assert_eq!(printed.code, Some(0), "seed {SEED}: {words}: {cell}");
        if name == "sled" {
            assert!(count(cell, &["LOST"]) >= 5, "seed {SEED}: {words}: {cell}");
        } else {
            assert_eq!(count(cell, &LOSSES), 0, "seed {SEED}: {words}: {cell}");
        }
    }
}

/// The log of Berkeley DB is durable before the entry of its file in the folder is, and recovery creates the file again. So a
/// driver must not look for the file before it.
#[test]
fn berkeleydb_recovers_a_file_that_only_its_log_has() {
    let folder = fast_folder();
    let known = kvdyno(folder.path(), "engines berkeleydb --json").stdout;
    let known: Value = serde_json::from_str(&known).unwrap();
    if known["version"].is_null() {
        println!("SKIPPED: berkeleydb is not available");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs berkeleydb");
        return;
    }
    let words = "berkeleydb --durability power --states 100 --file-system ext4";
    let Some((group, printed)) = replayed(folder.path(), words) else { return };
    let cell = &group["cells"][0];
    assert_eq!((printed.code, count(cell, &LOSSES)), (Some(0), 0), "seed {SEED}: {words}: {cell}");
}

#[test]
fn the_states_of_the_reference_engine_cover_its_life_and_all_are_sound() {
    let folder = fast_folder();
    for kind in ["ext4", "ext4-writeback", "xfs"] {
        let words = format!("memory-btree --durability power --states 40 --file-system {kind}");
        let Some((group, printed)) = replayed(folder.path(), &words) else { return };
        let cell = &group["cells"][0];
        assert_eq!(printed.code, Some(0), "seed {SEED}: {words}: {cell}");
        let ok = count(cell, &["OK"]);
        // The log of a slow machine is short, and has fewer states of some kinds.
        assert!(ok == rounds(cell).len() as u64 && (1..=40).contains(&ok), "seed {SEED}: {words}: {cell}");
        assert!(
            cell["device"]
                .as_str()
                .unwrap()
                .contains("volatile cache, in blocks of 4 KiB that are never torn")
        );
        let states: Vec<u64> =
            rounds(cell).iter().map(|round| round["replayed"]["state"].as_u64().unwrap()).collect();
        assert_eq!(states, (0..ok).collect::<Vec<_>>());
        let of_kind =
            |kind: &str| rounds(cell).iter().filter(|round| round["replayed"]["kind"] == kind).count();
        for known in cell["states"].as_array().unwrap() {
            let (judged, all) = (known["judged"].as_u64().unwrap(), known["all"].as_u64());
            assert!(all.is_none_or(|all| judged <= all), "seed {SEED}: {kind}: {cell}");
            if known["kind"] == "positions" {
                // A tenth of 40 are crashes in a recovery. Half of the rest are positions, or all if these are at most 27.
                let expected = all.map(|all| if all <= 27 { all } else { 18 });
                assert_eq!((Some(judged), judged), (expected, of_kind("position") as u64), "{kind}: {cell}");
            }
        }
        assert!(of_kind("recovery") >= 1, "seed {SEED}: {kind}: {cell}");
        let is_some = |what: &dyn Fn(&Value) -> bool| rounds(cell).iter().any(what);
        assert!(is_some(&|round| round["stage"] == "create"), "seed {SEED}: {kind}: {cell}");
        assert!(is_some(&|round| round["stage"] == "run" && round["acked"].as_u64() > Some(0)), "{cell}");
        assert!(is_some(&|round| round["in_recovery"] == true), "seed {SEED}: {kind}: {cell}");
        assert!(
            is_some(&|round| round["replayed"]["pending"].as_u64() > round["replayed"]["kept"].as_u64()),
            "{cell}"
        );
    }
}

#[test]
fn planted_faults_are_found_made_small_and_repeated_by_the_printed_command() {
    let folder = fast_folder();
    for fault in ["acknowledges-before-sync", "lies-about-level", "crash-leaves-holes"] {
        let words = format!("mutant:{fault} --durability power --states 24 --file-system ext4");
        let Some((group, printed)) = replayed(folder.path(), &words) else { return };
        let cell = &group["cells"][0];
        assert_eq!(printed.code, Some(3), "seed {SEED}: {fault}: {cell}");
        assert!(count(cell, &LOSSES) > 0, "seed {SEED}: {fault}: {cell}");
        assert!(
            group["contradicted"].as_str().unwrap().contains("states that a power cut may leave"),
            "{group}"
        );
        let is_small = |round: &&Value| round["replayed"]["smallest"].is_object();
        let replayed = &rounds(cell).iter().find(is_small).expect("a failure is made small")["replayed"];
        let smallest = &replayed["smallest"];
        assert!(smallest["position"].as_u64() <= replayed["position"].as_u64(), "{replayed}");
        let blocks = smallest["blocks"].as_array().unwrap().len() as u64;
        assert!(blocks <= replayed["kept"].as_u64().unwrap(), "{replayed}");
    }
    let words = format!(
        "prove --only crash mutant:lies-about-level --mode replay --durability power --states 24 --seed {SEED} --images images --file-system ext4"
    );
    let printed = kvdyno(folder.path(), &words);
    let command =
        printed.stdout.lines().find_map(|line| line.trim().strip_prefix("repeat: kvdyno ")).unwrap();
    assert!(command.contains("--states 24 --state "), "{command}");
    // The same commits, but the kernel writes as it likes.
    let again = || kvdyno(folder.path(), command);
    let found = (0..8).map(|_| again()).find(|again| again.code == Some(3)).expect("the state is repeated");
    assert!(found.stdout.contains("LOST"), "{}", found.stdout);
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

/// On XFS this engine has some hundred states.
#[test]
fn all_states_of_a_short_recording_are_judged_and_the_output_says_so() {
    let folder = fast_folder();
    let words = "memory-btree --durability power --states 1000000 --file-system xfs";
    let Some((group, _)) = replayed(folder.path(), words) else { return };
    let cell = &group["cells"][0];
    let known = cell["states"].as_array().unwrap();
    let of = |kind: &str| known.iter().find(|known| known["kind"] == kind).unwrap();
    let listed = ["positions", "with one block lost", "with two blocks lost"].map(of);
    assert!(listed.iter().all(|known| known["judged"] == known["all"]), "seed {SEED}: {cell}");
    let sum: u64 = known.iter().map(|known| known["judged"].as_u64().unwrap()).sum();
    assert_eq!(rounds(cell).len() as u64, sum, "seed {SEED}: {cell}");
    assert_eq!(of("with any blocks lost")["judged"], 0, "seed {SEED}: {cell}");
    // A tenth of them are crashes in a recovery.
    let recoveries = of("in a recovery")["judged"].as_u64().unwrap();
    assert!((1..=sum.div_ceil(9)).contains(&recoveries), "seed {SEED}: {cell}");
}

#[test]
fn a_sound_engine_survives_torn_blocks_and_the_output_names_the_model() {
    let folder = fast_folder();
    let words = "memory-btree --durability power --states 120 --file-system ext4 --tears";
    let Some((group, printed)) = replayed(folder.path(), words) else { return };
    let cell = &group["cells"][0];
    assert_eq!((printed.code, count(cell, &LOSSES)), (Some(0), 0), "seed {SEED}: {cell}");
    assert!(cell["device"].as_str().unwrap().contains("sectors of 512 bytes"), "{cell}");
    let torn: Vec<&Value> =
        rounds(cell).iter().map(|round| &round["replayed"]).filter(|state| state["kind"] == "torn").collect();
    assert!(!torn.is_empty(), "seed {SEED}: {cell}");
    for state in torn {
        let sectors = state["torn"]["sectors"].as_array().unwrap().len();
        assert!((1..8).contains(&sectors), "seed {SEED}: {state}");
    }
    let words = "prove --only crash memory-btree --mode kill --tears";
    assert_eq!(kvdyno(folder.path(), words).code, Some(2));
}

#[test]
fn a_kept_state_fails_again_in_the_same_way_and_a_changed_one_does_not() {
    let folder = fast_folder();
    let words = "mutant:lies-about-level --durability power --states 24 --file-system ext4 --keep kept";
    let Some((group, printed)) = replayed(folder.path(), words) else { return };
    let is_kept = |round: &&Value| round["kept"].is_string();
    let kept: Vec<&Value> = rounds(&group["cells"][0]).iter().filter(is_kept).collect();
    assert!(!kept.is_empty(), "seed {SEED}: {}", printed.stdout);
    for round in kept {
        let place = round["kept"].as_str().unwrap();
        // As often as it is read: the kept database does not change.
        for _ in 0..3 {
            let again = kvdyno(folder.path(), &format!("prove --kept {place}"));
            assert_eq!(again.code, Some(3), "{place}: {}{}", again.stdout, again.stderr);
            let verdict = round["verdict"].as_str().unwrap().to_uppercase();
            assert!(again.stdout.starts_with(&format!("{place}: {verdict}: ")), "{}", again.stdout);
            assert!(!again.stdout.contains("it was"), "{}", again.stdout);
        }
        // If nothing was acknowledged, the same files are right.
        let file = folder.path().join(place).join("kept.json");
        let mut facts: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for bounds in facts["bounds"].as_array_mut().unwrap() {
            bounds["acked"] = 0.into();
        }
        std::fs::write(&file, facts.to_string()).unwrap();
        let again = kvdyno(folder.path(), &format!("prove --kept {place}"));
        assert_eq!(again.code, Some(0), "{place}: {}{}", again.stdout, again.stderr);
        assert!(again.stdout.contains("OK\n  it was LOST when it was kept"), "{}", again.stdout);
    }
    assert!(!folder.path().join("kvdyno-results/crash").exists());
    let again = kvdyno(folder.path(), "prove --only crash mutant:lies-about-level --mode replay --keep kept");
    assert_eq!(again.code, Some(2), "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("--keep kept: it is not an empty folder"), "{}", again.stderr);
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

#[test]
fn without_a_device_in_user_space_replay_is_skipped_and_the_rest_runs() {
    let folder = fast_folder();
    if replayed(folder.path(), "memory-btree --durability power --states 1 --file-system ext4").is_none() {
        return;
    }
    let kvdyno = env!("CARGO_BIN_EXE_kvdyno");
    let words = "prove --only crash memory-btree --durability power --mode kill,replay --rounds 1 --states 2 --file-system ext4 --images images --json";
    for hidden in ["/dev/fuse", "/dev/loop-control"] {
        let script = format!("mount --bind /dev/null {hidden} && exec {kvdyno} {words}");
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).current_dir(folder.path());
        let printed: Printed = command.output().unwrap().into();
        assert_eq!(printed.code, Some(0), "{hidden}: {}{}", printed.stdout, printed.stderr);
        let groups: Value = serde_json::from_str(&printed.stdout).unwrap();
        let cells = groups[0]["cells"].as_array().unwrap();
        assert_eq!(count(&cells[0], &["OK"]), 1, "{groups}");
        assert!(cells[1]["skipped"].as_str().unwrap().contains("no "), "{hidden}: {}", cells[1]["skipped"]);
        assert_eq!(left(folder.path()), Vec::<String>::new());
    }
}

/// Waits until a condition is met; fails after a minute.
fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_met() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} took over a minute");
        std::thread::yield_now();
    }
}

/// A command that records and rebuilds until it is stopped.
const LONG: &str = "prove --only crash memory-btree --mode replay --durability power --states 1000000 --images images --file-system ext4";

/// The process that serves the device, while it does.
fn device(folder: &Path) -> Option<i32> {
    processes(folder).into_iter().find(|process| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let serves =
            |file: std::fs::DirEntry| file.path().read_link().is_ok_and(|to| to == Path::new("/dev/fuse"));
        String::from_utf8_lossy(&line).contains("crash-device") && files.into_iter().any(serves)
    })
}

/// Whether a process runs whose writes are recorded.
fn is_writing(folder: &Path) -> bool {
    let is_worker = |process: &i32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("crash-worker")
    };
    processes(folder).iter().any(is_worker)
}

/// False: the process has ended.
fn signal(name: &str, process: impl std::fmt::Display) -> bool {
    std::process::Command::new("kill").args([name, &process.to_string()]).status().unwrap().success()
}

#[test]
fn a_device_that_hangs_hangs_nothing_and_nothing_is_left() {
    let folder = fast_folder();
    if replayed(folder.path(), "memory-btree --durability power --states 1 --file-system ext4").is_none() {
        return;
    }
    let words = "prove --only crash memory-btree --mode replay --durability power --states 3 --images images --file-system ext4 --stall-seconds 2 --json";
    // A recording may end before its device is stopped.
    let is_stopped = (0..5).any(|_| {
        let mut command = prepared(folder.path(), words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut found = None;
        until("a recording", || {
            found = device(folder.path()).filter(|_| is_writing(folder.path()));
            found.is_some()
        });
        let was_there = signal("-STOP", found.unwrap());
        let begun = Instant::now();
        let printed: Printed = child.wait_with_output().unwrap().into();
        assert!(begun.elapsed() < Duration::from_secs(150), "{:?}", begun.elapsed());
        until("the end of the processes", || left(folder.path()).is_empty());
        was_there && printed.stdout.contains("skipped")
    });
    assert!(is_stopped, "no recording was stopped in the middle");
}

#[test]
fn what_a_killed_replay_has_left_is_removed_at_the_next_start() {
    let folder = fast_folder();
    let quick = "memory-btree --durability power --states 1 --file-system ext4";
    if replayed(folder.path(), quick).is_none() {
        return;
    }
    let mut command = prepared(folder.path(), LONG);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a device", || device(folder.path()).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    // Mounts, loop devices and processes end with kvdyno; only files are left.
    until("the end of the device", || left(folder.path()).len() == 1);
    let printed = kvdyno(folder.path(), &format!("prove --only crash {quick} --mode replay --images images"));
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    assert!(printed.stderr.contains("left behind by a kvdyno that was killed"), "{}", printed.stderr);
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

#[test]
fn an_interrupted_replay_leaves_nothing() {
    let folder = fast_folder();
    if replayed(folder.path(), "memory-btree --durability power --states 1 --file-system ext4").is_none() {
        return;
    }
    let mut command = prepared(folder.path(), LONG);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a device", || device(folder.path()).is_some());
    assert!(signal("-INT", child.id()));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

#[test]
#[ignore = "takes minutes: `cargo test --test replay -- --ignored`"]
fn a_thousand_states_of_sound_engines_raise_no_alarm() {
    let folder = fast_folder();
    for name in ["lmdb", "memory-btree"] {
        for kind in ["ext4", "xfs"] {
            let words = format!("{name} --durability power --states 1000 --file-system {kind}");
            let Some((group, printed)) = replayed(folder.path(), &words) else { return };
            let cell = &group["cells"][0];
            assert_eq!(printed.code, Some(0), "seed {SEED}: {words}: {}", printed.stderr);
            assert!((1..=1000).contains(&rounds(cell).len()), "seed {SEED}: {words}");
            assert_eq!(count(cell, &LOSSES), 0, "seed {SEED}: {words}: {}", group["contradicted"]);
        }
    }
}
