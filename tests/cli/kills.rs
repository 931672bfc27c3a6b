//! A run that is killed fifty times and resumed each time: no trial is lost, none is measured twice, and nothing is left behind.

use super::escapes::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const KILLS: u32 = 50;
/// Trials of one run. If it is complete before the last kill, another run is begun.
const RUNS: u32 = 25;
const ENGINES: &str = "moments,redb,memory-btree";
/// A command that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(100);

const WORKLOAD: &str = "name = 'tiny'\nabout = 'A few ops.'\nkeys = 30\nruns = 1\ndurability = 'none'\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\n\
    [[phase]]\nname = 'read'\nmix = { get = 1 }\nops = 30\n";

/// When the command is killed: so many milliseconds after what is seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Start,
    Load,
    Phase,
    /// The database was removed, and its record is not written yet.
    Between,
    /// The file of the record exists.
    Record,
}

const MOMENTS: [(Moment, u64); 5] =
    [(Moment::Start, 60), (Moment::Load, 20), (Moment::Phase, 20), (Moment::Between, 8), (Moment::Record, 2)];

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

/// The folders of runs.
fn runs(place: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(place.join("kvdyno-results")).into_iter().flatten().flatten();
    let mut all: Vec<_> =
        all.map(|entry| entry.path()).filter(|path| path.join("run.json").exists()).collect();
    all.sort();
    all
}

fn planned(run: &Path) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let trials = json["trials"].as_array().unwrap().iter();
    trials.map(|trial| trial["id"].as_str().unwrap().to_string()).collect()
}

/// The trials that have a line in the journal, in its order.
fn journal(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let whole = text.lines().filter_map(|line| serde_json::from_str(line.get(9..)?).ok());
    whole.map(|entry: serde_json::Value| entry["trial"].as_str().unwrap().to_string()).collect()
}

/// Waits for the moment, or until the command has ended; whether the moment was seen.
fn wait_for(moment: Moment, child: &mut Child, run: &Path) -> bool {
    let done: BTreeSet<String> = journal(run).into_iter().collect();
    let left: Vec<String> = planned(run).into_iter().filter(|id| !done.contains(id)).collect();
    let data = |id: &String| run.join(format!("data/kvdyno-{id}"));
    let record = |id: &String| run.join(format!("trials/{id}/record.json.unfinished"));
    let begun = Instant::now();
    let mut at = None;
    loop {
        let is_there = match moment {
            Moment::Start => true,
            Moment::Load => left.iter().any(|id| data(id).join("db/putting").exists()),
            Moment::Phase => left.iter().any(|id| data(id).join("db/getting").exists()),
            Moment::Between => {
                let now = left.iter().find(|id| data(id).exists());
                let is_gone = at.is_some() && now != at;
                at = now.or(at);
                is_gone
            }
            Moment::Record => left.iter().any(|id| record(id).exists()),
        };
        if is_there {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(begun.elapsed() < HANGS, "the moment {moment:?} does not come");
    }
}

/// What is wrong with a complete run, and what is left of it.
fn check(place: &Place, run: &Path) {
    let plan = planned(run);
    let journal = journal(run);
    let distinct: BTreeSet<&String> = journal.iter().collect();
    assert_eq!(journal.len(), distinct.len(), "a trial was measured twice: {journal:?}");
    assert_eq!(distinct, plan.iter().collect(), "a trial was lost, or is none of the plan");
    let report = place.run(&format!("report {} --format json", run.display()), "none");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).expect("a report in JSON");
    let records = json["records"].as_array().unwrap();
    assert_eq!(records.len(), plan.len());
    for record in records {
        assert_eq!(record["outcome"]["status"], "ok", "{} {}", record["trial"]["id"], record["outcome"]);
    }
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for id in &plan {
        for entry in fs::read_dir(run.join("trials").join(id)).unwrap().flatten() {
            *files.entry(entry.file_name().into_string().unwrap()).or_default() += 1;
        }
    }
    let wanted = ["record.json", "stderr.txt", "task.json"];
    assert_eq!(files.keys().collect::<Vec<_>>(), wanted, "{files:?}");
    assert!(files.values().all(|count| *count == plan.len()), "{files:?}");
    let mut names: Vec<_> = fs::read_dir(run).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["journal.jsonl", "order", "report.html", "run.json", "trials"], "{}", run.display());
}

/// Control groups of these processes that are still there.
fn groups_of(makers: &BTreeSet<u32>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let own = name.strip_prefix("kvdyno-trial-").or(name.strip_prefix("kvdyno-tree-"));
            let maker = own.and_then(|own| own.split('-').next()?.parse().ok());
            found.extend(maker.filter(|maker| makers.contains(maker)).map(|_| entry.path()));
            folders.push(entry.path());
        }
    }
    found
}

#[test]
fn a_run_that_is_killed_fifty_times_has_each_trial_once_and_leaves_nothing() {
    let place = Place::new();
    place.build("moments.c", "libkvdyno_moments.so");
    let capped = format!("memory_bytes = '64MiB'\n{WORKLOAD}");
    fs::write(place.path().join("tiny.toml"), &capped).unwrap();
    let words = format!("run tiny.toml --engines {ENGINES} --runs {RUNS} --quiet --plugins plugins");
    let tried = place.run("run tiny.toml --engines memory-btree --runs 1 --quiet", "none");
    if tried.code != Some(0) {
        assert!(tried.stderr.contains("memory cannot be capped"), "{}", tried.stderr);
        println!("SKIPPED: control groups with a memory cap: {}", tried.stderr);
        fs::write(place.path().join("tiny.toml"), WORKLOAD).unwrap();
    }
    fs::remove_dir_all(place.path().join("kvdyno-results")).unwrap();
    let seed = std::env::var("KVDYNO_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    println!("seed {seed}; KVDYNO_TEST_SEED={seed} repeats the moments");
    let mut random = Random(seed);
    let (mut killed, mut kills): (BTreeMap<Moment, u32>, u32) = (BTreeMap::new(), 0);
    let (mut torn, mut unlisted) = (0, 0);
    let mut makers = BTreeSet::new();
    let mut count = 0;
    while kills < KILLS {
        let begun = Instant::now();
        let mut child = place.start(&words, "none");
        count += 1;
        while runs(place.path()).len() < count {
            assert!(begun.elapsed() < HANGS, "the run does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Those that begin in the same second have no order, but all others are complete.
        let run = runs(place.path()).into_iter().find(|run| journal(run).len() < planned(run).len()).unwrap();
        let resume = format!("run --resume={} --quiet --plugins plugins", run.display());
        loop {
            makers.insert(child.id());
            let (moment, most_ms) = MOMENTS[random.below(MOMENTS.len() as u64) as usize];
            let delay = Duration::from_micros(random.below(most_ms * 1000));
            let is_seen = kills < KILLS && wait_for(moment, &mut child, &run);
            if is_seen {
                // The random moment itself; nothing is waited for.
                std::thread::sleep(delay);
                child.kill().unwrap();
            }
            let printed = place.end(child);
            let is_killed = printed.code.is_none();
            if !is_killed {
                assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
                break;
            }
            kills += 1;
            *killed.entry(moment).or_default() += 1;
            let listed: BTreeSet<String> = journal(&run).into_iter().collect();
            let others =
                planned(&run).into_iter().filter(|id| moment == Moment::Record && !listed.contains(id));
            for folder in others.map(|id| run.join("trials").join(id)) {
                torn += u32::from(folder.join("record.json.unfinished").exists());
                unlisted += u32::from(folder.join("record.json").exists());
            }
            child = place.start(&resume, "none");
        }
    }
    println!(
        "{kills} kills in {count} runs: {killed:?}; {torn} with an unfinished record, {unlisted} with a record that is \
         not in the journal"
    );
    // Each was seen from outside, so that none of them depends on the speed of the machine.
    for (moment, _) in MOMENTS {
        assert!(killed.contains_key(&moment), "no kill at {moment:?}: {killed:?}");
    }
    runs(place.path()).iter().for_each(|run| check(&place, run));
    let begun = Instant::now();
    while !place.processes().is_empty() {
        assert!(begun.elapsed() < HANGS, "processes are left: {:?}", place.processes());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(place.left(), Vec::<String>::new());
    assert_eq!(groups_of(&makers), Vec::<PathBuf>::new());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&*place.path().to_string_lossy()), "{mounts}");
}
