//! Campaigns: a plan is measured in slices, which may die, be run twice, and be finished by another machine; then they are merged.

use super::command::{Printed, kvdyno, prepared};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WORKLOAD: &str = "name = 'tiny'\nabout = 'A few ops.'\nkeys = 30\nruns = 10\ndurability = 'none'\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\n\
    [[phase]]\nname = 'read'\nmix = { get = 1 }\nops = 300\n";

/// A command that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(300);

/// A folder with the workload.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("tiny.toml"), WORKLOAD).unwrap();
    place
}

fn planned(place: &Path, words: &str) -> Printed {
    let printed = kvdyno(place, &format!("plan tiny.toml -o plan.json {words}"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    printed
}

/// The folders of runs in the results folder.
fn runs(place: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(place.join("kvdyno-results")).into_iter().flatten().flatten();
    let mut all: Vec<_> =
        all.map(|entry| entry.path()).filter(|path| path.join("run.json").exists()).collect();
    all.sort();
    all
}

/// The trials of the lines of a journal.
fn measured(run: &Path) -> Vec<String> {
    let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let trial = |line: &str| {
        let json: serde_json::Value = serde_json::from_str(line.get(9..)?).ok()?;
        Some(json["trial"].as_str()?.to_string())
    };
    journal.lines().filter_map(trial).collect()
}

fn plan_of(place: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(place.join("plan.json")).unwrap()).unwrap()
}

/// The ids of the trials of a plan or a run.
fn ids(json: &serde_json::Value) -> Vec<String> {
    json["trials"].as_array().unwrap().iter().map(|trial| trial["id"].as_str().unwrap().to_string()).collect()
}

fn distinct(all: &[String]) -> usize {
    all.iter().collect::<BTreeSet<_>>().len()
}

/// A small generator (SplitMix64), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for its end; returns the exit code and what it has printed to stderr.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Waits until `done`, or until the process has ended by itself. Returns whether it is still running.
fn wait_until(child: &mut Child, done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if done() {
            return true;
        }
        assert!(start.elapsed() < HANGS, "nothing happens");
        std::thread::yield_now();
    }
}

#[test]
fn four_slices_that_are_each_killed_twice_have_all_records_and_none_twice() {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    println!("SEED={seed}");
    let mut random = Random(seed);
    let place = place();
    let place = place.path();
    // Four engines with null, five workloads, ten repetitions.
    planned(place, "--engines memory-map,memory-btree,redb --keys 30,31,32,33,34 --seed 5");
    let all = ids(&plan_of(place));
    assert_eq!(all.len(), 200);
    let start = |slice: u32| {
        started(&mut prepared(place, &format!("run --plan plan.json --shard {slice}/4 --quiet")))
    };
    let of_slice = |slice: u32| {
        let part = format!("-{slice}-of-4");
        let own = runs(place).into_iter().filter(|run| run.to_string_lossy().contains(&part));
        own.flat_map(|run| measured(&run)).count()
    };
    let mut kills = 0;
    for round in 0..2 {
        let mut children: Vec<(u32, Child)> = (1..=4).map(|slice| (slice, start(slice))).collect();
        for (slice, child) in &mut children {
            // At some moment after some of its records: a slice has about 50.
            let records = of_slice(*slice) + 1 + random.below(12) as usize;
            let pause = Duration::from_micros(random.below(30_000));
            if wait_until(child, || of_slice(*slice) >= records) {
                let until = Instant::now() + pause;
                while Instant::now() < until {
                    std::thread::yield_now();
                }
                child.kill().unwrap();
                kills += 1;
            }
            child.wait().unwrap();
        }
        println!("round {round}: {:?} records", (1..=4).map(of_slice).collect::<Vec<_>>());
    }
    assert!(kills >= 6, "SEED={seed}: {kills} of 8 processes were killed");
    let children: Vec<Child> = (1..=4).map(start).collect();
    for child in children {
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(0), "SEED={seed}: {stderr}");
    }
    let found: Vec<String> = runs(place).iter().flat_map(|run| measured(run)).collect();
    assert_eq!((found.len(), distinct(&found)), (200, 200), "SEED={seed}");
    // Once more: nothing is left to do.
    let again = kvdyno(place, "run --plan plan.json --shard 2/4");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stderr.contains("all of its trials have records"), "{}", again.stderr);
    let merged = kvdyno(place, "merge kvdyno-results -o all --plan plan.json");
    assert_eq!(merged.code, Some(0), "SEED={seed}: {}", merged.stderr);
    assert!(merged.stdout.starts_with("merged 200 records from 4 runs on 1 machine"), "{}", merged.stdout);
    assert_eq!(measured(&place.join("all")), all, "in the order of the plan");
    let report = kvdyno(place, "report all --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(
        json["pending"].as_u64().or(json["summary"]["pending"].as_u64()),
        Some(0),
        "{}",
        report.stderr
    );
}

#[test]
fn a_plan_is_frozen_and_shows_its_trials_with_estimates() {
    let place = place();
    let place = place.path();
    let shown = planned(place, "--engines memory-map --runs 3 --seed 9 --list");
    for text in
        ["9 trials in 3 blocks", "reference in each block: memory-btree", "memory-map-tiny-1", "slices"]
    {
        assert!(shown.stdout.contains(text), "`{text}` is missing:\n{}", shown.stdout);
    }
    let plan = plan_of(place);
    assert_eq!(plan["trial_estimates"].as_array().unwrap().len(), 9);
    assert!(plan["trial_estimates"][0]["disk_bytes"].as_u64() > Some(0));
    let again = kvdyno(place, "plan tiny.toml -o plan.json");
    assert_eq!((again.code, again.stderr.contains("already exists")), (Some(2), true), "{}", again.stderr);
    // The same arguments give the same trials.
    let other = kvdyno(place, "plan tiny.toml -o other.json --engines memory-map --runs 3 --seed 9");
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    let other: serde_json::Value =
        serde_json::from_slice(&fs::read(place.join("other.json")).unwrap()).unwrap();
    assert_eq!(plan["trials"], other["trials"]);
    // A plan that was changed is refused.
    let text = fs::read_to_string(place.join("plan.json")).unwrap();
    fs::write(place.join("changed.json"), text.replacen("\"keys\":30", "\"keys\":31", 1)).unwrap();
    let changed = kvdyno(place, "run --plan changed.json");
    assert_eq!(changed.code, Some(2), "{}", changed.stderr);
    assert!(changed.stderr.contains("the plan was changed after it was written"), "{}", changed.stderr);
    assert!(runs(place).is_empty());
}

#[test]
fn a_machine_that_is_too_small_and_arguments_of_another_run_are_refused() {
    let place = place();
    let place = place.path();
    for (plan, run, code, expected) in [
        ("--engines memory-map --machine-cpus 4096", "", 2, "the plan is for machines with 4,096 CPUs"),
        ("--engines redb --keys 900G", "", 1, "of disk space"),
        ("--engines memory-map", "--engines redb", 2, "a plan determines its own engines"),
        ("--engines memory-map", "--seed 3", 2, "a plan determines its own workload fields"),
        ("--engines memory-map", "tiny.toml", 2, "a plan determines its own workloads"),
        ("--engines memory-map", "--resume", 2, "cannot be used with"),
        ("--engines memory-map", "--shard 5/4", 2, "there is no slice 5 of 4"),
        ("--engines memory-map", "--shard auto", 2, "no variables of Slurm"),
    ] {
        let _ = fs::remove_file(place.join("plan.json"));
        planned(place, plan);
        let mut command = prepared(place, &format!("run --plan plan.json {run}"));
        for name in [
            "SLURM_ARRAY_TASK_ID",
            "SLURM_PROCID",
            "OMPI_COMM_WORLD_RANK",
            "PMI_RANK",
            "JOB_COMPLETION_INDEX",
        ] {
            command.env_remove(name);
        }
        let printed: Printed = command.output().unwrap().into();
        assert_eq!(printed.code, Some(code), "{plan} {run}: {}", printed.stderr);
        assert!(printed.stderr.contains(expected), "{plan} {run}: {}", printed.stderr);
    }
    assert!(runs(place).is_empty());
}

#[test]
fn a_slice_has_one_process_at_a_time_and_other_slices_are_free() {
    let place = place();
    let place = place.path();
    planned(place, "--engines memory-map --runs 2 --seconds 30");
    let mut first = started(&mut prepared(place, "run --plan plan.json --shard 1/2 --quiet"));
    let is_begun = || {
        runs(place)
            .iter()
            .any(|run| fs::read_dir(run.join("trials")).is_ok_and(|mut all| all.next().is_some()))
    };
    assert!(wait_until(&mut first, is_begun));
    for shard in ["1/2", "1/1"] {
        let second = kvdyno(place, &format!("run --plan plan.json --shard {shard} --scale 1"));
        assert_eq!(second.code, Some(2), "{}", second.stderr);
        if shard == "1/2" {
            let second = kvdyno(place, "run --plan plan.json --shard 1/2");
            assert_eq!(second.code, Some(1), "{}", second.stderr);
            assert!(second.stderr.contains("is being measured by the process"), "{}", second.stderr);
        }
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let resumed = kvdyno(place, &format!("run --resume={}", runs(place)[0].display()));
    assert_eq!(resumed.code, Some(2), "{}", resumed.stderr);
    assert!(resumed.stderr.contains(" belongs to the plan "), "{}", resumed.stderr);
}

/// The command on another machine, as far as kvdyno can see: the kernel has drawn another random number.
fn elsewhere(place: &Path, words: &str) -> Command {
    let mut command = Command::new("unshare");
    let boot = "/proc/sys/kernel/random/boot_id";
    let script = format!("mount --bind boot_id {boot} && exec \"$0\" \"$@\"");
    command
        .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_kvdyno")])
        .args(words.split_whitespace());
    command.current_dir(place).stdin(Stdio::null()).env_remove("KVDYNO_PLUGINS");
    fs::write(place.join("boot_id"), "11111111-2222-4333-8444-555555555555\n").unwrap();
    command
}

#[test]
fn a_slice_that_died_on_one_machine_is_finished_by_another_with_whole_blocks() {
    let place = place();
    let place = place.path();
    let probe = elsewhere(place, "--version").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: no mount namespace (needs root)");
        return;
    }
    planned(place, "--engines memory-map,redb --runs 6 --keys 400");
    let mut first = started(&mut prepared(place, "run --plan plan.json --quiet"));
    // In the middle of a block of four trials.
    assert!(wait_until(&mut first, || runs(place).first().is_some_and(|run| measured(run).len() >= 6)));
    first.kill().unwrap();
    first.wait().unwrap();
    let before = measured(&runs(place)[0]).len();
    let whole = before / 4 * 4;
    let (code, stderr) = ended(started(&mut elsewhere(place, "run --plan plan.json")));
    assert_eq!(code, Some(0), "{stderr}");
    let all = runs(place);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(measured(&all[1]).len(), 24 - whole, "a block that was begun is measured again: {stderr}");
    let merged = kvdyno(place, "merge kvdyno-results -o all");
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert!(merged.stdout.contains("merged 24 records"), "{}", merged.stdout);
    assert_eq!(merged.stderr.contains("unfinished block"), before > whole, "{}", merged.stderr);
    let report = kvdyno(place, "report all --full");
    for text in ["Machines", "2 machines: ", "The reference is memory-btree."] {
        assert!(report.stdout.contains(text), "`{text}` is missing:\n{}", report.stdout);
    }
    let again = kvdyno(place, "run --plan plan.json");
    assert!(again.stderr.contains("all of its trials have records"), "{}", again.stderr);
    let compared = kvdyno(place, &format!("compare {} all", all[1].display()));
    assert_eq!(compared.code, Some(5), "{}{}", compared.stdout, compared.stderr);
}
